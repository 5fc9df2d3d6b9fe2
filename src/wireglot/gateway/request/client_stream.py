"""The client's side of a stream: its head is sent at the last moment, and keep-alives while the upstream is
silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.ending import Ending
from wireglot.http.application import Headers, Reply
from wireglot_core.dialects.context import Framing
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.errors import ApiError

_SSE: Final = "text/event-stream; charset=utf-8"
_JSON: Final = "application/json"
_HEADERS: Final[Headers] = [("cache-control", "no-cache"), ("x-accel-buffering", "no")]


class RunningAnswer(Protocol):
    """Writes an answer that has begun, and can end it with an error."""

    def fail(self, error: ApiError) -> None: ...


class ClientStream:
    """Until `begun` nothing of an answer has been written: another upstream may still be called."""

    __slots__ = (
        "_content_type",
        "_ending",
        "_headers",
        "_interval",
        "_last",
        "_listener",
        "_loop",
        "_now",
        "_ping",
        "_record",
        "_reply",
        "_timer",
        "begun",
        "opened",
    )

    def __init__(
        self,
        reply: Reply,
        ending: Ending,
        record: ExchangeRecord,
        *,
        surface: Surface,
        framing: Framing,
        ping_seconds: float,
        headers: Callable[[], Headers],
    ) -> None:
        """`headers` is called at the last moment: by then it is known which upstream answers."""
        self.begun = False
        self.opened = False
        self._reply = reply
        self._ending = ending
        self._listener = ending.listener
        self._record = record
        self._ping = surface.client.pings[framing]
        self._content_type = _SSE if framing == "sse" else _JSON
        self._interval = ping_seconds
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._last = self._now()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(ping_seconds, self._tick)

    def write(self, data: bytes, *, last: bool = False, answers: bool = True) -> None:
        """`last`: with these bytes the client can see that its answer is complete, so its account is
        completed before they are sent. `answers`: False for an error, which is no first byte of an
        answer."""
        if not self.begun:
            self.begun = True
            if answers:
                self._record.began()
            if not self.opened:
                self._open()
        if self._listener is not None:
            self._listener(data)
        if last:
            self._ending.complete()
        self._last = self._now()
        self._reply.write(data)

    def end(self) -> None:
        self.close()
        if not self.opened:
            self._open()
        if not self._ending.completed:
            self._ending.complete()
        self._reply.end()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _open(self) -> None:
        self.opened = True
        self._reply.start(200, [("content-type", self._content_type), *_HEADERS, *self._headers()])

    def _tick(self) -> None:
        """One timer for the whole stream: it checks when something was last written, and sleeps for the
        rest."""
        silent = self._loop.time() - self._last
        if silent >= self._interval:
            if self._ending.before_answering() is None:  # its head belongs to the answer too
                if not self.opened:
                    self._open()
                self._reply.write(self._ping)
                self._last = self._loop.time()
            silent = 0.0
        self._timer = self._loop.call_later(self._interval - silent, self._tick)
