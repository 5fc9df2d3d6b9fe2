"""Values under names nobody can guess, for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wireglot.stores.postgres.documents import NOW
from wireglot.stores.postgres.pool import PostgresPool
from wireglot.stores.sql import from_text, to_text


class PostgresVault:
    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        if not entries:
            return
        # Always in the same order: two writers of the same names cannot then wait for each other.
        rows = sorted((to_text(name), body) for name, body in entries.items())
        await self._pool.execute(
            "INSERT INTO vault (tenant, name, expires, body) "
            f"SELECT $1, name, {NOW} + $2::bigint * 1000, body "
            "FROM unnest($3::text[], $4::bytea[]) AS entry (name, body) "
            "ON CONFLICT (tenant, name) DO UPDATE SET expires = excluded.expires, body = excluded.body",
            to_text(caller),
            seconds,
            [name for name, _ in rows],
            [body for _, body in rows],
        )

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        rows = await self._pool.fetch(
            # One lookup for each name, as with documents.
            "SELECT found.* FROM unnest($2::text[]) AS wanted (name) CROSS JOIN LATERAL "
            "(SELECT v.name, body FROM vault v "
            f"WHERE tenant = $1 AND v.name = wanted.name AND expires > {NOW} LIMIT 1) AS found",
            to_text(caller),
            [to_text(name) for name in names],
        )
        return {from_text(row["name"]): row["body"] for row in rows}
