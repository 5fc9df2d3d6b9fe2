"""A changed configuration is loaded when it is whole; a broken one changes nothing. And the lasting secret."""

import asyncio
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.gateway.config.config_files import QUIET, written
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.gateway.config import ConfigError, ConfigProblem, Watcher, load
from wireglot.gateway.config.problems import NotApproved
from wireglot.gateway.settings import Settings


class Seen:
    """A watcher over a file, and what it reported."""

    def __init__(self, path: Path | None, why_not: Callable[[bytes], str] | None = None) -> None:
        self.changes: list[Settings] = []
        self.errors: list[ConfigError] = []
        self.watcher = Watcher(
            path,
            self.changes.append,
            self.errors.append,
            environ=QUIET,
            interval=0.001,
            settle=0.001,
            why_not=why_not,
        )

    def look(self, times: int = 1) -> "Seen":
        for _ in range(times):
            self.watcher.step()
        return self

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.changes), len(self.errors)


def test_an_unchanged_file_is_not_loaded_again(tmp_path: Path) -> None:
    path = written(tmp_path, "[providers.demo]\n")
    seen = Seen(path).look(3)
    os.utime(path)
    assert seen.look(3).counts == (0, 0)


def test_a_change_is_loaded_once_it_stands_still(tmp_path: Path) -> None:
    seen = Seen(written(tmp_path, "[server]\nport = 1\n[providers.demo]\n"))
    written(tmp_path, "[server]\nport = 2\n[providers.demo]\n")
    assert seen.look().counts == (0, 0)
    assert seen.look().counts == (1, 0)
    assert seen.changes[0].server.port == 2
    assert seen.look(3).counts == (1, 0)


def test_a_broken_file_keeps_the_old_settings_and_is_reported_once(tmp_path: Path) -> None:
    seen = Seen(written(tmp_path, "[providers.demo]\n"))
    written(tmp_path, "[server]\nport = 'x'\n")
    assert seen.look(5).counts == (0, 1)
    assert seen.errors[0].problems[0].path == "server.port"
    written(tmp_path, "[server]\nport = 5\n[providers.demo]\n")
    assert seen.look(2).counts == (1, 1)


def test_a_file_that_is_being_written_is_not_loaded_halfway(tmp_path: Path) -> None:
    whole = "[server]\nport = 7\n[providers.demo]\n[models]\nfast = 'demo/demo'\n"
    seen = Seen(written(tmp_path, "[providers.demo]\n"))
    for length in range(0, len(whole) + 1, 3):
        written(tmp_path, whole[:length])
        seen.look()
    written(tmp_path, whole)
    assert seen.look(2).counts == (1, 0)
    assert [rule.match for rule in seen.changes[0].rules] == ["fast"]


def test_a_file_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    path = written(tmp_path, "[providers.demo]\n")
    seen = Seen(path)
    path.unlink()
    assert seen.look(4).counts == (0, 1)
    written(tmp_path, "[providers.demo]\n")
    assert seen.look(4).counts == (1, 1)


def test_a_changed_secret_file_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("one")
    seen = Seen(written(tmp_path, '[providers.openai]\napi_key = "file:key"\n'))
    (tmp_path / "key").write_text("two")
    assert seen.look(2).counts == (1, 0)
    assert seen.changes[0].providers["openai"].credentials[0].secret.value == "two"


@pytest.mark.parametrize("half", ["", "[providers.demo]\n", "[prov"])
def test_asked_for_in_the_middle_of_a_write_it_is_loaded_when_it_is_whole(tmp_path: Path, half: str) -> None:
    """[A1] SIGHUP too waits for two looks that agree, however short before the last look was."""
    seen = Seen(written(tmp_path, "[providers.demo]\n[server]\nport = 1\n"))
    written(tmp_path, half)
    seen.look()
    seen.watcher.step(asked=True)
    written(tmp_path, "[providers.demo]\n[server]\nport = 2\n")
    seen.watcher.step()
    assert seen.counts == (0, 0)
    assert seen.look().counts == (1, 0)
    assert seen.changes[0].server.port == 2
    assert seen.look(3).counts == (1, 0)


def test_asked_for_again_and_again_it_is_loaded_all_the_same(tmp_path: Path) -> None:
    """[A1] A storm of signals does not put a reload off."""
    seen = Seen(written(tmp_path, "[providers.demo]\n"))
    for _ in range(4):
        seen.watcher.step(asked=True)
    assert seen.counts == (2, 0)


@rows("empty", ["", "\n", "# nothing is set\n"])
@rows("asked", [True, False])
def test_an_emptied_file_is_refused(tmp_path: Path, empty: str, asked: bool) -> None:
    """[A1]"""
    seen = Seen(written(tmp_path, "[providers.demo]\n"))
    written(tmp_path, empty)
    seen.watcher.step(asked)
    assert seen.look(4).counts == (0, 1)
    assert seen.errors[0].problems[0].found == "an empty file"


def test_what_was_looked_at_is_loaded_and_not_what_stands_there_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A1] A writer may empty the file between the second look and the loading."""
    path = written(tmp_path, "[providers.demo]\n")
    seen = Seen(path)
    looked_at = b"[providers.demo]\n[server]\nport = 3\n"
    monkeypatch.setattr("wireglot.gateway.config.watch._content", lambda file: looked_at)
    assert seen.look(2).counts == (1, 0)
    assert seen.changes[0].server.port == 3


class Approvals(set[bytes]):
    def why_not(self, content: bytes) -> str:
        return "" if content in self else "not approved"


@pytest.mark.parametrize("asked", [True, False])
def test_content_that_is_not_approved_is_reported_once_and_loaded_once_it_is_approved(
    tmp_path: Path, asked: bool
) -> None:
    before, after = "[providers.demo]\n", "[providers.demo]\n[server]\nport = 3\n"
    approvals = Approvals({before.encode()})
    seen = Seen(written(tmp_path, before), approvals.why_not)
    written(tmp_path, after)
    seen.watcher.step(asked)
    assert seen.look(5).counts == (0, 1)
    assert isinstance(seen.errors[0], NotApproved)
    assert seen.errors[0].reason == "not approved"
    approvals.add(after.encode())
    seen.watcher.step(asked)
    assert seen.look(5).counts == (1, 1)
    assert seen.changes[0].server.port == 3
    written(tmp_path, before)
    assert seen.look(5).counts == (2, 1)


def test_content_that_is_approved_is_the_content_that_is_loaded(tmp_path: Path) -> None:
    """The file may be exchanged right after the approval was looked up."""
    good = "[providers.demo]\n[server]\nport = 3\n"
    path = written(tmp_path, "[providers.demo]\n")

    def why_not(content: bytes) -> str:
        written(tmp_path, "[providers.demo]\n[server]\nport = 4\n" if content == good.encode() else good)
        return "" if content == good.encode() else "not approved"

    seen = Seen(path, why_not)
    for _ in range(6):
        written(tmp_path, good)
        seen.look()
    assert {settings.server.port for settings in seen.changes} == {3}


def test_files_that_content_names_are_not_read_before_it_is_approved(tmp_path: Path) -> None:
    """One could be a pipe that never ends."""
    before, after = "[providers.demo]\n", '[providers.openai]\napi_key = "file:key"\n'
    approvals = Approvals({before.encode()})
    seen = Seen(written(tmp_path, before), approvals.why_not)
    (tmp_path / "key").write_text("one")
    written(tmp_path, after)
    seen.look(3)
    (tmp_path / "key").write_text("two")
    assert seen.look(3).counts == (0, 1), "a change of it would be reported again"
    approvals.add(after.encode())
    assert seen.look(3).counts == (1, 1)
    (tmp_path / "key").write_text("three")
    assert seen.look(3).counts == (2, 1)


def test_settings_that_their_user_refuses_are_reported(tmp_path: Path) -> None:
    """[A1]"""
    path = written(tmp_path, "[providers.demo]\n")
    errors: list[ConfigError] = []

    def refuse(settings: Settings) -> None:
        raise ConfigError([ConfigProblem("keys", "a key", "none")])

    watcher = Watcher(path, refuse, errors.append, environ=QUIET)
    for asked in (True, False):
        watcher.step(asked)
    assert [problem.path for error in errors for problem in error.problems] == ["keys"]


@pytest.mark.parametrize("with_file", [True, False])
def test_now_loads_soon_and_unchanged(tmp_path: Path, with_file: bool) -> None:
    seen = Seen(written(tmp_path, "[providers.demo]\n") if with_file else None)

    async def ask() -> None:
        running = asyncio.create_task(seen.watcher.run())
        seen.watcher.now()
        await until(lambda: seen.changes)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(ask())
    assert seen.counts == (1, 0)


def test_a_task_that_is_cancelled_while_it_is_asked_for_a_load_ends(tmp_path: Path) -> None:
    """However many turns of the loop lie between the two."""

    async def work(turns: int) -> None:
        seen = Seen(written(tmp_path, "[providers.demo]\n"))
        seen.watcher.interval = DEADLINE_SECONDS
        task = asyncio.create_task(seen.watcher.run())
        await asyncio.sleep(0.001)
        seen.watcher.now()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=DEADLINE_SECONDS)
        assert done, turns

    for turns in range(6):
        asyncio.run(work(turns))


def test_the_task_finds_a_change_by_itself(tmp_path: Path) -> None:
    seen = Seen(written(tmp_path, "[providers.demo]\n"))

    async def wait() -> None:
        running = asyncio.create_task(seen.watcher.run())
        written(tmp_path, "[server]\nport = 9\n[providers.demo]\n")
        await until(lambda: seen.changes)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(wait())
    assert seen.changes[0].server.port == 9


@pytest.mark.parametrize("text", ["a = 1" + "0" * 5000, ".".join("a" * 1500) + " = 1", 'a = "file:\\u0000"'])
def test_whatever_a_file_says_the_next_one_is_loaded(tmp_path: Path, text: str) -> None:
    seen = Seen(written(tmp_path, "[providers.demo]\n"))
    written(tmp_path, text)
    assert seen.look(4).counts == (0, 1)
    written(tmp_path, "[server]\nport = 5\n[providers.demo]\n")
    assert seen.look(2).counts == (1, 1)


def test_settings_that_cannot_be_taken_up_are_reported_without_their_content_and_the_task_goes_on(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "[providers.demo]\n")
    changes: list[Settings] = []
    errors: list[ConfigError] = []

    def take(settings: Settings) -> None:
        changes.append(settings)
        if len(changes) == 1:
            raise LookupError("sk-secret")

    async def ask() -> None:
        watcher = Watcher(path, take, errors.append, environ=QUIET, interval=60, settle=0.001)
        running = asyncio.create_task(watcher.run())
        for count in (1, 2):
            watcher.now()
            await until(partial(lambda count: len(changes) >= count, count))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(ask())
    assert [problem.found for error in errors for problem in error.problems] == ["LookupError"]
    assert "sk-secret" not in str(errors[0])


def test_a_secret_is_made_once_and_only_for_the_user(tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    first, second = load(None, environ=environ).server.secret, load(None, environ=environ).server.secret
    place = tmp_path / "wireglot" / "secret"
    assert first == second
    assert first.value == place.read_text().strip()
    assert first.source == f"file:{place}"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in place.parent.iterdir()] == ["secret"]


def test_looking_at_a_configuration_leaves_nothing_behind(tmp_path: Path) -> None:
    settings = load(None, environ={"XDG_DATA_HOME": str(tmp_path)}, create_secret=False)
    assert list(tmp_path.iterdir()) == []
    assert not any("persistent" in note for note in settings.notes)


def test_without_a_home_the_secret_lives_as_long_as_the_process() -> None:
    first, second = load(None, environ={}), load(None, environ={})
    assert first.server.secret == second.server.secret
    assert first.server.secret.source == "random"
    assert len(first.server.secret.value) == 64
    assert any("persistent" in note for note in first.notes)


def test_a_home_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "wireglot").write_text("in the way")
    settings = load(None, environ={"XDG_DATA_HOME": str(tmp_path)})
    assert settings.server.secret.source == "random"
    assert any(str(tmp_path) in note for note in settings.notes)


def test_a_spoilt_secret_file_is_a_note_and_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "wireglot" / "secret"
    place.parent.mkdir()
    place.write_text("short")
    settings = load(None, environ={"XDG_DATA_HOME": str(tmp_path)})
    assert settings.server.secret.source == "random"
    assert place.read_text() == "short"
    assert any("no valid secret" in note for note in settings.notes)


def test_a_given_secret_wins(tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path), **QUIET}
    assert load(None, environ=environ).server.secret.source == "env:WIREGLOT_SECRET"
    assert list(tmp_path.iterdir()) == []
