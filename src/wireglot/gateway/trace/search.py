"""Search in rows and in their recorded bodies: on this machine first, then in the fleet's store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.trace.filters import FreeText
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted, found_in_bodies, found_in_row
from wireglot_core.traces.bodies import holds_text
from wireglot_core.traces.trace import Row

T = TypeVar("T")

# Searches of recorded bodies that wait for each that runs.
_MAX_WAITING: Final = 8
_WAITING_SECONDS: Final = 10.0


class Run(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Coroutine[Any, Any, T]: ...


class Limiter:
    """Threads share one interpreter with the loop: dozens of searches at once would leave it a fraction."""

    def __init__(self, at_once: int, run: Run = asyncio.to_thread) -> None:
        """`run`: runs a function in a thread."""
        self._gate = Gate(at_once, _MAX_WAITING * at_once, _WAITING_SECONDS)
        self._run = run

    async def do(self, work: Callable[[], T]) -> T:
        """The result of the work. Raises RequestError if too many wait already."""
        await self._gate.enter()
        task = asyncio.ensure_future(self._run(work))
        task.add_done_callback(self._done)
        # A client that leaves does not end the work: the next one still waits for it.
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._gate.leave()
        if not task.cancelled():
            task.exception()  # reported only to those that still wait


# Rows of the list that one search of recorded bodies looks at.
_MAX_ROWS: Final = 2000
# Recorded bodies that one search reads.
_MAX_BODIES: Final = 500
_SECONDS: Final = 3.0


class SearchResult(msgspec.Struct):
    rows: list[Row]
    """The newest first."""
    next: str | None = None
    """The exchange after which to continue: there are older ones."""
    unread: int = 0
    """Searched recordings that cannot be opened here."""


class _Look(msgspec.Struct):
    """The state of one search."""

    until: float
    found: set[str] = set()
    """Ids."""
    elsewhere: list[tuple[int, Row]] = []
    """Rows recorded on another machine, each with its place among the rows."""
    bodies: int = 0
    looked: int = 0
    """Number of rows searched."""
    unread: set[str] = set()
    """Ids."""

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.until


class Search:
    """Searches a part at a time: a client continues with another request where this one ended."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._turn = Limiter(1)

    async def find(self, wanted: Wanted, limit: int) -> SearchResult:
        """The rows that contain the wanted texts, or whose bodies do."""
        rows = await self._traces.listed(msgspec.structs.replace(wanted, limit=_MAX_ROWS))
        texts = wanted.texts
        look = await self._turn.do(lambda: self._here(rows, texts, limit))
        # A separate time limit: rows of two machines alternate, and the first remote one would end the
        # search.
        look.until = time.monotonic() + _SECONDS
        for place, row in look.elsewhere:
            if place > 0 and look.is_late:
                look.looked = place
                break
            await self._elsewhere(row, texts, look)
        looked = rows[: look.looked]
        found = [row for row in looked if row.id in look.found]
        next = None if len(looked) == len(rows) < _MAX_ROWS else looked[-1].id
        if len(found) > limit:
            found, next = found[:limit], found[limit - 1].id
            looked = looked[: looked.index(found[-1]) + 1]
        return SearchResult(found, next, sum(row.id in look.unread for row in looked))

    def _here(self, rows: Sequence[Row], texts: Sequence[FreeText], limit: int) -> _Look:
        look = _Look(time.monotonic() + _SECONDS)
        read = self._traces.reader()
        for place, row in enumerate(rows):
            if len(look.found) > limit or look.bodies == _MAX_BODIES or (place > 0 and look.is_late):
                break
            look.looked = place + 1
            found = found_in_row(row, texts)
            if found is None:
                look.bodies += 1
                trace = read(row.id)
                if trace is None:
                    look.elsewhere.append((place, row))
                    continue
                found = found_in_bodies(row, trace, texts, holds_text)
            if found:
                look.found.add(row.id)
        return look

    async def _elsewhere(self, row: Row, texts: Sequence[FreeText], look: _Look) -> None:
        trace, why = await self._traces.elsewhere(row)
        if trace is None:
            if why:
                look.unread.add(row.id)
        elif await self._turn.do(lambda: found_in_bodies(row, trace, texts, holds_text)):
            look.found.add(row.id)
