"""A stream for a client that wants one answer: collected, then rendered whole."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wireglot.gateway.streams.feeder import STREAM_TIMES, StreamRefused, too_large
from wireglot.gateway.targets.prepared import Prepared
from wireglot_core.dialects.base import Dialect, StreamReader
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.stream import Failure, Finish, Folding, StreamFailed
from wireglot_core.providers.emulation import EmulatingReader, Emulator


class Collection:
    """A stream for a client that wants one answer: collected, then folded."""

    def __init__(
        self, upstream: Dialect, prepared: Prepared, limit: int, held: Callable[[int], None]
    ) -> None:
        """`held` is called with the bytes of all that comes."""
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self.cut = False
        self.size = 0
        self._reader: StreamReader = upstream.stream_reader(prepared.context)
        self._emulator = Emulator(prepared.emulation) if prepared.emulation is not None else None
        if self._emulator is not None:
            self._reader = EmulatingReader(self._reader, self._emulator)
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
        if self._emulator is not None:
            self.moved = self.moved or self._emulator.holds
            self.cut = self._emulator.cut

    def finish(self) -> None:
        if not self.ended:
            self._folding.add(self._reader.end())
            self.ended = True

    @property
    def losses(self) -> list[Loss]:
        return self._emulator.losses if self._emulator is not None else []

    def fail(self, error: ApiError) -> None:
        raise StreamRefused(error)

    def abandon(self) -> None:
        """Nothing of it has reached the client."""

    def response(self) -> Response:
        try:
            response = self._folding.response()
            # The usage that was reported before the cut is not that of the answer.
            return msgspec.structs.replace(response, usage=None) if self.cut else response
        except StreamFailed as failed:
            raise StreamRefused(failed.error) from None
