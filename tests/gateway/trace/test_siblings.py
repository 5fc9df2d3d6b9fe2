"""Workers tell one another of their exchanges, and what becomes of those of a worker that is killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from wireglot.gateway.trace.siblings import PeerRequest, PeerResponse, RowSiblings
from wireglot.traces.trace import Row

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="several workers are Unix's")


def test_what_ran_in_a_worker_that_has_gone_is_told_as_failed(tmp_path: Path) -> None:
    asyncio.run(_one_goes(tmp_path))


async def _one_goes(folder: Path) -> None:

    async def answer(question: PeerRequest) -> PeerResponse:
        assert question.rows is not None
        assert question.rows.status == "running"
        return PeerResponse(rows=[Row(id="before", at=1.0)])

    async def stream(tell: Callable[[PeerResponse], Coroutine[Any, Any, None]]) -> None:
        await tell(PeerResponse(rows=[Row(id="since", at=2.0), Row(id="over", at=3.0)]))
        await tell(PeerResponse(rows=[Row(id="over", at=3.0, state="done")]))
        await asyncio.Event().wait()

    other = RowSiblings(str(folder), 1, answer, stream)
    mine = RowSiblings(str(folder), 0, answer, stream)
    await other.start()
    heard: asyncio.Queue[Row] = asyncio.Queue()

    def hear(told: PeerResponse) -> None:
        for row in told.rows:
            heard.put_nowait(row)

    listening = asyncio.create_task(mine.listen(hear))
    try:
        first = [await heard.get() for _ in range(3)]
        assert [(row.id, row.state) for row in first] == [
            ("since", "running"), ("over", "running"), ("over", "done")
        ]  # fmt: skip
        await other.close()  # as the kernel closes the sockets of whoever is killed
        ended = [await heard.get() for _ in range(2)]
        assert {(row.id, row.state) for row in ended} == {("before", "failed"), ("since", "failed")}
        assert all("has gone" in row.error for row in ended)
    finally:
        listening.cancel()
