"""A database as it is, with nothing made or changed: for people who ask what is wrong."""

from __future__ import annotations

import msgspec

from wireglot.stores.postgres.address import read_address
from wireglot.stores.postgres.pool import Connection, PostgresPool
from wireglot.stores.postgres.schema import VERSION


class DatabaseLook(msgspec.Struct, frozen=True):
    server: str
    schema: str
    version: int
    """Of the schema; 0 where there is none yet."""
    known: int
    """The newest that this program knows."""
    read_only: bool


async def look_at_database(url: str) -> DatabaseLook:
    """Raises StoreUnusable or StoreDown, in the words in which a start would."""
    address = read_address(url)
    pool = await PostgresPool.open(address)

    async def work(connection: Connection, _: int) -> DatabaseLook:
        told = connection.get_server_version()
        table = f"{address.quoted_schema}.wireglot_version"
        there = await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", table)
        version = await connection.fetchval(f"SELECT version FROM {table}") if there else 0
        return DatabaseLook(
            server=f"PostgreSQL {told.major}.{told.minor}",
            schema=address.schema,
            version=int(version or 0),
            known=VERSION,
            read_only=await connection.fetchval("SHOW transaction_read_only") == "on",
        )

    try:
        return await pool.run(work)
    finally:
        await pool.close()
