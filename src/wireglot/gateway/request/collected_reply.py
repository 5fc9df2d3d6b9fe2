"""An answer that is not sent on: of a request that the gateway itself makes."""

from __future__ import annotations

from collections.abc import Callable

from wireglot.http.application import Headers


class CollectedReply:
    """Implements `Reply`. What comes is counted, and kept up to `most` bytes."""

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
