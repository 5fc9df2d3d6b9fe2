"""Thoughts that nobody signed, carried by clients of other dialects as what is signed is: sealed.

A Chat provider's `reasoning_content` has no signature, nor have Gemini's summaries, and whoever wrote them
gets them back with the next question. Told to a client of another dialect, such a thought is given a
signature that is no proof but a name: who wrote it, and how it was spelled there. It comes back in the field
in which clients of that dialect carry state, is the plain thought again, and goes to nobody else.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.ir.content import UNSIGNED, Extra, Message, Origin, Part, Reasoning, Signature
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request
from wireglot.ir.stream import Event, OtherAnswer, PartEnd, PartStart
from wireglot.wire.json import BadJson, decode, encode_text

_THE_TEXT: Final = "\x1a"
"""In a spelling, where the thought's own text stands: the client carries that anyway. No JSON holds it."""


def with_minter(response: Response, minter: Origin) -> Response:
    """The answer as a client of another dialect is told it."""
    content = _named(response.content, minter)
    others = tuple(replace(other, content=_named(other.content, minter)) for other in response.others)
    return replace(response, content=content, others=others)


def _named(content: tuple[Part, ...], minter: Origin) -> tuple[Part, ...]:
    return tuple(
        replace(part, signature=_name(part, minter)) if _is_unsigned(part) else part for part in content
    )


def _is_unsigned(part: Part) -> bool:
    return type(part) is Reasoning and part.signature is None and not part.redacted


def _name(part: Part, minter: Origin) -> Signature:
    assert type(part) is Reasoning
    extra = part.extra
    spelling = ""
    if extra is not None and extra.dialect == minter.dialect and extra.form:
        spelling = encode_text(extra.form)
        if part.text:
            spelling = spelling.replace(encode_text(part.text), _THE_TEXT)
    return Signature(spelling, minter, UNSIGNED)


class MinterNamer:
    """The same for the events of a stream."""

    def __init__(self, minter: Origin) -> None:
        self._minter = minter
        self._open: dict[int, Reasoning] = {}

    def events(self, events: list[Event]) -> list[Event]:
        """The list itself where there is nothing to name, as mostly: a thought is many deltas."""
        for event in events:
            kind = type(event)
            if kind is PartStart or kind is PartEnd or kind is OtherAnswer:
                return [self._event(event) for event in events]
        return events

    def _event(self, event: Event) -> Event:
        if type(event) is PartStart:
            part = event.part
            if type(part) is Reasoning and _is_unsigned(part):
                self._open[event.index] = part
        elif type(event) is PartEnd:
            thought = self._open.pop(event.index, None)
            if thought is not None and event.signature is None:
                if event.extra is not None:
                    thought = replace(thought, extra=event.extra)
                return replace(event, signature=_name(thought, self._minter))
        elif type(event) is OtherAnswer:
            return OtherAnswer(replace(event.answer, content=_named(event.answer.content, self._minter)))
        return event


def brought_back(request: Request) -> Request:
    """The request with such thoughts as what they were: unsigned, and it is known who wrote them."""
    if not any(_is_named(part) for message in request.messages for part in message.content):
        return request
    return replace(request, messages=tuple(map(_opened, request.messages)))


def _is_named(part: Part) -> bool:
    return type(part) is Reasoning and part.signature is not None and part.signature.id == UNSIGNED


def _opened(message: Message) -> Message:
    if not any(map(_is_named, message.content)):
        return message
    return replace(message, content=tuple(map(_thought, message.content)))


def _thought(part: Part) -> Part:
    if not _is_named(part):
        return part
    assert type(part) is Reasoning
    assert part.signature is not None
    name = part.signature
    extra = part.extra
    if name.data and (extra is None or not extra.fields):
        extra = _spelling(name, part.text) or extra
    return Reasoning(part.text, extra=extra, minter=name.origin)


def _spelling(name: Signature, text: str) -> Extra | None:
    try:
        form = decode(name.data.replace(_THE_TEXT, encode_text(text)))
    except BadJson:
        return None
    return Extra(name.origin.dialect, form=form) if type(form) is dict else None
