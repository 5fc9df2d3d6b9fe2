"""What lives beside a client: its folder, its process, and what ends after it. Without a gateway."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.cli.run import gateway
from wireglot.cli.run.gateway import ClientFolder, DidNotStart, Own, _Client, _Ends, _is_there, _Reported


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_named_by_its_process_and_locked(below: Path) -> None:
    folder = ClientFolder()
    assert folder.path.parent == below
    assert folder.path.name.startswith(f"wireglot-run-{os.getpid()}-")
    with pytest.raises(BlockingIOError):
        gateway._remove_unless_held(folder.path)
    assert folder.path.is_dir()
    os.close(folder.descriptor)
    folder.remove()
    assert not folder.path.exists()


def test_only_folders_of_processes_that_are_gone_are_removed(
    below: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_is_there", lambda pid: pid == 5)
    names = ("wireglot-run-4-x", "wireglot-run-5-x", "wireglot-run-6-open", "wireglot-run-x-y", "other-4-x")
    for name in names:
        (below / name).mkdir(mode=0o755 if name.endswith("open") else 0o700)
    (below / "wireglot-run-7-link").symlink_to(below / "other-4-x")
    (below / "wireglot-run-4-x" / "file").write_text("x")
    gateway._remove_left_behind(below)
    assert sorted(each.name for each in below.iterdir()) == sorted([*names[1:], "wireglot-run-7-link"])
    gateway._remove_left_behind(below / "nowhere")


@rows(
    ("problem", "there"),
    [(None, True), (ProcessLookupError(), False), (PermissionError(), True), (OverflowError(), True)],
    ids=["ours", "gone", "another user's", "no number"],
)
def test_whether_a_process_is_there(monkeypatch: pytest.MonkeyPatch, problem: Any, there: bool) -> None:
    def kill(pid: int, name: int) -> None:
        assert (pid, name) == (7, 0)
        if problem is not None:
            raise problem

    monkeypatch.setattr(os, "kill", kill)
    assert _is_there(7) is there


def test_the_end_of_a_process_is_looked_for_where_nothing_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pidfd_open", lambda pid: (_ for _ in ()).throw(OSError()), raising=False)
    client = _Client()
    assert client.descriptor == -1
    looked: list[Any] = []

    def kill(pid: int, name: int) -> None:
        looked.append((pid, name))
        if len(looked) == 5:
            raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(time, "sleep", looked.append)
    client.wait_for_end()
    me = (os.getpid(), 0)
    assert looked == [me, 1.0, me, 1.0, me]


class Client:
    """A client that ends when it is told to."""

    descriptor = -1

    def __init__(self) -> None:
        self.ended = threading.Event()

    def wait_for_end(self) -> None:
        self.ended.wait(DEADLINE_SECONDS)


@rows("early", [True, False], ids=["before its gateway is there", "afterwards"])
def test_a_gateway_is_asked_to_end_after_its_client(monkeypatch: pytest.MonkeyPatch, early: bool) -> None:
    left: list[Any] = []
    over = threading.Event()

    def leave(status: int) -> None:
        left.append(status)
        over.set()

    waited = threading.Event()

    def sleep(seconds: float) -> None:
        left.append(seconds)
        waited.wait(DEADLINE_SECONDS)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(time, "sleep", sleep)
    client: Any = Client()
    folder: Any = type("Folder", (), {"remove": lambda self: left.append("removed")})()

    async def work() -> None:
        ends = _Ends(client, folder)
        ended = asyncio.Event()
        if early:
            client.ended.set()
            while not ends._has_ended:
                await asyncio.sleep(0)
            ends.tell(asyncio.get_running_loop(), ended)
            assert ended.is_set(), "at once"
        else:
            ends.tell(asyncio.get_running_loop(), ended)
            assert not ended.is_set()
            client.ended.set()
        await asyncio.wait_for(ended.wait(), DEADLINE_SECONDS)

    asyncio.run(work())
    waited.set()
    assert over.wait(DEADLINE_SECONDS)
    assert left == [30.0, "removed", 1]


@rows(
    ("reported", "said"),
    [
        (_Reported(problem="its port is taken"), "its port is taken"),
        (_Reported(), "its gateway stopped immediately"),
    ],
    ids=["why", "no word"],
)
def test_a_gateway_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, reported: _Reported, said: str
) -> None:
    monkeypatch.setattr(gateway, "_in_background", lambda work, kept: reported)
    own: Any = Own(file=None, environ={}, overrides={})  # type: ignore[arg-type]  # it is not read
    with pytest.raises(DidNotStart, match=said):
        gateway.start_gateway(own, None)


def test_what_a_process_keeps_open(monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
    folder, kept = ClientFolder(), list[Any]()

    def background(work: Any, descriptors: Any) -> _Reported:
        kept.append(descriptors)
        return _Reported("http://h:1")

    monkeypatch.setattr(gateway, "_in_background", background)
    own: Any = Own(file=None, environ={}, overrides={})  # type: ignore[arg-type]  # it is not read
    assert gateway.start_gateway(own, folder) == gateway.start_gateway(own, None) == "http://h:1"
    gateway.remove_afterwards(folder)
    assert [each[1] for each in kept] == [folder.descriptor, -1, folder.descriptor]
    assert all(each[0] >= 0 for each in kept)
    os.close(folder.descriptor)


def test_a_folder_goes_after_its_client(monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
    steps: list[Any] = []
    monkeypatch.setattr(_Client, "wait_for_end", lambda self: steps.append("ended"))
    monkeypatch.setattr(gateway, "_in_background", lambda work, kept: work(steps.append))
    folder = ClientFolder()
    gateway.remove_afterwards(folder)
    assert steps == [_Reported(), "ended"]
    assert not folder.path.exists()
    os.close(folder.descriptor)


def test_what_a_background_process_tells_is_read(below: Path) -> None:
    assert gateway._in_background(lambda tell: tell(_Reported("http://h:2")), ()) == _Reported("http://h:2")
    assert gateway._in_background(lambda tell: None, ()) == _Reported()
