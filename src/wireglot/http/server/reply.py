"""One answer on its way out. A reply that is over writes nothing, whatever its handler still does with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from wireglot.http.application import Headers
from wireglot.http.server.hub import Hub
from wireglot.http.server.render import BODILESS, plain_refusal, render_head

_ONE_WRITE_BYTES: Final = 64 * 1024
"""Up to here head and body are joined; a larger body is not copied for it."""
_SHORT_BYTES: Final = 1024
_CHUNK_HEADS: Final = tuple(b"%x\r\n" % size for size in range(_SHORT_BYTES))
"""Of nearly all chunks: one is an event of a stream. To format a head takes longer than all else for it."""


class OutgoingLine(Protocol):
    """What a reply may do to the connection that it goes out on."""

    @property
    def hub(self) -> Hub: ...

    @property
    def pressed(self) -> bool:
        """The client reads slower than we write."""
        ...

    def write(self, data: bytes) -> None: ...

    def answered(self, reply: ServerReply) -> None:
        """The answer is written; the connection is free for the next request."""
        ...

    def cut(self, *, flush: bool) -> None:
        """End in the middle of an answer, so that the client sees that it is not whole."""
        ...


class ServerReply:
    """Implements `Reply` for one request of a connection."""

    __slots__ = (
        "_chunked",
        "_held",
        "_line",
        "_pause",
        "_resume",
        "close",
        "head_only",
        "minor",
        "over",
        "size",
        "started",
    )

    def __init__(self, line: OutgoingLine, head_only: bool, close: bool, minor: int, size: int = 0) -> None:
        self._line = line
        self.head_only = head_only
        self.close = close
        """Whether the connection ends with this answer."""
        self.minor = minor
        self.size = size
        """Bytes of the request's body, which are held for as long as its handler runs."""
        self.started = False
        self.over = False
        """Answered in full, cut, or the client has gone."""
        self._chunked = False
        self._held = b""
        """A head that waits for the first bytes of its body."""
        self._pause: Callable[[], None] | None = None
        self._resume: Callable[[], None] | None = None

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        if self.over:
            return
        self._begin()
        bodiless = status in BODILESS
        length = "" if bodiless else f"content-length: {len(body)}\r\n"
        hub = self._line.hub
        data = render_head(hub.status_lines.get(status), headers, f"{length}{self._persistence()}\r\n")
        if bodiless or self.head_only:
            self._line.write(data)
        elif len(body) <= _ONE_WRITE_BYTES:
            self._line.write(data + body)
        else:
            self._line.write(data)
            self._line.write(body)
        self._finish()

    def start(self, status: int, headers: Headers) -> None:
        if self.over:
            return
        self._begin()
        self._chunked = self.minor == 1
        if not self._chunked:
            self.close = True  # HTTP/1.0 knows the end of such a body only by the end of the connection
        framing = "transfer-encoding: chunked\r\n" if self._chunked else ""
        hub = self._line.hub
        head = render_head(hub.status_lines.get(status), headers, f"{framing}{self._persistence()}\r\n")
        self._held = head
        hub.loop.call_soon(self._release)

    def write(self, data: bytes) -> None:
        if self.over or not data:
            return
        if not self.started:
            raise RuntimeError("write before start")
        if self.head_only:
            return
        if self._chunked:
            size = len(data)
            head = _CHUNK_HEADS[size] if size < _SHORT_BYTES else b"%x\r\n" % size
            data = head + data + b"\r\n"
        if self._held:
            data = self._held + data
            self._held = b""
        self._line.write(data)

    def end(self) -> None:
        if self.over:
            return
        if not self.started:
            raise RuntimeError("end before start")
        last = self._held + b"0\r\n\r\n" if self._chunked and not self.head_only else self._held
        self._held = b""
        if last:
            self._line.write(last)
        self._finish()

    def abort(self) -> None:
        if self.over:
            return
        self._release()
        self.over = True
        self._line.cut(flush=self._chunked)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        if self.over:
            return
        self._pause = pause
        self._resume = resume
        if self._line.pressed:
            pause()

    def press(self) -> None:
        if self._pause is not None:
            self._pause()

    def relieve(self) -> None:
        if self._resume is not None:
            self._resume()

    def handled(self, task: asyncio.Task[None]) -> None:
        """The handler is through: whatever it has left unanswered is answered for it."""
        hub = self._line.hub
        hub.ran(task)
        hub.account.give(self.size)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            hub.report("a request handler failed", problem)
        if self.over:
            return
        if self.started:
            self.abort()
        elif task.cancelled():
            self._apologise(503, "server_is_overloaded", "the server is shutting down")
        else:
            self._apologise(500, "internal_error", "internal error")

    def _apologise(self, status: int, code: str, message: str) -> None:
        refusal = plain_refusal(status, code, message)
        self.close = True
        self.send(refusal.status, refusal.headers, refusal.body)

    def _begin(self) -> None:
        if self.started:
            raise RuntimeError("an answer has begun already")
        self.started = True
        if self._line.hub.draining:
            self.close = True

    def _persistence(self) -> str:
        if self.close:
            return "connection: close\r\n"
        return "" if self.minor == 1 else "connection: keep-alive\r\n"

    def _finish(self) -> None:
        self.over = True
        self._pause = self._resume = None
        self._line.answered(self)

    def _release(self) -> None:
        """Send a head for which no body has come in the same step of the loop."""
        if self._held and not self.over:
            held, self._held = self._held, b""
            self._line.write(held)
