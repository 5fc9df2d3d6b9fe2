"""Bad inputs made of good ones: bytes, lines, JSON values. The same for the same chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from wireglot_core.testing.check_dialect import STRANGE
from wireglot_core.wire.json import BadJson, decode, encode

MAX_BYTES: Final = 64 * 1024
"""An input grows no further: large bodies have a trial of their own."""

_DEEP: Final = 140
"""Deeper than any JSON that is read."""
_NUMBERS: Final = (b"0", b"-1", b"1e999", b"2147483648", b"18446744073709551616", b"0.1", b"-0", b"1" * 400)


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [{"content": value}]
    return value


VALUES: Final[tuple[Any, ...]] = (
    *STRANGE,
    -(2**63),
    2**64,
    1e308,
    "\ud800",
    "\u0000",
    "\u2028",
    "a" * 5000,
    "data:image/png;base64,AAAA",
    "{",
    '{"a": 1}',
    "auto",
    "null",
    _nested(12),
    _nested(_DEEP // 2),
    {"type": "text", "text": "x"},
    {"type": "object", "properties": {"a": {"$ref": "#"}}},
    ["x"] * 300,
)


class Mutator:
    """`words`: what means something in this kind of input."""

    def __init__(self, chance: Random, words: Sequence[bytes]) -> None:
        self.chance = chance
        self._words = (*words, *_NUMBERS)

    def of_bytes(self, data: bytes, other: bytes) -> bytes:
        """One to four changes; `other` is another input, to take pieces from."""
        for _ in range(self.chance.choice((1, 1, 1, 2, 2, 4))):
            data = self._changed(data, other)
        return data[:MAX_BYTES]

    def of_lines(self, data: bytes, other: bytes, end: bytes = b"\n") -> bytes:
        """Whole lines (or frames) dropped, doubled, swapped, taken from another, or changed inside."""
        chance = self.chance
        lines = data.split(end)
        for _ in range(chance.choice((1, 1, 2, 3))):
            at = chance.randrange(len(lines))
            match chance.randrange(6):
                case 0 if len(lines) > 1:
                    del lines[at]
                case 1:
                    lines.insert(chance.randrange(len(lines) + 1), lines[at])
                case 2:
                    to = chance.randrange(len(lines))
                    lines[at], lines[to] = lines[to], lines[at]
                case 3:
                    lines.insert(at, chance.choice(other.split(end)))
                case _:
                    lines[at] = self._changed(lines[at], other)
        return end.join(lines)[:MAX_BYTES]

    def of_json(self, data: bytes, other: bytes) -> bytes:
        """Values inside removed, replaced by strange ones, by others of the same document, or grafted."""
        try:
            document = decode(data)
        except BadJson:
            return self.of_bytes(data, other)
        chance = self.chance
        for turn in range(chance.choice((1, 1, 1, 2, 3))):
            if turn:
                document = _fresh(document)
            places = _places(document)
            if not places:
                return encode(chance.choice(VALUES))
            container, key = chance.choice(places)
            match chance.randrange(8):
                case 0 | 1:
                    del container[key]
                case 2:
                    taken = chance.choice(places)
                    container[key] = _fresh(_at(taken))
                case 3:
                    container[key] = self._grafted(other)
                case 4 if isinstance(container, dict):
                    container[self._word().decode("utf-8", "replace")] = _fresh(container[key])
                case 5 if isinstance(container, list):
                    container[key:key] = _fresh(container[key : key + 1]) * chance.choice((1, 1, 30))
                case 6 if isinstance(container[key], str):
                    container[key] = self._text(container[key])
                case _:
                    container[key] = chance.choice(VALUES)
        return encode(document)[:MAX_BYTES]

    def _grafted(self, other: bytes) -> Any:
        try:
            found = decode(other)
        except BadJson:
            return self.chance.choice(VALUES)
        places = _places(found)
        return _at(self.chance.choice(places)) if places else found

    def _text(self, text: str) -> str:
        changed = self._changed(text.encode("utf-8", "replace"), b"")
        return changed.decode("utf-8", self.chance.choice(("replace", "ignore")))

    def _word(self) -> bytes:
        return self.chance.choice(self._words)

    def _changed(self, data: bytes, other: bytes) -> bytes:
        chance = self.chance
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.choice((1, 1, 2, 4, 16, 200)))
        match chance.randrange(10):
            case 0:
                return data[:at] + data[to:]
            case 1:
                return data[:at] + data[at:to] * chance.choice((2, 2, 3, 50)) + data[to:]
            case 2 | 3:
                return data[:at] + self._word() + data[to if chance.random() < 0.5 else at :]
            case 4:
                return data[:at]
            case 5:
                return data[:at] + chance.randbytes(chance.choice((1, 1, 2, 8))) + data[to:]
            case 6 if other:
                begin = chance.randrange(len(other))
                piece = other[begin : begin + chance.choice((4, 16, 64, 1000))]
                return data[:at] + piece + data[to if chance.random() < 0.5 else at :]
            case 7 if at < len(data):
                return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]
            case 8:
                from_here = chance.randrange(len(data) + 1)
                return data[:at] + data[from_here : from_here + to - at] + data[to:]
            case _:
                return data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :]


def _fresh(document: Any) -> Any:
    """So that nothing of it is a value of ours, or stands in it twice."""
    try:
        return decode(encode(document), 4 * _DEEP)
    except BadJson:
        return []


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value] if isinstance(value, dict | list) else []
    while waiting:
        holder = waiting.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def _at(place: tuple[Any, Any]) -> Any:
    container, key = place
    return container[key]
