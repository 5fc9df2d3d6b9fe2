"""One HTTP exchange over any carrier: our transport, a caller's own, or a caller's function."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from wireglot.http.client.client import HttpTransport
from wireglot.http.client.dial import default_context
from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault
from wireglot.kimi.options import LIMITS, HttpFunction, SendingTransport, Transport

if TYPE_CHECKING:
    import ssl

_TIMEOUTS: Final = Timeouts()
_POOL: Final = "kimi"


class CarriedReply(Protocol):
    """An answer whose head is complete. Header names are in lower case."""

    status: int
    headers: dict[str, str]

    async def read(self, limit: int) -> bytes: ...

    def pieces(self) -> AsyncGenerator[bytes, None]: ...


Send = Callable[[str, dict[str, str], bytes], Awaitable[CarriedReply]]


@asynccontextmanager
async def opened(transport: Transport | None) -> AsyncIterator[Send]:
    """A way to POST. What we open ourselves is closed at the end: a call leaves nothing behind in a loop that
    may end at once."""
    if transport is None:
        async with pooled() as own:
            yield partial(_send, own)
    elif hasattr(transport, "send"):
        yield partial(_send, cast("SendingTransport", transport))
    else:
        yield partial(_call, transport)


@asynccontextmanager
async def pooled() -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(LIMITS, ssl_context=_tls())
    try:
        yield transport
    finally:
        await transport.close()


@cache
def _tls() -> ssl.SSLContext:
    """Cached: reading the certificate authorities takes longer than the rest of a call's own work."""
    return default_context()


async def _send(transport: SendingTransport, url: str, headers: dict[str, str], body: bytes) -> CarriedReply:
    request = Outbound("POST", url, list(headers.items()), body, _POOL)
    return _Answered(await transport.send(request, _TIMEOUTS))


async def _call(function: HttpFunction, url: str, headers: dict[str, str], body: bytes) -> CarriedReply:
    return _Returned(*await function("POST", url, headers, body))


class _Answered:
    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._answer = answer

    async def read(self, limit: int) -> bytes:
        return await self._answer.read(limit)

    def pieces(self) -> AsyncGenerator[bytes, None]:
        return _pulled(self._answer)


class _Returned:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes | AsyncIterable[bytes]) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self._body = body

    async def read(self, limit: int) -> bytes:
        collected = bytearray()
        async for piece in self.pieces():
            collected += piece
            if len(collected) > limit:
                raise TransportFault("too_large", "the answer is too large")
        return bytes(collected)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        body = self._body
        if not isinstance(body, AsyncIterable):
            yield body
            return
        try:
            async for piece in body:
                yield piece
        finally:
            if isinstance(body, AsyncGenerator):
                await body.aclose()


async def _pulled(answer: Answer) -> AsyncGenerator[bytes, None]:
    """A transport's answers push data; an iterator pulls it. What is not fetched in time stays in the
    socket."""
    pieces: deque[bytes] = deque()
    stirred = asyncio.Event()
    held = 0

    def feed(piece: bytes) -> None:
        nonlocal held
        pieces.append(piece)
        held += len(piece)
        if held > LIMITS.write_pending:
            answer.pause()
        stirred.set()

    pump = asyncio.ensure_future(answer.pump(feed))
    pump.add_done_callback(lambda _: stirred.set())
    try:
        while True:
            if pieces:
                data = b"".join(pieces)
                pieces.clear()
                if held > LIMITS.write_pending:
                    answer.resume()
                held = 0
                yield data
            elif pump.done():
                break
            else:
                stirred.clear()
                await stirred.wait()
        pump.result()
    finally:
        pump.cancel()
        await asyncio.wait((pump,))
        if not pump.cancelled():
            pump.exception()  # fetched, so that asyncio logs no error that came after we left
