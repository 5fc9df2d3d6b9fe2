"""Replies without a connection: one that is sent nowhere, and wrappers of another one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from wireglot.http.application import Headers, Reply
from wireglot_core.dialects.surface import Framer, StreamFraming

_EVENTS: Final = "text/event-stream"


class CollectedReply:
    """Implements `Reply`. Counts what comes, and keeps up to `most` bytes."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self.started = False
        self.ended = False
        self.status = 0
        self.headers: Headers = []
        self.size = 0
        self.body = bytearray()

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.start(status, headers)
        self.write(body)
        self.end()

    def start(self, status: int, headers: Headers) -> None:
        self.started, self.status, self.headers = True, status, headers

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if len(self.body) < self._most:
            self.body += data[: self._most - len(self.body)]

    def end(self) -> None:
        self.ended = True

    def abort(self) -> None: ...

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None: ...


class PassedReply:
    """Implements `Reply` by passing everything to another one. For subclasses that change or note some of
    it."""

    __slots__ = ("behind",)

    def __init__(self, behind: Reply) -> None:
        self.behind = behind

    @property
    def started(self) -> bool:
        return self.behind.started

    @started.setter
    def started(self, value: bool) -> None:
        self.behind.started = value

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.behind.send(status, headers, body)

    def start(self, status: int, headers: Headers) -> None:
        self.behind.start(status, headers)

    def write(self, data: bytes) -> None:
        self.behind.write(data)

    def end(self) -> None:
        self.behind.end()

    def abort(self) -> None:
        self.behind.abort()

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self.behind.on_pressure(pause, resume)


_ANY_LENGTH: Final = sys.maxsize
"""For an event to a client: those of upstreams are limited when they are read, and ours may join them."""


class FramedReply(PassedReply):
    """Implements `Reply`: converts server-sent events to the framing that its client reads."""

    __slots__ = ("_framer", "_framing")

    def __init__(self, behind: Reply, framing: StreamFraming) -> None:
        super().__init__(behind)
        self._framing = framing
        self._framer: Framer | None = None

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        """A repeated stream comes in one piece."""
        headers = self._begin(headers)
        if self._framer is not None:
            body = self._framer.feed(body) + self._framer.close()
        self.behind.send(status, headers, body)

    def start(self, status: int, headers: Headers) -> None:
        self.behind.start(status, self._begin(headers))

    def _begin(self, headers: Headers) -> Headers:
        """The headers to send, and a framer if they are those of a stream."""
        if not any(name == "content-type" and value.startswith(_EVENTS) for name, value in headers):
            return headers
        self._framer = self._framing.framer(_ANY_LENGTH)
        others = [header for header in headers if header[0] != "content-type"]
        return [("content-type", self._framing.content_type), *others]

    def write(self, data: bytes) -> None:
        if self._framer is not None:
            data = self._framer.feed(data)
        if data:
            self.behind.write(data)

    def end(self) -> None:
        rest = self._framer.close() if self._framer is not None else b""
        if rest:
            self.behind.write(rest)
        self.behind.end()
