"""Answers as upstreams really give them where something went wrong, or where nothing did but it looks so.

Each is reported twice by the dialect's own server: as one document and as a stream. `frames` are the stream's own
frames, so that a law can cut between them.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from wireglot_core.wire.json import encode

PATH: Final = "/srv/forbidden/report.txt"
ARGUMENTS: Final = f'{{"path": "{PATH}", "recursive": false}}'
CUT: Final = ARGUMENTS[:17]
TOOL: Final = "delete_path"

Fate = Literal["answer", "interrupted", "failed"]
"""`interrupted`: an answer without the call that it ends in, or an error where that call was reported already."""
End = Literal["end", "length", "refused", "calls", "malformed"]


class Strange(msgspec.Struct, frozen=True):
    """What came. `fate`: whether a client may find it under a good status."""

    name: str
    fate: Fate
    whole: bytes
    frames: tuple[bytes, ...]

    @property
    def stream(self) -> bytes:
        return b"".join(self.frames)


def sse(*documents: dict[str, Any], named: bool = False) -> tuple[bytes, ...]:
    return tuple(
        (b"event: %b\n" % str(each["type"]).encode() if named else b"") + b"data: %b\n\n" % encode(each)
        for each in documents
    )


# --- Chat Completions

_CHAT_ENDS: Final = {"end": "stop", "length": "length", "refused": "content_filter", "calls": "tool_calls"}


def chat(name: str, fate: Fate, end: str | None, message: dict[str, Any]) -> Strange:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    reason = _CHAT_ENDS[end] if end is not None else None
    head = {"id": "chatcmpl-1", "created": 1, "model": "m1"}
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, **message},
                "finish_reason": reason,
            }
        ],
        "usage": usage,
    }
    chunk = {**head, "object": "chat.completion.chunk"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for key, value in message.items():
        if key == "tool_calls":
            for index, call in enumerate(value):
                function = call["function"]
                bare = {**call, "index": index, "function": {**function, "arguments": ""}}
                deltas.append({"tool_calls": [bare]})
                text = function["arguments"]
                deltas += [
                    {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                    for piece in (text[:9], text[9:])
                    if piece
                ]
        else:
            deltas += [{key: piece} for piece in (value[:6], value[6:]) if piece]
    frames = sse(
        *({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas)
    )
    if reason is not None:
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
        frames += sse({**chunk, **last})
    return Strange(name, fate, encode(whole), (*frames, b"data: [DONE]\n\n"))


def chat_call(arguments: str) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": arguments}}
    return {"tool_calls": [call]}


_NO_CHOICE: Final = {"id": "chatcmpl-1", "created": 1, "model": "m1", "choices": []}
_SPENT: Final = {"usage": {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}}
NO_CHOICE: Final = Strange(
    "no choice",
    "failed",
    encode({**_NO_CHOICE, **_SPENT, "object": "chat.completion"}),
    (*sse({**_NO_CHOICE, **_SPENT, "object": "chat.completion.chunk"}), b"data: [DONE]\n\n"),
)


# --- Messages

_MESSAGE_ENDS: Final = {"end": "end_turn", "length": "max_tokens", "refused": "refusal", "calls": "tool_use"}


def message(name: str, fate: Fate, end: str, blocks: list[dict[str, Any]], cut: str | None = None) -> Strange:
    """`cut`: in the stream, the arguments of the last block, which is a call."""
    reason = _MESSAGE_ENDS[end]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m1"}
    usage = {"input_tokens": 7, "output_tokens": 5}
    whole = {**head, "content": blocks, "stop_reason": reason, "stop_sequence": None, "usage": usage}
    start: dict[str, Any] = {
        **head,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        kind = block["type"]
        if kind == "tool_use":
            bare = {**block, "input": {}}
            text = cut if cut is not None else encode(block["input"]).decode()
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in (text[:9], text[9:])]
        else:
            key = "text" if kind == "text" else "thinking"
            bare = {**block, key: ""}
            deltas = [{"type": f"{key}_delta", key: block[key]}] if block[key] else []
        events.append({"type": "content_block_start", "index": index, "content_block": bare})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": reason, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
    return Strange(name, fate, encode(whole), sse(*events, named=True))


def tool_use(**given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": given}


# --- Responses


def response(name: str, fate: Fate, end: str, items: list[dict[str, Any]]) -> Strange:
    status = "incomplete" if end in ("length", "refused") else "completed"
    why = {"length": "max_output_tokens", "refused": "content_filter"}.get(end)
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m1", "error": None}
    whole = {
        **head,
        "status": status,
        "incomplete_details": {"reason": why} if why else None,
        "output": items,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "function_call":
            bare = {**item, "arguments": "", "status": "in_progress"}
            events.append({"type": "response.output_item.added", "output_index": index, "item": bare})
            kind = "response.function_call_arguments.delta"
            text = item["arguments"]
            events += [{"type": kind, **place, "delta": piece} for piece in (text[:9], text[9:]) if piece]
            if item["status"] == "incomplete":
                continue
        elif item["type"] == "message":
            bare = {**item, "content": [], "status": "in_progress"}
            events.append({"type": "response.output_item.added", "output_index": index, "item": bare})
            for part in item["content"]:
                where = {**place, "content_index": 0}
                events.append({"type": "response.content_part.added", **where, "part": {**part, "text": ""}})
                if part["text"]:
                    events.append({"type": "response.output_text.delta", **where, "delta": part["text"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{status}", "response": whole})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return Strange(name, fate, encode(whole), sse(*numbered, named=True))


def message_item(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def call_item(arguments: str, status: str = "completed") -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": TOOL,
        "arguments": arguments,
        "status": status,
    }


REASONING_ITEM: Final = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Let me see."}],
}


# --- Gemini


def gemini(
    name: str, fate: Fate, reason: str | None, parts: list[dict[str, Any]], pieces: Any = None
) -> Strange:
    """`pieces`: the parts as the stream gives them, each in a chunk of its own."""
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    head = {"modelVersion": "m1", "responseId": "r1"}

    def chunk(given: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": given, "role": "model"}, "index": 0, **more}
        return {"candidates": [candidate], **head}

    end = {"finishReason": reason} if reason else {}
    whole = {**chunk(parts, **end), "usageMetadata": usage}
    frames = [chunk([piece]) for piece in (parts if pieces is None else pieces)]
    frames.append({**chunk([], **end), "usageMetadata": usage})
    return Strange(name, fate, encode(whole), sse(*frames))


_CALL_PIECES: Final = [
    {"functionCall": {"name": TOOL, "willContinue": True}},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.path", "stringValue": "/srv/fo", "willContinue": True}], "willContinue": True}},
]  # fmt: skip
_FINISHES: Final = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
)

STRANGE: Final[dict[str, tuple[Strange, ...]]] = {
    "openai-chat": (
        chat("plain", "answer", "end", {"content": "Hello there"}),
        chat("call", "answer", "calls", chat_call(ARGUMENTS)),
        chat("call that says stop", "answer", "end", chat_call(ARGUMENTS)),
        chat("nothing at all", "failed", "end", {}),
        chat("nothing, and no reason", "failed", None, {}),
        NO_CHOICE,
        chat("calls without a call", "failed", "calls", {}),
        chat("nothing at the limit", "answer", "length", {}),
        chat("nothing, refused", "answer", "refused", {}),
        chat("thoughts at the limit", "answer", "length", {"reasoning_content": "Let me see."}),
        chat("thoughts alone", "failed", "end", {"reasoning_content": "Let me see."}),
        chat("cut call", "failed", "calls", chat_call(CUT)),
        chat("cut call, and no reason", "failed", None, chat_call(CUT)),
        chat("cut call at the limit", "interrupted", "length", chat_call(CUT)),
        chat("text and a cut call at the limit", "interrupted", "length", {"content": "Well: ", **chat_call(CUT)}),
        chat("unbegun call at the limit", "interrupted", "length", chat_call("")),
    ),
    "anthropic": (
        message("plain", "answer", "end", [{"type": "text", "text": "Hello there"}]),
        message("call", "answer", "calls", [tool_use(path=PATH)]),
        message("nothing at all", "failed", "end", []),
        message("an empty text", "failed", "end", [{"type": "text", "text": ""}]),
        message("calls without a call", "failed", "calls", []),
        message("nothing at the limit", "answer", "length", []),
        message("nothing, refused", "answer", "refused", []),
        message("thoughts at the limit", "answer", "length", [{"type": "thinking", "thinking": "Let me see.", "signature": ""}]),
        message("thoughts alone", "failed", "end", [{"type": "thinking", "thinking": "Let me see.", "signature": ""}]),
    ),
    "openai-responses": (
        response("plain", "answer", "end", [message_item("Hello there")]),
        response("call", "answer", "calls", [call_item(ARGUMENTS)]),
        response("nothing at all", "failed", "end", []),
        response("an empty text", "failed", "end", [message_item("")]),
        response("nothing at the limit", "answer", "length", []),
        response("nothing, refused", "answer", "refused", []),
        response("thoughts at the limit", "answer", "length", [REASONING_ITEM]),
        response("thoughts alone", "failed", "end", [REASONING_ITEM]),
        response("cut call", "failed", "calls", [call_item(CUT)]),
        response("cut call at the limit", "interrupted", "length", [call_item(CUT, "incomplete")]),
        response("unbegun call at the limit", "interrupted", "length", [call_item("", "incomplete")]),
    ),
    "gemini": (
        gemini("plain", "answer", "STOP", [{"text": "Hello there"}]),
        gemini("call", "answer", "STOP", [{"functionCall": {"name": TOOL, "args": {"path": PATH}}}]),
        gemini("nothing at all", "failed", "STOP", []),
        gemini("an empty text", "failed", "STOP", [{"text": ""}]),
        gemini("nothing at the limit", "answer", "MAX_TOKENS", []),
        gemini("nothing, refused", "answer", "SAFETY", []),
        gemini("nothing, and nobody says why", "failed", "OTHER", []),
        gemini("thoughts at the limit", "answer", "MAX_TOKENS", [{"text": "Let me see.", "thought": True}]),
        gemini("thoughts alone", "failed", "STOP", [{"text": "Let me see.", "thought": True}]),
        *(gemini(finish.lower(), "failed", finish, []) for finish in _FINISHES),
        gemini("a text, then a malformed call", "failed", "MALFORMED_FUNCTION_CALL", [{"text": "Well: "}]),
    ),
}  # fmt: skip

CUT_STREAMS: Final[dict[str, tuple[Strange, ...]]] = {
    "openai-chat": tuple(each for each in STRANGE["openai-chat"] if "cut call" in each.name),
    "openai-responses": tuple(each for each in STRANGE["openai-responses"] if "cut call" in each.name),
    "anthropic": (
        message("cut call", "failed", "calls", [tool_use()], CUT),
        message("cut call that says end", "failed", "end", [tool_use()], CUT),
        message("cut call at the limit", "interrupted", "length", [tool_use()], CUT),
        message("unbegun call at the limit", "interrupted", "length", [tool_use()], ""),
    ),
    "gemini": (
        gemini("cut call", "failed", "STOP", [], _CALL_PIECES),
        gemini("cut call at the limit", "interrupted", "MAX_TOKENS", [], _CALL_PIECES),
    ),
}
"""Streams whose end says one thing while a call of theirs is not whole."""
