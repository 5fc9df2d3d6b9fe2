"""Texts that an answer, an error or a list of models must have: without one, or with an empty one, it is broken."""

from __future__ import annotations

import copy
from typing import Any, Final

from tests.tiers import rows
from wireglot.probe.reply import Broken
from wireglot.probe.run import WIRES

_USAGE: Final = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}
_MESSAGE: Final = {"type": "message", "role": "assistant", "status": "completed"}
DOCUMENTS: Final[dict[str, Any]] = {
    "anthropic read": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "text", "text": "hi", "citations": None},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}, "caller": None},
            {"type": "redacted_thinking", "data": "x"},
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": {
            "input_tokens": 5,
            "output_tokens": 3,
            "cache_creation": None,
            "cache_creation_input_tokens": None,
            "cache_read_input_tokens": None,
            "inference_geo": None,
            "output_tokens_details": None,
            "server_tool_use": None,
            "service_tier": None,
        },
    },
    "anthropic error": {"type": "error", "error": {"type": "api_error", "message": "oops"}},
    "anthropic models": {
        "data": [{"type": "model", "id": "m", "display_name": "M", "created_at": "2026-01-01T00:00:00Z"}],
        "has_more": False,
    },
    "openai-chat read": {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "tool_calls": [
                        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                    ],
                },
                "finish_reason": "tool_calls",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "openai-chat error": {"error": {"type": "server_error", "message": "oops", "param": "x", "code": "y"}},
    "openai-chat models": {
        "object": "list",
        "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "me"}],
    },
    "openai-responses read": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "incomplete",
        "incomplete_details": {"reason": "content_filter"},
        "output": [
            {"id": "m1", **_MESSAGE, "content": [{"type": "output_text", "text": "hi", "annotations": []}]},
            {
                "id": "f1",
                "type": "function_call",
                "call_id": "t1",
                "name": "f",
                "arguments": "{}",
                "status": "completed",
            },
            {"id": "r1", "type": "reasoning", "summary": []},
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _USAGE,
    },
    "gemini read": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "m",
        "responseId": "r",
    },
    "gemini error": {"error": {"code": 500, "status": "INTERNAL", "message": "oops"}},
    "gemini models": {"models": [{"name": "models/m", "supportedGenerationMethods": ["generateContent"]}]},
    "ollama read": {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
        },
        "done": True,
        "done_reason": "stop",
        "eval_count": 1,
    },
    "ollama error": {"error": "oops"},
    "gemini-interactions read": {
        "object": "interaction",
        "model": "m",
        "status": "completed",
        "steps": [
            {"type": "model_output", "content": [{"type": "text", "text": "hi"}]},
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {}},
        ],
        "usage": {"total_input_tokens": 1, "total_output_tokens": 1, "total_tokens": 2},
    },
    "gemini-interactions error": {"error": {"code": "api_error", "message": "oops"}},
    "ollama models": {
        "models": [
            {
                "name": "m:latest",
                "model": "m:latest",
                "modified_at": "2026-01-01T00:00:00Z",
                "size": 0,
                "digest": "",
                "details": {},
            }
        ]
    },
}
REQUIRED: Final = {
    "anthropic read": (
        "id",
        "model",
        "content.0.type",
        "content.1.id",
        "content.1.name",
        "content.2.data",
        "stop_reason",
    ),
    "anthropic error": ("type", "error.type", "error.message"),
    "anthropic models": ("data.0.type", "data.0.id"),
    "openai-chat read": (
        "id",
        "model",
        "choices.0.message.tool_calls.0.id",
        "choices.0.message.tool_calls.0.function.name",
        "choices.0.finish_reason",
    ),
    "openai-chat error": ("error.type", "error.message"),
    "openai-chat models": ("object", "data.0.id", "data.0.object"),
    "openai-responses read": (
        "id",
        "model",
        "incomplete_details.reason",
        "output.0.type",
        "output.0.id",
        "output.1.id",
        "output.1.call_id",
        "output.1.name",
        "output.2.id",
    ),
    "gemini read": ("candidates.0.content.parts.0.functionCall.name", "candidates.0.finishReason"),
    "gemini error": ("error.status", "error.message"),
    "gemini models": ("models.0.name",),
    "ollama read": (
        "model",
        "created_at",
        "message.role",
        "done_reason",
        "message.tool_calls.0.function.name",
    ),
    "ollama error": ("error",),
    "gemini-interactions read": (
        "object",
        "model",
        "status",
        "steps.0.type",
        "steps.0.content.0.type",
        "steps.1.id",
        "steps.1.name",
    ),
    "gemini-interactions error": ("error.code", "error.message"),
    "ollama models": ("models.0.name", "models.0.model", "models.0.modified_at"),
}


def said_of(kind: str, document: Any) -> str:
    """What is wrong with it."""
    dialect, reads = kind.split()
    wire = WIRES[dialect]
    try:
        if reads == "error":
            wire.error(document, 500)
        elif reads == "models":
            wire.models(document)
        else:
            return "; ".join(text for _, text in wire.read(document).faults)
    except Broken as broken:
        return str(broken)
    return ""


@rows("kind", list(DOCUMENTS))
def test_a_document_with_all_of_them_is_good(kind: str) -> None:
    assert said_of(kind, DOCUMENTS[kind]) == ""


@rows(("kind", "path"), [(kind, path) for kind, paths in REQUIRED.items() for path in paths])
def test_a_text_that_is_empty_or_missing_is_named(kind: str, path: str) -> None:
    *steps, last = path.split(".")
    for how in ("emptied", "removed"):
        document = copy.deepcopy(DOCUMENTS[kind])
        holder = document
        for step in steps:
            holder = holder[int(step)] if step.isdigit() else holder[step]
        if how == "emptied":
            holder[last] = ""
        else:
            del holder[last]
        assert last in said_of(kind, document), how
