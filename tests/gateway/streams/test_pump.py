"""An upstream that says nothing is given up, but not where nobody reads what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from wireglot.gateway.streams.feeder import MAX_BYTES_AT_ONCE, MAX_LINES_AT_ONCE, Pump
from wireglot.http.transport import TransportFault
from wireglot_core.ir.errors import ApiError


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


class Read(Silent):
    """An answer whose reads are given, and a feeder that keeps what each step gets."""

    def __init__(self, reads: list[bytes], *, fails_at: int = 0, breaks: bool = False) -> None:
        super().__init__()
        self.steps: list[bytes] = []
        self.is_paused = self.has_finished = False
        self._reads = reads
        self._fails_at = fails_at
        self._breaks = breaks

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        for data in self._reads:
            while self.is_paused:
                await asyncio.sleep(0)
                if self._aborted.is_set():
                    raise TransportFault("broken", "the exchange was aborted")
            before = len(self.steps)
            feed(data)
            assert len(self.steps) <= before + 1, "one step at a time"
        if self._breaks:
            raise TransportFault("broken", "the upstream closed the connection too early")

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def feed(self, data: bytes) -> None:
        self.steps.append(data)
        if len(self.steps) == self._fails_at:
            raise KeyError("of the feeder")

    def finish(self) -> None:
        self.has_finished = True


def pumped(read: Read) -> None:
    async def run() -> None:
        await Pump(read, read, 60).run()

    asyncio.run(run())


LINES = b"data: {}\n\n" * 26_000
BYTES = b"x" * 260_000


@pytest.mark.parametrize("reads", [[LINES], [LINES, BYTES], [b"a" * 10, BYTES, LINES, b"b" * 10]])
def test_a_read_is_fed_in_steps_and_meanwhile_no_more_is_read(reads: list[bytes]) -> None:
    read = Read(reads)
    pumped(read)
    assert b"".join(read.steps) == b"".join(reads)
    assert all(len(step) <= MAX_BYTES_AT_ONCE for step in read.steps)
    assert all(step.count(b"\n") <= MAX_LINES_AT_ONCE for step in read.steps)
    assert read.has_finished


def test_what_was_read_before_an_answer_broke_is_fed() -> None:
    read = Read([LINES], breaks=True)
    with pytest.raises(TransportFault, match="too early"):
        pumped(read)
    assert b"".join(read.steps) == LINES
    assert not read.has_finished


def test_what_a_feeder_raises_in_a_later_step_ends_the_pump() -> None:
    for reads, step in (([LINES], 1), ([LINES], 5), ([LINES, LINES], 5)):
        read = Read(reads, fails_at=step)
        with pytest.raises(KeyError, match="of the feeder"):
            pumped(read)
        assert len(read.steps) == step


def test_a_client_that_reads_slowly_pauses_what_was_read_too() -> None:
    async def run() -> None:
        read = Read([LINES, BYTES])
        pump = Pump(read, read, 60)
        pump.pause()
        running = asyncio.ensure_future(pump.run())
        pump.resume()
        for _ in range(5):
            await asyncio.sleep(0)
        pump.pause()
        fed = len(read.steps)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(read.steps) == fed
        assert read.is_paused
        pump.resume()
        await running
        assert b"".join(read.steps) == LINES + BYTES

    asyncio.run(run())


def test_nothing_is_fed_after_the_client_has_left() -> None:
    async def run() -> None:
        read = Read([LINES, BYTES])
        running = asyncio.ensure_future(Pump(read, read, 60).run())
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        fed = len(read.steps)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(read.steps) == fed

    asyncio.run(run())


def test_nothing_is_fed_after_the_end() -> None:
    class Ending(Read):
        def feed(self, data: bytes) -> None:
            super().feed(data)
            self.ended = len(self.steps) == 3

    read = Ending([LINES])
    pumped(read)
    assert len(read.steps) == 3
    assert not read.has_finished
