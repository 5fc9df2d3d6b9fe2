"""A reply that records what is sent to the client, and delays the end until that is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wireglot.http.application import Headers, Reply


class Recorder:
    """Implements `Reply` in front of another one, until `release`. After that it only forwards.

    The last write is delayed for one step of the loop, so that an end which follows at once is held with it:
    no client may have the terminal event of an answer that is not stored.
    """

    def __init__(self, behind: Reply, room: int) -> None:
        """`room`: maximum bytes of an answer that are recorded; a longer one is only forwarded."""
        self.status = 0
        self.content_type = ""
        self.whole = False
        """Whether the answer came to its end."""
        self.too_large = False
        self._behind = behind
        self._loop = asyncio.get_running_loop()
        self._room = room
        self._body = bytearray()
        self._waiting: list[bytes] = []
        self._timer: asyncio.Handle | None = None
        self._last: Callable[[], None] | None = None
        self._released = False

    @property
    def started(self) -> bool:
        return self._behind.started or self._last is not None

    @started.setter
    def started(self, value: bool) -> None:
        self._behind.started = value

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        if self._released:
            self._behind.send(status, headers, body)
            return
        self._note(status, headers)
        self._collect(body)
        self.whole = True
        self._last = lambda: self._behind.send(status, headers, body)

    def start(self, status: int, headers: Headers) -> None:
        if not self._released:
            self._note(status, headers)
        self._behind.start(status, headers)

    def write(self, data: bytes) -> None:
        if self._released or self.whole:
            self._behind.write(data)
            return
        self._collect(data)
        self._waiting.append(data)
        if self._timer is None:
            self._timer = self._loop.call_soon(self._flush)

    def end(self) -> None:
        if self._released:
            self._behind.end()
            return
        self.whole = True
        self._stop_timer()
        self._last = self._behind.end

    def abort(self) -> None:
        self.whole = False
        self._stop_timer()
        self._waiting.clear()
        self._last = None
        self._released = True
        self._behind.abort()

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._behind.on_pressure(pause, resume)

    def release(self) -> None:
        """Send what is held back, and record nothing more."""
        self._released = True
        self._stop_timer()
        self._flush()
        last, self._last = self._last, None
        if last is not None:
            last()

    def _note(self, status: int, headers: Headers) -> None:
        self.status = status
        self.content_type = next((value for name, value in headers if name == "content-type"), "")

    def _collect(self, data: bytes) -> None:
        if self.too_large:
            return
        if len(self._body) + len(data) > self._room:
            self.too_large = True
            self._body.clear()
        else:
            self._body += data

    def _flush(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._behind.write(b"".join(waiting))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
