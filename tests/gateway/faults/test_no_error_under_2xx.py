"""What comes under a good status and is no answer: asked for once more, then of the next target, then an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.core.laws.sdks import RESPONSES, STREAMS
from tests.core.laws.strange_answers import ARGUMENTS, CUT, STRANGE, Strange, chat, chat_call, message
from tests.gateway.faults.faults_kit import (
    BY_NAME,
    Answered,
    Client,
    ask,
    is_complete,
    line_of,
    provider,
    reported,
    reported_in_stream,
    start,
)
from wireglot.stores.records import UsageQuery
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.traces.canonical import canonical_arguments

Stage = tuple[LiveGateway, ScriptedUpstream, ScriptedUpstream]
A, C, R, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "openai-responses", "gemini"))
SSE = (("content-type", "text/event-stream"),)
PATIENT = "retry = { base = 0.001, cap = 0.001 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
MALFORMED = next(each for each in STRANGE["gemini"] if each.name == "malformed_function_call")
EMPTY = next(each for each in STRANGE["openai-chat"] if each.name == "nothing at all")
GOOD = {
    "gemini": next(each for each in STRANGE["gemini"] if each.name == "plain"),
    "openai-chat": next(each for each in STRANGE["openai-chat"] if each.name == "plain"),
}
CLIENTS = [pytest.param(client, id=client.name) for client in (A, C, R, G)]


@contextmanager
def staged(limits: str = "") -> Iterator[Stage]:
    with ScriptedUpstream() as first, ScriptedUpstream() as second:
        toml = (
            provider("google", first, "gemini", PATIENT)
            + provider("chat", first, "openai-chat", PATIENT)
            + provider("vendor", first, "openai-chat", PATIENT + "home = true\n")
            + provider("flow", first, "openai-chat", PATIENT + 'streams = "only"\n')
            + provider("leaky", first, "openai-chat", PATIENT + "limits = { leaks_calls = true }\n")
            + provider("spare", second, "openai-chat", PATIENT)
            + '[models]\nalone = "google/m1"\nempty = "chat/m1"\nown = "vendor/m1"\nflowing = "flow/m1"\n'
            + 'leaking = "leaky/m1"\n'
            + 'chained = ["google/m1", "spare/m1"]\n'
            + limits
        )
        with LiveGateway(toml) as gateway:
            yield gateway, first, second


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """No keep-alive goes out while an answer comes: with one, a failure has no status of its own."""
    with staged() as made:
        yield made


@pytest.fixture(scope="module")
def pinging() -> Iterator[Stage]:
    with staged("[limits]\nping = 0.05\n") as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(stage: Stage) -> None:
    for upstream in stage[1:]:
        upstream.reset()


def whole(*strange: Strange) -> list[Behaviour]:
    return [Behaviour(body=each.whole) for each in strange]


def streamed(*strange: Strange) -> list[Behaviour]:
    return [Behaviour(pieces=each.frames, headers=SSE) for each in strange]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_malformed_call_is_asked_for_once_more(stage: Stage, client: Client, stream: bool) -> None:
    """[X6] One paid retry, and the client never hears of the first attempt; the log does, and counts it."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(MALFORMED, GOOD["gemini"]))
    answered = ask(gateway, client, "alone", stream=stream)
    assert answered.status == 200
    assert b"there" in answered.body
    assert b"MALFORMED" not in answered.body
    line = line_of(gateway, answered.headers["x-wireglot-request-id"])
    assert (line["outcome"], line["attempts"]) == ("ok", 2)
    assert line["notes"] == ["google/m1: the model produced a malformed tool call (MALFORMED_FUNCTION_CALL)"]
    assert (line["tokens"]["input"], line["tokens"]["output"]) == (14, 10)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_malformed_call_is_an_error(stage: Stage, client: Client, stream: bool) -> None:
    """[X6] Never under 2xx, never in the log as ok, and not paid for a third time."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(MALFORMED, MALFORMED, GOOD["gemini"]))
    answered = ask(gateway, client, "alone", stream=stream)
    assert answered.status == 502
    said = reported(client, answered)
    assert "malformed tool call" in said.message
    if client.family in "CR":
        assert (said.type, said.code) == ("server_error", "malformed_tool_call")
    assert len(upstream.requests) == 2
    line = line_of(gateway, answered.headers["x-wireglot-request-id"])
    assert (line["outcome"], line["status"], line["attempts"]) == ("error", 502, 2)
    assert (line["tokens"]["input"], line["tokens"]["output"]) == (14, 10)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_after_two_of_them_the_next_target_is_asked(stage: Stage, client: Client, stream: bool) -> None:
    """[X6] The chain goes on as after any other failure."""
    gateway, first, second = stage
    reported_as = streamed if stream else whole
    first.next(*reported_as(MALFORMED, MALFORMED))
    second.next(*reported_as(GOOD["openai-chat"]))
    answered = ask(gateway, client, "chained", stream=stream)
    assert answered.status == 200
    assert b"there" in answered.body
    line = line_of(gateway, answered.headers["x-wireglot-request-id"])
    assert (line["outcome"], line["route"], line["attempts"]) == ("ok", "spare/m1", 3)
    assert line["fallbacks"] == ["google/m1"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_an_empty_answer_to_a_user_is_none(stage: Stage, client: Client, stream: bool) -> None:
    """[X6] Also where it would pass through, since that upstream is no vendor's own."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(EMPTY, EMPTY))
    answered = ask(gateway, client, "empty", stream=stream)
    assert answered.status == 502
    assert "empty answer" in reported(client, answered).message


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_is_collected_is_judged_as_the_whole_answer_it_becomes(
    stage: Stage, client: Client
) -> None:
    """[X6] Of a provider that only streams."""
    gateway, upstream, _ = stage
    upstream.next(*streamed(EMPTY, GOOD["openai-chat"]))
    answered = ask(gateway, client, "flowing")
    assert answered.status == 200
    assert b"Hello there" in answered.body
    assert len(upstream.requests) == 2


TOOL_TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "clean up"},
    {"role": "assistant", "content": None, **chat_call(ARGUMENTS)},
    {"role": "tool", "tool_call_id": "call_1", "content": "done"},
]


def test_an_empty_answer_to_a_tool_result_is_one(stage: Stage) -> None:
    """[X6] The model has nothing to add to what its tool has done."""
    gateway, upstream, _ = stage
    upstream.next(*whole(EMPTY))
    answered = ask(gateway, C, "empty", messages=TOOL_TURNS)
    assert (answered.status, answered.body) == (200, EMPTY.whole)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_empty_continuation_of_what_the_client_began_is_one(stage: Stage, stream: bool) -> None:
    """[X6] An answer that was complete is not paid for twice."""
    gateway, upstream, _ = stage
    turns = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "It is 4."}]
    for client in (A, C):
        upstream.next(*(streamed if stream else whole)(EMPTY))
        asked = len(upstream.requests)
        answered = ask(gateway, client, "empty", stream=stream, messages=turns)
        assert answered.status == 200
        assert b"error" not in answered.body
        assert len(upstream.requests) == asked + 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_vendors_own_word_is_taken_as_it_is(stage: Stage, stream: bool) -> None:
    """[X6] Never judged, never paid for again: its clients know what its servers say."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(EMPTY))
    answered = ask(gateway, C, "own", stream=stream)
    assert (answered.status, answered.body) == (200, EMPTY.stream if stream else EMPTY.whole)
    assert len(upstream.requests) == 1


def test_anyone_who_wants_it_as_it_is_gets_what_came(stage: Stage) -> None:
    """[X6] Nothing is repaired and nothing judged."""
    gateway, upstream, _ = stage
    upstream.next(*whole(EMPTY))
    answered = ask(gateway, C, "empty", headers={"x-wireglot-loss-policy": "as-is"})
    assert (answered.status, answered.body) == (200, EMPTY.whole)


def test_what_passes_through_and_is_an_answer_keeps_its_bytes(stage: Stage) -> None:
    """[X6] Judging costs no byte."""
    gateway, upstream, _ = stage
    for strange in STRANGE["openai-chat"]:
        if strange.fate == "answer":
            upstream.next(*whole(strange), *streamed(strange))
            assert ask(gateway, C, "empty").body == strange.whole, strange.name
            assert ask(gateway, C, "empty", stream=True).body == strange.stream, strange.name


BEGUN = message("", "failed", "calls", [{"type": "text", "text": "Well: "}])
CUT_LATER = chat("", "failed", None, {"content": "Well, ", **chat_call(CUT)})


@pytest.mark.parametrize("client", CLIENTS)
def test_once_a_stream_has_begun_it_ends_in_its_own_error(stage: Stage, client: Client) -> None:
    """[X7] `[DONE]` inside an open call: what went out stays, and nobody takes the rest for a call."""
    gateway, upstream, _ = stage
    gate = threading.Event()
    upstream.next(Behaviour(pieces=CUT_LATER.frames, headers=SSE, after=3, gate=gate))
    call = start(gateway, client, "empty", stream=True)
    begun = call.until(b"Well")
    gate.set()
    rest = call.rest()
    answered = type(rest)(rest.status, rest.headers, begun + rest.body, rest.whole)
    assert "inside a tool call" in reported_in_stream(client, answered).message
    assert len(upstream.requests) == 1
    line = line_of(gateway, answered.headers["x-wireglot-request-id"])
    assert (line["outcome"], line["error"]["code"]) == ("error", "truncated_tool_call")


def answered_late(stage: Stage, client: Client, *strange: Strange) -> Answered:
    """What comes of these, none of which begins before a keep-alive went out."""
    gateway, upstream, _ = stage
    goes_on = threading.Event()
    upstream.next(*(Behaviour(pieces=each.frames, headers=SSE, gate=goes_on) for each in strange))
    call = start(gateway, client, "alone", stream=True)
    begun = call.response.read1(65536)
    goes_on.set()
    rest = call.rest()
    return Answered(rest.status, rest.headers, begun + rest.body, rest.whole)


@pytest.mark.parametrize("client", CLIENTS)
def test_after_a_keep_alive_another_attempt_may_follow(pinging: Stage, client: Client) -> None:
    """[X6] The status is spent, but nothing of an answer has gone out."""
    pinging[1].reset()
    answered = answered_late(pinging, client, MALFORMED, GOOD["gemini"])
    assert is_complete(client, answered)
    assert b"there" in answered.body
    assert len(pinging[1].requests) == 2


@pytest.mark.parametrize("client", CLIENTS)
def test_after_a_keep_alive_the_error_is_reported_in_the_stream(pinging: Stage, client: Client) -> None:
    """[X6] In the dialect's own form."""
    answered = answered_late(pinging, client, MALFORMED, MALFORMED)
    assert answered.status == 200
    assert b"malformed tool call" in answered.body
    assert not is_complete(client, answered)


def test_the_ledger_counts_what_was_paid_for_nothing(stage: Stage) -> None:
    """[X6] Two attempts, one row, and an outcome that is not ok."""
    gateway, upstream, _ = stage
    upstream.next(*whole(MALFORMED, MALFORMED))
    answered = ask(gateway, C, "alone")
    identifier = answered.headers["x-wireglot-request-id"]
    state = gateway.process.state
    assert gateway.call(state.ledger.flush(10))
    rows = gateway.call(state.engine.ledger.rows(UsageQuery(), limit=1000))
    row = next(row for row in rows if row.id == identifier)
    assert (row.outcome, row.status, row.attempts, row.source) == ("error", 502, 2, "provider")
    assert (row.input, row.output) == (14, 10)


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "A": [{"name": "weather", "input_schema": SCHEMA}],
    "C": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
    "R": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
    "G": [{"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}],
}
TOKENS = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
    '{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>'
)
LEAKED = chat("leaked", "answer", "end", {"content": TOKENS})
LEAKED_LATER = chat("leaked later", "answer", "end", {"content": "Let me see. " + TOKENS})
HALF_LEAKED = chat("half leaked", "failed", "end", {"content": TOKENS[:-60]})
SDK_NAMES = {"A": "anthropic", "C": "openai-chat", "R": "openai-responses", "G": "gemini"}


@pytest.mark.sampled(each=8)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("leaked", [LEAKED, LEAKED_LATER], ids=["at once", "behind words"])
def test_calls_that_a_server_left_in_the_text_are_calls(
    stage: Stage, client: Client, stream: bool, leaked: Strange
) -> None:
    """[K5] Where the configuration says that the server leaks calls; also for a client of its own dialect."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(leaked))
    answered = ask(gateway, client, "leaking", stream=stream, tools=TOOLS[client.family])
    assert answered.status == 200
    name = SDK_NAMES[client.family]
    found = STREAMS[name](answered.body) if stream else RESPONSES[name](answered.json)
    assert found.calls == (("weather", canonical_arguments('{"city":"Paris"}')),)
    assert "<|" not in found.prose


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_tokens_that_are_no_calls_are_retried(stage: Stage, client: Client, stream: bool) -> None:
    """[K5] And never become the model's last word."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(HALF_LEAKED, GOOD["openai-chat"]))
    answered = ask(gateway, client, "leaking", stream=stream, tools=TOOLS[client.family])
    assert answered.status == 200
    assert b"there" in answered.body
    assert b"<|" not in answered.body
    assert len(upstream.requests) == 2


MENTION = "The marker is `<|tool_call_begin|>`; see the docs."
QUOTED = 'I will not run: <tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'


@pytest.mark.sampled(each=16)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("text", [TOKENS, "Let me see. " + TOKENS, TOKENS[:-60], MENTION, QUOTED])
def test_a_text_of_a_server_that_is_not_known_to_leak_calls_is_a_text(
    stage: Stage, client: Client, stream: bool, text: str
) -> None:
    """[K5] It may be quoted from a hostile document: neither a call, nor an error that is paid for twice."""
    gateway, upstream, _ = stage
    upstream.next(*(streamed if stream else whole)(chat("spoken", "answer", "end", {"content": text})))
    answered = ask(gateway, client, "empty", stream=stream, tools=TOOLS[client.family])
    assert answered.status == 200
    name = SDK_NAMES[client.family]
    found = STREAMS[name](answered.body) if stream else RESPONSES[name](answered.json)
    assert (found.calls, found.prose) == ((), text)
    assert len(upstream.requests) == 1


def test_an_answer_that_begins_with_a_bracket_keeps_its_bytes(stage: Stage) -> None:
    """[K5] As does one that consists of the tokens of a call."""
    gateway, upstream, _ = stage
    for text in ("<", "<|", "<div>", "<|tool_calls", TOKENS, MENTION):
        strange = chat("", "answer", "end", {"content": text})
        upstream.next(*streamed(strange))
        answered = ask(gateway, C, "empty", stream=True, tools=TOOLS["C"])
        assert (answered.status, answered.body) == (200, strange.stream)
