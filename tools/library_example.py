"""The parts of docs/library.md that are made by the library itself: its dialects, and an example."""

from __future__ import annotations

import json
import re
from typing import Any

import wireglot
from tools.blocks import table
from wireglot.cli.listing import DIALECTS
from wireglot_core.dialects.registry import NAMES

REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 2048,
    "top_k": 40,
    "system": [{"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {"role": "user", "content": "How warm is it in Oslo?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_01", "name": "weather", "input": {"city": "Oslo"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_01", "is_error": True, "content": "timed out"}
            ],
        },
    ],
    "tools": [
        {
            "name": "weather",
            "description": "Weather now",
            "input_schema": {
                "type": "object",
                "properties": {"city": {"type": "string", "minLength": 1}},
                "required": ["city"],
            },
        }
    ],
}


def example() -> str:
    out = wireglot.translate_request(REQUEST, source="anthropic", target="gemini", model="gemini-2.5-pro")
    losses = [
        f"| `{loss.feature}` | {loss.action} | `{loss.path}` | {loss.detail.replace('|', '/')} |"
        for loss in out.losses
    ]
    return "\n".join(
        (
            "A request of `anthropic`",
            "",
            *_json(REQUEST),
            "",
            "becomes, for `gemini`,",
            "",
            *_json(out.value),
            "",
            "and these losses are reported:",
            "",
            "| feature | action | where | why |",
            "|---|---|---|---|",
            *losses,
        )
    )


def _json(value: Any) -> tuple[str, str, str]:
    return "```json", _compact(json.dumps(value, indent=2, ensure_ascii=False)), "```"


def _compact(text: str) -> str:
    """Short objects and arrays on one line, as a person would write them."""
    shorter = re.compile(r"([\[{])\s*\n\s*([^\[\]{}]{0,70}?)\s*\n\s*([\]}])")
    for _ in range(4):
        text = shorter.sub(lambda found: found[1] + re.sub(r"\s*\n\s*", " ", found[2]) + found[3], text)
    return text


if __name__ == "__main__":
    print(example())


def dialects() -> str:
    """Those of the package; packages that are installed here may add others."""
    return table(("dialect", "is"), [(f"`{name}`", DIALECTS[name]) for name in NAMES])
