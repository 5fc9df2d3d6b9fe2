"""Stored responses and conversations: the state fields of requests, and the stored items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.body import BadField, Body
from wireglot_core.dialects.capabilities import ItemForm, StateOptions, Stored, StoredEvents
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.openai_responses.compaction import COMPACTION
from wireglot_core.dialects.openai_responses.output import REPORTED, hides_state
from wireglot_core.dialects.openai_responses.parse_request import InputReader, new_tools
from wireglot_core.dialects.openai_responses.render_request import render_request
from wireglot_core.dialects.openai_responses.response import render_response
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Extra, Media, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request

FIELDS: Final = frozenset({"previous_response_id", "conversation", "background", "store"})

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
_BARE_REFERENCE: Final = re.compile(rb'\{\s*"id"\s*:\s*"[^"\\]*"\s*\}')


# --- the state fields of a request


def options(body: Body, conversation: str) -> StateOptions:
    """Read from the body's outline: a request without state is not parsed any further."""
    outline = body.outline
    store, previous = outline.get("store"), outline.get("previous_response_id")
    if store is not None and type(store) is not bool:
        raise BadField("store: expected true or false", "$.store")
    if previous is not None and type(previous) is not str:
        raise BadField("previous_response_id: expected a string", "$.previous_response_id")
    if previous and outline.get("conversation") is not None:
        raise BadField(
            "previous_response_id and conversation exclude each other: a conversation has its own history",
            "$.previous_response_id",
            "mutually_exclusive_parameters",
        )
    holding = "" if previous else conversation
    return StateOptions(store, previous or "", holding, outline.get("background") is True, _refers(body))


def _refers(body: Body) -> bool:
    if body.body.find(b"item_reference") < 0 and _BARE_REFERENCE.search(body.body) is None:
        return False
    value = body.document().get("input")
    return isinstance(value, list) and any(map(is_reference, value))


def is_reference(item: Any) -> bool:
    """Whether an item is a reference, whose type may be left out."""
    if not isinstance(item, dict):
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item and "id" in item)


def without_state(request: Request) -> Request:
    extra = request.extra or Extra(NAME)
    fields = {key: value for key, value in extra.fields.items() if key not in FIELDS}
    form = {key: value for key, value in extra.form.items() if key not in FIELDS}
    return replace(request, extra=replace(extra, fields=fields, form=form))


def reported(request: Request, says: dict[str, Any]) -> Request:
    extra = request.extra or Extra(NAME)
    return replace(request, extra=replace(extra, form={**extra.form, "store": False, REPORTED: says}))


def instructions(text: str) -> Message:
    return Message("system", (Text(text),), extra=Extra(NAME, form={"instructions": True}))


def is_instructions(message: Message) -> bool:
    extra = message.extra
    return extra is not None and extra.dialect == NAME and "instructions" in extra.form


# --- items as clients see them


def whole_items(value: Any, new_id: Callable[[str, int], str]) -> list[dict[str, Any]]:
    """The items, each with an id, a type and parts."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        return []
    return [_whole(item, new_id, number) for number, item in enumerate(value)]


def _whole(item: dict[str, Any], new_id: Callable[[str, int], str], number: int) -> dict[str, Any]:
    kind = item.get("type") or "message"
    whole: dict[str, Any] = {"type": kind, **item}
    if not isinstance(item.get("id"), str):
        whole["id"] = new_id(_PREFIXES.get(kind, "item"), number)
    if kind in _WITH_STATUS and not whole.get("status"):
        whole["status"] = "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        whole["content"] = [_text_part(item)]
    return whole


def _text_part(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("role") == "assistant":
        return {"type": "output_text", "text": item["content"], "annotations": []}
    return {"type": "input_text", "text": item["content"]}


# --- neutral messages as items, and back


def cut(message: Message) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """One item for each thought, call, result and picture of the model, and for each run of text (and of the
    client's media) between them."""
    for kind, parts in groupby(message.content, key=lambda part: _kind(part, message.role)):
        if kind == "message":
            yield _PREFIXES[kind], tuple(parts)
        else:
            yield from ((_PREFIXES[kind], (part,)) for part in parts)


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


def render_item(message: Message, id: str, context: Context) -> dict[str, Any]:
    """Renders any client's item: one of another dialect's client is shown in the form of this dialect."""
    rendered = _rendered(message, context)
    shown = next((item for item in rendered[::-1] if item.get("type") != "reasoning"), None)
    if isinstance(message.content[0], Reasoning) and rendered:
        shown = rendered[0]
    if shown is None:  # a part that only its own dialect can express
        shown = {"type": "message", "role": message.role, "content": []}
    item = {**shown, "id": id}
    if item["type"] in _WITH_STATUS:
        item.setdefault("status", "completed")
    if item["type"] == "message" and isinstance(item["content"], str):
        item["content"] = [_text_part(item)]
    return item


def _rendered(message: Message, context: Context) -> list[dict[str, Any]]:
    if message.role == "assistant":
        answer = Response("", "", message.content, Stop("end"))
        output: list[dict[str, Any]] = render_response(answer, context).value["output"]
        return output
    # Rendered as for this dialect's own clients: content that cannot be expressed is left out, not replaced.
    asked = Request("", (replace(message, extra=None),), extra=Extra(NAME))
    value = render_request(asked, replace(context, memory=None)).value.get("input")
    return value if isinstance(value, list) else [{"type": "message", "role": message.role, "content": value}]


def parse_items(items: list[dict[str, Any]], context: Context) -> Request:
    reader = InputReader(context)
    reader.read_input(Fields({"input": items}))
    return Request("", tuple(reader.messages), tuple(new_tools([], reader.brought)))


def _shown(body: dict[str, Any], given: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    return body


def _deleted(id: str) -> dict[str, Any]:
    return {"id": id, "object": "response.deleted", "deleted": True}


_FINAL: Final = ("completed", "failed", "incomplete", "cancelled")


def _number(event: dict[str, Any]) -> int:
    number: int = event["sequence_number"]
    return number


def _kind_of(event: dict[str, Any]) -> str:
    kind: str = event["type"]
    return kind


def _event(kind: str, number: int, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "sequence_number": number, **content}


def _last(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return f"response.{body['status']}", {"response": body}


_EVENTS: Final = StoredEvents(
    number=_number,
    kind=_kind_of,
    event=_event,
    holder="response",
    opening=frozenset({"response.created", "response.in_progress"}),
    ends=frozenset(f"response.{status}" for status in _FINAL),
    last=_last,
    after="starting_after",
    waiting="queued",
)


def _patch(id: str, now: int, document: dict[str, Any]) -> dict[str, Any]:
    """The response with its fields about the conversation it belongs to."""
    conversation = document.get("conversation")
    named = conversation.get("id") if isinstance(conversation, dict) else conversation
    return {
        "id": id,
        "background": True,
        "store": True,
        "created_at": now,
        "previous_response_id": document.get("previous_response_id"),
        "conversation": {"id": named} if isinstance(named, str) else None,
    }


def _begun(body: dict[str, Any]) -> float:
    created = body.get("created_at", 0.0)
    return created if type(created) in (int, float) else 0.0


def _ended(body: dict[str, Any], status: str, why: str) -> dict[str, Any]:
    error = {"code": "server_error", "message": why} if status == "failed" else None
    return {**body, "status": status, "error": error}


ITEMS: Final = ItemForm(cut=cut, render_item=render_item, parse_items=parse_items)

STORED: Final = Stored(
    noun="response",
    prefix="resp_",
    previous="previous_response_id",
    missing_previous=400,  # as OpenAI: the request is at fault
    options=options,
    fields=FIELDS,
    is_reference=is_reference,
    whole_items=whole_items,
    shown=_shown,
    deleted=_deleted,
    items=ITEMS,
    events=_EVENTS,
    patch=_patch,
    begun=_begun,
    ended=_ended,
    without_state=without_state,
    reported=reported,
    hides_state=hides_state,
    instructions=instructions,
    is_instructions=is_instructions,
    unstored=Extra(NAME, form={"store": False}),
    compaction=COMPACTION,
)
