"""What a memory holds: a value, and what was made of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

_VALUE_BYTES: Final = 3
"""A text is held as it came, decoded, and (mostly the same objects) parsed: about so many times its bytes."""
_ENTRY_BYTES: Final = 2304
"""And these bytes for each text, however short it is: its value, its places in the memory and in what is
read. Measured with conversations of tiny turns (tests/laws/test_growing.py)."""


class Known:
    __slots__ = ("_root", "beside", "costs", "made", "value")

    def __init__(self, value: Any, root: KnownText | None) -> None:
        self.value = value  # held, so that no other can take its identity
        self._root = root
        self.made: dict[Hashable, Any] = {}
        self.costs: dict[Hashable, tuple[int, Known | None]] = {}
        """What each of them is counted with, and who became known with it and goes with it."""
        self.beside: list[Known] = []

    @property
    def root(self) -> KnownText:
        """The one that came as text: with it this one goes, and it bears the size."""
        assert self._root is not None, "only a text has none"
        return self._root


class KnownText(Known):
    __slots__ = ("behind", "depth", "number", "size", "stated", "text")

    def __init__(self, text: bytes, value: Any, depth: int) -> None:
        super().__init__(value, None)
        self.size = _VALUE_BYTES * len(text) + _ENTRY_BYTES
        self.text = text
        self.depth = depth
        self.number = 0
        """Of all that this memory ever held it is the only one that has it."""
        self.stated = text.rstrip(b" ")
        """As it stands in a body: the spaces are for another value of the same words."""
        self.behind: list[int] = []
        """The numbers of the texts that stood behind it in a list, the latest first."""

    @property
    def root(self) -> KnownText:
        return self  # not held: it would refer to itself
