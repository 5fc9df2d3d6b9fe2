"""Names that a Chat endpoint knows otherwise, told to the renderer. Nothing is lost by a name."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot.dialects.fields import own_fields, own_form
from wireglot.ir.content import Extra, Foreign, Media, Message, Part, Text, ToolCall, ToolResult
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail
from wireglot.providers.fit.known import Settled
from wireglot.providers.fit.turns import asked_to_go_on
from wireglot.providers.limits import ALL_TEXT_ROLES, Limits, TextRole

_CHAT = "openai-chat"


def spell_for(
    request: Request,
    limits: Limits,
    losses: list[Loss],
    trail: Trail,
    *,
    foreign: bool,
    settled: Settled,
) -> Request:
    """`foreign`: the request came from another dialect, where a last answer is one to continue."""
    request = _fields(request, limits, losses)
    messages = request.messages
    if not limits.developer_role and settled.holds(messages, "developer", _has_developer):
        messages = tuple(_as_system(message, trail) for message in messages)
    if not foreign and any(map(_lacks_ids, messages)):
        messages = tuple(_with_ids(message, trail) for message in messages)
    if messages and messages[-1].role == "assistant":
        json = request.output is not None and request.output.kind == "json"
        messages = _marked(messages, limits, losses, trail, foreign=foreign, json=json)
    if messages is request.messages:
        return request
    return msgspec.structs.replace(request, messages=messages)


def _fields(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    extra = request.extra if request.extra is not None and request.extra.dialect == _CHAT else None
    form = dict(extra.form) if extra is not None else {}
    fields = extra.fields if extra is not None else {}
    if limits.max_tokens_field and request.max_tokens is not None:
        form["limit"] = limits.max_tokens_field
        form.pop("max_tokens", None)  # an older limit beside it, which the newer one overruled
    if limits.seed_field and request.sampling.seed is not None:
        form["seed"] = limits.seed_field
    if limits.user_field and request.user:
        form["user"] = limits.user_field
    if fields.get("tools") == []:  # no tools, which OpenAI, Kimi and most others refuse to be told so
        fields = {name: value for name, value in fields.items() if name != "tools"}
    if extra is None:
        if not form:
            return request
    elif form == extra.form and fields is extra.fields:
        return request
    return _with_form(request, form, losses, fields)


def _with_form(request: Request, form: dict[str, Any], losses: list[Loss], fields: dict[str, Any]) -> Request:
    losses_of_extra(request.extra, _CHAT, "$", losses)  # the renderer will not see another dialect's any more
    return msgspec.structs.replace(request, extra=Extra(_CHAT, fields, form))


def join_texts(request: Request, limits: Limits, losses: list[Loss], foreign: bool) -> Request:
    """One string instead of a list of texts, for the roles that are not known to take lists."""
    joined = [role for role in ALL_TEXT_ROLES if role not in limits.text_parts]
    if not foreign and not any(_has_list(message, joined) for message in request.messages):
        return request
    form = {**own_form(request.extra, _CHAT), "joined": joined}
    return _with_form(request, form, losses, own_fields(request.extra, _CHAT))


def _has_list(message: Message, joined: list[TextRole]) -> bool:
    if message.role in joined and _is_list(message.content, message.extra):
        return True
    return "tool" in joined and any(
        type(part) is ToolResult and _is_list(part.content, part.extra) for part in message.content
    )


def _is_list(content: tuple[Part, ...], extra: Extra | None) -> bool:
    texts = sum(type(part) is Text for part in content)
    if any(type(part) is Media or type(part) is Foreign for part in content):
        return False
    return texts > 1 or own_form(extra, _CHAT).get("content") == "parts"  # an empty one is a list, too


def _has_developer(messages: tuple[Message, ...]) -> bool:
    for message in messages:
        extra = message.extra
        if extra is not None and extra.dialect == _CHAT and extra.form.get("role") == "developer":
            return True
    return False


def _is_developer(message: Message) -> bool:
    return own_form(message.extra, _CHAT).get("role") == "developer"


def _as_system(message: Message, trail: Trail) -> Message:
    if not _is_developer(message):
        return message
    return _respelled(message, trail, role=None)


def _respelled(message: Message, trail: Trail, **form: Any) -> Message:
    """The message with another form; None takes a name out of it."""
    extra = message.extra if message.extra is not None and message.extra.dialect == _CHAT else Extra(_CHAT)
    spelled = {name: value for name, value in {**extra.form, **form}.items() if value is not None}
    new = Extra(_CHAT, extra.fields, spelled) if spelled or extra.fields else None
    renamed = Message(message.role, message.content, message.name, new)
    trail.follow(message, renamed)
    return renamed


# Ids that the client left empty. The parser has made up some, alike for a call and its result.


def _lacks_ids(message: Message) -> bool:
    return any(_lacks_id(part) for part in message.content)


def _lacks_id(part: Part) -> bool:
    kind = type(part)
    if kind is not ToolCall and kind is not ToolResult:
        return False
    assert isinstance(part, ToolCall | ToolResult)
    extra = part.extra
    if extra is None or extra.dialect != _CHAT or extra.form.get("legacy"):
        return False
    return "no_id" in extra.form or "id" in extra.form or "id" in extra.fields


def _with_ids(message: Message, trail: Trail) -> Message:
    if not _lacks_ids(message):
        return message
    content: list[Part] = []
    for part in message.content:
        new = part
        if _lacks_id(part):
            assert isinstance(part, ToolCall | ToolResult)
            assert part.extra is not None
            fields = _without(part.extra.fields, "id", "tool_call_id")
            form = _without(part.extra.form, "id", "no_id")
            new = msgspec.structs.replace(part, extra=Extra(_CHAT, fields, form) if fields or form else None)
            trail.follow(part, new)
        content.append(new)
    changed = Message(message.role, tuple(content), message.name, message.extra)
    trail.follow(message, changed)
    return changed


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


# A last answer that is to be continued


def _marked(
    messages: tuple[Message, ...],
    limits: Limits,
    losses: list[Loss],
    trail: Trail,
    *,
    foreign: bool,
    json: bool,
) -> tuple[Message, ...]:
    last = messages[-1]
    spelled = own_form(last.extra, _CHAT).get("prefill")
    if not limits.prefill_field or not (spelled or foreign):
        return messages
    if any(type(part) is ToolCall for part in last.content):
        return messages
    if json and not limits.prefill_json:
        messages = (*messages[:-1], _respelled(last, trail, prefill=None)) if spelled else messages
        return asked_to_go_on(messages, "this model continues no answer in JSON mode", losses, trail)
    if spelled == limits.prefill_field:
        return messages
    return (*messages[:-1], _respelled(last, trail, prefill=limits.prefill_field))
