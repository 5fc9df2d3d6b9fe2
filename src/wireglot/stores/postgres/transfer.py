"""Everything out of the store, and into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from wireglot.stores.postgres import documents, rows
from wireglot.stores.postgres.keys import key_row, load_keys
from wireglot.stores.postgres.pool import LONG_SECONDS, Connection, PostgresPool
from wireglot.stores.records import Document, KeyRow, UsageRow, VaultEntry
from wireglot.stores.sql import USAGE_COLUMNS, from_text, to_text

Record = Document | UsageRow | KeyRow | VaultEntry


async def everything(pool: PostgresPool) -> AsyncIterator[Record]:
    """As of one moment, by a cursor: the store may be larger than the memory."""
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
            yield rows.usage_row(record)


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
                    rows.INSERT + "ON CONFLICT DO NOTHING",
                    *rows.columns(usage.values()),
                    timeout=LONG_SECONDS,
                )
            if keys:
                await load_keys(connection, keys)

    await pool.run(work)
