"""The clients' connections: requests are read one at a time and in order, each answered by one task."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from wireglot.http.account import ByteAccount
from wireglot.http.application import Application, Head, Headers, Refusal, Upgrade
from wireglot.http.copies import PIECE_BYTES, MessageCopy
from wireglot.http.limits import ServerLimits
from wireglot.http.server.body import ChunkedBody, SizedBody, TooLarge
from wireglot.http.server.head import (
    BODILESS,
    CHUNKED,
    CONTINUE,
    Inbound,
    KnownHead,
    Malformed,
    StatusLines,
    check_partial,
    closing,
    plain_refusal,
    read_head,
    remember,
    render_head,
)
from wireglot.http.server.phases import (
    ANSWERING,
    BODY,
    CLOSING,
    HEAD,
    LINGERING,
    SKIPPING,
    UPGRADED,
    WAITING,
)

_MAX_REFUSALS: Final = 100
"""Consecutive refused requests after which a connection is closed: it is useless."""
_MAX_SKIPPED_BYTES: Final = 64 * 1024
"""Bytes of an unread body that are skipped to keep a connection."""
_MAX_AHEAD_BYTES: Final = 64 * 1024
"""Bytes of further requests that a client may send before the answer to the first; more are not read until
there is room again."""
_UNREAD_SECONDS: Final = 1.0
"""A client that has sent too much ahead is not read, so its disconnect is not noticed: its request continues
for this long, then the connection is closed."""
# Bytes of a refused request that are read and dropped, so that the client can read the refusal.
_MAX_LINGER_BYTES: Final = 1024 * 1024
_LINGER_SECONDS: Final = 2.0
_SLOWEST_BYTES_A_SECOND: Final = 1024
_MAX_TURNED_AWAY: Final = 64
"""Connections over the limit that get a response; further ones are just closed."""
_ONE_WRITE_BYTES: Final = 64 * 1024
"""Up to this size head and body are joined; a larger body is not copied for it."""
_SHORT_BYTES: Final = 1024
_CHUNK_HEADS: Final = tuple(b"%x\r\n" % size for size in range(_SHORT_BYTES))
"""The heads of nearly all chunks: one is an event of a stream. Formatting a head would take longer than all
else."""
_UNSENT_OPTION: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)
_INT_MAX: Final = 2**31 - 1
_LOCAL: Final = ("127.", "::ffff:127.")


class Hub:
    """Shared by the connections of one server: the application, limits, connections, running tasks."""

    def __init__(
        self,
        app: Application,
        limits: ServerLimits,
        account: ByteAccount | None = None,
        on_refusal: Callable[[str, str], None] = lambda code, message: None,
    ) -> None:
        """`account`: one that others share; without it, the server's own. `on_refusal` gets the code and
        message of the first error of each code: its client may not be able to read it."""
        self.app = app
        self.limits = limits
        self.account = account if account is not None else ByteAccount(limits.buffered)
        """Bodies that are arriving or being handled, and output that clients have yet to take."""
        self.loop: asyncio.AbstractEventLoop
        self.context: contextvars.Context
        """Requests run in copies of it: one that starts where another ends must not inherit its variables."""
        self.connections: set[ServerConnection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Running handlers: the loop itself keeps only weak references to tasks."""
        self.status_lines = StatusLines(time.time())
        self.draining = False
        self.empty = asyncio.Event()
        """Set once a draining server has nothing left."""
        self.refused: Counter[str] = Counter()
        """How often each error of the HTTP class was given, by its code."""
        self._on_refusal = on_refusal
        self._peers: Counter[str] = Counter()
        """Connections by address; those from this machine are not counted."""

    def open(self) -> None:
        """Bind to the running event loop."""
        self.loop = asyncio.get_running_loop()
        self.context = contextvars.copy_context()

    def enter(self, connection: ServerConnection, peer: str) -> int:
        """Count a new connection. Returns by how many the limit is exceeded, in total or for its address."""
        self.connections.add(connection)
        excess = len(self.connections) - self.limits.connections
        if peer and peer != "::1" and not peer.startswith(_LOCAL):
            self._peers[peer] += 1
            excess = max(excess, self._peers[peer] - self.limits.connections_per_peer)
        return excess

    def leave(self, connection: ServerConnection, peer: str) -> None:
        self.connections.discard(connection)
        if peer in self._peers:
            self._peers[peer] -= 1
            if self._peers[peer] <= 0:
                del self._peers[peer]
        if self.draining:
            self.note_empty()

    def note_empty(self) -> None:
        if not self.connections and not self.tasks:
            self.empty.set()

    def count_refusal(self, code: str, message: str) -> None:
        if not self.refused[code]:
            self._on_refusal(code, message)
        self.refused[code] += 1

    def report(self, message: str, problem: BaseException) -> None:
        context: dict[str, Any] = {"message": message, "exception": problem}
        self.loop.call_exception_handler(context)


class Backlog(msgspec.Struct, eq=False):
    """Received requests that wait for their turn."""

    transport: asyncio.Transport
    data: bytes = b""
    at: int = 0
    """Where in `data` they begin: taking one does not move the others."""
    is_full: bool = False
    """Whether reading is paused: then a disconnect is not noticed either."""

    def put(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        if len(data) - at > _MAX_AHEAD_BYTES and not self.is_full:
            self.is_full = True
            self.transport.pause_reading()

    def add(self, data: bytes) -> None:
        self.put(self.data[self.at :] + data, 0)

    def take(self) -> tuple[bytes, int]:
        """All data, and where it begins; what is left after one request is `put` back."""
        data, at = self.data, self.at
        self.data = b""
        self.at = 0
        return data, at

    def drop(self) -> None:
        self.data = b""
        self.at = 0
        self.read_on()

    def read_on(self) -> None:
        """Resume reading if there is room again."""
        if self.is_full and len(self.data) - self.at <= _MAX_AHEAD_BYTES:
            self.is_full = False
            self.transport.resume_reading()


class ServerConnection(asyncio.Protocol):
    """One client's connection; `phases` defines which phase may follow which."""

    __slots__ = (
        "_backlog", "_begun", "_body", "_called", "_flushed", "_have", "_heard", "_inbound", "_known",
        "_left", "_moved", "_owed", "_partial", "_pending", "_phase", "_refusals", "_reply", "_scanned",
        "_task", "_transport", "_upgrade", "_written", "hub", "peer", "pressed",
    )  # fmt: skip

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.peer = ""
        self.pressed = False
        """The client reads slower than we write."""
        self._transport: asyncio.Transport | None = None
        self._phase = HEAD
        self._partial = b""
        """A head that has not arrived completely."""
        self._scanned = 0
        self._backlog: Backlog
        self._called = False
        """Whether the loop will call for the waiting data."""
        self._refusals = 0
        self._known: KnownHead | None = None
        self._inbound: Inbound | None = None
        self._body: SizedBody | ChunkedBody | None = None
        self._have = 0
        self._owed = 0
        """Bytes that wait for a client, as counted in the account."""
        self._left = 0
        self._reply: ServerReply | None = None
        self._task: asyncio.Task[None] | None = None
        self._upgrade: Upgrade | None = None
        self._begun = self._heard = hub.loop.time()
        self._written = 0
        """All bytes passed to the transport so far."""
        self._moved = self._begun
        """When the client was last seen to take some data; how much it had taken then, how much was left."""
        self._flushed = 0
        self._pending = 0

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._backlog = Backlog(self._transport)
        name = transport.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) else ""
        hub, pending = self.hub, self.hub.limits.write_pending
        self._transport.set_write_buffer_limits(high=pending)
        sock = transport.get_extra_info("socket")
        if _UNSENT_OPTION is not None and sock is not None:
            # The system's buffer should be small, too: it would take megabytes.
            with contextlib.suppress(OSError):  # not TCP
                sock.setsockopt(socket.IPPROTO_TCP, _UNSENT_OPTION, min(pending, _INT_MAX))
        excess = hub.enter(self, self.peer)
        if excess > _MAX_TURNED_AWAY:
            hub.refused["too_many_connections"] += 1
            self._transport.abort()
        elif excess > 0:
            self._refuse_plainly(503, "too_many_connections", "too many connections")
        elif hub.draining:
            self._refuse_plainly(503, "server_is_overloaded", "the server is shutting down")

    def data_received(self, data: bytes) -> None:
        self._heard = self.hub.loop.time()
        phase = self._phase
        if phase == HEAD:
            self._take_request(self._partial + data if self._partial else data, 0)
        elif phase == BODY:
            self._take_body(data)
        elif phase in (ANSWERING, WAITING):
            self._backlog.add(data)
        elif phase == UPGRADED:
            if self._upgrade is not None:
                self._upgrade.receive(data)
        elif phase == SKIPPING:
            self._skip(data)
        elif phase == LINGERING:
            self._left -= len(data)
            if self._left < 0:
                self.close()

    def eof_received(self) -> bool:
        # A half-closed connection counts as closed: no client of these APIs does it and still waits for its
        # answer.
        if self._reply is not None:
            self._leave(self._reply)
        self._phase = CLOSING
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reply is not None:
            self._leave(self._reply)
        self._phase = CLOSING
        self._transport = None
        if self._owed:
            self._owe(0)
        if self._inbound is not None:
            self._drop_body()
        self.hub.leave(self, self.peer)

    def pause_writing(self) -> None:
        self.pressed = True
        self._owe(self._transport.get_write_buffer_size() if self._transport is not None else 0)
        if self._reply is not None and self._reply.pause is not None:
            self._reply.pause()

    def resume_writing(self) -> None:
        self.pressed = False
        self._owe(0)
        if self._reply is not None:
            if self._reply.resume is not None:
                self._reply.resume()
        elif self._phase == WAITING:
            self._call()

    def _owe(self, size: int) -> None:
        """Count the data that waits for a client which reads slower than we write, until it has been
        taken."""
        self.hub.account.owe(size - self._owed)
        self._owed = size

    # Called by the reply.

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._written += len(data)
            self._transport.write(data)
            if self._owed:
                self._owe(self._transport.get_write_buffer_size())

    def answered(self, reply: ServerReply) -> None:
        """The answer is written; the connection is free for the next request."""
        reply.over = True
        reply.pause = reply.resume = None
        if reply is not self._reply:
            return  # a refusal
        self._reply = self._task = None
        if reply.close or self.hub.draining:
            self.close()
            return
        self._phase = HEAD
        self._begun = self._heard = self.hub.loop.time()
        if self._backlog.data:
            self._take_waiting()

    def speak(self, upgrade: Upgrade) -> None:
        """Another protocol from now on. Data already received belongs to it."""
        self._phase = UPGRADED
        self._upgrade = upgrade
        data, at = self._backlog.take()
        self._backlog.read_on()
        if len(data) > at:
            upgrade.receive(data[at:])

    def read_on(self, is_reading: bool) -> None:
        """Whether an upgraded connection is read."""
        if self._transport is not None and not self._transport.is_closing():
            if is_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def linger(self) -> None:
        """Everything is sent: the client may read it before the connection ends."""
        self._reply = self._task = self._upgrade = None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._phase = LINGERING
        self._begun = self.hub.loop.time()
        self._left = _MAX_LINGER_BYTES
        transport.write_eof()

    def cut(self, *, flush: bool) -> None:
        """End the connection in the middle of an answer, so that the client sees that it is incomplete."""
        self._reply = self._task = None
        if flush:
            self.close()
        elif self._transport is not None:
            # Without chunks a normal end would look like a complete answer: only a reset shows it.
            sock = self._transport.get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._phase = CLOSING
            self._transport.abort()

    # Called by the server.

    def sweep(self, now: float, limits: ServerLimits) -> None:
        """Close connections whose time limits have passed; called about once a second."""
        if self._transport is None:
            return
        if self._is_stuck(now, self._transport.get_write_buffer_size(), limits):
            self._transport.abort()
        elif self._phase == HEAD:
            if not self._partial:
                if now - self._begun > limits.keep_alive and not self._pending:
                    self.close()
            elif now - self._begun > limits.header_time:
                self._refuse_plainly(408, "request_timeout", "the head of the request took too long")
        elif self._phase in (BODY, SKIPPING):
            self._sweep_body(now, limits)
        elif self._phase == ANSWERING:
            if self._backlog.is_full and now - self._begun > _UNREAD_SECONDS:
                self.hub.refused["too_far_ahead"] += 1
                self._transport.abort()
        elif self._phase == LINGERING and now - self._begun > _LINGER_SECONDS:
            self.close()

    def close_if_idle(self) -> None:
        if self._phase in (SKIPPING, WAITING) or (self._phase == HEAD and not self._partial):
            self.close()
        elif self._upgrade is not None:
            self._upgrade.drain()

    def close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._phase = CLOSING
            self._partial = b""
            self._backlog.drop()
            self._drop_body()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Reading.

    def _take_request(self, data: bytes, at: int) -> None:
        """Read one head, and its body if it has arrived. What follows waits until this one is answered."""
        if self.pressed:
            # A client that does not read its answers gets no more: they would accumulate without limit.
            self._wait(data, at)
            return
        # RFC 9112 2.2: an empty line before a request is ignored.
        start = at + 2 if data.startswith(b"\r\n", at) else at
        end = data.find(b"\r\n\r\n", start)
        if end < 0:
            self._hold(data[at:], start - at)
            return
        self._partial = b""
        raw, limits = data[start:end], self.hub.limits
        inbound = self._known.again(raw, limits) if self._known is not None else None
        if inbound is None:
            try:
                inbound = read_head(raw, self.peer, limits)
            except Malformed as problem:
                self._refuse_plainly(problem.status, problem.code, problem.message)
                return
            self._known = remember(raw, inbound, limits)
        self._admit(inbound, data, end + 4)

    def _take_waiting(self) -> None:
        self._take_request(*self._backlog.take())
        self._backlog.read_on()

    def _wait(self, data: bytes, at: int) -> None:
        """Let other connections go first, and the client read what it was sent."""
        self._phase = WAITING
        self._partial = b""
        self._backlog.put(data, at)
        if not self.pressed:
            self._call()

    def _call(self) -> None:
        if not self._called:
            self._called = True
            self.hub.loop.call_soon(self._go_on, context=self.hub.context)

    def _go_on(self) -> None:
        self._called = False
        if self._phase == WAITING:
            self._phase = HEAD
            self._begun = self._heard = self.hub.loop.time()
            if self._backlog.data:
                self._take_waiting()

    def _hold(self, data: bytes, start: int) -> None:
        if not self._partial:
            self._scanned = 0
            self._begun = self._heard
        self._partial = data
        try:
            check_partial(data[start:], self._scanned - start, self.hub.limits)
        except Malformed as problem:
            self._refuse_plainly(problem.status, problem.code, problem.message)
        self._scanned = len(data)

    def _admit(self, inbound: Inbound, data: bytes, at: int) -> None:
        """Admit a request or answer it at once. The data after its head begins at `at`."""
        hub = self.hub
        app, head, length, limit = hub.app, inbound.head, inbound.length, 0
        try:
            refusal = app.admit(head)
            if refusal is None and length:
                limit = app.body_limit(head)
                if length > limit:
                    refusal = closing(app.too_large(head, limit))
        except Exception as problem:  # such a failure must not take the connection's answer along
            hub.report("admission failed", problem)
            refusal = plain_refusal(500, "internal_error", "internal error")
        if refusal is not None:
            self._known = None
            self._turn_away(inbound, refusal, data, at)
            return
        self._refusals = 0
        if length > 0 and hub.account.lacks(length):
            self._shed(inbound.head)
            return
        end = at + length
        if length != CHUNKED and end <= len(data):
            if end < len(data):
                self._backlog.put(data, end)
            self._answer(inbound, data[at:end])
            return
        self._inbound = inbound
        self._body = ChunkedBody(limit) if length == CHUNKED else SizedBody(length)
        self._phase = BODY
        self._begun = self._heard
        if inbound.expects_continue and at == len(data):
            self.write(CONTINUE)
        self._take_body(memoryview(data)[at:])

    def _turn_away(self, inbound: Inbound, refusal: Refusal, data: bytes, at: int) -> None:
        end = at + inbound.length
        outstanding = end - len(data)
        # After `Expect` the body may come or not.
        unsure = outstanding > 0 and inbound.expects_continue
        lost = inbound.length == CHUNKED or outstanding > _MAX_SKIPPED_BYTES or unsure
        self._refusals += 1
        last = refusal.close or lost or self._refusals >= _MAX_REFUSALS
        if last or not inbound.keep_alive or self.hub.draining:
            self._refuse(refusal, head_only=inbound.head.method == "HEAD")
            return
        reply = ServerReply(self, inbound.head.method == "HEAD", False, inbound.minor)
        reply.send(refusal.status, refusal.headers, refusal.body)
        self._begun = self._heard
        if outstanding > 0:
            self._left = outstanding
            self._phase = SKIPPING
        elif outstanding < 0:
            self._wait(data, end)

    def _take_body(self, data: bytes | memoryview) -> None:
        body, inbound = self._body, self._inbound
        if body is None or inbound is None:
            return
        self._have += len(data)
        self.hub.account.held += len(data)
        try:
            body.feed(data)
        except Malformed as problem:
            self._refuse_plainly(problem.status, problem.code, problem.message)
            return
        except TooLarge:
            head = inbound.head
            self._refuse(self.hub.app.too_large(head, self.hub.app.body_limit(head)))
            return
        if self.hub.account.lacks(0):
            self._shed(inbound.head)
        elif body.rest is not None:
            self._drop_body()
            self._backlog.put(body.rest, 0)
            self._answer(inbound, body.body())

    def _drop_body(self) -> None:
        if self._inbound is not None:
            self.hub.account.give(self._have)
            self._have = 0
            self._inbound = self._body = None

    def _skip(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left > 0:
            return
        rest = data[len(data) + self._left :]
        self._phase = HEAD
        self._begun = self._heard
        if rest:
            self._take_request(rest, 0)

    # Answering.

    def _answer(self, inbound: Inbound, body: bytes) -> None:
        hub = self.hub
        size = len(body)
        hub.account.held += size
        reply = ServerReply(self, inbound.head.method == "HEAD", not inbound.keep_alive, inbound.minor, size)
        self._reply = reply
        self._phase = ANSWERING
        self._begun = self._heard
        task = hub.loop.create_task(hub.app.handle(inbound.head, body, reply), context=hub.context.copy())
        self._task = task
        hub.tasks.add(task)
        task.add_done_callback(reply.handled)

    def _leave(self, reply: ServerReply) -> None:
        task = self._task
        self._reply = self._task = None
        if not reply.over:
            reply.over = True
            if task is not None:
                task.cancel("the client has disconnected")

    def _shed(self, head: Head) -> None:
        self.hub.refused["server_is_overloaded"] += 1
        self.hub.account.shed += 1
        self._refuse(closing(self.hub.app.overloaded(head)))

    def _refuse_plainly(self, status: int, code: str, message: str) -> None:
        self.hub.count_refusal(code, message)
        self._refuse(plain_refusal(status, code, message))

    def _refuse(self, refusal: Refusal, *, head_only: bool = False) -> None:
        """The connection's last answer, sent although more data may still arrive."""
        self._drop_body()
        self._partial = b""
        self._backlog.drop()
        ServerReply(self, head_only, True, 1).send(refusal.status, refusal.headers, refusal.body)
        self.linger()

    # Time limits.

    def _is_stuck(self, now: float, pending: int, limits: ServerLimits) -> bool:
        """Whether the client has not taken, within `write_stall`, what was pending then (or 64 KiB of it)."""
        flushed = self._written - pending
        if not pending or flushed >= self._flushed + min(self._pending, limits.write_pending):
            self._moved = now
            self._flushed = flushed
            self._pending = pending
            return False
        return now - self._moved > limits.write_stall

    def _sweep_body(self, now: float, limits: ServerLimits) -> None:
        lasted = now - self._begun
        slow = lasted > limits.body_total and self._have < lasted * _SLOWEST_BYTES_A_SECOND
        if not slow and now - self._heard <= limits.body_idle:
            return
        if self._inbound is None:
            self.close()
        else:
            self._refuse(self.hub.app.stalled(self._inbound.head), head_only=False)


class ServerReply(msgspec.Struct, eq=False):
    """Implements `Reply` for one request of a connection. Once it is over it writes nothing, whatever its
    handler still calls."""

    connection: ServerConnection
    head_only: bool
    close: bool
    """Whether the connection ends with this answer."""
    minor: int
    size: int = 0
    """Bytes of the request's body, which is kept as long as its handler runs."""
    started: bool = False
    over: bool = False
    """Answered completely, aborted, or the client has disconnected."""
    pause: Callable[[], None] | None = None
    resume: Callable[[], None] | None = None
    chunked: bool = False
    held: bytes = b""
    """A head that waits for the first bytes of its body."""
    copy: MessageCopy | None = None
    """Receives what is sent, if anyone follows it."""

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        if self.over:
            return
        if (copy := self.copy) is not None:
            copy.status, copy.headers = status, list(headers)
            size = len(body)
            if size > copy.left or copy.room.held > copy.room.most - size - PIECE_BYTES:
                copy.add(body)
            elif size:
                copy.size += size
                copy.left -= size
                copy.held += size + PIECE_BYTES
                copy.room.held += size + PIECE_BYTES
                copy.pieces.append((time.monotonic(), body))
        bodiless = status in BODILESS
        data = self._begin(status, headers, "" if bodiless else f"content-length: {len(body)}\r\n")
        connection = self.connection
        if bodiless or self.head_only:
            connection.write(data)
        elif len(body) <= _ONE_WRITE_BYTES:
            connection.write(data + body)
        else:
            connection.write(data)
            connection.write(body)
        connection.answered(self)

    def start(self, status: int, headers: Headers) -> None:
        if self.over:
            return
        self.chunked = self.minor == 1
        if not self.chunked:
            self.close = True  # in HTTP/1.0 such a body ends only with the connection
        if (copy := self.copy) is not None:
            copy.status, copy.headers, copy.streamed = status, list(headers), True
        self.held = self._begin(status, headers, "transfer-encoding: chunked\r\n" if self.chunked else "")
        self.connection.hub.loop.call_soon(self._release)

    def write(self, data: bytes) -> None:
        if self.over or not data:
            return
        if not self.started:
            raise RuntimeError("write before start")
        if self.head_only:
            return
        if (copy := self.copy) is not None:
            size = len(data)
            if size > copy.left or copy.room.held > copy.room.most - size - PIECE_BYTES:
                copy.add(data)
            else:  # like `add`, but without a call for each event of a stream
                copy.size += size
                copy.left -= size
                copy.held += size + PIECE_BYTES
                copy.room.held += size + PIECE_BYTES
                copy.pieces.append((time.monotonic(), data))
        if self.chunked:
            size = len(data)
            head = _CHUNK_HEADS[size] if size < _SHORT_BYTES else b"%x\r\n" % size
            data = head + data + b"\r\n"
        if self.held:
            data = self.held + data
            self.held = b""
        # Like `ServerConnection.write`, but without a call for each event of a stream.
        connection, transport = self.connection, self.connection._transport
        if transport is not None:
            connection._written += len(data)
            transport.write(data)
            if connection._owed:
                connection._owe(transport.get_write_buffer_size())

    def end(self) -> None:
        if self.over:
            return
        if not self.started:
            raise RuntimeError("end before start")
        last = self.held + b"0\r\n\r\n" if self.chunked and not self.head_only else self.held
        self.held = b""
        if last:
            self.connection.write(last)
        self.connection.answered(self)

    def abort(self) -> None:
        if self.over:
            return
        self._release()
        self.over = True
        self.connection.cut(flush=self.chunked)

    def upgrade(self, headers: Headers, upgrade: Upgrade) -> None:
        """Implements `UpgradableReply`, like the next five."""
        if self.over:
            return
        connection = self.connection
        if self.started:
            raise RuntimeError("an answer has begun already")
        self.started = True
        self.pause, self.resume = upgrade.pause, upgrade.resume
        connection.write(
            render_head(connection.hub.status_lines[101], headers, "connection: Upgrade\r\n\r\n")
        )
        connection.speak(upgrade)
        if connection.hub.draining:
            upgrade.drain()

    def write_raw(self, data: bytes) -> None:
        if not self.over:
            self.connection.write(data)

    def pause_reading(self) -> None:
        if not self.over:
            self.connection.read_on(False)

    def resume_reading(self) -> None:
        if not self.over:
            self.connection.read_on(True)

    def linger(self) -> None:
        if not self.over:
            self.over = True
            self.connection.linger()

    def hold(self, size: int) -> bool:
        account = self.connection.hub.account
        if size < 0:
            account.give(-size)
            return True
        account.held += size
        return not account.lacks(0)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        if self.over:
            return
        self.pause = pause
        self.resume = resume
        if self.connection.pressed:
            pause()

    def handled(self, task: asyncio.Task[None]) -> None:
        """The handler has ended: a missing answer is sent for it."""
        hub = self.connection.hub
        self.pause = self.resume = None  # they may refer to what refers to this reply
        hub.tasks.discard(task)
        hub.account.give(self.size)
        if hub.draining:
            hub.note_empty()
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            hub.report("a request handler failed", problem)
        if self.over:
            return
        if self.started:
            self.abort()
        elif task.cancelled():
            self._send_last(plain_refusal(503, "server_is_overloaded", "the server is shutting down"))
        else:
            self._send_last(plain_refusal(500, "internal_error", "internal error"))

    def _send_last(self, refusal: Refusal) -> None:
        self.close = True
        self.send(refusal.status, refusal.headers, refusal.body)

    def _begin(self, status: int, headers: Headers, framing: str) -> bytes:
        """The head of the answer; it can have only one."""
        if self.started:
            raise RuntimeError("an answer has begun already")
        self.started = True
        hub = self.connection.hub
        if self.close or hub.draining:
            self.close = True
            framing += "connection: close\r\n"
        elif self.minor == 0:
            framing += "connection: keep-alive\r\n"
        return render_head(hub.status_lines[status], headers, framing + "\r\n")

    def _release(self) -> None:
        """Send a head for which no body has come in the same step of the loop."""
        if self.held and not self.over:
            held, self.held = self.held, b""
            self.connection.write(held)
