"""Paths into a JSON document, as RFC 9535 writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from json import JSONDecoder
from typing import Any, Final

from wireglot_core.wire.json import encode_text

PATH_LONGEST: Final = 512
"""Maximum characters of a path. A key can be as long as a body may be: a path ends before it exceeds this."""

_DECODER = JSONDecoder()
_INDEX = re.compile(r"\[(\d+)\]")
_SHORT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A member name that may follow a dot; all others are written in brackets and quotes."""


def resolved(document: Any, path: str, snake: bool = False) -> tuple[str, str]:
    """The longest prefix of a path that exists in a document, and the rest. Keys may contain dots: the
    longest one wins."""
    value, rest, way = document, path.removeprefix("$"), "$"
    while rest:
        step = _step(value, rest, snake)
        if step is None:
            break
        text, value, length = step
        if len(way) + len(text) > PATH_LONGEST:
            break
        way += text
        rest = rest[length:]
    return way, rest


def _step(value: Any, rest: str, snake: bool) -> tuple[str, Any, int] | None:
    if type(value) is list:
        found = _INDEX.match(rest)
        if found is None or int(found[1]) >= len(value):
            return None
        return found[0], value[int(found[1])], found.end()
    if type(value) is not dict:
        return None
    if rest[0] == "[":
        return _quoted_step(value, rest)
    if rest[0] != ".":
        return None
    # A longer key ends the path.
    end = len(rest) if len(rest) <= PATH_LONGEST else _last_end(rest, PATH_LONGEST)
    while end > 1:
        key = rest[1:end]
        if key in value:
            return written(key), value[key], end
        if snake and (other := snake_case(key)) in value:
            return written(other), value[other], end
        end = _last_end(rest, end)
    return None


def _last_end(rest: str, before: int) -> int:
    return max(rest.rfind(".", 1, before), rest.rfind("[", 1, before))


def _quoted_step(value: dict[str, Any], rest: str) -> tuple[str, Any, int] | None:
    try:
        key, end = _DECODER.raw_decode(rest, 1) if rest.startswith('["') else ("", 0)
    except ValueError:
        return None
    if end and rest.startswith("]", end) and key in value:
        return written(key), value[key], end + 1
    # A single value in place of a list, which proto-JSON allows.
    return ("", value, 3) if rest.startswith("[0]") else None


def written(key: str) -> str:
    """One step, by a key."""
    return f".{key}" if _SHORT_NAME.fullmatch(key) else f"[{encode_text(key)}]"


def snake_case(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def joined(path: str, rest: str) -> str:
    if not rest:
        return path
    return path + rest if rest[0] == "[" else f"{path}.{rest}"


def nearest(document: Any, paths: Sequence[str], snake: bool = False) -> str:
    """The first path that exists in the document; else the one whose longest prefix exists, cut to that
    prefix."""
    best, most = "$", -1
    for path in paths:
        found, left = resolved(document, path, snake)
        if not left:
            return found
        steps = found.count(".") + found.count("[")
        if steps > most:
            best, most = found, steps
    return best
