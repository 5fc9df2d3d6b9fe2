"""Frames that pass through and differ from one before only in their words: most of a stream.

What a frame tells a tap or a verdict stands in its keys and in values that name something. One that has the
bytes of a frame with nothing new, but for its words and for numbers that grow, has nothing new either.
"""

from __future__ import annotations

import re
from typing import Final

from wireglot.dialects.passthrough import event_of, object_of
from wireglot.wire.shape import Shape

_VARYING: Final = re.compile(
    rb'"(?:text|content|delta|thinking|reasoning_content|reasoning|refusal|obfuscation)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)+)"'
    rb'|"(?:sequence_number|[a-z]*[tT]okenCount)"\s*:\s*(\d+)'
)
"""An empty text says less than any other, so it stays what it is."""
_GAPS: Final = (b"\n\n", b"\r\n\r\n")
_QUOTE, _BACKSLASH = b'"\\'
"""As numbers: they are found four times as fast."""
_PLAIN: Final = re.compile(rb"(?:[^\\]|\\(?:[\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
"""A quote behind a backslash does not end its text, and JSON has no other escapes."""
_CONTROL: Final = re.compile(rb"[\0-\x09\x0b-\x1f]")
"""No value has one of them in JSON. A line end is what separates values here."""
_TRIES: Final = 4
"""How many frames in a row are learned in vain: some servers say something new in each."""


class RepeatedFrames:
    """The shape of the last frame that told nothing."""

    __slots__ = ("_largest", "_shape", "_tries")

    def __init__(self, largest: int) -> None:
        """`largest`: bytes of a frame that need not be refused."""
        self._largest = largest
        self._shape: Shape | None = None
        self._tries = _TRIES

    def hold(self, data: bytes) -> bool:
        """Whether these are whole frames of that shape, and nothing else."""
        shape = self._shape
        if shape is None or len(data) > self._largest:
            return False
        said = shape.values(data)
        if not said or _QUOTE in said:
            return False
        if _BACKSLASH in said and _PLAIN.fullmatch(said) is None:
            return False
        try:
            if not said.decode().isprintable() and _CONTROL.search(said) is not None:
                return False
        except UnicodeDecodeError:
            return False
        self._tries = _TRIES
        return True

    def learn(self, data: bytes) -> None:
        """Remember the last of these frames, which are whole. They were all looked at, and told nothing."""
        if not self._tries:
            return
        self._tries -= 1
        for gap in _GAPS:
            if data.endswith(gap):
                frame = data[: -len(gap)].rpartition(gap)[2] + gap
                # In JSON, and only there, what looks like a key and its value is one.
                if _VARYING.search(frame) is not None and object_of(event_of(frame)):
                    self._shape = Shape(frame, _VARYING)

    def forget(self) -> None:
        self._shape = None
