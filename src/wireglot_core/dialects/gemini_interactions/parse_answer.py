"""Parses whole answers of an upstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.gemini_interactions.content import parse_content
from wireglot_core.dialects.gemini_interactions.names import (
    FUNCTION_CALL,
    HOLLOW_STEP,
    JOINED,
    MODEL_OUTPUT,
    OWN,
    STEP,
    THOUGHT,
)
from wireglot_core.dialects.gemini_interactions.outcome import parse_stop, parse_usage
from wireglot_core.dialects.gemini_interactions.response import BODY
from wireglot_core.dialects.gemini_interactions.steps import CarriedSignature, parse_call, parse_thought
from wireglot_core.dialects.iso_time import unix_seconds
from wireglot_core.dialects.unknown_fields import WITHOUT
from wireglot_core.ir.content import Extra, Foreign, Media, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.outcome import Response, Stop

_READ: Final = frozenset({"id", "model", "status", "steps", "usage", "service_tier"})
_ALWAYS: Final = ("id", "object", "steps")
"""Fields of every answer that are not parsed."""
_ABOUT: Final = frozenset(
    {
        "object",
        "created",
        "updated",
        "role",
        "agent",
        "agent_config",
        "background",
        "cached_content",
        "environment",
        "environment_id",
        "generation_config",
        "input",
        "labels",
        "previous_interaction_id",
        "response_format",
        "response_mime_type",
        "response_modalities",
        "safety_settings",
        "store",
        "stream",
        "system_instruction",
        "tools",
        "webhook_config",
    }
)
"""Fields about how the interaction is stored, and echoes of its request."""
_OUTPUT: Final = frozenset({"type", "content"})


def parse_response(body: dict[str, Any], context: Context) -> Response:
    fields = Fields(body, "$", UpstreamFault)
    model = fields.text_or("model")
    origin = context.origin(OWN, model)
    content = parse_steps(fields, origin, context)
    calls = any(type(part) is ToolCall for part in content)
    return Response(
        fields.text_or("id"),
        model,
        tuple(content),
        answer_stop(body, calls),
        parse_usage(body.get("usage")),
        created=unix_seconds(body.get("created")),
        service_tier=fields.text_or("service_tier"),
        extra=answer_extra(body),
    )


def parse_steps(fields: Fields, origin: Origin, context: Context) -> list[Part]:
    content: list[Part] = []
    waiting: Signature | None = None  # of the next call
    for step in fields.objects("steps"):
        for part in parse_answer_step(step, origin, context, len(content)):
            if isinstance(part, CarriedSignature):
                if part.holder == "call":
                    waiting = part.signature
                elif content and isinstance(last := content[-1], Text | Media):
                    content[-1] = replace(last, signature=part.signature)
                continue
            if type(part) is ToolCall and waiting is not None:
                part, waiting = replace(part, signature=waiting), None
            content.append(part)
    return content


def parse_answer_step(
    step: Fields, origin: Origin, context: Context, position: int
) -> Sequence[Part | CarriedSignature]:
    """The parts of a step. `position`: the index of the first of them in the answer."""
    kind = step.text_or("type")
    if kind == MODEL_OUTPUT:
        return parse_output(step)
    if kind == THOUGHT:
        return [parse_answer_thought(step, origin, context)]
    if kind == FUNCTION_CALL:
        return [parse_call(step, context, str(position))]
    return [Foreign(OWN, kind, step.value)]


def parse_answer_thought(step: Fields, origin: Origin, context: Context) -> Reasoning | CarriedSignature:
    """A thought that the upstream signed. The upstream may be another gateway: then it can be an envelope."""
    stated = step.value.get("signature")
    sealed = type(stated) is str and context.unseal(stated) is not None
    thought = parse_thought(step, context, None if sealed else origin)
    return thought if thought is not None else Reasoning()


def parse_output(step: Fields) -> list[Part]:
    """`model_output`. Unknown fields of the step are kept with its first part; a step without parts is an
    empty text."""
    parts: list[Part] = []
    for entry in step.objects("content"):
        part = parse_content(entry)
        if type(part) is Foreign:
            # It is not a step by itself, so it is wrapped in one.
            part = Foreign(OWN, part.type, {"type": MODEL_OUTPUT, "content": [part.value]})
        elif parts and type(parts[-1]) is not Foreign:
            part = _with_form(part, {JOINED: True})
        parts.append(part)
    if not parts:
        hollow = "absent" if step.value.get("content") is None else "empty"
        parts.append(Text("", extra=Extra(OWN, {}, {HOLLOW_STEP: hollow})))
    unknown = unknown_of_output(step.value)
    first = parts[0]
    if unknown and type(first) is Foreign:
        rest = {key: value for key, value in step.value.items() if key not in _OUTPUT}
        parts[0] = Foreign(OWN, first.type, {**first.value, **rest})
    elif unknown and (type(first) is Text or type(first) is Media):
        extra = first.extra
        fields, form = (extra.fields, extra.form) if extra is not None else ({}, {})
        parts[0] = replace(first, extra=Extra(OWN, {**fields, **unknown}, form))
    return parts


def unknown_of_output(step: dict[str, Any]) -> dict[str, Any]:
    """Unknown fields of a `model_output`, as its first part keeps them."""
    return {f"{STEP}{key}": value for key, value in step.items() if key not in _OUTPUT}


def _with_form(part: Text | Media, form: dict[str, Any]) -> Text | Media:
    extra = part.extra
    if extra is None:
        return replace(part, extra=Extra(OWN, {}, form))
    return replace(part, extra=Extra(OWN, extra.fields, {**extra.form, **form}))


def answer_stop(body: dict[str, Any], calls: bool) -> Stop:
    status = body.get("status")
    return parse_stop(status if type(status) is str else "", calls, body.get("errors"))


def answer_extra(body: dict[str, Any]) -> Extra:
    about = {key: value for key, value in body.items() if key in _ABOUT}
    unknown = {
        key: value for key, value in body.items() if key not in _ABOUT and (key not in _READ or value is None)
    }
    missing = [key for key in _ALWAYS if key not in body]
    form: dict[str, Any] = {BODY: about, WITHOUT: missing} if missing else {BODY: about}
    return Extra(OWN, unknown, form)
