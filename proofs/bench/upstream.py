"""A mock upstream for load: every dialect, whole and streamed, on one thread and raw sockets.

    python -m proofs.bench.upstream PORT

What it answers is steered by the model's name (see answers.Plan), which a gateway passes on. Each event of a
stream is a write of its own, as a provider sends it: how many a reader finds at once is its own affair.
"""

from __future__ import annotations

import heapq
import re
import select
import socket
import sys
import time
from itertools import count

from proofs.bench.answers import BROKEN, Plan, failure, plan_of, script, whole

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model" *: *"([^"]*)"')
_STREAM = (b'"stream":true', b'"stream": true')
_ROUTES = (
    (b"/chat/completions", "openai-chat"),
    (b"/messages", "anthropic"),
    (b"/responses", "openai-responses"),
    (b":generateContent", "gemini"),
    (b":streamGenerateContent", "gemini"),
)
_READY = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}'
_COUNT = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\r\n{"input_tokens":25}'
_READ = 256 * 1024
_IN, _OUT = select.EPOLLIN, select.EPOLLIN | select.EPOLLOUT


class Connection:
    """One client. Its stream, when one runs: a plan, the number of events said, when the next is due."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.heard = bytearray()
        self.unsent = b""
        self.plan = Plan()
        self.dialect = ""
        self.streaming = False
        self.waiting = False
        self.said = -1
        self.due = 0.0


class Upstream:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._poll = select.epoll()
        self._poll.register(listener.fileno(), _IN)
        self._connections: dict[int, Connection] = {}
        self._timers: list[tuple[float, int, Connection]] = []
        self._order = count()

    def serve(self) -> None:
        while True:
            for fd, event in self._poll.poll(self._patience()):
                if fd == self._listener.fileno():
                    self._accept()
                elif (connection := self._connections.get(fd)) is not None:
                    self._turn(connection, event)
            self._wake()

    def _patience(self) -> float | None:
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections[sock.fileno()] = Connection(sock)
            self._poll.register(sock.fileno(), _IN)

    def _turn(self, connection: Connection, event: int) -> None:
        try:
            if event & select.EPOLLOUT:
                self._flush(connection)
                self._pump(connection)
            if event & ~select.EPOLLOUT:
                self._hear(connection)
        except OSError:
            self._drop(connection)

    def _wake(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            connection = heapq.heappop(self._timers)[2]
            try:
                if connection.waiting:
                    connection.waiting = False
                    self._send(connection, whole(connection.dialect, connection.plan.size).marked())
                    self._answer_next(connection)
                else:
                    self._pump(connection)
            except OSError:
                self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.fd, None) is None:
            return
        connection.streaming = connection.waiting = False
        self._poll.unregister(connection.fd)
        connection.sock.close()

    def _hear(self, connection: Connection) -> None:
        while True:
            try:
                data = connection.sock.recv(_READ)
            except BlockingIOError:
                return
            if not data:
                raise ConnectionResetError
            connection.heard += data
            self._answer_next(connection)
            if len(data) < _READ or connection.fd not in self._connections:
                return

    def _answer_next(self, connection: Connection) -> None:
        heard = connection.heard
        while heard and not connection.streaming and not connection.waiting:
            end = heard.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(heard, 0, end)
            whole_length = end + 4 + (int(length[1]) if length else 0)
            if len(heard) < whole_length:
                return
            head, body = bytes(heard[:end]), bytes(heard[end + 4 : whole_length])
            del heard[:whole_length]
            self._answer(connection, head, body)

    def _answer(self, connection: Connection, head: bytes, body: bytes) -> None:
        path = head[: head.index(b"\r\n")].split(b" ")[1].partition(b"?")[0]
        if head[:1] != b"P":
            return self._send(connection, _READY)
        if b"ount" in path and path.endswith((b"/count_tokens", b":countTokens", b"/input_tokens")):
            return self._send(connection, _COUNT)
        for ending, dialect in _ROUTES:
            if path.endswith(ending):
                connection.dialect = dialect
                break
        else:
            return self._send(connection, failure(404))
        model = path.rpartition(b"/")[2].partition(b":")[0] if dialect == "gemini" else _named(body)
        streamed = b":stream" in path if dialect == "gemini" else any(flag in body for flag in _STREAM)
        return self._begin(connection, plan_of(model), streamed)

    def _begin(self, connection: Connection, plan: Plan, streamed: bool) -> None:
        if plan.error:
            return self._send(connection, failure(plan.error))
        connection.plan = plan
        connection.due = time.monotonic() + plan.delay / 1000
        if streamed:
            connection.streaming, connection.said = True, -1
            return self._pump(connection) if not plan.delay else self._sleep(connection)
        if plan.cut >= 0:
            raise ConnectionResetError
        if plan.delay:
            connection.waiting = True
            return self._sleep(connection)
        answer = whole(connection.dialect, plan.size).marked()
        return self._send(
            connection, answer if plan.broken < 0 else answer.replace(b":", b";").replace(b";", b":", 4)
        )

    def _sleep(self, connection: Connection) -> None:
        heapq.heappush(self._timers, (connection.due, next(self._order), connection))

    def _pump(self, connection: Connection) -> None:
        """Say what is due of a stream, an event a write, until the client reads no more or a gap begins."""
        plan = connection.plan
        opening, event, closing = script(connection.dialect, plan.chunks, plan.pad)
        while connection.streaming and not connection.unsent:
            if plan.gap and connection.due > time.monotonic():
                return self._sleep(connection)
            connection.due += plan.gap / 1000
            if connection.said < 0:
                connection.said = 0
                self._send(connection, opening)
            elif connection.said == plan.cut:
                raise ConnectionResetError
            elif connection.said < plan.chunks:
                connection.said += 1
                self._send(connection, event.marked() if connection.said - 1 != plan.broken else BROKEN)
            else:
                connection.streaming = False
                self._send(connection, closing)
                self._answer_next(connection)
        return None

    def _send(self, connection: Connection, data: bytes) -> None:
        if connection.unsent:
            connection.unsent += data
            return
        try:
            sent = connection.sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            connection.unsent = data[sent:]
            self._poll.modify(connection.fd, _OUT)

    def _flush(self, connection: Connection) -> None:
        data, connection.unsent = connection.unsent, b""
        self._poll.modify(connection.fd, _IN)
        if data:
            self._send(connection, data)


def _named(body: bytes) -> bytes:
    # `find` first: it is many times faster through a large body than a pattern.
    at = body.find(b'"model"')
    found = _MODEL.match(body, at) if at >= 0 else None
    return found[1] if found else b""


def listen(port: int) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    listener.setblocking(False)
    return listener


def main() -> None:
    Upstream(listen(int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
