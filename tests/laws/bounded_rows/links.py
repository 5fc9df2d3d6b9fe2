"""What the inspector makes of recorded exchanges: links between both sides, and causes of events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from tests.laws.bounded import Row
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request, Tool
from wireglot_core.traces.again import ask_again
from wireglot_core.traces.links import request_links
from wireglot_core.traces.target import TraceTarget

NAMES = ("anthropic", "openai-chat", "openai-responses", "gemini")


def turns(n: int) -> Request:
    return Request("m", tuple(Message(("user", "assistant")[x % 2], (Text(f"say {x}"),)) for x in range(n)))


def parts(n: int) -> Request:
    return Request("m", (Message("user", tuple(Text(f"say {x}") for x in range(n))),))


def calls(n: int) -> Request:
    made: tuple[Part, ...] = tuple(ToolCall(f"c{x}", "f", "{}") for x in range(n))
    results: tuple[Part, ...] = tuple(ToolResult(f"c{x}", (Text("r"),)) for x in range(n))
    asked = Message("user", (Text("go"),))
    return Request(
        "m", (asked, Message("assistant", made), Message("user", results)), tools=(Tool("f", "", {}),)
    )


def tools(n: int) -> Request:
    declared = tuple(Tool(f"f{x}", "d", {"type": "object"}) for x in range(n))
    return Request("m", (Message("user", (Text("go"),)),), tools=declared)


GROWING: dict[str, Callable[[int], Request]] = {
    "turns": turns,
    "parts": parts,
    "calls": calls,
    "tools": tools,
}


def written(source: str, grow: Callable[[int], Request], n: int) -> dict[str, Any]:
    body: dict[str, Any] = dialect(source).render_request(grow(n), Context()).value
    return body


def linked(source: str, target: str, body: dict[str, Any]) -> object:
    where = TraceTarget(dialect=target, model="m")
    asked = ask_again(source, body, where)
    return request_links(source, body, where, asked.document)


ROWS = [
    Row(
        f"{name} of {source} sent to {target}",
        partial(written, source, grow),
        partial(linked, source, target),
        n=10,
    )
    for (name, grow), source, target in product(GROWING.items(), NAMES, NAMES)
]
