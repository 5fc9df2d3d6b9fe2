"""Parses and renders the response object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.arguments import with_repaired_calls
from wireglot_core.dialects.context import Context, Rendered, reported_model
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.openai_responses.client_calls import (
    CLIENT_CALLS,
    is_client_call,
    item_of_client_tool,
    parse_client_call,
)
from wireglot_core.dialects.openai_responses.client_tools import client_run
from wireglot_core.dialects.openai_responses.echo import ECHOED, echo, reported
from wireglot_core.dialects.openai_responses.items import (
    Carried,
    message_parts,
    parse_call,
    parse_image_call,
    parse_message,
    parse_reasoning,
)
from wireglot_core.dialects.openai_responses.lost_fields import LOST, LOST_IN_ANSWERS, NO_RESULTS_IN_ANSWERS
from wireglot_core.dialects.openai_responses.outcome import (
    MALFORMED,
    USAGE,
    contradictions,
    parse_stop,
    parse_usage,
    render_stop,
    render_usage,
)
from wireglot_core.dialects.openai_responses.output import (
    ItemIds,
    carrier,
    declare_id,
    encrypted_content,
    hides_state,
    message_fields,
    message_form,
    native_id,
    phase_said,
    reasoning_id,
    response_id,
    same_message,
)
from wireglot_core.dialects.openai_responses.parts import render_text
from wireglot_core.dialects.openai_responses.render_items import (
    render_call,
    render_foreign,
    render_image_call,
    render_reasoning,
)
from wireglot_core.dialects.openai_responses.settings import parse_tier, render_tier
from wireglot_core.dialects.openai_responses.spelling import NAME, put_back
from wireglot_core.dialects.unknown_fields import WITHOUT
from wireglot_core.ir.content import (
    Extra,
    Foreign,
    Media,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request, Tool

_KNOWN = frozenset(
    {"id", "model", "created_at", "output", "usage", "status", "incomplete_details", "error", "service_tier"}
)
_CUT = frozenset({"message", "function_call", "custom_tool_call"})
"""Items in which the model can be cut off."""
_WITHHELD = {"action": "removed", "reason": "model_mismatch", "type": "reasoning"}
"""How an answer reports reasoning that was minted for another model (openai-python 3.51)."""
_ALWAYS = ("id", "model", "created_at", "output", "usage", "status", "incomplete_details", "error", "object")


def parse_response(body: dict[str, Any], context: Context) -> Response:
    fields = Fields(body, "$", UpstreamFault)
    identifier, model = fields.text_or("id"), fields.text_or("model")
    content = parse_output(fields.array_or_empty("output"), identifier, context.origin(NAME, model), context)
    tier = body.get("service_tier")
    usage = parse_usage(body.get("usage"))
    return Response(
        identifier,
        model,
        content=content,
        stop=stop_of(body, content),
        usage=usage,
        created=created_of(body),
        service_tier=parse_tier(tier) if type(tier) is str else "",
        extra=body_extra(body, usage is None),
    )


def stop_of(body: dict[str, Any], content: tuple[Part, ...]) -> Any:
    status = body.get("status")
    calls = any(type(part) is ToolCall for part in content)
    refused = any(type(part) is Text and part.refusal for part in content)
    return parse_stop(status if type(status) is str else "", body.get("incomplete_details"), calls, refused)


def created_of(body: dict[str, Any]) -> int:
    created = body.get("created_at")
    return int(created) if isinstance(created, int | float) and abs(created) < 2**53 else 0


_OWN_BILL = {"payer": "developer"}
"""The caller pays: the value in nearly every answer."""


def body_extra(body: dict[str, Any], no_usage: bool = False) -> Extra:
    """Echoes of the request are form, unknown fields are information."""
    known = _KNOWN | ECHOED
    form: dict[str, Any] = {"body": {key: value for key, value in body.items() if key in ECHOED}}
    missing = [key for key in _ALWAYS if key not in body]
    if missing:
        form[WITHOUT] = missing
    for key in ("error", "incomplete_details", "created_at", "service_tier", "status"):
        if key in body:
            form[key] = body[key]
    if no_usage and "usage" in body:
        form["usage"] = body["usage"]
    fields = {key: value for key, value in body.items() if key not in known}
    if body.get("billing") not in (None, _OWN_BILL):
        fields["billing"] = body["billing"]
    return Extra(NAME, fields | contradictions(body.get("usage")), form)


def parse_output(items: list[Any], identifier: str, origin: Origin, context: Context) -> tuple[Part, ...]:
    parts: list[Part] = []
    waiting: Signature | None = None
    for number, entry in enumerate(items):
        item = Fields(entry, f"$.output[{number}]", UpstreamFault)
        for part in parse_output_item(item, number, identifier, origin, context):
            if isinstance(part, Carried):
                if part.holder == "call":
                    waiting = part.signature
                elif parts and isinstance(last := parts[-1], Text | Media):
                    parts[-1] = replace(last, signature=part.signature)
                continue
            if waiting is not None and isinstance(part, ToolCall):
                part, waiting = replace(part, signature=waiting), None
            parts.append(part)
    return tuple(parts)


def parse_output_item(
    item: Fields, number: int, identifier: str, origin: Origin, context: Context, source: str = ""
) -> list[Part | Carried]:
    kind = item.text_or("type", "message" if "content" in item.value else "")
    match kind:
        case "message":
            role = item.value.get("role")
            if role is not None and role != "assistant":
                return [Foreign(NAME, kind, item.value)]  # a compacted conversation, not an answer
            if role is None:
                item = Fields({**item.value, "role": "assistant"}, item.path, item.fault)
            return list(message_parts(parse_message(item, origin), number, item.value))
        case "function_call" | "custom_tool_call":
            return [parse_call(item, context, identifier, str(number))]
        case "reasoning":
            return [parse_reasoning(item, origin, context, source)]
        case "image_generation_call":
            return [parse_image_call(item)]
        case _ if kind in CLIENT_CALLS and is_client_call(item.value):
            return [parse_client_call(item, context, identifier, str(number))]
        case _:
            return [Foreign(NAME, kind, item.value)]


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    native = "body" in own_form(response.extra, NAME)
    said = reported(request)
    identifier = said.get("id") or response_id(response.id, response.model, context, native)
    status, why = render_stop(response.stop, response.content, losses)
    run = client_run(request.tools) if request is not None else {}
    ids = ItemIds(identifier, context)
    content = with_repaired_calls(response.content, "$.content", losses)
    output = render_output_items(content, ids, context, losses, status, run, hides_state=hides_state(request))
    body = shell(response, identifier, context, request)
    finish_body(body, response, status, why, context)
    body["output"] = output
    form = own_form(response.extra, NAME)
    body["usage"] = (
        form["usage"] if "usage" in form and response.usage is None else render_usage(response.usage, losses)
    )
    render_body_tier(body, response.service_tier, form, losses)
    LOST.of(response, "$", losses)
    return Rendered({**respell(body, response.extra), **said}, tuple(losses))


def shell(response: Response, identifier: str, context: Context, request: Request | None) -> dict[str, Any]:
    """The fields that every response object has from its first event on."""
    form = own_form(response.extra, NAME)
    created = form.get("created_at")
    if not isinstance(created, int | float) or created_of({"created_at": created}) != response.created:
        created = response.created or context.now
    return {
        "id": identifier,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": reported_model(response.model, context, request),
        "output": [],
        **(form["body"] if "body" in form else echo(request)),
        **reported(request),
        "usage": None,
    }


def finish_body(body: dict[str, Any], response: Response, status: str, why: str, context: Context) -> None:
    form = own_form(response.extra, NAME)
    body["status"] = status
    if "incomplete_details" in form:
        body["incomplete_details"] = form["incomplete_details"]
    elif why:
        body["incomplete_details"] = {"reason": why}
    if "error" in form:
        body["error"] = form["error"]
    elif status == "failed":
        body["error"] = dict(MALFORMED)
    if status == "completed" and "body" not in form:
        body["completed_at"] = max(context.now, body["created_at"])
    named = [own_form(part.extra, NAME).get("id") for part in context.withheld] if context.withheld else []
    if any(named):
        known = own_fields(response.extra, NAME).get("input_transformations")
        ours = [{"id": each, **_WITHHELD} for each in named if each]
        body["input_transformations"] = [*(known if type(known) is list else ()), *ours]


def render_body_tier(body: dict[str, Any], tier: str, form: dict[str, Any], losses: list[Loss]) -> None:
    raw = form.get("service_tier")
    if type(raw) is str and parse_tier(raw) == tier:
        body["service_tier"] = raw
    elif tier:
        name = render_tier(tier, "$.service_tier", losses)
        if name is not None:
            body["service_tier"] = name
    elif "service_tier" in form:
        body["service_tier"] = raw


def respell(body: dict[str, Any], extra: Extra | None) -> dict[str, Any]:
    if extra is None or extra.dialect != NAME:
        return body
    form = extra.form
    if "body" in form and "completed_at" not in form["body"]:
        body.pop("completed_at", None)
    for key in form.get(WITHOUT, ()):
        if key != "output" or not body["output"]:
            body.pop(key, None)
    for key in [key for key in put_back(body, extra) if key.startswith(USAGE)]:
        del body[key]  # `usage` has them already
    return body


def render_output_items(
    content: tuple[Part, ...],
    ids: ItemIds,
    context: Context,
    losses: list[Loss],
    status: str,
    own_tools: Mapping[str, Tool],
    *,
    hides_state: bool = False,
) -> list[dict[str, Any]]:
    """`own_tools`: the client's tools whose calls have their own item types, by name."""
    items: list[dict[str, Any]] = []
    before: Text | None = None
    for number, part in enumerate(content):
        path = f"$.content[{number}]"
        if not isinstance(part, Text):
            before = None
        match part:
            case Text():
                if not part.text and part.signature is None and not message_form(part):
                    losses_of_extra(part.extra, NAME, path, losses)
                    continue
                if before is None or not same_message(before, part):
                    items.append(_message(part, ids, len(items)))
                before = part
                if not own_form(part.extra, NAME).get("empty"):
                    items[-1]["content"].append(render_output_text(part, path, losses))
            case ToolCall():
                if part.signature is not None:
                    items.append(carrier(part, part.signature, ids.take("reasoning", len(items)), context))
                items.append(render_output_call(part, ids, len(items), path, losses, own_tools))
            case Reasoning():
                encrypted = encrypted_content(part, part.signature, context, hidden=hides_state)
                items.append(_reasoning(part, ids, len(items), encrypted, path=path, losses=losses))
            case Media():
                item = render_output_media(part, ids, len(items), path, losses)
                if item is not None:
                    items.append(item)
            case Foreign():
                value = render_foreign(part, path, losses)
                if value is not None:
                    items.append(value)
            case ToolResult():
                losses.append(NO_RESULTS_IN_ANSWERS.at(path))
        if isinstance(part, Text | Media) and part.signature is not None and phase_said(part) is None:
            items.append(carrier(part, part.signature, ids.take("reasoning", len(items)), context))
            before = None
    last = items[-1] if items else {}
    cut = last.get("type") in _CUT and last.get("status") == "completed"
    if status == "incomplete" and cut and not _is_native(content[-1]):
        last["status"] = "incomplete"
    return items


def _is_native(part: Part) -> bool:
    extra = None if isinstance(part, Foreign) else part.extra
    return isinstance(part, Foreign) or (extra is not None and extra.dialect == NAME)


def _message(part: Text, ids: ItemIds, position: int) -> dict[str, Any]:
    form = message_form(part)
    item = open_message(part, ids.take("message", position, form.get("id")))
    item["status"] = form.get("status", "completed")
    if form and "status" not in form:
        del item["status"]
    if form and "id" not in form:
        del item["id"]
    if "type" in form.get(WITHOUT, ()):
        del item["type"]
    return item


def open_message(part: Text, identifier: str) -> dict[str, Any]:
    form = message_form(part)
    item: dict[str, Any] = {
        "type": "message",
        "id": identifier,
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    phase = form.get("phase", phase_said(part))
    if phase is not None:
        item["phase"] = phase
    item.update(form.get("blank", {}))
    if part.extra is not None:
        item.update(message_fields(part))
    return item


def render_output_text(part: Text, path: str, losses: list[Loss]) -> dict[str, Any]:
    return render_text(part, "output_text", path, losses, whole=True)


def render_output_call(
    part: ToolCall,
    ids: ItemIds,
    position: int,
    path: str,
    losses: list[Loss],
    own_tools: Mapping[str, Tool],
) -> dict[str, Any]:
    LOST_IN_ANSWERS.of(part, path, losses)
    own = item_of_client_tool(part, ids, position, own_tools)
    if own is not None:
        return own
    form = own_form(part.extra, NAME)
    kind = "custom_tool_call" if part.kind == "custom" else "function_call"
    identifier = ids.take(kind, position, form.get("id"))
    return render_call(part, identifier, form.get("status", None if form else "completed"))


def _reasoning(
    part: Reasoning, ids: ItemIds, position: int, encrypted: str | None, path: str, losses: list[Loss]
) -> dict[str, Any]:
    LOST.of(part, path, losses)
    native = reasoning_id(part, part.signature)
    identifier = ids.take("reasoning", position, native)
    if part.signature is not None and part.signature.id:
        declare_id(native, identifier, path, losses)
    return render_reasoning(part, identifier, encrypted)


def render_output_media(
    part: Media, ids: ItemIds, position: int, path: str, losses: list[Loss]
) -> dict[str, Any] | None:
    if part.kind != "image" or part.data is None:
        feature = part.kind if part.kind != "document" else "document"
        losses.append(Loss(path, feature, "dropped", "an answer holds generated images only"))
        return None
    LOST_IN_ANSWERS.of(part, path, losses)
    if not part.mime.startswith("image/") or part.name or part.detail:
        losses.append(Loss(path, "image", "approximated", "a generated image has a format only"))
    return render_image_call(part, ids.take("image_generation_call", position, native_id(part.extra)))
