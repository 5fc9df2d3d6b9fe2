"""The account of bytes that a process holds: bodies that arrive, what is made of them, answers, what clients
have yet to take."""

from __future__ import annotations

from collections.abc import Callable


class ByteAccount:
    """One for both directions. Whoever holds bytes adds them and takes them off again; beyond `most`, which
    may change at any time, nobody should take on more. Only for the loop's own thread."""

    __slots__ = ("held", "most", "shed")

    def __init__(self, most: Callable[[], int]) -> None:
        self.held = 0
        self.most = most
        self.shed = 0
        """How often somebody was turned away for it."""

    @property
    def is_over(self) -> bool:
        return self.held > self.most()
