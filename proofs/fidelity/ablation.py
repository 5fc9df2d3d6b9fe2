"""Field ablation: what nobody would miss was ignored in silence.

A field of a request, an answer or a stream is taken away, and the document is translated again. If neither
the output nor the losses change, the field was neither carried nor declared. A number is changed too, before
it is called ignored: what can be reckoned from others is not missed. An object or a list of objects says
what its fields say, and an empty one nothing. Exceptions are named in `IGNORED` and `ELSEWHERE`, each with
its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, NamedTuple

from proofs.fidelity.ignored import ELSEWHERE, IGNORED, OPAQUE, Ignored
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.testing.check_dialect import Case
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import BadJson, decode, encode

Kind = Literal["requests", "responses", "streams"]
Place = tuple[str | int, ...]
Outcome = tuple[object, tuple[Loss, ...]]
Change = Callable[[Any], Any]

_FAILED: Outcome = ("failed", ())
_GONE = object()
_WHOLE = frozenset(
    {"audio", "document", "file_reference", "foreign_part", "image", "tool_result.media", "video"}
)
"""Features of losses that speak of a part as a whole."""
_NO_TOOL = ("hosted_tool", "dropped")
_FRAME_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_SAME_OBJECT = {"item": "output[]", "part": "content[]", "response": "", "message": ""}
"""Names under which a stream repeats objects of the whole answer: taken away there and here at once."""


class Silent(NamedTuple):
    """A field that was ignored in silence: of which case, toward whom, where, and what it said."""

    case: str
    target: DialectName
    path: str
    value: str


def silent_fields(case: Case, kind: Kind, target: DialectName) -> Iterator[Silent]:
    """Every field of the case that `target` neither gets nor is asked to miss."""
    if kind == "streams":
        yield from _silent_in_stream(case, target)
        return
    if kind == "responses" and dialect(case.dialect).parse_error(case.body) is not None:
        return
    translate = _request if kind == "requests" else _response
    whole = translate(case, case.body, target)
    if whole is _FAILED or (kind == "responses" and _is_error(whole, target)):
        return
    reported = _reported_whole(whole)
    seen: dict[tuple[str, str], bool] = {}  # a field with such a value -> whether it was reported as missing
    declared: list[Place] = []
    for place, value in _fields(case.body, answers=kind == "responses"):
        path = spelled(place)
        if any(place[: len(outer)] == outer for outer in declared) or not reported.isdisjoint(place[:-1]):
            continue
        if isinstance(place[-1], int):
            if _is_declared(whole, translate(case, _without(case.body, place), target)):
                declared.append(place)
            continue
        key = (path, _kind_of(value))
        if key in seen:
            if seen[key]:
                declared.append(place)
            continue
        ignored = is_ignored(case.dialect, kind, path, value, target)
        if ignored is not None:
            if ignored.inside:
                declared.append(place)
            continue
        outcome = translate(case, _without(case.body, place), target)
        seen[key] = outcome[0] == whole[0] and outcome != whole
        if seen[key]:
            declared.append(place)
        elif outcome == whole and not _has_fields(place, value):
            declared.append(place)
            if (
                _says_something(value)
                and all(  # else reported once for all
                    translate(case, _changed_any(case.body, path, change), target) == whole
                    for change in _changes(value)
                )
                and not is_said_elsewhere(case.dialect, path, target, case.body, whole)
            ):
                yield Silent(case.id, target, path, _short(value))


def _is_error(outcome: Outcome, target: DialectName) -> bool:
    """Whether the answer could not be reported at all: that is reported instead."""
    return isinstance(outcome[0], bytes) and dialect(target).parse_error(decode(outcome[0])) is not None


def _reported_whole(outcome: Outcome) -> set[str]:
    """Names of fields that were reported as missing with all that is in them."""
    reported = set()
    for loss in outcome[1]:
        if loss.action == "dropped" and loss.detail.endswith(" only"):
            name, colon, _ = loss.detail.partition(":")
            reported.add(name if colon else loss.path.rpartition(".")[2])
    return reported


def _has_fields(place: Place, value: Any) -> bool:
    """Whether its fields are looked at themselves."""
    if place[-1] in OPAQUE or not isinstance(value, dict | list):
        return False
    return isinstance(value, dict) or any(isinstance(item, dict) for item in value)


def _says_something(value: Any) -> bool:
    """Whether it is more than an empty list, an empty object, or the schema of no arguments."""
    if isinstance(value, dict):
        return any(item not in ({}, []) for key, item in value.items() if (key, item) != ("type", "object"))
    return not isinstance(value, list) or bool(value)


def _changes(value: Any) -> tuple[Change, ...]:
    """What is done to every field of its path: if nobody notices, it is ignored."""
    return (_drop, _increase) if type(value) in (int, float) else (_drop,)


def _drop(_value: Any) -> Any:
    return _GONE


def _increase(value: Any) -> Any:
    return value + 1 if type(value) in (int, float) else value


def _is_declared(whole: Outcome, without: Outcome) -> bool:
    """Whether an element was reported as missing: the output is the same, or replaced by a note."""
    if without[0] == whole[0]:
        return True
    if without is _FAILED:
        return False
    reported, left = (
        Counter((loss.feature, loss.action) for loss in outcome[1]) for outcome in (whole, without)
    )
    return any(feature in _WHOLE or (feature, action) == _NO_TOOL for feature, action in reported - left)


def is_ignored(name: str, kind: Kind, path: str, value: Any, target: str) -> Ignored | None:
    for entry in IGNORED:
        if (
            entry.dialect in ("*", name)
            and entry.target in ("*", target)
            and (entry.kind in ("*", kind) or (entry.kind == "answers" and kind != "requests"))
            and (not entry.values or value in entry.values)
            and _is_one_of(path, entry.paths)
        ):
            return entry
    return None


@cache
def _is_one_of(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def is_said_elsewhere(name: str, path: str, target: str, document: Any, outcome: Outcome) -> bool:
    return any(
        (entry.dialect, entry.path) == (name, path)
        and entry.target in ("*", target)
        and entry.holds(document, outcome[1])
        for entry in ELSEWHERE
    )


@cache
def spelled(place: Place) -> str:
    """The path of a field, the same for every element of a list."""
    out = ""
    for step in place:
        out += "[]" if isinstance(step, int) else f".{step}" if out else step
    return out


def _fields(value: Any, place: Place = (), *, answers: bool) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            # A null says nothing. In answers neither does any other blank: servers print their whole schema.
            if item is None or (answers and is_hollow(item)):
                continue
            yield (*place, key), item
            if key not in OPAQUE:
                yield from _fields(item, (*place, key), answers=answers)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield (*place, index), item
            yield from _fields(item, (*place, index), answers=answers)


def _without(value: Any, place: Place) -> Any:
    step, *rest = place
    if isinstance(step, int):
        if not rest:
            return [item for index, item in enumerate(value) if index != step]
        return [_without(item, tuple(rest)) if index == step else item for index, item in enumerate(value)]
    if not rest:
        return {key: item for key, item in value.items() if key != step}
    return {key: _without(item, tuple(rest)) if key == step else item for key, item in value.items()}


def _changed_any(value: Any, path: str, change: Change, place: str = "") -> Any:
    if isinstance(value, list):
        return [_changed_any(item, path, change, f"{place}[]") for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, item in value.items():
        inner = f"{place}.{key}" if place else key
        new = change(item) if inner == path else _changed_any(item, path, change, inner)
        if new is not _GONE:
            out[key] = new
    return out


def _request(case: Case, body: Any, target: DialectName) -> Outcome:
    return _outcome(lambda: translate_request(body, source=dialect_name(case.dialect), target=target))


def _response(case: Case, body: Any, target: DialectName) -> Outcome:
    return _outcome(lambda: translate_response(body, source=dialect_name(case.dialect), target=target))


def _outcome(translate: Callable[[], Any]) -> Outcome:
    try:
        rendered = translate()
    except WireglotError:
        return _FAILED
    return encode(rendered.value), rendered.losses


# --- streams


def _silent_in_stream(case: Case, target: DialectName) -> Iterator[Silent]:
    frames = _frames(case.data)
    if frames is None:
        return
    whole = _streamed(case, frames, target)
    if whole is _FAILED:
        return
    text = " ".join(loss.detail for loss in whole[1])
    reported_whole = _reported_whole(whole)
    places: dict[tuple[str, str], tuple[Place, Any]] = {}
    for frame in frames:
        if isinstance(frame, dict):
            for place, value in _fields(frame, answers=True):
                if not isinstance(place[-1], int) and not _is_within_reported(frame, place, text):
                    places.setdefault(_field_of_any(place), (place, value))
    declared: list[str] = []
    for field, (place, value) in places.items():
        path = spelled(place)
        if path.startswith(tuple(declared)) or not reported_whole.isdisjoint(place[:-1]):
            continue
        ignored = is_ignored(case.dialect, "streams", path, value, target)
        if ignored is not None:
            if ignored.inside:
                declared += (f"{path}.", f"{path}[")
            continue
        outcome = _streamed(case, [_thinned(frame, field, _drop) for frame in frames], target)
        if outcome == whole and _has_fields(place, value):
            continue
        if (
            outcome == whole
            and all(
                _streamed(case, [_thinned(frame, field, change) for frame in frames], target) == whole
                for change in _changes(value)[1:]
            )
            and not is_said_elsewhere(case.dialect, path, target, frames, whole)
        ):
            yield Silent(case.id, target, path, _short(value))
        if outcome[0] == whole[0]:
            declared += (f"{path}.", f"{path}[")


def _is_within_reported(frame: dict[str, Any], place: Place, reported: str) -> bool:
    """Whether the field belongs to a block or an event that was declared by its name."""
    value: Any = frame
    for step in place[:-1]:
        kind = value.get("type") if isinstance(value, dict) else None
        if (isinstance(kind, str) and kind in reported) or (
            isinstance(step, str) and f"{step} of" in reported
        ):
            return True
        value = value[step]
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind in reported


@cache
def _field_of_any(place: Place) -> tuple[str, str]:
    parent = spelled(place[:-1]).rpartition(".")[2]
    return _SAME_OBJECT.get(parent, parent), str(place[-1])


def _thinned(frame: Any, field: tuple[str, str], change: Change, place: Place = ()) -> Any:
    if isinstance(frame, dict):
        out = {}
        for key, item in frame.items():
            if _field_of_any((*place, key)) == field:
                new = change(item)
            else:
                new = item if key in OPAQUE else _thinned(item, field, change, (*place, key))
            if new is not _GONE:
                out[key] = new
        return out
    if isinstance(frame, list):
        return [_thinned(item, field, change, (*place, index)) for index, item in enumerate(frame)]
    return frame


def _frames(data: bytes) -> list[Any] | None:
    """The documents of a stream, other lines as they are; None where it is none that can be read."""
    if data.lstrip()[:1] in b"[{":
        try:
            value = decode(data)
        except BadJson:
            return None
        return value if isinstance(value, list) else None
    frames: list[Any] = []
    for frame in _FRAME_END.split(data):
        lines = frame.splitlines()
        text = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        try:
            value = decode(text) if text else None
        except BadJson:
            value = None
        frames.append(value if isinstance(value, dict) else frame)
    return frames


def _streamed(case: Case, frames: list[Any], target: DialectName) -> Outcome:
    array = case.data.lstrip()[:1] == b"["
    if array:
        data = encode(frames)
    else:
        data = b"".join(
            (frame if isinstance(frame, bytes) else _event_line(case, frame) + b"data: " + encode(frame))
            + b"\n\n"
            for frame in frames
        )
    try:
        translator = StreamTranslator(
            source=dialect_name(case.dialect), target=target, framing="json-array" if array else "sse"
        )
        out = translator.feed(data) + translator.close()
    except WireglotError:
        return _FAILED
    return _FAILED if translator.failed else (out, tuple(translator.losses))


def _event_line(case: Case, frame: dict[str, Any]) -> bytes:
    named = frame.get("type") if case.dialect in ("anthropic", "openai-responses") else None
    return f"event: {named}\n".encode() if isinstance(named, str) else b""


def _kind_of(value: Any) -> str:
    """Switches and words of a list are distinguished by their value, everything else by its type."""
    if value is None or isinstance(value, bool | dict | list) or value in (0, ""):
        return repr(value) if not isinstance(value, dict | list) else type(value).__name__
    if isinstance(value, str) and len(value) <= 24 and " " not in value:
        return value
    return type(value).__name__


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
