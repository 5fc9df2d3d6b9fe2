"""The bundled conversation in every direction, and one request next to its translation."""

from __future__ import annotations

import argparse
import shutil
import sys
from itertools import zip_longest
from typing import Any, Final

import msgspec

from wireglot.cli.argument_parser import near
from wireglot.cli.examples import conversation
from wireglot.cli.terminal import (
    FAILED,
    OK,
    Paint,
    Unusable,
    count,
    fitted,
    loss_lines,
    one_line,
    say,
)
from wireglot_core.dialects.registry import DialectName, dialect_name
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import encode_text

_STEP = 2
_SCHEMAS = frozenset({"input_schema", "parameters", "parametersJsonSchema"})
_LIMITS = (60, 40, 28, 18)
"""Maximum characters of each string, tried in turn until a small value fits on a line."""
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


_KINDS = ("request", "response", "stream")
_WIDE_COLUMNS: Final = 148
"""Width of the table's longest row."""


class Crossing(msgspec.Struct, frozen=True):
    """The result of translating one document: its losses, or why it failed."""

    losses: tuple[Loss, ...] = ()
    fault: str = ""


def run(arguments: argparse.Namespace) -> int:
    source: DialectName = arguments.source
    target: DialectName = arguments.target
    for option, name in (("--from", source), ("--to", target)):
        if name not in conversation.MODELS:
            meant = near(name, conversation.MODELS)
            hint = f"did you mean {meant}?" if meant else f"expected one of {', '.join(conversation.MODELS)}"
            raise Unusable(f"{option}: no example in dialect {name!r}: {hint}")
    paint = Paint(sys.stdout)
    print(paint("One coding-agent conversation, translated between all dialects", "bold"))
    about = (
        "A number is the count of losses: content that the other dialect cannot express, named at the end "
        "of the row.\n"
    )
    print(fitted(about, sys.stdout, ""))
    faults = _table(paint)
    print()
    if faults:
        say("\n".join(faults))
        return FAILED
    _show(source, target, paint)
    return OK


def cross(kind: str, source: DialectName, target: DialectName) -> Crossing:
    """Translate one bundled document. The client of a response or stream is the one who speaks `target`."""
    try:
        match kind:
            case "request":
                body = conversation.document(source, "request")
                return Crossing(
                    translate_request(
                        body, source=source, target=target, model=conversation.MODELS[target]
                    ).losses
                )
            case "response":
                body = conversation.document(source, "response")
                asked = conversation.document(target, "request")
                return Crossing(translate_response(body, source=source, target=target, request=asked).losses)
            case _:
                translator = StreamTranslator(
                    source=source, target=target, request=conversation.document(target, "request")
                )
                translator.feed(conversation.stream(source))
                translator.close()
                if translator.failed:
                    return Crossing(fault="the stream ended in an error")
                return Crossing(tuple(translator.losses))
    except WireglotError as fault:
        return Crossing(fault=str(fault))


def _table(paint: Paint) -> list[str]:
    """Print a row for each ordered pair; return the failures."""
    row = "{:<17} {:<17} {:<9} {:<9} {:<9} {}"
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE_COLUMNS
    heads = row.format("from", "to", *_KINDS, "" if narrow else "losses")
    print(paint(heads.rstrip(), "bold"))
    faults = []
    for source in conversation.MODELS:
        for target in conversation.MODELS:
            if source == target:
                continue
            crossings = {kind: cross(kind, dialect_name(source), dialect_name(target)) for kind in _KINDS}
            faults += [
                f"wireglot: {source} to {target}, {kind}: {one_line(crossing.fault)}"
                for kind, crossing in crossings.items()
                if crossing.fault
            ]
            features = sorted({loss.feature for crossing in crossings.values() for loss in crossing.losses})
            cells = [_cell(crossing, paint) for crossing in crossings.values()]
            named = ", ".join(features)
            print(row.format(source, target, *cells, "" if narrow else named).rstrip())
            if narrow and named:
                print(fitted(f"    {named}", sys.stdout, ""))
    return faults


def _cell(crossing: Crossing, paint: Paint) -> str:
    if crossing.fault:
        return paint("FAILED".ljust(9), "dropped")
    return paint((f"ok, {len(crossing.losses)}" if crossing.losses else "ok").ljust(9), "ok")


def _show(source: DialectName, target: DialectName, paint: Paint) -> None:
    """One request next to its translation, and its losses."""
    width = min(max((shutil.get_terminal_size((140, 24)).columns - 3) // 2, 38), 100)
    body = conversation.document(source, "request")
    rendered = translate_request(body, source=source, target=target, model=conversation.MODELS[target])
    print(paint(f"{f'The request in {source}'.ljust(width)} | translated to {target}", "bold"))
    print(f"{'-' * width}-+-{'-' * width}")
    print("\n".join(side_by_side(outline(body, width), outline(rendered.value, width), width)))
    print()
    if rendered.losses:
        print(paint(f"{count(len(rendered.losses), 'loss', 'losses')}:", "bold"))
        print(fitted("\n".join(loss_lines(rendered.losses, paint)), sys.stdout, " " * 9))
    else:
        print("No losses.")
