"""A whole store in one schema of a PostgreSQL database."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from typing import Final

from wireglot.stores.base import Documents, Keys, Ledger, Vault
from wireglot.stores.postgres import documents
from wireglot.stores.postgres.address import PostgresAddress, read_address
from wireglot.stores.postgres.documents import (
    NOW,
    PostgresDocuments,
    PostgresKeys,
    PostgresVault,
    key_row,
    load_keys,
)
from wireglot.stores.postgres.ledger import INSERT, PostgresLedger, columns, usage_row
from wireglot.stores.postgres.pool import (
    COMMAND_SECONDS,
    CONNECT_SECONDS,
    LONG_SECONDS,
    Connection,
    PostgresPool,
    touched,
)
from wireglot.stores.postgres.schema import VERSION, migrate
from wireglot.stores.records import (
    Document,
    KeyRow,
    KindLimits,
    KindStats,
    Record,
    Stats,
    Swept,
    UsageRow,
    VaultEntry,
)
from wireglot.stores.sql import USAGE_COLUMNS, from_text, to_text

BATCH_ROWS: Final = 500

# Rows that another process is removing right now are skipped, not waited for.
_EXPIRED_DOCUMENTS: Final = """
DELETE FROM documents WHERE expires > 0 AND expires <= $1 AND ctid = ANY(ARRAY(
    SELECT ctid FROM documents WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING kind
"""
_EXPIRED_VAULT: Final = """
DELETE FROM vault WHERE expires <= $1 AND ctid = ANY(ARRAY(
    SELECT ctid FROM vault WHERE expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING 'vault'
"""
_OLD_USAGE: Final = """
DELETE FROM usage WHERE started < $1 AND ctid = ANY(ARRAY(
    SELECT ctid FROM usage WHERE started < $1 ORDER BY started LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING ''
"""
_SIZES: Final = (
    "SELECT kind, sum(octet_length(body)) FROM documents WHERE kind = ANY($1::text[]) GROUP BY kind"
)
_EVICT: Final = """
WITH oldest AS (
    SELECT tenant, kind, id, created, octet_length(body) AS size FROM documents
    WHERE kind = $1 ORDER BY created, tenant, id LIMIT $3 FOR UPDATE SKIP LOCKED
), chosen AS (
    SELECT *, sum(size) OVER (ORDER BY created, tenant, id) - size AS freed_before FROM oldest
)
DELETE FROM documents d USING chosen c
WHERE d.tenant = c.tenant AND d.kind = c.kind AND d.id = c.id AND c.freed_before < $2
RETURNING c.size
"""
# Heartbeats are stored with the server's clock, so silence is measured by it too.
_CRASHED: Final = f"""
UPDATE usage SET outcome = 'crash', finished = $1
WHERE outcome = ''
    AND coalesce((SELECT heard < {NOW} - $3 FROM instances i WHERE i.instance = usage.instance), started < $2)
"""
_FORGOTTEN_INSTANCES: Final = f"""
DELETE FROM instances WHERE heard < {NOW} - $1::bigint
    AND NOT EXISTS (SELECT FROM usage WHERE usage.outcome = '' AND usage.instance = instances.instance)
"""


async def sweep(
    pool: PostgresPool, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
) -> Swept:
    # Crashes first: a row that is closed and too old is removed by the same sweep.
    crashed = 0
    if dead_before:
        silence = now - dead_before
        crashed = await pool.execute(_CRASHED, now, dead_before, silence, seconds=LONG_SECONDS)
        await pool.execute(_FORGOTTEN_INSTANCES, silence, seconds=LONG_SECONDS)
    expired = await _remove(pool, _EXPIRED_DOCUMENTS, now) + await _remove(pool, _EXPIRED_VAULT, now)
    usage = await _remove(pool, _OLD_USAGE, usage_before) if usage_before else Counter[str]()
    return Swept(
        expired=dict(expired), evicted=await _evict(pool, kinds), usage=usage.total(), crashed=crashed
    )


async def _remove(pool: PostgresPool, statement: str, until: int) -> Counter[str]:
    """Counts by kind. Batches in separate transactions, so that no row stays locked for long."""
    gone: Counter[str] = Counter()
    while rows := await pool.fetch(statement, until, BATCH_ROWS, seconds=LONG_SECONDS):
        gone.update(from_text(row[0]) for row in rows)
        if len(rows) < BATCH_ROWS:
            break
    return gone


async def _evict(pool: PostgresPool, kinds: Mapping[str, KindLimits]) -> dict[str, int]:
    limits = {to_text(kind): limits.bytes for kind, limits in kinds.items() if limits.bytes}
    if not limits:
        return {}

    async def work(connection: Connection, _: int) -> dict[str, int]:
        evicted: dict[str, int] = {}
        # Two processes that both saw the same excess would remove it twice.
        async with connection.transaction():
            mine = await connection.fetchval(
                "SELECT pg_try_advisory_xact_lock(hashtextextended('wireglot evict ' || current_schema(), 0))"
            )
            sizes = await connection.fetch(_SIZES, list(limits), timeout=LONG_SECONDS) if mine else ()
            for kind, size in sizes:
                excess = int(size) - limits[kind]
                while excess > 0 and (
                    rows := await connection.fetch(_EVICT, kind, excess, BATCH_ROWS, timeout=LONG_SECONDS)
                ):
                    excess -= sum(row[0] for row in rows)
                    evicted[from_text(kind)] = evicted.get(from_text(kind), 0) + len(rows)
        return evicted

    return await pool.run(work)


async def everything(pool: PostgresPool) -> AsyncIterator[Record]:
    """A snapshot, by a cursor: the store may be larger than the memory."""
    async with pool.reading() as connection:
        async for record in connection.cursor("SELECT body FROM keys ORDER BY name", timeout=LONG_SECONDS):
            yield key_row(record["body"])
        async for record in connection.cursor(
            f"SELECT {documents.COLUMNS} FROM documents WHERE {documents.LIVE}", timeout=LONG_SECONDS
        ):
            yield documents.document(record)
        async for record in connection.cursor(
            f"SELECT tenant, name, body, expires FROM vault WHERE expires > {documents.NOW}",
            timeout=LONG_SECONDS,
        ):
            yield VaultEntry(
                caller=from_text(record["tenant"]),
                name=from_text(record["name"]),
                body=record["body"],
                expires=record["expires"],
            )
        async for record in connection.cursor(f"SELECT {USAGE_COLUMNS} FROM usage", timeout=LONG_SECONDS):
            yield usage_row(record)


async def load_records(pool: PostgresPool, records: Sequence[Record]) -> None:
    """All or none."""
    pages = [record for record in records if isinstance(record, Document)]
    entries = [record for record in records if isinstance(record, VaultEntry)]
    usage = {record.id: record for record in records if isinstance(record, UsageRow)}
    keys = [record for record in records if isinstance(record, KeyRow)]

    async def work(connection: Connection, _: int) -> None:
        async with connection.transaction():
            if pages:
                await connection.execute(
                    documents.INSERT_IF_NEW, *documents.columns(pages), timeout=LONG_SECONDS
                )
            if entries:
                await connection.execute(
                    "INSERT INTO vault (tenant, name, expires, body) "
                    "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) "
                    "ON CONFLICT DO NOTHING",
                    [to_text(entry.caller) for entry in entries],
                    [to_text(entry.name) for entry in entries],
                    [entry.expires for entry in entries],
                    [entry.body for entry in entries],
                    timeout=LONG_SECONDS,
                )
            if usage:
                await connection.execute(
                    INSERT + "ON CONFLICT DO NOTHING",
                    *columns(usage.values()),
                    timeout=LONG_SECONDS,
                )
            if keys:
                await load_keys(connection, keys)

    await pool.run(work)


_STATS = """
SELECT kind, count(*), sum(octet_length(body)), min(created), max(created) FROM documents GROUP BY kind
UNION ALL SELECT 'vault', count(*), coalesce(sum(octet_length(body)), 0), 0, 0 FROM vault
UNION ALL SELECT 'usage', count(*), pg_table_size('usage'),
    coalesce(min(started), 0), coalesce(max(started), 0) FROM usage
UNION ALL SELECT 'keys', count(*), coalesce(sum(octet_length(body)), 0), 0, 0 FROM keys
"""
_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'"
)


class PostgresEngine:
    """Open it with `open`. A pool of up to eight connections. For PgBouncer in transaction mode, add
    `?pooler=transaction` to the URL."""

    def __init__(self, pool: PostgresPool, address: PostgresAddress) -> None:
        self._pool = pool
        self._address = address
        self.documents: Documents = PostgresDocuments(pool)
        self.vault: Vault = PostgresVault(pool)
        self.ledger: Ledger = PostgresLedger(pool)
        self.keys: Keys = PostgresKeys(pool)

    @classmethod
    async def open(
        cls, url: str, *, connect_seconds: float = CONNECT_SECONDS, command_seconds: float = COMMAND_SECONDS
    ) -> PostgresEngine:
        """Brings the tables up to date. `?schema=` names the schema; it is created if it is missing."""
        address = read_address(url)
        pool = await PostgresPool.open(
            address, connect_seconds=connect_seconds, command_seconds=command_seconds
        )
        try:
            await migrate(pool, address)
        except BaseException:
            await pool.close()
            raise
        return cls(pool, address)

    async def check(self) -> None:
        """A write that changes nothing: a standby would answer reads, but cannot be used."""
        await self._pool.execute("UPDATE keys_version SET version = version WHERE false")

    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        return await sweep(self._pool, now, usage_before=usage_before, dead_before=dead_before, kinds=kinds)

    async def wipe(self, caller: str) -> dict[str, int]:
        written = to_text(caller)

        async def work(connection: Connection, _: int) -> dict[str, int]:
            async with connection.transaction():
                gone = await connection.fetch(
                    "WITH gone AS (DELETE FROM documents WHERE tenant = $1 RETURNING kind) "
                    "SELECT kind, count(*) FROM gone GROUP BY kind",
                    written,
                    timeout=LONG_SECONDS,
                )
                counts = {from_text(kind): int(count) for kind, count in gone}
                entries = await connection.execute(
                    "DELETE FROM vault WHERE tenant = $1", written, timeout=LONG_SECONDS
                )
                named = await connection.execute(
                    "UPDATE usage SET session = '' WHERE caller = $1 AND session <> ''",
                    written,
                    timeout=LONG_SECONDS,
                )
                counts |= {"vault": touched(entries), "sessions": touched(named)}
                return {kind: count for kind, count in counts.items() if count}

        return await self._pool.run(work)

    async def stats(self) -> Stats:
        async def work(connection: Connection, _: int) -> Stats:
            version = connection.get_server_version()
            database = await connection.fetchval("SELECT current_database()")
            kinds = {
                from_text(kind): KindStats(int(count), int(size), oldest, newest)
                for kind, count, size, oldest, newest in await connection.fetch(_STATS, timeout=LONG_SECONDS)
            }
            return Stats(
                engine=f"PostgreSQL {version.major}.{version.minor}, "
                f"database {database}, schema {self._address.schema}",
                version=VERSION,
                kinds=kinds,
                size=int(await connection.fetchval(_SIZE)),
            )

        return await self._pool.run(work)

    def export(self) -> AsyncIterator[Record]:
        return everything(self._pool)

    async def load(self, records: Sequence[Record]) -> None:
        await load_records(self._pool, records)

    def lacks(self, caller: str) -> bool:
        return False  # another machine may store something at any moment

    def kept_mark(self, caller: str) -> Hashable:
        return 0

    async def close(self) -> None:
        await self._pool.close()
