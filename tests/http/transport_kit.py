"""Servers that do exactly what a test says, and a loop that notices what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from tests.http.limits_kit import Limits
from tests.waiting import until
from wireglot.http.client.client import HttpTransport
from wireglot.http.transport import Outbound, Timeouts

Serve = Callable[["Peer"], Awaitable[None]]
Scenario = Callable[..., Coroutine[Any, Any, None]]

PATIENT = Timeouts(connect=60.0, tls=60.0, first_byte=60.0, idle=60.0, total=60.0)


class Peer:
    """One client's connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.requests: list[bytes] = []

    async def request(self) -> bytes:
        """The next request's body; its head and body go to `requests`."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = await self.reader.readexactly(length)
        self.requests.append(head + body)
        return body

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            if self.writer.is_closing():  # to write all the same is a RuntimeError on uvloop
                raise ConnectionResetError("the client has closed")
            self.writer.write(piece)
            await self.writer.drain()

    def reset(self) -> None:
        """RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Until the client has closed."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


class Server:
    def __init__(self, serve: Serve, context: ssl.SSLContext | None = None, *, port: int = 0) -> None:
        self.port = port
        self.peers: list[Peer] = []
        self._serve = serve
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        scheme = "http" if self._context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}/v1/x"
        return self

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, len(self.peers))
        self.peers.append(peer)
        task = asyncio.get_running_loop().create_task(self._run(peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Not in a `finally` of the task: one that is cancelled before its first step never comes to it.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _run(self, peer: Peer) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            await self._serve(peer)

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def requests(self) -> list[bytes]:
        return [request for peer in self.peers for request in peer.requests]


def answer(body: bytes = b"ok", *, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body


def chunked(*pieces: bytes, headers: str = "", end: bytes = b"0\r\n\r\n") -> bytes:
    head = f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{headers}\r\n".encode("latin-1")
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + end


def always(data: bytes, *, close: bool = False) -> Serve:
    """Answers each request with the same bytes."""

    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(data)
            if close:
                return

    return serve


def post(server: Server | str, body: bytes = b"{}", **fields: Any) -> Outbound:
    url = server if isinstance(server, str) else server.url
    headers = fields.pop("headers", [("content-type", "application/json")])
    return Outbound(fields.pop("method", "POST"), url, headers, body, **fields)


@contextlib.asynccontextmanager
async def opened(limits: Limits | None = None, **options: Any) -> AsyncIterator[HttpTransport]:
    limits = limits or Limits()
    transport = HttpTransport(limits, **options)
    try:
        yield transport
    finally:
        await transport.close()


async def fetch(transport: HttpTransport, request: Outbound, timeouts: Timeouts = PATIENT) -> bytes:
    reply = await transport.send(request, timeouts)
    return await reply.read(1 << 30)


class Counted:
    """Takes what an answer is pumped into, and keeps only how much it was."""

    def __init__(self) -> None:
        self.size = 0

    def __call__(self, data: bytes) -> None:
        self.size += len(data)


class Clock:
    """The time of a transport: it stands still until a test moves it. Timers fire as they were set, and ask it."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._reads = 0

    def __call__(self) -> float:
        self._reads += 1
        return self._seconds

    def move(self, seconds: float) -> None:
        self._seconds += seconds

    async def asked(self) -> None:
        """Until a timer has fired and asked what time it is."""
        before = self._reads
        await until(lambda: self._reads > before)


async def stalled(peer: Peer) -> None:
    """Until a peer that counts in `number` what it sends has sent nothing for a while."""
    seen = -1
    while seen != peer.number:
        seen = peer.number
        await asyncio.sleep(0.03)


@contextlib.contextmanager
def black_hole(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """The URL of a server that does not accept: a full backlog swallows what comes after."""
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind((host, port))
        listening.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        yield f"http://{host}:{listening.getsockname()[1]}/"


def descriptors() -> int:
    """How many sockets are open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return count


def run_on(loop: str, work: Coroutine[Any, Any, None]) -> None:
    """Run it, and fail if a socket or a task outlives it."""

    async def watched() -> None:
        async with Server(always(answer())):
            pass  # whatever the loop opens for itself is open now
        before = descriptors()
        await work
        await until(lambda: len(asyncio.all_tasks()) == 1)
        await until(lambda: descriptors() <= before, "sockets were left open")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        complaints: list[dict[str, Any]] = []
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        runner.run(watched())
        assert complaints == [], complaints


def scenario(test: Scenario) -> Callable[..., None]:
    """An asynchronous test, run on both loops."""

    def on_loop(loop: str, **arguments: Any) -> None:
        run_on(loop, test(**arguments))

    own = list(inspect.signature(test).parameters.values())
    loop = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    on_loop.__name__ = test.__name__
    on_loop.__dict__.update(test.__dict__)
    on_loop.__dict__["__signature__"] = inspect.Signature([loop, *own])
    marked: Callable[..., None] = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])(on_loop)
    return marked
