"""Turns that the store is known not to have, so that they are not looked up with every request.

A client sends its whole conversation with each turn, and most turns have lost nothing. A turn is stored
before its client has the end of it: a turn that a client sends and the store does not have will not be stored
later, unless the same words are said again after the same conversation. This process forgets what it knows
about a caller when it stores anything of that caller. Other processes leave a mark, if the store supports
that; if not, nothing is known for longer than a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import Final

ABSENT_SECONDS: Final = 60.0
MAX_ABSENT: Final = 8192
"""Turns known to have no stored reasoning, of all callers: about 3 MB."""

_Place = tuple[str, bytes, int]
"""A session, a hash of everything before a turn, and a hash of the turn itself (64 bits, of this process)."""


class AbsentTurns:
    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = MAX_ABSENT) -> None:
        self._clock = clock
        self._most = most
        self._count = 0
        self._callers: dict[str, tuple[Hashable, dict[_Place, float]]] = {}
        """For each caller its mark, and for each place until when it is known."""
        self._forgotten = 0

    @property
    def moment(self) -> int:
        """Increases when anything is forgotten: results of a lookup that began before are not `learn`ed."""
        return self._forgotten

    def known(self, caller: str, mark: Hashable) -> Callable[[str, bytes, bytes], bool]:
        """Returns a function that says whether a turn of a session is known to be absent, by what came before
        it and what it shows. `mark` is the caller's current `Engine.kept_mark`."""
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
        """Record absent turns, each as what came before it and what it shows. `moment` and the caller's
        `mark`: from before the lookup."""
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
        """Something of this caller was stored, under names that may be those of any of its turns."""
        self._forgotten += 1
        self._drop(caller)

    def forget_all(self) -> None:
        self._forgotten += 1
        self._count = 0
        self._callers.clear()

    def _drop(self, caller: str) -> None:
        _, places = self._callers.pop(caller, (None, {}))
        self._count -= len(places)
