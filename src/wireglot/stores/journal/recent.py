"""The last rows of a journal, at hand: while the store keeps up, no row is read back from its file."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final

from wireglot.stores.records import UsageRow

RECENT_ROWS: Final = 4096


class Recent:
    """`whole`: it holds every row that was not applied. Otherwise it holds none: they had become too many."""

    def __init__(self, most: int = RECENT_ROWS) -> None:
        self._most = most
        self.whole = True
        self._rows: deque[tuple[UsageRow, int, int]] = deque()

    def add(self, row: UsageRow, segment: int, end: int) -> None:
        """`end` is the place behind the row in its file."""
        if self.whole:
            rows = self._rows
            rows.append((row, segment, end))
            if len(rows) > self._most:
                self.whole = False
                rows.clear()

    def first(self, limit: int, segment: int, end: int) -> tuple[list[UsageRow], int]:
        """The oldest that lie in this file up to `end`, and the place behind them."""
        rows: list[UsageRow] = []
        behind = 0
        for row, number, after in islice(self._rows, limit):
            if number != segment or after > end:
                break
            rows.append(row)
            behind = after
        return rows, behind

    def drop(self, segment: int, end: int) -> None:
        """Those up to there have been applied."""
        rows = self._rows
        while rows and (rows[0][1], rows[0][2]) <= (segment, end):
            rows.popleft()
