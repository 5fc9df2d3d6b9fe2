"""Workers tell one another of their exchanges, and what becomes of those of a worker that is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.trace.peers import PeerCommand, PeerRequest, PeerResponse, SiblingWorkers
from wireglot.gateway.trace.rows import Listener
from wireglot_core.traces.trace import Row

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="several workers are Unix's")


def test_what_ran_in_a_worker_that_has_gone_is_reported_as_failed(tmp_path: Path) -> None:
    asyncio.run(_one_goes(tmp_path))


async def _one_goes(folder: Path) -> None:
    theirs = Listener()

    async def answer(question: PeerRequest) -> PeerResponse:
        running = question.rows is not None and question.rows.terms[0].values == ("running",)
        return PeerResponse(rows=[Row(id="before", at=1.0)] if running else [])

    async def obey(command: PeerCommand, is_new: bool) -> None:
        raise AssertionError(f"nothing was ordered: {command}")

    async def shown(rows: list[Row]) -> list[Row]:
        return [replace(row, title=f"words of {row.id}") for row in rows]

    other = SiblingWorkers(str(folder), 1, answer, lambda: theirs, shown)
    mine = SiblingWorkers(str(folder), 0, answer, lambda: theirs, shown)
    await other.start(obey)
    heard = Listener()
    mine.listen(heard)
    try:
        for row in (Row(id="since", at=2.0), Row(id="over", at=3.0)):
            theirs.tell(row)
        assert [(row.id, row.state, row.title) for row in await heard.heard(DEADLINE_SECONDS)] == [
            ("since", "running", "words of since"),
            ("over", "running", "words of over"),
        ]
        theirs.tell(Row(id="over", at=3.0, state="done"))
        assert [(row.id, row.state) for row in await heard.heard(DEADLINE_SECONDS)] == [("over", "done")]
        await other.close()  # as the kernel closes the sockets of the one that is killed
        ended = await heard.heard(DEADLINE_SECONDS)
        assert {(row.id, row.state) for row in ended} == {("before", "failed"), ("since", "failed")}
        assert all("has exited" in row.error for row in ended)
    finally:
        heard.close()


def test_a_worker_that_begins_obeys_what_holds_already(tmp_path: Path) -> None:
    asyncio.run(_one_comes(tmp_path))


async def _one_comes(folder: Path) -> None:
    standing = [PeerCommand(1.0, record_until=99.0), PeerCommand(1.0, ended="nonce", ends=99.0)]
    given: list[tuple[PeerCommand, bool]] = []

    async def answer(question: PeerRequest) -> PeerResponse:
        if question.command is not None:
            given.append((question.command, True))
        return PeerResponse(dropped=3, standing=standing)

    async def obey(command: PeerCommand, is_new: bool) -> None:
        given.append((command, is_new))

    other, mine = (SiblingWorkers(str(folder), index, answer, Listener) for index in (1, 0))
    try:
        await other.start(obey)
        assert given == []
        await mine.start(obey)
        assert given == [(command, False) for command in standing]
        given.clear()
        order = PeerCommand(2.0, record_until=0.0)
        assert await mine.command(order) == ""
        assert given == [(order, True)]
        assert await mine.dropped() == [3]
    finally:
        await mine.close()
        await other.close()
