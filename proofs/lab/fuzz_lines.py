"""Which lines of our own package an input reaches that none before it did."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

import wireglot
import wireglot_core

T = TypeVar("T")

_PACKAGES: Final = tuple(f"{package.__path__[0]}/" for package in (wireglot, wireglot_core))
_NOTHING: Final[set[int]] = set()


class Lines:
    """Watches what runs under `watched`. A function of which every line is known is not watched any more, so
    that it costs less and less."""

    def __init__(self) -> None:
        self.known = 0
        self._left: dict[int, set[int]] = {}
        self._codes: list[CodeType] = []
        """They are distinguished by address, so none of them may go."""

    def watched(self, work: Callable[[], T]) -> T:
        sys.settrace(self._entered)
        try:
            return work()
        finally:
            sys.settrace(None)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        left = self._left.get(id(code))
        if left is None:
            self._codes.append(code)
            ours = code.co_filename.startswith(_PACKAGES)
            left = {line for _, _, line in code.co_lines() if line} if ours else _NOTHING
            self._left[id(code)] = left
        return self._reached if left else None

    def _reached(self, frame: FrameType, event: str, argument: Any) -> Any:
        left = self._left[id(frame.f_code)]
        if frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self.known += 1
        return self._reached
