"""`wireglot doctor` on stores: a real file in every state, and the fleet's servers where they are here."""

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from tests.cli.provider_double import dead_url, modes_are_obeyed, set_apart
from tests.cli.running import configure
from wireglot.cli.doctor.case import DoctorCase, DoctorFinding
from wireglot.cli.doctor.machine_checks import look_at_disk, look_at_store
from wireglot.stores.sqlite import SqliteEngine

try:
    from tests.stores import servers
except ImportError:  # the fleet's clients are not installed
    needs_postgres = needs_redis = pytest.mark.skip(reason="the extra `fleet` is not installed")
else:
    needs_postgres, needs_redis = servers.needs_postgres, servers.needs_redis


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = os.environ["PATH"]
    found = set_apart(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", path)  # the servers' programs are there
    return found


def looked(store: str) -> list[DoctorFinding]:
    configure(f"[providers.demo]\n[store]\n{store}\n")
    case = DoctorCase(None, os.environ, offline=True)
    assert case.error is None, case.error
    return list(look_at_store(case))


def only(store: str) -> DoctorFinding:
    (found,) = looked(store)
    assert found.fix or found.grade == "ok"
    return found


@pytest.fixture
def file() -> Path:
    path = Path("store.db").absolute()

    async def make() -> None:
        await (await SqliteEngine.open(str(path))).close()

    asyncio.run(make())
    return path


FILE = 'url = "sqlite:store.db"'


def test_a_sound_file_is_well_and_is_left_as_it_is(file: Path) -> None:
    before = file.read_bytes()
    found = only(FILE)
    assert found.grade == "ok"
    assert "sound, schema 1" in found.text
    assert file.read_bytes() == before


def test_a_file_in_use_is_looked_at(file: Path) -> None:
    async def work() -> DoctorFinding:
        engine = await SqliteEngine.open(str(file))
        try:
            return await asyncio.to_thread(only, FILE)
        finally:
            await engine.close()

    assert asyncio.run(work()).grade == "ok"


def test_a_locked_file_is_reported(file: Path) -> None:
    holder = apsw.Connection(str(file))
    holder.execute("BEGIN IMMEDIATE")
    try:
        found = only(FILE)
    finally:
        holder.close()
    assert found.grade == "problem"
    assert "locked" in found.text


def test_a_damaged_file_is_reported_and_left_as_it_is(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    file.write_bytes(content)
    found = only(FILE)
    assert found.grade == "problem"
    assert "damaged" in found.text
    assert file.read_bytes() == bytes(content)


@pytest.mark.parametrize(
    ("content", "reported"), [(b"", "is empty"), (b"not a database, but long enough" * 9, "is not a SQLite")]
)
def test_what_is_no_store_is_reported(content: bytes, reported: str) -> None:
    Path("store.db").write_bytes(content)
    found = only(FILE)
    assert found.grade == "problem"
    assert reported in found.text


def test_a_file_of_a_newer_version_is_reported(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.pragma("user_version", 99)
    connection.close()
    assert "newer wireglot" in only(FILE).text


def test_a_folder_in_the_place_of_a_file_is_reported() -> None:
    Path("store.db").mkdir()
    assert only(FILE).grade == "problem"


def test_a_folder_that_is_no_folder_is_reported() -> None:
    Path("folder").write_text("")
    found = only('url = "sqlite:folder/store.db"')
    assert found.grade == "problem"
    assert found.repair is None


@pytest.mark.skipif(not modes_are_obeyed(), reason="modes do not stop this user")
def test_a_folder_that_cannot_be_written_is_reported(file: Path) -> None:
    configure(f"[providers.demo]\n[store]\n{FILE}\n")
    file.parent.chmod(0o500)
    try:
        (found,) = look_at_store(DoctorCase(None, os.environ, offline=True))
    finally:
        file.parent.chmod(0o700)
    assert found.grade == "problem"
    assert found.fix


@pytest.mark.skipif(not modes_are_obeyed(), reason="modes do not stop this user")
def test_a_file_that_cannot_be_written_or_read_is_reported(file: Path) -> None:
    for mode in (0o400, 0o000):
        file.chmod(mode)
        assert only(FILE).grade == "problem"


def test_memory_forgets() -> None:
    found = only('url = "memory:"')
    assert found.grade == "note"
    assert "lost when the gateway stops" in found.text


def test_a_disk_that_is_too_small_for_the_journal_is_reported() -> None:
    configure(f"[providers.demo]\n[store]\njournal = {2**60}\n")
    (found,) = look_at_disk(DoctorCase(None, os.environ, offline=True))
    assert found.grade == "problem"
    assert "journal" in found.fix


@needs_postgres
def test_a_database_is_looked_at_and_nothing_is_made_in_it() -> None:
    url = servers.postgres_url()
    first, second = only(f'url = "{url}"'), only(f'url = "{url}"')
    assert first == second
    assert first.grade == "ok"
    assert "is created at the first start" in first.text

    async def make() -> None:
        from wireglot.stores.postgres import PostgresEngine

        await (await PostgresEngine.open(url)).close()

    asyncio.run(make())
    assert "version 1" in only(f'url = "{url}"').text


def test_a_database_that_is_not_there_is_reported_without_its_password() -> None:
    pytest.importorskip("asyncpg", reason="the extra wireglot[fleet]")
    port = dead_url().rpartition(":")[2]
    found = only(f'url = "postgresql://user:hush@127.0.0.1:{port}/x"')
    assert found.grade == "problem"
    assert "hush" not in found.text + found.fix


@needs_redis
def test_a_redis_that_answers_is_well() -> None:
    found = looked(f'url = "memory:"\nshared = "{servers.redis_url()}"')
    assert [each.grade for each in found] == ["note", "ok"]


def test_a_redis_that_is_not_there_is_reported_without_its_password() -> None:
    pytest.importorskip("redis", reason="the extra wireglot[fleet]")
    port = dead_url().rpartition(":")[2]
    found = looked(f'url = "memory:"\nshared = "redis://:hush@127.0.0.1:{port}"')[1]
    assert found.grade == "problem"
    assert "hush" not in found.text + found.fix
