"""Field names that differ at an endpoint, for the renderer. Renaming a field loses nothing."""

from __future__ import annotations

import operator
from typing import Any

import msgspec

from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.ir.content import Extra, Foreign, Media, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import losses_of_extra
from wireglot_core.ir.request import Request
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.fit.turns import ask_to_go_on
from wireglot_core.providers.limits import ALL_TEXT_ROLES, TextRole


def spell_fields(request: Request, fitting: Fitting) -> Request:
    limits = fitting.limits
    extra = request.extra
    if extra is not None and extra.dialect != fitting.dialect:
        extra = None
    form = dict(extra.form) if extra is not None else {}
    fields = extra.fields if extra is not None else {}
    if limits.max_tokens_field and request.max_tokens is not None:
        form["limit"] = limits.max_tokens_field
        form.pop("max_tokens", None)  # an older limit next to it, which the newer one overruled
    if limits.seed_field and request.sampling.seed is not None:
        form["seed"] = limits.seed_field
    if limits.user_field and request.user:
        form["user"] = limits.user_field
    if fields.get("tools") == []:  # no tools, which OpenAI, Kimi and most others refuse
        fields = {name: value for name, value in fields.items() if name != "tools"}
    if extra is None:
        if not form:
            return request
    elif form == extra.form and fields is extra.fields:
        return request
    return _with_form(request, form, fields, fitting)


def _with_form(request: Request, form: dict[str, Any], fields: dict[str, Any], fitting: Fitting) -> Request:
    dialect = fitting.dialect
    # The renderer will not see another dialect's any more.
    losses_of_extra(request.extra, dialect, "$", fitting.losses)
    return msgspec.structs.replace(request, extra=Extra(dialect, fields, form))


def join_texts(request: Request, fitting: Fitting) -> Request:
    """Joins a list of texts into one string, for roles that are not known to accept lists."""
    dialect = fitting.dialect
    joined = [role for role in ALL_TEXT_ROLES if role not in fitting.limits.text_parts]
    if not fitting.foreign and not any(_has_list(message, joined, dialect) for message in request.messages):
        return request
    form = {**own_form(request.extra, dialect), "joined": joined}
    return _with_form(request, form, own_fields(request.extra, dialect), fitting)


def _has_list(message: Message, joined: list[TextRole], dialect: str) -> bool:
    if message.role in joined and _is_list(message.content, message.extra, dialect):
        return True
    return "tool" in joined and any(
        type(part) is ToolResult and _is_list(part.content, part.extra, dialect) for part in message.content
    )


def _is_list(content: tuple[Part, ...], extra: Extra | None, dialect: str) -> bool:
    texts = sum(type(part) is Text for part in content)
    if any(type(part) is Media or type(part) is Foreign for part in content):
        return False
    return texts > 1 or own_form(extra, dialect).get("content") == "parts"  # an empty list is a list, too


def use_system_role(request: Request, fitting: Fitting) -> Request:
    """Uses the system's older role name in place of `developer`."""
    messages = tuple(
        _respelled(message, fitting, role=None)
        if own_form(message.extra, fitting.dialect).get("role") == "developer"
        else message
        for message in request.messages
    )
    if all(map(operator.is_, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=messages)


def _respelled(message: Message, fitting: Fitting, **form: Any) -> Message:
    """The message with another form; None removes a name from it."""
    dialect, extra = fitting.dialect, message.extra
    if extra is None or extra.dialect != dialect:
        extra = Extra(dialect)
    spelled = {name: value for name, value in {**extra.form, **form}.items() if value is not None}
    new = Extra(dialect, extra.fields, spelled) if spelled or extra.fields else None
    renamed = Message(message.role, message.content, message.name, new)
    fitting.trail.follow(message, renamed)
    return renamed


def fill_in_ids(request: Request, fitting: Fitting) -> Request:
    """Fills in ids that the client left empty: the parser made them up consistently for a call and its
    result."""
    dialect = fitting.dialect

    def filled_in(part: Part) -> Part:
        if type(part) is not ToolCall and type(part) is not ToolResult:
            return part
        extra = part.extra
        if extra is None or extra.dialect != dialect or extra.form.get("legacy"):
            return part
        if "no_id" not in extra.form and "id" not in extra.form and "id" not in extra.fields:
            return part
        fields = _without(extra.fields, "id", "tool_call_id")
        form = _without(extra.form, "id", "no_id")
        kept = Extra(dialect, fields, form) if fields or form else None
        return msgspec.structs.replace(part, extra=kept)

    messages = fitting.trail.changed_parts(request.messages, filled_in)
    return request if messages is request.messages else msgspec.structs.replace(request, messages=messages)


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def mark_prefill(request: Request, fitting: Fitting) -> Request:
    """Marks a last answer that is to be continued: for a client of another dialect, any last answer."""
    *before, last = request.messages or (None,)
    if last is None or last.role != "assistant" or any(type(part) is ToolCall for part in last.content):
        return request
    spelled, field = own_form(last.extra, fitting.dialect).get("prefill"), fitting.limits.prefill_field
    if not spelled and not fitting.foreign:
        return request
    if request.output is not None and request.output.kind == "json" and not fitting.limits.prefill_json:
        if spelled:
            last = _respelled(last, fitting, prefill=None)
            request = msgspec.structs.replace(request, messages=(*before, last))
        return ask_to_go_on(request, "this model continues no answer in JSON mode", fitting)
    if spelled == field:
        return request
    return msgspec.structs.replace(request, messages=(*before, _respelled(last, fitting, prefill=field)))
