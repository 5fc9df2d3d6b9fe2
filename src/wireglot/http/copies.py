"""Copies of messages: data that passes is referenced unchanged, for later viewers. A connection fills its
copy in passing; without followers it has none."""

from __future__ import annotations

from time import monotonic
from typing import Final

import msgspec

PIECE_BYTES: Final = 100
"""Memory of a piece in addition to its data."""


class Room:
    """The memory that all copies of the process may use."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0


class MessageCopy(msgspec.Struct, eq=False):
    """One message. Of one that is too long, the beginning is kept."""

    room: Room
    left: int
    """Bytes that it may still keep. In hot loops the plain case of `add` is written out, with a call for all
    others."""
    method: str = ""
    url: str = ""
    status: int = 0
    headers: list[tuple[str, str]] = []
    pieces: list[tuple[float, bytes]] = []
    """With the time of each."""
    streamed: bool = False
    size: int = 0
    """Total size of the message."""
    held: int = 0
    """Memory that it takes."""
    truncated: bool = False
    lost: bool = False
    """There was no memory for it."""

    def add(self, data: bytes) -> None:
        if not data:
            return
        self.size += len(data)
        if self.truncated or self.lost:
            return
        if len(data) > self.left:
            self.truncated = True
            data = data[: self.left]
        taken = len(data) + PIECE_BYTES
        if self.room.held + taken > self.room.most:
            self.lost = True
            return
        self.left -= len(data)
        self.held += taken
        self.room.held += taken
        self.pieces.append((monotonic(), data))

    def let_go(self) -> None:
        """Release all of it."""
        self.pieces = []
        self.room.held -= self.held
        self.held = 0
        self.left = 0

    def withhold(self) -> None:
        """Report only its size."""
        self.pieces = []
        self.truncated = True
