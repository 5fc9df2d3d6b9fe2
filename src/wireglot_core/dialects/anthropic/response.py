"""Parses and renders a whole message."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.anthropic.answer import AnswerBlocks, message_id
from wireglot_core.dialects.anthropic.errors import render_error
from wireglot_core.dialects.anthropic.lost_fields import LOST
from wireglot_core.dialects.anthropic.names import NAME, is_own, put_back
from wireglot_core.dialects.anthropic.outcome import (
    parse_stop,
    parse_usage,
    render_final_usage,
    render_stop,
    tier_of_usage,
)
from wireglot_core.dialects.anthropic.parts import BlockParser
from wireglot_core.dialects.anthropic.safeguards import RESULTS, parse_results, render_results
from wireglot_core.dialects.context import Context, Rendered, reported_model
from wireglot_core.dialects.fields import Fields, own_form, text_in
from wireglot_core.ir.content import Extra, Part, Text, ToolCall
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request

KNOWN = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage"}
)
_EXPECTED = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")


def parse_response(body: dict[str, Any], context: Context) -> Response:
    fields = Fields(body, "$", UpstreamFault)
    if body.get("type") == "error":
        raise UpstreamFault("expected a message, got an error", "$.type")
    identifier, model = text_in(body.get("id")), text_in(body.get("model"))
    content = _parse_content(fields, context, identifier, model)
    usage = body.get("usage")
    details = {"stop_details": body["stop_details"]} if "stop_details" in body else {}
    calls = any(type(part) is ToolCall for part in content)
    results = parse_results(body[RESULTS]) if RESULTS in body else ()
    return Response(
        identifier,
        model,
        content,
        parse_stop(body.get("stop_reason"), body.get("stop_sequence"), details, calls),
        parse_usage(usage) if type(usage) is dict else None,
        service_tier=tier_of_usage(usage),
        safeguard_results=results,
        extra=_parse_extra(fields, KNOWN | {RESULTS} if results else KNOWN),
    )


def _parse_content(fields: Fields, context: Context, identifier: str, model: str) -> tuple[Part, ...]:
    content = fields.value.get("content")
    if content is None and "content" in fields.value:
        return ()
    if type(content) is str:
        return (Text(content),) if content else ()
    blocks = BlockParser(context, context.origin(NAME, model), UpstreamFault, identifier)
    return blocks.content(fields.array("content"), "$.content")


def _parse_extra(fields: Fields, known: frozenset[str]) -> Extra:
    """Always present, because it also marks the blocks as divided in this dialect's way. Unusual values of
    fields without information (a missing role, a null usage) are spelling."""
    body = fields.value
    information = {key: value for key, value in body.items() if key not in known}
    odd: dict[str, Any] = {}
    for key in ("type", "role", "id", "model", "usage", "content"):
        value = body.get(key)
        usual = {"type": value == "message", "role": value == "assistant", "usage": type(value) is dict}
        usual["content"] = type(value) is list
        if key in body and not usual.get(key, type(value) is str):
            odd[key] = value
    form: dict[str, Any] = {}
    absent = [key for key in _EXPECTED if key not in body]
    if absent:
        form["absent"] = absent
    if odd:
        form["odd"] = odd
    return Extra(NAME, information, form)


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    if response.stop.reason == "malformed_call":
        return render_error(malformed_call(response.stop), context)
    native = is_own(response.extra)
    blocks = AnswerBlocks(context, losses, response.id, native)
    form = own_form(response.extra, NAME)
    body: dict[str, Any] = {
        "id": response.id if native and response.id else message_id(response.id, context),
        "type": "message",
        "role": "assistant",
        "model": reported_model(response.model, context, request),
        "content": blocks.content(response.content, "$"),
        **render_stop(response.stop, "$.stop", losses),
        "usage": render_final_usage(response.usage, response.service_tier, losses),
    }
    if response.safeguard_results:
        body[RESULTS] = render_results(response.safeguard_results, blocks.call_id, losses)
    if not native:
        body["container"] = None
    LOST.of(response, "$", losses)
    if response.extra is not None and not native:
        return Rendered(body, tuple(losses))
    body.update(form.get("odd", {}))
    for key in form.get("absent", ()):
        if key not in ("content", "usage") or not body.get(key) or response.usage is None:
            body.pop(key, None)
    return Rendered(put_back(body, response.extra), tuple(losses))


def malformed_call(stop: Stop) -> ApiError:
    """A call the model broke is not an answer: the client sees an error that it may retry."""
    return ApiError(
        "server", f"the model produced a malformed tool call{f' ({stop.raw})' if stop.raw else ''}", 502
    )
