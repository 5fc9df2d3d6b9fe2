"""A WebSocket to an upstream (RFC 6455): one request at a time, each one message; its answer consists of the
messages up to the final one.

Compression is not offered: what an upstream sends is never larger than its bytes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from itertools import islice
from typing import Final, cast

from wsproto import WSConnection
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import RemoteProtocolError

from wireglot.http.client.answer import HttpAnswer
from wireglot.http.frames import MAX_FRAMES_AT_ONCE, TOO_MANY, IdleFrames
from wireglot.http.transport import Timeouts, TransportFault

TOO_LARGE: Final = 1009
_NORMAL: Final = 1000
_POLICY: Final = 1008
_UNSENT: Final = 1006
_HANDSHAKE_BYTES: Final = 1024
"""The answer to an upgrade is read in pieces of this size: of one that refuses it only the head is needed."""
_MAX_UNREAD_BYTES: Final = 64 * 1024
"""Bytes that an upstream may leave unread before its pings are no longer answered."""
_AT_ONCE_SECONDS: Final = 5.0
"""As for a pooled connection: one that the upstream had closed before a request came ends within this
time."""
_GOODBYE_SECONDS: Final = 1.0
_SLACK_SECONDS: Final = 0.001

ReadMessage = Callable[[bytes, HttpAnswer], bool]
"""Gets each message of an answer, sets its head with the first, passes on its body. True: it was the last."""


class SocketRefused(Exception):
    """The upstream did not switch to a WebSocket. `status`: of its answer, 0 if there was none."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class UpstreamSocket(asyncio.Protocol):
    """Implements `Line`, for the answer in progress. `reused`: it has had one before."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limit: int, forget: Callable[[UpstreamSocket], None]
    ) -> None:
        """`limit`: bytes of one message. `forget` is called once, when it is closed."""
        self.reused = False
        self.close_code = 0
        """The upstream's close code, once it has closed the WebSocket."""
        self.opened = loop.time()
        self.on_answered: Callable[[asyncio.Transport], None] | None = None
        self._loop = loop
        self._limit = limit
        self._forget = forget
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._transport: asyncio.Transport | None = None
        self._status: asyncio.Future[int] | None = None
        """The status of the upgrade, while that is awaited."""
        self._closed = False
        self._arriving = bytearray()
        self._idle = IdleFrames(loop.time)
        self._is_reading_on = False
        """More frames have arrived than one step reads: the connection is paused until they are read."""
        self._next: asyncio.Handle | None = None
        """The step that reads them."""
        self._has_ended = False
        """The upstream has closed the connection; what it sent before is still being read."""
        self._answer: HttpAnswer | None = None
        self._read: ReadMessage = _unread
        self._timeouts = Timeouts()
        self._timer: asyncio.TimerHandle | None = None
        self._started = self._last = 0.0
        self._heard = self._held = False
        self._unsent = 0

    async def open(self, request: Request, seconds: float) -> None:
        """Raises SocketRefused."""
        assert self._transport is not None
        status = self._status = self._loop.create_future()
        self._transport.write(self._protocol.send(request))
        try:
            async with asyncio.timeout(seconds):
                given = await status
        except TimeoutError:
            given = 0
        except BaseException:
            self.drop()
            raise
        finally:
            self._status = None
        if given != 101:
            self.drop()
            raise SocketRefused(given)

    @property
    def usable(self) -> bool:
        return not self._closed and self._transport is not None and not self._transport.is_closing()

    @property
    def stale(self) -> bool:
        """Ended without any data after an earlier answer: it was closed while idle."""
        return self.reused and not self._heard and self._loop.time() - self._started < _AT_ONCE_SECONDS

    def start(self, frame: bytes, timeouts: Timeouts, room: int, read: ReadMessage) -> HttpAnswer:
        """Send a request, a `text_frame`. Its answer has a head with its first message."""
        assert self._answer is None
        assert self._transport is not None
        answer = self._answer = HttpAnswer(self, self._loop, room, self._loop.create_future())
        self._read, self._timeouts = read, timeouts
        self._heard = False
        self._started = self._last = self._loop.time()
        self._transport.write(frame)
        self._unsent = self._transport.get_write_buffer_size()
        self._tick()
        return answer

    def hold(self) -> None:
        if not self._held and self.usable:
            self._held = True
            if not self._is_reading_on:
                self._reading().pause_reading()

    def unhold(self) -> None:
        if self._held and not self._closed:
            self._held = False
            self._last = self._loop.time()
            self._arm()
            if self._is_reading_on:
                self._read_later()
            elif self.usable:
                self._reading().resume_reading()

    def drop(self) -> None:
        """Close at once: a request cannot be cancelled otherwise."""
        self._answer = None
        if self._transport is not None:
            self._transport.abort()
        self._release()

    def close(self) -> None:
        """Send a close frame, if it is open."""
        if self.usable and self._answer is None and self._protocol.state is ConnectionState.OPEN:
            transport = self._reading()
            transport.write(self._protocol.send(CloseConnection(code=_NORMAL)))
            self._end(transport)
        else:
            self.sever()

    def _end(self, transport: asyncio.Transport) -> None:
        """Close it once the peer has what was written, or does not take it."""
        transport.close()
        self._loop.call_later(_GOODBYE_SECONDS, transport.abort)
        self._release()

    def sever(self) -> None:
        """Close at once; a waiter for an answer gets the error."""
        self._fail(TransportFault("broken", "the gateway is shutting down"))

    def _reading(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _release(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._read = _unread
        self._arriving = bytearray()
        self._forget(self)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses of asyncio's

    def data_received(self, data: bytes) -> None:
        if self._closed:
            return
        try:
            self._receive(data)
        except RemoteProtocolError:  # only in the handshake: later ones are events
            self._refused(0)
            return
        if not self._is_reading_on:
            self._read_frames()

    def _receive(self, data: bytes) -> None:
        protocol, at = self._protocol, 0
        while protocol.state is ConnectionState.CONNECTING and at < len(data):
            protocol.receive_data(data[at : at + _HANDSHAKE_BYTES])
            at += _HANDSHAKE_BYTES
        if protocol.connection is not None and at < len(data):
            protocol.receive_data(data[at:])

    def _read_frames(self) -> None:
        """Read the frames that have arrived, a number of them in each step of the loop."""
        taken = 0
        ping: Ping | None = None
        for event in islice(self._protocol.events(), MAX_FRAMES_AT_ONCE):
            taken += 1
            if self._idle.exceed(event):
                self._refuse_flood()
            elif isinstance(event, Ping):
                ping = event
            else:
                self._take(event)
            if self._closed:
                return
        transport, usable = self._reading(), self.usable
        if ping is not None and usable and transport.get_write_buffer_size() <= _MAX_UNREAD_BYTES:
            transport.write(self._protocol.send(ping.response()))  # to the last one only: RFC 6455 5.5.3
        if taken == MAX_FRAMES_AT_ONCE:
            if not self._is_reading_on:
                self._is_reading_on = True
                if usable and not self._held:
                    transport.pause_reading()
            self._read_later()
        elif self._is_reading_on:
            self._is_reading_on = False
            if self._has_ended:
                self._lost(_UNSENT)
            elif usable and not self._held:
                transport.resume_reading()

    def _read_later(self) -> None:
        if self._next is None and not self._held:
            self._next = self._loop.call_soon(self._read_next)

    def _read_next(self) -> None:
        self._next = None
        if not self._closed and not self._held:
            self._read_frames()

    def _refuse_flood(self) -> None:
        transport, answer = self._reading(), self._answer
        self._answer = None
        if self.usable and self._protocol.state is ConnectionState.OPEN:
            transport.write(self._protocol.send(CloseConnection(code=_POLICY, reason=TOO_MANY)))
        self._end(transport)
        if answer is not None:
            answer.end(TransportFault("protocol", f"the upstream's WebSocket sent {TOO_MANY}"))

    def eof_received(self) -> None:
        self._gone()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone()

    def _gone(self) -> None:
        if self._is_reading_on:  # TLS may report the end while reading is paused
            self._has_ended = True
        else:
            self._lost(_UNSENT)

    def _lost(self, code: int) -> None:
        if not self._closed:
            self.close_code = code
            self._refused(0)
            self._fail(TransportFault("broken", f"the upstream closed its WebSocket too early ({code})"))

    # Protocol events

    def _take(self, event: Event) -> None:
        if isinstance(event, TextMessage):
            self._take_text(event)
        elif isinstance(event, BytesMessage):
            self._fail(TransportFault("protocol", "the upstream's WebSocket sent a message that is not text"))
        elif isinstance(event, CloseConnection):
            if self._protocol.state is ConnectionState.OPEN:  # without a close of the upstream's
                self._fail(TransportFault("protocol", "the upstream's WebSocket sent invalid frames"))
            else:
                self._lost(event.code)
        elif isinstance(event, AcceptConnection):
            self._refused(101)
        elif isinstance(event, RejectConnection):
            self._refused(event.status_code)

    def _refused(self, status: int) -> None:
        """The upgrade's answer; 101 if it is not one."""
        if self._status is not None and not self._status.done():
            self._status.set_result(status)

    def _take_text(self, event: Message[str]) -> None:
        self._heard = True
        self._last = self._loop.time()
        self._arriving += event.data.encode()
        if len(self._arriving) > self._limit:
            self._fail(TransportFault("too_large", "a message of the upstream's WebSocket is too large"))
        elif event.message_finished:
            message, self._arriving = bytes(self._arriving), bytearray()
            self._take_message(message)

    def _take_message(self, message: bytes) -> None:
        answer = self._answer
        if answer is None:
            self.close()  # without a request: the upstream is closing, or out of sync
            return
        had_head = bool(answer.status)
        try:
            is_last = self._read(message, answer)
        except Exception as error:  # an exception of the consumer belongs to it
            self._fail(error)
            return
        if self._answer is not answer:
            return  # the consumer aborted it
        if is_last:
            self._finish(answer)
        elif not had_head and not answer.waiter.done():
            answer.waiter.set_result(None)

    # The end of an exchange

    def _finish(self, answer: HttpAnswer) -> None:
        self._answer = None
        self._read = _unread
        self.reused = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.on_answered is not None:
            self.on_answered(self._reading())
            self.on_answered = None
        if self._held:
            self.unhold()
        answer.end(None)

    def _fail(self, error: Exception) -> None:
        answer = self._answer
        self.drop()
        if answer is not None:
            answer.end(error)

    # The timer

    def _tick(self) -> None:
        self._timer = None
        if self._answer is None or self._closed:
            return
        now = self._loop.time()
        unsent = self._reading().get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._last = unsent, now
        if self._due() > now + _SLACK_SECONDS:
            self._arm()
        elif now + _SLACK_SECONDS >= self._started + self._timeouts.total:
            self._fail(TransportFault("total_timeout", "the upstream's answer took too long"))
        elif self._heard:
            self._fail(TransportFault("idle_timeout", "the upstream stopped sending"))
        else:
            self._fail(TransportFault("first_byte_timeout", "the upstream did not answer in time"))

    def _due(self) -> float:
        total = self._started + self._timeouts.total
        if self._held:
            return total
        waiting = self._timeouts.idle if self._heard or self._unsent else self._timeouts.first_byte
        return min(total, self._last + waiting)

    def _arm(self) -> None:
        if self._answer is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        due = self._due()
        if due < math.inf:
            self._timer = self._loop.call_later(max(due - self._loop.time(), _SLACK_SECONDS), self._tick)


def text_frame(message: bytes) -> bytes:
    """A message in a client's frame. Masking a megabyte takes ten milliseconds: large frames are made in a
    worker thread, independently of the connection."""
    return Connection(ConnectionType.CLIENT).send(TextMessage(data=message.decode()))


def _unread(message: bytes, answer: HttpAnswer) -> bool:
    raise AssertionError("no answer is waited for")
