"""The scripted upstream: its server in a thread of its own, what was received, and what comes next."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

from wireglot.demo.service import Served
from wireglot.testing.scripted_upstream.answers import answer_for
from wireglot.testing.scripted_upstream.behaviour import Behaviour, Recorded
from wireglot.testing.scripted_upstream.connection import Connection

Decide = Callable[[Recorded], Behaviour | None]


class ScriptedUpstream:
    """`decide` sees each request before the queue does; None leaves it to the queue."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        decide: Decide | None = None,
    ) -> None:
        self.requests: list[Recorded] = []
        self.otherwise = Behaviour()
        """What is done when the queue is empty."""
        self.connections = 0
        """How many were ever made."""
        self._host = host
        self._port = port
        self._tls = tls
        self._decide = decide
        self._queue: deque[Behaviour] = deque()
        self._open: set[Connection] = set()
        self._changed = threading.Condition()
        self._loop = asyncio.SelectorEventLoop()  # whatever loop the tests themselves run on
        self._thread = threading.Thread(target=self._run, name="scripted-upstream", daemon=True)
        self._ready = threading.Event()
        self._problem: OSError | None = None

    @property
    def url(self) -> str:
        """Without a path: `/v1` and the like are up to the client."""
        scheme = "https" if self._tls is not None else "http"
        return f"{scheme}://{self._host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def next(self, *behaviours: Behaviour) -> None:
        """What to do with the next requests, one each."""
        self._queue.extend(behaviours)

    def reset(self) -> None:
        """Forget the requests and the queue; connections stay."""
        self.requests.clear()
        self._queue.clear()
        self.otherwise = Behaviour()

    def wait_for(self, count: int = 1, timeout: float = 60.0) -> list[Recorded]:
        """The requests, once there are so many."""
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
        # A socket that asyncio has accepted is nobody's until the task it made for it has taken its first
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
        return Connection(self.connections, self._serve, self._opened, self._closed)

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
        if behaviour is None:
            behaviour = self._queue.popleft() if self._queue else self.otherwise
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return behaviour, answer_for(request, behaviour)
