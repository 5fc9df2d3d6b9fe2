"""A signal ends what is being asked in good order, and then does what its handler says."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import FrameType

import pytest

from wireglot.probe.endpoint import run_heeding

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its event loops hear no signals")


class Ended(Exception):
    pass


def end(number: int, frame: FrameType | None) -> None:
    raise Ended(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_under_way_is_cancelled_before_the_handler_is_called(number: int) -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    before = signal.signal(number, end)
    try:
        with asyncio.Runner() as runner:
            with pytest.raises(Ended):
                run_heeding(runner, work())
            assert seen == ["cancelled"]
            assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)


def test_without_a_signal_it_gives_what_the_work_gives() -> None:
    async def work() -> int:
        return 7

    with asyncio.Runner() as runner:
        assert run_heeding(runner, work()) == 7
