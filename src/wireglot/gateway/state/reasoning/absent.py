"""Turns of which the store is known to hold nothing, so that it is not asked about them with every request.

A client sends its whole conversation with each turn, and most turns have lost nothing on their way. What is
kept of a turn is kept before its client has the end of it: a turn that a client sends and the store has not
got will not come to it later, unless the same words are said again behind the same conversation. This process
forgets what it knows of a caller when it keeps anything of it. Others leave a mark where the store has one;
where it has none, nothing is known for longer than a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import Final

ABSENT_SECONDS: Final = 60.0
MAX_ABSENT: Final = 8192
"""Turns, of all callers: about 3 MB."""

_Place = tuple[str, bytes, int]
"""A session, all that was said before a turn, and a hash of the turn itself (64 bits, of this process)."""


class AbsentTurns:
    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = MAX_ABSENT) -> None:
        self._clock = clock
        self._most = most
        self._count = 0
        self._callers: dict[str, tuple[Hashable, dict[_Place, float]]] = {}
        """By caller its mark, and by place until when it is known."""
        self._forgotten = 0

    @property
    def moment(self) -> int:
        """Goes on when anything is forgotten: what was learned across that is not `learn`ed."""
        return self._forgotten

    def known(self, caller: str, mark: Hashable) -> Callable[[str, bytes, bytes], bool]:
        """Tells of a turn of a session whether it is known, behind what it was said and what it shows. `mark`
        is the caller's of now: `Engine.kept_mark`."""
        before, places = self._callers.get(caller, (None, {}))
        if mark is None or before != mark:
            return lambda session, prefix, shown: False
        now = self._clock()
        return lambda session, prefix, shown: now < places.get((session, prefix, hash(shown)), 0.0)

    def learn(
        self,
        caller: str,
        session: str,
        turns: Iterable[tuple[bytes, bytes]],
        moment: int,
        mark: Hashable,
    ) -> None:
        """Turns, each as what was said before it and what it shows. `moment` and the caller's `mark`: when
        the store was asked."""
        if moment != self._forgotten or mark is None:
            return
        if self._callers.get(caller, (mark,))[0] != mark:
            self._drop(caller)
        until = self._clock() + ABSENT_SECONDS
        for prefix, shown in turns:
            if self._count >= self._most:
                self._callers.clear()
                self._count = 0
            _, places = self._callers.setdefault(caller, (mark, {}))
            before = len(places)
            places[session, prefix, hash(shown)] = until
            self._count += len(places) - before

    def forget(self, caller: str) -> None:
        """Something of this caller is kept, under names that may be those of any of its turns."""
        self._forgotten += 1
        self._drop(caller)

    def forget_all(self) -> None:
        self._forgotten += 1
        self._count = 0
        self._callers.clear()

    def _drop(self, caller: str) -> None:
        _, places = self._callers.pop(caller, (None, {}))
        self._count -= len(places)
