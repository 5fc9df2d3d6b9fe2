"""Items: the elements of a conversation, as stores keep them and as every dialect reads them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from wireglot.gateway.errors import with_request_errors
from wireglot.gateway.request.job import Job
from wireglot.gateway.state.stored_forms import KeptItem
from wireglot_core.dialects.capabilities import ItemForm, Stored
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.registry import ITEMS, surface
from wireglot_core.ir.content import Message, Reasoning, ToolCall, ToolResult
from wireglot_core.ir.request import AnyTool, Request, Tool

_COUNTER_DIGITS: Final = 6
"""Hexadecimal."""


def item_form() -> ItemForm:
    """The form of items in stores, whatever the client's dialect."""
    stored = surface(ITEMS).stored
    assert stored is not None, f"{ITEMS} stores nothing"
    assert stored.items is not None, f"{ITEMS} has no items"
    return stored.items


def stored_of(job: Job) -> Stored:
    """For requests of dialects that know stored responses."""
    stored = job.surface.stored
    assert stored is not None, f"nothing of {job.dialect} is stored"
    return stored


class Stem:
    """Ids for the items of one request that have none. All share a stem after their prefix and are numbered,
    so that one entry in a store is enough to find any of them."""

    def __init__(self, context: Context, *material: str) -> None:
        self.text = _stem(context.new_id("item", *material))

    def id(self, prefix: str, number: int) -> str:
        return f"{prefix}_{self.text}{number:0{_COUNTER_DIGITS}x}"


def stem_of(id: str) -> str:
    """The common beginning of an id made from a Stem; "" if the id was not."""
    return _stem(id) if is_minted(id) else ""


def _stem(id: str) -> str:
    return id.partition("_")[2][:-_COUNTER_DIGITS]


# Neutral messages as items.


def items_of(messages: Iterable[Message], context: Context, response: str = "") -> list[KeptItem]:
    """One item for each thought, call, result and image of the model, and for each run of text (and of the
    client's media) between them."""
    items: list[KeptItem] = []
    cut = item_form().cut
    for message in messages:
        for place, (prefix, content) in enumerate(cut(message)):
            identifier = context.new_id(prefix, "held", str(len(items)))
            piece = replace(message, content=content)
            items.append(KeptItem(identifier, message=piece, joined=place > 0, response=response))
    return items


def as_wire(kept: KeptItem, context: Context) -> dict[str, Any]:
    """An item as it is stored, whichever dialect it came from."""
    if kept.item is not None:
        return kept.item
    message = kept.message
    assert message is not None, "an item is in one of two forms"
    return item_form().render_item(message, kept.id, context)


# Items -> messages.


def parsed(items: list[dict[str, Any]], context: Context) -> Request:
    """Items in neutral terms. Raises a RequestError where one cannot be read."""
    return with_request_errors(lambda: item_form().parse_items(items, context))


def turns_of(
    items: Iterable[KeptItem], context: Context, dialect_name: str
) -> tuple[list[Message], tuple[AnyTool, ...]]:
    """The messages that items represent, in order, and the tools declared in them."""
    messages: list[Message] = []
    tools: tuple[AnyTool, ...] = ()
    stored = surface(dialect_name).stored
    knows_items = stored is not None and stored.items is not None
    for wire, run in groupby(items, key=lambda kept: kept.item is not None):
        if wire:
            request = parsed([kept.item for kept in run if kept.item is not None], context)
            tools += request.tools
            # In dialects with items, each one is a message; elsewhere a turn is one.
            messages += request.messages if knows_items else _merged(request.messages)
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
    """Joins calls that were made together into one message, and their results into another; they are not
    reordered to be next to each other. Messages with a form of their dialect stay separate."""
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
    """The request's own tools, and those from its history that it does not declare itself."""
    names = {(tool.namespace, tool.name) for tool in tools if isinstance(tool, Tool)}
    return (
        *tools,
        *(tool for tool in brought if isinstance(tool, Tool) and (tool.namespace, tool.name) not in names),
    )
