"""Gateways of this user are found by others of their commands, as long as they live."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from wireglot.gateway.observe.running import RunningGateway, announced, find_running, left_over

fcntl = pytest.importorskip("fcntl")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs locks of files")

ONE = RunningGateway("http://127.0.0.1:1", 11, "1", "/etc/wireglot.toml")
TWO = RunningGateway("http://127.0.0.1:2", 12, "1")

HOLDER = (
    "import os, sys, time\n"
    "from wireglot.gateway.observe.running import RunningGateway, announced\n"
    "with announced(RunningGateway('http://127.0.0.1:3', os.getpid(), '1'), os.environ):\n"
    "    print('there', flush=True)\n"
    "    sys.stdin.read()\n"
)


def test_a_gateway_is_found_while_it_runs_the_newest_first(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with announced(ONE, environ):
        assert find_running(environ) == [ONE]
        with announced(TWO, environ):
            assert find_running(environ) == [TWO, ONE]
    assert find_running(environ) == []
    assert list((tmp_path / ".local/share/wireglot/running").iterdir()) == []


def test_what_it_says_is_for_its_user_alone(tmp_path: Path) -> None:
    with announced(ONE, {"HOME": str(tmp_path)}):
        (file,) = (tmp_path / ".local/share/wireglot/running").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_one_that_was_killed_is_not_found(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"there\n"
        assert [running.pid for running in find_running(environ)] == [holder.pid]
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    wait_until(lambda: not find_running(environ))
    assert list((tmp_path / ".local/share/wireglot/running").iterdir()) == []


def test_a_file_that_nobody_holds_says_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/wireglot/running"
    folder.mkdir(parents=True)
    (folder / "7.json").write_text('{"url": "http://127.0.0.1:9", "pid": 7, "version": "1"}')
    (folder / "other.txt").write_text("mine")
    assert find_running({"HOME": str(tmp_path)}) == []
    assert [entry.name for entry in folder.iterdir()] == ["other.txt"]


def test_nobody_is_found_where_there_is_no_home_or_nothing_can_be_written(tmp_path: Path) -> None:
    with announced(ONE, {}):
        assert find_running({}) == []
    (tmp_path / ".local").write_text("a file")
    with announced(ONE, {"HOME": str(tmp_path)}):
        assert find_running({"HOME": str(tmp_path)}) == []


def test_two_of_one_number_do_not_hide_each_other(tmp_path: Path) -> None:
    """In two containers that share a home."""
    environ = {"HOME": str(tmp_path)}
    twin = RunningGateway("http://127.0.0.1:9", ONE.pid, "1")
    with announced(twin, environ):
        with announced(ONE, environ):
            assert find_running(environ) == [ONE, twin]
        assert find_running(environ) == [twin]


def test_nothing_is_left_where_nothing_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    environ = {"HOME": str(tmp_path)}
    with announced(ONE, environ):
        assert find_running(environ) == []
        assert list((tmp_path / ".local/share/wireglot/running").iterdir()) == []


def test_what_dead_gateways_have_left_is_listed_and_kept(tmp_path: Path) -> None:
    """For a doctor who looks and changes nothing."""
    environ = {"HOME": str(tmp_path)}
    assert left_over(environ) == []
    folder = tmp_path / ".local/share/wireglot/running"
    with announced(ONE, environ):
        for name in ("b.json", "a.json", "note.txt"):
            (folder / name).write_text("{}")
        assert left_over(environ) == [folder / "a.json", folder / "b.json"]
    assert (folder / "a.json").exists()
    assert left_over({}) == []


def test_one_whose_folder_was_removed_can_be_found_again(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    with announced(ONE, environ) as announcement:
        assert (announcement.is_lost, find_running(environ)) == (False, [ONE])
        shutil.rmtree(tmp_path / "wireglot")
        assert (announcement.is_lost, find_running(environ)) == (True, [])
        announcement(ONE)
        assert (announcement.is_lost, find_running(environ)) == (False, [ONE])
    assert find_running(environ) == []
