"""What passes of a message, held as it is for anyone who looks at it later. A connection fills it in passing:
one without followers has none."""

from __future__ import annotations

from time import monotonic
from typing import Final

import msgspec

PIECE_BYTES: Final = 100
"""That a piece takes in addition to its data."""


class Room:
    """Bytes that all copies of the process may hold."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0


class MessageCopy(msgspec.Struct, eq=False):
    """One message. Of what is longer than it may be, the beginning is kept."""

    room: Room
    left: int
    """Bytes that it may still keep. Where a call for each event would show, `add` is written out: the plain
    case of it, and a call for any other."""
    method: str = ""
    url: str = ""
    status: int = 0
    headers: list[tuple[str, str]] = []
    pieces: list[tuple[float, bytes]] = []
    """With the time of each."""
    streamed: bool = False
    size: int = 0
    """Of all that passed."""
    held: int = 0
    """What it takes of the room."""
    truncated: bool = False
    lost: bool = False
    """There was no room for it."""

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
        """Nothing of it is held any more."""
        self.pieces = []
        self.room.held -= self.held
        self.held = 0
        self.left = 0

    def withhold(self) -> None:
        """How long it was is all that is reported about it."""
        self.pieces = []
        self.truncated = True
