"""Stored interactions: the state fields of requests, and the documents about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.body import BadField, Body
from wireglot_core.dialects.capabilities import StateOptions, Stored, StoredEvents
from wireglot_core.dialects.gemini_interactions.content import is_content
from wireglot_core.dialects.gemini_interactions.names import (
    COMPLETED,
    CREATED,
    DONE,
    ERROR,
    OWN,
    USER_INPUT,
)
from wireglot_core.dialects.gemini_interactions.response import REPORTED
from wireglot_core.dialects.iso_time import iso_time, unix_seconds
from wireglot_core.ir.content import Extra, Message, Text
from wireglot_core.ir.request import Request

PREVIOUS: Final = "previous_interaction_id"
FIELDS: Final = frozenset({PREVIOUS, "background", "store"})


def options(body: Body, conversation: str) -> StateOptions:
    outline = body.outline
    store, previous = outline.get("store"), outline.get(PREVIOUS)
    background = outline.get("background")
    if store is not None and type(store) is not bool:
        raise BadField("store: expected true or false", "$.store")
    if background is not None and type(background) is not bool:
        raise BadField("background: expected true or false", "$.background")
    if previous is not None and type(previous) is not str:
        raise BadField(f"{PREVIOUS}: expected a string", f"$.{PREVIOUS}")
    return StateOptions(store, previous or "", "" if previous else conversation, background is True, False)


def without_state(request: Request) -> Request:
    extra = request.extra or Extra(OWN)
    fields = {key: value for key, value in extra.fields.items() if key not in FIELDS}
    form = {key: value for key, value in extra.form.items() if key not in FIELDS}
    form.pop("input", None)  # its history comes first: all of it is steps
    return replace(request, extra=replace(extra, fields=fields, form=form))


def reported(request: Request, says: dict[str, Any]) -> Request:
    extra = request.extra or Extra(OWN)
    return replace(request, extra=replace(extra, form={**extra.form, "store": False, REPORTED: says}))


def is_instructions(message: Message) -> bool:
    return message.role == "system"


def instructions(text: str) -> Message:
    return Message("system", (Text(text),))


def input_steps(value: Any, new_id: Callable[[str, int], str]) -> list[dict[str, Any]]:
    """The input of a request converted to steps."""
    if type(value) is str:
        value = [{"type": "text", "text": value}]
    elif type(value) is dict:
        value = [value]
    if type(value) is not list:
        return []
    return [{"type": USER_INPUT, "content": value}] if value and is_content(value[0]) else value


def _shown(body: dict[str, Any], given: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """All steps of an interaction: the request's before those of the model."""
    steps = body.get("steps")
    whole = {**body, "steps": [*given, *(steps if type(steps) is list else [])]}
    return {**whole, "input": given} if query.get("include_input") == "true" else whole


def _deleted(id: str) -> dict[str, Any]:
    return {}


def _hides_nothing(request: Request) -> bool:
    return False


def _number(event: dict[str, Any]) -> int:
    return int(event["event_id"])


def _kind(event: dict[str, Any]) -> str:
    kind: str = event["event_type"]
    return kind


def _event(kind: str, number: int, content: dict[str, Any]) -> dict[str, Any]:
    return {"event_type": kind, **content, "event_id": str(number)}


def _last(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return COMPLETED, {"interaction": {key: value for key, value in body.items() if key != "steps"}}


EVENTS: Final = StoredEvents(
    number=_number,
    kind=_kind,
    event=_event,
    holder="interaction",
    opening=frozenset({CREATED}),
    ends=frozenset({COMPLETED, ERROR}),
    last=_last,
    after="last_event_id",
    closing=DONE,
    # Its clients poll while an answer is `in_progress`; those of Vercel do not know `queued`.
    waiting="in_progress",
)


def _patch(id: str, now: int, document: dict[str, Any]) -> dict[str, Any]:
    previous = document.get(PREVIOUS)
    return {"id": id, "created": iso_time(now), **({PREVIOUS: previous} if previous else {})}


def _begun(body: dict[str, Any]) -> float:
    return float(unix_seconds(body.get("created")))


def _ended(body: dict[str, Any], status: str, why: str) -> dict[str, Any]:
    error = {"errors": [{"code": "api_error", "message": why}]} if status == "failed" else {}
    return {**body, "status": status, **error}


STORED: Final = Stored(
    noun="interaction",
    prefix="v1_",
    previous=PREVIOUS,
    missing_previous=404,
    options=options,
    fields=FIELDS,
    whole_items=input_steps,
    shown=_shown,
    deleted=_deleted,
    events=EVENTS,
    patch=_patch,
    begun=_begun,
    ended=_ended,
    without_state=without_state,
    reported=reported,
    hides_state=_hides_nothing,
    instructions=instructions,
    is_instructions=is_instructions,
    unstored=Extra(OWN, form={"store": False}),
)
