"""What the machines of a fleet tell one another: the same over documents of every store, and over Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.stores.conftest import MEMORY, POOLED, POSTGRES, REDIS, SQLITE, Run, open_engine
from wireglot.stores.base import FleetLog
from wireglot.stores.document_log import FLEET, REPORTED, DocumentLog

DAY = 86_400.0


@pytest.fixture(params=[MEMORY, SQLITE, POSTGRES, POOLED, REDIS])
def log(request: pytest.FixtureRequest, run: Run[Any], tmp_path) -> Iterator[FleetLog]:
    if request.param == "redis":
        from tests.stores.servers import redis_url
        from wireglot.stores.redis import RedisLog

        opened: FleetLog = RedisLog(redis_url())
        yield opened
        run(opened.close())
        return
    engine = run(open_engine(request.param, tmp_path))
    yield DocumentLog(lambda: engine.documents)
    run(engine.close())


async def reported(log: FleetLog, *bodies: bytes, name: str = "rows", most: int = 1000) -> None:
    for body in bodies:
        await log.tell(name, body, seconds=DAY, most=most)


def test_what_was_reported_is_heard_in_its_order_from_any_place_on(log: FleetLog, run: Run[Any]) -> None:
    run(reported(log, b"one", b"two", b"three"))
    run(reported(log, b"other", name="orders"))
    heard = run(log.heard("rows", "", 10))
    assert [entry.body for entry in heard] == [b"one", b"two", b"three"]
    assert [entry.body for entry in run(log.heard("rows", heard[0].place, 1))] == [b"two"]
    assert run(log.heard("rows", heard[2].place, 10)) == []
    newest = run(log.last("rows", "", 2))
    assert [entry.body for entry in newest] == [b"three", b"two"]
    assert [entry.body for entry in run(log.last("rows", newest[-1].place, 2))] == [b"one"]
    assert all(entry.reported > 1_700_000_000_000 for entry in heard)


def test_what_is_removed_is_not_heard_and_the_rest_stays(log: FleetLog, run: Run[Any]) -> None:
    run(reported(log, b"one", b"two", b"three"))
    run(log.remove("rows", [run(log.heard("rows", "", 10))[1].place]))
    assert [entry.body for entry in run(log.heard("rows", "", 10))] == [b"one", b"three"]


def test_of_too_many_the_oldest_go(log: FleetLog, run: Run[Any]) -> None:
    run(reported(log, *(b"%d" % number for number in range(200)), most=10))
    left = run(log.heard("rows", "", 1000))
    assert left[-1].body == b"199"
    assert len(left) < 150, "the store may leave a few more"


def test_what_is_handed_over_is_found_by_its_caller_and_id_alone(log: FleetLog, run: Run[Any]) -> None:
    run(log.keep("ada", "x", b"hers", seconds=DAY, max_bytes=1000))
    run(log.keep("bob", "x", b"his", seconds=DAY, max_bytes=1000))
    assert run(log.find("ada", "x")) == b"hers"
    assert run(log.find("bob", "x")) == b"his"
    assert run(log.find("ada", "y")) is None
    assert run(log.forget("ada")) == 1
    assert run(log.find("ada", "x")) is None
    assert run(log.find("bob", "x")) == b"his"


def test_of_too_many_bytes_the_oldest_go(log: FleetLog, run: Run[Any]) -> None:
    for number in range(6):
        run(log.keep("ada", f"{number}", bytes(400), seconds=DAY, max_bytes=1000))
    there = [number for number in range(6) if run(log.find("ada", f"{number}")) is not None]
    assert there == [4, 5]
    run(log.keep("ada", "5", bytes(900), seconds=DAY, max_bytes=1000))
    assert len(run(log.find("ada", "5")) or b"") == 900


def test_a_log_that_was_emptied_is_heard_from_its_new_beginning(run: Run[Any], tmp_path) -> None:
    engine = run(open_engine("memory", tmp_path))
    log = DocumentLog(lambda: engine.documents)
    run(reported(log, b"one", b"two", b"three"))
    place = run(log.heard("rows", "", 10))[-1].place
    run(engine.documents.delete_pieces(FLEET, REPORTED, "rows"))
    assert run(log.heard("rows", place, 10)) == []
    run(reported(log, b"new"))
    assert [entry.body for entry in run(log.heard("rows", place, 10))] == [b"new"]
