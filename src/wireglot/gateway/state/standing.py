"""Whether the store takes what it is given, as of a moment ago."""

from __future__ import annotations

from wireglot.stores import StoreDown


class Standing:
    """A store that can be read need not take writes (a full disk, a lock): whoever is about to spend money on
    an answer that must be kept asks here first."""

    def __init__(self) -> None:
        self.trouble = ""
        """Why it does not, "" where it does."""

    def suspect(self, down: StoreDown) -> None:
        """A write has failed. The next look at the store tells whether that lasts."""
        self.trouble = self.trouble or str(down)

    def check(self) -> None:
        if self.trouble:
            raise StoreDown(self.trouble)
