"""Starting on a database: empty, older, newer, not ours, not reachable."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest

from tests.stores.servers import needs_postgres, postgres_url, with_option
from tests.waiting import DEADLINE_SECONDS
from wireglot.stores import open_engine
from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.postgres.address import read_address
from wireglot.stores.postgres.pool import PostgresPool
from wireglot.stores.postgres.schema import MIGRATIONS, VERSION, migrate
from wireglot.stores.records import Document

pytestmark = needs_postgres


def changed(url: str, **parts: str) -> str:
    """The same URL with another user, password, host or path."""
    split = urlsplit(url)
    user, password = parts.get("user", split.username), parts.get("password", split.password)
    place = parts.get("place", f"{split.hostname}:{split.port}")
    return urlunsplit(
        (split.scheme, f"{user}:{password}@{place}", parts.get("path", split.path), split.query, "")
    )


async def execute(url: str, *statements: str) -> None:
    address = read_address(url)
    connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.quoted_schema})
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def opens_and_works(url: str) -> None:
    engine = await PostgresEngine.open(url)
    await engine.check()
    assert await engine.documents.put([Document("a", "k", "1", b"x")])
    assert (await engine.stats()).version == VERSION
    await engine.close()


@pytest.mark.parametrize("schema", ['we"ird; DROP SCHEMA public', "UPPER case", "ünï", "x" * 63])
def test_any_name_can_be_a_schemas(schema: str) -> None:
    url = with_option(postgres_url().partition("?")[0], "schema", schema)

    async def test() -> None:
        await opens_and_works(url)
        await execute(url, f"DROP SCHEMA {read_address(url).quoted_schema} CASCADE")

    asyncio.run(test())


@pytest.mark.parametrize("schema", ["", "x" * 64, "a\0b", "pg_mine"])
def test_a_name_that_cannot_be_a_schemas_is_refused_in_a_plain_line(schema: str) -> None:
    url = with_option(postgres_url().partition("?")[0], "schema", schema)
    with pytest.raises(StoreUnusable, match=r"store\.url: .*schema"):
        asyncio.run(PostgresEngine.open(url))


def test_many_that_start_at_once_make_the_tables_once() -> None:
    """FAULTS 96: also from several processes."""
    url = postgres_url()
    program = (
        "import asyncio, sys; from wireglot.stores import open_engine; asyncio.run(open_engine(sys.argv[1]))"
    )
    others = [subprocess.Popen([sys.executable, "-c", program, url]) for _ in range(2)]

    async def test() -> None:
        engines = await asyncio.gather(*(open_engine(url) for _ in range(4)))
        for engine in engines:
            await engine.close()
        await opens_and_works(url)

    asyncio.run(test())
    assert [other.wait(DEADLINE_SECONDS) for other in others] == [0, 0]


def test_a_newer_schema_is_left_alone() -> None:
    url = postgres_url()

    async def test() -> None:
        await opens_and_works(url)
        await execute(url, f"UPDATE wireglot_version SET version = {VERSION + 1}")
        with pytest.raises(StoreUnusable, match=f"version {VERSION + 1}.*a newer Wireglot"):
            await PostgresEngine.open(url)
        await execute(url, f"UPDATE wireglot_version SET version = {VERSION}")
        await opens_and_works(url)

    asyncio.run(test())


def test_a_migration_that_fails_half_way_leaves_the_store_as_it_was() -> None:
    """FAULTS 96: the step and its version are one."""
    url = postgres_url()

    async def test() -> None:
        await opens_and_works(url)
        pool = await PostgresPool.open(read_address(url))
        broken = (*MIGRATIONS, "CREATE TABLE more (id int); SELECT missing")
        with pytest.raises(StoreDown, match="42703"):
            await migrate(pool, read_address(url), broken)
        await pool.close()
        await opens_and_works(url)
        pool = await PostgresPool.open(read_address(url))
        await migrate(pool, read_address(url), (*MIGRATIONS, "CREATE TABLE more (id int)"))
        await pool.close()

    asyncio.run(test())


def test_tables_of_something_else_are_left_alone() -> None:
    url = postgres_url()

    async def test() -> None:
        schema = read_address(url).quoted_schema
        await execute(url, f"CREATE SCHEMA {schema}", "CREATE TABLE usage (theirs int)")
        with pytest.raises(StoreUnusable, match="something else"):
            await PostgresEngine.open(url)
        await execute(url, "INSERT INTO usage (theirs) VALUES (1)")

    asyncio.run(test())


def test_a_user_without_the_right_to_create_can_use_what_is_there() -> None:
    url = postgres_url()
    schema = read_address(url).quoted_schema
    role = "role_" + schema.strip('"')
    theirs = changed(url, user=role, password="p")

    async def test() -> None:
        await execute(url, f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
        with pytest.raises(StoreUnusable, match=r"lacks a right|may not create"):
            await PostgresEngine.open(theirs)
        await opens_and_works(url)
        await execute(
            url,
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        )
        await opens_and_works(theirs)
        await execute(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")

    asyncio.run(test())


def test_what_cannot_be_opened_says_why_and_never_the_password() -> None:
    """R-DE-18: unused variable a secret or a host's name in a log."""
    url = postgres_url()
    cases = {
        changed(url, password="a-s3cret"): (StoreUnusable, "refuses the user or the password"),
        changed(url, password="a-s3cret", user="nobody-here"): (
            StoreUnusable,
            "refuses the user or the password",
        ),
        changed(url, path="/a-s3cret"): (StoreUnusable, "there is no such database"),
        changed(url, password="a-s3cret", place="127.0.0.1:1"): (StoreDown, "cannot be reached"),
        changed(url, password="a-s3cret", place="a-s3cret.invalid"): (StoreDown, "cannot be reached"),
        changed(url, password="a-s3cret", place="127.0.0.1:a-s3cret"): (
            StoreUnusable,
            "not a PostgreSQL URL",
        ),
        "postgresql://u:a-s3cret@[::1/x?sslmode=a-s3cret": (StoreUnusable, "not a PostgreSQL URL"),
        with_option(url, "sslmode", "a-s3cret"): (StoreUnusable, "sslmode must be one of"),
    }
    for case, (kind, reason) in cases.items():
        with pytest.raises((StoreDown, StoreUnusable), match=reason) as reported:
            asyncio.run(PostgresEngine.open(case))
        assert reported.type is kind, case
        assert "s3cret" not in str(reported.value)
        assert "127.0.0.1" not in str(reported.value)
        assert reported.value.__cause__ is None
