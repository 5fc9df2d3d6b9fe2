"""A WebSocket on a connection of the server (RFC 6455): handshake, text messages in both directions, pings,
the close.

Extensions are declined, including compression: what a client sends is never larger than its bytes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Message, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from wireglot.http.application import Head, UpgradableReply, Upgrade
from wireglot.http.frames import MAX_FRAMES_AT_ONCE, TOO_MANY, IdleFrames

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
NOT_TEXT: Final = 1003
POLICY: Final = 1008
TOO_LARGE: Final = 1009
INTERNAL: Final = 1011
_MAX_WAITING: Final = 32
"""Messages of a client's WebSocket that wait to be read by the gateway."""
_MAX_UNANSWERED: Final = 2
"""Unanswered pings after which the client is considered gone."""
_KEY_BYTES: Final = 16
_REASON_CHARACTERS: Final = 100
_UNSENT: Final = (1005, 1006, 1015)
"""Codes that mean "no code"."""


class SocketLimits(Protocol):
    @property
    def message(self) -> int:
        """Bytes of one message, and of all waiting ones."""
        ...

    @property
    def ping(self) -> float:
        """Seconds between two pings."""
        ...


class SocketClosed(Exception):
    """The client has closed the WebSocket, or it was closed for the client's protocol error."""


def handshake_problem(head: Head) -> str:
    """What is wrong with a request for a WebSocket; "" if it is valid."""
    headers = head.headers
    if headers.get("upgrade", "").strip().lower() != "websocket":
        return "upgrade: expected websocket"
    if "upgrade" not in {option.strip() for option in headers.get("connection", "").lower().split(",")}:
        return "connection: expected Upgrade"
    if headers.get("sec-websocket-version", "").strip() != "13":
        return "sec-websocket-version: expected 13"
    try:
        key = base64.b64decode(headers.get("sec-websocket-key", ""), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    return "" if len(key) == _KEY_BYTES else "sec-websocket-key: expected 16 bytes in base64"


class WebSocket:
    """An open WebSocket. Its messages are read one after the other with `receive`; each is kept, and counted
    as memory of the process, until `done`."""

    def __init__(self, head: Head, reply: UpgradableReply, limits: SocketLimits) -> None:
        """The handshake must be valid."""
        self._reply = reply
        self._limits = limits
        self._protocol = Connection(ConnectionType.SERVER)
        self._loop = asyncio.get_running_loop()
        self._messages: deque[bytes] = deque()
        self._arriving = bytearray()
        """Of one message. Joined at once: as a list, tiny pieces would take many times their bytes."""
        self._held = 0
        """All bytes that are counted."""
        self._arrived = 0
        """Bytes of the waiting messages, and of the one that is arriving."""
        self._waiter: asyncio.Future[None] | None = None
        self._unanswered = 0
        self._idle = IdleFrames(self._loop.time)
        self._is_reading_on = False
        """More frames have arrived than one step reads: the connection is paused until they are read."""
        self._hooks: dict[object, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._pressed = False
        self.draining = False
        self.closed = False
        self.fault: tuple[int, str] | None = None
        """The close code and the client's error, if that ended it."""
        self.on_gone: Callable[[], object] | None = None
        """Called if the client closes it, or has to be disconnected."""
        upgrade = Upgrade(receive=self._received, drain=self._drain, pause=self._pause, resume=self._resume)
        key = head.headers["sec-websocket-key"].encode()
        headers = [("upgrade", "websocket"), ("sec-websocket-accept", generate_accept_token(key).decode())]
        self._timer = self._loop.call_later(limits.ping, self._ping)
        reply.upgrade(headers, upgrade)

    # Messages.

    async def receive(self, seconds: float) -> bytes | None:
        """The next message, in UTF-8, once the client has taken what it was sent; None if there is none
        within this time, or the server is shutting down. Raises SocketClosed."""
        deadline = self._loop.time() + seconds
        while True:
            if self.closed:
                raise SocketClosed
            left = deadline - self._loop.time()
            if self.draining or left <= 0:
                return None
            if self._messages and not self._pressed:
                message = self._messages.popleft()
                self._arrived -= len(message)
                return message
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(left, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None

    def done(self, message: bytes) -> None:
        self.hold(-len(message))

    def hold(self, size: int) -> bool:
        """Count bytes that are held here; a negative number releases them. Returns whether there is room for
        them."""
        self._held += size
        return self._reply.hold(size)

    def send(self, text: str) -> None:
        if not self.closed:
            self._write(TextMessage(data=text))

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Send a close frame, unless one was sent."""
        self._timer.cancel()
        if not self.closed:
            self.closed = True
            if self._protocol.state is not ConnectionState.CLOSED:
                self._write(CloseConnection(code=code, reason=reason[:_REASON_CHARACTERS] or None))
            self._read_all()
            self._reply.linger()
        self._wake()

    def release(self) -> None:
        """Its task is over: all memory is released."""
        self.close(INTERNAL)
        self._messages.clear()
        self._arriving = bytearray()
        self.hold(-self._held)

    def on_pressure(self, answer: object, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """As for `Reply.on_pressure`, for one of the answers in progress."""
        self._hooks[answer] = pause, resume
        if self._pressed:
            pause()

    def answered(self, answer: object) -> None:
        """An answer is no longer in progress."""
        self._hooks.pop(answer, None)

    # Called by the connection.

    def _received(self, data: bytes) -> None:
        if not self.closed:
            self._unanswered = 0  # any data shows that the client is there
            self._protocol.receive_data(data)
            if not self._is_reading_on:
                self._read()

    def _read(self) -> None:
        """Read the frames that have arrived, a number of them in each step of the loop."""
        taken = 0
        ping: Ping | None = None
        for event in islice(self._protocol.events(), MAX_FRAMES_AT_ONCE):
            taken += 1
            if self._idle.exceed(event):
                self._fail(POLICY, TOO_MANY)
            elif isinstance(event, Ping):
                ping = event
            else:
                self._take(event)
            if self.closed:
                return
        if ping is not None and not self._pressed:  # a client that does not read gets no answers
            self._write(ping.response())  # to the last one only, as RFC 6455 5.5.3 allows
        if taken < MAX_FRAMES_AT_ONCE:
            self._read_all()
            return
        if not self._is_reading_on:
            self._is_reading_on = True
            self._reply.pause_reading()
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self.closed:
            self._read()

    def _read_all(self) -> None:
        """Nothing that has arrived is left to read."""
        if self._is_reading_on:
            self._is_reading_on = False
            self._reply.resume_reading()

    def _take(self, event: Event) -> None:
        if isinstance(event, TextMessage):
            self._take_text(event)
        elif isinstance(event, BytesMessage):
            self._fail(NOT_TEXT, "expected text")
        elif isinstance(event, CloseConnection):
            if self._protocol.state is ConnectionState.OPEN:  # invalid frames, without the client's close
                self._fail(event.code, event.reason or "")
            else:
                self._let_go(NORMAL if event.code in _UNSENT else event.code, event.reason or "")

    def _take_text(self, event: Message[str]) -> None:
        piece = event.data.encode()
        size = len(piece)
        has_room = self.hold(size)
        self._arrived += size
        if len(self._arriving) + size > self._limits.message:
            self._fail(TOO_LARGE, f"a message is larger than {self._limits.message} bytes")
        elif not has_room:
            self._fail(POLICY, "the gateway is at its memory limit")
        elif self._arrived > 2 * self._limits.message or len(self._messages) >= _MAX_WAITING:
            self._fail(POLICY, "too many messages are waiting")
        else:
            self._arriving += piece
            if event.message_finished:
                self._messages.append(bytes(self._arriving))
                self._arriving = bytearray()
                self._wake()

    def _fail(self, code: int, reason: str) -> None:
        """Close it for the client's protocol error."""
        self.fault = code, reason
        self._let_go(code, reason)

    def _let_go(self, code: int, reason: str) -> None:
        self.close(code, reason)
        if self.on_gone is not None:
            self.on_gone()

    def _drain(self) -> None:
        self.draining = True
        self._wake()

    def _pause(self) -> None:
        self._pressed = True
        for pause, _ in list(self._hooks.values()):
            pause()

    def _resume(self) -> None:
        self._pressed = False
        self._wake()
        for _, resume in list(self._hooks.values()):
            resume()

    def _ping(self) -> None:
        """Keep the connection alive, and check whether the client is: an idle connection may be dropped on
        its way."""
        if self._unanswered >= _MAX_UNANSWERED:
            self._let_go(GOING_AWAY, "no answer to pings")
            return
        if not self._pressed:  # the server disconnects those that read nothing
            self._unanswered += 1
            self._write(Ping())
        self._timer = self._loop.call_later(self._limits.ping, self._ping)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _write(self, event: Event) -> None:
        self._reply.write_raw(self._protocol.send(event))
