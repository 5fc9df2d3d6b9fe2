"""One client's connection: requests in, one at a time and in order, each answered by one task."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final, cast

from wireglot.gateway.exchange import Refusal
from wireglot.gateway.server.body import ChunkedBody, SizedBody, TooLarge
from wireglot.gateway.server.head import CHUNKED, Inbound, Malformed, check_partial, read_head
from wireglot.gateway.server.hub import Hub
from wireglot.gateway.server.render import CONTINUE, plain_refusal
from wireglot.gateway.server.reply import ServerReply
from wireglot.gateway.settings import Guard

_HEAD: Final = 0
"""Waiting for a head, or within one."""
_BODY: Final = 1
_ANSWERING: Final = 2
_SKIPPING: Final = 3
"""Reading past the rest of a body whose request has been refused."""
_LINGERING: Final = 4
"""The last answer is out; what still arrives is thrown away, so that the client can read the answer."""
_CLOSING: Final = 5

_QUEUE: Final = 64 * 1024
"""Bytes of following requests that are taken in while one is being answered."""
_SKIP: Final = 64 * 1024
"""The longest rest of a body that is read past to keep a connection."""
_LINGER_BYTES: Final = 1024 * 1024
_LINGER_TIME: Final = 2.0
_SLOWEST_BODY: Final = 1024
_EXTRA: Final = 64
"""So many connections over the limit are told about it; the next ones are just cut."""


class Connection(asyncio.Protocol):
    __slots__ = (
        "_begun", "_body", "_drained", "_flushed", "_have", "_heard", "_held", "_inbound", "_left",
        "_pending", "_phase", "_reading", "_reply", "_scanned", "_task", "_transport", "_written",
        "hub", "peer", "pressed",
    )  # fmt: skip

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.peer = ""
        self.pressed = False
        """The client reads slower than we write."""
        self._transport: asyncio.Transport | None = None
        self._phase = _HEAD
        self._reading = True
        self._held = b""
        self._scanned = 0
        self._inbound: Inbound | None = None
        self._body: SizedBody | ChunkedBody | None = None
        self._have = 0
        self._left = 0
        self._reply: ServerReply | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = self._heard = self._drained = hub.loop.time()
        self._written = 0
        self._flushed = 0
        self._pending = 0

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) else ""
        guard = self.hub.guard()
        self._transport.set_write_buffer_limits(high=guard.write_pending)
        excess = self.hub.enter(self, self.peer)
        if excess > _EXTRA:
            self._transport.abort()
        elif excess > 0:
            self._refuse_plainly(503, "too_many_connections", "too many connections")
        elif self.hub.draining:
            self._refuse_plainly(503, "server_is_overloaded", "the server is shutting down")

    def data_received(self, data: bytes) -> None:
        self._heard = self.hub.loop.time()
        phase = self._phase
        if phase == _HEAD:
            self._take_requests(self._held + data if self._held else data)
        elif phase == _BODY:
            self._take_body(data)
        elif phase == _ANSWERING:
            self._held += data
            if len(self._held) > _QUEUE and self._reading and self._transport is not None:
                self._transport.pause_reading()
                self._reading = False
        elif phase == _SKIPPING:
            self._skip(data)
        elif phase == _LINGERING:
            self._left -= len(data)
            if self._left < 0:
                self._close()

    def eof_received(self) -> bool:
        # Half-closed counts as gone: no client of these APIs does it and still waits for its answer.
        self._leave("the client has gone")
        self._phase = _CLOSING
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave("the client has gone")
        self._phase = _CLOSING
        self._transport = None
        self._drop_body()
        self.hub.leave(self, self.peer)

    def pause_writing(self) -> None:
        self.pressed = True
        if self._reply is not None:
            self._reply.press()

    def resume_writing(self) -> None:
        self.pressed = False
        if self._reply is not None:
            self._reply.relieve()

    # What the reply calls.

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._written += len(data)
            self._transport.write(data)

    def answered(self, reply: ServerReply) -> None:
        """The answer is written; the connection is free for the next request."""
        if reply is not self._reply:
            return
        self._reply = self._task = None
        if reply.close or self.hub.draining:
            self._close()
            return
        self._begun = self._heard = self.hub.loop.time()
        self._phase = _HEAD
        if self._held:
            held, self._held = self._held, b""
            self._take_requests(held)
        if not self._reading and self._phase != _ANSWERING and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()

    def cut(self, *, flush: bool) -> None:
        """End the connection in the middle of an answer, so that the client sees that it is not whole."""
        self._reply = self._task = None
        if flush:
            self._close()
        elif self._transport is not None:
            # Without chunks a plain end would look like a whole answer: only a reset tells.
            sock = self._transport.get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._phase = _CLOSING
            self._transport.abort()

    # What the server calls.

    def sweep(self, now: float, guard: Guard) -> None:
        """End what has been waited for long enough; called about once a second."""
        if self._transport is None:
            return
        if self._is_stuck(now, guard):
            self._transport.abort()
        elif self._phase == _HEAD:
            if not self._held:
                if now - self._begun > guard.keep_alive and not self._pending:
                    self._close()
            elif now - self._begun > guard.header_time:
                self._refuse_plainly(408, "request_timeout", "the head of the request took too long")
        elif self._phase in (_BODY, _SKIPPING):
            self._sweep_body(now, guard)
        elif self._phase == _LINGERING and now - self._begun > _LINGER_TIME:
            self._close()

    def close_if_idle(self) -> None:
        if self._phase == _SKIPPING or (self._phase == _HEAD and not self._held):
            self._close()

    def close_now(self) -> None:
        self._close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Reading.

    def _take_requests(self, data: bytes) -> None:
        """Read heads and short bodies until one request is being answered or more bytes are needed."""
        while True:
            # RFC 9112 2.2: an empty line before a request is overlooked.
            start = 2 if data.startswith(b"\r\n") else 0
            end = data.find(b"\r\n\r\n", start)
            if end < 0:
                self._hold(data, start)
                return
            guard = self.hub.guard()
            self._held = b""
            try:
                inbound = read_head(data[start:end], self.peer, guard)
            except Malformed as problem:
                self._refuse_plainly(problem.status, problem.code, problem.message)
                return
            data = data[end + 4 :]
            rest = self._admit(inbound, data)
            if rest is None:
                return
            data = rest
            if not data:
                return

    def _hold(self, data: bytes, start: int) -> None:
        if not self._held:
            self._scanned = 0
            self._begun = self._heard
        self._held = data
        try:
            check_partial(data[start:], self._scanned - start, self.hub.guard())
        except Malformed as problem:
            self._refuse_plainly(problem.status, problem.code, problem.message)
        self._scanned = len(data)

    def _admit(self, inbound: Inbound, data: bytes) -> bytes | None:
        """Let a request in or answer it at once. Gives the bytes of the next one if that is its turn."""
        app = self.hub.app
        head = inbound.head
        length = inbound.length
        limit = 0
        try:
            refusal = app.admit(head)
            if refusal is None and length:
                limit = app.body_limit(head)
                if length > limit:
                    refusal = _closing(app.too_large(head, limit))
        except (
            Exception
        ) as problem:  # an application that fails here must not take the connection's answer along
            self.hub.report("admission failed", problem)
            refusal = plain_refusal(500, "internal_error", "internal error")
        if refusal is not None:
            return self._turn_away(inbound, refusal, data)
        if len(data) == length:
            self._answer(inbound, data)
            return None
        if not length:
            self._held = data
            self._answer(inbound, b"")
            return None
        self._inbound = inbound
        self._body = ChunkedBody(limit) if length == CHUNKED else SizedBody(length)
        self._phase = _BODY
        self._begun = self._heard
        if inbound.expects_continue and not data:
            self.write(CONTINUE)
        self._take_body(data)
        return None

    def _turn_away(self, inbound: Inbound, refusal: Refusal, data: bytes) -> bytes | None:
        outstanding = inbound.length - len(data)
        # After `Expect` nobody knows whether the body will come.
        lost = (
            inbound.length == CHUNKED or outstanding > _SKIP or (outstanding > 0 and inbound.expects_continue)
        )
        if refusal.close or lost or not inbound.keep_alive or self.hub.draining:
            self._refuse(refusal, head_only=inbound.head.method == "HEAD")
            return None
        reply = ServerReply(self, inbound.head.method == "HEAD", False, inbound.minor)
        reply.send(refusal.status, refusal.headers, refusal.body)
        self._begun = self._heard
        if outstanding > 0:
            self._left = outstanding
            self._phase = _SKIPPING
            return None
        return data[inbound.length :]

    def _take_body(self, data: bytes) -> None:
        body, inbound = self._body, self._inbound
        if body is None or inbound is None:
            return
        self._have += len(data)
        self.hub.buffered += len(data)
        try:
            body.feed(data)
        except Malformed as problem:
            self._refuse_plainly(problem.status, problem.code, problem.message)
            return
        except TooLarge:
            head = inbound.head
            self._refuse(self.hub.app.too_large(head, self.hub.app.body_limit(head)))
            return
        if body.rest is None:
            self._shed_if_full()
            return
        self._held = body.rest
        self._drop_body()
        self._answer(inbound, body.body())

    def _shed_if_full(self) -> None:
        if self.hub.buffered > self.hub.guard().buffered:
            self._refuse_plainly(503, "server_is_overloaded", "too many request bodies at once")

    def _drop_body(self) -> None:
        if self._inbound is not None:
            self.hub.buffered -= self._have
            self._have = 0
            self._inbound = self._body = None

    def _skip(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left > 0:
            return
        rest = data[len(data) + self._left :]
        self._phase = _HEAD
        self._begun = self._heard
        if rest:
            self._take_requests(rest)

    # Answering.

    def _answer(self, inbound: Inbound, body: bytes) -> None:
        hub = self.hub
        reply = ServerReply(self, inbound.head.method == "HEAD", not inbound.keep_alive, inbound.minor)
        self._reply = reply
        self._phase = _ANSWERING
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

    def _refuse_plainly(self, status: int, code: str, message: str) -> None:
        self.hub.refused[code] += 1
        self._refuse(plain_refusal(status, code, message))

    def _refuse(self, refusal: Refusal, *, head_only: bool = False) -> None:
        """The connection's last answer, given although more may still arrive."""
        self._drop_body()
        self._held = b""
        ServerReply(self, head_only, True, 1).send(refusal.status, refusal.headers, refusal.body)
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._phase = _LINGERING
        self._begun = self.hub.loop.time()
        self._left = _LINGER_BYTES
        transport.write_eof()

    def _close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._phase = _CLOSING
            self._held = b""
            self._drop_body()
            self._transport.close()

    # Waiting no longer.

    def _sweep_body(self, now: float, guard: Guard) -> None:
        lasted = now - self._begun
        slow = lasted > guard.body_total and self._have < lasted * _SLOWEST_BODY
        if not slow and now - self._heard <= guard.body_idle:
            return
        if self._inbound is None:
            self._close()
        else:
            self._refuse(self.hub.app.stalled(self._inbound.head), head_only=False)

    def _is_stuck(self, now: float, guard: Guard) -> bool:
        """Whether the client has not taken, for `write_stall`, what was pending then (or 64 KiB of it)."""
        pending = 0 if self._transport is None else self._transport.get_write_buffer_size()
        flushed = self._written - pending
        if not pending or flushed >= self._flushed + min(self._pending, guard.write_pending):
            self._drained = now
            self._flushed = flushed
            self._pending = pending
            return False
        return now - self._drained > guard.write_stall


def _closing(refusal: Refusal) -> Refusal:
    return refusal if refusal.close else Refusal(refusal.status, refusal.headers, refusal.body, close=True)
