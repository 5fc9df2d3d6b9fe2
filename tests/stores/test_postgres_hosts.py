"""Several hosts, of which one takes writes: now this one, then another."""

from __future__ import annotations

import asyncio

import pytest

from proofs.server_groups import PostgresPair
from tests.stores.servers import needs_own_postgres
from tests.waiting import until
from wireglot.stores.base import StoreDown
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.records import Document

pytestmark = needs_own_postgres


@pytest.mark.whole
def test_a_primary_that_falls_silent_is_left_for_the_replica_that_was_promoted() -> None:
    """Nobody refuses a connection to a machine that has gone: the first host must not use up all the time."""

    async def test(pair: PostgresPair) -> None:
        engine = await PostgresEngine.open(pair.url, connect_seconds=4, command_seconds=1)
        assert await engine.documents.put([Document("a", "k", "before", b"x")])
        pair.primary.pause()
        assert not await _answers(engine)
        await asyncio.to_thread(pair.replica.promote)
        await until(lambda: _answers(engine))
        assert [found.body for found in await engine.documents.get("a", "k", ["before"])] == [b"x"]
        assert await engine.documents.put([Document("a", "k", "after", b"y")])
        await engine.close()
        # And anyone who starts now finds it, too.
        another = await PostgresEngine.open(pair.url, connect_seconds=4)
        assert await another.documents.get("a", "k", ["after"])
        await another.close()

    with PostgresPair() as pair:
        asyncio.run(test(pair))


def test_hosts_that_take_no_writes_are_reported_in_a_plain_line_until_a_replica_is_promoted() -> None:
    """FAULTS 101: failover."""

    async def test(pair: PostgresPair) -> None:
        engine = await PostgresEngine.open(pair.url)
        assert await engine.documents.put([Document("a", "k", "before", b"x")])
        await asyncio.to_thread(pair.primary.kill)
        with pytest.raises(StoreDown, match="none of the hosts takes writes"):
            await engine.check()
        await asyncio.to_thread(pair.replica.promote)
        await until(lambda: _answers(engine))
        assert [found.body for found in await engine.documents.get("a", "k", ["before"])] == [b"x"]
        assert await engine.documents.put([Document("a", "k", "after", b"y")])
        await engine.close()

    with PostgresPair() as pair:
        asyncio.run(test(pair))


async def _answers(engine: PostgresEngine) -> bool:
    """As the gateway asks: with a budget that ends before the driver's own patience does."""
    try:
        await asyncio.wait_for(engine.check(), 0.8)
    except (StoreDown, TimeoutError):
        return False
    return True
