"""PostgreSQL lost, silent, restarted, killed (FAULTS 101). They hurt a server of their own."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Iterator

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest

from proofs.servers import PostgresServer
from tests.stores.servers import needs_own_postgres, with_option
from tests.tiers import WHOLE
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.stores.base import StoreDown
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.postgres.address import read_address
from wireglot.stores.postgres.pool import Connection, PostgresPool
from wireglot.stores.records import Document, UsageQuery, UsageRow

pytestmark = needs_own_postgres


@pytest.fixture(scope="module")
def victim() -> Iterator[PostgresServer]:
    # Durable: what was acknowledged must be there after `kill -9`.
    with PostgresServer(durable=True, settings=("deadlock_timeout=50ms",)) as one:
        yield one


@pytest.fixture
def server(victim: PostgresServer) -> Iterator[PostgresServer]:
    yield victim
    victim.resume()
    if victim.process is None:
        victim.start()


@pytest.fixture
def url(server: PostgresServer) -> str:
    """A schema nobody has used."""
    return with_option(server.url, "schema", secrets.token_hex(8))


class Load:
    """Writers that go on whatever happens, and remember what was acknowledged to them."""

    def __init__(self, engine: PostgresEngine) -> None:
        self.engine = engine
        self.acknowledged: set[str] = set()
        self.refused = 0
        self._done = dict.fromkeys("abcd", 0)
        self._tasks = [asyncio.create_task(self._write(name)) for name in "abcd"]

    async def _write(self, name: str) -> None:
        for number in itertools.count():
            id = f"{name}{number}"
            try:
                await self.engine.ledger.apply([UsageRow(id, "a", 1)])
                await self.engine.ledger.apply([UsageRow(id, "a", 1, outcome="ok", finished=2, input=1)])
                await self.engine.documents.append([Document("a", "k", id, b"x", parent=name)])
            except StoreDown:
                self.refused += 1
            else:
                self.acknowledged.add(id)
                self._done[name] += 1
            await asyncio.sleep(0.001)

    async def goes_on(self, count: int = 20) -> None:
        """Until so many more were acknowledged."""
        wanted = len(self.acknowledged) + count
        await until(lambda: len(self.acknowledged) >= wanted)

    async def everyone_goes_on(self) -> None:
        """Until each writer has begun one more and brought it to its end."""
        before = dict(self._done)
        await until(lambda: all(done >= before[name] + 2 for name, done in self._done.items()))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def everything_is_there(self) -> None:
        rows = {row.id: row for row in await self.engine.ledger.rows(UsageQuery(), limit=10**6)}
        assert self.acknowledged <= {id for id, row in rows.items() if row.outcome == "ok"}
        pieces = [piece for name in "abcd" for piece in await self.engine.documents.pieces("a", "k", name)]
        assert self.acknowledged <= {piece.id for piece in pieces}
        assert len({(piece.parent, piece.number) for piece in pieces}) == len(pieces)


async def is_up(engine: PostgresEngine) -> bool:
    try:
        await engine.check()
    except StoreDown:
        return False
    return True


def under_load(url: str, hurt: Callable[[Load], Awaitable[None]]) -> None:
    async def test() -> None:
        engine = await PostgresEngine.open(url)
        load = Load(engine)
        try:
            await load.goes_on()
            await hurt(load)
            await load.goes_on()
        finally:
            await load.end()
        await load.everything_is_there()
        await engine.close()

    asyncio.run(test())


@pytest.mark.whole
def test_connections_that_are_cut_again_and_again_cost_nothing(server: PostgresServer, url: str) -> None:
    """FAULTS 101: pg_terminate_backend in the middle of writes."""

    async def hurt(load: Load) -> None:
        admin = await asyncpg.connect(server.url)
        for _ in range(10):
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'wireglot'"
            )
            # Each of them, or one that is unlucky would be hit more often than it tries.
            await load.everyone_goes_on()
        await admin.close()
        assert load.refused == 0

    under_load(url, hurt)


@pytest.mark.whole
def test_after_a_restart_everything_acknowledged_is_there(server: PostgresServer, url: str) -> None:
    async def hurt(_: Load) -> None:
        await asyncio.to_thread(server.restart)

    under_load(url, hurt)


def test_after_kill_9_everything_acknowledged_is_there(server: PostgresServer, url: str) -> None:
    """FAULTS 95, 101: the server dies as in a power loss, twice."""

    async def hurt(load: Load) -> None:
        for _ in range(2):
            await asyncio.to_thread(server.kill)
            await until(lambda: load.refused)
            load.refused = 0
            await asyncio.to_thread(server.start)
            await load.goes_on()

    under_load(url, hurt)


def test_a_silent_server_is_down_and_comes_back_by_itself(server: PostgresServer, url: str) -> None:
    """FAULTS 101: SIGSTOP. Nobody waits for ever, and the store is well again when the server is."""

    async def test() -> None:
        engine = await PostgresEngine.open(url, connect_seconds=2, command_seconds=2)
        await engine.documents.put([Document("a", "k", "1", b"x")])
        server.pause()
        async with asyncio.timeout(DEADLINE_SECONDS):
            answers = await asyncio.gather(
                *(engine.documents.get("a", "k", ["1"]) for _ in range(12)),
                engine.check(),
                return_exceptions=True,
            )
        assert {type(answer) for answer in answers} == {StoreDown}
        assert {str(answer) for answer in answers} == {"PostgreSQL does not answer in time"}
        server.resume()
        await until(lambda: is_up(engine))
        assert len(await engine.documents.get("a", "k", ["1"])) == 1
        await engine.close()

    asyncio.run(test())


def test_closing_does_not_wait_for_a_silent_server(server: PostgresServer, url: str) -> None:
    async def test() -> None:
        engine = await PostgresEngine.open(url, connect_seconds=2, command_seconds=2)
        server.pause()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await engine.close()
        server.resume()

    asyncio.run(test())


def test_a_server_that_is_gone_is_reported_in_a_plain_line(server: PostgresServer, url: str) -> None:
    async def test() -> None:
        engine = await PostgresEngine.open(url)
        server.kill()
        with pytest.raises(StoreDown, match=r"^PostgreSQL") as reported:
            await engine.ledger.apply([UsageRow("u", "a", 1)])
        assert server.password not in str(reported.value)
        assert "127.0.0.1" not in str(reported.value)
        await engine.close()

    asyncio.run(test())


def test_a_deadlock_is_resolved_by_another_try(server: PostgresServer, url: str) -> None:
    """FAULTS 101: 40P01, a real one."""

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        await engine.documents.put([Document("a", "k", id, b"0") for id in "xy"])
        pool = await PostgresPool.open(read_address(url))
        both_hold_one = asyncio.Barrier(2)
        tries = 0

        async def writes(first: str, second: str) -> None:
            async def work(connection: Connection, turn: int) -> None:
                nonlocal tries
                tries += 1
                async with connection.transaction():
                    for at, id in enumerate((first, second)):
                        await connection.execute(
                            "UPDATE documents SET body = body || $2 WHERE id = $1", id, b"1"
                        )
                        if at == 0 and turn == 0:
                            await both_hold_one.wait()

            await pool.run(work)

        await asyncio.gather(writes("x", "y"), writes("y", "x"))
        assert tries == 3
        assert {one.body for one in await engine.documents.get("a", "k", ["x", "y"])} == {b"011"}
        await pool.close()
        await engine.close()

    asyncio.run(test())


def test_a_server_that_only_reads_is_down_for_writers_and_in_the_check(
    server: PostgresServer, url: str
) -> None:
    """FAULTS 101: after a failover the old server may be a standby."""

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        admin = await asyncpg.connect(server.url)
        await admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        await admin.execute("SELECT pg_reload_conf()")

        async def only_reads() -> bool:
            return str(await admin.fetchval("SHOW default_transaction_read_only")) == "on"

        await until(only_reads)
        for asked in (engine.check(), engine.ledger.apply([UsageRow("u", "a", 1)])):
            with pytest.raises(StoreDown, match="read-only"):
                await asked
        await admin.execute("SET default_transaction_read_only = off")
        await admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
        await admin.execute("SELECT pg_reload_conf()")
        await until(lambda: is_up(engine))
        await admin.close()
        await engine.close()

    asyncio.run(test())


def test_a_first_try_whose_answer_was_lost_counts_as_done(server: PostgresServer, url: str) -> None:
    """FAULTS 101, 102: the commit arrived, the connection died before its answer: no False, no second piece."""

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        pool = engine._pool
        once = pool._once

        async def loses_the_answer(work: Callable[[Connection, int], Awaitable[object]], turn: int) -> object:
            answer = await once(work, turn)
            if turn == 0:
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return answer

        pool._once = loses_the_answer  # type: ignore[method-assign, assignment]  # the fault to inject
        assert await engine.documents.put([Document("a", "k", "1", b"x")], new=True)
        assert not await engine.documents.put([Document("a", "k", "1", b"y")], new=True)
        assert await engine.documents.append([Document("a", "k", id, b"x", parent="p") for id in "mn"]) == 1
        assert await engine.documents.append([Document("a", "k", "o", b"x", parent="p")]) == 3
        assert [(one.id, one.number) for one in await engine.documents.pieces("a", "k", "p")] == [
            ("m", 1),
            ("n", 2),
            ("o", 3),
        ]
        # What was deleted is reported to have been there, though a second try finds nothing.
        assert await engine.documents.delete("a", "k", ["1"]) == 1
        assert await engine.documents.delete("a", "k", ["1"]) == 0
        assert await engine.documents.delete_pieces("a", "k", "p") == 3
        await engine.ledger.apply([UsageRow("u", "a", 1, "one", session="s")])
        assert await engine.ledger.forget_session("a", "s") == 1
        assert await engine.ledger.close_open(["one"], 2) == 1
        await engine.close()

    asyncio.run(test())


def test_a_request_that_is_cancelled_leaves_no_connection_behind(server: PostgresServer, url: str) -> None:
    """T19: clients hang up at any moment; the next one gets its own answer on the same connections."""

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        await engine.documents.put([Document("a", "k", str(at), str(at).encode()) for at in range(50)])

        async def asks(id: str) -> None:
            assert [one.body for one in await engine.documents.get("a", "k", [id])] == [id.encode()]

        for turn in range(40 if WHOLE else 12):  # each moment once
            tasks = [asyncio.create_task(asks(str(at))) for at in range(48)]
            for _ in range(turn % 12):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            for answer in (await asyncio.gather(*tasks, return_exceptions=True))[1::2]:
                assert answer is None
        await engine.close()

    asyncio.run(test())
