"""The events of a stream as text: of server-sent events, or the elements of a JSON array."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final

import msgspec

from wireglot.dialects.base import is_minted
from wireglot.dialects.envelope import is_sealed
from wireglot.wire.json import BadJson, decode

_GAP: Final = re.compile(r"\r\n\r\n|\n\n|\r\r")
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}]', re.DOTALL)
_PING: Final = "event: ping"
_UNTOLD: Final = frozenset({"id", "created", "created_at", "completed_at", "model", "modelVersion",
                            "responseId", "createTime", "item_id", "obfuscation"})  # fmt: skip
"""Addresses and times, which belong to one exchange rather than to what was said."""
_USAGE: Final = frozenset({"usage", "usageMetadata"})


class Unit(msgspec.Struct, frozen=True):
    text: str
    first: int
    """The number of the piece in which it begins."""
    frame: int
    """And of the one with its last byte."""
    end: int
    """Where it ends in the whole."""


def units_of(pieces: Iterable[str]) -> list[Unit]:
    """Of a stream that came in these pieces."""
    texts = list(pieces)
    ends = list(accumulate(map(len, texts)))
    whole = "".join(texts)
    return [
        Unit(whole[begin:end], bisect_right(ends, begin), bisect_left(ends, end), end)
        for begin, end in (_elements(whole) if whole.lstrip()[:1] in ("[", "{") else _events(whole))
    ]


def _events(whole: str) -> Iterable[tuple[int, int]]:
    begin = 0
    for gap in _GAP.finditer(whole):
        yield begin, gap.end()
        begin = gap.end()
    if begin < len(whole):
        yield begin, len(whole)


def _elements(whole: str) -> Iterable[tuple[int, int]]:
    depth = begin = 0
    for token in _TOKEN.finditer(whole):
        if token[0] == "{":
            begin = begin if depth else token.start()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if not depth:
                yield begin, token.end()


def is_keep_alive(text: str) -> bool:
    """Whether it says nothing: empty lines, comments, a ping."""
    lines = text.split("\n", 2) if text.startswith(_PING) else text.splitlines()
    return lines[:1] == [_PING] or all(not line or line.isspace() or line.startswith(":") for line in lines)


def same_unit(one: str, other: str) -> bool:
    """Whether two events say the same: ids that we make up, times and counts aside."""
    if one == other:
        return True
    (kind, said), (other_kind, other_said) = _read(one), _read(other)
    if kind != other_kind:
        return False
    try:
        return _agree(decode(said), decode(other_said))
    except BadJson:
        return said == other_said


def _read(text: str) -> tuple[str, str]:
    kind, data = "", []
    if text.lstrip()[:1] in ("{", "["):
        return kind, text
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data.append(value.strip())
    return kind, "\n".join(data)


def _agree(one: Any, other: Any) -> bool:
    stack = [(one, other)]
    while stack:
        left, right = stack.pop()
        if type(left) is dict and type(right) is dict:
            names = left.keys() - _UNTOLD - _USAGE
            if names != right.keys() - _UNTOLD - _USAGE:
                return False
            stack += [(left[name], right[name]) for name in names]
        elif type(left) is list and type(right) is list:
            if len(left) != len(right):
                return False
            stack += zip(left, right, strict=True)
        elif type(left) is str and type(right) is str:
            if left != right and not (_is_made_up(left) and _is_made_up(right)):
                return False
        elif not (_is_number(left) and _is_number(right)) and left != right:
            return False
    return True


def _is_made_up(text: str) -> bool:
    return is_minted(text) or is_sealed(text)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
