"""Turns of which the store is known to hold nothing, so that it is not asked about them with every request.

A client sends its whole conversation with each turn, and most turns have lost nothing on their way. What is
kept of a turn is kept before its client has the end of it: a turn that a client sends and the store has not
got will not come to it later, unless the same words are said again behind the same conversation. This process
forgets what it knows of a caller when it keeps anything of it; another process may, and so nothing is known
for longer than a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

ABSENT_SECONDS: Final = 60.0
ABSENT_MOST: Final = 8192
"""Turns, of all callers: about 3 MB."""

_Place = tuple[str, bytes, int]
"""A session, all that was said before a turn, and a hash of the turn itself (64 bits, of this process)."""


class AbsentTurns:
    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = ABSENT_MOST) -> None:
        self._clock = clock
        self._most = most
        self._count = 0
        self._callers: dict[str, dict[_Place, float]] = {}
        """By place, until when it is known."""
        self._forgotten = 0

    @property
    def moment(self) -> int:
        """Goes on when anything is forgotten: what was learned across that is not `learn`ed."""
        return self._forgotten

    def known(self, caller: str, session: str, prefix: bytes, shown: bytes) -> bool:
        places = self._callers.get(caller)
        if places is None:
            return False
        until = places.get((session, prefix, hash(shown)))
        return until is not None and self._clock() < until

    def learn(self, caller: str, session: str, turns: Iterable[tuple[bytes, bytes]], moment: int) -> None:
        """Turns, each as what was said before it and what it shows. `moment`: when the store was asked."""
        if moment != self._forgotten:
            return
        until = self._clock() + ABSENT_SECONDS
        for prefix, shown in turns:
            if self._count >= self._most:
                self._callers.clear()
                self._count = 0
            places = self._callers.setdefault(caller, {})
            before = len(places)
            places[session, prefix, hash(shown)] = until
            self._count += len(places) - before

    def forget(self, caller: str) -> None:
        """Something of this caller is kept, under names that may be those of any of its turns."""
        self._forgotten += 1
        self._count -= len(self._callers.pop(caller, ()))

    def forget_all(self) -> None:
        self._forgotten += 1
        self._count = 0
        self._callers.clear()
