"""The account of bytes that a process holds: bodies that arrive, what is made of them, answers, what clients
have yet to take."""

from __future__ import annotations

from collections.abc import Callable


class ByteAccount:
    """One for both directions. Whoever holds bytes adds them and takes them off again; beyond `most`, which
    may change at any time, nobody should take on more. Only for the loop's own thread."""

    __slots__ = ("forget", "held", "most", "remembered", "shed")

    def __init__(self, most: Callable[[], int]) -> None:
        self.held = 0
        self.most = most
        self.shed = 0
        """How often somebody was turned away for it."""
        self.remembered = 0
        """What nobody needs, and is kept because it may come again. Whoever keeps it counts it, in any
        thread."""
        self.forget: Callable[[int], None] = lambda size: None
        """Gives up so many of the remembered bytes: before anybody is turned away."""

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
