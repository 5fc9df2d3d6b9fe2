"""The scripted upstream: its server in a separate thread, the received requests, and the next behaviours."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final

from wireglot.demo.service import Served
from wireglot.testing.scripted_upstream.behaviour import Behaviour, Fault, Recorded, answer_for
from wireglot.testing.scripted_upstream.websocket import UpgradedConnection

_REASONS: Final = {
    200: "OK",
    307: "Temporary Redirect",
    400: "Bad Request",
    404: "Not Found",
    429: "Too Many Requests",
}
_POLL_SECONDS: Final = 0.005
_BLOCK: Final = b"x" * 65_536
_NO_BODY: Final = frozenset({204, 304})


class PeerLeft(Exception):
    """The other side ended the connection."""


class Connection(asyncio.Protocol):
    """`serve` is called with each request and returns what to do with it."""

    def __init__(
        self,
        number: int,
        serve: Callable[[Recorded], tuple[Behaviour, Served]],
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
        *,
        websockets: bool = False,
    ) -> None:
        self.number = number
        self._websockets = websockets
        self._serve = serve
        self._opened = opened
        self._closed = closed
        self._received = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._left = asyncio.Event()
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        plain = transport.get_extra_info("socket")
        if plain is not None and plain.family != getattr(socket, "AF_UNIX", None):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._task = asyncio.get_running_loop().create_task(self._converse())
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._arrived.set()

    def eof_received(self) -> bool:
        self._leave()
        return False

    def connection_lost(self, problem: Exception | None) -> None:
        self._leave()
        self._closed(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _leave(self) -> None:
        self._left.set()
        self._arrived.set()
        self._writable.set()

    # Reading

    async def _converse(self) -> None:
        try:
            while not self._transport.is_closing():
                request = await self._request()
                if self._websockets and "sec-websocket-key" in request.headers:
                    await self._converse_in_messages(request)
                    break
                try:
                    keep = await self._answer(request, *self._serve(request))
                except PeerLeft:
                    request.abandoned.set()
                    raise
                finally:
                    request.done.set()
                if not keep:
                    break
        except PeerLeft:
            pass
        self._transport.close()

    async def _converse_in_messages(self, upgrade: Recorded) -> None:
        line = UpgradedConnection(upgrade)
        await self._write(line.accept())
        while True:
            while not line.messages:
                if line.closed:
                    return
                if not self._received:
                    await self._more()
                if reply := line.receive(self._take(len(self._received))):
                    await self._write(reply)
            request, error = line.request(line.messages.popleft())
            behaviour, served = self._serve(request)
            try:
                if error:
                    await self._write(line.send(error))
                elif not await self._answer_in_messages(line, request, behaviour, served):
                    return
            except PeerLeft:
                request.abandoned.set()
                raise
            finally:
                request.done.set()

    async def _answer_in_messages(
        self, line: UpgradedConnection, request: Recorded, behaviour: Behaviour, served: Served
    ) -> bool:
        """Returns whether the connection continues."""
        await self._pass(behaviour.delay)
        fault, after = behaviour.fault, behaviour.after
        if behaviour.frames is None:
            frames = [line.send(event) for event in line.events(request, served)]
        else:
            frames, after = [*behaviour.frames], after if after is not None else len(behaviour.frames)
        if fault in ("close", "reset", "stall"):
            frames = []
        elif fault.endswith("-midstream"):
            frames = frames[: after if after is not None else len(frames) // 2]
        for number, frame in enumerate(frames):
            if number == (after or 0):
                await self._pass_gate(behaviour.gate)
            await self._write(frame)
        if fault.startswith("reset"):
            await self._lose("reset-midstream")
        elif fault.startswith("stall"):
            await self._lose("stall-midstream")
        return not fault and not behaviour.close

    async def _request(self) -> Recorded:
        head = await self._until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = (first + "  ").split(" ", 2)
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await self._body(headers)
        path, _, query = target.partition("?")
        return Recorded(method, path, query, headers, body, connection=self.number, raw=bytes(head))

    async def _body(self, headers: dict[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            body = bytearray()
            while size := int((await self._until(b"\r\n")).split(b";")[0], 16):
                body += (await self._exactly(size + 2))[:-2]
            while await self._until(b"\r\n") != b"\r\n":
                pass
            return bytes(body)
        return await self._exactly(int(headers.get("content-length") or 0))

    async def _until(self, mark: bytes) -> bytes:
        while (at := self._received.find(mark)) < 0:
            await self._more()
        return self._take(at + len(mark))

    async def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            await self._more()
        return self._take(size)

    async def _more(self) -> None:
        if self._left.is_set():
            raise PeerLeft
        self._arrived.clear()
        await self._arrived.wait()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    # Writing

    async def _answer(self, request: Recorded, behaviour: Behaviour, served: Served) -> bool:
        """Returns whether the connection continues."""
        fault = behaviour.fault
        await self._pass(behaviour.delay)
        held = behaviour.after if behaviour.gate is not None and not fault else None
        if held is None:
            await self._pass_gate(behaviour.gate)
        if fault in ("close", "reset", "stall", "garbage", "interim-flood") or served.ending == "silent":
            return await self._before_the_head(behaviour)
        pieces, streams = served.pieces, served.streams
        if fault in ("unframed", "short-body"):
            await self._loosely_framed(behaviour, served)
            return False
        lost = _lost(fault, served)
        whole = sum(map(len, pieces)) * (2 if served.ending in ("hang", "cut") else 1)
        if lost and served.ending == "complete":
            pieces = _first(pieces, behaviour.after)
        self._head(served, behaviour, None if streams else whole)
        if fault == "endless-line":
            await self._endless(behaviour.amount)
            return False
        gap = behaviour.gap if behaviour.gap is not None else served.gap
        if held is not None:
            await self._send(pieces[:held], streams, gap, single=False)
            await self._pass_gate(behaviour.gate)
            pieces = pieces[held:]
        await self._send(pieces, streams, gap, single=fault == "byte-chunks")
        if lost:
            await self._lose(lost)
            return False
        if streams:
            await self._write(b"0\r\n\r\n")
        return not behaviour.close and request.headers.get("connection", "").lower() != "close"

    async def _before_the_head(self, behaviour: Behaviour) -> bool:
        match behaviour.fault:
            case "close":
                pass
            case "reset":
                self._reset()
            case "garbage":
                await self._write(b"\x16\x03\x01 this is no HTTP\r\n\r\n" * 4)
            case "interim-flood":
                for _ in range(behaviour.amount):
                    await self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
            case _:
                await self._lose("stall-midstream")
        return False

    async def _loosely_framed(self, behaviour: Behaviour, served: Served) -> None:
        """Without a length (the close ends it), or with one that is larger than the body."""
        self._head(served, behaviour, len(served.body) + 100 if behaviour.fault == "short-body" else -1)
        for piece in served.pieces:
            await self._write(piece)
            await self._pass(behaviour.gap or 0.0)

    def _head(self, served: Served, behaviour: Behaviour, length: int | None) -> None:
        """`length` None: chunked. -1: not reported."""
        lines = [f"HTTP/1.1 {served.status} {_REASONS.get(served.status, 'Scripted')}"]
        lines += [f"{name}: {value}" for name, value in served.headers]
        if behaviour.fault == "huge-headers":
            lines.append(f"x-huge: {'h' * behaviour.amount}")
        if length is None:
            lines.append("transfer-encoding: chunked")
        elif length >= 0 and served.status not in _NO_BODY:
            lines.append(f"content-length: {length}")
        if behaviour.close:
            lines.append("connection: close")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def _send(self, pieces: tuple[bytes, ...], chunked: bool, gap: float, *, single: bool) -> None:
        for number, piece in enumerate(pieces):
            if number and gap:
                await self._pass(gap)
            for data in [piece[n : n + 1] for n in range(len(piece))] if single else [piece]:
                if data:
                    await self._write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

    async def _endless(self, size: int) -> None:
        await self._write(b"%x\r\n" % (size + 6) + b"data: ")
        while size > 0:
            await self._write(_BLOCK[:size])
            size -= len(_BLOCK)
        await self._lose("stall-midstream")

    async def _lose(self, how: str) -> None:
        if how == "reset-midstream":
            await asyncio.sleep(0.01)  # a reset overtakes what was sent but not yet read
            self._reset()
        elif how == "stall-midstream":
            await self._left.wait()
            raise PeerLeft

    def _reset(self) -> None:
        plain = self._transport.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def _write(self, data: bytes) -> None:
        if self._left.is_set():
            raise PeerLeft
        self._transport.write(data)
        await asyncio.sleep(0)  # one write is one packet, and other tasks can run
        await self._writable.wait()

    async def _pass(self, seconds: float) -> None:
        """Wait, but not for a peer that has left."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._left.wait()
        except TimeoutError:
            return
        raise PeerLeft

    async def _pass_gate(self, gate: threading.Event | None) -> None:
        while gate is not None and not gate.is_set():
            await self._pass(_POLL_SECONDS)


def _lost(fault: Fault, served: Served) -> str:
    """How the connection is lost within the answer, if it is."""
    if served.ending == "hang":
        return "stall-midstream"
    if served.ending == "cut" and not served.streams:
        return "close-midstream"
    return fault if fault.endswith("-midstream") and fault != "error-midstream" else ""


def _first(pieces: tuple[bytes, ...], after: int | None) -> tuple[bytes, ...]:
    """The first pieces; of a single one, its first half."""
    if after is not None:
        return pieces[:after]
    if len(pieces) == 1:
        return (pieces[0][: len(pieces[0]) // 2],)
    return pieces[: max(1, len(pieces) // 2)]


_SIZES: Final = ("/api/show", "/api/ps")
"""What a gateway requests of an Ollama server beside its client's requests. Unless `decide` answers them,
they are no endpoints here, and not among the requests."""

Decide = Callable[[Recorded], Behaviour | None]


class ScriptedUpstream:
    """`decide` gets each request before the queue; None leaves it to the queue."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        decide: Decide | None = None,
        websockets: bool = False,
    ) -> None:
        """`websockets`: Responses is also available over one. Otherwise an upgrade is refused."""
        self.requests: list[Recorded] = []
        self.otherwise = Behaviour()
        """The behaviour when the queue is empty."""
        self.connections = 0
        """The number of connections ever made."""
        self._host = host
        self._port = port
        self._tls = tls
        self._decide = decide
        self._websockets = websockets
        self._queue: deque[Behaviour] = deque()
        self._open: set[Connection] = set()
        self._changed = threading.Condition()
        self._loop = asyncio.SelectorEventLoop()  # whatever loop the tests themselves use
        self._thread = threading.Thread(target=self._run, name="scripted-upstream", daemon=True)
        self._ready = threading.Event()
        self._problem: OSError | None = None

    @property
    def url(self) -> str:
        """Without a path: the client adds `/v1` and the like."""
        scheme = "https" if self._tls is not None else "http"
        return f"{scheme}://{self._host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def next(self, *behaviours: Behaviour) -> None:
        """The behaviours for the next requests, one each."""
        self._queue.extend(behaviours)

    def reset(self) -> None:
        """Forget the requests and the queue; connections stay."""
        self.requests.clear()
        self._queue.clear()
        self.otherwise = Behaviour()

    def wait_for(self, count: int = 1, timeout: float = 60.0) -> list[Recorded]:
        """The requests, once there are this many."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} requests came, not {count}")
            return list(self.requests)

    def wait_closed(self, timeout: float = 60.0) -> None:
        """Until no connection is open."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._open, timeout):
                raise TimeoutError(f"{len(self._open)} connections are still open")

    def start(self) -> ScriptedUpstream:
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> ScriptedUpstream:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            server = self._loop.run_until_complete(
                self._loop.create_server(self._connect, self._host, self._port, ssl=self._tls)
            )
        except OSError as problem:
            self._problem = problem
            self._ready.set()
            self._loop.close()
            return
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._see_off(server))
            self._loop.close()

    async def _see_off(self, server: asyncio.Server) -> None:
        """End every connection, also one that was accepted a moment ago or is still in its TLS handshake."""
        # A socket that asyncio has accepted has no owner until the task it made for it has taken its first
        # step, and that step fails once the server is closed. So: accept no more, let them begin, then close.
        for listening in server.sockets:
            self._loop.remove_reader(listening)
        await asyncio.sleep(0)
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        for connection in list(self._open):
            connection.stop()
        await asyncio.gather(*others, return_exceptions=True)
        while self._open:
            await asyncio.sleep(0)

    def _connect(self) -> Connection:
        with self._changed:
            self.connections += 1
            self._changed.notify_all()
        return Connection(
            self.connections, self._serve, self._opened, self._closed, websockets=self._websockets
        )

    def _opened(self, connection: Connection) -> None:
        with self._changed:
            self._open.add(connection)
            self._changed.notify_all()

    def _closed(self, connection: Connection) -> None:
        with self._changed:
            self._open.discard(connection)
            self._changed.notify_all()

    def _serve(self, request: Recorded) -> tuple[Behaviour, Served]:
        behaviour = self._decide(request) if self._decide is not None else None
        if behaviour is None and request.path.endswith(_SIZES):
            return (unknown := Behaviour(status=404, body=b"404 page not found")), answer_for(
                request, unknown
            )
        if behaviour is None:
            behaviour = self._queue.popleft() if self._queue else self.otherwise
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return behaviour, answer_for(request, behaviour)
