"""What the cache learns: conversations that grow. For all other bodies it costs next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from types import FrameType
from typing import Any

import msgspec
import pytest

from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.request.job import ClientBody
from wireglot.http.account import ByteAccount
from wireglot_core.cache.caches import Memories
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.translate import plan
from wireglot_core.wire.json import encode

_TOOLS = [
    {
        "name": f"tool_{number}",
        "description": f"Tool number {number}. " * 60,
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    for number in range(50)
]


def _calls(fresh: Callable[[int], str], count: int = 120) -> list[dict[str, Any]]:
    """A conversation of small tool calls, each with an id of its own."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Count. " * 200}]
    for number in range(count):
        call = {"type": "tool_use", "id": fresh(number), "name": "tool_1", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": fresh(number), "content": "counted"}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def _body(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return encode({"model": "m", "max_tokens": 9, **more, "messages": messages})


def _counter(request: int) -> Callable[[int], str]:
    return lambda number: f"toolu_{request:04d}{number:04d}"


def _random(request: int) -> Callable[[int], str]:
    return lambda number: "toolu_" + sha256(b"%d %d" % (request, number)).hexdigest()[:24]


def _memories(**limits: int) -> Memories:
    now = msgspec.structs.replace(ProcessLimits(), **limits)
    return Memories(lambda: now, ByteAccount(now.buffered))


def _sent(memories: Memories, body: bytes) -> None:
    """As the gateway reads, fits and writes it."""
    memory = memories.for_body("one", body)
    document = ClientBody(body, memory=memory, turns=surface("anthropic").client.turns).document()
    context = Context(seed="s", memory=memory)
    request = dialect("anthropic").parse_request(document, context)
    planned = plan(request, source="anthropic", target="gemini", model="gemini-2.5-pro", context=context)
    dialect("gemini").render_request(planned.upstream, planned.context)


def _learned(bodies: Iterable[bytes]) -> list[int]:
    """How many texts the cache has learned after each of them."""
    memories = _memories()
    counts = []
    for body in bodies:
        _sent(memories, body)
        counts.append(sum(map(len, memories._of.values())))
    return counts


@pytest.mark.parametrize("ids", [_counter, _random])
def test_nothing_is_learned_of_a_template_with_fresh_ids(ids: Callable[[int], Callable[[int], str]]) -> None:
    assert _learned(_body(_calls(ids(request))) for request in range(12)) == [0] * 12


def test_a_single_letter_that_differs_makes_it_another_beginning() -> None:
    """Wherever it is: a guess by a few of the bytes would miss most of these places."""
    plain = _body(_calls(_counter(0), 100))
    for place in range(400, 464):
        changed = plain[:place] + b"#" + plain[place + 1 :]
        assert _learned([plain, changed]) == [0, 0]


def test_a_conversation_is_learned_when_it_has_grown_and_found_from_then_on() -> None:
    turns = _calls(_random(0), 60)
    bodies = [_body(turns[:count], tools=_TOOLS) for count in range(81, 121, 4)]
    learned = _learned(bodies)
    assert learned[0] == 0
    assert learned[1:] == [86 + 4 * number for number in range(9)]


def test_only_the_tools_are_learned_where_each_question_is_another() -> None:
    """The second one is learned whole: nothing says yet that it will not grow."""
    learned = _learned(_body(_calls(_random(request), 20), tools=_TOOLS) for request in range(12))
    assert learned == [0] + [42] * 11


def test_a_second_conversation_behind_the_same_tools_is_learned_when_it_grows() -> None:
    first, second = (_calls(_random(request), 60) for request in range(2))
    second[0] = {"role": "user", "content": "Count again. " * 200}
    bodies = [_body(first[:count], tools=_TOOLS) for count in (21, 23)]
    bodies += [_body(second[:count], tools=_TOOLS) for count in (21, 23, 25)]
    assert _learned(bodies) == [0, 24, 24, 47, 49]


def test_a_body_that_is_repeated_is_learned_the_third_time() -> None:
    assert _learned([_body(_calls(_random(0)))] * 4) == [0, 0, 241, 241]


def _short_lived(request: int) -> list[bytes]:
    """A conversation that ends with the request in which it is learned."""
    turns = _calls(_random(request), 300)
    return [_body(turns[:-4]), _body(turns[:-2]), _body(turns)]


def test_a_caller_whose_conversations_are_not_found_again_is_given_up() -> None:
    memories = _memories()
    bodies = [body for request in range(40) for body in _short_lived(request)]
    for body in bodies:
        _sent(memories, body)
    memory = memories._of["one"]
    assert memory.learned < sum(map(len, bodies)) // 20


@pytest.mark.whole
def test_a_caller_that_was_given_up_is_tried_again() -> None:
    memories = _memories()
    requests = iter(range(9))
    while (memory := memories._of.get("one")) is None or memory.learns:
        for body in _short_lived(next(requests)):
            _sent(memories, body)
    turns = _calls(_random(99), 300)
    bodies = [_body(turns[:count]) for count in range(301, 601, 2)]
    assert not memory.may_know(bodies[0])
    for body in bodies:
        _sent(memories, body)
    assert memories._of["one"].learns
    assert memory.may_know(bodies[-1])


def _count_calls(work: Callable[[], None]) -> int:
    calls = 0

    def hook(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.sampled(each=2)
@pytest.mark.parametrize("tools", [[], _TOOLS])
@pytest.mark.parametrize("times", [1, 2])
def test_it_costs_no_more_than_a_twentieth_over_the_cache_switched_off(
    tools: list[dict[str, Any]], times: int
) -> None:
    bodies = [
        _body(_calls(_random(request), 40), tools=tools)
        for request in range(60 // times)
        for _ in range(times)
    ]

    def cost(memories: Memories) -> int:
        def send_all() -> None:
            for body in bodies[1:]:
                _sent(memories, body)

        _sent(memories, bodies[0])
        return _count_calls(send_all)

    assert cost(_memories()) <= cost(_memories(remembered=0)) * 1.05
