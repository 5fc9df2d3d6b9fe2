"""The frames of a WebSocket, read in steps: a read of 256 KiB can have 40,000 of them, and each costs far
more than its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wsproto.events import BytesMessage, Event, TextMessage

# Frames of one connection that are read in one step of the loop: they take less than two milliseconds. Then
# all others have their turn, and meanwhile the connection is not read.
MAX_FRAMES_AT_ONCE: Final = 64

# Frames without content (pings, pongs, empty or tiny fragments) of one connection within 20 seconds: clients
# and providers ping every few seconds, and none sends a text in thousands of pieces.
MAX_IDLE_FRAMES: Final = 1000

TOO_MANY: Final = "too many frames without content"
_WINDOW_SECONDS: Final = 20.0
_TINY: Final = 64
"""A fragment of fewer characters than this has no content that would be worth its frame."""


class IdleFrames:
    """Counts the frames of one connection that have no content."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since = now()
        self._count = 0

    def exceed(self, event: Event) -> bool:
        """Count a frame. Returns whether there have been too many."""
        if isinstance(event, TextMessage | BytesMessage):
            if not event.frame_finished:
                return False  # as much of it as has arrived
            if len(event.data) >= (1 if event.message_finished else _TINY):
                return False
        if self._count == 0 or self._now() - self._since > _WINDOW_SECONDS:
            self._since = self._now()
            self._count = 0
        self._count += 1
        return self._count > MAX_IDLE_FRAMES
