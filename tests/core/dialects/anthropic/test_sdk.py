"""The vendor's own SDK hears from our streams and answers what we meant (the SDK law)."""

from typing import Any

import anthropic
import httpx2
import pytest

from tests.core.dialects.anthropic.support import CONTEXT, sse
from tests.tiers import rows
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.ir.content import Citation, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import Delta, Event, Failure, PartStart, Start, unfold
from wireglot_core.traces.canonical import canonical_response

GEMINI = Signature("G1", Origin("gemini"))
USAGE = Usage(input=5, cache_read=2, output=7, reasoning=3)

ANSWERS: list[tuple[Part, ...]] = [
    (Text("Hello, \u2028 wörld"),),
    (),
    (
        Reasoning("hm", GEMINI),
        Text("x", citations=(Citation("https://e.org", "t"),)),
        ToolCall("toolu_1", "f", '{"a": [1, 2.5, "x"]}'),
    ),
    (ToolCall("functions.Bash:0", "Bash", '{"a":1}', signature=GEMINI), ToolCall("b", "g", "")),
    (
        ToolCall("a", "f", '{"a": "line\nbreak"}'),
        ToolCall("b", "f", '{"a": 1}{"a": 1}'),
        ToolCall("c", "f", "[1]"),
    ),
    (Reasoning("", GEMINI, redacted=True), Reasoning("")),
]


def client(body: bytes, content_type: str) -> anthropic.Anthropic:
    def reply(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body, headers={"content-type": content_type})

    transport = httpx2.Client(transport=httpx2.MockTransport(reply))
    return anthropic.Anthropic(api_key="k", http_client=transport, max_retries=0)


def listen(body: bytes) -> Any:
    asked: Any = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    with client(body, "text/event-stream").messages.stream(**asked) as stream:
        return stream.get_final_message()


@rows("parts", ANSWERS)
def test_the_sdk_accumulates_our_stream_to_what_we_would_have_answered(parts):
    response = Response("msg_1", "m", parts, Stop("tool_calls"), USAGE)
    heard = listen(DIALECT.stream_writer(CONTEXT).write(unfold(response)))
    assert (heard.id, heard.stop_reason, heard.usage.input_tokens) == ("msg_1", "tool_use", 5)
    spoken = DIALECT.parse_response(heard.to_dict(), CONTEXT)
    whole = DIALECT.parse_response(DIALECT.render_response(response, CONTEXT).value, CONTEXT)
    # Broken arguments keep their valid beginning in a stream; what they restore to is the same.
    assert canonical_response(spoken).content == canonical_response(whole).content


@rows("parts", ANSWERS)
def test_the_sdk_takes_our_whole_answers(parts):
    value = DIALECT.render_response(Response("msg_1", "m", parts, Stop("end"), USAGE), CONTEXT).value
    data: Any = anthropic._models.construct_type(type_=anthropic.types.Message, value=value)
    assert [block.type for block in data.content] == [block["type"] for block in value["content"]]


def test_the_sdk_raises_our_error_in_a_stream():
    events: list[Event] = [
        Start("msg_1", "m"),
        PartStart(0, Text("")),
        Delta(0, "x"),
        Failure(ApiError("overloaded", "busy")),
    ]
    with pytest.raises(anthropic.APIStatusError) as caught:
        listen(DIALECT.stream_writer(CONTEXT).write(events))
    assert "busy" in str(caught.value)


def test_the_sdk_hears_the_same_from_us_as_from_the_upstream():
    upstream = sse(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 5, "output_tokens": 1},
            },
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "S1"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"query": "q"}'},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    )
    reader, writer = DIALECT.stream_reader(CONTEXT), DIALECT.stream_writer(CONTEXT)
    data = writer.write(reader.read(upstream)) + writer.write(reader.end())
    assert listen(data).to_dict() == listen(upstream).to_dict()
