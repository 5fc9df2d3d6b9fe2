"""Streams of Messages that pass through from a server that is not Anthropic, and go wrong after their beginning."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import anthropic
import pytest
from msgspec import structs

from tests.core.dialects.anthropic.support import sse
from tests.core.laws.cases import MAIN
from tests.gateway.streams.fed import SeenClient, passthrough, reported
from tests.repeated_frames_kit import frames_of
from tests.tiers import rows
from wireglot.gateway.streams.late_verdict import LateVerdict
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Part, Reasoning, Text, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.testing.laws import cut_at

Stage = tuple[ScriptedUpstream, LiveGateway]
TOKENS = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
    '{"a": 1}<|tool_call_end|><|tool_calls_section_end|>'
)
SSE = (("content-type", "text/event-stream"),)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "anthropic") as gateway:
        yield upstream, gateway


@pytest.fixture(scope="module")
def leaking() -> Iterator[Stage]:
    """Before a server that is known to leak calls."""
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "anthropic", limits="{ leaks_calls = true }") as gateway,
    ):
        yield upstream, gateway


def start(id: str = "msg_1") -> dict[str, Any]:
    message = {"id": id, "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "type": "message_start",
        "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    }


def block(index: int, kind: str, field: str, *pieces: str) -> list[dict[str, Any]]:
    """A block of text or of thoughts."""
    delta = {"type": f"{kind}_delta"}
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": kind, field: ""}},
        *(
            {"type": "content_block_delta", "index": index, "delta": {**delta, field: piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": index},
    ]


END: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]  # fmt: skip


def answered(stage: Stage, *events: dict[str, Any]) -> anthropic.types.Message:
    stage[0].next(Behaviour(pieces=tuple(sse(event) for event in events), headers=SSE, gap=0.001))
    return final_message(stage)


def final_message(stage: Stage) -> anthropic.types.Message:
    gateway = stage[1]
    client = anthropic.Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
    with client.messages.stream(
        model="m",
        max_tokens=100,
        messages=[{"role": "user", "content": "hi"}],
        tools=[{"name": "f", "input_schema": {"type": "object"}}],
    ) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("pieces", [["Let me see. " + TOKENS], ["Let me ", "see. ", *TOKENS.partition("{")]])
def test_calls_left_in_the_text_are_calls_behind_thoughts_and_words(
    leaking: Stage, pieces: list[str]
) -> None:
    """[K5] What has gone out stays, and the call is reported as the next block."""
    thoughts, words = block(0, "thinking", "thinking", "Hm."), block(1, "text", "text", *pieces)
    message = answered(leaking, start(), *thoughts, *words, *END)
    assert [part.type for part in message.content] == ["thinking", "text", "tool_use"]
    reported, call = message.content[1:]
    assert reported.type == "text"
    assert reported.text.strip() == "Let me see."
    assert call.type == "tool_use"
    assert (call.name, call.input) == ("f", {"a": 1})
    assert message.stop_reason == "tool_use"


MARK = TOKENS.index(">") + 1


@pytest.mark.parametrize("cut", [1, 2, 8, MARK - 1])
def test_the_tokens_of_a_leaked_call_may_be_cut_over_frames(leaking: Stage, cut: int) -> None:
    """[K5] Behind a first word as before it; also letter by letter."""
    for pieces in (["Let me see. " + TOKENS[:cut], TOKENS[cut:]], ["Let me see. ", *TOKENS]):
        message = answered(leaking, start(), *block(0, "text", "text", *pieces), *END)
        assert [part.type for part in message.content] == ["text", "tool_use"]
        assert message.content[0].type == "text"
        assert message.content[0].text.strip() == "Let me see."


def test_words_that_begin_like_tokens_pass_as_they_came(stage: Stage, leaking: Stage) -> None:
    words = ["Is a ", "<", " b, or ", "<|", "im_start|>", " or <", "|tool", "box|> ", "<"]
    for server in (stage, leaking):
        message = answered(server, start(), *block(0, "text", "text", *words), *END)
        assert message.content[0].type == "text"
        assert message.content[0].text == "".join(words)


def test_a_second_message_inside_the_first_is_an_error(stage: Stage) -> None:
    """[X8] Also where the stream passes through: half of one answer and half of another are none."""
    words = block(0, "text", "text", "Well")
    two = tuple(sse(event) for event in (start(), *words, start("msg_2"), *words, *END))
    upstream = stage[0]
    for pieces in (two, (b"".join(two),)):
        # In one read nothing has gone out, and the gateway may try again.
        upstream.otherwise = Behaviour(pieces=pieces, headers=SSE, gap=0.001)
        with pytest.raises(anthropic.APIStatusError, match="second message"):
            final_message(stage)
    upstream.reset()
    assert answered(stage, start(), start(), *words, *END).content[0].type == "text"


def _unnamed(event: dict[str, Any]) -> bytes:
    """As servers send it that leave the type to the name of the frame."""
    fields = {key: value for key, value in event.items() if key != "type"}
    return f"event: {event['type']}\ndata: {json.dumps(fields)}\n\n".encode()


SPELLINGS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "both": sse,
    "type": lambda event: f"data:{json.dumps(event)}\n\n".encode(),
    "name": _unnamed,
    "returns": lambda event: _unnamed(event).replace(b"\n", b"\r\n"),
}
MESSAGES = [
    start(),
    *block(0, "text", "text", "Well"),
    start("msg_2"),
    *block(0, "text", "text", "Well")[1:],
    *END,
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    {
        "type": "response.output_text.delta",
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "delta": "A",
    },
    {"type": "response.created", "response": {"id": "msg_2"}},
    {
        "type": "response.output_text.delta",
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "delta": "B",
    },
    {"type": "response.completed", "response": {"id": "msg_2", "status": "completed", "output": []}},
]


@pytest.mark.sampled("name", each=2)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("name", "events"), [("anthropic", MESSAGES), ("openai-responses", RESPONSES)])
def test_no_cut_of_its_bytes_lets_a_second_answer_pass(
    name: str, events: list[dict[str, Any]], spelling: str
) -> None:
    """Where nothing has gone out it is no answer, and the gateway may try again; else the client gets an error."""
    frames = [SPELLINGS[spelling](event) for event in events]
    data, ends = b"".join(frames), list(accumulate(map(len, frames)))[:-1]
    between = [[end for bit, end in enumerate(ends) if bits >> bit & 1] for bits in range(2 ** len(ends))]
    inside = [[at] for at in range(1, len(data))]
    for cuts in (*between, *inside, range(1, len(data))):
        client = SeenClient()
        feeder = passthrough(name, client, judged=True, keeps=False, own_usage=False)
        seen = reported(feeder, client, cut_at(data, cuts), "ends")
        sent = b"".join(each[0] for each in client.seen if type(each) is tuple and type(each[0]) is bytes)
        assert b"msg_2" not in sent, cuts
        if not sent:
            assert any("NoAnswer" in str(each) and "a second" in str(each) for each in seen), cuts
        else:
            assert feeder.failure is not None, cuts
            assert b"a second" in sent.rpartition(b"data:")[2], cuts


def _frame(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def test_a_call_that_was_read_is_whole_however_its_frames_were_cut_over_reads():
    """[X7] What is read again behind it (another call, the reason for the end) finds all of its arguments."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m"}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    frames = [
        _frame("message_start", message=message),
        _frame("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        _frame("content_block_delta", index=0, delta={"type": "text_delta", "text": "Let me."}),
        _frame("content_block_stop", index=0),
        _frame("content_block_start", index=1, content_block=call),
        _frame("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"a": '}),
        _frame("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "1}"}),
        _frame("content_block_stop", index=1),
        _frame("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 1}),
        _frame("message_stop"),
    ]
    spoken = dialect("anthropic")
    for cuts in range(2 ** (len(frames) - 1)):
        late = LateVerdict(
            lambda: spoken.stream_reader(Context()),
            lambda: None,
            spoken.surface.marks,
        )
        read = b""
        for number, frame in enumerate(frames):
            read += frame
            if cuts >> number & 1 or number == len(frames) - 1:
                late.hear(read, complete=number == len(frames) - 1)
                read = b""
        late.end()
        assert late.verdict is None, bin(cuts)


def _verdict(name: str, reads: list[bytes], *, by_marks: bool) -> ApiError | None:
    spoken = dialect(name)
    marks = spoken.surface.marks if by_marks else None
    asked = Request("m", (), tools=(Tool("f"),))
    late = LateVerdict(lambda: spoken.stream_reader(Context()), lambda: asked, marks)
    for number, read in enumerate(reads):
        late.hear(read, complete=number == len(reads) - 1)
    late.end()
    return late.verdict


PARTS: dict[str, tuple[Part, tuple[str, ...]]] = {
    "thoughts": (Reasoning(""), ("Hm, ", "so")),
    "odd thoughts": (Reasoning(""), ("data: ", "tool_calls [DONE]")),
    "text": (Text(""), ("Let me see ", "the tool_use")),
    "call": (ToolCall("", "f", ""), ('{"a": ', "1}")),
    "cut call": (ToolCall("", "f", ""), ('{"a": 1',)),
}
KINDS = [kinds for length in range(3) for kinds in itertools.product(PARTS, repeat=length)]


def _frames(name: str, kinds: Sequence[str]) -> list[bytes]:
    events: list[Event] = [Start("id_1", "m")]
    for index, (part, pieces) in enumerate(PARTS[kind] for kind in kinds):
        if isinstance(part, ToolCall):
            part = structs.replace(part, id=f"call_{index}")
        events += [PartStart(index, part), *(Delta(index, piece) for piece in pieces), PartEnd(index)]
    stop = Stop("tool_calls" if kinds and "call" in kinds[-1] else "end")
    return frames_of(name, [*events, Finish(stop, Usage(input=3, output=4))])


@rows("kinds", KINDS)
@rows("name", [*MAIN, "gemini-interactions"])
def test_the_verdict_is_that_of_a_stream_of_which_every_frame_was_read(
    name: str, kinds: Sequence[str]
) -> None:
    """However its frames come together in up to three reads."""
    frames = _frames(name, kinds)
    expected = _verdict(name, frames, by_marks=False)
    for first, second in itertools.combinations_with_replacement(range(1, len(frames) + 1), 2):
        reads = [b"".join(part) for part in (frames[:first], frames[first:second], frames[second:]) if part]
        assert _verdict(name, reads, by_marks=True) == expected, (first, second)


CALLS = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}


@rows("end", [{"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]}, CALLS])
@rows("is_one", [False, True])
def test_what_comes_with_a_thought_is_an_answer(end: dict[str, Any], is_one: bool) -> None:
    """In one chunk with it, or in the next chunk of the same read."""
    thought = {"reasoning_content": "so"}
    deltas = [
        {"role": "assistant", "content": ""},
        thought,
        *([thought | end] if is_one else [thought, end]),
        {},
    ]
    frames = [
        b"data: %b\n\n"
        % json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}).encode()
        for delta, stop in zip(deltas, [*[None] * (len(deltas) - 1), "stop"], strict=True)
    ]
    reads = [b"".join(frames[:2]), b"".join(frames[2:-1]), frames[-1] + b"data: [DONE]\n\n"]
    assert _verdict("openai-chat", reads, by_marks=True) is None


def _chunk(stop: str | None = None, /, *, index: int = 0, **delta: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": stop}
    return b"data: %b\n\n" % json.dumps({"id": "x", "choices": [choice]}).encode()


def _call(arguments: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "function": {"arguments": arguments, **fields}}]


CUT_CALL = [
    _chunk(content="Well"),
    _chunk(tool_calls=[_call("", name="f")[0] | {"id": "c"}]),
    _chunk(tool_calls=_call('{"a": ')),
]
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "frames",
    [
        [*CUT_CALL, _chunk("stop"), DONE],
        [*CUT_CALL, _chunk("length", index=1), _chunk("stop"), DONE],
        # Without an id, it begins with its first arguments.
        [_chunk(content="Well"), _chunk(tool_calls=_call("", name="f")), *CUT_CALL[2:], _chunk("stop"), DONE],
    ],
    ids=["one", "two answers", "no id"],
)
@pytest.mark.parametrize("gap", [b"\n", b"\r\n"])
def test_no_cut_of_its_bytes_hides_that_a_call_was_cut(frames: list[bytes], gap: bytes) -> None:
    """[X7] Also between the two bytes of a line end, and where another answer ended before."""
    data = b"".join(frames).replace(b"\n", gap)
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == gap[:1]]
    for cuts in (
        [],
        *([at] for at in range(1, len(data))),
        *itertools.combinations(ends, 2),
        range(len(data)),
    ):
        client = SeenClient()
        feeder = passthrough("openai-chat", client, judged=True, keeps=False, own_usage=False)
        seen = reported(feeder, client, cut_at(data, cuts), "ends")
        assert "the answer ended inside a tool call" in str(feeder.failure or seen), cuts


def test_a_call_of_gemini_that_comes_in_pieces_is_whole_wherever_a_line_end_was_cut() -> None:
    calls: tuple[dict[str, Any], ...] = (
        {"name": "f", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True},
        {},
    )
    candidates: list[dict[str, Any]] = [
        {"content": {"role": "model", "parts": [{"functionCall": call}]}} for call in calls
    ]
    candidates.append({"content": {"role": "model", "parts": [{"text": "."}]}, "finishReason": "STOP"})
    frames = [b"data: %b\r\n\r\n" % json.dumps({"candidates": [each]}).encode() for each in candidates]
    data = b"".join(frames)
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\r"]
    for cuts in itertools.combinations(ends, 2):
        client = SeenClient()
        feeder = passthrough("gemini", client, judged=True, keeps=False, own_usage=False)
        reported(feeder, client, cut_at(data, cuts), "ends")
        assert feeder.failure is None, cuts
        assert (
            b"".join(each[0] for each in client.seen if type(each) is tuple and type(each[0]) is bytes)
            == data
        )
