"""What the demo asks: a request in every dialect, a streamed tool call, a conversation over two dialects."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_SAID: Final = "Hello! Which dialect am I speaking?"
_CONTENTS: Final = {"contents": [{"role": "user", "parts": [{"text": _SAID}]}]}
_WEATHER: Final = {
    "name": "get_weather",
    "description": "The weather in a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Oslo", "Lima"]}},
        "required": ["city"],
    },
}


class Example(msgspec.Struct, frozen=True):
    """A request of one dialect, answered by a model that speaks another, and where its answer's text is."""

    title: str
    path: str
    upstream: str
    body: dict[str, Any]
    text: tuple[str | int, ...]


EXAMPLES: Final = (
    Example(
        "Anthropic Messages",
        "/v1/messages",
        "demo-gemini",
        {"model": "demo-gemini", "max_tokens": 300, "messages": [{"role": "user", "content": _SAID}]},
        ("content", 0, "text"),
    ),
    Example(
        "OpenAI Chat Completions",
        "/v1/chat/completions",
        "demo-anthropic",
        {"model": "demo-anthropic", "messages": [{"role": "user", "content": _SAID}]},
        ("choices", 0, "message", "content"),
    ),
    Example(
        "OpenAI Responses",
        "/v1/responses",
        "demo-openai-chat",
        {"model": "demo-openai-chat", "input": _SAID},
        ("output", 0, "content", 0, "text"),
    ),
    Example(
        "Google Gemini",
        "/v1beta/models/demo-openai-responses:generateContent",
        "demo-openai-responses",
        _CONTENTS,
        ("candidates", 0, "content", "parts", 0, "text"),
    ),
    Example(
        "Google Code Assist",
        "/v1internal:generateContent",
        "demo-anthropic",
        {"model": "demo-anthropic", "request": _CONTENTS},
        ("response", "candidates", 0, "content", "parts", 0, "text"),
    ),
    Example(
        "Gemini, simplified",
        "/v1/gemini",
        "demo-openai-chat",
        {"model": "demo-openai-chat", "input": _SAID},
        ("candidates", 0, "content", "parts", 0, "text"),
    ),
)

STREAMED: Final = {
    "model": "demo-gemini",
    "max_tokens": 300,
    "stream": True,
    "tools": [_WEATHER],
    "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
}

TURNS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "/v1/chat/completions",
        {
            "model": "demo-gemini",
            "messages": [{"role": "user", "content": "What is the weather in Rome?"}],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": _WEATHER["name"], "parameters": _WEATHER["input_schema"]},
                }
            ],
        },
    ),
    (
        "/v1/gemini",
        {
            "model": "demo-anthropic",
            "tool_results": [
                {"functionResponse": {"name": _WEATHER["name"], "response": {"output": "31 degrees"}}}
            ],
        },
    ),
)
