"""A conversation that grows is translated with a memory of its earlier turns as without one, to the byte.

Requests, losses with their places, the way back for the answer, and what is refused. One memory serves all
upstreams in turn, as a caller's does; edits, dropped turns and other tools come in between.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.laws.cases import MAIN, all_hold, of_kind, recorded
from tests.core.laws.test_prefix import ODD, PLACES, UPSTREAMS, Body, prefixes, talk
from tests.tiers import rows
from wireglot_core.cache import growing_body, known_row
from wireglot_core.cache import memory as memory_module
from wireglot_core.cache.memory import Memory
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.content import Message
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.request import Request
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.strategies.strategies import requests
from wireglot_core.translate import plan
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.splice import Outline

Upstream = tuple[str, str | None, str | None]

_MOST = 64 * 1024 * 1024


@pytest.fixture(autouse=True, scope="module")
def _short_members_too() -> Iterator[None]:
    """And short conversations count as settled but for their last turn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_module, "_SHORT_BYTES", 0)
        patch.setattr(known_row, "OPEN_TURNS", 1)
        patch.setattr(known_row, "_LEAST", 1)
        patch.setattr(known_row, "_STEP", 1)
        patch.setattr(growing_body, "OPEN_TURNS", 1)
        patch.setattr(growing_body, "_LEAST", 1)
        yield


def translated(body: bytes, source: str, upstream: Upstream, memory: Memory | None, seed: str) -> object:
    """All that somebody can see of a request's way to an upstream."""
    target, provider, model = upstream
    context = Context(seed=seed, memory=memory)
    try:
        if memory is None:
            request = read_without(body, source, seed)
        else:
            turns = surface(source).client.turns
            document = memory.document(Outline(body, memory, turns), turns=turns)
            request = dialect(source).parse_request(document, context)
        planned = plan(request, source=source, target=target, model=model, provider=provider, context=context)
        rendered = dialect(target).render_request(planned.upstream, planned.context)
    except WireglotError as fault:
        return type(fault), str(fault)
    return (
        encode(rendered.value),
        planned.losses,
        planned.retraced(rendered.losses),
        planned.aliases,
        request,
        planned.upstream,
    )


@lru_cache(maxsize=1)
def read_without(body: bytes, source: str, seed: str) -> Request:
    """Once for all upstreams: a request is never changed."""
    document = Outline(body, None, surface(source).client.turns).document()
    return dialect(source).parse_request(document, Context(seed=seed))


def later_turns(body: Body, name: str) -> Iterator[Body]:
    """How it grew, how it is sent again, and what clients do to it then."""
    yield from prefixes(body, name)
    yield body
    yield body
    place, heads = PLACES[name]
    turns = body.get(place)
    if isinstance(turns, list) and len(turns) > 1:
        middle = len(turns) // 2
        yield {**body, place: turns[:middle] + turns[middle + 1 :]}  # dropped
        yield {**body, place: turns[:middle] + turns[middle - 1 :]}  # repeated
        yield {**body, place: turns + turns}
        yield {**body, place: turns[1:]}
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        yield {**body, "tools": tools[:-1]}
        yield {key: value for key, value in body.items() if key != "tools"}
    yield {key: value for key, value in body.items() if key not in heads}
    yield body


def same_with_memory(body: Body, source: str) -> None:
    memory = Memory(_MOST)
    for number, turn in enumerate(later_turns(body, source)):
        text = encode(turn)
        for upstream in UPSTREAMS:
            expected = translated(text, source, upstream, None, f"number {number}")
            assert translated(text, source, upstream, memory, f"number {number}") == expected, upstream
    unchanged(memory)


def unchanged(memory: Memory) -> None:
    """Nobody has touched what is remembered."""
    for text, known in memory._texts.items():
        assert encode(known.value) == encode(decode(text)), "a remembered value was changed"


@pytest.mark.sampled("case.dialect", each=2)
@rows("case", [case for case in of_kind("requests") if case.values[0].dialect in MAIN])
def test_a_fixture_grows_alike(case: Case) -> None:
    same_with_memory(case.body, case.dialect)


@pytest.mark.sampled("name")
@rows("ids", ODD)
@rows("name", MAIN)
def test_odd_ids_grow_alike(name: str, ids: str) -> None:
    same_with_memory(talk(name, "mcp.files/look " + "x" * 70, ODD[ids]), name)


@pytest.mark.parametrize("name", MAIN)
def test_recorded_conversations_grow_alike(name: str) -> None:
    all_hold(recorded(name, "requests", 15), lambda case: same_with_memory(case.body, name))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(request=requests(), name=st.sampled_from(MAIN))
def test_any_conversation_grows_alike(request: Any, name: str) -> None:
    rendered = dialect(name).render_request(request, Context()).value
    memory = Memory(_MOST)
    for turn in later_turns(decode(encode(rendered)), name):
        text = encode(turn)
        for upstream in UPSTREAMS[::3]:
            expected = translated(text, name, upstream, None, "s")
            assert translated(text, name, upstream, memory, "s") == expected, upstream
    unchanged(memory)


def test_a_memory_that_forgets_on_the_way_changes_nothing() -> None:
    body = talk("anthropic", "look", ODD["ids of other make"])
    memory = Memory(6000)
    for _ in range(3):
        for turn in later_turns(body, "anthropic"):
            text = encode(turn)
            for upstream in UPSTREAMS:
                expected = translated(text, "anthropic", upstream, None, "s")
                assert translated(text, "anthropic", upstream, memory, "s") == expected
                assert memory.held <= 6000


def test_another_secret_opens_nothing_that_is_remembered() -> None:
    """What was unsealed for one owner is not there for another, even in one memory."""
    from wireglot_core.ir.content import Origin, Signature

    ours = Context(secret=b"one", owner="a")
    sealed = ours.seal(Signature("state", Origin("openai-chat", "p")), "reasoning")
    body = encode(
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "x"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": sealed},
                        {"type": "text", "text": "y"},
                    ],
                },
                {"role": "user", "content": "z"},
            ],
        }
    )
    memory = Memory(_MOST)
    for context in (ours, Context(secret=b"one", owner="b"), Context(secret=b"two", owner="a"), ours):
        with_memory = Context(secret=context.secret, owner=context.owner, memory=memory)
        document = memory.document(Outline(body), turns="messages")
        read = dialect("anthropic").parse_request(document, with_memory)
        assert read == dialect("anthropic").parse_request(decode(body), context)


def test_a_long_turn_is_remembered_once_and_not_each_beginning_of_it() -> None:
    """Remembered beginnings would take the square of it: gigabytes for a body of one."""
    memory = Memory(_MOST)
    turns = [{"role": "user", "content": str(number)} for number in range(1500)]
    body: Body = {"model": "m", "messages": turns}
    upstream = ("anthropic", None, "m")
    for sent in (body, body, {**body, "messages": turns[:-1]}):
        expected = translated(encode(sent), "openai-chat", upstream, None, "")
        assert translated(encode(sent), "openai-chat", upstream, memory, "") == expected
    parts = sum(len(known.value.content) for known in memory._known.values() if type(known.value) is Message)
    assert parts <= 3 * len(turns)
    memory.shrink(0)
    assert memory.held == len(memory._known) == 0


def test_many_calls_that_wait_are_not_remembered_with_each_turn_behind_them() -> None:
    memory = Memory(_MOST)
    call = {"functionCall": {"name": "f", "args": {"n": 1}}}
    answer = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
    turns: list[Any] = [{"role": "user", "parts": [{"text": "x" * 2000}]}]
    turns += [{"role": "model", "parts": [call, {"text": str(number)}]} for number in range(200)]
    turns += [{"role": "user", "parts": [answer, {"text": str(number)}]} for number in range(200)]
    body: Body = {"contents": turns}
    for upstream in (("openai-chat", None, "m"), ("gemini", None, "m")):
        for _ in range(2):
            expected = translated(encode(body), "gemini", upstream, None, "")
            assert translated(encode(body), "gemini", upstream, memory, "") == expected
    waiting = [
        len(mark[1].pending)
        for known in memory._texts.values()
        for key, made in known.made.items()
        if key != "rows" and (mark := made[1])
    ]
    assert 0 < max(waiting) <= 40
    assert sum(waiting) < 3000


@rows("kind", [["message"], {"type": "message"}, 1, None, True])
def test_an_item_of_an_odd_type_is_refused_alike(kind: Any) -> None:
    body = encode({"model": "m", "input": [{"type": kind, "content": "x" * 2000}]})
    upstream = ("openai-chat", None, "m")
    expected = translated(body, "openai-responses", upstream, None, "")
    for _ in range(2):
        assert translated(body, "openai-responses", upstream, Memory(_MOST), "") == expected


@rows("odd", [None, 1, "x", [], {}, [[]], {"role": []}, {"role": {}}, {"role": "tool", "tool_call_id": {}}])
@rows("name", MAIN)
def test_a_turn_of_an_odd_shape_is_refused_alike(name: str, odd: Any) -> None:
    place, _ = PLACES[name]
    body = encode({"model": "m", "max_tokens": 1, place: [odd, odd, "x" * 2000]})
    memory = Memory(_MOST)
    expected = translated(body, name, ("openai-chat", None, "m"), None, "")
    for _ in range(2):
        assert translated(body, name, ("openai-chat", None, "m"), memory, "") == expected


@pytest.mark.parametrize("name", MAIN)
def test_nothing_waits_in_a_circle_for_the_collector(name: str) -> None:
    """Where a gateway serves it looks at what is old once an hour at most: what is forgotten must go by itself."""
    text = encode(talk(name, "look", next(iter(ODD.values()))))
    memories = [Memory(_MOST), Memory(3000)]
    for upstream in UPSTREAMS:  # what is made once for all is made by now
        translated(text, name, upstream, Memory(_MOST), "")
    gc.collect()
    gc.disable()
    try:
        for upstream in UPSTREAMS:
            for memory in (None, *memories, *memories):
                translated(text, name, upstream, memory, "")
        for memory in memories:
            memory.retire()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(one) for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {kind for kind in left if kind.__module__.startswith("wireglot_core.")}


_TURNS = {
    "anthropic": (
        lambda n: {"role": "user", "content": f"q{n}"},
        lambda n: {"role": "assistant", "content": [{"type": "text", "text": f"a{n}"}]},
    ),
    "openai-chat": (
        lambda n: {
            "role": "assistant",
            "tool_calls": [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        lambda n: {"role": "tool", "tool_call_id": f"c{n}", "content": f"r{n}"},
    ),
}


@pytest.mark.sampled("source")
@rows("targets", [("openai-chat",), ("gemini",), ("openai-responses", "gemini", "anthropic")])
@rows("source", _TURNS)
def test_a_memory_counts_what_it_takes_of_tiny_turns(source: str, targets: tuple[str, ...]) -> None:
    """Most of it is not their bytes but what is kept beside them."""
    turns = [turn(n) for n in range(150) for turn in _TURNS[source]]
    first, last = {"role": "user", "content": "go"}, {"role": "user", "content": "end"}
    bodies = [
        encode({"model": "m", "max_tokens": 9, "messages": [first, *turns[: len(turns) - cut], last]})
        for cut in (4, 2, 0)
    ]
    for target in targets:  # what is made once for all
        translated(bodies[0], source, (target, None, None), Memory(_MOST), "")
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        memory = Memory(_MOST)
        for target in targets:
            for body in bodies:
                translated(body, source, (target, None, None), memory, "")
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.6 * memory.held < taken < 1.05 * memory.held
