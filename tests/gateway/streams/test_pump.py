"""An upstream that says nothing is given up, but not where nobody reads what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from wireglot.gateway.streams.feeder import Pump
from wireglot.http.transport import TransportFault
from wireglot.ir.errors import ApiError


class Silent:
    """An answer and its feeder, of which nothing comes."""

    status = 200
    ended = False
    cut = False
    moved = False
    failure: ApiError | None = None

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self._aborted = asyncio.Event()

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        raise AssertionError("it is pumped")

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        await self._aborted.wait()
        raise TransportFault("broken", "the exchange was aborted")

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abort(self) -> None:
        self._aborted.set()

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> None: ...

    def fail(self, error: ApiError) -> None: ...

    def abandon(self) -> None: ...


def test_silence_counts_only_while_it_is_read() -> None:
    looks = [True, True, True, False]

    async def pumped() -> None:
        silent = Silent()
        await Pump(silent, silent, 0.001, waits=lambda: looks.pop(0)).run()

    with pytest.raises(TransportFault) as given_up:
        asyncio.run(pumped())
    assert given_up.value.problem == "idle_timeout"
    assert not looks
