"""The tables and their migrations. Only ever add to the end of `MIGRATIONS`."""

from __future__ import annotations

from typing import Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import msgspec

from wireglot.stores.base import StoreUnusable
from wireglot.stores.postgres.address import PostgresAddress, read_address
from wireglot.stores.postgres.pool import LONG_SECONDS, Connection, PostgresPool
from wireglot.stores.sql import Sort, added_columns
from wireglot.stores.usage_sums import COLUMNS, DAY, DIMENSIONS, HOUR, MARKS, SUM_NUMBERS, SUMMED_FROM, SUMS

# COLLATE "C": names are compared as bytes, the same on every server, whatever its locale. STORAGE EXTERNAL:
# sealed bodies cannot be compressed, so PostgreSQL need not try.
_FIRST: Final = """
CREATE TABLE documents (
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    parent text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    created bigint NOT NULL,
    expires bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, kind, id)
);
ALTER TABLE documents ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX documents_pieces ON documents (tenant, kind, parent, number) WHERE parent <> '';
-- The condition is always true; it keeps this index for the queries that name it. On a table without
-- statistics the planner would use it to look for ids, too.
CREATE INDEX documents_recent ON documents (tenant, kind, created, id) WHERE created >= 0;
CREATE INDEX documents_expires ON documents (expires) WHERE expires > 0;

CREATE TABLE vault (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    expires bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);
ALTER TABLE vault ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX vault_expires ON vault (expires);

CREATE TABLE usage (
    id text COLLATE "C" PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    started bigint NOT NULL,
    instance text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    dialect text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    upstream_model text COLLATE "C" NOT NULL,
    upstream_dialect text COLLATE "C" NOT NULL,
    stream boolean NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    finished bigint NOT NULL,
    status bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    first_byte bigint NOT NULL,
    input bigint NOT NULL,
    cache_read bigint NOT NULL,
    cache_write bigint NOT NULL,
    cache_write_long bigint NOT NULL,
    tool_prompt bigint NOT NULL,
    output bigint NOT NULL,
    reasoning bigint NOT NULL,
    source text COLLATE "C" NOT NULL,
    cost bigint,
    losses text NOT NULL,
    flags text NOT NULL
);
CREATE INDEX usage_started ON usage (started, id);
CREATE INDEX usage_caller ON usage (caller, started, id);
CREATE INDEX usage_open ON usage (instance, started) WHERE outcome = '';
-- A session's name is the client's and may be too long for an index.
CREATE INDEX usage_session ON usage (caller, md5(session)) WHERE session <> '';

CREATE TABLE instances (instance text COLLATE "C" PRIMARY KEY, heard bigint NOT NULL);

CREATE TABLE keys (name text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE keys_version (version bigint NOT NULL);
INSERT INTO keys_version VALUES (0);
"""

MIGRATIONS: Final = (_FIRST,)
VERSION: Final = len(MIGRATIONS)

_TYPES: Final[dict[Sort, str]] = {
    "text": 'text COLLATE "C"',
    "word": 'text COLLATE "C"',
    "number": "bigint",
    "flag": "boolean",
    "list": "text",
}
_ADDED: Final = {
    "usage": added_columns(_TYPES, empty_list="[]"),
    "keys": {"revision": "revision bigint NOT NULL DEFAULT 0"},
}


# Tables that are derived from the others: they need no version, and triggers keep them right, whichever
# program writes rows.
WRITERS_LOCK: Final = "hashtextextended('wireglot usage ' || current_schema(), 0)"
"""Held in shared mode by all that write rows of usage."""
_SPANS: Final = (HOUR, DAY)


def _sums(schema: str) -> str:
    """`schema`: quoted. A trigger runs with any caller's search path."""
    marks, sums, usage = f"{schema}.{MARKS}", f"{schema}.{SUMS}", f"{schema}.usage"
    columns = ", ".join(
        f"{name} {_sum_type(name)} NOT NULL" for name in COLUMNS if name not in ("span", "at")
    )
    lock = WRITERS_LOCK.replace("current_schema()", "TG_TABLE_SCHEMA")
    cells = " UNION ".join(f"SELECT {span}, started - started % {span} FROM changed" for span in _SPANS)
    # Always in the same order, so that two writers do not wait for each other.
    unsum = (
        f"PERFORM pg_advisory_xact_lock_shared({lock}); DELETE FROM {marks} WHERE (span, at) IN ("
        f"SELECT span, at FROM {marks} WHERE (span, at) IN (%s) ORDER BY span, at FOR UPDATE); RETURN NULL;"
    )
    old, new = (
        ", ".join(f"{table}.{name}" for name in SUMMED_FROM) for table in ("before_rows", "after_rows")
    )
    changed = (
        "WITH changed AS (SELECT unnest(ARRAY[before_rows.started, after_rows.started]) AS started"
        f" FROM before_rows JOIN after_rows USING (id) WHERE ({old}) IS DISTINCT FROM ({new})) {cells}"
    )
    bodies = {
        "changed": unsum % cells,
        "updated": unsum % changed,
        "emptied": f"DELETE FROM {marks}; RETURN NULL;",
    }
    functions = "".join(
        f"CREATE FUNCTION {schema}.{MARKS}_{name}() RETURNS trigger LANGUAGE plpgsql AS $body$"
        f" BEGIN {body} END $body$;\n"
        for name, body in bodies.items()
    )
    triggers = {
        "inserted": ("INSERT", "REFERENCING NEW TABLE AS changed", "changed"),
        "deleted": ("DELETE", "REFERENCING OLD TABLE AS changed", "changed"),
        "updated": ("UPDATE", "REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows", "updated"),
        "emptied": ("TRUNCATE", "", "emptied"),
    }
    return f"""
CREATE TABLE {marks} (
    span bigint NOT NULL, at bigint NOT NULL, token text NOT NULL, ready bigint NOT NULL,
    PRIMARY KEY (span, at)
);
CREATE TABLE {sums} (
    span bigint NOT NULL, at bigint NOT NULL, {columns},
    FOREIGN KEY (span, at) REFERENCES {marks} ON DELETE CASCADE
);
CREATE INDEX ON {sums} (span, at);
CREATE INDEX ON {sums} (kept, span, at);
CREATE INDEX ON {sums} (caller, span, at) WHERE kept = '*';
{functions}""" + "".join(
        f"CREATE TRIGGER {MARKS}_{name} AFTER {event} ON {usage} {tables}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.{MARKS}_{function}();\n"
        for name, (event, tables, function) in triggers.items()
    )


def _sum_type(name: str) -> str:
    if name in SUM_NUMBERS:
        return "numeric"
    return 'text COLLATE "C"' if name in DIMENSIONS else "text"


async def migrate(
    pool: PostgresPool, address: PostgresAddress, migrations: tuple[str, ...] = MIGRATIONS
) -> None:
    """All steps in one transaction: complete or not at all, whenever the process dies. The lock makes a
    second process wait, and then find nothing left to do."""

    async def work(connection: Connection, _: int) -> None:
        async with connection.transaction():
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
                f"wireglot migrations {address.schema}",
                timeout=LONG_SECONDS,
            )
            version = await _version(connection, address)
            if version > len(migrations):
                raise StoreUnusable(
                    f"store.url: the schema {address.schema} has version {version}, this program knows up to "
                    f"{len(migrations)}: a newer Wireglot has written it"
                )
            for step in migrations[version:]:
                await connection.execute(step, timeout=LONG_SECONDS)
            if version < len(migrations):
                await connection.execute("UPDATE wireglot_version SET version = $1", len(migrations))
            await _add_columns(connection)
            if await connection.fetchval("SELECT to_regclass($1)", f"{address.quoted_schema}.{SUMS}") is None:
                await connection.execute(_sums(address.quoted_schema), timeout=LONG_SECONDS)

    async def careful(connection: Connection, turn: int) -> None:
        try:
            await work(connection, turn)
        except asyncpg.InsufficientPrivilegeError:
            raise StoreUnusable(
                f"store.url: the user may not create tables in the schema {address.schema}"
            ) from None
        except (asyncpg.DuplicateObjectError, asyncpg.DuplicateTableError):
            raise StoreUnusable(
                f"store.url: the schema {address.schema} holds tables of something else; "
                "name another one with ?schema="
            ) from None
        except (asyncpg.InvalidSchemaNameError, asyncpg.ReservedNameError):
            raise StoreUnusable(f"store.url: {address.schema} cannot be the name of a schema") from None

    await pool.run(careful)


async def _add_columns(connection: Connection) -> None:
    """With defaults no table is rewritten, and programs that write rows without these columns continue to
    work."""
    found = await connection.fetch(
        "SELECT attrelid::regclass::text, attname FROM pg_attribute "
        "WHERE attrelid IN ('usage'::regclass, 'keys'::regclass) AND attnum > 0 AND NOT attisdropped"
    )
    there = {(table, name) for table, name in found}
    for table, columns in _ADDED.items():
        for name, definition in columns.items():
            if (table, name) not in there:
                await connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}", timeout=LONG_SECONDS)
    if ("keys", "revision") not in there:
        await connection.execute("CREATE INDEX keys_revision ON keys (revision)", timeout=LONG_SECONDS)
    if ("usage", "caller_group") not in there:
        await connection.execute(
            "CREATE INDEX usage_group ON usage (caller_group, started) WHERE caller_group <> ''",
            timeout=LONG_SECONDS,
        )


async def _version(connection: Connection, address: PostgresAddress) -> int:
    """0 if there is nothing yet. Nothing is created that exists: the user may lack the permission."""
    if await connection.fetchval("SHOW server_encoding") != "UTF8":
        raise StoreUnusable("store.url: the database's encoding must be UTF8")
    if not await connection.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", address.schema):
        await connection.execute(f"CREATE SCHEMA {address.quoted_schema}")
    exists = await connection.fetchval(
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = 'wireglot_version'",
        address.schema,
    )
    if not exists:
        await connection.execute("CREATE TABLE wireglot_version (version bigint NOT NULL)")
        await connection.execute("INSERT INTO wireglot_version VALUES (0)")
    version = await connection.fetchval("SELECT version FROM wireglot_version")
    if version is None:
        raise StoreUnusable(
            f"store.url: the schema {address.schema} has lost its version; it cannot be trusted"
        )
    return int(version)


class DatabaseLook(msgspec.Struct, frozen=True):
    server: str
    schema: str
    version: int
    """Of the schema; 0 if there is none yet."""
    known: int
    """The newest that this program knows."""
    read_only: bool


async def look_at_database(url: str) -> DatabaseLook:
    """Raises StoreUnusable or StoreDown, with the same messages as a start."""
    address = read_address(url)
    pool = await PostgresPool.open(address)

    async def work(connection: Connection, _: int) -> DatabaseLook:
        reported = connection.get_server_version()
        table = f"{address.quoted_schema}.wireglot_version"
        there = await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", table)
        version = await connection.fetchval(f"SELECT version FROM {table}") if there else 0
        return DatabaseLook(
            server=f"PostgreSQL {reported.major}.{reported.minor}",
            schema=address.schema,
            version=int(version or 0),
            known=VERSION,
            read_only=await connection.fetchval("SHOW transaction_read_only") == "on",
        )

    try:
        return await pool.run(work)
    finally:
        await pool.close()
