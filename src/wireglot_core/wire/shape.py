"""The shape of a frame: its bytes except for a few values, in which the frames of one stream mostly differ.

If all other bytes are equal, a frame of the same shape has the meaning of the first one with other values.
Slices are compared, because `startswith` and `find` cost more in CPython than the few bytes they compare
here.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

_QUOTE: Final = ord('"')
_NEWLINE: Final = ord("\n")
_LINE_END: Final = b"\n"


class Shape:
    __slots__ = ("_cut", "_integers", "_joint", "between", "first", "last", "start")

    def __init__(self, frame: bytes, varying: re.Pattern[bytes]) -> None:
        """`varying` matches the values that may differ: its group is the inside of a string, or an integer.
        The quotes belong to the surrounding bytes."""
        literals: list[bytes] = []
        integers: list[int] = []
        at = 0
        for found in varying.finditer(frame):
            start, end = found.span(found.lastindex or 0)
            if frame[start - 1] != _QUOTE:
                integers.append(len(literals))
            literals.append(frame[at:start])
            at = end
        self.first, *self.between = literals
        self.last = frame[at:]
        self._integers = tuple(integers)
        """Indexes of the values that are numbers."""
        self.start, self._cut = len(self.first), len(self.last)
        self._joint = self.last + self.first

    def values(self, data: bytes) -> bytes:
        """The values of one such frame, or of several, separated by LF. Empty if the shape differs, a value
        has a line end, or a value expected to be a number is not one: JSON has none of these.

        Not checked here: an unescaped quote in the result also means a different shape.
        """
        end = len(data) - self._cut
        if data[: self.start] != self.first or data[end:] != self.last:
            return b""
        inside = data[self.start : end]
        if not self.between and not self._integers:
            if _QUOTE not in inside:
                return inside if _NEWLINE not in inside else b""
            joined = inside.replace(self._joint, _LINE_END)
            joints = (len(inside) - len(joined)) // (len(self._joint) - 1)
            return joined if joined.count(_LINE_END) == joints else b""
        values: list[bytes] = []
        for rest in inside.split(self._joint):
            for literal in self.between:
                value, found, rest = rest.partition(literal)
                if not found:
                    return b""
                values.append(value)
            values.append(rest)
        for place in self._integers:
            if not all(map(bytes.isdigit, values[place :: len(self.between) + 1])):
                return b""
        joined = _LINE_END.join(values)
        return joined if joined.count(_LINE_END) == len(values) - 1 else b""

    def filled(self, values: list[bytes]) -> bytes:
        """A frame of this shape with these values."""
        literals = [self.first, *self.between]
        return b"".join([*chain.from_iterable(zip(literals, values, strict=True)), self.last])
