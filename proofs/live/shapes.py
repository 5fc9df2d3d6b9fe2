"""What answers to the same request are compared by: places, and kinds of values; never their contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from wireglot.probe.endpoint import Got
from wireglot.probe.wires.wire import Wire
from wireglot_core.wire.json import BadJson, decode

# Different places of one answer that are compared: a vendor's answer with more is compared up to here.
MAX_PLACES: Final = 5_000

# Levels of an answer that are compared: below, a value counts as its kind.
MAX_LEVELS: Final = 24

Shape = dict[str, set[str]]
"""Place -> the kinds of values that were seen there."""

_FREE: Final = frozenset({"input", "arguments", "args", "partial_json"})
"""Fields whose content the model chooses."""
_NAMES: Final = ("type", "object", "role")
"""Fields whose values are names of the dialect, and tell apart what stands in one list."""


class Difference(msgspec.Struct, frozen=True, order=True):
    """`ours` and `theirs`: kinds of values; empty where there is none."""

    place: str
    theirs: tuple[str, ...]
    ours: tuple[str, ...]


def shape_of(got: Got, wire: Wire) -> Shape:
    """Its status, its content type and its fields; of a stream those of all its events."""
    kind = got.headers.get("content-type", "").partition(";")[0].strip()
    shape: Shape = {"status": {str(got.status)}, "content-type": {kind}}
    for document, name in _documents(got, wire, kind):
        _walk(document, name, shape, 0)
    return shape


def differences(theirs: Shape, ours: Shape) -> list[Difference]:
    return [
        Difference(place, tuple(sorted(theirs.get(place, ()))), tuple(sorted(ours.get(place, ()))))
        for place in sorted(theirs.keys() | ours.keys())
        if theirs.get(place, set()) != ours.get(place, set())
    ]


def _documents(got: Got, wire: Wire, kind: str) -> Iterator[tuple[Any, str]]:
    if got.status == 200 and kind == wire.stream_type:
        for frame in wire.frames(got.body):
            if not frame.data:
                continue
            document = frame.document()
            named = document.get("type", document.get("event_type")) if isinstance(document, dict) else None
            if document is None:
                yield "", f"<{frame.data[:20]}>"  # `[DONE]`
            else:
                yield document, f"<{named if isinstance(named, str) else 'event'}>"
        return
    try:
        yield decode(got.body), "$"
    except BadJson:
        yield "", "<no JSON>"


def _walk(value: Any, place: str, shape: Shape, level: int) -> None:
    if place not in shape and len(shape) >= MAX_PLACES:
        return
    shape.setdefault(place, set()).add(_kind(value))
    if level == MAX_LEVELS:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _FREE:
                shape.setdefault(f"{place}.{name}", set()).add(_kind(inner))
            elif name in _NAMES and isinstance(inner, str):
                shape.setdefault(f"{place}.{name}", set()).add(inner)
            else:
                _walk(inner, f"{place}.{name}", shape, level + 1)
    elif isinstance(value, list):
        for inner in value:
            named = inner.get("type") if isinstance(inner, dict) else None
            _walk(inner, f"{place}[{named if isinstance(named, str) else ''}]", shape, level + 1)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list" if value else "empty list"
        case _:
            return "object"


def merged(shapes: Iterable[Shape]) -> Shape:
    """Of several answers: a request that was asked for again counts as one."""
    whole: Shape = {}
    for shape in shapes:
        for place, kinds in shape.items():
            whole.setdefault(place, set()).update(kinds)
    return whole
