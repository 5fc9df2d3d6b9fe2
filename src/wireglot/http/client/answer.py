"""One upstream's answer: its head, and its body on the way to its consumer, decompressed if necessary."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Final, Protocol

import msgspec

from wireglot.http.copies import MessageCopy
from wireglot.http.transport import TransportFault

FREE_BYTES: Final = 1024 * 1024
RATIO: Final = 100
"""Beyond FREE_BYTES, a decoded body may have at most this many times its bytes on the wire."""

_STEP_BYTES: Final = 256 * 1024
_GZIP_BITS: Final = 16 + zlib.MAX_WBITS


class Line(Protocol):
    """The operations of an answer on its connection."""

    def hold(self) -> None:
        """Stop reading for now."""
        ...

    def unhold(self) -> None: ...

    def drop(self) -> None:
        """Close at once."""
        ...


class HttpAnswer(msgspec.Struct, eq=False):
    """Pieces that arrive before they are consumed are kept, up to `room` bytes; then the socket is not read.

    Exceptions are passed as values, not through the future: a future refuses some (StopIteration), and logs
    those that were not retrieved.
    """

    line: Line | None
    """None once nothing more will come."""
    loop: asyncio.AbstractEventLoop
    room: int
    waiter: asyncio.Future[None]
    """Done when the head is complete; a second one, at the end. Its waiter aborts the answer if it is
    cancelled."""
    status: int = 0
    headers: dict[str, str] = {}
    decoder: Decoder | None = None
    error: Exception | None = None
    feed: Callable[[bytes], None] | None = None
    """Receives the body as it comes while it is pumped: then a piece needs no work here. Not while it must be
    decoded first."""
    consumer: Callable[[bytes], None] | None = None
    held: Callable[[int], None] | None = None
    pieces: list[bytes] = []
    size: int = 0
    whole: BytesIO | None = None
    """The body while it is read as a whole: it grows in place, where joining pieces would need twice the
    memory."""
    full: bool = False
    paused: bool = False
    copy: MessageCopy | None = None
    """Receives further data, decoded, if anyone follows it."""

    # For the consumer

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        """The whole body; TransportFault("too_large") beyond the limit."""
        # llhttp has checked that it is a number. Decoding removes the header, which counts coded bytes.
        if self.size > limit or int(self.headers.get("content-length", 0)) > limit:
            self.abort()
            raise _too_large()
        if held is not None:
            try:
                held(self.size)
            except BaseException:
                self.abort()
                raise
        if self.line is not None:
            whole = self.whole = BytesIO()
            whole.writelines(self.pieces)
            self.pieces.clear()
            self.room = limit
            self.held = held
            try:
                await self._end_of_body()
            except BaseException:
                self.abort()
                raise
            self.whole = None
            if self.error is None:
                return whole.getvalue()
        if self.error is not None:
            raise self.given_up()
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        """Pass each piece of the body to `feed`, and return at its end."""
        try:
            if self.pieces:
                kept = b"".join(self.pieces)
                self.pieces.clear()
                self.size = 0
                feed(kept)
            if self.line is not None:
                self.consumer = feed
                if self.decoder is None:
                    self.feed = feed
                await self._end_of_body()
        except BaseException:
            self.abort()
            raise
        if self.error is not None:
            raise self.given_up()

    def pause(self) -> None:
        self.paused = True
        if self.line is not None:
            self.line.hold()

    def resume(self) -> None:
        self.paused = False
        if self.line is not None and not self.full:
            self.line.unhold()

    def abort(self) -> None:
        if self.line is not None:
            self.line.drop()
            self.end(TransportFault("broken", "the exchange was aborted"))

    def _end_of_body(self) -> asyncio.Future[None]:
        if self.full:
            self.full = False
            if self.line is not None and not self.paused:
                self.line.unhold()
        self.waiter = self.loop.create_future()
        return self.waiter

    # For the connection

    def take(self, body: bytes) -> None:
        """A piece of the body. Raises what `feed` raises, and TransportFault."""
        if self.decoder is not None:
            body = self.decoder.decode(body)
            if not body:
                return
        if self.copy is not None:
            self.copy.add(body)
        if self.consumer is not None:
            self.consumer(body)
            return
        if self.whole is not None:
            self.whole.write(body)
        else:
            self.pieces.append(body)
        self.size += len(body)
        if self.held is not None:
            self.held(len(body))
        if self.size > self.room:
            if self.whole is not None:
                raise _too_large()
            if self.line is not None:
                self.full = True
                self.line.hold()

    def given_up(self) -> Exception:
        """The error for the caller to raise: keeping it here would create a reference cycle with the frames
        that it passes, and delay their release."""
        error, self.error = self.error, None
        assert error is not None
        return error

    def end(self, error: Exception | None) -> None:
        """Nothing more will come; the connection is no longer ours."""
        self.line = None
        # The consumer references this answer: breaking the cycle frees both at once.
        self.feed = self.consumer = self.held = self.copy = None
        if error is None and self.decoder is not None:
            try:
                self.decoder.finish()
            except TransportFault as fault:
                error = fault
        self.error = error
        if not self.waiter.done():
            self.waiter.set_result(None)


def _too_large() -> TransportFault:
    return TransportFault("too_large", "the upstream's answer is too large")


def decoder_for(coding: str) -> Decoder | None:
    """The decoder for a content coding, although we ask for identity; a small body must not become a huge
    one. None if the body is not coded. A coding that we cannot undo is the server's fault."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return Decoder(gzip=True)
    if name == "deflate":
        return Decoder(gzip=False)
    raise TransportFault("protocol", "the upstream's answer has an encoding that was not requested")


class Decoder:
    """gzip or deflate, piece by piece."""

    __slots__ = ("_consumed", "_gzip", "_inflate", "_produced")

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        # Servers send "deflate" with and without its zlib header: the first byte shows which.
        self._inflate = zlib.decompressobj(_GZIP_BITS) if gzip else None
        self._consumed = 0
        self._produced = 0

    def decode(self, data: bytes) -> bytes:
        self._consumed += len(data)
        try:
            return self._decode(data)
        except zlib.error as error:
            raise TransportFault("protocol", "the upstream's answer could not be decompressed") from error

    def _decode(self, data: bytes) -> bytes:
        if self._inflate is None:
            headed = data[0] & 0x0F == 8
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if headed else -zlib.MAX_WBITS)
        inflate = self._inflate
        pieces: list[bytes] = []
        while data:
            if inflate.eof:
                if not self._gzip:
                    raise zlib.error("bytes after the end")
                # gzip allows several members in a row.
                inflate = self._inflate = zlib.decompressobj(_GZIP_BITS)
            piece = inflate.decompress(data, _STEP_BYTES)
            pieces.append(piece)
            self._count(len(piece))
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        return b"".join(pieces)

    def _count(self, produced: int) -> None:
        self._produced += produced
        if self._produced > FREE_BYTES and self._produced > RATIO * self._consumed:
            raise TransportFault("too_large", "the upstream's answer grows too large when decompressed")

    def finish(self) -> None:
        """The body has ended: raises if it is incomplete."""
        if self._consumed and not (self._inflate is not None and self._inflate.eof):
            raise TransportFault("broken", "the upstream's compressed answer ended too early")
