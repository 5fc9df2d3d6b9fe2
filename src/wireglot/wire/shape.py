"""The shape of a frame: its bytes but for a few values, in which those of one stream mostly differ.

All other bytes being equal, a frame of the same shape says what the first one said, with other values in it.
Slices are compared, because `startswith` and `find` cost more in CPython than what they look at here.
"""

from __future__ import annotations

import re
from typing import Final

_QUOTE: Final = ord('"')
_LINE_END: Final = b"\n"


class Shape:
    __slots__ = ("_cut", "_joint", "between", "first", "last", "start")

    def __init__(self, frame: bytes, varying: re.Pattern[bytes]) -> None:
        """`varying` finds the values that may differ: a group is the inside of a string, or an integer. The
        quotes belong to what stands around it."""
        literals, at = [], 0
        for found in varying.finditer(frame):
            start, end = found.span(found.lastindex or 0)
            literals.append(frame[at:start])
            at = end
        self.first, *self.between = literals
        self.last = frame[at:]
        self.start, self._cut = len(self.first), len(self.last)
        self._joint = self.last + self.first

    def values(self, data: bytes) -> bytes:
        """What stands in the places of the values of one such frame, or of several, each on a line: JSON has
        no line end in a value. Empty where the shape is another.

        Where there is a quote in it that no backslash belongs to, the shape is another, too.
        """
        end = len(data) - self._cut
        if data[: self.start] != self.first or data[end:] != self.last:
            return b""
        inside = data[self.start : end]
        if not self.between:
            return inside.replace(self._joint, _LINE_END) if _QUOTE in inside else inside
        values = []
        for rest in inside.split(self._joint):
            for literal in self.between:
                value, found, rest = rest.partition(literal)
                if not found:
                    return b""
                values.append(value)
            values.append(rest)
        return _LINE_END.join(values)

    def filled(self, values: list[bytes]) -> bytes:
        """A frame of this shape with these values."""
        literals = [self.first, *self.between]
        pieces = [piece for pair in zip(literals, values, strict=True) for piece in pair]
        return b"".join([*pieces, self.last])
