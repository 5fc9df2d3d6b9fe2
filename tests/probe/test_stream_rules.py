"""Every rule of a stream: a good one breaks none, and each way to break one is named with its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.tiers import rows
from wireglot.probe.question import ask
from wireglot.probe.reply import ProbeFrame, ProbeReply
from wireglot.probe.run import WIRES

Event = dict[str, Any]

CHAT: list[Any] = [
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m",
     "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}, "finish_reason": None}]},
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m",
     "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": None}]},
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [
        {"index": 0, "finish_reason": None, "delta": {"tool_calls": [
            {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}]}}]},
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [
        {"index": 0, "finish_reason": None, "delta": {"tool_calls": [
            {"index": 0, "function": {"arguments": ": 1}"}}]}}]},
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m",
     "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [],
     "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}},
    "[DONE]",
]  # fmt: skip

GEMINI: list[Any] = [
    {"responseId": "r1", "modelVersion": "m", "candidates": [
        {"index": 0, "content": {"role": "model", "parts": [{"text": "Hel"}]}}]},
    {"responseId": "r1", "modelVersion": "m", "candidates": [
        {"index": 0, "content": {"role": "model", "parts": [{"text": "lo"}]}}]},
    {"responseId": "r1", "modelVersion": "m", "candidates": [
        {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"functionCall": {"id": "x", "name": "f", "args": {"a": 1}}}]}}],
     "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}},
]  # fmt: skip

_ANTHROPIC_USAGE = {
    "cache_creation": None, "cache_creation_input_tokens": None, "cache_read_input_tokens": None,
    "server_tool_use": None, "service_tier": None, "inference_geo": None, "output_tokens_details": None,
    "input_tokens": 3,
}  # fmt: skip
ANTHROPIC: list[Any] = [
    {"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "stop_details": None, "container": None, "context_management": None,
        "usage": {**_ANTHROPIC_USAGE, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0,
     "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "", "citations": None}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2,
     "content_block": {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": None}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta",
     "delta": {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None, "container": None,
               "context_management": None},
     "usage": {**_ANTHROPIC_USAGE, "output_tokens": 4}},
    {"type": "message_stop"},
]  # fmt: skip

_TEXT = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Hello", "annotations": []}]}  # fmt: skip
_CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a": 1}'}
_RESPONSE = {"id": "resp_1", "object": "response", "created_at": 5, "model": "m", "status": "in_progress",
             "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip
_RESPONSE_USAGE = {
    "input_tokens": 3, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 7,
}  # fmt: skip
RESPONSES: list[Any] = [
    {"type": "response.created", "response": _RESPONSE},
    {"type": "response.in_progress", "response": _RESPONSE},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_TEXT, "content": []}},
    {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "msg_1", "part": {}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1",
     "delta": "Hel"},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "lo"},
    {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "item_id": "msg_1",
     "text": "Hello"},
    {"type": "response.output_item.done", "output_index": 0, "item": _TEXT},
    {"type": "response.output_item.added", "output_index": 1, "item": {**_CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": '{"a": 1}'},
    {"type": "response.function_call_arguments.done", "output_index": 1, "item_id": "fc_1",
     "arguments": '{"a": 1}'},
    {"type": "response.output_item.done", "output_index": 1, "item": _CALL},
    {"type": "response.completed", "response": {
        **_RESPONSE, "status": "completed", "output": [_TEXT, _CALL], "usage": _RESPONSE_USAGE}},
]  # fmt: skip

OLLAMA: list[Any] = [
    {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "Hel"},
     "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:01Z", "message": {"role": "assistant", "content": "lo"},
     "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:02Z", "message": {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}]}, "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:03Z", "message": {"role": "assistant", "content": ""},
     "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4},
]  # fmt: skip

_INTERACTION = {"id": "v1_1", "object": "interaction", "model": "m"}
INTERACTIONS: list[Any] = [
    {"event_type": "interaction.created", "interaction": {**_INTERACTION, "status": "in_progress"}},
    {"event_type": "interaction.status_update", "interaction_id": "v1_1", "status": "in_progress"},
    {"event_type": "step.start", "index": 0, "step": {"type": "thought"}},
    {"event_type": "step.delta", "index": 0, "delta": {
        "type": "thought_summary", "content": {"type": "text", "text": "hm"}}},
    {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_signature", "signature": "sig"}},
    {"event_type": "step.stop", "index": 0},
    {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}},
    {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "Hel"}},
    {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "lo"}},
    {"event_type": "step.stop", "index": 1},
    {"event_type": "step.start", "index": 2, "step": {
        "type": "function_call", "id": "c1", "name": "f", "arguments": {}}},
    {"event_type": "step.delta", "index": 2, "delta": {"type": "arguments_delta", "arguments": '{"a"'}},
    {"event_type": "step.delta", "index": 2, "delta": {"type": "arguments_delta", "arguments": ": 1}"}},
    {"event_type": "step.stop", "index": 2},
    {"event_type": "interaction.completed", "interaction": {**_INTERACTION, "status": "requires_action", "usage": {
        "total_input_tokens": 3, "total_output_tokens": 3, "total_thought_tokens": 1, "total_tokens": 7}}},
    "[DONE]",
]  # fmt: skip

GOOD = {
    "openai-chat": CHAT,
    "gemini": GEMINI,
    "anthropic": ANTHROPIC,
    "openai-responses": RESPONSES,
    "ollama": OLLAMA,
    "gemini-interactions": INTERACTIONS,
}


def numbered(events: list[Any]) -> list[Any]:
    """Of Responses: each event has its number."""
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def framed(dialect: str, events: list[Any]) -> list[ProbeFrame]:
    frames = []
    for event in events:
        if isinstance(event, ProbeFrame):
            frames.append(event)
            continue
        data = event if isinstance(event, str) else json.dumps(event)
        name = event["type"] if dialect in ("anthropic", "openai-responses") else ""
        frames.append(ProbeFrame(name, data))
    return frames


def read(dialect: str, events: list[Any], *, usage: bool = True) -> ProbeReply:
    question = ask("Hi", stream=True, usage=usage)
    return WIRES[dialect].stream_reader(question).read(framed(dialect, events))


def fresh(dialect: str) -> list[Any]:
    events = copy.deepcopy(GOOD[dialect])
    return numbered(events) if dialect == "openai-responses" else events


def test_a_good_stream_breaks_no_rule_and_says_what_it_says() -> None:
    for dialect in GOOD:
        reply = read(dialect, fresh(dialect))
        assert reply.faults == [], dialect
        assert (reply.text, reply.stop, reply.model) == ("Hello", "tool", "m"), dialect
        (call,) = reply.calls
        assert (call.name, json.loads(call.arguments)) == ("f", {"a": 1}), dialect
        assert reply.usage is not None
        assert (reply.usage.input, reply.usage.output) == (3, 4)
    for dialect in ("anthropic", "gemini-interactions"):
        assert [(each.text, each.state) for each in read(dialect, fresh(dialect)).thoughts] == [("hm", "sig")]
    assert [read(dialect, fresh(dialect)).pieces for dialect in GOOD] == [2, 2, 1, 2, 2, 2]


Edit = Callable[[list[Any]], Any]


class Breach(NamedTuple):
    dialect: str
    edit: Edit
    rule: str
    words: str


def put(at: int, *path_and_value: Any) -> Edit:
    """A field of one event replaced."""
    *path, value = path_and_value

    def edit(events: list[Any]) -> None:
        place = events[at]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return edit


def cut(at: int, *path: Any) -> Edit:
    """An event, or a field of one, left out."""

    def edit(events: list[Any]) -> None:
        place: Any = events
        for step in (at, *path)[:-1]:
            place = place[step]
        del place[(at, *path)[-1]]

    return edit


def insert(at: int, event: Any) -> Edit:
    return lambda events: events.insert(at, event)


def again(at: int, to: int) -> Edit:
    return lambda events: events.insert(to, copy.deepcopy(events[at]))


_CALL_DELTA = (2, "choices", 0, "delta", "tool_calls", 0)
_LATER_DELTA = (3, "choices", 0, "delta", "tool_calls", 0)
_OLLAMA_CALL = (2, "message", "tool_calls", 0, "function")

BREACHES = [
    # Chat
    Breach("openai-chat", cut(-1), "ending", "[DONE]` came 0 times"),
    Breach("openai-chat", insert(7, CHAT[1]), "ending", "frame 7: data after [DONE]"),
    Breach("openai-chat", put(1, "id", "c2"), "identity", "frame 1: id was 'c1' and now is 'c2'"),
    Breach("openai-chat", put(1, "model", "n"), "identity", "model was 'm' and now is 'n'"),
    Breach("openai-chat", put(1, "created", 6), "identity", "created was 5 and now is 6"),
    Breach("openai-chat", put(1, "id", ""), "identity", "frame 1.id: expected a text that is not empty"),
    Breach("openai-chat", put(1, "object", "chat.completion"), "order", "frame 1.object"),
    Breach("openai-chat", put(0, "object", "chat.completion"), "opening", "frame 0.object"),
    Breach("openai-chat", cut(0, "choices", 0, "delta", "role"), "opening", "the first delta has no role"),
    Breach("openai-chat", put(0, "choices", 0, "delta", "role", "user"), "opening", "delta.role"),
    Breach("openai-chat", put(1, "choices", 0, "index", 1), "indexes", "index 1 of one choice"),
    Breach("openai-chat", put(*_CALL_DELTA, "index", 1), "indexes", "index 1, expected 0: no gaps"),
    Breach("openai-chat", cut(*_LATER_DELTA, "index"), "indexes", "the SDK joins the pieces by it"),
    Breach("openai-chat", put(*_LATER_DELTA, "id", "call_1"), "calls", "id: reported again in a later piece"),
    Breach("openai-chat", put(*_LATER_DELTA, "function", "name", "f"), "calls", "name: reported again"),
    Breach("openai-chat", cut(*_CALL_DELTA, "type"), "calls", "the field type is missing"),
    Breach("openai-chat", put(*_CALL_DELTA, "id", ""), "calls", "id: expected a text that is not empty"),
    Breach("openai-chat", put(*_LATER_DELTA, "function", "arguments", ": 1"), "calls", "call 0.arguments: not JSON"),
    Breach("openai-chat", put(*_LATER_DELTA, "function", "arguments", ""), "calls", "call 0.arguments: not JSON"),
    Breach("openai-chat", cut(5), "usage", "was requested (include_usage) and never reported"),
    Breach("openai-chat", put(1, "usage", CHAT[5]["usage"]), "usage", "frame 1: usage before the answer is finished"),
    Breach("openai-chat", cut(4), "usage", "usage before the answer is finished"),
    Breach("openai-chat", again(4, 5), "ending", "finish_reason was reported 2 times"),
    Breach("openai-chat", again(1, 5), "ending", "content after the finish_reason"),
    Breach("openai-chat", insert(1, {"error": {"message": "x"}}), "ending", "frame 1: an error"),
    Breach("openai-chat", insert(1, ProbeFrame("delta", json.dumps(CHAT[1]))), "frames", "Chat's frames have no names"),
    Breach("openai-chat", insert(1, ProbeFrame("", "{oops")), "frames", "frame 1: its data is not a JSON object"),
    Breach("openai-chat", cut(1, "choices", 0, "finish_reason"), "nulls", "the field finish_reason is missing (null is allowed)"),
    # Gemini
    Breach("gemini", lambda events: events.clear(), "opening", "the stream has no chunk"),
    Breach("gemini", put(1, "responseId", "r2"), "identity", "frame 1: responseId or modelVersion"),
    Breach("gemini", put(1, "modelVersion", "n"), "identity", "frame 1: responseId or modelVersion"),
    Breach("gemini", put(1, "candidates", 0, "index", 1), "indexes", "index 1 of one candidate"),
    Breach("gemini", put(1, "candidates", 0, "content", "role", "user"), "order", "content.role"),
    Breach("gemini", put(0, "candidates", 0, "content", "role", "user"), "opening", "content.role"),
    Breach("gemini", again(0, 3), "ending", "content after the finishReason"),
    Breach("gemini", cut(2, "candidates", 0, "finishReason"), "ending", "finishReason was reported 0 times"),
    Breach("gemini", put(2, "candidates", 0, "finishReason", "stop"), "order", "an upper-case word"),
    Breach("gemini", cut(2, "usageMetadata"), "usage", "no chunk has the usage"),
    Breach("gemini", cut(2, "usageMetadata", "promptTokenCount"), "usage", "the field promptTokenCount is missing"),
    Breach("gemini", cut(2, "candidates", 0, "content", "parts", 0, "functionCall", "name"), "calls", "the field name is missing"),
    Breach("gemini", put(1, "candidates", 0, "content", "parts", 0, "text", 5), "order", "expected a text"),
    Breach("gemini", insert(3, "[DONE]"), "ending", "frame 3: [DONE], on which Google's SDK raises"),
    Breach("gemini", insert(1, ProbeFrame("", "", (": ping",))), "frames", "the line ': ping'"),
    Breach("gemini", insert(1, ProbeFrame("x", "")), "frames", "the line 'event: x'"),
    Breach("gemini", insert(1, ProbeFrame("", json.dumps(GEMINI[1]), spaced=False)), "frames", "no space behind"),
    Breach("gemini", insert(1, ProbeFrame("", "[1]")), "frames", "frame 1: its data is not a JSON object"),
    Breach("gemini", insert(1, {"error": {"code": 500}}), "ending", "frame 1: an error"),
    # Anthropic
    Breach("anthropic", cut(0), "opening", "begins with content_block_start"),
    Breach("anthropic", again(0, 1), "opening", "a second message_start"),
    Breach("anthropic", put(0, "message", "content", [{}]), "opening", "expected an empty list"),
    Breach("anthropic", put(0, "message", "stop_reason", "end_turn"), "opening", "message.stop_reason"),
    Breach("anthropic", put(0, "message", "role", "user"), "opening", "message.role"),
    Breach("anthropic", put(5, "content_block", "text", "x"), "order", "starts with text"),
    Breach("anthropic", cut(7), "order", "block 1 has no content_block_stop"),
    Breach("anthropic", cut(-1), "ending", "message_stop came 0 times"),
    Breach("anthropic", put(12, "delta", "stop_reason", None), "ending", "no message_delta has a stop_reason"),
    Breach("anthropic", insert(14, {"type": "odd"}), "ending", "frame 14: odd after message_stop"),
    Breach("anthropic", again(4, 5), "order", "content_block_stop of block 0, which is not open"),
    Breach("anthropic", again(6, 8), "order", "a delta for block 1, which is not open"),
    Breach("anthropic", put(6, "delta", ANTHROPIC[2]["delta"]), "order", "thinking_delta for a block of type text"),
    Breach("anthropic", again(3, 4), "thoughts", "a second signature_delta"),
    Breach("anthropic", again(2, 4), "thoughts", "a thinking_delta after the signature"),
    Breach("anthropic", put(8, "content_block", "input", {"b": 2}), "calls", "clients that join them get"),
    Breach("anthropic", put(8, "content_block", "id", ""), "calls", "id: expected a text that is not empty"),
    Breach("anthropic", cut(10), "calls", "block 2: the deltas do not join to JSON"),
    Breach("anthropic", put(9, "delta", "partial_json", "[1"), "calls", "block 2: the deltas do not join to JSON"),
    Breach("anthropic", cut(12, "usage", "output_tokens"), "ending", "the field output_tokens is missing"),
    Breach("anthropic", insert(1, {"type": "error", "error": {"type": "api_error"}}), "ending", "an error"),
    Breach("anthropic", insert(5, ProbeFrame("", json.dumps({"type": "ping"}))), "frames", "dropped by Anthropic's SDK"),
    Breach("anthropic", cut(0, "message", "stop_sequence"), "nulls", "the field stop_sequence is missing (null is allowed)"),
    # Responses
    Breach("openai-responses", cut(0), "opening", "begins with response.in_progress"),
    Breach("openai-responses", put(12, "response", "id", "resp_2"), "identity", "id was 'resp_1' and now is 'resp_2'"),
    Breach("openai-responses", put(1, "response", "status", "completed"), "opening", "response.status"),
    Breach("openai-responses", put(1, "response", "output", [1]), "opening", "expected an empty list"),
    Breach("openai-responses", put(5, "sequence_number", 9), "indexes", "sequence_number 9 after 4"),
    Breach("openai-responses", cut(5, "sequence_number"), "indexes", "the field sequence_number is missing"),
    Breach("openai-responses", put(5, "item_id", "x"), "identity", "item_id 'x' of an item that was added as 'msg_1'"),
    Breach("openai-responses", put(5, "output_index", 1), "order", "for the item 1, which was not added"),
    Breach("openai-responses", put(5, "content_index", 1), "order", "for part 1, which was not added"),
    Breach("openai-responses", put(6, "text", "Hullo"), "order", "but the deltas join to 'Hello'"),
    Breach("openai-responses", put(10, "arguments", "{}"), "calls", "but the deltas join to"),
    Breach("openai-responses", put(7, "item", "id", "msg_2"), "identity", "changed its id between added and done"),
    Breach("openai-responses", put(11, "item", "call_id", "x"), "identity", "changed its id between added and done"),
    Breach("openai-responses", put(11, "item", "arguments", "{}"), "calls", "the item has different ones"),
    Breach("openai-responses", put(8, "output_index", 2), "indexes", "an item with output_index 2, expected 1"),
    Breach("openai-responses", put(8, "item", "name", ""), "order", "item.name: expected a text that is not empty"),
    Breach("openai-responses", put(12, "response", "output", [_TEXT]), "identity", "lists other items"),
    Breach("openai-responses", put(12, "response", "status", "failed"), "ending", "response.status"),
    Breach("openai-responses", insert(13, {"type": "odd", "sequence_number": 13}), "ending", "after the last event"),
    Breach("openai-responses", cut(12), "ending", "the last event came 0 times"),
    # Ollama
    Breach("ollama", lambda events: events.clear(), "opening", "the stream has no line"),
    Breach("ollama", put(0, "message", "role", "model"), "opening", "line 0.message.role"),
    Breach("ollama", put(1, "message", "role", "model"), "order", "line 1.message.role"),
    Breach("ollama", cut(1, "message", "content"), "order", "line 1.message: the field content is missing"),
    Breach("ollama", cut(1, "created_at"), "order", "the field created_at is missing"),
    Breach("ollama", put(1, "done", "no"), "order", "line 1.done: expected true or false"),
    Breach("ollama", put(1, "model", "n"), "identity", "line 1: model was 'm' and now is 'n'"),
    Breach("ollama", cut(3), "ending", "done was reported 0 times"),
    Breach("ollama", again(1, 4), "ending", "line 4: data after the line with done"),
    Breach("ollama", cut(3, "done_reason"), "ending", "the field done_reason is missing"),
    Breach("ollama", put(3, "done_reason", "tired"), "ending", "line 3.done_reason"),
    Breach("ollama", insert(1, {"error": "out of memory"}), "ending", "line 1: an error: out of memory"),
    Breach("ollama", cut(3, "eval_count"), "usage", "the field eval_count is missing"),
    Breach("ollama", put(*_OLLAMA_CALL, "arguments", '{"a": 1}'), "calls", "arguments: expected an object"),
    Breach("ollama", cut(*_OLLAMA_CALL, "arguments"), "calls", "the field arguments is missing"),
    Breach("ollama", put(*_OLLAMA_CALL, "name", ""), "calls", "name: expected a text that is not empty"),
    Breach("ollama", put(*_OLLAMA_CALL, "index", 1), "indexes", "the calls have the indexes [1]"),
    Breach("ollama", again(2, 3), "indexes", "the calls have the indexes [0, 0]"),
    Breach("ollama", insert(1, ProbeFrame("", "", ("",))), "frames", "line 1 is empty"),
    Breach("ollama", insert(1, ProbeFrame("", "", ("data: {}",))), "frames", "line 1 is not a JSON object: 'data: {}'"),
    Breach("ollama", insert(1, ProbeFrame("", "{oops")), "frames", "its data is not a JSON object"),
    Breach("ollama", insert(1, ProbeFrame("", json.dumps(OLLAMA[1]).replace("lo", "l\u2028o"))), "frames", "treats as a line break"),
    # Interactions
    Breach("gemini-interactions", cut(0), "opening", "frame 0: the stream begins with interaction.status_update"),
    Breach("gemini-interactions", again(0, 1), "opening", "frame 1: a second interaction.created"),
    Breach("gemini-interactions", put(0, "interaction", "status", "completed"), "opening", "interaction.status"),
    Breach("gemini-interactions", put(0, "interaction", "object", "x"), "opening", "interaction.object"),
    Breach("gemini-interactions", cut(0, "interaction", "model"), "opening", "the field model is missing"),
    Breach("gemini-interactions", cut(1, "event_type"), "order", "the field event_type is missing"),
    Breach("gemini-interactions", put(1, "interaction_id", "x"), "identity", "interaction_id was 'v1_1' and now is 'x'"),
    Breach("gemini-interactions", put(14, "interaction", "id", "x"), "identity", "id was 'v1_1' and now is 'x'"),
    Breach("gemini-interactions", cut(5), "order", "frame 5: a step starts before step 0 has stopped"),
    Breach("gemini-interactions", cut(13), "order", "step 2 has no step.stop"),
    Breach("gemini-interactions", again(8, 10), "order", "step.delta of step 1, and no step is open"),
    Breach("gemini-interactions", again(9, 10), "order", "step.stop of step 1, and no step is open"),
    Breach("gemini-interactions", put(7, "delta", "type", "thought_signature"), "order", "for a step of type model_output"),
    Breach("gemini-interactions", put(7, "delta", "text", 5), "order", "delta.text: expected a text"),
    Breach("gemini-interactions", put(6, "index", 3), "indexes", "a step with the index 3, expected 1"),
    Breach("gemini-interactions", put(7, "index", 0), "indexes", "index 0, and step 1 is open"),
    Breach("gemini-interactions", put(9, "index", 0), "indexes", "index 0, and step 1 is open"),
    Breach("gemini-interactions", again(4, 5), "thoughts", "a second signature of one step"),
    Breach("gemini-interactions", again(3, 5), "thoughts", "a summary after the signature"),
    Breach("gemini-interactions", put(10, "step", "arguments", {"b": 2}), "calls", "in step.start and in deltas"),
    Breach("gemini-interactions", put(10, "step", "arguments", None), "calls", "arguments: expected an object"),
    Breach("gemini-interactions", put(10, "step", "id", ""), "calls", "id: expected a text that is not empty"),
    Breach("gemini-interactions", cut(10, "step", "name"), "calls", "the field name is missing"),
    Breach("gemini-interactions", cut(12), "calls", "step 2.arguments: not JSON"),
    Breach("gemini-interactions", cut(14), "ending", "interaction.completed came 0 times"),
    Breach("gemini-interactions", again(14, 15), "ending", "interaction.completed after interaction.completed"),
    Breach("gemini-interactions", put(14, "interaction", "status", "in_progress"), "ending", "interaction.status"),
    Breach("gemini-interactions", cut(15), "ending", "`data: [DONE]` came 0 times"),
    Breach("gemini-interactions", again(1, 16), "ending", "frame 16: data after [DONE]"),
    Breach("gemini-interactions", insert(2, {"event_type": "error", "error": {}}), "ending", "frame 2: an error"),
    Breach("gemini-interactions", cut(14, "interaction", "usage"), "usage", "the field usage is missing"),
    Breach("gemini-interactions", cut(14, "interaction", "usage", "total_tokens"), "usage", "the field total_tokens is missing"),
    Breach("gemini-interactions", insert(1, ProbeFrame("", "{oops")), "frames", "its data is not a JSON object"),
    Breach("gemini-interactions", insert(2, ProbeFrame("x", json.dumps(INTERACTIONS[1]))), "frames", "`event: x` of an event"),
]  # fmt: skip


@rows("breach", BREACHES, ids=lambda breach: f"{breach.dialect} {breach.words}")
def test_a_stream_that_breaks_a_rule_is_told_which(breach: Breach) -> None:
    events = fresh(breach.dialect)
    breach.edit(events)
    found = read(breach.dialect, events).faults
    assert any(rule == breach.rule and breach.words in text for rule, text in found), found


def test_usage_that_nobody_asked_for_is_told() -> None:
    assert read("openai-chat", CHAT[:5] + CHAT[6:], usage=False).faults == []
    ((rule, text),) = read("openai-chat", CHAT, usage=False).faults
    assert (rule, text) == ("usage", "frame 5: usage, which was not requested")


def test_comments_and_pings_break_nothing() -> None:
    comment = ProbeFrame("", "", (": keep-alive",))
    for dialect in ("openai-chat", "anthropic", "openai-responses", "gemini-interactions"):
        events = fresh(dialect)
        assert read(dialect, [comment, *events[:2], comment, *events[2:]]).faults == [], dialect
    ping = {"type": "ping"}
    assert read("anthropic", [ping, *ANTHROPIC[:3], ping, *ANTHROPIC[3:], ping]).faults == []
    done = ProbeFrame("", "[DONE]")
    assert read("openai-responses", [*fresh("openai-responses"), done]).faults == []


def test_calls_of_older_ollama_servers_have_neither_ids_nor_an_index_of_zero() -> None:
    events = fresh("ollama")
    second = copy.deepcopy(events[2])
    second["message"]["tool_calls"][0]["function"]["index"] = 1
    del events[2]["message"]["tool_calls"][0]["function"]["index"]
    del events[2]["message"]["tool_calls"][0]["id"]
    reply = read("ollama", [*events[:3], second, events[3]])
    assert reply.faults == []
    assert [call.id for call in reply.calls] == ["", "call_1"]
    del second["message"]["tool_calls"][0]["function"]["index"]
    assert read("ollama", [*events[:3], second, events[3]]).faults == []


def test_a_stream_of_interactions_may_leave_out_what_its_steps_do_not_need() -> None:
    """As some servers do: no arguments in the start of a call, and `completed` for a turn with one."""
    events = fresh("gemini-interactions")
    del events[10]["step"]["arguments"]
    events[14]["interaction"]["status"] = "completed"
    reply = read("gemini-interactions", events)
    assert (reply.faults, reply.stop, reply.calls[0].arguments) == ([], "tool", '{"a": 1}')
    assert reply.items == [
        {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "sig"},
        {"type": "model_output", "content": [{"type": "text", "text": "Hello"}]},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
    ]


def test_the_lines_of_ollama_are_its_frames() -> None:
    body = b' {"a":1}\r\n\nplain\n{"b":2}'
    assert WIRES["ollama"].frames(body) == [
        ProbeFrame("", '{"a":1}'),
        ProbeFrame("", "", ("",)),
        ProbeFrame("", "", ("plain",)),
        ProbeFrame("", '{"b":2}'),
    ]
    assert WIRES["ollama"].frames(body + b"\n") == WIRES["ollama"].frames(body)


def test_a_stream_without_any_frame_has_neither_beginning_nor_end() -> None:
    for name in ("anthropic", "openai-chat", "gemini", "ollama", "gemini-interactions"):
        assert read(name, []).faults, name
    assert ("opening", "the stream has no chunk") in read("gemini", []).faults
