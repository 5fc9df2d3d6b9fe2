"""A line on the terminal that tells how far a data set is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

_INTERVAL = 0.25


class Tally:
    """How the lines fared so far."""

    __slots__ = ("failed", "lines", "lossy", "ok")

    def __init__(self) -> None:
        self.lines = self.ok = self.failed = self.lossy = 0

    def add(self, lines: int, ok: int, lossy: int) -> None:
        self.lines += lines
        self.ok += ok
        self.failed += lines - ok
        self.lossy += lossy


class Progress:
    """Redraws one line a few times a second; `total` is the size of the input in bytes, 0 if unknown."""

    def __init__(self, stream: TextIO, total: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._total = total
        self._clock = clock
        self._began = clock()
        self._drawn = self._began - _INTERVAL
        self._width = 0

    def update(self, tally: Tally, read: int) -> None:
        now = self._clock()
        if now - self._drawn >= _INTERVAL:
            self._drawn = now
            self._draw(self._text(tally, now, read))

    def finish(self, tally: Tally) -> None:
        self._draw(self._text(tally, self._clock(), 0))
        self._stream.write("\n")
        self._stream.flush()

    def _text(self, tally: Tally, now: float, read: int) -> str:
        rate = tally.lines / max(now - self._began, 0.001)
        share = f"{min(read / self._total, 1):4.0%}  " if self._total and read else ""
        return (
            f"{share}{tally.lines:,} lines  {rate:,.0f}/s  {tally.ok:,} ok  "
            f"{tally.failed:,} failed  {tally.lossy:,} with losses"
        )

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)
