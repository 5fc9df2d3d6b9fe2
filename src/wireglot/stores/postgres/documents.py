"""Sealed values of callers, and their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from wireglot.stores.postgres.pool import Connection, PostgresPool, touched
from wireglot.stores.records import Document, KeyRow, are_all_changes, read_key
from wireglot.stores.sql import from_text, to_text

NOW: Final = "(extract(epoch FROM now()) * 1000)::bigint"
"""The server's clock: the whole fleet agrees on what has expired."""
LIVE: Final = f"(expires = 0 OR expires > {NOW})"
COLUMNS: Final = "tenant, kind, id, parent, number, created, expires, body"
_ROWS: Final = (
    "unnest($1::text[], $2::text[], $3::text[], $4::text[], "
    "$5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[])"
)
_SELECT: Final = "SELECT d.* FROM documents d"
_INSERT: Final = f"INSERT INTO documents ({COLUMNS}) SELECT * FROM {_ROWS} "
_REPLACE: Final = (
    "ON CONFLICT (tenant, kind, id) DO UPDATE SET parent = excluded.parent, number = excluded.number, "
    "created = excluded.created, expires = excluded.expires, body = excluded.body "
)
INSERT_IF_NEW: Final = _INSERT + "ON CONFLICT DO NOTHING"
_ID_MAX_LETTERS: Final = 1000
"""Characters of an id in PostgreSQL, whose indexes allow at most about 2,700 bytes for a row."""
_IDLE_MILLISECONDS: Final = "15000"
"""Between two statements of a session that holds a lock: after a longer silence its client is gone."""


class _AlreadyThere(Exception):
    """Rolls the whole transaction back."""


class PostgresDocuments:
    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        values = columns(documents)
        only_expired = f"WHERE documents.expires > 0 AND documents.expires <= {NOW}" if new else ""

        async def work(connection: Connection, turn: int) -> bool:
            try:
                async with connection.transaction():
                    written = touched(await connection.execute(_INSERT + _REPLACE + only_expired, *values))
                    if written < len(values[0]):
                        raise _AlreadyThere
            except _AlreadyThere:
                # A lost connection may have hidden that our own first attempt was written.
                return turn > 0 and await _are_ours(connection, values)
            return True

        return await self._pool.run(work) if documents else True

    async def replace(self, document: Document) -> bool:
        return bool(
            await self._pool.execute(
                "UPDATE documents SET parent = $4, number = $5, created = $6, expires = $7, body = $8 "
                f"WHERE tenant = $1 AND kind = $2 AND id = $3 AND {LIVE}",
                *(column[0] for column in columns([document])),
            )
        )

    async def touch(self, caller: str, kind: str, id: str, *, created: int, expires: int) -> bool:
        return bool(
            await self._pool.execute(
                "UPDATE documents SET created = $4, expires = $5 "
                f"WHERE tenant = $1 AND kind = $2 AND id = $3 AND {LIVE}",
                to_text(caller),
                to_text(kind),
                to_text(id),
                created,
                expires,
            )
        )

    async def touch_pieces(self, caller: str, kind: str, parent: str, *, expires: int) -> None:
        await self._pool.execute(
            "UPDATE documents SET expires = $4 "
            f"WHERE tenant = $1 AND kind = $2 AND parent = $3 AND parent <> '' AND {LIVE}",
            to_text(caller),
            to_text(kind),
            to_text(parent),
            expires,
        )

    async def append(self, documents: Sequence[Document]) -> int:
        values = columns(documents, sort=False)
        place = [values[0][0], values[1][0], values[3][0]]

        async def work(connection: Connection, turn: int) -> int:
            async with connection.transaction():
                # One at a time for a parent; the lock ends with the transaction, or soon after our machine is
                # gone. The numbers are read by a separate statement, so that it sees what the previous one
                # wrote.
                await connection.execute(
                    "SELECT set_config('idle_in_transaction_session_timeout', $2, true), "
                    "pg_advisory_xact_lock(hashtextextended(array_to_string($1::text[], '|'), 0))",
                    ["wireglot pieces", *place],
                    _IDLE_MILLISECONDS,
                )
                if turn and (first := await _first_of_ours(connection, place, values[2])):
                    return first
                last = await connection.fetchval(
                    "SELECT number FROM documents WHERE tenant = $1 AND kind = $2 AND parent = $3 "
                    f"AND parent <> '' AND {LIVE} ORDER BY number DESC LIMIT 1",
                    *place,
                )
                numbers = [(last or 0) + offset for offset in range(1, len(values[2]) + 1)]
                await connection.execute(_INSERT + _REPLACE, *values[:4], numbers, *values[5:])
                return int(numbers[0])

        return await self._pool.run(work)

    async def get(self, caller: str, kind: str, ids: Sequence[str]) -> list[Document]:
        return await self._select(
            # One lookup for each id: for `id = ANY(...)` the planner would read all of the tenant's rows
            # while it has no statistics.
            "SELECT found.* FROM unnest($3::text[]) AS wanted (id) CROSS JOIN LATERAL "
            f"({_SELECT} WHERE tenant = $1 AND kind = $2 AND d.id = wanted.id AND {LIVE} LIMIT 1) AS found",
            to_text(caller),
            to_text(kind),
            [to_text(id) for id in dict.fromkeys(ids)],
        )

    async def pieces(
        self,
        caller: str,
        kind: str,
        parent: str,
        *,
        after: int = 0,
        before: int = 0,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Document]:
        order = "DESC" if newest_first else "ASC"
        return await self._select(
            f"{_SELECT} WHERE tenant = $1 AND kind = $2 AND parent = $3 AND parent <> '' "
            f"AND number > $4 AND ($5::bigint = 0 OR number < $5) AND {LIVE} "
            f"ORDER BY number {order} LIMIT nullif($6::bigint, 0)",
            to_text(caller),
            to_text(kind),
            to_text(parent),
            after,
            before,
            limit,
        )

    async def recent(
        self, caller: str, kind: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[Document]:
        query = f"{_SELECT} WHERE tenant = $1 AND kind = $2 AND created >= 0 AND {LIVE} "
        values: list[object] = [to_text(caller), to_text(kind), limit]
        if before is not None:
            query += "AND (created, id) < ($4, $5) "
            values += [before[0], to_text(before[1])]
        return await self._select(query + "ORDER BY created DESC, id DESC LIMIT $3", *values)

    async def delete(self, caller: str, kind: str, ids: Sequence[str]) -> int:
        return await self._delete(
            "WHERE tenant = $1 AND kind = $2 AND id = ANY($3::text[])",
            to_text(caller),
            to_text(kind),
            [to_text(id) for id in ids],
        )

    async def delete_pieces(self, caller: str, kind: str, parent: str) -> int:
        return await self._delete(
            "WHERE tenant = $1 AND kind = $2 AND parent = $3 AND parent <> ''",
            to_text(caller),
            to_text(kind),
            to_text(parent),
        )

    async def _select(self, query: str, *values: object) -> list[Document]:
        return [document(row) for row in await self._pool.fetch(query, *values)]

    async def _delete(self, where: str, *values: object) -> int:
        """Expired ones are deleted too, but not counted."""
        # The command's count is that of the last part: the rows it selects.
        return await self._pool.change(
            f"WITH gone AS (DELETE FROM documents {where} RETURNING {LIVE} AS live) "
            "SELECT FROM gone WHERE live",
            *values,
        )


def columns(documents: Sequence[Document], *, sort: bool = True) -> list[list[Any]]:
    """As arrays, each document once (the last one counts). Always in the same order: two writers that lock
    the same rows cannot then wait for each other."""
    rows = {}
    for one in documents:
        if len(one.id) > _ID_MAX_LETTERS or len(one.parent) > _ID_MAX_LETTERS:
            raise ValueError(f"a document's id has more than {_ID_MAX_LETTERS} characters")
        key = (to_text(one.caller), to_text(one.kind), to_text(one.id))
        rows[key] = (*key, to_text(one.parent), one.number, one.created, one.expires, one.body)
    ordered = [rows[key] for key in sorted(rows)] if sort else list(rows.values())
    return [list(column) for column in zip(*ordered, strict=True)]


def document(row: Any) -> Document:
    return Document(
        caller=from_text(row["tenant"]),
        kind=from_text(row["kind"]),
        id=from_text(row["id"]),
        body=row["body"],
        parent=from_text(row["parent"]),
        number=row["number"],
        created=row["created"],
        expires=row["expires"],
    )


async def _are_ours(connection: Connection, values: list[list[Any]]) -> bool:
    """Sealed bodies never repeat by chance."""
    same = await connection.fetchval(
        "SELECT count(*) FROM documents d JOIN unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) "
        "AS mine (tenant, kind, id, body) USING (tenant, kind, id, body)",
        *values[:3],
        values[7],
    )
    return bool(same == len(values[0]))


async def _first_of_ours(connection: Connection, place: list[str], ids: list[str]) -> int:
    found = await connection.fetchval(
        "SELECT min(number) FROM documents "
        "WHERE tenant = $1 AND kind = $2 AND parent = $3 AND id = ANY($4::text[])",
        *place,
        ids,
    )
    return int(found or 0)


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


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(KeyRow)
_REVISE = """
WITH next AS (UPDATE keys_version SET version = version + 1 RETURNING version)
UPDATE keys SET revision = next.version FROM next WHERE name = ANY($1::text[])
"""
"""The next version, with which the keys of these names are written."""


class PostgresKeys:
    """Keys are few, read often, and changed by people."""

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
            "SELECT name, body, revision, version FROM keys, keys_version"
            " WHERE revision >= $1 ORDER BY revision",
            since,
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
                        return True  # our own first attempt was written, and its answer lost
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
                # A lost connection may have hidden that our own first attempt was written.
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
                return bool(gone or turn)  # a lost connection may have hidden that our first attempt did it

        return await self._pool.run(work)


async def load_keys(connection: Connection, rows: list[KeyRow]) -> None:
    """Existing keys are not changed."""
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
