"""Several workers and the process above them: signals at a bad moment, and what is left when it is gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.gateway.faults.faults_kit import (
    BY_NAME,
    Answered,
    every_dialect,
    is_complete,
    post,
    provider,
)
from tests.gateway.faults.test_faults_process import Served, listens, serving, workers_of
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.settings import ServerSettings, Settings
from wireglot.gateway.supervisor import Supervisor, _bound, _reserve
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are Unix's")

A = BY_NAME["anthropic"]


@contextmanager
def workers(upstream: ScriptedUpstream, folder: Path) -> Iterator[Served]:
    """Two of them, both up."""
    with serving(upstream, folder, "--workers", "2") as served:
        wait_until(lambda: b'state="answered"} 2' in served.get("/metrics")[1])
        yield served


def alive(worker: int) -> bool:
    try:
        os.kill(worker, 0)
    except ProcessLookupError:
        return False
    # One whose parent has gone stays as a zombie where nobody reaps it.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(worker)], capture_output=True, check=False)
    return bool(state.stdout.strip()) and not state.stdout.startswith(b"Z")


@pytest.mark.whole
def test_a_signal_that_comes_while_a_dead_worker_is_to_be_replaced_ends_all(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        victim = workers_of(served)[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in workers_of(served))  # the pause before the next one has begun
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0
        assert not listens(served.port)


def test_a_worker_that_is_stopped_ends_with_the_others(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        os.kill(workers_of(served)[0], signal.SIGSTOP)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0
        assert served.log.read_bytes().count(b'"event":"stopped"') == 2


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    """One that listens to signals and has no workers yet."""
    made = Supervisor(Settings(), lambda settings, place: 0)
    made._signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = signal.signal(signal.SIGTERM, made._pass_on)
    yield made
    signal.signal(signal.SIGTERM, before)


def test_a_signal_that_comes_during_a_fork_reaches_the_new_worker(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as worker:

        def fork() -> int:
            os.kill(os.getpid(), signal.SIGTERM)
            return worker.pid

        monkeypatch.setattr(os, "fork", fork)
        try:
            supervisor._start(0)
            assert worker.wait(DEADLINE_SECONDS) == -signal.SIGTERM
        finally:
            worker.kill()


def test_after_a_signal_nobody_is_started_and_nothing_is_waited_for(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    os.kill(os.getpid(), signal.SIGTERM)
    supervisor._pause(1e9)
    supervisor._start(0)
    assert supervisor._workers == {}
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_without_their_supervisor_workers_finish_what_they_have_and_end(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        orphans = workers_of(served)
        assert len(orphans) == 2
        try:
            upstream.otherwise = Behaviour(gap=0.05)
            call = served.start(A, "openai-chat")
            first = call.until(b"{")
            served.process.kill()
            served.process.wait(DEADLINE_SECONDS)
            wait_until(lambda: not listens(served.port))
            rest = call.rest()
            assert is_complete(A, Answered(200, {}, first + rest.body, rest.whole))
            wait_until(lambda: not any(map(alive, orphans)))
            assert served.log.read_bytes().count(b'"event":"stopped"') == 2
        finally:
            for orphan in filter(alive, orphans):
                os.kill(orphan, signal.SIGKILL)


def test_ctrl_c_in_a_terminal_counts_once_for_each_worker(tmp_path: Path) -> None:
    """A terminal sends the signal to the whole process group, and the supervisor passes it on."""
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        upstream.otherwise = Behaviour(gap=0.05)
        call = served.start(A, "openai-chat")
        first = call.until(b"{")
        os.killpg(served.process.pid, signal.SIGINT)
        rest = call.rest()
        assert is_complete(A, Answered(200, {}, first + rest.body, rest.whole))
        assert served.process.wait(DEADLINE_SECONDS) == 0
        log = served.log.read_bytes()
        assert (log.count(b'"event":"draining"'), log.count(b'"event":"stopped"')) == (2, 2)


def test_ctrl_c_pressed_again_ends_requests_of_workers(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        upstream.otherwise = Behaviour(fault="stall-midstream")
        call = served.start(A, "openai-chat")
        call.until(b"{")
        os.killpg(served.process.pid, signal.SIGINT)
        wait_until(lambda: not listens(served.port))
        os.killpg(served.process.pid, signal.SIGINT)
        call.rest()
        assert served.process.wait(DEADLINE_SECONDS) == 0
        assert served.log.read_bytes().count(b'"outcome":"gateway_abort"') == 1


@pytest.mark.whole  # tests/gateway/faults has two processes at every change
def test_two_supervisors_do_not_share_a_port(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        command = [
            sys.executable,
            "-m",
            "wireglot.cli",
            "serve",
            "--config",
            "wireglot.toml",
            "--workers",
            "2",
            "--port",
            str(served.port),
        ]
        environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
        second = subprocess.run(
            command, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=20, check=False
        )
        assert second.returncode == 1
        where = f"127.0.0.1:{served.port}"
        assert second.stderr.startswith(
            f"wireglot: cannot listen on {where}: Address already in use by your gateway "
        )
        assert second.stderr.count("\n") == 1
        assert served.get("/healthz")[0] == 200
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0


@pytest.mark.parametrize("shared", [True, False])
def test_connections_of_an_earlier_process_do_not_hold_the_port(shared: bool) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        taken, _ = listener.accept()
    with client, taken:
        _bound(ServerSettings(port=port), shared=shared).close()
    with socket.create_server(("127.0.0.1", port), reuse_port=True), pytest.raises(OSError, match="in use"):
        _bound(ServerSettings(port=port), shared=False)


def test_a_worker_that_replaces_another_has_the_configuration_of_now(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, workers(upstream, tmp_path) as served:
        added = every_dialect(upstream) + provider("added", upstream, "openai-chat")
        (tmp_path / "wireglot.toml").write_text(added)
        served.process.send_signal(signal.SIGHUP)
        wait_until(lambda: served.log.read_bytes().count(b'"event":"reloaded"') >= 2)
        before = workers_of(served)
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(served)) - set(before)) == 2)
        wait_until(lambda: served.log.read_bytes().count(b'"event":"reloaded"') >= 4)
        body = encode(A.body("added/m1", "hi", False))
        for _ in range(6):
            assert post(served.port, "/v1/messages", body).status == 200
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0


# The parent, with workers that are only numbers.


class Children:
    """Numbers in place of processes: each dies as the script says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, deaths: list[tuple[float, int]]) -> None:
        """`deaths`: after how many seconds the next one ends, and with which status."""
        self.started: list[float] = []
        self.killed: list[tuple[int, int]] = []
        self.pauses: list[float] = []
        self._deaths = deaths
        self._now = 0.0
        monkeypatch.setattr(os, "fork", self._fork)
        monkeypatch.setattr(os, "waitpid", self._wait)
        monkeypatch.setattr(os, "kill", lambda child, name: self.killed.append((child, name)))
        monkeypatch.setattr("time.monotonic", lambda: self._now)
        monkeypatch.setattr("time.sleep", self._sleep)

    def _fork(self) -> int:
        self.started.append(self._now)
        return len(self.started)

    def _wait(self, *_: int) -> tuple[int, int]:
        seconds, status = self._deaths.pop(0)
        self._now += seconds
        return len(self.started), status << 8

    def _sleep(self, seconds: float) -> None:
        self._now += seconds


def watched(
    monkeypatch: pytest.MonkeyPatch, deaths: list[tuple[float, int]]
) -> tuple[Children, Supervisor, int]:
    children = Children(monkeypatch, deaths)
    made = Supervisor(Settings(server=ServerSettings(workers=1)), lambda settings, place: 0)
    made._signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    handlers = {name: signal.getsignal(name) for name in made._signals}
    try:
        made._start(0)
        return children, made, made._watch()
    finally:
        for name, handler in handlers.items():
            signal.signal(name, handler)


def test_workers_that_do_not_stay_up_end_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    children, _, status = watched(monkeypatch, [(0.0, 1)] * 5)
    assert (status, len(children.started)) == (1, 5)
    pauses = [later - earlier for earlier, later in pairwise(children.started)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6], abs=0.06)
    assert capsys.readouterr().err == "wireglot: the workers keep exiting\n"


def test_a_worker_that_lived_is_replaced_at_once_and_forgives_what_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    children, _, _ = watched(monkeypatch, [(10.0, 1), *[(0.0, 1)] * 4])
    assert children.started[1] == 10.0
    deaths = [(0.0, 1), (0.0, 1), (10.1, 1), (0.0, 1), (0.0, 1), (0.0, 1), (0.0, 1), (0.0, 1)]
    children, _, status = watched(monkeypatch, deaths)
    assert (status, len(children.started)) == (1, 8)
    pauses = [later - earlier for earlier, later in pairwise(children.started)]
    assert pauses == pytest.approx([0.2, 0.4, 10.1, 0.2, 0.4, 0.8, 1.6], abs=0.06)


def test_a_pause_before_a_worker_is_replaced_has_a_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch, [(0.0, 1)] * 10)
    made = Supervisor(Settings(server=ServerSettings(workers=2)), lambda settings, place: 0)
    made._signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = signal.getsignal(signal.SIGHUP)
    try:
        made._start(0)
        assert made._watch() == 1
    finally:
        signal.signal(signal.SIGHUP, before)
    pauses = [later - earlier for earlier, later in pairwise(children.started)]
    assert max(pauses) == pytest.approx(2.0, abs=0.06)
    assert len(children.started) == 10


def test_signals_reach_every_worker_and_a_stop_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch, [(0.0, 0)])
    made = Supervisor(Settings(), lambda settings, place: 0)
    made._workers = {7: (0, 0.0), 8: (1, 0.0)}
    before = signal.getsignal(signal.SIGHUP)
    try:
        made._pass_on(signal.SIGHUP, None)
        assert (children.killed, made._stopping) == ([(7, signal.SIGHUP), (8, signal.SIGHUP)], 0)
        made._pass_on(signal.SIGINT, None)
        ends = [(worker, name) for worker in (7, 8) for name in (signal.SIGTERM, signal.SIGCONT)]
        assert children.killed[2:] == ends
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert made._stopping == 1
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_worst_status_of_a_worker_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Supervisor(Settings(), lambda settings, place: 0)
    made._workers, made._stopping = {7: (0, 0.0), 8: (1, 0.0), 9: (2, 0.0)}, 1
    ends = iter([(7, 0), (5, 4 << 8), (8, 3 << 8), (9, 1 << 8)])
    monkeypatch.setattr(os, "waitpid", lambda *_: next(ends))
    assert made._watch() == 3


@pytest.mark.parametrize(
    ("killed_by", "status"), [(signal.SIGTERM, 0), (signal.SIGALRM, 1), (signal.SIGKILL, 1)]
)
def test_a_worker_that_is_killed_at_the_end_is_a_failure(
    killed_by: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM itself kills one that has not begun to serve."""
    made = Supervisor(Settings(), lambda settings, place: 0)
    made._workers, made._stopping = {7: (0, 0.0), 8: (1, 0.0)}, 1
    ends = iter([(7, killed_by), (8, 0)])
    monkeypatch.setattr(os, "waitpid", lambda *_: next(ends))
    assert made._watch() == status


def test_without_fork_there_is_only_one_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    assert Supervisor(Settings(), lambda settings, place: 0).run() == 2
    assert "--workers needs a system with fork and SO_REUSEPORT" in capsys.readouterr().err


def test_a_reserved_port_is_the_same_for_all_workers() -> None:
    reserved, settings = _reserve(Settings(server=ServerSettings(port=0)))
    with reserved:
        assert settings.server.port == reserved.getsockname()[1] > 0
        assert reserved.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
        assert reserved.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
        _bound(settings.server, shared=True).close()
    if socket.has_dualstack_ipv6():
        with _bound(ServerSettings(host="::1", port=0), shared=False) as bound:
            assert bound.family == socket.AF_INET6
            assert bound.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            assert not bound.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
