"""JSON for reading: as much on a line as fits, long strings cut short."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import msgspec

from wireglot.wire.json import encode_text

_STEP = 2
_SCHEMAS = frozenset({"input_schema", "parameters", "parametersJsonSchema"})
_LIMITS = (60, 40, 28, 18)
"""How much of each string to show, tried in turn until a small value fits on a line."""
_SMALL = 5  # leaves; what has more is opened instead


def outline(value: Any, width: int) -> list[str]:
    """The lines of a JSON value, none longer than `width`."""
    return [_cut(line, width) for line in _lines(value, "", 0, width, "")]


def side_by_side(left: list[str], right: list[str], width: int) -> list[str]:
    return [f"{one.ljust(width)} | {other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")]


def _lines(value: Any, label: str, indent: int, width: int, tail: str) -> list[str]:
    start = " " * indent + label
    line = start + _text(value) + tail
    if len(line) <= width:
        return [line]
    if isinstance(value, str):
        return [start + _text(_abridged(value, width - len(start + tail) - 2)) + tail]
    if not isinstance(value, (dict, list)) or label[1:-3] in _SCHEMAS:  # a label is `"name": `
        return [line]
    if _leaves(value) <= _SMALL:
        for limit in _LIMITS:
            line = start + _text(_abridged(value, limit)) + tail
            if len(line) <= width:
                return [line]
    return [
        start + ("{" if isinstance(value, dict) else "["),
        *_inner(value, indent + _STEP, width),
        " " * indent + ("}" if isinstance(value, dict) else "]") + tail,
    ]


def _inner(value: dict[str, Any] | list[Any], indent: int, width: int) -> list[str]:
    if isinstance(value, dict):
        items = [(f"{_text(key)}: ", item) for key, item in value.items()]
    else:
        items = [("", item) for item in value]
    lines: list[str] = []
    for number, (label, item) in enumerate(items, 1):
        lines += _lines(item, label, indent, width, "," if number < len(items) else "")
    return lines


def _text(value: Any) -> str:
    return msgspec.json.format(encode_text(value), indent=0)


def _abridged(value: Any, limit: int) -> Any:
    match value:
        case str():
            return value if len(value) <= limit else value[: max(limit - 1, 0)] + "…"
        case dict():
            return {key: _abridged(item, limit) for key, item in value.items()}
        case list():
            return [_abridged(item, limit) for item in value]
        case _:
            return value


def _leaves(value: Any) -> int:
    match value:
        case dict():
            return sum(map(_leaves, value.values()))
        case list():
            return sum(map(_leaves, value))
        case _:
            return 1


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
