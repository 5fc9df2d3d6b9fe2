"""Turns and files that only the source's own vendor holds: their ids are never sent to another one.

A gateway that keeps conversations puts the turns back before this runs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from wireglot.ir.content import Extra, Foreign, Media, Message, Part, Text, ToolResult
from wireglot.ir.errors import Unsupported
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail
from wireglot.providers.limits import Limits

_NOTHING = frozenset({"content", "thought"})
"""Fields everybody knows, kept where they are empty only to be written again as they were: the empty text
beside a Chat message's calls, Gemini's mark that a part is no thought."""


def declare_switches(
    request: Request, dialect: str, losses: list[Loss], trail: Trail, in_messages: bool = True
) -> None:
    """`dialect` is that of the upstream; it gets its own fields as they are. `in_messages`: whether there can
    be any among the parts of the conversation."""
    for path, extra in _extras(request, trail, in_messages):
        if extra.dialect == dialect:
            continue
        for key, value in extra.fields.items():
            if value is None or value or isinstance(value, list | dict) or key in _NOTHING:
                continue
            losses.append(Loss(f"{path}.{key}", "unknown_field", "dropped", f"{extra.dialect} only"))


def _extras(request: Request, trail: Trail, in_messages: bool) -> Iterator[tuple[str, Extra]]:
    """Those that have fields."""
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
    for message in request.messages if in_messages else ():
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


_DETAIL = "the earlier turns are held by the provider that minted this id"
_FIELDS: Final[dict[str, str]] = {
    "previous_response_id": _DETAIL,
    "conversation": _DETAIL,
    "prompt": _DETAIL,
    "cachedContent": _DETAIL,
    "thread": _DETAIL,
    "continuationToken": _DETAIL,
    "container": "files and skills are held by the provider that minted this id",
}
"""Fields of a request that name something which only its vendor holds, and what is missing without it."""
_MESSAGE_FIELDS: Final[dict[str, str]] = {
    "audio": "what was said is held by the provider that minted this id",
}
_PARTS = ("item_reference",)

_ADDRESSES: Final[dict[str, str]] = {
    "gs://": "gemini",
    "files/": "gemini",
    "https://generativelanguage.googleapis.com/": "gemini",
}
"""How addresses begin that only one issuer's servers open (ai.google.dev/api/files, cloud.google.com/storage,
read 2026-11-17)."""
_BUCKETS: Final = ("ms://",)
"""Those that also hosts of the same dialect cannot open, unless they are their vendor's: Moonshot's
(platform.kimi.ai/docs/api/chat)."""
_WEB: Final = ("http://", "https://", "data:")


def without_state(request: Request, losses: list[Loss], trail: Trail, in_messages: bool) -> Request:
    """The request without its references to what is held elsewhere, each declared. `in_messages`: whether
    there can be any in the conversation."""
    extra = request.extra
    held = [] if extra is None or not extra.fields else [name for name in _FIELDS if extra.fields.get(name)]
    if extra is not None and held:
        losses.extend(Loss(f"$.{name}", "conversation_state", "dropped", _FIELDS[name]) for name in held)
        request = msgspec.structs.replace(request, extra=_without(extra, held))
    if not in_messages:
        return request
    messages = tuple(
        kept
        for message in request.messages
        if (kept := _without_references(message, losses, trail)) is not None
    )
    if len(messages) == len(request.messages) and all(map(operator.is_, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=messages)


_EMPTYING = ("conversation_state", "tool_result.pairing")
"""What leaves a request without anything to answer: turns kept elsewhere, results whose calls are."""


def refuse_nothing(request: Request, losses: list[Loss]) -> None:
    """A request of which only its references remain cannot be asked of anyone else."""
    if not losses or any(
        message.role != "system" and any(map(_says, message.content)) for message in request.messages
    ):
        return
    first = next((loss for loss in losses if loss.feature in _EMPTYING), None)
    if first is not None:
        raise Unsupported(f"nothing of the conversation is in the request: {first.detail}", first.path)


def _says(part: Part) -> bool:
    return type(part) is not Text or bool(part.text)


def _without(extra: Extra, names: list[str]) -> Extra:
    fields = {name: value for name, value in extra.fields.items() if name not in names}
    return Extra(extra.dialect, fields, extra.form)


def _without_references(message: Message, losses: list[Loss], trail: Trail) -> Message | None:
    extra = message.extra
    held = [] if extra is None else [name for name in _MESSAGE_FIELDS if extra.fields.get(name)]
    if extra is not None and held:
        losses.extend(
            Loss(f"{trail.of(message)}.{name}", "file_reference", "dropped", _MESSAGE_FIELDS[name])
            for name in held
        )
        stripped = Message(message.role, message.content, message.name, _without(extra, held))
        trail.follow(message, stripped)
        message = stripped
    if not any(type(part) is Foreign and part.type in _PARTS for part in message.content):
        return message
    content = []
    for part in message.content:
        if type(part) is Foreign and part.type in _PARTS:
            losses.append(Loss(trail.of(part), "conversation_state", "dropped", _DETAIL))
        else:
            content.append(part)
    if not content:
        return None
    kept = Message(message.role, tuple(content), message.name, message.extra)
    trail.follow(message, kept)
    return kept


# --- files


class _Host(NamedTuple):
    """Who is asked to open a file."""

    issuer: str
    takes_ids: bool
    addresses: tuple[str, ...] | None
    own: bool


def without_files(
    request: Request,
    losses: list[Loss],
    trail: Trail,
    issuer: str,
    target: str,
    limits: Limits,
    *,
    own: bool,
) -> Request:
    """The request without the files that `target` cannot open: those that another vendor has under an id, or
    at an address of its own. A note takes the place of each. `own`: the request is of the target's own
    dialect, and its client may have uploaded files there."""
    takes_ids = own or not issuer or (issuer == target and limits.file_ids)
    host = _Host(target, takes_ids, limits.file_addresses, own)
    messages = tuple(_with_notes(message, losses, trail, host) for message in request.messages)
    if all(map(operator.is_, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=messages)


def _with_notes(message: Message, losses: list[Loss], trail: Trail, host: _Host) -> Message:
    content: list[Part] = []
    for part in message.content:
        new: Part = part
        if type(part) is Media and _is_closed(part, host):
            new = _note(part, trail.of(part), losses)
        elif type(part) is ToolResult:
            items = tuple(
                _note(item, f"{trail.of(part)}.content[{number}]", losses)
                if type(item) is Media and _is_closed(item, host)
                else item
                for number, item in enumerate(part.content)
            )
            if not all(map(operator.is_, items, part.content)):
                new = msgspec.structs.replace(part, content=items)
        trail.follow(part, new)
        content.append(new)
    if all(map(operator.is_, content, message.content)):
        return message
    kept = Message(message.role, tuple(content), message.name, message.extra)
    trail.follow(message, kept)
    return kept


def _note(media: Media, path: str, losses: list[Loss]) -> Text:
    detail = "only its own provider can open it; a note stands in its place"
    losses.append(Loss(path, "file_reference", "dropped", detail))
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
