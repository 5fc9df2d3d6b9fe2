"""The tested endpoint, over HTTP. A key is sent in one header and nowhere else."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from wireglot.http.client.client import HttpTransport
from wireglot.http.transport import Outbound, Timeouts, TransportFault

T = TypeVar("T")
_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_Handler = Callable[[int, FrameType | None], Any]


def run_heeding(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Its result. If a signal ended it: raises what the signal's handler raises."""
    loop, handlers, heard = runner.get_loop(), _handlers(), list[int]()

    async def heeding() -> T:
        task = asyncio.current_task()
        assert task is not None

        def hear(number: int) -> None:
            heard.append(number)
            task.cancel()

        for number in handlers:
            loop.add_signal_handler(number, hear, number)
        return await work

    try:
        return runner.run(heeding())
    finally:
        for number, handler in handlers.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        if heard:
            handlers[heard[0]](heard[0], None)


def _handlers() -> dict[int, _Handler]:
    """Signals with a handler: those that kill the process, or are ignored, are not changed."""
    # Windows' loops get no signals; elsewhere those of the main thread do.
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [int(getattr(signal, name)) for name in _NAMES]
    return {number: handler for number in numbers if callable(handler := signal.getsignal(number))}


# Bytes of an answer of an endpoint that is probed.
_MAX_BODY: Final = 16 * 2**20
_NO_URL: Final = "BASE_URL: expected http://HOST:PORT or https://HOST/PATH"
_ROOTS: Final = {
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "gemini": "/v1beta",
    "gemini-interactions": "/v1beta",
}
"""The prefix of a dialect's paths if a base URL has no path."""


def patience(silent: float = 120.0) -> Timeouts:
    """For one exchange, in which an answer may be silent for this many seconds."""
    return Timeouts(connect=10.0, tls=10.0, first_byte=silent, idle=silent, total=2.5 * silent)


class _Limits(msgspec.Struct, frozen=True):
    """One request after another needs no more."""

    pool: int = 2
    queue: int = 2
    queue_time: float = 10.0
    pool_idle: float = 20.0
    write_pending: int = _MAX_BODY


class EndpointRequest(msgspec.Struct, frozen=True):
    """One request, without its key."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    key: str | None = None
    """Another key than the endpoint's own; "": none."""


class Got(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class NoReply(Exception):
    """There was no answer; with the reason."""


class Endpoint(Protocol):
    def ask(self, ask: EndpointRequest) -> Got:
        """Raises NoReply."""
        ...


class UnusableEndpoint(Exception):
    """A message for the user."""


def root_of(base_url: str, dialect: str) -> str:
    """The base URL in the catalog's form: `http://HOST` alone gets the dialect's default path."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        raise UnusableEndpoint(_NO_URL) from None
    host = parts.hostname or ""
    plain = host.replace(".", "").replace("-", "").replace(":", "").replace("_", "")
    if parts.scheme not in ("http", "https") or not plain.isalnum() or not plain.isascii():
        raise UnusableEndpoint(_NO_URL)
    if parts.query or parts.fragment or parts.username or parts.password:
        raise UnusableEndpoint(
            "BASE_URL: must not contain a user name, password or query; pass a key with --key-env"
        )
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~-._")
    if dialect == "anthropic":
        path = path.removesuffix("/v1")
    elif dialect == "ollama":
        path = path.removesuffix("/api")
    name = f"[{host}]" if ":" in host else host
    place = f"{parts.scheme}://{name}" + (f":{port}" if port else "")
    return place + (path or _ROOTS.get(dialect, ""))


class HttpEndpoint:
    """Sends one request after another, on connections that are kept."""

    def __init__(
        self,
        root: str,
        key_header: tuple[str, str],
        key: str = "",
        *,
        timeouts: Timeouts | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`headers` are sent with every request: some gateways choose their target by them."""
        self._root = root
        self._key_header = key_header
        self._key = key
        self._timeouts = timeouts or patience()
        self._headers = headers
        self._runner = asyncio.Runner()
        self._transport = HttpTransport(_Limits())

    def __enter__(self) -> HttpEndpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        """After Ctrl-C there is a request whose answer is not awaited."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._transport.close()

    def ask(self, ask: EndpointRequest) -> Got:
        key = self._key if ask.key is None else ask.key
        headers = [*ask.headers, *self._headers]
        if key:
            name, before = self._key_header
            headers.append((name, before + key))
        try:
            outbound = Outbound(ask.method, self._root + ask.path, headers, ask.body)
            return run_heeding(self._runner, self._ask(outbound))
        except TransportFault as fault:
            raise NoReply(_words(fault)) from None

    async def _ask(self, outbound: Outbound) -> Got:
        answer = await self._transport.send(outbound, self._timeouts)
        try:
            body = await answer.read(_MAX_BODY)
        except BaseException:
            answer.abort()
            raise
        return Got(answer.status, dict(answer.headers), body)


def _words(fault: TransportFault) -> str:
    match fault.problem:
        case "dns":
            return "unknown host name"
        case "connect":
            return "connection refused"
        case "tls":
            return f"TLS handshake failed: {fault.message}"
        case "first_byte_timeout" | "idle_timeout" | "total_timeout":
            return "timed out"
        case "broken":
            return "the connection was closed too early"
        case _:
            return fault.message
