"""One client's connection: requests in, one at a time and in order, each answered by one task."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final, cast

from wireglot.http.application import Head, Refusal
from wireglot.http.limits import ServerLimits
from wireglot.http.server.body import ChunkedBody, SizedBody, TooLarge
from wireglot.http.server.flow import Backlog, Outflow, hold_back
from wireglot.http.server.head import CHUNKED, Inbound, Malformed, check_partial, read_head
from wireglot.http.server.hub import Hub
from wireglot.http.server.known_head import KnownHead, remember
from wireglot.http.server.phases import ANSWERING, BODY, CLOSING, HEAD, LINGERING, SKIPPING, WAITING
from wireglot.http.server.render import CONTINUE, closing, plain_refusal
from wireglot.http.server.reply import ServerReply

_MOST_REFUSALS: Final = 100
"""A connection ends after this many refusals without one request let in between: nobody is served by it."""
_SKIP_BYTES: Final = 64 * 1024
"""The longest rest of a body that is read past to keep a connection."""
_UNREAD_SECONDS: Final = 1.0
"""A client that has sent too much ahead is not read, so nobody learns when it leaves: its request runs on
for this long, then the connection is cut."""
_LINGER_BYTES: Final = 1024 * 1024
_LINGER_SECONDS: Final = 2.0
_SLOWEST_BYTES_A_SECOND: Final = 1024
_MOST_TURNED_AWAY: Final = 64
"""Connections over the limit that are told about it; the next ones are just cut."""


class ServerConnection(asyncio.Protocol):
    """Implements `OpenConnection` for the hub and `OutgoingLine` for its replies."""

    __slots__ = (
        "_backlog", "_begun", "_body", "_called", "_have", "_heard", "_inbound", "_known", "_left",
        "_outflow", "_owed", "_partial", "_phase", "_refusals", "_reply", "_scanned", "_task",
        "_transport", "hub", "peer", "pressed",
    )  # fmt: skip

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.peer = ""
        self.pressed = False
        """The client reads slower than we write."""
        self._transport: asyncio.Transport | None = None
        self._phase = HEAD
        self._partial = b""
        """A head that has not arrived in full."""
        self._scanned = 0
        self._backlog: Backlog
        self._called = False
        """Whether the loop will call for what is waiting."""
        self._refusals = 0
        self._known: KnownHead | None = None
        self._inbound: Inbound | None = None
        self._body: SizedBody | ChunkedBody | None = None
        self._have = 0
        self._owed = 0
        """Bytes that wait for a client, as far as they are on the account."""
        self._left = 0
        self._reply: ServerReply | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = self._heard = hub.loop.time()
        self._outflow = Outflow(self._begun)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._backlog = Backlog(self._transport)
        name = transport.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) else ""
        limits = self.hub.limits()
        self._transport.set_write_buffer_limits(high=limits.write_pending)
        hold_back(self._transport, limits.write_pending)
        excess = self.hub.enter(self, self.peer)
        if excess > _MOST_TURNED_AWAY:
            self.hub.refused["too_many_connections"] += 1
            self._transport.abort()
        elif excess > 0:
            self._refuse_plainly(503, "too_many_connections", "too many connections")
        elif self.hub.draining:
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
        elif phase == SKIPPING:
            self._skip(data)
        elif phase == LINGERING:
            self._left -= len(data)
            if self._left < 0:
                self.close()

    def eof_received(self) -> bool:
        # Half-closed counts as gone: no client of these APIs does it and still waits for its answer.
        self._leave("the client has gone")
        self._phase = CLOSING
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave("the client has gone")
        self._phase = CLOSING
        self._transport = None
        self._owe(0)
        self._drop_body()
        self.hub.leave(self, self.peer)

    def pause_writing(self) -> None:
        self.pressed = True
        self._owe(self._transport.get_write_buffer_size() if self._transport is not None else 0)
        if self._reply is not None:
            self._reply.press()

    def resume_writing(self) -> None:
        self.pressed = False
        self._owe(0)
        if self._reply is not None:
            self._reply.relieve()
        elif self._phase == WAITING:
            self._call()

    def _owe(self, size: int) -> None:
        """Count what waits for a client that reads slower than we write, until it has been taken."""
        self.hub.account.owe(size - self._owed)
        self._owed = size

    # What the reply calls.

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._outflow.written += len(data)
            self._transport.write(data)
            if self._owed:
                self._owe(self._transport.get_write_buffer_size())

    def answered(self, reply: ServerReply) -> None:
        """The answer is written; the connection is free for the next request."""
        if reply is not self._reply:
            return
        self._reply = self._task = None
        if reply.close or self.hub.draining:
            self.close()
            return
        self._take_next()

    def cut(self, *, flush: bool) -> None:
        """End the connection in the middle of an answer, so that the client sees that it is not whole."""
        self._reply = self._task = None
        if flush:
            self.close()
        elif self._transport is not None:
            # Without chunks a plain end would look like a whole answer: only a reset tells.
            sock = self._transport.get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._phase = CLOSING
            self._transport.abort()

    # What the server calls.

    def sweep(self, now: float, limits: ServerLimits) -> None:
        """End what has been waited for long enough; called about once a second."""
        if self._transport is None:
            return
        if self._outflow.is_stuck(now, self._transport.get_write_buffer_size(), limits):
            self._transport.abort()
        elif self._phase == HEAD:
            if not self._partial:
                if now - self._begun > limits.keep_alive and not self._outflow.pending:
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
        """Read one head, and its body if it is there. What follows waits until this one is answered."""
        if self.pressed:
            # Who does not read its answers gets no more of them, or they would pile up here without end.
            self._wait(data, at)
            return
        # RFC 9112 2.2: an empty line before a request is overlooked.
        start = at + 2 if data.startswith(b"\r\n", at) else at
        end = data.find(b"\r\n\r\n", start)
        if end < 0:
            self._hold(data[at:], start - at)
            return
        self._partial = b""
        raw, limits = data[start:end], self.hub.limits()
        inbound = self._known.again(raw, limits) if self._known is not None else None
        if inbound is None:
            try:
                inbound = read_head(raw, self.peer, limits)
            except Malformed as problem:
                self._refuse_plainly(problem.status, problem.code, problem.message)
                return
            self._known = remember(raw, inbound, limits)
        self._admit(inbound, data, end + 4)

    def _take_next(self) -> None:
        self._begun = self._heard = self.hub.loop.time()
        self._phase = HEAD
        if self._backlog.data:
            self._take_request(*self._backlog.take())
            self._backlog.read_on()

    def _wait(self, data: bytes, at: int) -> None:
        """Let the others go first, and the client take what it has been sent."""
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
            self._take_next()

    def _hold(self, data: bytes, start: int) -> None:
        if not self._partial:
            self._scanned = 0
            self._begun = self._heard
        self._partial = data
        try:
            check_partial(data[start:], self._scanned - start, self.hub.limits())
        except Malformed as problem:
            self._refuse_plainly(problem.status, problem.code, problem.message)
        self._scanned = len(data)

    def _admit(self, inbound: Inbound, data: bytes, at: int) -> None:
        """Let a request in or answer it at once. What follows its head begins at `at`."""
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
        # After `Expect` nobody knows whether the body will come.
        unsure = outstanding > 0 and inbound.expects_continue
        lost = inbound.length == CHUNKED or outstanding > _SKIP_BYTES or unsure
        self._refusals += 1
        last = refusal.close or lost or self._refusals >= _MOST_REFUSALS
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
        if self.hub.account.is_over:
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
        hub.run(task)
        task.add_done_callback(reply.handled)

    def _leave(self, why: str) -> None:
        reply, task = self._reply, self._task
        self._reply = self._task = None
        if reply is not None and not reply.over:
            reply.over = True
            if task is not None:
                task.cancel(why)

    def _shed(self, head: Head) -> None:
        self.hub.refused["server_is_overloaded"] += 1
        self.hub.account.shed += 1
        self._refuse(closing(self.hub.app.overloaded(head)))

    def _refuse_plainly(self, status: int, code: str, message: str) -> None:
        self.hub.count_refusal(code, message)
        self._refuse(plain_refusal(status, code, message))

    def _refuse(self, refusal: Refusal, *, head_only: bool = False) -> None:
        """The connection's last answer, given although more may still arrive."""
        self._drop_body()
        self._partial = b""
        self._backlog.drop()
        ServerReply(self, head_only, True, 1).send(refusal.status, refusal.headers, refusal.body)
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._phase = LINGERING
        self._begun = self.hub.loop.time()
        self._left = _LINGER_BYTES
        transport.write_eof()

    # Waiting no longer.

    def _sweep_body(self, now: float, limits: ServerLimits) -> None:
        lasted = now - self._begun
        slow = lasted > limits.body_total and self._have < lasted * _SLOWEST_BYTES_A_SECOND
        if not slow and now - self._heard <= limits.body_idle:
            return
        if self._inbound is None:
            self.close()
        else:
            self._refuse(self.hub.app.stalled(self._inbound.head), head_only=False)
