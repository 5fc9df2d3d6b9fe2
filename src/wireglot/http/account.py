"""The account of bytes that a process holds: bodies that arrive, what is made of them, answers, what clients
have yet to take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Waiting(Protocol):
    """A request that has asked for room and gets it later."""

    def admitted(self) -> None:
        """There is room: count what was asked for, and go on."""
        ...


class ByteAccount:
    """One for both directions. Whoever holds bytes adds them and takes them off again; beyond `most`, which
    may change at any time, no request should take on more. Only for the loop's own thread.

    Answers that have been paid for wait for room instead of being turned away. One of them at a time may go
    past the limit, else all could wait for one another: no more is held than the limit and one answer.
    """

    __slots__ = ("_first", "_queue", "forget", "held", "most", "owed", "remembered", "shed")

    def __init__(self, most: Callable[[], int]) -> None:
        self.held = 0
        self.owed = 0
        """What of it clients have yet to take: it goes when they do, or when they are given up."""
        self.most = most
        self.shed = 0
        """How often somebody was turned away for it."""
        self.remembered = 0
        """What nobody needs, and is kept because it may come again. Whoever keeps it counts it, in any
        thread."""
        self.forget: Callable[[int], None] = lambda size: None
        """Gives up so many of the remembered bytes: before anybody is turned away."""
        self._first: Waiting | None = None
        """Who was let in last: who reaches the limit may go past it, and needs no room."""
        self._queue: dict[Waiting, None] = {}

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._queue)

    @property
    def is_over(self) -> bool:
        return self.lacks(0)

    def lacks(self, size: int) -> bool:
        """Whether there is no room for so many bytes more."""
        over = self.held + self.remembered + size - self.most()
        if over > 0 and self.remembered:
            self.forget(over)
            over = self.held + self.remembered + size - self.most()
        return over > 0

    def give(self, size: int) -> None:
        """That many bytes are held no longer."""
        self.held -= size
        self._let_in()

    def owe(self, size: int) -> None:
        """That many more bytes wait for a client; fewer, where it is below 0."""
        self.owed += size
        self.held += size
        self._let_in()

    def admits(self, who: Waiting) -> bool:
        """Whether `who` may hold more now."""
        if who is self._first:
            return True
        if self.is_over and (self._first is not None or self.held - self.owed <= self.most()):
            return False  # another request will end, or clients take what is theirs
        self._first = who
        return True

    def wait(self, who: Waiting) -> None:
        """Let it in when there is room, in the order in which they have come."""
        self._queue[who] = None

    def leave(self, who: Waiting) -> None:
        """It wants nothing more. What it holds is given back by itself."""
        self._queue.pop(who, None)
        if self._first is who:
            self._first = None

    def _let_in(self) -> None:
        while self._queue:
            who = next(iter(self._queue))
            if not self.admits(who):
                return
            del self._queue[who]
            who.admitted()
