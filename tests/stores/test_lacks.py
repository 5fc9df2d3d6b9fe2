"""Who has nothing in the vault, reported without asking: what anybody has kept is never denied."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from pathlib import Path

import apsw
import pytest

from tests.stores.children import CHILDREN
from tests.waiting import until
from wireglot.stores.deferred import DeferredEngine
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import Document, VaultEntry
from wireglot.stores.sqlite import SqliteEngine
from wireglot.stores.sqlite.vault import LACKING_SECONDS

ODD = ["t", "", "\0", "é🙂", "\ud800", "{x}*"]


def looked(run, engine, caller="t"):
    """Whether it is known after a look that nothing is there."""
    assert run(engine.vault.recall(caller, ["a"])) == {}
    return engine.lacks(caller)


# --- every engine


def test_nobody_is_said_to_lack_anything_before_it_was_looked_for(run, engine):
    assert not engine.lacks("t")


@pytest.mark.parametrize("caller", ODD)
def test_what_is_kept_is_not_denied(run, engine, caller):
    looked(run, engine, caller)
    run(engine.vault.keep(caller, {"b": b"1"}, 3600))
    assert not engine.lacks(caller)
    looked(run, engine, caller)  # for another name
    assert not engine.lacks(caller)


def test_what_is_loaded_is_not_denied(run, engine):
    looked(run, engine)
    run(engine.load([Document("t", "k", "id", b""), VaultEntry("t", "b", b"1", 1 << 60)]))
    assert not engine.lacks("t")
    assert run(engine.vault.recall("t", ["b"])) == {"b": b"1"}


def test_who_has_nothing_left_may_be_said_to_lack_it(run, engine):
    run(engine.vault.keep("t", {"b": b"1"}, 3600))
    run(engine.wipe("t"))
    can_tell = isinstance(engine, MemoryEngine | SqliteEngine)
    assert looked(run, engine) is can_tell


def test_one_that_is_not_open_yet_says_nothing(run):
    later = DeferredEngine("memory:", "away")
    assert not later.lacks("t")
    run(later.check())
    run(later.vault.recall("t", ["a"]))
    assert later.lacks("t")


# --- those that can tell


@pytest.fixture(params=["memory", "sqlite"])
def telling(request, run, tmp_path):
    engine = MemoryEngine() if request.param == "memory" else run(SqliteEngine.open(str(tmp_path / "s.db")))
    yield engine
    run(engine.close())


@pytest.mark.parametrize("caller", ODD)
def test_a_look_in_vain_tells_it(run, telling, caller):
    assert looked(run, telling, caller)
    run(telling.vault.keep("somebody else", {"b": b"1"}, 3600))
    assert telling.lacks(caller) or looked(run, telling, caller)


def test_who_has_anything_is_never_said_to_lack_it(run, telling):
    run(telling.vault.keep("t", {"b": b"1"}, 3600))
    assert not looked(run, telling)


def test_no_more_callers_are_known_than_there_is_room_for(run, telling, monkeypatch):
    monkeypatch.setattr("wireglot.stores.sqlite.vault._MAX_LACKING", 3)
    monkeypatch.setattr("wireglot.stores.memory.engine._MAX_LACKING", 3)
    callers = [f"caller {number}" for number in range(10)]
    for caller in callers:
        assert looked(run, telling, caller)
    assert 1 <= sum(map(telling.lacks, callers)) <= 3


# --- one file, several processes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.db"


@pytest.fixture
def two(run, path):
    engines = [run(SqliteEngine.open(str(path))) for _ in range(2)]
    yield engines
    for engine in engines:
        run(engine.close())


@pytest.mark.parametrize("caller", ODD)
def test_what_another_one_keeps_is_not_denied(run, two, caller):
    one, other = two
    assert looked(run, one, caller)
    assert looked(run, other, caller)
    run(other.vault.keep(caller, {"b": b"1"}, 3600))
    assert not one.lacks(caller)
    assert not other.lacks(caller)
    assert run(one.vault.recall(caller, ["b"])) == {"b": b"1"}


def test_what_another_one_loads_is_not_denied(run, two):
    """`wireglot store import`, while a gateway runs."""
    one, other = two
    assert looked(run, one)
    run(other.load([VaultEntry("t", "b", b"1", 1 << 60), VaultEntry("u", "b", b"1", 1 << 60)]))
    assert not one.lacks("t")


def test_the_file_may_be_named_by_a_link(run, path, tmp_path):
    run(run_closed(path))
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    one, other = run(SqliteEngine.open(str(path))), run(SqliteEngine.open(str(link)))
    assert looked(run, one)
    run(other.vault.keep("t", {"b": b"1"}, 3600))
    assert not one.lacks("t")
    for engine in (one, other):
        run(engine.close())


async def run_closed(path: Path) -> None:
    await (await SqliteEngine.open(str(path))).close()


@pytest.mark.parametrize("before", [True, False])
def test_what_is_kept_while_it_is_looked_for_is_not_denied(run, two, path, monkeypatch, before):
    """Right before the word is looked at, or right behind that."""
    one, other = two
    words = one.vault.words
    look = words.look

    def overtaken(caller):
        seen = None if before else look(caller)
        with contextlib.closing(apsw.Connection(str(path))) as connection:
            connection.execute("INSERT INTO vault VALUES (?, 'b', ?, x'31')", (caller, 1 << 60))
        other.vault.words.change([caller])
        monkeypatch.undo()
        return look(caller) if before else seen

    monkeypatch.setattr(words, "look", overtaken)
    assert run(one.vault.recall("t", ["a"])) == {}
    assert not one.lacks("t")


def test_two_that_keep_at_once_leave_another_word_each(run, two):
    one, other = two
    run(one.vault.recall("t", ["a"]))
    words = []
    for engine in (one, other, one):
        engine.vault.words.change(["t"])
        words.append(one.vault.words.look("t"))
    assert len(set(words)) == 3


def _keep_in_another_process(path: str, caller: str) -> None:
    import asyncio

    async def work() -> None:
        engine = await SqliteEngine.open(path)
        await engine.vault.keep(caller, {"b": b"1"}, 3600)
        os._exit(0)  # as if killed right behind it

    asyncio.run(work())


def test_what_a_process_kept_that_died_at_once_is_not_denied(run, path):
    engine = run(SqliteEngine.open(str(path)))
    assert looked(run, engine)
    process = CHILDREN.Process(target=_keep_in_another_process, args=(str(path), "t"))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert not engine.lacks("t")
    assert run(engine.vault.recall("t", ["b"])) == {"b": b"1"}
    run(engine.close())


# --- a word that cannot be trusted is none


def test_it_is_known_for_a_minute(run, two, monkeypatch):
    """A version that knows of no words may keep something."""
    one, _ = two
    now = 1000.0
    monkeypatch.setattr(one.vault, "_clock", lambda: now)
    assert looked(run, one)
    now += LACKING_SECONDS - 1
    assert one.lacks("t")
    now += 1
    assert not one.lacks("t")


def test_another_store_in_the_place_of_the_file_is_another_store(run, two, path):
    one, _ = two
    assert looked(run, one)
    os.replace(path, path.with_name("away.db"))
    assert not one.lacks("t")
    assert not one.lacks("t")
    path.write_bytes(path.with_name("away.db").read_bytes())
    assert not one.lacks("t")
    os.replace(path.with_name("away.db"), path)


@pytest.mark.parametrize("harm", ["removed", "emptied", "unreadable"])
def test_without_the_words_nobody_can_tell_until_the_next_look(run, two, path, harm):
    one, other = two
    assert looked(run, one)
    words = path.with_name("s.db-kept")
    match harm:
        case "removed":
            words.unlink()
        case "emptied":
            words.write_bytes(b"")
        case _:
            words.unlink()
            words.mkdir()
    assert not one.lacks("t")
    assert looked(run, one) is (harm != "unreadable")
    run(other.vault.keep("t", {"b": b"1"}, 3600))
    assert not one.lacks("t")
    assert run(one.vault.recall("t", ["b"])) == {"b": b"1"}


def test_a_word_that_cannot_be_written_leaves_none(run, two, path, monkeypatch):
    """A full disk."""
    one, other = two
    assert looked(run, one)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("wireglot.stores.sqlite.vault.os.write", full)
        run(other.vault.keep("t", {"b": b"1"}, 3600))
    assert not one.lacks("t")
    assert not path.with_name("s.db-kept").exists()


def test_words_that_were_made_again_are_others(run, two, path):
    """Anyone who had the old file open writes there what nobody reads."""
    one, other = two
    assert looked(run, one)
    path.with_name("s.db-kept").unlink()
    assert looked(run, other)
    assert not one.lacks("t")


def test_the_words_are_closed_to_others_and_go_with_the_first_who_leaves(run, two, path):
    one, other = two
    assert looked(run, one)
    words = path.with_name("s.db-kept")
    assert words.stat().st_mode & 0o077 == 0
    assert words.stat().st_size == 4096
    run(other.close())
    assert not words.exists()
    assert not one.lacks("t")
    assert looked(run, one)


def test_what_comes_to_be_kept_when_nobody_waits_for_it_any_more_is_not_denied(run, two, monkeypatch):
    """A disk that hangs within the commit: its caller goes on, others look and find nothing, then it is there."""
    one, other = two
    connection = one._database._writer._connection
    get = connection.get
    hangs, goes_on = threading.Event(), threading.Event()

    class Hanging:
        def __init__(self, behind):
            self.behind = behind

        def __getattr__(self, name):
            return getattr(self.behind, name)

        def execute(self, statement, *given):
            if statement == "COMMIT":
                hangs.set()
                assert goes_on.wait(60)
            return self.behind.execute(statement, *given)

    monkeypatch.setattr(connection, "get", lambda: Hanging(get()))

    async def work():
        keeping = asyncio.create_task(one.vault.keep("t", {"b": b"1"}, 3600))
        await until(hangs.is_set)
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        assert await other.vault.recall("t", ["b"]) == {}
        goes_on.set()
        await until(lambda: not other.lacks("t"))

    run(work())
    assert run(other.vault.recall("t", ["b"])) == {"b": b"1"}
