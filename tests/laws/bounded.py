"""The law of bounded work: what meets foreign text does work linear in it.

A row makes an input of size n and names the work that is done on it. The kit does the work at n and at 4n, counts it,
and refuses a growth of more than five times. Three counts, none of which is a time:

- lines of Python that run: everywhere, and stopped as soon as there are too many, so an exponential row ends, too;
- instructions, in `make full` and with WIREGLOT_WHOLE=1, where valgrind is installed: these also count what runs in C,
  such as a search, a sort or a copy;
- the peak of memory: five times at most, and at most a multiple of the input's own size.

Rows are in `tests/laws/bounded_rows/<area>.py`, each a list `ROWS`. To add one, add a line there:

    Row("a text of backslashes in a trace", lambda n: "\\\\" * n, scrub)

Each entry point for foreign text has a row that names it (`Row.entry`, `entry_points.py`).

An error of ours is an answer: a bound that refuses the larger input keeps the law.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any, Final

from wireglot_core.ir.errors import WireglotError

GROWTH: Final = 4
MAX_RATIO: Final = 5
SLACK_LINES: Final = 400
"""What a bound may cost once it is reached: writing an error, say."""
SLACK_INSTRUCTIONS: Final = 400_000
SLACK_BYTES: Final = 256 * 1024
FREE_BYTES: Final = 4 * 1024 * 1024
"""What any input may hold, however small it is."""
MAX_LINES: Final = 3_000_000
"""For the smaller input: a row that runs more has too large an n, or work that is exponential."""
_AREAS: Final = "tests.laws.bounded_rows"


@dataclass(frozen=True)
class Row:
    name: str
    make: Callable[[int], Any]
    """The size n -> an input."""
    work: Callable[[Any], object]
    n: int = 500
    """Large enough that the growing part outweighs what is done once: a copy in C is cheap for each character."""
    multiple: int = 400
    """How many times the input's own size the work may hold in memory."""
    refuses: tuple[type[Exception], ...] = ()
    """Errors that are answers, besides those of the package."""
    entry: str = ""
    """The entry point that it covers, as `entry_points.py` names it."""


class TooMany(BaseException):
    """The work ran more lines than it may; no `except Exception` of the work catches it."""


def count_lines(row: Row, n: int, limit: int) -> int:
    """Lines and calls of Python while the row's work runs, or `limit` + 1 if there are more."""
    value = row.make(n)
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        if count > limit:
            raise TooMany
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        _run(row, value)
    except TooMany:
        return limit + 1
    finally:
        sys.settrace(before)
    return count


def peak_bytes(row: Row, n: int) -> int:
    value = row.make(n)
    gc.collect()
    tracemalloc.start()
    try:
        _run(row, value)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def size_of(value: object) -> int:
    return len(value) if isinstance(value, str | bytes) else len(repr(value))


def _run(row: Row, value: object) -> None:
    with suppress(WireglotError, *row.refuses):
        row.work(value)


def too_many_lines(row: Row) -> str:
    """What is wrong with the row by its lines, or ""."""
    count_lines(row, max(1, row.n // 4), MAX_LINES)  # imports, caches
    first = count_lines(row, row.n, MAX_LINES)
    if first > MAX_LINES:
        return f"more than {MAX_LINES:,} lines at n = {row.n:,}"
    allowed = MAX_RATIO * first + SLACK_LINES
    second = count_lines(row, GROWTH * row.n, allowed)
    if second > allowed:
        return f"{first:,} lines at n = {row.n:,}, more than {allowed:,} at {GROWTH} n"
    return ""


def too_many_bytes(row: Row) -> str:
    first, second = peak_bytes(row, row.n), peak_bytes(row, GROWTH * row.n)
    if second > MAX_RATIO * first + SLACK_BYTES:
        return f"{first:,} bytes at n = {row.n:,}, {second:,} at {GROWTH} n"
    size = size_of(row.make(GROWTH * row.n))
    if second > FREE_BYTES + row.multiple * size:
        return f"{second:,} bytes of memory for an input of {size:,}"
    return ""


def too_many_instructions(counts: Sequence[int], n: int) -> str:
    first, second = counts
    if second > MAX_RATIO * first + SLACK_INSTRUCTIONS:
        return f"{first:,} instructions at n = {n:,}, {second:,} at {GROWTH} n"
    return ""


def rows_of(area: str) -> list[Row]:
    """`area`: a module below tests.laws.bounded_rows, or `package.module:LIST` elsewhere."""
    module, _, name = area.partition(":")
    rows: list[Row] = getattr(import_module(module if name else f"{_AREAS}.{module}"), name or "ROWS")
    names = [row.name for row in rows]
    assert len(set(names)) == len(names), "two rows of one name"
    return rows


def _print_lines(rows: list[Row]) -> None:
    for row in rows:
        why = too_many_lines(row) or too_many_bytes(row)
        sys.stdout.write(json.dumps([row.name, why]) + "\n")
        sys.stdout.flush()


def _count_instructions(rows: list[Row]) -> None:
    for row in rows:
        _run(row, row.make(max(1, row.n // 4)))
        small, large = row.make(row.n), row.make(GROWTH * row.n)
        os.getppid()
        _run(row, small)
        os.getppid()
        _run(row, large)
        os.getppid()


def main() -> None:
    kind, area, first = sys.argv[1:]
    rows = rows_of(area)[int(first) :]
    gc.collect()
    gc.freeze()
    gc.disable()
    if kind == "lines":
        _print_lines(rows)
    else:
        _count_instructions(rows)


if __name__ == "__main__":
    main()
