"""A call that the token limit cut off: every client sees that the limit was reached, how much was used, and no call
that could be run. The stream ends as its vendor's does."""

from itertools import product
from typing import Any

from msgspec.structs import replace

from tests.core.laws.wires import ends_in
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Part, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, fold, unfold
from wireglot_core.testing.laws import read_stream, write_stream
from wireglot_core.wire.json import encode

DIALECTS: tuple[DialectName, ...] = (
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "gemini-interactions",
    "ollama",
)
SAYS_CUT: tuple[DialectName, ...] = ("anthropic", "openai-chat", "openai-responses")
"""Dialects whose upstreams send a call before it is whole."""
USAGE = Usage(input=20, output=16)
WHOLE = ToolCall("call_1", "look", '{"at":"sea"}')
CUT = '{"path":"a/b'
ANSWERS: dict[str, tuple[Part, ...]] = {
    "alone": (ToolCall("call_2", "write", CUT),),
    "after a text": (Text("Writing."), ToolCall("call_2", "write", CUT)),
    "after a whole call": (WHOLE, ToolCall("call_2", "write", CUT)),
    "before its arguments": (Text("Writing."), ToolCall("call_2", "write", "")),
}
REASONS: dict[DialectName, bytes] = {
    "anthropic": b'"stop_reason":"max_tokens"',
    "openai-chat": b'"finish_reason":"length"',
    "openai-responses": b'"reason":"max_output_tokens"',
    "gemini": b'"finishReason":"MAX_TOKENS"',
    "gemini-interactions": b'"status":"incomplete"',
    "ollama": b'"done_reason":"length"',
}
PAIRS = [pair for pair in product(SAYS_CUT, DIALECTS) if pair[0] != pair[1]]


def upstream_stream(source: DialectName, content: tuple[Part, ...]) -> bytes:
    """The stream of a vendor: the call has no end where its vendor gives it none."""
    answer = Response("r_1", "m", content, Stop("length"), usage=USAGE)
    events: list[Event] = []
    for event in unfold(answer):
        if type(event) is PartEnd and event.index == len(content) - 1:
            event = replace(event, cut=True)
        events.append(event)
    return write_stream(dialect(source), events, Context(now=1)).value


def runnable(target: DialectName, data: bytes) -> list[str]:
    """The names of calls that a client would run: whole ones."""
    events = read_stream(dialect(target), [data])
    opened: dict[int, ToolCall] = {}
    texts: dict[int, str] = {}
    for event in events:
        if type(event) is PartStart and type(event.part) is ToolCall:
            opened[event.index], texts[event.index] = event.part, event.part.arguments
        elif type(event) is Delta and event.index in texts:
            texts[event.index] += event.text
    return [call.name for index, call in opened.items() if texts[index].endswith("}")]


@rows(("source", "target"), PAIRS)
@rows("which", ANSWERS)
def test_a_stream_ends_with_the_reason_and_the_usage(
    source: DialectName, target: DialectName, which: str
) -> None:
    data = upstream_stream(source, ANSWERS[which])
    asked: dict[str, Any] = {}
    translator = StreamTranslator(source=source, target=target, **asked)
    out = translator.feed(data) + translator.close()
    assert not translator.failed
    assert ends_in(target, out) == "complete", out[-400:]
    assert REASONS[target] in out.replace(b'": ', b'":')
    assert [loss.action for loss in translator.losses if loss.feature == "tool_call.arguments"] == ["dropped"]
    events = read_stream(dialect(target), [out])
    last = events[-1]
    assert type(last) is Finish
    usage = last.usage or fold(events).usage
    assert usage is not None
    assert usage.output == USAGE.output
    assert runnable(target, out) == (["look"] if which == "after a whole call" else [])


@rows(("source", "target"), PAIRS)
@rows("which", ["alone", "after a text", "after a whole call"])
def test_a_whole_answer_has_the_reason_the_usage_and_only_whole_calls(
    source: DialectName, target: DialectName, which: str
) -> None:
    if source == "anthropic":
        return  # its calls are objects: a whole answer cannot show that one was cut
    answer = fold(read_stream(dialect(source), [upstream_stream(source, ANSWERS[which])]))
    body = _said(source, replace(answer, content=ANSWERS[which]))
    rendered = translate_response(body, source=source, target=target)
    found = dialect(target).parse_response(rendered.value, Context())
    assert REASONS[target] in encode(rendered.value)
    assert found.usage is not None
    assert found.usage.output == USAGE.output
    calls = [part.name for part in found.content if type(part) is ToolCall]
    assert calls == (["look"] if which == "after a whole call" else [])


def _said(source: DialectName, answer: Response) -> dict[str, Any]:
    """A vendor's whole answer, with the arguments as far as they came."""
    usage = {"prompt_tokens": 20, "completion_tokens": 16, "total_tokens": 36}
    calls = [part for part in answer.content if type(part) is ToolCall]
    text = "".join(part.text for part in answer.content if type(part) is Text)
    if source == "openai-chat":
        made = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
        message = {"role": "assistant", "content": text or None, "tool_calls": made}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        return {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
    items: list[dict[str, Any]] = []
    if text:
        said = {"type": "output_text", "text": text, "annotations": []}
        items.append(
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
        )
    for call in calls:
        status = "completed" if call is WHOLE else "incomplete"
        items.append(
            {"id": f"fc_{call.id}", "type": "function_call", "call_id": call.id, "name": call.name,
             "arguments": call.arguments, "status": status}
        )  # fmt: skip
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": items,
        "usage": {"input_tokens": 20, "output_tokens": 16, "total_tokens": 36},
    }
