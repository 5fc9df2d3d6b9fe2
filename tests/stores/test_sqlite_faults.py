"""What happens to a SQLite store while it runs: no space, a lock that stays, a file that goes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import threading
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.stores.children import CHILDREN
from wireglot.stores.base import StoreDown
from wireglot.stores.records import Document, UsageQuery, UsageRow
from wireglot.stores.sqlite import SqliteEngine
from wireglot.stores.sqlite.engine import STORE
from wireglot.stores.sqlite.worker_threads import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(run, path):
    opened = run(SqliteEngine.open(str(path), busy=0.2))
    yield opened
    run(opened.close())


def document(id: str, size: int = 10) -> Document:
    return Document("t", "k", id, os.urandom(size))


def ids(run, engine) -> set[str]:
    return {one.id for one in run(engine.documents.recent("t", "k", limit=10_000))}


def test_a_full_disk_is_down_and_over_when_space_returns(run, engine):
    """FAULTS 93"""
    pages = run(engine._database.write(lambda c: c.pragma("max_page_count", c.pragma("page_count") + 20)))
    acknowledged = set()

    def fill() -> None:
        for n in range(1000):
            run(engine.documents.put([document(f"{n}", 1000)]))
            acknowledged.add(f"{n}")

    with pytest.raises(StoreDown, match="no space left"):
        fill()
    assert acknowledged
    assert ids(run, engine) == acknowledged
    with pytest.raises(StoreDown):
        run(engine.ledger.apply([UsageRow(f"r{n}", "c", 1, error="x" * 3000) for n in range(100)]))
    assert run(engine.ledger.rows(UsageQuery(), limit=9)) == []
    run(engine._database.write(lambda c: c.pragma("max_page_count", pages + 10_000)))
    run(engine.documents.put([document("after", 50_000)]))
    assert ids(run, engine) == acknowledged | {"after"}


def test_a_disk_that_takes_no_more_is_down_and_over_when_it_does_again(run, engine):
    """FAULTS 93: the file system itself refuses, in the midst of a commit."""
    run(engine.documents.put([document("before", 100_000)]))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
    try:
        for _ in range(3):
            with pytest.raises(StoreDown):
                run(engine.documents.put([document("refused", 400_000)]))
        assert ids(run, engine) == {"before"}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    run(engine.documents.put([document("after", 400_000)]))
    assert ids(run, engine) == {"before", "after"}


def test_one_that_does_not_fit_does_not_take_the_others_with_it(run, engine):
    """FAULTS 93: they shared a commit."""
    run(engine._database.write(lambda c: c.pragma("max_page_count", c.pragma("page_count") + 20)))

    async def together() -> list:
        return await asyncio.gather(
            *(engine.documents.put([document(f"{n}", 2_000_000 if n == 5 else 10)]) for n in range(10)),
            return_exceptions=True,
        )

    answers = run(together())
    assert [n for n, answer in enumerate(answers) if answer is not True] == [5]
    assert isinstance(answers[5], StoreDown)
    assert ids(run, engine) == {f"{n}" for n in range(10) if n != 5}


def test_an_operation_that_fails_does_so_alone(run, engine):
    async def together():
        return await asyncio.gather(
            engine.documents.put([document("a")]),
            engine.documents.put([document("half"), Document("t", "k", "bad", "no bytes")]),  # type: ignore[arg-type]  # on purpose
            engine._database.write(lambda c: 1 / 0),
            engine.documents.put([document("b")]),
            return_exceptions=True,
        )

    answers = run(together())
    assert [type(answer) for answer in answers] == [bool, apsw.ConstraintError, ZeroDivisionError, bool]
    assert ids(run, engine) == {"a", "b"}


def _hold(path: Path, ready, done) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN EXCLUSIVE")
    ready.set()
    done.wait()
    connection.execute("ROLLBACK")
    os._exit(0)


def test_a_lock_that_stays_is_down_and_never_blocks_the_loop(run, engine, path):
    """FAULTS 94"""
    run(engine.documents.put([document("before")]))
    ready, done = CHILDREN.Event(), CHILDREN.Event()
    other = CHILDREN.Process(target=_hold, args=(path, ready, done))
    other.start()
    ready.wait()

    async def meanwhile() -> tuple[int, set[str]]:
        write = asyncio.create_task(engine.documents.put([document("locked out")]))
        turns, seen = 0, set()
        while not write.done():
            seen |= {one.id for one in await engine.documents.recent("t", "k", limit=9)}
            turns += 1
        with pytest.raises(StoreDown, match="locked"):
            await write
        return turns, seen

    turns, seen = run(meanwhile())
    assert turns > 3
    assert seen == {"before"}
    done.set()
    other.join()
    run(engine.documents.put([document("after")]))
    assert ids(run, engine) == {"before", "after"}


def test_a_file_that_was_deleted_is_down_and_not_made_again(run, engine, path):
    """FAULTS 97"""
    run(engine.documents.put([document("a")]))
    kept = path.with_name("kept.db")
    path.rename(kept)
    for ask in (
        lambda: engine.documents.put([document("b")]),
        lambda: engine.documents.get("t", "k", ["a"]),
        lambda: engine.stats(),
        lambda: engine.check(),
    ):
        with pytest.raises(StoreDown, match="removed or moved"):
            run(ask())
    assert not path.exists()
    kept.rename(path)
    assert ids(run, engine) == {"a"}
    run(engine.documents.put([document("b")]))
    assert ids(run, engine) == {"a", "b"}


def test_another_file_in_its_place_is_opened_with_the_same_care(run, engine, path, tmp_path):
    """FAULTS 97: a backup that is put back is used, an empty file is not."""
    run(engine.documents.put([document("a")]))

    async def back_up() -> None:
        await engine._database.write(lambda c: None)
        await asyncio.to_thread(_copy, path, tmp_path / "backup.db")

    run(back_up())
    run(engine.documents.put([document("b")]))
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / name).unlink()
    path.touch()
    with pytest.raises(StoreDown, match="empty"):
        run(engine.check())
    assert path.stat().st_size == 0
    path.unlink()
    shutil.move(tmp_path / "backup.db", path)
    run(engine.check())
    assert ids(run, engine) == {"a"}


def _copy(path: Path, to: Path) -> None:
    source, target = apsw.Connection(str(path)), apsw.Connection(str(to))
    with target.backup("main", source, "main") as backup:
        backup.step()
    target.close()
    source.close()


def test_damage_that_shows_while_running_is_down_with_a_hint(run, engine, path):
    """FAULTS 97"""
    run(engine.documents.put([document(f"{n}", 3000) for n in range(200)]))
    run(engine.close())
    content = bytearray(path.read_bytes())
    for page in range(60, len(content) // 4096):  # behind those that say which tables there are
        content[page * 4096 : page * 4096 + 4096] = b"\xa5" * 4096
    again = run(SqliteEngine.open(str(path.with_name("other.db"))))
    run(again.close())
    path.with_name("other.db").write_bytes(content)

    async def use() -> None:
        # Opened as a large file is: without reading it through.
        large = msgspec.structs.replace(STORE, checked_bytes=0)
        opened = SqliteEngine(await Database.open(str(path.with_name("other.db")), large))
        try:
            await opened.documents.get("t", "k", [f"{n}" for n in range(200)])
        finally:
            await opened.close()

    with pytest.raises(StoreDown, match="recover"):
        run(use())


def test_a_caller_who_goes_away_harms_nobody(run, engine):
    async def leave() -> list[bool]:
        tasks = [asyncio.create_task(engine.documents.put([document(f"{n}")])) for n in range(50)]
        reads = [asyncio.create_task(engine.documents.get("t", "k", ["0"])) for n in range(50)]
        await asyncio.sleep(0)
        for task in (*tasks[::2], *reads[::2]):
            task.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        return [answer is True for answer in await asyncio.gather(*tasks, return_exceptions=True)]

    acknowledged = {f"{n}" for n, answer in enumerate(run(leave())) if answer}
    assert acknowledged >= {f"{n}" for n in range(1, 50, 2)}
    assert ids(run, engine) >= acknowledged


def test_closing_does_what_was_asked_before(run, path):
    async def hurry() -> None:
        engine = await SqliteEngine.open(str(path))
        writes = [asyncio.create_task(engine.documents.put([document(f"{n}")])) for n in range(600)]
        await asyncio.sleep(0)
        await engine.close()
        assert all(await asyncio.gather(*writes))
        await engine.close()
        for ask in (engine.check(), engine.documents.get("t", "k", ["1"])):
            with pytest.raises(StoreDown, match="closed"):
                await ask

    run(hurry())
    again = run(SqliteEngine.open(str(path)))
    assert len(ids(run, again)) == 600
    run(again.close())


def test_threads_and_side_files_are_gone_after_closing(run, path):
    others = set(threading.enumerate())  # of engines that other tests share
    engine = run(SqliteEngine.open(str(path)))
    run(engine.check())
    run(engine.stats())
    own = {
        thread for thread in set(threading.enumerate()) - others if thread.name.startswith("wireglot-store")
    }
    assert own
    run(engine.close())
    assert not any(thread.is_alive() for thread in own)
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


def test_what_is_asked_at_once_shares_a_commit(run, engine):
    commits: list[int] = []

    def committed() -> bool:
        commits.append(1)
        return False  # go on

    async def at_once() -> None:
        await engine._database.write(lambda c: c.set_commit_hook(committed))
        await asyncio.gather(*(engine.documents.put([document(f"{n}")]) for n in range(500)))

    run(at_once())
    assert 1 <= len(commits) < 25
    assert len(ids(run, engine)) == 500


def test_a_read_after_a_write_sees_it(run, engine):
    async def both() -> None:
        async def one(n: int) -> None:
            await engine.documents.put([document(f"{n}")])
            assert await engine.documents.get("t", "k", [f"{n}"])
            await engine.ledger.apply([UsageRow(f"{n}", "c", n, outcome="ok", output=1)])
            assert (await engine.ledger.spent("c", n))[0] >= 1

        await asyncio.gather(*(one(n) for n in range(100)))

    run(both())


def test_space_that_was_freed_is_given_back(run, engine, path):
    run(engine.documents.put([document(f"{n}", 40_000) for n in range(300)]))
    run(engine._database.write(lambda c: None))
    large = run(engine.stats()).size
    run(engine.wipe("t"))
    run(engine.sweep(1, usage_before=0, dead_before=0, kinds={}))
    run(engine.close())
    assert path.stat().st_size < large / 2


def test_a_file_that_is_emptied_while_it_is_open_is_down_and_not_made_again(run, path):
    """FAULTS 97: found by the trial of store faults; "no such table" came out as a bug of ours."""
    run(filled_and_closed(path))
    engine = run(SqliteEngine.open(str(path), busy=0.2))
    os.truncate(path, 0)
    for _ in range(3):
        with pytest.raises(StoreDown):
            ids(run, engine)
        with pytest.raises(StoreDown):
            run(engine.documents.put([document("new")]))
        with pytest.raises(StoreDown):
            run(engine.keys.all())
    assert path.stat().st_size == 0
    run(engine.close())


@pytest.mark.parametrize(("at", "byte"), [(18, 9), (19, 9), (44, 99)])
def test_a_header_that_is_written_over_while_it_is_open_is_down(run, path, at, byte):
    """FAULTS 97: found by the trial of store faults ("unsupported file format")."""
    run(filled_and_closed(path))
    engine = run(SqliteEngine.open(str(path), busy=0.2))
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte] * (4 if at == 44 else 1)))
        file.seek(24)  # the change counter, so that it is looked at again
        file.write(b"\xff" * 4)
    for _ in range(2):
        with contextlib.suppress(StoreDown):  # nothing else is raised, and nothing else is found
            assert ids(run, engine) == {"kept"}
    run(engine.close())


def test_text_that_is_none_is_damage_and_reported_as_such(run, engine):
    """FAULTS 97: found by the trial of store faults (UnicodeDecodeError)."""
    run(engine.documents.put([document("kept")]))
    run(
        engine._database.write(
            lambda c: c.execute("UPDATE documents SET id = CAST(x'c328' AS TEXT)") and None
        )
    )
    with pytest.raises(StoreDown, match="is damaged"):
        ids(run, engine)
    with pytest.raises(StoreDown, match="is damaged"):  # also within what is written
        run(engine._database.write(lambda c: c.execute("SELECT id FROM documents").fetchall()))
    run(engine.check())


async def filled_and_closed(path: Path) -> None:
    """What is in it lies in the file itself then, and not in its WAL."""
    engine = await SqliteEngine.open(str(path))
    await engine.documents.put([document("kept")])
    await engine.close()


@pytest.mark.parametrize("where", ["_gather", "_serve", "after"])
@pytest.mark.parametrize("thread", ["_writer", "_reader"])
def test_a_bug_of_a_thread_does_not_end_the_store(run, path, monkeypatch, thread: str, where: str):
    """Its callers are told that the store is down, the bug is reported, and the next call works."""

    async def scenario() -> None:
        reported: list[BaseException] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        database = await Database.open(str(path), STORE)
        worker = getattr(database, thread)

        def broken(*_: object) -> None:
            raise ValueError("a bug")

        if where == "after":
            assert await worker.do(lambda _: "done", broken) == "done"
        else:
            whole = getattr(worker, where)

            def once(batch: list[object]) -> None:
                monkeypatch.setattr(worker, where, whole)
                if where == "_gather":
                    whole(batch)
                raise ValueError("a bug")

            monkeypatch.setattr(worker, where, once)
            if where == "_gather":  # the thread waits in the whole one already
                await worker.do(lambda _: None)
            with pytest.raises(StoreDown, match=r"store\.db: ValueError in its thread"):
                await worker.do(lambda _: None)
        await asyncio.sleep(0)
        assert [type(bug) for bug in reported] == [ValueError]
        for _ in range(3):
            assert await worker.do(lambda connection: connection.pragma("user_version")) > 0
        await database.close()

    run(scenario())


@pytest.mark.parametrize("thread", ["_writer", "_reader"])
def test_a_bug_of_one_job_keeps_no_other_of_its_batch_waiting(run, path, thread: str):
    """No future takes a StopIteration."""

    async def scenario() -> None:
        database = await Database.open(str(path), STORE)
        worker = getattr(database, thread)
        go_on = threading.Event()
        first = asyncio.create_task(worker.do(lambda _: go_on.wait(60)))
        jobs = [
            asyncio.create_task(worker.do(work))
            for work in (lambda _: next(iter(())), lambda connection: connection.pragma("user_version"))
        ]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait({first, *jobs}, timeout=60)
        assert isinstance(jobs[0].exception(), RuntimeError)
        assert jobs[1].result() > 0
        await database.close()

    run(scenario())
