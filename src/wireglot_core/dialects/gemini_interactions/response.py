"""Renders whole answers: the interaction object."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.dialects.context import Context, Rendered, reported_model
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import OWN, put_back
from wireglot_core.dialects.gemini_interactions.outcome import render_stop, render_usage
from wireglot_core.dialects.gemini_interactions.steps import AnswerSteps
from wireglot_core.dialects.iso_time import iso_time, unix_seconds
from wireglot_core.dialects.unknown_fields import WITHOUT
from wireglot_core.ir.content import Extra, ToolCall
from wireglot_core.ir.loss import Loss, is_blank
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request

REPORTED: Final = "told"
"""Key in a request's form: state fields of its answer, from any upstream (its id, whether it is stored)."""

BODY: Final = "body"
"""Form key of an answer: fields that repeat the request, and times in their original spelling."""

_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_-]+")
_PREFIX: Final = "v1_"
_TIERS: Final = {"default": "standard", "auto": "standard"}


_SAID: Final = ("id", "previous_interaction_id")


def reported(request: Request | None) -> dict[str, Any]:
    """The server's data about the interaction that its document has fields for."""
    said = own_form(request.extra, OWN).get(REPORTED, {}) if request is not None else {}
    return {key: said[key] for key in _SAID if key in said}


def is_own(extra: Extra | None) -> bool:
    return extra is not None and extra.dialect == OWN


def interaction_id(identifier: str, model: str, context: Context, native: bool) -> str:
    if identifier.startswith(_PREFIX) or native:
        return identifier
    clean = _NOT_IN_IDS.sub("_", identifier)
    return f"{_PREFIX}{clean}" if clean else context.new_id("v1", model)


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    steps = AnswerSteps(context, losses)
    calls = False
    for index, part in enumerate(response.content):
        steps.add(part, f"$.content[{index}]")
        calls = calls or type(part) is ToolCall
    body = shell(response.id, response.model, response.created, response.extra, context, request)
    body["steps"] = steps.steps
    ending(body, response.stop, calls, response.usage, response.service_tier, losses)
    body.update(reported(request))
    LOST.of(response, "$", losses)
    return Rendered(finished(body, response.extra), tuple(losses))


def shell(
    identifier: str,
    model: str,
    created: int,
    extra: Extra | None,
    context: Context,
    request: Request | None,
) -> dict[str, Any]:
    """An interaction before it has any output."""
    native = is_own(extra)
    spelled = own_form(extra, OWN).get(BODY, {})
    said = reported(request)
    own_id = said.get("id") or interaction_id(identifier, model, context, native)
    body: dict[str, Any] = {"id": own_id, "object": "interaction"}
    named = model if native else reported_model(model, context, request)
    if named:
        body["model"] = named
    body["status"] = "in_progress"
    if not native:
        body["created"] = body["updated"] = iso_time(created or context.now)
    elif unix_seconds(spelled.get("created")) == created:
        body.update({key: spelled[key] for key in ("created", "updated") if key in spelled})
    body.update(said)
    return body


def ending(
    body: dict[str, Any], stop: Stop, calls: bool, usage: Usage | None, tier: str, losses: list[Loss]
) -> None:
    """Adds how an interaction ended, and its usage."""
    body["status"], error = render_stop(stop, calls, losses)
    if error is not None:
        body["errors"] = [error]
    counted = render_usage(usage, losses)
    if counted is not None:
        body["usage"] = counted
    if tier:
        body["service_tier"] = _TIERS.get(tier, tier)


def finished(body: dict[str, Any], extra: Extra | None) -> dict[str, Any]:
    """The body with the fields that the interaction's own server added."""
    if not is_own(extra):
        return body
    spelled = own_form(extra, OWN).get(BODY, {})
    for key, value in spelled.items():
        body.setdefault(key, value)
    for key in own_form(extra, OWN).get(WITHOUT, ()):
        if key == "object" or is_blank(body.get(key)):
            body.pop(key, None)
    stated = own_fields(extra, OWN).get("errors")
    if stated is not None:
        body["errors"] = stated
    return put_back(body, extra)
