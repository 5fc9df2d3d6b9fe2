"""Sends requests of a client's WebSocket over one to the upstream, without the input that the upstream
already has.

The request over HTTP is the definition. If its input begins with the input and output of the last request on
the same connection, only the rest is sent. Without a WebSocket, or if it fails before an answer has begun,
the whole request is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wireglot.gateway.request.worker_thread import LARGE_BYTES, run_in_thread
from wireglot.http.client.client import HttpTransport
from wireglot.http.transport import Answer, Outbound, Timeouts, Transport, TransportFault
from wireglot_core.dialects.capabilities import SocketRefusal, WebSockets
from wireglot_core.wire.json import decode

if TYPE_CHECKING:
    from hashlib import blake2b

    from wireglot.http.client.answer import HttpAnswer
    from wireglot.http.client.websocket import UpstreamSocket

_MAX_AGE_SECONDS: Final = 55 * 60.0
"""Seconds for which a WebSocket to OpenAI is used: OpenAI closes it after 60 minutes, even during an
answer."""
_REFUSED_SECONDS: Final = 300.0
# Targets known to refuse WebSockets.
_MAX_REFUSED: Final = 1024
# Bytes of events from a provider's WebSocket that wait to be read by the gateway.
_MAX_WAITING_BYTES: Final = 64 * 1024
_STREAM: Final = {"content-type": "text/event-stream"}
_JSON: Final = {"content-type": "application/json"}


class SocketRecord:
    """What all connections of a gateway know about upstreams, and the bytes sent to them."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.sent_bytes = 0
        self.saved_bytes = 0
        self._now = now
        self._refused: dict[tuple[str, str], float] = {}
        """Until when no WebSocket is tried at a URL with the connections of this pool."""

    def refuse(self, request: Outbound) -> None:
        if len(self._refused) >= _MAX_REFUSED:
            self._refused.clear()
        self._refused[request.url, request.pool] = self._now() + _REFUSED_SECONDS

    def is_refused(self, request: Outbound) -> bool:
        return self._refused.get((request.url, request.pool), 0.0) > self._now()


class _History(msgspec.Struct, frozen=True):
    """The state of an upstream connection: its last answer, and the input and output that a follow-up request
    begins with."""

    answer: str
    count: int
    digest: bytes


class _Line(msgspec.Struct, eq=False):
    socket: UpstreamSocket
    key: tuple[object, ...]
    """Requests with another value need another connection."""
    history: _History | None = None
    ended: str = ""
    """The id of the last answer."""
    spent: bool = False
    """The upstream has failed on this connection: its state there is unknown."""


class _Sent(msgspec.Struct, frozen=True):
    """A request as it is sent."""

    frame: bytes
    size: int
    """Bytes of its message."""
    marks: blake2b
    """Hash of its whole input."""
    count: int
    is_whole: bool


class UpstreamSockets:
    """Implements `Carrier`, for one lane of a client's connection: it has one request at a time, and at most
    one WebSocket to an upstream, which it shares with no other lane."""

    def __init__(self, record: SocketRecord, max_message: int) -> None:
        self._record = record
        self._max_message = max_message
        self._line: _Line | None = None
        self._over_http = False
        """The upstream rejects messages of this conversation's size, or a new connection failed before an
        answer: some proxies let WebSockets open but pass no messages."""

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.socket.close()

    async def send(
        self, transport: Transport, request: Outbound, timeouts: Timeouts, spoken: WebSockets
    ) -> Answer:
        from wireglot.http.client.websocket import SocketRefused  # loading it takes a tenth of a start

        if self._over_http or not isinstance(transport, HttpTransport) or self._record.is_refused(request):
            return await transport.send(request, timeouts)
        line = self._usable(request)
        if line is not None:
            answer = await self._ask(line, request, timeouts, spoken)
            if answer is not None:
                return answer
            self.close()
        try:
            socket = await transport.open_socket(request, timeouts, self._max_message)
        except SocketRefused:
            self._record.refuse(request)
            return await transport.send(request, timeouts)
        line = self._line = _Line(socket, _key(request))
        answer = await self._ask(line, request, timeouts, spoken)
        if answer is not None:
            return answer
        self.close()
        return await transport.send(request, timeouts)

    def _usable(self, request: Outbound) -> _Line | None:
        line = self._line
        if line is None:
            return None
        age = asyncio.get_running_loop().time() - line.socket.opened
        if line.socket.usable and not line.spent and line.key == _key(request) and age < _MAX_AGE_SECONDS:
            return line
        self.close()
        return None

    async def _ask(
        self, line: _Line, request: Outbound, timeouts: Timeouts, spoken: WebSockets
    ) -> Answer | None:
        """None if this connection cannot be used for the request, but another way may work."""
        from wireglot.http.client.websocket import TOO_LARGE

        writing = partial(_sent, request.body, line.history, spoken)
        sent = await run_in_thread(writing) if len(request.body) > LARGE_BYTES else writing()
        reading = _Reading(line, sent, spoken)
        socket, was_used = line.socket, line.socket.reused
        if not socket.usable:
            return None
        answer = socket.start(sent.frame, timeouts, _MAX_WAITING_BYTES, reading.read)
        try:
            await answer.waiter
        except BaseException:
            answer.abort()
            raise
        if not answer.status:
            fault = answer.given_up()
            if socket.close_code == TOO_LARGE:
                self._over_http = True
                return None
            if socket.stale and isinstance(fault, TransportFault) and fault.problem == "broken":
                return None
            if not was_used:
                self._over_http = True
            raise fault
        refused = reading.refused
        if refused is not None and refused.is_lost and (was_used or sent.is_whole):
            return None
        self._record.sent_bytes += sent.size
        self._record.saved_bytes += max(0, len(request.body) - sent.size)
        return answer


def _key(request: Outbound) -> tuple[object, ...]:
    return request.url, request.pool, request.proxy, *request.headers


def _sent(data: bytes, history: _History | None, spoken: WebSockets) -> _Sent:
    body: dict[str, Any] = decode(data)
    marks, count, place = hashlib.blake2b(digest_size=16), 0, 0
    is_whole = spoken.is_whole(body)
    if is_whole:
        for number, item in enumerate(spoken.items(body), 1):
            if mark := spoken.mark(item):
                marks.update(mark)
                count += 1
                if history is not None and count == history.count and marks.digest() == history.digest:
                    place = number
    previous = history.answer if history is not None and place else ""
    message = spoken.message(body, place, previous)
    from wireglot.http.client.websocket import text_frame

    return _Sent(text_frame(message), len(message), marks, count, is_whole)


class _Reading:
    """Builds one answer from the messages: a stream of events, or an error."""

    def __init__(self, line: _Line, sent: _Sent, spoken: WebSockets) -> None:
        self.refused: SocketRefusal | None = None
        self._line = line
        self._marks = sent.marks.copy()
        self._count = sent.count
        self._is_whole = sent.is_whole
        self._spoken = spoken

    def read(self, message: bytes, answer: HttpAnswer) -> bool:
        line, spoken = self._line, self._spoken
        if not message.lstrip().startswith(b"{"):
            raise TransportFault("protocol", "the upstream's WebSocket sent a message that is not an event")
        end = spoken.end(message)
        if not answer.status:
            if end is not None and end.id and end.id == line.ended:
                raise TransportFault("protocol", "the upstream's WebSocket ended its last answer twice")
            line.history = None
            refused = self.refused = spoken.refused(message)
            if refused is not None:
                line.spent = True
                answer.status, answer.headers = refused.status, {**refused.headers, **_JSON}
                answer.take(refused.body)
                return True
            answer.status, answer.headers = 200, _STREAM
        item = spoken.item(message)
        if item is not None and (mark := spoken.mark(item)):
            self._marks.update(mark)
            self._count += 1
        if end is not None:
            line.ended, line.spent = end.id, not end.is_whole
            if end.is_whole and end.id and self._is_whole:
                line.history = _History(end.id, self._count, self._marks.digest())
        answer.take(b"data: %b\n\n" % message.translate(_ONE_LINE))
        return end is not None


_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
"""Between the tokens of JSON a line break is whitespace, and inside a token there are none."""
