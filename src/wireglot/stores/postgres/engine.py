"""A whole store in one schema of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping, Sequence

from wireglot.stores.base import Documents, Keys, Ledger, Vault
from wireglot.stores.postgres.address import Address, read_address
from wireglot.stores.postgres.documents import PostgresDocuments
from wireglot.stores.postgres.keys import PostgresKeys
from wireglot.stores.postgres.ledger import PostgresLedger
from wireglot.stores.postgres.pool import (
    COMMAND_SECONDS,
    CONNECT_SECONDS,
    LONG_SECONDS,
    Connection,
    PostgresPool,
    touched,
)
from wireglot.stores.postgres.schema import VERSION, migrate
from wireglot.stores.postgres.sweep import sweep
from wireglot.stores.postgres.transfer import everything, load_records
from wireglot.stores.postgres.vault import PostgresVault
from wireglot.stores.records import (
    Document,
    KeyRow,
    KindLimits,
    KindStats,
    Stats,
    Swept,
    UsageRow,
    VaultEntry,
)
from wireglot.stores.sql import from_text, to_text

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
    """Open it with `open`. A pool of up to eight connections. Before PgBouncer in transaction mode, the URL
    says `?pooler=transaction`."""

    def __init__(self, pool: PostgresPool, address: Address) -> None:
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
        """Brings the tables up to date. `?schema=` names the schema; it is created where it is missing."""
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
        """A write that changes nothing: a standby answers reads, and is of no use."""
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

    def export(self) -> AsyncIterator[Document | UsageRow | KeyRow | VaultEntry]:
        return everything(self._pool)

    async def load(self, records: Sequence[Document | UsageRow | KeyRow | VaultEntry]) -> None:
        await load_records(self._pool, records)

    def lacks(self, caller: str) -> bool:
        return False  # another machine may keep anything at any moment

    def kept_mark(self, caller: str) -> Hashable:
        return 0

    async def close(self) -> None:
        await self._pool.close()
