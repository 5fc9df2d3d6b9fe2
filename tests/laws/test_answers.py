"""An answer is one: 2xx means that the vendor's SDK finds an answer, and cut arguments never reach a tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.laws.cases import MAIN
from tests.core.laws.sdks import RESPONSES, STREAMS, Failed, Understood
from tests.core.laws.strange_answers import (
    ARGUMENTS,
    CUT_STREAMS,
    STRANGE,
    TOOL,
    Strange,
    call_item,
    chat,
    chat_call,
    message,
    response,
    tool_use,
)
from tests.gateway.faults.faults_kit import BY_NAME, Answered, ask, every_dialect, model_at
from tests.tiers import WHOLE, rows
from wireglot import StreamTranslator, translate_response
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.traces.canonical import canonical_arguments
from wireglot_core.wire.json import decode

pytestmark = pytest.mark.filterwarnings("ignore")

Stage = tuple[LiveGateway, ScriptedUpstream]
SSE = (("content-type", "text/event-stream"),)
EVERY_PAIR = [pytest.param(client, source, id=f"{source}-to-{client}") for client in MAIN for source in MAIN]
TRANSLATED = [
    pytest.param(source, target, id=f"{source}-to-{target}")
    for source in MAIN
    for target in MAIN
    if source != target
]
REPORTED_IN_PIECES = ("anthropic", "openai-chat")
"""Whose streams cannot take back the beginning of a call."""
WHOLE_CALL = (TOOL, canonical_arguments(ARGUMENTS))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Upstreams that are no vendor's own, each asked once."""
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream)) as gateway:
        yield gateway, upstream


def found(client: str, answered: Answered, stream: bool) -> Understood | None:
    """What the vendor's SDK finds; None where it reports an error."""
    if answered.status != 200:
        return None
    try:
        return STREAMS[client](answered.body) if stream else RESPONSES[client](decode(answered.body))
    except Failed:
        return None


def holds(client: str, source: str, strange: Strange, understood: Understood | None, stream: bool) -> bool:
    if strange.fate == "answer":
        return understood is not None
    if strange.fate == "interrupted":
        may_fail = stream and (client in REPORTED_IN_PIECES or client == source)  # bytes are not taken back
        return (may_fail and understood is None) or (understood is not None and not understood.calls)
    return understood is None


@rows("stream", [False, True], ids=["whole", "streamed"])
@rows(("client", "source"), EVERY_PAIR)
def test_2xx_means_that_the_vendors_sdk_finds_an_answer(
    stage: Stage, client: str, source: str, stream: bool
) -> None:
    """[X6] R-DA-13 Or a legal reason why there is none; everything else is an error, in its status or its stream."""
    gateway, upstream = stage
    broken: list[str] = []
    for strange in STRANGE[source]:
        upstream.reset()
        upstream.next(
            Behaviour(pieces=strange.frames, headers=SSE) if stream else Behaviour(body=strange.whole)
        )
        answered = ask(gateway, BY_NAME[client], model_at(source), stream=stream)
        understood = found(client, answered, stream)
        if not holds(client, source, strange, understood, stream):
            broken.append(f"{strange.name}: {answered.status} {understood} {answered.body[-300:]!r}")
    assert not broken, "\n".join(broken)


def passed(stage: Stage, spoken: str, strange: Strange, size: int | None) -> Answered:
    """A stream that passes through, `size` bytes at a time or frame by frame."""
    gateway, upstream = stage
    data = strange.stream
    pieces = (
        strange.frames if size is None else tuple(data[at : at + size] for at in range(0, len(data), size))
    )
    upstream.reset()
    upstream.next(Behaviour(pieces=pieces, headers=SSE, gap=0.0))
    return ask(gateway, BY_NAME[spoken], model_at(spoken), stream=True)


@rows("size", [None, 50, 1_000_000], ids=["frames", "bytes", "at once"])
@rows("spoken", [name for name in MAIN if name != "gemini"])
def test_cut_arguments_never_reach_a_tool_where_a_stream_passes_through(
    stage: Stage, spoken: str, size: int | None
) -> None:
    """[X7] The one that speaks the upstream's dialect gets its bytes, and no half of a call as a whole one. (Each
    piece of Gemini's arguments says itself that more is to come.)"""
    for each in CUT_STREAMS[spoken]:
        understood = found(spoken, passed(stage, spoken, each, size), stream=True)
        assert understood is None or not understood.calls, each.name


@rows("size", [None, 50, 1_000_000], ids=["frames", "bytes", "at once"])
@rows("spoken", MAIN)
def test_an_answer_that_passes_through_keeps_its_bytes(stage: Stage, spoken: str, size: int | None) -> None:
    """[X6] Judging costs no byte."""
    for each in STRANGE[spoken]:
        if each.fate == "answer":
            body = passed(stage, spoken, each, size).body
            assert body == each.stream or spoken == "anthropic", (
                each.name
            )  # it is given the model it asked for
            assert body.count(b"\n\n") == len(each.frames), each.name


def streamed(data: bytes, source: DialectName, target: DialectName) -> Understood | None:
    translator = StreamTranslator(source=source, target=target)
    try:
        return STREAMS[target](translator.feed(data) + translator.close())
    except Failed:
        return None


def is_safe(understood: Understood | None) -> bool:
    return understood is None or all(call == WHOLE_CALL for call in understood.calls)


def answers_cut_at(source: str, at: int) -> list[Strange]:
    """Every way to end an answer whose call has only so many letters of its arguments."""
    text = ARGUMENTS[:at]
    match source:
        case "openai-chat":
            ends: list[Any] = [None, "length", "refused", *(["calls", "end"] if at else [])]
            return [chat(str(end), "failed", end, chat_call(text)) for end in ends]
        case "openai-responses":
            made = [response("incomplete", "answer", "length", [call_item(text, "incomplete")])]
            return [*made, response("completed", "failed", "calls", [call_item(text)])] if at else made
        case "anthropic":
            ends = ["length", "refused", *(["calls", "end"] if at else [])]
            return [message(end, "failed", end, [tool_use()], text) for end in ends]
    return []


@rows(("source", "target"), TRANSLATED)
def test_cut_arguments_never_reach_a_tool_however_the_stream_ends(
    source: DialectName, target: DialectName
) -> None:
    """[X7] Whatever the terminal frame says, a call is handed over whole or not at all."""
    broken = [
        f"{each.name} at {at}"
        for at in range(0, len(ARGUMENTS), 1 if WHOLE else 7)
        for each in answers_cut_at(source, at)
        if not is_safe(streamed(each.stream, source, target))
    ]
    broken += [
        each.name for each in CUT_STREAMS[source] if not is_safe(streamed(each.stream, source, target))
    ]
    assert not broken, broken


@rows(("source", "target"), TRANSLATED)
def test_cut_arguments_never_reach_a_tool_wherever_the_bytes_end(
    source: DialectName, target: DialectName
) -> None:
    """[X7] A connection that breaks, in any byte of the frames that bring a call."""
    (call,) = [each for each in STRANGE[source] if each.name == "call"]
    data = call.stream
    whole = streamed(data, source, target)
    assert whole is not None
    for at in range(0, len(data), 3 if WHOLE else 29):
        understood = streamed(data[:at], source, target)
        assert understood is None or understood == whole, at


@rows(("source", "target"), TRANSLATED)
def test_cut_arguments_never_reach_a_tool_in_a_whole_answer(source: DialectName, target: DialectName) -> None:
    """[X7] Nor where the limit cut them: then the answer says so, and the call is left out."""
    if source not in ("openai-chat", "openai-responses"):
        pytest.skip("arguments are objects there")
    for at in range(len(ARGUMENTS)):
        for each in answers_cut_at(source, at):
            body = translate_response(each.whole, source=source, target=target).value
            if dialect(target).parse_error(body) is None:
                assert is_safe(RESPONSES[target](body)), f"{each.name} at {at}"


VENDOR_ENDS: dict[DialectName, tuple[bytes, ...]] = {
    "anthropic": (
        b"event: content_block_stop",
        b'"stop_reason":"max_tokens"',
        b'"output_tokens":5',
        b"event: message_stop",
    ),
    "openai-responses": (
        b"event: response.output_item.done",
        b'"status":"incomplete"',
        b"event: response.incomplete",
        b'"output_tokens":5',
    ),
}
"""How a stream ends whose call was cut off by the limit, in the order of the frames."""


@rows("target", VENDOR_ENDS)
@rows("source", [name for name in MAIN if name != "gemini"])
def test_a_call_that_the_limit_cut_off_ends_a_stream_as_the_vendor_does(
    stage: Stage, source: DialectName, target: DialectName
) -> None:
    """[X7] Its block is closed or its item done, the stop reason says why, and the usage is there; translated and
    forwarded."""
    ends = VENDOR_ENDS[target]
    cut = next(each for each in CUT_STREAMS[source] if each.name == "cut call at the limit")
    gateway, upstream = stage
    upstream.reset()
    upstream.next(Behaviour(pieces=cut.frames, headers=SSE))
    body = ask(gateway, BY_NAME[target], model_at(source), stream=True).body
    if source == target == "openai-responses":  # the upstream's own bytes
        assert body == cut.stream
        return
    assert b"event: error" not in body
    at = [body.replace(b": ", b":").rfind(end.replace(b": ", b":")) for end in ends]
    assert -1 not in at, (ends, body[-900:])
    assert body.count(b"event: content_block_start") == body.count(b"event: content_block_stop")


PAUSED: dict[DialectName, dict[str, Any]] = {
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": "pause_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    },
    "gemini": {
        "candidates": [
            {"content": {"role": "model", "parts": []}, "finishReason": "CONTINUATION", "index": 0}
        ],
        "modelVersion": "m",
        "responseId": "r",
    },
}


@rows("said", ["", "Once"])
@rows("target", MAIN)
@rows("source", PAUSED)
def test_a_pause_never_reads_as_the_end_of_an_answer(
    source: DialectName, target: DialectName, said: str
) -> None:
    """Whole and streamed: where there is no word for it, the answer is reported as incomplete."""
    paused, client = dialect(source).parse_response(PAUSED[source], Context()), dialect(target)
    paused = replace(paused, content=(Text(said),) if said else ())
    rendered = client.render_response(paused, Context())
    writer = client.stream_writer(Context())
    written = writer.write(list(unfold(paused)))
    reader = client.stream_reader(Context())
    streamed = fold([*reader.read(written), *reader.end()])
    for found, losses in (
        (client.parse_response(rendered.value, Context()), rendered.losses),
        (streamed, writer.losses),
    ):
        assert found.stop.reason in ("paused", "length")
        reported = [loss.action for loss in losses if loss.feature == "stop_reason"]
        assert reported == ([] if found.stop.reason == "paused" else ["approximated"])


@pytest.mark.parametrize("target", MAIN)
def test_calls_before_a_pause_are_for_the_client_to_run(target: DialectName) -> None:
    paused = dialect("anthropic").parse_response(PAUSED["anthropic"], Context())
    paused = replace(paused, content=(ToolCall("call_1", TOOL, ARGUMENTS),))
    rendered = dialect(target).render_response(paused, Context())
    back = dialect(target).parse_response(rendered.value, Context())
    assert back.stop.reason == ("paused" if target == "anthropic" else "tool_calls")
    assert any(isinstance(part, ToolCall) for part in back.content)
