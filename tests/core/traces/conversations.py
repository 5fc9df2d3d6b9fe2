"""One conversation in every dialect: a system text, a picture, a tool, its call, its result, a last question."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request, Sampling, Tool

NAMES: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")
PAIRS: Final = [(source, target) for source in NAMES for target in NAMES if source != target]
PICTURE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def conversation(name: str, last: str = "And in Lima?") -> dict[str, Any]:
    request = Request(
        "demo-model",
        (
            Message("system", (Text("You know the weather."),)),
            Message("user", (Text("How is it in Oslo?"), Media("image", "image/png", PICTURE))),
            Message("assistant", (Text("I look."), ToolCall("call_1", "get_weather", '{"city":"Oslo"}'))),
            Message("user", (ToolResult("call_1", (Text("snow"),)), Text(last))),
        ),
        tools=(Tool("get_weather", "The weather in a city", SCHEMA),),
        max_tokens=300,
        sampling=Sampling(temperature=0.5),
    )
    document: dict[str, Any] = dialect(name).render_request(request, Context()).value
    return document
