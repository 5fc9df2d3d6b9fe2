"""A small application, a server around it, and raw clients: what the tests of the server stand on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import pytest

from tests.http.limits_kit import Limits
from tests.waiting import DEADLINE_SECONDS
from wireglot.http.application import Head, Refusal, Reply
from wireglot.http.server.connection import Hub, ServerConnection
from wireglot.http.server.server import HttpServer

Handler = Callable[[Head, bytes, Reply], Awaitable[None]]
Run = Callable[[Coroutine[Any, Any, Any]], None]

PLAIN = [("content-type", "text/plain")]
HOST = b"Host: localhost\r\n"


async def echo(head: Head, body: bytes, reply: Reply) -> None:
    reply.send(200, PLAIN, f"{head.method} {head.target} ".encode() + body)


class FakeApp:
    """Answers with `handler` whatever `refusals` (by path) lets in."""

    def __init__(self, handler: Handler = echo, *, limit: int = 1 << 20) -> None:
        self.handler = handler
        self.limit = limit
        self.refusals: dict[str, Refusal] = {}
        self.heads: list[Head] = []
        self.bodies: list[bytes] = []
        self.cancelled: list[str] = []
        self.finished = 0

    def admit(self, head: Head) -> Refusal | None:
        return self.refusals.get(head.path)

    def body_limit(self, head: Head) -> int:
        return self.limit

    def too_large(self, head: Head, limit: int) -> Refusal:
        return Refusal(413, PLAIN, f"over {limit}".encode())

    def overloaded(self, head: Head) -> Refusal:
        body = b'{"error":{"code":"server_is_overloaded"}}'
        return Refusal(503, [("content-type", "application/json")], body)

    def stalled(self, head: Head) -> Refusal:
        return Refusal(408, PLAIN, b"stalled")

    async def handle(self, head: Head, body: bytes, reply: Reply) -> None:
        self.heads.append(head)
        self.bodies.append(body)
        try:
            await self.handler(head, body, reply)
        except asyncio.CancelledError as problem:
            self.cancelled.append(str(problem))
            raise
        self.finished += 1


class Response(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """A socket with just enough HTTP to read one answer after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def send_bytewise(self, data: bytes) -> None:
        for byte in data:
            self.writer.write(bytes([byte]))
            await asyncio.sleep(0)

    async def head(self) -> Response:
        raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), DEADLINE_SECONDS)
        first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        assert len(headers) == len(lines)
        return Response(int(first.split(" ")[1]), headers, b"")

    async def response(self) -> Response:
        answer = await self.head()
        if answer.headers.get("transfer-encoding") == "chunked":
            while chunk := await self.chunk():
                answer.body += chunk
        else:
            answer.body = await asyncio.wait_for(
                self.reader.readexactly(int(answer.headers["content-length"])), DEADLINE_SECONDS
            )
        return answer

    async def chunk(self) -> bytes:
        size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), DEADLINE_SECONDS), 16)
        data = await asyncio.wait_for(self.reader.readexactly(size + 2), DEADLINE_SECONDS)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        return await asyncio.wait_for(self.reader.read(), DEADLINE_SECONDS)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class Served:
    def __init__(self, app: FakeApp, server: HttpServer, host: str, port: int) -> None:
        self.app = app
        self.server = server
        self.host = host
        self.port = port
        self.clients: list[Client] = []

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection(self.host, self.port))
        self.clients.append(client)
        return client

    def connections(self) -> list[ServerConnection]:
        return list(self.server._hub.connections)

    async def ask(self, data: bytes) -> Response:
        client = await self.client()
        client.send(data)
        return await client.response()


class Recorder(asyncio.Transport):
    """A transport that keeps each write apart."""

    def __init__(self, peer: str = "127.0.0.1") -> None:
        super().__init__({"peername": (peer, 1)})
        self.writes: list[bytes] = []
        self.aborted = False
        self.closed = False
        self.flow: list[str] = []

    def write(self, data) -> None:
        self.writes.append(bytes(data))

    def write_eof(self) -> None:
        self.writes.append(b"EOF")

    def is_closing(self) -> bool:
        return self.aborted or self.closed

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.flow.append("pause")

    def resume_reading(self) -> None:
        self.flow.append("resume")

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high=None, low=None) -> None:
        self.high = high


def connect(hub: Hub, peer: str = "127.0.0.1") -> tuple[ServerConnection, Recorder]:
    connection, transport = ServerConnection(hub), Recorder(peer)
    connection.connection_made(transport)
    return connection, transport


def slow_reader(served: Served) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect((served.host, served.port))
    sock.setblocking(False)
    return sock


@contextlib.asynccontextmanager
async def serving(app: FakeApp | None = None, limits: Limits | None = None) -> AsyncIterator[Served]:
    app = app or FakeApp()
    limits = limits or Limits()
    server = HttpServer(app, limits)
    host, port = await server.listen("127.0.0.1", 0)
    served = Served(app, server, host, port)
    try:
        yield served
    finally:
        for client in served.clients:
            await client.close()
        await server.drain(0)


def post(path: str, body: bytes, *extra: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in extra)
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def get(path: str, *extra: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in extra)
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()


def loops() -> list[Any]:
    """The loop of the standard library, and uvloop where it exists."""
    found: list[Any] = [pytest.param(asyncio.new_event_loop, id="asyncio")]
    try:
        import uvloop
    except ImportError:
        return found
    return [*found, pytest.param(uvloop.new_event_loop, id="uvloop")]


def runner(factory: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    def run(scenario: Coroutine[Any, Any, Any]) -> None:
        with asyncio.Runner(loop_factory=factory) as one:
            one.run(scenario)

    return run
