"""Text that grows by words, as a stream brings them."""

from __future__ import annotations

from typing import Final

_FEW: Final = 64


class GrowingText:
    """A list of the words would take ten times their memory: a short string is mostly its own head. So the
    last few are kept as they came, those before them as long strings."""

    __slots__ = ("_last", "_long")

    def __init__(self) -> None:
        self._long: list[str] = []
        self._last: list[str] = []

    def add(self, text: str) -> None:
        last = self._last
        last.append(text)
        if len(last) == _FEW:
            self._long.append("".join(last))
            last.clear()

    def __str__(self) -> str:
        return "".join(self._long) + "".join(self._last)
