"""Plain data the strategies choose from: texts, schemas, and features of single dialects."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.ir.content import Foreign, Origin, Signature
from wireglot_core.ir.request import HostedTool
from wireglot_core.ir.safeguards import TOOL_CALLS, CallVerdict, Safeguard, SafeguardResult

MAIN: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")
"""The dialects with their own extras; the other registered ones are envelopes around Gemini."""

TEXTS: Final = (
    "Hello",
    "What is the weather in Zürich?",
    "line one\nline two\r\n\ttabbed",
    "日本語 \U0001f600 e\u0301",
    "paragraph\u2028separator\u2029and \x7f \x00 controls",
    '{"looks": "like JSON"}',
    "data: [DONE]\n\ndata: {}",
    '"quotes" and \\backslashes\\ </script>',
    "Error: not a real error",
    "[1, 2]",
    "0",
    " padded ",
    "x" * 300,
)

ARGUMENTS: Final = (
    "{}",
    "",
    '{"city": "Zürich"}',
    '{"a":1,"b":[true,null,{"c":"d"}]}',
    '{"n": 123456789012345678901234567890, "f": 1.5, "z": 0}',
    '{"text":"\\u2028 \\"quoted\\" \\n","empty":""}',
    '{"nested":{"deep":{"deeper":[[],{}]}}}',
)

SAFEGUARDS: Final = (Safeguard(TOOL_CALLS, {"v": 1, "rules": {"deny": []}}), Safeguard("some_other_check"))

SAFEGUARD_RESULTS: Final = (
    SafeguardResult(
        TOOL_CALLS,
        "available",
        {
            "call_1": CallVerdict("not_flagged"),
            "call_2": CallVerdict("flagged", "it deletes everything"),
            "call_3": CallVerdict("unavailable", "timeout"),
            "call_4": CallVerdict("skipped"),
        },
    ),
    SafeguardResult("some_other_check", "unavailable", reason="error"),
    SafeguardResult("a_third_check", "unsupported"),
)

BROKEN_ARGUMENTS: Final = ('{"city": "Zür', "not json", "[1, 2]", '"text"', '{"a":1}{"a":1}', "null")

FREEFORM: Final = ("*** Begin Patch\n*** End Patch", "", "print('hi')", '{"looks":"like JSON"}', "\u2028")

SCHEMAS: Final[tuple[dict[str, Any] | None, ...]] = (
    None,
    {},
    {"type": "object", "properties": {}},
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "where"}},
        "required": ["city"],
    },
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)

OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}

# A one-pixel PNG, and things that need not be decodable.
PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
PDF: Final = "JVBERi0xLjQK"
WAV: Final = "UklGRiQAAABXQVZF"
MP4: Final = "AAAAGGZ0eXBtcDQy"

UNKNOWN: Final[tuple[Any, ...]] = ("new", 1, True, {"a": [1, None]}, ["x"], None, 0, "", {})
"""Values of unknown fields; the last few carry no information."""

EXTRA_HOMES: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset(
        {"request", "message", "text", "reasoning", "call", "result", "media", "tool", "response"}
    ),
    "openai-chat": frozenset({"request", "message", "text", "call", "result", "media", "tool", "response"}),
    "openai-responses": frozenset(
        {"request", "message", "text", "reasoning", "call", "result", "media", "tool", "response"}
    ),
    "gemini": frozenset(
        {"request", "message", "text", "reasoning", "call", "result", "media", "tool", "response"}
    ),
}
"""The objects in a dialect's wire format that can contain an unknown field."""

REASONING_SIGNATURES: Final = (
    Signature("EqQBCkgIARABGAIiQL8=", Origin("anthropic")),
    Signature("gAAAAABencrypted", Origin("openai-responses"), "rs_0123456789abcdef"),
    Signature("CuQBAVSoXO4=", Origin("gemini")),
)
PART_SIGNATURE: Final = Signature("CvABAdHtim8=", Origin("gemini"))
"""Only Gemini signs calls, texts and media."""
REDACTED: Final = Signature("EmwKAhgBEgy3va3pzix=", Origin("anthropic"))

FOREIGN_ANSWERS: Final = (
    Foreign(
        "anthropic",
        "server_tool_use",
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    ),
    Foreign(
        "openai-responses",
        "web_search_call",
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "x"},
        },
    ),
    Foreign("gemini", "executableCode", {"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
)
"""Parts of an assistant turn that only one dialect knows. (Chat's assistant turns have none.)"""

FOREIGN_QUESTIONS: Final = (
    Foreign("anthropic", "container_upload", {"type": "container_upload", "file_id": "file_1"}),
    Foreign("openai-chat", "x_hologram", {"type": "x_hologram", "x_hologram": {"depth": 3}}),
    Foreign("openai-responses", "x_hologram", {"type": "x_hologram", "depth": 3}),
)

FOREIGN_RESULTS: Final = (
    Foreign(
        "anthropic",
        "tool_reference",
        {"type": "tool_reference", "tool_name": "get_weather"},
        "The tool get_weather can be called now.",
    ),
)

HOSTED: Final = (
    HostedTool(
        "web_search",
        Foreign(
            "anthropic",
            "web_search_20250305",
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        ),
    ),
    HostedTool("web_search", Foreign("openai-responses", "web_search", {"type": "web_search"})),
    HostedTool("web_search", Foreign("gemini", "googleSearch", {"googleSearch": {}})),
    HostedTool("code_execution", Foreign("gemini", "codeExecution", {"codeExecution": {}})),
    HostedTool(
        "file_search",
        Foreign("openai-responses", "file_search", {"type": "file_search", "vector_store_ids": ["vs_1"]}),
    ),
)

FOREIGN_EVENTS: Final = (
    ("anthropic", "x_progress", {"type": "x_progress", "percent": 50}),
    ("openai-responses", "response.x_progress", {"type": "response.x_progress", "percent": 50}),
)
