"""Opening a store's file: what is ours is brought up to date, what is not is left as it is."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import shutil
import signal
import stat
from pathlib import Path

import apsw
import pytest

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.open import open_counters, open_engine, sqlite_path
from wireglot.stores.records import Document, UsageRow
from wireglot.stores.sqlite import SqliteCounters, SqliteEngine
from wireglot.stores.sqlite.engine import STORE
from wireglot.stores.sqlite.file import Format, explain, open_file, require_version

FORK = multiprocessing.get_context("fork")


def opened(path: Path, **options) -> None:
    async def open_and_close() -> None:
        await (await SqliteEngine.open(str(path), **options)).close()

    asyncio.run(open_and_close())


def filled(path: Path, count: int = 200) -> None:
    async def fill() -> None:
        engine = await SqliteEngine.open(str(path))
        await engine.documents.put([Document("t", "k", f"{n}", os.urandom(500)) for n in range(count)])
        await engine.close()

    asyncio.run(fill())


def refused(path: Path) -> str:
    """Why it does not open; whatever lies there is as it was."""
    before = hashlib.sha256(path.read_bytes()).digest()
    with pytest.raises(StoreUnusable) as problem:
        opened(path)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert str(path) in str(problem.value)
    assert "\n" not in str(problem.value)
    return str(problem.value)


def test_the_file_is_for_its_owner_only(tmp_path):
    """T8: also with an open umask."""
    path = tmp_path / "new" / "deeper" / "store.db"

    async def look() -> None:
        engine = await SqliteEngine.open(str(path))
        await engine.check()
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        await engine.close()

    before = os.umask(0)
    try:
        asyncio.run(look())
    finally:
        os.umask(before)


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path):
    """T8"""
    path = tmp_path / "store.db"
    filled(path)
    path.chmod(0o644)
    opened(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_is_set_up_to_survive(tmp_path):
    """FAULTS 98, 99"""

    async def look() -> None:
        engine = await SqliteEngine.open(str(tmp_path / "store.db"))
        names = (
            "journal_mode",
            "synchronous",
            "mmap_size",
            "busy_timeout",
            "application_id",
            "user_version",
            "trusted_schema",
            "cache_size",
        )
        found = await engine._database.write(lambda c: [c.pragma(name) for name in names])
        assert found == ["wal", 2, 0, 5000, STORE.application_id, len(STORE.steps), 0, -8192]
        checkpoints = await engine._database.read(lambda c: c.pragma("wal_autocheckpoint"))
        assert checkpoints == 0
        with pytest.raises(StoreDown, match="read-only"):
            await engine._database.report(lambda c: c.execute("DELETE FROM usage"))
        await engine.close()

    asyncio.run(look())


@pytest.mark.parametrize("version", ["3.40.1", "3.51.2", "3.7.0"])
def test_a_sqlite_with_the_wal_reset_race_is_refused(version):
    """FAULTS 99"""
    with pytest.raises(StoreUnusable, match=r"3\.51\.3 or newer"):
        require_version(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "4.0.0"])
def test_a_sqlite_without_it_is_taken(version):
    require_version(version)


@pytest.mark.parametrize("content", [b"hello", b"x" * 5000, b"SQLite format 3\0" + b"\xff" * 4080])
def test_what_is_not_a_database_is_refused_and_kept(tmp_path, content):
    """FAULTS 97"""
    path = tmp_path / "store.db"
    path.write_bytes(content)
    assert "it was not changed" in refused(path)


def test_a_damaged_file_is_refused_and_kept_with_a_hint(tmp_path):
    """FAULTS 97"""
    path = tmp_path / "store.db"
    filled(path)
    damaged = bytearray(path.read_bytes())
    damaged[8192:12288] = b"\xa5" * 4096
    path.write_bytes(damaged)
    line = refused(path)
    assert "damaged" in line
    assert ".recover" in line


def test_a_file_that_was_cut_short_is_refused_and_kept(tmp_path):
    """FAULTS 97"""
    path = tmp_path / "store.db"
    filled(path)
    path.write_bytes(path.read_bytes()[:20_000])
    assert "damaged" in refused(path)


def test_the_database_of_another_program_is_refused_and_kept(tmp_path):
    """FAULTS 97"""
    path = tmp_path / "theirs.db"
    theirs = apsw.Connection(str(path))
    theirs.execute("CREATE TABLE precious (x); INSERT INTO precious VALUES (1)")
    theirs.close()
    assert "another program" in refused(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~_umask()


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def test_counters_do_not_open_a_store_nor_a_store_counters(tmp_path):
    filled(tmp_path / "store.db")
    with pytest.raises(StoreUnusable, match="another program"):
        asyncio.run(SqliteCounters.open(str(tmp_path / "store.db")))


def test_a_file_from_a_newer_wireglot_is_refused_and_kept(tmp_path):
    """FAULTS 97"""
    path = tmp_path / "store.db"
    filled(path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", 999)
    newer.close()
    line = refused(path)
    assert "newer" in line
    assert "999" in line


def test_a_directory_is_no_store(tmp_path):
    with pytest.raises(StoreUnusable, match="no file"):
        opened(tmp_path)


def test_a_place_where_no_file_can_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="cannot be made"):
        opened(tmp_path / "file" / "store.db")


def _open_as_nobody(path: Path, reported) -> None:
    os.setuid(65534)
    try:
        opened(path)
    except StoreUnusable as problem:
        reported.send(str(problem))
    else:
        reported.send("it opened")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize(
    ("mode", "line"), [(0o444, "cannot be written"), (0o600, "cannot be opened"), (0o666, "open to others")]
)
def test_a_file_that_is_not_ours_to_use_is_refused_at_the_start(tmp_path, mode, line):
    """FAULTS 97, T8"""
    path = tmp_path / "store.db"
    filled(path)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and "pytest" in str(folder):
            folder.chmod(0o755)
    tmp_path.chmod(0o777)
    path.chmod(mode)
    mine, theirs = FORK.Pipe()
    child = FORK.Process(target=_open_as_nobody, args=(path, theirs))
    child.start()
    assert line in mine.recv()
    child.join()


# Migrations.

OLD = Format("a store of wireglot", 77, ["CREATE TABLE one (x); INSERT INTO one VALUES (1)"])
NEW = Format(
    "a store of wireglot",
    77,
    [*OLD.steps, "ALTER TABLE one ADD y; UPDATE one SET y = 2", "CREATE TABLE two (z)"],
)


def test_an_older_file_is_brought_forward_step_by_step(tmp_path):
    path = tmp_path / "store.db"
    open_file(path, OLD).close()
    connection = open_file(path, NEW)
    assert connection.execute("SELECT x, y FROM one").fetchall() == [(1, 2)]
    assert connection.pragma("user_version") == 3
    connection.close()
    with pytest.raises(StoreUnusable, match="newer"):
        open_file(path, OLD)


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "store.db"
    open_file(path, OLD).close()
    broken = Format("a store of wireglot", 77, [*OLD.steps, "CREATE TABLE half (x); CREATE TABLE one (x)"])
    with pytest.raises(StoreUnusable):
        open_file(path, broken)
    connection = open_file(path, OLD)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("one",)]
    connection.close()


def _migrate_and_die(path: Path, form: Format, after: int) -> None:
    """Ends the process by SIGKILL at the n-th statement of the opening."""
    statements = 0

    class Deadly(apsw.Connection):
        def execute(self, *args, **kwargs):
            nonlocal statements
            statements += 1
            if statements > after:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(*args, **kwargs)

        def pragma(self, *args, **kwargs):
            nonlocal statements
            statements += 1
            if statements > after:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().pragma(*args, **kwargs)

    apsw.Connection = Deadly  # type: ignore[misc]  # only in the child that is about to die
    open_file(path, form)
    os._exit(0)


@pytest.mark.sampled
@pytest.mark.parametrize("old", [True, False], ids=["an old file", "a new file"])
def test_a_process_killed_at_any_statement_of_the_opening_leaves_a_file_that_opens(tmp_path, old):
    """FAULTS 96"""
    codes: list[int | None] = []
    while not codes or codes[-1] == -signal.SIGKILL:
        path = tmp_path / f"{len(codes)}.db"
        if old:
            open_file(path, OLD).close()
        child = FORK.Process(target=_migrate_and_die, args=(path, NEW, len(codes)))
        child.start()
        child.join()
        codes.append(child.exitcode)
        connection = open_file(path, NEW)
        assert connection.execute("SELECT x, y FROM one").fetchall() == [(1, 2)]
        assert connection.pragma("user_version") == 3
        assert connection.pragma("integrity_check") == "ok"
        connection.close()
    assert codes[-1] == 0
    assert len(codes) > 8


def _open_at(path: Path, barrier, reported) -> None:
    barrier.wait()
    try:
        open_file(path, NEW).close()
        reported.put("")
    except Exception as problem:
        reported.put(repr(problem))


def test_processes_that_open_a_new_or_an_old_file_at_once_all_succeed(tmp_path):
    """FAULTS 96"""
    for turn in range(6):
        path = tmp_path / f"{turn}.db"
        if turn % 2:
            open_file(path, OLD).close()
        barrier, reported = FORK.Barrier(4), FORK.SimpleQueue()
        children = [FORK.Process(target=_open_at, args=(path, barrier, reported)) for _ in range(4)]
        for child in children:
            child.start()
        assert [reported.get() for _ in children] == [""] * 4
        for child in children:
            child.join()
        connection = open_file(path, NEW)
        assert connection.execute("SELECT x, y FROM one").fetchall() == [(1, 2)]
        connection.close()


def test_the_table_of_usage_has_a_column_for_every_field(tmp_path):
    path = tmp_path / "store.db"
    connection = open_file(path, STORE)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(usage)")]
    connection.close()
    assert sorted(columns) == sorted(UsageRow.__struct_fields__)


def test_a_file_that_somebody_else_is_writing_exclusively_is_down_not_unusable(tmp_path):
    """FAULTS 94"""
    path = tmp_path / "store.db"
    filled(path)
    other = apsw.Connection(str(path))
    other.execute("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").fetchall()
    with pytest.raises(StoreDown, match="locked"):
        opened(path, busy=0.1)
    other.close()
    opened(path)


# By URL.


@pytest.mark.parametrize(
    ("url", "path"),
    [("sqlite:///abs/x.db", "/abs/x.db"), ("sqlite:x.db", "x.db"), ("sqlite://x.db", "x.db")],
)
def test_a_url_names_a_path(url, path):
    assert sqlite_path(url.partition(":")[2]) == path


def test_stores_open_by_url(tmp_path):
    async def look() -> None:
        for url in ("memory:", f"sqlite://{tmp_path}/store.db"):
            engine = await open_engine(url)
            await engine.check()
            await engine.close()
        for url in ("memory:", f"sqlite://{tmp_path}/counters.db"):
            counters, vault = await open_counters(url)
            assert vault is None
            await counters.check()
            await counters.close()
        with pytest.raises(StoreUnusable, match=r"store\.url"):
            await open_engine("mysql://x")
        with pytest.raises(StoreUnusable, match=r"store\.shared"):
            await open_counters("postgresql://x")

    asyncio.run(look())
    assert (tmp_path / "store.db").exists()


def test_a_file_of_0_bytes_is_not_taken_for_new(tmp_path):
    """[A8] Keys that are kept in the store alone would vanish, and with the last of them the door."""
    path = tmp_path / "store.db"
    filled(path, 1)
    for name in ("store.db-wal", "store.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    os.truncate(path, 0)
    assert "is empty (0 bytes)" in refused(path)
    path.unlink()
    opened(path)


def test_a_new_file_has_its_name_when_it_is_ours_and_leaves_nothing_beside_it(tmp_path, monkeypatch):
    """[A8] A start that is killed leaves no file of 0 bytes, which the next one would refuse."""
    path = tmp_path / "store.db"

    def killed(*places: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", killed)
        with pytest.raises(KeyboardInterrupt):
            open_file(path, STORE)
    assert list(tmp_path.iterdir()) == []
    opened(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.db"]


def test_two_that_make_the_same_file_have_one(tmp_path, monkeypatch):
    """[A8]"""
    path = tmp_path / "store.db"
    filled(path, 3)
    content = path.read_bytes()
    monkeypatch.setattr(Path, "exists", lambda self: False)  # the other one was quicker by a moment
    opened(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.db"]
    assert len(path.read_bytes()) >= len(content)


def test_where_files_cannot_be_linked_they_are_renamed(tmp_path, monkeypatch):
    """[A8]"""

    def none(*places: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", none)
    opened(tmp_path / "store.db")
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.db"]


@pytest.mark.parametrize(
    "problem", [apsw.FullError("full"), apsw.IOError("broken"), apsw.CantOpenError("no")]
)
def test_a_disk_that_fails_while_the_file_is_made_is_reported_and_leaves_nothing(
    tmp_path, monkeypatch, problem
):
    """FAULTS 93: found by the trial of store faults; the start ended in a traceback."""
    path = tmp_path / "store.db"

    class Broken:
        def __init__(self, *_: object, **__: object) -> None:
            raise problem

    with monkeypatch.context() as patched:
        patched.setattr(apsw, "Connection", Broken)
        with pytest.raises(StoreUnusable, match=r"store\.db"):
            open_file(path, STORE)
    assert list(tmp_path.iterdir()) == []
    opened(path)


@pytest.mark.parametrize(("free", "said"), [(20_000, "no space left"), (10**9, "input/output error")])
def test_a_disk_without_room_for_the_index_of_the_journal_is_full(tmp_path, monkeypatch, free, said):
    """SQLite calls it `disk I/O error`: a tmpfs with 24 KiB left."""
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert said in explain(apsw.IOError("disk I/O error"), tmp_path / "store.db")


def test_what_a_report_sorts_is_in_a_file_and_not_in_memory(tmp_path: Path) -> None:
    """A report over a million rows sorts more than a gateway should hold. Only reports write such files, in a
    directory that can be written: in a container the others are read-only."""

    async def look() -> None:
        database = (await SqliteEngine.open(str(tmp_path / "store.db")))._database
        stores = [
            await ask(lambda file: file.pragma("temp_store")) for ask in (database.write, database.read)
        ]
        assert stores == [2, 2], "in memory"
        assert await database.report(lambda file: file.pragma("temp_store")) == 1
        assert await database.report(lambda file: file.pragma("temp_store_directory"))
        await database.close()

    asyncio.run(look())
