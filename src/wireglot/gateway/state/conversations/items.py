"""Items: what a conversation is made of, as the Responses dialect writes it and as every dialect reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from wireglot.dialects.base import Context, is_minted
from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import told
from wireglot.gateway.state.stored_forms import KeptItem
from wireglot.ir.content import Media, Message, Part, Reasoning, Role, ToolCall, ToolResult
from wireglot.ir.outcome import Response, Stop
from wireglot.ir.request import AnyTool, Request, Tool

RESPONSES: Final = "openai-responses"

_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "image_generation_call": "ig",
    "compaction": "cmp",
}
_WITH_STATUS: Final = frozenset(
    {"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
)
_COUNTED: Final = 6
"""Hexadecimal digits."""


def is_reference(item: Any) -> bool:
    """An item that only names another; its type may be left out."""
    if not isinstance(item, dict):
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item and "id" in item)


class Stem:
    """Ids for the items of one request that have none. All begin alike behind their prefix and are counted,
    so that one entry in a store is enough to find any of them."""

    def __init__(self, context: Context, *material: str) -> None:
        self.text = _stem(context.new_id("item", *material))

    def id(self, prefix: str, number: int) -> str:
        return f"{prefix}_{self.text}{number:0{_COUNTED}x}"


def stem_of(id: str) -> str:
    """What an id begins with that came from a Stem; "" where it did not."""
    return _stem(id) if is_minted(id) else ""


def _stem(id: str) -> str:
    return id.partition("_")[2][:-_COUNTED]


def whole_items(value: Any, stem: Stem) -> list[dict[str, Any]]:
    """The input of a request as its items, each with all that a client may look for: an id, a type, parts."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        return []
    return [_whole(item, stem, number) for number, item in enumerate(value)]


def _whole(item: dict[str, Any], stem: Stem, number: int) -> dict[str, Any]:
    kind = item.get("type") or "message"
    whole: dict[str, Any] = {"type": kind, **item}
    if not isinstance(item.get("id"), str):
        whole["id"] = stem.id(_PREFIXES.get(kind, "item"), number)
    if kind in _WITH_STATUS and not whole.get("status"):
        whole["status"] = "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        whole["content"] = [_text_part(item)]
    return whole


def _text_part(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("role") == "assistant":
        return {"type": "output_text", "text": item["content"], "annotations": []}
    return {"type": "input_text", "text": item["content"]}


# Neutral messages as items.


def items_of(messages: Iterable[Message], context: Context, response: str = "") -> list[KeptItem]:
    """One item for each thought, call, result and picture of the model, and for each stretch of text (and of
    the client's media) between them."""
    items: list[KeptItem] = []
    for message in messages:
        for place, content in enumerate(_stretches(message)):
            prefix = _PREFIXES[_kind(content[0], message.role)]
            identifier = context.new_id(prefix, "held", str(len(items)))
            piece = replace(message, content=content)
            items.append(KeptItem(identifier, message=piece, joined=place > 0, response=response))
    return items


def _stretches(message: Message) -> Iterator[tuple[Part, ...]]:
    for kind, parts in groupby(message.content, key=lambda part: _kind(part, message.role)):
        if kind == "message":
            yield tuple(parts)
        else:
            yield from ((part,) for part in parts)


def _kind(part: Part, role: Role) -> str:
    match part:
        case Media() if role == "assistant":
            return "image_generation_call"
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "custom_tool_call" if part.kind == "custom" else "function_call"
        case ToolResult():
            return "custom_tool_call_output" if part.kind == "custom" else "function_call_output"
    return "message"


def as_wire(kept: KeptItem, context: Context) -> dict[str, Any]:
    """An item as the Responses dialect writes it, whoever brought it."""
    if kept.item is not None:
        return kept.item
    message = kept.message
    assert message is not None, "an item is in one of two forms"
    rendered = _rendered(message, context)
    shown = next((item for item in reversed(rendered) if item.get("type") != "reasoning"), None)
    if isinstance(message.content[0], Reasoning) and rendered:
        shown = rendered[0]
    if shown is None:  # a part that only its own dialect can say
        shown = {"type": "message", "role": message.role, "content": []}
    item = {**shown, "id": kept.id}
    if item["type"] in _WITH_STATUS:
        item.setdefault("status", "completed")
    if item["type"] == "message" and isinstance(item["content"], str):
        item["content"] = [_text_part(item)]
    return item


def _rendered(message: Message, context: Context) -> list[dict[str, Any]]:
    speaks = dialect(RESPONSES)
    if message.role == "assistant":
        answer = Response("", "", message.content, Stop("end"))
        output: list[dict[str, Any]] = speaks.render_response(answer, context).value["output"]
        return output
    asked = Request("", (replace(message, extra=None),))
    value = speaks.render_request(asked, context).value.get("input")
    return value if isinstance(value, list) else [{"type": "message", "role": message.role, "content": value}]


# Items as the turns they stand for.


def parsed(items: list[dict[str, Any]], context: Context) -> Request:
    """Items of the Responses dialect in neutral terms."""
    body = {"model": "", "input": items}
    request: Request = told(lambda: dialect(RESPONSES).parse_request(body, context))
    return request


def turns_of(
    items: Iterable[KeptItem], context: Context, dialect_name: str
) -> tuple[list[Message], tuple[AnyTool, ...]]:
    """The messages that items stand for, in order, and the tools that they brought along."""
    messages: list[Message] = []
    tools: tuple[AnyTool, ...] = ()
    for wire, run in groupby(items, key=lambda kept: kept.item is not None):
        if wire:
            request = parsed([kept.item for kept in run if kept.item is not None], context)
            tools += request.tools
            # Elsewhere a turn is one message; here each of its items is.
            messages += request.messages if dialect_name == RESPONSES else _merged(request.messages)
            continue
        for kept in run:
            message = kept.message
            assert message is not None
            if kept.joined and messages and messages[-1].role == message.role:
                messages[-1] = replace(messages[-1], content=messages[-1].content + message.content)
            else:
                messages.append(message)
    return messages, tools


def _merged(messages: Iterable[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role != "system":
            merged[-1] = replace(merged[-1], content=merged[-1].content + message.content)
        else:
            merged.append(message)
    return merged


def joined_turns(messages: Iterable[Message]) -> list[Message]:
    """Calls that were made together as one message, and their results as one: neither is put in another order
    to stand beside its partner. Messages that have a form of their own stay apart."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last is not None and last.role == message.role and _is_bare(last) and _is_bare(message):
            joined[-1] = Message(message.role, last.content + message.content)
        else:
            joined.append(message)
    return joined


def _is_bare(message: Message) -> bool:
    return (
        message.extra is None
        and not message.name
        and all(isinstance(part, Reasoning | ToolCall | ToolResult) for part in message.content)
    )


def with_tools(tools: tuple[AnyTool, ...], brought: tuple[AnyTool, ...]) -> tuple[AnyTool, ...]:
    """The request's own tools, and those that its history brought and it does not state itself."""
    names = {(tool.namespace, tool.name) for tool in tools if isinstance(tool, Tool)}
    return (
        *tools,
        *(tool for tool in brought if isinstance(tool, Tool) and (tool.namespace, tool.name) not in names),
    )
