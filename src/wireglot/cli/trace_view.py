"""One exchange for display: caller and provider, both requests and both answers, losses, times."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Any, Final, TextIO

import msgspec

from wireglot.cli.pairs import outline
from wireglot.cli.terminal import Paint, count, grouped, one_line, what, why
from wireglot_core.traces.bodies import UnreadableBody, payload
from wireglot_core.traces.cache_truth import CacheTruth
from wireglot_core.traces.diff import Side, sides
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceCounted, TracedLoss, TraceFrame, TraceMessage
from wireglot_core.wire.json import BadJson, decode, encode

_WIDEST: Final = 160
_COLUMNS: Final = ["time", "client", "asked", "upstream", "status", "total", "tokens", "loss", "id"]
_WIDE: Final = 110
_FOR_WIDE: Final = ("asked", "tokens")
"""Columns shown if there is room."""
_GIVE_WAY: Final = (("asked", 12), ("upstream", 12), ("client", 6), ("asked", 5), ("upstream", 8))
"""Names are truncated to this many characters, the long ones first; important columns stay."""
_LEFT_OUT: Final = ("loss", "total", "client", "time", "upstream")
"""Columns omitted in this order if a terminal is too narrow: the id and the status stay."""
_SECOND: Final = 1000.0
_THOUSAND: Final = 1000
_ERROR: Final = 400


def width_of(stream: TextIO) -> int:
    """Of a terminal; a page's width without one."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST) if stream.isatty() else 80


def list_lines(
    rows: Sequence[Row], stream: TextIO, *, like: Sequence[Row] = (), heading: bool = True
) -> list[str]:
    """`like`: rows that were shown before; the columns are aligned with theirs."""
    if not rows:
        return ["no exchanges"]
    paint, room = Paint(stream), width_of(stream)
    wide = room >= _WIDE
    columns = [name for name in _COLUMNS if wide or name not in _FOR_WIDE]
    cells = [columns, *([_cell(row, name) for name in columns] for row in (*like, *rows))]
    gap = 2 if not _missing(cells, room, 2) else 1
    for name in _LEFT_OUT:
        if _fitted(cells, room, gap)[1] and name in cells[0]:
            at = cells[0].index(name)
            cells = [[*line[:at], *line[at + 1 :]] for line in cells]
    widths, _ = _fitted(cells, room, gap)
    head, *aligned = [_line(line, widths, " " * gap) for line in cells]
    lines = [paint(head, "bold")] if heading else []
    day = _day(like[-1].at if like else time.time())
    for row, line in zip(rows, aligned[len(like) :], strict=True):
        if _day(row.at) != day:
            day = _day(row.at)
            lines.append(paint(day, "bold"))
        lines.append(_painted(row, line, paint))
    return lines


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _widths(cells: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _missing(cells: list[list[str]], room: int, gap: int) -> bool:
    """Whether anything has to be truncated."""
    widths = _widths(cells)
    return sum(widths) + gap * (len(widths) - 1) > room


def _fitted(cells: list[list[str]], room: int, gap: int) -> tuple[list[int], int]:
    """The width of each column, and how much is still missing."""
    columns = cells[0]
    widths = _widths(cells)
    room -= sum(widths) + gap * (len(columns) - 1)
    for name, least in _GIVE_WAY:
        at = columns.index(name) if name in columns and room < 0 else -1
        if at >= 0:
            cut = min(-room, max(widths[at] - least, 0))
            widths[at] -= cut
            room += cut
    return widths, max(0, -room)


def _painted(row: Row, line: str, paint: Paint) -> str:
    if row.state == "failed":
        return paint(line, "serious")
    return line if row.recorded else paint(line, "dim")


def _line(cells: list[str], widths: list[int], gap: str) -> str:
    shown = [
        (cell if len(cell) <= width else f"{cell[: width - 1]}…").ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return gap.join(shown).rstrip()


def _cell(row: Row, column: str) -> str:
    match column:
        case "time":
            return time.strftime("%H:%M:%S", time.localtime(row.at))
        case "client":
            return one_line(row.client) or "-"
        case "asked":
            return one_line(row.asked) or "-"
        case "upstream":
            return one_line(upstream_of(row)) or "-"
        case "status":
            return _status(row)
        case "total":
            return spent(row.total_ms)
        case "tokens":
            return _tokens(row)
        case "loss":
            return _losses(row)
        case _:
            return one_line(row.id)


def _status(row: Row) -> str:
    """In words if the number does not show it: a stream has status 200 before it breaks."""
    if row.state not in ("done", "failed") or not row.status:
        return row.state
    return "broken" if row.state == "failed" and row.status < _ERROR else str(row.status)


def upstream_of(row: Row) -> str:
    return f"{row.provider}/{row.model}" if row.provider else row.model


def spent(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds:.0f}ms" if milliseconds < _SECOND else f"{milliseconds / _SECOND:.1f}s"


def _tokens(row: Row) -> str:
    if row.tokens is None:
        return ""
    number = row.tokens.input + row.tokens.output
    return str(number) if number < _THOUSAND else f"{number / _THOUSAND:.1f}k"


def _losses(row: Row) -> str:
    lost = row.losses
    if lost is None:
        return ""
    number = lost.serious + lost.degraded + lost.harmless
    return f"{number}{'!' if lost.serious else ''}" if number else ""


_FOLDED_LINES: Final = 14
_LOSSES_SHOWN: Final = 12
_RUNS_SHOWN: Final = 3
_MILLION: Final = 1_000_000
_SIGNS: Final = {"kept": "=", "rewritten": "~", "lost": "-", "put in": "+"}
_COLOURS: Final = {"kept": "ok", "rewritten": "approximated", "lost": "dropped", "put in": "invented"}
_GRADES: Final = ("serious", "degraded", "harmless")


class Shown:
    """The lines of one trace for one output."""

    def __init__(self, stream: TextIO, *, full: bool) -> None:
        self.paint = Paint(stream)
        self.width = width_of(stream)
        self.full = full

    def trace(self, trace: Trace, cache: CacheTruth | None = None) -> list[str]:
        row = trace.row
        lines = [
            *self._head(row),
            *(self._cache(cache) if cache is not None else []),
            *self._summary(trace),
            *self._losses(trace.losses),
        ]
        lines += self._body("client request", trace.request, row.dialect)
        for number, attempt in enumerate(trace.attempts, 1):
            lines += self._attempt(attempt, number, len(trace.attempts))
        lines += self._body("client answer", trace.answer, row.dialect)
        if trace.steps:
            times: dict[str, float] = {}
            for step in trace.steps:  # some steps occur more than once
                times[step.name] = times.get(step.name, 0.0) + step.ended_ms - step.began_ms
            text = ", ".join(f"{name} {spent(each)}" for name, each in times.items())
            lines += ["", self._reported("times", text)]
        lines += [self._reported("note", note) for note in trace.notes]
        return lines

    def _head(self, row: Row) -> list[str]:
        what = " ".join(filter(None, (row.path, str(row.status or ""), row.state, spent(row.total_ms))))
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.at))
        lines = [
            self.paint(self._cut(one_line(f"{row.id}  {what}")), "bold"),
            self._reported("client", f"{row.client or 'unknown'} speaks {row.dialect}, requests {row.asked}"),
        ]
        if row.model:
            how = "pass-through" if row.passthrough else "translated"
            lines.append(
                self._reported("upstream", f"{upstream_of(row)} speaks {row.upstream_dialect}, {how}")
            )
        first = f", first byte after {spent(row.first_ms)}" if row.first_ms is not None else ""
        lines.append(self._reported("time", f"{at}{first}"))
        if row.tokens is not None:
            cost = "" if row.cost is None else f", cost {row.cost / _MILLION:.6f}"
            lines.append(
                self._reported("tokens", f"{row.tokens.input:,} in, {row.tokens.output:,} out{cost}")
            )
        if row.error:
            lines.append(self._reported("error", row.error))
        return lines

    def _cache(self, truth: CacheTruth) -> list[str]:
        """Nothing for a first turn: nothing could have been cached."""
        if truth.verdict == "first" or (truth.verdict == "unknown" and not truth.previous):
            return []
        got = "an unknown number" if truth.cached is None else f"{truth.cached:,}"
        of = "" if truth.expected is None else f" of about {truth.expected:,} expected"
        lines = [self._reported("cache", f"{got}{of} (compared with {truth.previous or 'no turn'})")]
        if truth.note:
            lines.append(self._reported("", truth.note))
        broken = truth.broken
        if broken is not None:
            at = f", at {broken.pointer}" if broken.pointer else ""
            lines.append(self._reported("", f"{broken.reason}{at}"))
            if broken.before or broken.after:
                lines += [self._reported("", f"- {broken.before}"), self._reported("", f"+ {broken.after}")]
        return lines

    def _summary(self, trace: Trace) -> list[str]:
        counted = [line for attempt in trace.attempts[-1:] for line in attempt.summary]
        return self._wrapped("became", [_counted(line) for line in counted])

    def _losses(self, losses: Sequence[TracedLoss]) -> list[str]:
        if not losses:
            return []
        worst = sorted(losses, key=lambda loss: _GRADES.index(loss.grade) if loss.grade in _GRADES else 0)
        shown = [[loss] for loss in worst] if self.full else grouped(worst)[:_LOSSES_SHOWN]
        lines = ["", self.paint(count(len(losses), "loss", "losses"), "bold")]
        for group in shown:
            loss, reason = group[0], why(group)
            grade = self.paint(one_line(loss.grade).ljust(8), loss.grade if loss.grade in _GRADES else "bold")
            rest = f"{loss.action} {what(group)} {loss.path}"
            lines.append(f"  {grade} {self._cut(one_line(rest), 11)}")
            if reason:
                lines.append(" " * 11 + self.paint(self._cut(reason, 11), "dim"))
        return [*lines, *self._more(len(worst) - sum(map(len, shown)), "losses")]

    def _attempt(self, attempt: Attempt, number: int, all: int) -> list[str]:
        named = "upstream" if all == 1 else f"upstream, attempt {number}"
        lines = self._body(f"{named} request", attempt.request, attempt.dialect)
        if attempt.error:
            lines.append(self._reported("error", attempt.error))
        return lines + self._body(f"{named} answer", attempt.answer, attempt.dialect)

    def _body(self, title: str, message: TraceMessage | None, dialect: str) -> list[str]:
        if message is None:
            return []
        what = [dialect, message.url or str(message.status or ""), count(message.bytes, "byte")]
        if message.frames:
            what.append(count(len(message.frames), "piece"))
        if message.shortened:
            what.append(f"{count(message.shortened, 'long string')} cut")
        elif message.truncated:
            what.append("only the beginning was recorded")
        reported = one_line(f"  {', '.join(filter(None, what))}")
        head = self.paint(title, "bold") + self._cut(reported, len(title))
        stops = (
            [self.paint(f"  {self._cut(one_line(message.stops), 2)}", "degraded")] if message.stops else []
        )
        if message.frames and self.full:
            return ["", head, *self._frames(message.frames), *stops]
        try:
            value = decode(message.folded or payload(message))
        except (BadJson, UnreadableBody):
            return ["", head, *self._text(message.body or "".join(frame.data for frame in message.frames))]
        return ["", head, *self._folded(value), *stops]

    def _folded(self, value: Any) -> list[str]:
        if self.full:
            return [
                f"  {one_line(line)}"
                for line in msgspec.json.format(encode(value), indent=2).decode().splitlines()
            ]
        lines = [f"  {one_line(line)}" for line in outline(value, self.width - 2)]
        if len(lines) <= _FOLDED_LINES:
            return lines
        kept = _FOLDED_LINES - 3
        return [*lines[:kept], *self._more(len(lines) - kept - 2, "lines"), *lines[-2:]]

    def _text(self, text: str) -> list[str]:
        lines = [f"  {one_line(line)}" for line in text.splitlines()]
        if self.full:
            return lines
        shown = [self._cut(line) for line in lines[:_FOLDED_LINES]]
        return [*shown, *self._more(len(lines) - len(shown), "lines")]

    def _frames(self, frames: Sequence[TraceFrame]) -> list[str]:
        lines: list[str] = []
        width = len(str(len(frames)))
        made = max(map(len, map(_causes, frames)), default=0)
        for number, frame in enumerate(frames, 1):
            when = f"{frame.ms:8.1f} ms  {number:{width}}{_causes(frame).ljust(made)}  "
            for line in filter(None, frame.data.splitlines()):
                lines.append(f"  {self.paint(when, 'dim')}{one_line(line)}")
                when = " " * len(when)
        return lines

    # Both requests, part by part.

    def sides(self, trace: Trace) -> list[str]:
        attempt = trace.attempts[-1]
        assert attempt.request is not None
        body, sent = decode(payload(trace.request)), decode(payload(attempt.request))
        found = sides(body, sent, attempt.links, trace.losses)
        room = (self.width - 4) // 2
        head = (
            f"  {f'client request ({trace.row.dialect})'.ljust(room)}  upstream request ({attempt.dialect})"
        )
        lines = [self.paint(self._cut(one_line(head)), "bold")]
        for side in found:
            lines += self._side(side, body, sent, room)
        return [*lines, *self._summary(trace)]

    def _side(self, side: Side, body: Any, sent: Any, room: int) -> list[str]:
        left = _short(side.client, room - 1).ljust(room)
        line = f"{_SIGNS[side.fate]} {left}  {_short(side.upstream, room)}".rstrip()
        lines = [self.paint(line, _COLOURS[side.fate])]
        if side.detail:
            lines.append(self.paint(self._cut(f"    {one_line(side.detail)}"), "dim"))
        if self.full and side.fate != "lost":
            for sign, document, place in (("<", body, side.client), (">", sent, side.upstream)):
                if place:
                    shown = outline(_at(document, place), self.width - 6)
                    lines += [f"    {sign} {one_line(line)}" for line in shown]
        return lines

    # Pieces.

    def _reported(self, name: str, text: str) -> str:
        return f"  {self.paint(name.ljust(9), 'dim')}{self._cut(one_line(text), 11)}"

    def _wrapped(self, name: str, words: list[str]) -> list[str]:
        lines, line = [], ""
        for word in words:
            if line and len(line) + len(word) + 2 > self.width - 11:
                lines.append(line)
                line = ""
            line = f"{line}, {word}" if line else word
        lines += [line] if line else []
        return [self._reported(name if not number else "", each) for number, each in enumerate(lines)]

    def _cut(self, text: str, taken: int = 0) -> str:
        room = self.width - taken
        return text if self.full or len(text) <= room else f"{text[: room - 1]}…"

    def _more(self, number: int, what: str) -> list[str]:
        return [self.paint(f"  … {number:,} more {what}: --full", "dim")] if number > 0 else []


def _causes(frame: TraceFrame) -> str:
    """The upstream's pieces from which it was made, counted from 1: ` < 3`, ` < 5-7`."""
    runs: list[list[int]] = []
    for number in (cause + 1 for cause in frame.causes):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    reported = ["-".join(map(str, run)) for run in runs[:_RUNS_SHOWN]]
    return f" < {','.join(reported)}{'…' if len(runs) > _RUNS_SHOWN else ''}" if reported else ""


def _counted(line: TraceCounted) -> str:
    if line.what.endswith("losses"):
        grade = line.what.removesuffix(" losses")
        return f"{line.client} {grade} {'loss' if line.client == 1 else 'losses'}"
    if line.what.startswith(("tool ids", "tool names")):
        return f"{line.what} {line.client}"
    return f"{line.what} {line.client} -> {line.upstream}"


def _short(text: str, room: int) -> str:
    """The end of a pointer is more informative than its beginning."""
    text = one_line(text)
    return text if len(text) <= room else f"…{text[1 - room :]}"


def _at(document: Any, place: str) -> Any:
    from wireglot_core.traces.pointer import resolve

    return resolve(document, place)
