"""A conversation that grows, through the gateway itself: with what is remembered of it as without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.laws.test_prefix import PLACES
from tests.gateway.faults.faults_kit import BY_NAME, post
from tests.tiers import rows
from wireglot import translate_request
from wireglot.gateway import app, composition
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.job import ClientBody, read
from wireglot.gateway.request.worker_thread import LARGE_BYTES, THREAD_NAME
from wireglot.gateway.state.keys.ring import digest_of
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.cache.caches import Memories
from wireglot_core.cache.memory import Memory
from wireglot_core.dialects.registry import dialect_name
from wireglot_core.translate import plan
from wireglot_core.wire.cache import NoCaches
from wireglot_core.wire.json import encode

_CODE = 'value = self.table["key"]\t# “quoted”\n' * 60
_OFF = "[limits]\nremembered = 0\n"
_REPORTED = ("x-wireglot-losses", "x-wireglot-loss-details")

Send = Callable[[dict[str, Any]], tuple[bytes, bytes, list[str | None]]]


def _conversation(turns: int, model: str = "m1") -> dict[str, Any]:
    """Of an Anthropic client, with a mark for the cache, a thought, and the same question twice."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": _CODE}]}]
    for turn in range(turns):
        call = {
            "type": "tool_use",
            "id": f"toolu_{turn}",
            "name": "look",
            "input": {"n": turn, "code": _CODE},
        }
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Turn {turn}."}, call]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": _CODE}
        messages.append({"role": "user", "content": [result]})
        messages.append({"role": "assistant", "content": "Done."})
        messages.append({"role": "user", "content": [{"type": "text", "text": _CODE}]})
    messages[-1]["content"][0] = {**messages[-1]["content"][0], "cache_control": {"type": "ephemeral"}}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "code": {"type": "string"}}}
    tools = [{"name": name, "description": _CODE, "input_schema": schema} for name in ("look", "edit")]
    system = [{"type": "text", "text": _CODE}]
    return {"model": model, "max_tokens": 99, "system": system, "tools": tools, "messages": messages}


def _through(gateway: LiveGateway, upstream: ScriptedUpstream, client: str) -> Send:
    def send(body: dict[str, Any]) -> tuple[bytes, bytes, list[str | None]]:
        answered = post(gateway.port, BY_NAME[client].path("m1", False), encode(body))
        assert answered.status == 200, answered.body
        return upstream.requests[-1].body, answered.body, [answered.headers.get(name) for name in _REPORTED]

    return send


def memories_of(gateway: LiveGateway) -> Memories:
    memories = gateway.process.gateway.memories
    assert isinstance(memories, Memories)
    return memories


def test_a_gateway_without_the_cache_answers_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as caching:
        monkeypatch.setattr(composition, "Memories", NoCaches)
        with LiveGateway.before(upstream, "openai-chat") as plain:
            one, other = (_through(gateway, upstream, "anthropic") for gateway in (caching, plain))
            for turns in (1, 2, 3, 24):
                body = _conversation(turns)
                asked, _, lost = one(body)
                expected, _, also_lost = other(body)
                assert (asked, lost) == (expected, also_lost)
            assert isinstance(plain.process.gateway.memories, NoCaches)


def test_a_gateway_without_the_cache_reads_large_bodies_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[str] = []

    def noted(*args: Any, **named: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read(*args, **named)

    monkeypatch.setattr(composition, "Memories", NoCaches)
    monkeypatch.setattr(app, "read", noted)
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as plain:
        body = _conversation(24)
        assert len(encode(body)) > LARGE_BYTES
        _through(plain, upstream, "anthropic")(body)
    assert [name.startswith(THREAD_NAME) for name in threads] == [True]


@rows(
    ("client", "spoken"),
    [
        ("anthropic", "openai-chat"),
        ("openai-chat", "anthropic"),
        ("openai-responses", "gemini"),
        ("gemini", "openai-responses"),
        ("anthropic", "anthropic"),
    ],
)
def test_every_turn_reaches_the_upstream_as_if_it_were_the_first(client: str, spoken: str) -> None:
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, spoken) as remembers,
        LiveGateway.before(upstream, spoken, _OFF) as forgets,
    ):
        one, other = (_through(gateway, upstream, client) for gateway in (remembers, forgets))
        for turns in (1, 2, 3, 2, 3, 24):  # the last is read in a worker thread
            body = _conversation(turns)
            if client != "anthropic":
                target = dialect_name(client)
                body = translate_request(body, source="anthropic", target=target, model="m1").value
            asked, _, lost = one(body)
            expected, _, also_lost = other(body)
            assert asked == expected
            assert lost == also_lost
            place = PLACES[client][0]
            edited = {**body, place: [*body[place][:-2], body[place][-1]]}
            assert one(edited)[0] == other(edited)[0]
        assert memories_of(remembers).of("local") is not None
        assert memories_of(forgets).of("local") is None


def test_a_large_body_is_read_at_once_where_most_of_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """To hand it to a thread and back would cost more than what is left to do. What nobody knows goes there."""
    seen: list[str] = []

    def spy(*given: Any, **more: Any) -> Any:
        seen.append(threading.current_thread().name.partition("_")[0])
        return plan(*given, **more)

    monkeypatch.setattr("wireglot.gateway.relay.preparation.plan", spy)
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as gateway:
        send = _through(gateway, upstream, "anthropic")
        for turns in (23, 24, 25):  # what came once is not remembered yet
            send(_conversation(turns))
        other = {**_conversation(26), "tools": []}
        send(other)
        send({**other, "messages": [*other["messages"], {"role": "user", "content": "x" * LARGE_BYTES}]})
    once, first, then, changed, longer = seen
    assert once == first == changed == longer == THREAD_NAME
    assert then != THREAD_NAME


def test_callers_never_meet_what_others_have_sent() -> None:
    keys = {name: f"wg-{name}-0123456789" for name in ("one", "two")}
    table = "[keys]\n" + "".join(f'{name} = "sha256:{digest_of(key)}"\n' for name, key in keys.items())
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "openai-chat", table) as gateway,
    ):
        for turns, key in [
            (turns, key) for turns in (8, 9) for key in keys.values()
        ]:  # what came once is not yet
            headers = {"x-api-key": key}
            answered = post(gateway.port, "/v1/messages", encode(_conversation(turns)), headers)
            assert answered.status == 200, answered.body
        memories = memories_of(gateway)
        one, two = memories.of("one"), memories.of("two")
        assert one is not None
        assert two is not None
        assert len(one) == len(two) > 5
        assert not {id(known.value) for known in one._texts.values()} & {
            id(known.value) for known in two._texts.values()
        }
        gateway_bytes = gateway.process.gateway.account
        assert gateway_bytes.remembered == one.held + two.held


@pytest.mark.parametrize("bad", [b"1e999", b'"\xff"'])
@pytest.mark.parametrize("long", [0, 300_000])
def test_of_a_member_that_stands_twice_both_are_looked_at(bad: bytes, long: int) -> None:
    """The one that reads it may take the first."""
    good = b'[{"role":"user","content":"%s"}]' % (b"x" * (2000 + long))
    body = b'{"messages":[%s],"messages":%s}' % (bad, good)
    for _ in range(2):
        with pytest.raises(RequestError):
            ClientBody(body, 128, Memory(1_000_000), "messages").document()
    once = ClientBody(b'{"messages":%s,"messages":%s}' % (good, good), 128, Memory(1_000_000), "messages")
    assert list(once.document()) == ["messages"]
