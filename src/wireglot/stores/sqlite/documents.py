"""Documents and keys in tables. Sealed values are not changed."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final

import apsw
import msgspec

from wireglot.stores.records import Document, KeyRow, are_all_changes, read_key
from wireglot.stores.sql import from_text, is_plain, to_text
from wireglot.stores.sqlite.worker_threads import Database

COLUMNS: Final = "tenant, kind, id, body, parent, number, created, expires"
"""In the order of the record's fields."""

LIVE: Final = "(expires = 0 OR expires > :now)"

WRITE: Final = """
INSERT INTO documents (tenant, kind, id, body, parent, number, created, expires, size)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_OVER: Final = """
ON CONFLICT (tenant, kind, id) DO UPDATE SET body = excluded.body, parent = excluded.parent,
    number = excluded.number, created = excluded.created, expires = excluded.expires, size = excluded.size
"""

_EXISTS: Final = f"SELECT 1 FROM documents WHERE tenant = :tenant AND kind = :kind AND id = :id AND {LIVE}"

_GET: Final = (
    f"SELECT {COLUMNS} FROM documents WHERE tenant = :tenant AND kind = :kind AND id = :id AND {LIVE}"
)

_LAST: Final = f"""
SELECT max(number) FROM documents
WHERE tenant = :tenant AND kind = :kind AND parent = :parent AND parent != '' AND {LIVE}
"""

_PIECES: Final = f"""
SELECT {COLUMNS} FROM documents
WHERE tenant = :tenant AND kind = :kind AND parent = :parent AND parent != ''
    AND number > :after AND number < :before AND {LIVE}
"""

_TOUCH: Final = f"""
UPDATE documents SET created = :created, expires = :expires
WHERE tenant = :tenant AND kind = :kind AND id = :id AND {LIVE}
"""

_TOUCH_PIECES: Final = f"""
UPDATE documents SET expires = :expires
WHERE tenant = :tenant AND kind = :kind AND parent = :parent AND parent != '' AND {LIVE}
"""

_RECENT: Final = f"""
SELECT {COLUMNS} FROM documents
WHERE tenant = :tenant AND kind = :kind AND (created, id) < (:created, :id) AND {LIVE}
ORDER BY created DESC, id DESC LIMIT :limit
"""

_NEWEST: Final = f"""
SELECT {COLUMNS} FROM documents WHERE tenant = :tenant AND kind = :kind AND {LIVE}
ORDER BY created DESC, id DESC LIMIT :limit
"""

_NO_LIMIT: Final = -1
_BEYOND: Final = (1 << 63) - 1


def values(document: Document) -> tuple[str | bytes | int, ...]:
    if is_plain(document.caller + document.kind + document.id + document.parent):
        return (
            document.caller,
            document.kind,
            document.id,
            document.body,
            document.parent,
            document.number,
            document.created,
            document.expires,
            len(document.body),
        )
    return (
        to_text(document.caller),
        to_text(document.kind),
        to_text(document.id),
        document.body,
        to_text(document.parent),
        document.number,
        document.created,
        document.expires,
        len(document.body),
    )


def read_document(row: Sequence[Any]) -> Document:
    caller, kind, id, body, parent, number, created, expires = row
    return Document(
        caller=from_text(caller),
        kind=from_text(kind),
        id=from_text(id),
        body=body,
        parent=from_text(parent),
        number=number,
        created=created,
        expires=expires,
    )


def _place(caller: str, kind: str, now: int, **names: str) -> dict[str, str | int]:
    place: dict[str, str | int] = {"tenant": to_text(caller), "kind": to_text(kind), "now": now}
    for name, value in names.items():
        place[name] = to_text(value)
    return place


def exists(connection: apsw.Connection, document: Document, now: int) -> bool:
    place = _place(document.caller, document.kind, now, id=document.id)
    return connection.execute(_EXISTS, place).get is not None


class SqliteDocuments:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        now = self._database.now()

        def write(connection: apsw.Connection) -> bool:
            if new and any(exists(connection, document, now) for document in documents):
                return False
            connection.executemany(WRITE + _OVER, map(values, documents))
            return True

        return await self._database.write(write)

    async def replace(self, document: Document) -> bool:
        now = self._database.now()

        def write(connection: apsw.Connection) -> bool:
            if not exists(connection, document, now):
                return False
            connection.execute(WRITE + _OVER, values(document))
            return True

        return await self._database.write(write)

    async def touch(self, caller: str, kind: str, id: str, *, created: int, expires: int) -> bool:
        place = _place(caller, kind, self._database.now(), id=id) | {"created": created, "expires": expires}

        def write(connection: apsw.Connection) -> bool:
            connection.execute(_TOUCH, place)
            return connection.changes() > 0

        return await self._database.write(write)

    async def touch_pieces(self, caller: str, kind: str, parent: str, *, expires: int) -> None:
        place = _place(caller, kind, self._database.now(), parent=parent) | {"expires": expires}
        await self._database.write(lambda connection: connection.execute(_TOUCH_PIECES, place).fetchall())

    async def append(self, documents: Sequence[Document]) -> int:
        first = documents[0]
        place = _place(first.caller, first.kind, self._database.now(), parent=first.parent)

        def write(connection: apsw.Connection) -> int:
            last: int = connection.execute(_LAST, place).get or 0
            numbered = (
                msgspec.structs.replace(document, number=number)
                for number, document in enumerate(documents, last + 1)
            )
            connection.executemany(WRITE + _OVER, map(values, numbered))
            return last + 1

        return await self._database.write(write)

    async def get(self, caller: str, kind: str, ids: Sequence[str]) -> list[Document]:
        now = self._database.now()

        def read(connection: apsw.Connection) -> list[Document]:
            found = []
            for id in dict.fromkeys(ids):
                place = _place(caller, kind, now, id=id)
                found += [read_document(row) for row in connection.execute(_GET, place)]
            return found

        return await self._database.read(read)

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
        place = _place(caller, kind, self._database.now(), parent=parent)
        place |= {"after": after, "before": before or _BEYOND, "limit": limit or _NO_LIMIT}
        order = "ORDER BY number DESC" if newest_first else "ORDER BY number"

        def read(connection: apsw.Connection) -> list[Document]:
            return [
                read_document(row) for row in connection.execute(f"{_PIECES} {order} LIMIT :limit", place)
            ]

        return await self._database.read(read)

    async def recent(
        self, caller: str, kind: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[Document]:
        place = _place(caller, kind, self._database.now()) | {"limit": limit}
        if before is not None:
            place |= {"created": before[0], "id": to_text(before[1])}

        def read(connection: apsw.Connection) -> list[Document]:
            return [
                read_document(row)
                for row in connection.execute(_NEWEST if before is None else _RECENT, place)
            ]

        return await self._database.read(read)

    async def delete(self, caller: str, kind: str, ids: Sequence[str]) -> int:
        now = self._database.now()

        def write(connection: apsw.Connection) -> int:
            count = 0
            for id in ids:
                gone = connection.execute(
                    "DELETE FROM documents WHERE tenant = ? AND kind = ? AND id = ? RETURNING expires",
                    (to_text(caller), to_text(kind), to_text(id)),
                )
                count += sum(not expires or expires > now for (expires,) in gone)
            return count

        return await self._database.write(write)

    async def delete_pieces(self, caller: str, kind: str, parent: str) -> int:
        now = self._database.now()

        def write(connection: apsw.Connection) -> int:
            gone = connection.execute(
                "DELETE FROM documents WHERE tenant = ? AND kind = ? AND parent = ? AND parent != ''"
                " RETURNING expires",
                (to_text(caller), to_text(kind), to_text(parent)),
            )
            return sum(not expires or expires > now for (expires,) in gone)

        return await self._database.write(write)


class SqliteKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> Coroutine[Any, Any, int]:
        def read(connection: apsw.Connection) -> int:
            version: int = connection.execute("SELECT value FROM revisions WHERE name = 'keys'").get
            return version

        return self._database.read(read)

    async def all(self) -> list[KeyRow]:
        # They are decoded in the thread: there may be a hundred thousand.
        return await self._database.read(
            lambda connection: [
                read_key(name, body)
                for name, body in connection.execute("SELECT name, body FROM keys ORDER BY name")
            ]
        )

    async def get(self, name: str) -> KeyRow | None:
        def read(connection: apsw.Connection) -> KeyRow | None:
            body: bytes | None = connection.execute(
                "SELECT body FROM keys WHERE name = ?", (to_text(name),)
            ).get
            return None if body is None else read_key(name, body)

        return await self._database.read(read)

    async def changed(self, since: int) -> list[KeyRow] | None:
        def read(connection: apsw.Connection) -> list[KeyRow] | None:
            found: list[Any] = connection.execute(_CHANGED_KEYS, (since,)).fetchall()
            if not found or not are_all_changes((row[2] for row in found), since, found[0][3]):
                return None
            return [read_key(name, body) for name, body, *_ in found]

        return await self._database.read(read)

    async def put(self, row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
        return await self._database.write(lambda connection: put_key(connection, row, new=new, over=over))

    async def delete(self, name: str) -> bool:
        def write(connection: apsw.Connection) -> bool:
            connection.execute("DELETE FROM keys WHERE name = ?", (name,))
            if not connection.changes():
                return False
            connection.execute(_NEXT_REVISION)
            return True

        return await self._database.write(write)


_NEXT_REVISION: Final = "UPDATE revisions SET value = value + 1 WHERE name = 'keys'"
_REVISION: Final = "(SELECT value FROM revisions WHERE name = 'keys')"
_CHANGED_KEYS: Final = (
    f"SELECT name, body, revision, {_REVISION} FROM keys WHERE revision >= ? ORDER BY revision"
)


def put_key(connection: apsw.Connection, row: KeyRow, *, new: bool, over: KeyRow | None = None) -> bool:
    instead = "DO NOTHING" if new else "DO UPDATE SET body = excluded.body, revision = excluded.revision"
    if over is not None:
        there: Any = connection.execute("SELECT body FROM keys WHERE name = ?", (row.name,)).fetchone()
        if there is None or read_key(row.name, there[0]) != over:
            return False
    connection.execute(
        f"INSERT INTO keys (name, body, revision) VALUES (?, ?, {_REVISION} + 1)"
        f" ON CONFLICT (name) {instead}",
        (row.name, msgspec.json.encode(row)),
    )
    if not connection.changes():
        return False
    connection.execute(_NEXT_REVISION)
    return True
