"""Two answers beside one another, by what they say: dialects and ids may differ."""

from __future__ import annotations

import sys
from typing import Any

from wireglot.cli.paint import Paint, one_line
from wireglot.cli.trace.access import NoTrace
from wireglot.dialects.base import Context
from wireglot.dialects.registry import UnknownDialect, dialect
from wireglot.ir.errors import WireglotError
from wireglot.traces.again import without_error
from wireglot.traces.bodies import Unreadable, amount
from wireglot.traces.diff import Difference, differences, outline
from wireglot.traces.trace import Trace


def compared(one: Trace, other: Trace) -> list[Difference]:
    """Raises NoTrace."""
    return differences(_said(one), _said(other))


def compared_lines(found: list[Difference]) -> list[str]:
    paint = Paint(sys.stdout)
    lines = [] if found else ["both answers say the same"]
    for each in found:
        lines += [
            paint(one_line(each.pointer) or "/", "bold"),
            paint(f"  - {one_line(each.before)}", "dropped"),
            paint(f"  + {one_line(each.after)}", "ok"),
        ]
    return lines


def _said(trace: Trace) -> dict[str, Any]:
    try:
        spoken = dialect(trace.row.dialect)
        came = amount(trace.answer, spoken.name, "its answer")
        error = spoken.parse_error(came.document, trace.answer.status)
        if error is not None and not came.stops:
            return {"error": error.message}
        told: dict[str, Any] = {}
        try:
            told = outline(spoken.parse_response(without_error(came.document), Context()))
        except WireglotError:
            if error is None:
                raise
        if came.stops:
            told["stop"] = came.stops
        return {**told, "error": error.message} if error is not None else told
    except (Unreadable, WireglotError, UnknownDialect) as fault:
        raise NoTrace(f"{one_line(trace.row.id)}: {one_line(str(fault))}") from None
