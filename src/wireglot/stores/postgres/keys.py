"""Client keys: few, read often, written by people."""

from __future__ import annotations

import msgspec

from wireglot.stores.postgres.pool import Connection, PostgresPool, touched
from wireglot.stores.records import KeyRow, are_all_changes, read_key
from wireglot.stores.sql import from_text, to_text

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(KeyRow)
_REVISE = """
WITH next AS (UPDATE keys_version SET version = version + 1 RETURNING version)
UPDATE keys SET revision = next.version FROM next WHERE name = ANY($1::text[])
"""
"""The next version, which the keys of these names are written with."""


class PostgresKeys:
    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def version(self) -> int:
        return int((await self._pool.fetch("SELECT version FROM keys_version"))[0][0])

    async def all(self) -> list[KeyRow]:
        return [
            read_key(from_text(row["name"]), row["body"])
            for row in await self._pool.fetch("SELECT name, body FROM keys ORDER BY name")
        ]

    async def get(self, name: str) -> KeyRow | None:
        found = await self._pool.fetch("SELECT body FROM keys WHERE name = $1", to_text(name))
        return read_key(name, found[0][0]) if found else None

    async def changed(self, since: int) -> list[KeyRow] | None:
        found = await self._pool.fetch(
            "SELECT name, body, revision, version FROM keys, keys_version WHERE revision > $1", since
        )
        if not found or not are_all_changes((row["revision"] for row in found), since, found[0]["version"]):
            return None
        return [read_key(from_text(row["name"]), row["body"]) for row in found]

    async def put(self, row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
        name, body = to_text(row.name), _ENCODER.encode(row)

        async def work(connection: Connection, turn: int) -> bool:
            async with connection.transaction():
                if over is not None:
                    there = await connection.fetchval(
                        "SELECT body FROM keys WHERE name = $1 FOR UPDATE", name
                    )
                    if turn and there == body:
                        return True  # our own first try was written, and its answer lost
                    if there is None or read_key(row.name, there) != over:
                        return False
                instead = "NOTHING" if new else "UPDATE SET body = $2"
                written = await connection.execute(
                    f"INSERT INTO keys (name, body) VALUES ($1, $2) ON CONFLICT (name) DO {instead}",
                    name,
                    body,
                )
                if touched(written):
                    await connection.execute(_REVISE, [name])
                    return True
                # A lost connection may have hidden that our own first try was written.
                return bool(
                    turn
                    and await connection.fetchval("SELECT body = $2 FROM keys WHERE name = $1", name, body)
                )

        return await self._pool.run(work)

    async def delete(self, name: str) -> bool:
        async def work(connection: Connection, turn: int) -> bool:
            async with connection.transaction():
                gone = touched(await connection.execute("DELETE FROM keys WHERE name = $1", to_text(name)))
                if gone:
                    await connection.execute(_REVISE, [])
                return bool(gone or turn)  # a lost connection may have hidden that our first try did it

        return await self._pool.run(work)


async def load_keys(connection: Connection, rows: list[KeyRow]) -> None:
    """What is there already stays as it is."""
    written = await connection.fetch(
        "INSERT INTO keys (name, body) SELECT * FROM unnest($1::text[], $2::bytea[]) ON CONFLICT DO NOTHING "
        "RETURNING name",
        [to_text(row.name) for row in rows],
        [_ENCODER.encode(row) for row in rows],
    )
    if written:
        await connection.execute(_REVISE, [row["name"] for row in written])


def key_row(body: bytes) -> KeyRow:
    return _DECODER.decode(body)
