"""Names that a Chat endpoint knows otherwise, told to the renderer. Nothing is lost by a name."""

from __future__ import annotations

import msgspec

from wireglot.ir.content import Extra, Message
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail
from wireglot.providers.limits import Limits

_CHAT = "openai-chat"


def spell_for(request: Request, limits: Limits, losses: list[Loss], trail: Trail) -> Request:
    if limits.max_tokens_field or limits.seed_field:
        request = _fields(request, limits, losses)
    if not limits.developer_role and any(map(_is_developer, request.messages)):
        messages = tuple(_as_system(message, trail) for message in request.messages)
        request = msgspec.structs.replace(request, messages=messages)
    return request


def _fields(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    extra = request.extra if request.extra is not None and request.extra.dialect == _CHAT else None
    form = dict(extra.form) if extra is not None else {}
    if limits.max_tokens_field and request.max_tokens is not None:
        form["limit"] = limits.max_tokens_field
        form.pop("max_tokens", None)  # an older limit beside it, which the newer one overruled
    if limits.seed_field and request.sampling.seed is not None:
        form["seed"] = limits.seed_field
    if form == (extra.form if extra is not None else {}):
        return request
    losses_of_extra(request.extra, _CHAT, "$", losses)  # the renderer will not see another dialect's any more
    fields = extra.fields if extra is not None else {}
    return msgspec.structs.replace(request, extra=Extra(_CHAT, fields, form))


def _is_developer(message: Message) -> bool:
    extra = message.extra
    return extra is not None and extra.dialect == _CHAT and extra.form.get("role") == "developer"


def _as_system(message: Message, trail: Trail) -> Message:
    if not _is_developer(message):
        return message
    assert message.extra is not None
    form = {name: value for name, value in message.extra.form.items() if name != "role"}
    extra = Extra(_CHAT, message.extra.fields, form) if form or message.extra.fields else None
    renamed = Message(message.role, message.content, message.name, extra)
    trail.follow(message, renamed)
    return renamed
