"""Sessions of the inspector that were ended before their time, here or in another process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST: Final = 10_000


class EndedSessions:
    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._ends: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, nonce: str) -> bool:
        return nonce in self._ends

    def add(self, nonce: str, ends: float) -> None:
        """`ends`: when it would have ended by itself."""
        if ends <= self._wall():
            return
        self._ends[nonce] = ends
        if len(self._ends) > _MOST:
            self._ends.popitem(last=False)

    def all(self) -> list[tuple[str, float]]:
        """For a process that has just begun."""
        now = self._wall()
        return [(nonce, ends) for nonce, ends in self._ends.items() if ends > now]
