"""Parts of a conversation with a mark in each: whatever a renderer does with them, the marks tell where they
went.

A part that stands upstream under another name, in another turn or joined with its neighbours cannot be found
by its text: texts come twice, and some are rewritten. So the same request is rendered once more with a mark
before each part's content, and the marks are looked for. That holds only where the marked document has the
shape of the real one, which is compared (`same_shape`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from wireglot.ir.content import (
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot.traces.pointer import Steps
from wireglot.wire.json import encode

_DIGITS: Final = 6
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_PLAIN_KEYS: Final = 64

Place = tuple[int, int, int]
"""A message, a part of it, and an item of that result or -1."""


class Marker:
    """Marks that stand nowhere in a document yet. Each is nine letters: in base64 it stays one piece."""

    __slots__ = ("_encoded", "_plain", "_word", "places")

    def __init__(self, *documents: Any) -> None:
        texts = [encode(document) for document in documents]
        words = (f"W{one}{two}" for one in _LETTERS for two in _LETTERS)
        self._word = next(word for word in words if not any(word.encode() in text for text in texts))
        self._plain = re.compile(rf"{self._word}(\d{{{_DIGITS}}})")
        begins = base64.b64encode(self._word.encode()).decode()
        self._encoded = re.compile(rf"{re.escape(begins)}[A-Za-z0-9+/]{{8}}")
        self.places: list[Place] = []

    def _next(self, place: Place) -> str:
        self.places.append(place)
        return f"{self._word}{len(self.places) - 1:0{_DIGITS}}"

    def marked(self, messages: Iterable[Message], *, blank: bool, opaque: bool) -> tuple[Message, ...]:
        """`blank`: also parts that say nothing. `opaque`: also what only its own dialect reads."""
        return tuple(
            replace(message, content=self.parts(message.content, number, blank=blank, opaque=opaque))
            for number, message in enumerate(messages)
        )

    def parts(self, content: Iterable[Part], number: int, *, blank: bool, opaque: bool) -> tuple[Part, ...]:
        return tuple(
            self._part(part, (number, at, -1), blank=blank, opaque=opaque) for at, part in enumerate(content)
        )

    def _part(self, part: Part, place: Place, *, blank: bool, opaque: bool) -> Part:
        match part:
            case ToolCall():
                return replace(part, arguments=self._arguments(part, place))
            case ToolResult():
                return self._result(part, place, blank=blank, opaque=opaque)
            case Reasoning():
                return self._reasoning(part, place, opaque=opaque)
            case Text() | Media() | Foreign():
                return self._plain_part(part, place, blank=blank, opaque=opaque)

    def _plain_part(self, part: ResultPart, place: Place, *, blank: bool, opaque: bool) -> ResultPart:
        match part:
            case Text():
                if not part.text.strip() and not blank:
                    return part
                return replace(part, text=self._next(place) + part.text)
            case Media():
                return self._media(part, place)
            case Foreign():
                return replace(part, value={self._next(place): 0, **part.value}) if opaque else part

    def _media(self, part: Media, place: Place) -> Media:
        mark = self._next(place)
        if part.data is not None:
            return replace(part, data=base64.b64encode(mark.encode()).decode() + part.data)
        if part.text is not None:
            return replace(part, text=mark + part.text)
        if part.url is not None:
            return replace(part, url=f"{part.url}#{mark}")
        return replace(part, file_id=f"{part.file_id or ''}{mark}")

    def _reasoning(self, part: Reasoning, place: Place, *, opaque: bool) -> Reasoning:
        if part.text and not part.redacted:
            return replace(part, text=self._next(place) + part.text)
        if part.signature is None or not opaque:
            return part
        name = part.signature
        return replace(part, signature=Signature(self._next(place) + name.data, name.origin, name.id))

    def _arguments(self, call: ToolCall, place: Place) -> str:
        text, mark = call.arguments.strip(), self._next(place)
        if call.kind == "custom" or not (text.startswith("{") or not text):
            return mark + call.arguments
        inside = text[1:].lstrip()
        return f'{{"{mark}":0}}' if not inside or inside == "}" else f'{{"{mark}":0,{inside}'

    def _result(self, part: ToolResult, place: Place, *, blank: bool, opaque: bool) -> ToolResult:
        number, at, _ = place
        content = tuple(
            self._plain_part(item, (number, at, index), blank=blank, opaque=opaque)
            for index, item in enumerate(part.content)
        )
        return replace(part, content=content)

    def found(self, document: Any) -> dict[Place, list[Steps]]:
        """Where the marks stand in a document: of a text the text itself, of a name what holds it."""
        out: dict[Place, list[Steps]] = {}
        stack: list[tuple[Steps, Any]] = [((), document)]
        while stack:
            at, value = stack.pop()
            if type(value) is str:
                for number in self._numbers(value):
                    out.setdefault(self.places[number], []).append(at)
            elif type(value) is list:
                stack += [((*at, index), item) for index, item in reversed(list(enumerate(value)))]
            elif type(value) is dict:
                for key in value:
                    for number in self._numbers(key) if len(key) <= _PLAIN_KEYS else ():
                        out.setdefault(self.places[number], []).append(at)
                stack += [((*at, key), item) for key, item in reversed(value.items())]
        return out

    def _numbers(self, text: str) -> list[int]:
        numbers = [int(found[1]) for found in self._plain.finditer(text)]
        for found in self._encoded.finditer(text):
            plain = self._plain.fullmatch(base64.b64decode(found[0]).decode("utf-8", "replace"))
            if plain is not None:
                numbers.append(int(plain[1]))
        return [number for number in numbers if number < len(self.places)]

    def same_shape(self, marked: Any, real: Any) -> bool:
        """Whether two documents have the same members and items, apart from members that are marks."""
        stack = [(marked, real)]
        while stack:
            one, other = stack.pop()
            if type(one) is dict and type(other) is dict:
                names = [key for key in one if not self._plain.match(key)]
                if len(names) != len(other) or any(key not in other for key in names):
                    return False
                stack += [(one[key], other[key]) for key in names]
            elif type(one) is list and type(other) is list:
                if len(one) != len(other):
                    return False
                stack += zip(one, other, strict=True)
            elif _container(one) is not _container(other):
                return False
        return True


def _container(value: Any) -> type | None:
    """What a value is, as far as places go by it."""
    kind = type(value)
    return kind if kind in (dict, list, str) else None
