"""A provider for tests: a real HTTP server with the demo model behind it, which misbehaves when told to.

    with ScriptedUpstream() as upstream:
        upstream.next(Behaviour(error=429, retry_after=1), Behaviour(fault="reset-midstream", after=3))
        client = anthropic.Anthropic(base_url=upstream.url, api_key="x")
        ...
        assert upstream.requests[0].path == "/v1/messages"

It serves every dialect under its official paths, `/v1` or `/v1beta` before them or not, and any model name.
The server runs in a thread of its own, on a free port. It runs alone too:
`python -m wireglot.testing.scripted_upstream --port N`.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import msgspec

from wireglot.demo.script import Ending
from wireglot.demo.service import Served, Target, refused, serve, target_of
from wireglot.dialects.base import Context
from wireglot.dialects.faults import kind_of_status
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import ApiError
from wireglot.ir.stream import Failure
from wireglot.testing.scripted_behaviour import FAULTS, Behaviour, Fault, Recorded
from wireglot.testing.scripted_connection import Connection, compressed, page
from wireglot.wire.json import encode

__all__ = ["FAULTS", "Behaviour", "Fault", "Recorded", "ScriptedUpstream"]

Decide = Callable[[Recorded], Behaviour | None]

_JSON: Final = [("content-type", "application/json")]
_ENDINGS: Final[dict[Fault, Ending]] = {"no-terminal": "cut", "error-midstream": "fail"}
_TIER: Final = {"id": "standard-tier", "name": "Demo", "isDefault": True}
_CODE_ASSIST: Final[dict[str, dict[str, Any]]] = {
    "loadCodeAssist": {"currentTier": _TIER, "allowedTiers": [_TIER], "cloudaicompanionProject": "demo"},
    "onboardUser": {"done": True, "response": {"cloudaicompanionProject": {"id": "demo", "name": "demo"}}},
    "retrieveUserQuota": {"buckets": []},
    "listExperiments": {"experimentIds": [], "flags": []},
}
"""What Gemini CLI asks before its first turn."""


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

    def wait_for(self, count: int = 1, timeout: float = 5.0) -> list[Recorded]:
        """The requests, once there are so many."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} requests came, not {count}")
            return list(self.requests)

    def wait_closed(self, timeout: float = 5.0) -> None:
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


def answer_for(request: Recorded, behaviour: Behaviour) -> Served:
    """What is sent, before the connection spoils it."""
    target = target_of(request.path, request.query, request.headers)
    name = target.dialect if target is not None else "openai-chat"
    if behaviour.error:
        message = f"The scripted upstream was told to fail with status {behaviour.error}."
        kind = kind_of_status(behaviour.error)
        return _with(
            refused(name, ApiError(kind, message, behaviour.error, retry_after=behaviour.retry_after)),
            behaviour,
        )
    if behaviour.body is not None:
        return Served(behaviour.status, [*(behaviour.headers or _JSON)], (behaviour.body,))
    if behaviour.pieces is not None:
        headers = [*(behaviour.headers or (("content-type", "text/event-stream"),))]
        return Served(behaviour.status, headers, behaviour.pieces, streams=True)
    match behaviour.fault:
        case "html":
            return Served(200, [("content-type", "text/html")], (page(),))
        case "empty":
            return Served(200, [*_JSON], ())
        case "redirect":
            return Served(307, [("location", behaviour.location or "http://127.0.0.1:9/")], ())
    if request.headers.get("upgrade", "").lower() == "websocket":
        # Codex goes on over HTTP after this status, and only after this one at once.
        return refused(name, ApiError("invalid_request", "There are no WebSockets here.", 426))
    if target is None:
        return _unknown(request)
    return _with(_spoiled(target, request, behaviour), behaviour)


def _with(served: Served, behaviour: Behaviour) -> Served:
    if not behaviour.headers:
        return served
    names = {name.lower() for name, _ in behaviour.headers}
    kept = [(name, value) for name, value in served.headers if name not in names]
    return msgspec.structs.replace(served, headers=[*kept, *behaviour.headers])


def _spoiled(target: Target, request: Recorded, behaviour: Behaviour) -> Served:
    fault = behaviour.fault
    ending = _ENDINGS.get(fault)
    now = int(time.time())
    served = serve(target, request.body, seed="scripted", now=now, ending=ending)
    match fault:
        case "wrong-type":
            return msgspec.structs.replace(served, headers=[("content-type", "text/plain")])
        case "truncated-json":
            return msgspec.structs.replace(served, pieces=(served.body[: len(served.body) // 2],))
        case "json-for-stream":
            whole = serve(_not_streaming(target), _unary(request), seed="scripted", now=now)
            return Served(200, whole.headers, whole.pieces)
        case "gzip":
            return compressed(served)
        case "error-first":
            return (
                msgspec.structs.replace(served, pieces=(_error_event(target),)) if served.streams else served
            )
        case "half-event":
            return msgspec.structs.replace(served, pieces=_half_event(served.pieces, behaviour.after))
        case "bad-json":
            return msgspec.structs.replace(served, pieces=_bad_json(served.pieces, behaviour.after))
    return served


def _not_streaming(target: Target) -> Target:
    return msgspec.structs.replace(
        target, operation="generate" if target.operation == "stream" else target.operation
    )


def _unary(request: Recorded) -> bytes:
    document = request.json
    return encode({**document, "stream": False}) if "stream" in document else request.body


def _error_event(target: Target) -> bytes:
    error = ApiError("overloaded", "The scripted upstream is overloaded.", status=529)
    context = Context(framing="sse" if target.sse else "json-array")
    return dialect(target.dialect).stream_writer(context).write((Failure(error),))


def _half_event(pieces: tuple[bytes, ...], after: int | None) -> tuple[bytes, ...]:
    at = after if after is not None else len(pieces) // 2
    return (*pieces[:at], *(piece[: len(piece) // 2] for piece in pieces[at : at + 1]))


def _bad_json(pieces: tuple[bytes, ...], after: int | None) -> tuple[bytes, ...]:
    """One event with its last brace gone."""
    at = after if after is not None else len(pieces) // 2
    return (*pieces[:at], *(piece.replace(b"}", b"", 1) for piece in pieces[at : at + 1]), *pieces[at + 1 :])


def _unknown(request: Recorded) -> Served:
    verb = request.path.rpartition(":")[2]
    if verb in _CODE_ASSIST:
        return Served(200, [*_JSON], (encode(_CODE_ASSIST[verb]),))
    error = ApiError("not_found", f"The scripted upstream has nothing at {request.path}", 404)
    return refused("openai-chat", error)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A provider for tests that speaks every dialect.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args(arguments)
    with ScriptedUpstream(host=given.host, port=given.port) as upstream:
        sys.stdout.write(f"{upstream.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
