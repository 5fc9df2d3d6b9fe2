"""One upstream's answer: its head, and its body on the way to whoever consumes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from io import BytesIO
from typing import Protocol

from wireglot.http.client.coding import Decoder
from wireglot.http.transport import TransportFault


class Line(Protocol):
    """What an answer may do to the connection that it arrives on."""

    def hold(self) -> None:
        """Read no more for now."""
        ...

    def unhold(self) -> None: ...

    def drop(self) -> None:
        """Close at once."""
        ...


class HttpAnswer:
    """Pieces that arrive before anyone asks are kept, up to `room` bytes; then the socket is left alone.

    Exceptions travel as values, not through the future: a future refuses some (StopIteration), and complains
    about those that nobody fetched.
    """

    __slots__ = (
        "_consumer",
        "_decoder",
        "_ended",
        "_full",
        "_held",
        "_line",
        "_loop",
        "_paused",
        "_pieces",
        "_room",
        "_size",
        "_waiter",
        "_whole",
        "error",
        "feed",
        "headers",
        "status",
    )

    def __init__(self, line: Line, loop: asyncio.AbstractEventLoop, room: int) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.error: Exception | None = None
        self.feed: Callable[[bytes], None] | None = None
        """Takes the body as it comes, once somebody pumps it: then there is nothing to do here for a piece
        of it. Not while it must be decoded first."""
        self._line: Line | None = line
        self._loop = loop
        self._room = room
        self._pieces: list[bytes] = []
        self._size = 0
        self._decoder: Decoder | None = None
        self._consumer: Callable[[bytes], None] | None = None
        self._held: Callable[[int], None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._whole: BytesIO | None = None
        """The body while it is read as a whole: it grows in place, where joined pieces were there twice."""
        self._full = False
        self._paused = False
        self._ended = False

    # The consumer's side

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        """The whole body; TransportFault("too_large") beyond the limit."""
        if self._size > limit or self._announced() > limit:
            self.abort()
            raise _too_large()
        if held is not None:
            try:
                held(self._size)
            except BaseException:
                self.abort()
                raise
        if not self._ended:
            whole = self._whole = BytesIO()
            whole.writelines(self._pieces)
            self._pieces.clear()
            self._room = limit
            self._held = held
            await self._rest()
            self._whole = None
            if self.error is None:
                return whole.getvalue()
        if self.error is not None:
            raise self.given_up()
        pieces = self._pieces
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        """Hand each piece of the body to `feed`, and return at its end."""
        if self._pieces:
            kept = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            try:
                feed(kept)
            except BaseException:
                self.abort()
                raise
        if not self._ended:
            self._consumer = feed
            if self._decoder is None:
                self.feed = feed
            await self._rest()
        if self.error is not None:
            raise self.given_up()

    def pause(self) -> None:
        self._paused = True
        if self._line is not None:
            self._line.hold()

    def resume(self) -> None:
        self._paused = False
        if self._line is not None and not self._full:
            self._line.unhold()

    def abort(self) -> None:
        if self._line is not None:
            self._line.drop()
            self.end(TransportFault("broken", "the exchange was aborted"))

    async def _rest(self) -> None:
        if self._full:
            self._full = False
            if self._line is not None and not self._paused:
                self._line.unhold()
        try:
            await self.expect()
        except BaseException:
            self.abort()
            raise

    def expect(self) -> asyncio.Future[None]:
        """Done when the head is there; asked again, at the end. Who is cancelled meanwhile must abort."""
        self._waiter = self._loop.create_future()
        return self._waiter

    def _announced(self) -> int:
        # llhttp has checked that it is a number. Decoding removes the header: it counts coded bytes.
        return int(self.headers.get("content-length", 0))

    # The connection's side

    def head(self, status: int, headers: dict[str, str], decoder: Decoder | None) -> None:
        self.status = status
        self.headers = headers
        self._decoder = decoder

    def take(self, body: bytes) -> None:
        """A piece of the body. Raises what `feed` raises, and TransportFault."""
        if self._decoder is not None:
            body = self._decoder.decode(body)
            if not body:
                return
        if self._consumer is not None:
            self._consumer(body)
            return
        if self._whole is not None:
            self._whole.write(body)
        else:
            self._pieces.append(body)
        self._size += len(body)
        if self._held is not None:
            self._held(len(body))
        if self._size > self._room:
            if self._whole is not None:
                raise _too_large()
            if self._line is not None:
                self._full = True
                self._line.hold()

    def given_up(self) -> Exception:
        """The error, for whoever raises it: held here too, it would be in a circle with the frames that it
        passes, and these be freed much later."""
        error, self.error = self.error, None
        assert error is not None
        return error

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, error: Exception | None) -> None:
        """Nothing more will come; the connection is no longer ours."""
        self._line = None
        self.feed = self._consumer = self._held = (
            None  # who consumes it holds it too: a circle is freed much later
        )
        self._ended = True
        if error is None and self._decoder is not None:
            try:
                self._decoder.finish()
            except TransportFault as fault:
                error = fault
        self.error = error
        self.wake()


def _too_large() -> TransportFault:
    return TransportFault("too_large", "the upstream's answer is too large")
