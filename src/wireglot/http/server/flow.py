"""Both directions of a connection: what has arrived before its turn, and what the client has yet to take."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

from wireglot.http.limits import WriteLimits

_AHEAD_BYTES: Final = 64 * 1024
"""A client that has sent more than this of further requests is not read until there is room again."""

_UNSENT_OPTION: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)
_INT_MAX: Final = 2**31 - 1


def hold_back(transport: asyncio.Transport, pending: int) -> None:
    """Let the system, too, hold only so much that is not on its way: it would take megabytes."""
    sock = transport.get_extra_info("socket")
    if _UNSENT_OPTION is not None and sock is not None:
        with contextlib.suppress(OSError):  # not TCP
            sock.setsockopt(socket.IPPROTO_TCP, _UNSENT_OPTION, min(pending, _INT_MAX))


class Backlog:
    """Requests that wait for their turn."""

    __slots__ = ("_at", "_paused", "_transport", "data")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._paused = False
        self.data = b""
        self._at = 0
        """Where in `data` they begin: taking one does not move the others."""

    def put(self, data: bytes, at: int) -> None:
        self.data = data
        self._at = at
        if len(data) - at > _AHEAD_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def add(self, data: bytes) -> None:
        self.put(self.data[self._at :] + data, 0)

    @property
    def is_full(self) -> bool:
        """Whether reading rests, and with it all news of the client: also that it has gone."""
        return self._paused

    def take(self) -> tuple[bytes, int]:
        """All of it, and where it begins; what is left after one request is `put` back."""
        data, at = self.data, self._at
        self.data = b""
        self._at = 0
        return data, at

    def drop(self) -> None:
        self.data = b""
        self._at = 0
        self.read_on()

    def read_on(self) -> None:
        """Read again if there is room again."""
        if self._paused and len(self.data) - self._at <= _AHEAD_BYTES:
            self._paused = False
            self._transport.resume_reading()


class Outflow:
    """What was written, and what of it the client has taken since when."""

    __slots__ = ("_flushed", "_moved", "pending", "written")

    def __init__(self, now: float) -> None:
        self.written = 0
        """All bytes handed to the transport so far."""
        self.pending = 0
        """Those that the transport still had when the client was last seen to take some."""
        self._flushed = 0
        self._moved = now

    def is_stuck(self, now: float, pending: int, limits: WriteLimits) -> bool:
        """Whether the client has not taken, for `write_stall`, what was pending then (or 64 KiB of it)."""
        flushed = self.written - pending
        if not pending or flushed >= self._flushed + min(self.pending, limits.write_pending):
            self._moved = now
            self._flushed = flushed
            self.pending = pending
            return False
        return now - self._moved > limits.write_stall
