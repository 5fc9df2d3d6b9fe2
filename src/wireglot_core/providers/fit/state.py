"""Turns and files stored at the source's own vendor: their ids are never sent to another vendor.

A gateway that stores conversations restores the turns before this runs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from wireglot_core.ir.content import Extra, Foreign, Media, Message, Part, Reasoning, Text, ToolResult
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.request import Request
from wireglot_core.ir.trail import Trail
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.fit.survey import FIELDS, FOREIGN

_NOTHING = frozenset({"content", "thought"})
"""Fields that every dialect has, kept when empty only to be written again unchanged: the empty text next to a
Chat message's calls, Gemini's mark that a part is not a thought."""


def declare_switches(request: Request, fitting: Fitting) -> Request:
    """Reports fields that another dialect's upstream never sees and renderers would skip: those that are
    false, zero or empty text."""
    for path, extra in _extras(request, fitting.trail, bool(fitting.seen & FIELDS)):
        if extra.dialect == fitting.dialect:
            continue
        for key, value in extra.fields.items():
            if value is None or value or isinstance(value, list | dict) or key in _NOTHING:
                continue
            fitting.lose(f"{path}.{key}", "unknown_field", "dropped", f"{extra.dialect} only")
    return request


def _extras(request: Request, trail: Trail, in_messages: bool) -> Iterator[tuple[str, Extra]]:
    """The extras that have fields. `in_messages`: whether the conversation can have any."""
    if request.extra is not None and request.extra.fields:
        yield "$", request.extra
    for path, setting in (
        ("$.thinking", request.thinking),
        ("$.output", request.output),
        ("$.tool_choice", request.tool_choice),
    ):
        if setting is not None and setting.extra is not None and setting.extra.fields:
            yield path, setting.extra
    for tool in request.tools:
        extra: Extra | None = getattr(tool, "extra", None)
        if extra is not None and extra.fields:
            yield trail.of(tool), extra
    if in_messages:
        yield from _extras_of_messages(request.messages, trail)


def _extras_of_messages(messages: tuple[Message, ...], trail: Trail) -> Iterator[tuple[str, Extra]]:
    for message in messages:
        if message.extra is not None and message.extra.fields:
            yield trail.of(message), message.extra
        for part in message.content:
            if type(part) is Foreign:
                continue
            if part.extra is not None and part.extra.fields:
                yield trail.of(part), part.extra
            if type(part) is ToolResult:
                for number, item in enumerate(part.content):
                    if type(item) is not Foreign and item.extra is not None and item.extra.fields:
                        yield f"{trail.of(part)}.content[{number}]", item.extra


_DETAIL = "the earlier turns are stored by the provider that issued this id"
_FIELDS: Final[dict[str, str]] = {
    "previous_response_id": _DETAIL,
    "previous_interaction_id": _DETAIL,
    "continuation_token": _DETAIL,
    "cached_content": _DETAIL,
    "conversation": _DETAIL,
    "prompt": _DETAIL,
    "cachedContent": _DETAIL,
    "thread": _DETAIL,
    "continuationToken": _DETAIL,
    "container": "files and skills are stored by the provider that issued this id",
}
"""Fields of a request that refer to something stored at its vendor, and what is missing without it."""
_VENDORS_OWN: Final[dict[str, str]] = {
    "agent": "agents run only at the provider that has them",
    "environment": "environments are stored by the provider that runs agents in them",
    "webhook_config": "webhooks are called only by the provider that offers them",
}
"""Fields of a request for features that only its vendor has: without them the answer is a different one."""
_MESSAGE_FIELDS: Final[dict[str, str]] = {
    "audio": "what was said is stored by the provider that issued this id",
}
_PARTS = ("item_reference",)

_ADDRESSES: Final[dict[str, str]] = {
    "gs://": "gemini",
    "files/": "gemini",
    "https://generativelanguage.googleapis.com/": "gemini",
}
"""Prefixes of addresses that only one issuer's servers can open (ai.google.dev/api/files,
cloud.google.com/storage, read 2026-11-17)."""
_BUCKETS: Final = ("ms://",)
"""Prefixes of addresses that hosts of the same dialect cannot open either, unless they belong to the vendor:
Moonshot's (platform.kimi.ai/docs/api/chat)."""
_WEB: Final = ("http://", "https://", "data:")


def without_state(request: Request, fitting: Fitting) -> Request:
    """The request without references to anything stored elsewhere, each reported as a loss."""
    extra = request.extra
    for name, why in _VENDORS_OWN.items() if extra is not None and extra.fields else ():
        if extra is not None and extra.fields.get(name):
            raise Unsupported(why, f"$.{name}")
    held = [] if extra is None or not extra.fields else [name for name in _FIELDS if extra.fields.get(name)]
    if extra is not None and held:
        for name in held:
            fitting.lose(f"$.{name}", "conversation_state", "dropped", _FIELDS[name])
        request = msgspec.structs.replace(request, extra=_without(extra, held))
    if not fitting.seen & (FOREIGN | FIELDS):
        return request
    messages = tuple(
        kept for message in request.messages if (kept := _without_references(message, fitting)) is not None
    )
    if len(messages) == len(request.messages) and all(map(operator.is_, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=messages)


_EMPTYING = ("conversation_state", "tool_result.pairing")
"""Losses that may leave nothing in a request to answer: turns stored elsewhere, and results whose calls
are."""


def refuse_nothing(request: Request, fitting: Fitting) -> Request:
    """A request of which only references remain cannot be sent to another provider."""
    if any(message.role != "system" and any(map(_says, message.content)) for message in request.messages):
        return request
    first = next((loss for loss in fitting.losses if loss.feature in _EMPTYING), None)
    if first is not None:
        raise Unsupported(f"nothing of the conversation is in the request: {first.detail}", first.path)
    return request


def _says(part: Part) -> bool:
    return type(part) is not Reasoning and (type(part) is not Text or bool(part.text))


def _without(extra: Extra, names: list[str]) -> Extra:
    fields = {name: value for name, value in extra.fields.items() if name not in names}
    return Extra(extra.dialect, fields, extra.form)


def _without_references(message: Message, fitting: Fitting) -> Message | None:
    extra, trail = message.extra, fitting.trail
    held = [] if extra is None else [name for name in _MESSAGE_FIELDS if extra.fields.get(name)]
    if extra is not None and held:
        for name in held:
            fitting.lose(f"{trail.of(message)}.{name}", "file_reference", "dropped", _MESSAGE_FIELDS[name])
        stripped = Message(message.role, message.content, message.name, _without(extra, held))
        trail.follow(message, stripped)
        message = stripped

    def kept(part: Part) -> Part | None:
        if type(part) is not Foreign or part.type not in _PARTS:
            return part
        fitting.lose(trail.of(part), "conversation_state", "dropped", _DETAIL)
        return None

    return next(iter(trail.changed_parts((message,), kept)), None)


# --- files


class _Host(NamedTuple):
    """The host that is to open a file."""

    issuer: str
    takes_ids: bool
    addresses: tuple[str, ...] | None
    own: bool
    """The request is in the host's own dialect: its client may have uploaded files there."""


def without_files(request: Request, fitting: Fitting) -> Request:
    """The request without files that the endpoint cannot open: those stored at another vendor under an id or
    at one of its addresses. Each is replaced by a note."""
    target, trail = fitting.target, fitting.trail
    issuer, own = target.client.issuer if target.client is not None else "", not target.foreign
    takes_ids = own or not issuer or (issuer == target.server.issuer and target.limits.file_ids)
    host = _Host(target.server.issuer, takes_ids, target.limits.file_addresses, own)

    def noted(part: Part) -> Part:
        if type(part) is Media and _is_closed(part, host):
            return _note(part, trail.of(part), fitting)
        if type(part) is not ToolResult:
            return part
        items = tuple(
            _note(item, f"{trail.of(part)}.content[{number}]", fitting)
            if type(item) is Media and _is_closed(item, host)
            else item
            for number, item in enumerate(part.content)
        )
        same = all(map(operator.is_, items, part.content))
        return part if same else msgspec.structs.replace(part, content=items)

    messages = trail.changed_parts(request.messages, noted)
    return request if messages is request.messages else msgspec.structs.replace(request, messages=messages)


def _note(media: Media, path: str, fitting: Fitting) -> Text:
    detail = "only its own provider can open it; replaced by a note"
    fitting.lose(path, "file_reference", "dropped", detail)
    return Text(f"[{media.kind} left out: only another provider can open it]", cache=media.cache)


def _is_closed(media: Media, host: _Host) -> bool:
    if media.url is None:
        return not host.takes_ids and media.file_id is not None
    address = media.url[:64].lower()
    if host.addresses is not None and address.startswith(host.addresses):
        return False
    if host.own:
        return host.addresses is not None and address.startswith(_BUCKETS)
    for beginning, owner in _ADDRESSES.items():
        if address.startswith(beginning):
            return owner != host.issuer
    return "://" in address and not address.startswith(_WEB)
