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
    spare: int = 0
    """Bytes in addition to `left` of one that is no stream, while half of the room is free: it can be
    shortened once it is complete. If it is longer than that, only what `left` allowed is kept."""
    grown: int = 0
    """What it has taken of `spare`."""

    def add(self, data: bytes) -> None:
        if not data:
            return
        self.size += len(data)
        if self.truncated or self.lost:
            return
        if len(data) > self.left and not self._grow(len(data) - self.left):
            self.truncated = True
            self._drop_grown()
            data = data[: self.left]
        taken = len(data) + PIECE_BYTES
        if self.room.held + taken > self.room.most:
            self.lost = True
            return
        self.left -= len(data)
        self.held += taken
        self.room.held += taken
        self.pieces.append((monotonic(), data))

    def _grow(self, more: int) -> bool:
        room = self.room
        if self.streamed or more > self.spare or room.held > room.most // 2 - self.left - more - PIECE_BYTES:
            return False
        self.spare -= more
        self.grown += more
        self.left += more
        return True

    def _drop_grown(self) -> None:
        """Keep its beginning alone."""
        excess, self.grown = self.grown - self.left, 0
        self.left = max(0, -excess)
        while excess > 0:
            at, data = self.pieces.pop()
            kept = data[: max(0, len(data) - excess)]
            excess -= len(data) - len(kept)
            freed = len(data) - len(kept) + (0 if kept else PIECE_BYTES)
            self.held -= freed
            self.room.held -= freed
            if kept:
                self.pieces.append((at, kept))

    def let_go(self) -> None:
        """Release all of it."""
        self.pieces = []
        self.room.held -= self.held
        self.held = 0
        self.left = self.spare = self.grown = 0

    def withhold(self) -> None:
        """Report only its size."""
        self.pieces = []
        self.truncated = True
