"""A stream for a client that wants one answer: collected, then rendered whole."""

from __future__ import annotations

from collections.abc import Callable

from wireglot.dialects.base import Dialect
from wireglot.gateway.streams.feeder import STREAM_TIMES, StreamRefused, too_large
from wireglot.gateway.targets.prepared import Prepared
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response
from wireglot.ir.stream import Failure, Finish, Folding, StreamFailed


class Collection:
    """A stream for a client that wants one answer: collected, then folded."""

    def __init__(
        self, upstream: Dialect, prepared: Prepared, limit: int, held: Callable[[int], None]
    ) -> None:
        """`held` is informed of all that comes."""
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self.size = 0
        self._reader = upstream.stream_reader(prepared.context)
        self._folding = Folding()
        self._room = limit * STREAM_TIMES
        self._held = held

    def feed(self, data: bytes) -> None:
        self._held(len(data))
        self.size += len(data)
        self._room -= len(data)
        if self._room < 0:
            raise too_large()
        events = self._reader.read(data)
        if events:
            self.moved = True
            self._folding.add(events)
            self.ended = type(events[-1]) is Finish or type(events[-1]) is Failure

    def finish(self) -> None:
        if not self.ended:
            self._folding.add(self._reader.end())
            self.ended = True

    def fail(self, error: ApiError) -> None:
        raise StreamRefused(error)

    def abandon(self) -> None:
        """Nothing of it has reached the client."""

    def response(self) -> Response:
        try:
            return self._folding.response()
        except StreamFailed as failed:
            raise StreamRefused(failed.error) from None
