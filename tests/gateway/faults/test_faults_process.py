"""FAULTS 103, 104, 105, 110: the command itself, its signals, its workers."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.gateway.faults.faults_kit import (
    Answered,
    Call,
    Client,
    every_dialect,
    is_complete,
    post,
    reported_in_stream,
)
from tests.gateway.faults.faults_stages import OWN_AND_CHAT, A
from tests.processes import ForkedCommand
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway import run
from wireglot.gateway.run import Process
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are Unix's")

LONG = "[[demo:text 12]]"


class Served:
    """A process of `wireglot serve` and where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self.port = 0

    def wait(self) -> None:
        def look() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            found = re.search(rb'"event":"listening".*?http://127\.0\.0\.1:(\d+)', self.log.read_bytes())
            self.port = int(found[1]) if found else 0
            return bool(found)

        wait_until(look)
        assert self.get("/healthz")[0] == 200  # it answers, so it hears signals too

    def start(self, client: Client, source: str) -> Call:
        model = f"{source}-up/m1"
        return Call(self.port, client.path(model, True), encode(client.body(model, LONG, True)))

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def serving(
    upstream: ScriptedUpstream,
    folder: Path,
    *arguments: str,
    more: str = "",
    start: Callable[..., subprocess.Popen[bytes]] = ForkedCommand,
) -> Iterator[Served]:
    (folder / "wireglot.toml").write_text(every_dialect(upstream) + more)
    log = folder / "log"
    environ = {**os.environ, "XDG_DATA_HOME": str(folder), "HOME": str(folder)}
    command = [sys.executable, "-m", "wireglot.cli", "serve", "--config", str(folder / "wireglot.toml")]
    with log.open("wb") as sink:
        process = start(
            [*command, "--port", "0", "--log", "json", *arguments],
            stderr=sink,
            stdout=sink,
            env=environ,
            process_group=0,  # as a shell does: Ctrl-C reaches the whole group
        )
    served = Served(process, log)
    try:
        served.wait()
        yield served
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE_SECONDS)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_asked_once_streams_finish_and_nobody_new_comes_in(tmp_path: Path) -> None:
    """FAULTS 103, 105"""
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path, start=subprocess.Popen) as served:
        upstream.otherwise = Behaviour(gap=0.03)
        calls = [(client, served.start(client, source)) for client, source in OWN_AND_CHAT]
        begun = [call.until(b"{") for _, call in calls]
        served.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not listens(served.port))
        for (client, call), first in zip(calls, begun, strict=True):
            rest = call.rest()
            assert is_complete(client, Answered(200, {}, first + rest.body, rest.whole))
        assert served.process.wait(DEADLINE_SECONDS) == 0
        assert served.log.read_bytes().count(b'"outcome":"ok"') == len(OWN_AND_CHAT)


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_asked_twice_every_stream_is_reported_and_the_process_ends(
    tmp_path: Path, name: signal.Signals
) -> None:
    """FAULTS 104: in every dialect, also in the middle of an answer, after which nothing is invented."""
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path) as served:
        upstream.otherwise = Behaviour(fault="stall-midstream")
        calls = [(client, served.start(client, source)) for client, source in OWN_AND_CHAT]
        begun = [call.until(b"{") for _, call in calls]
        served.process.send_signal(name)
        wait_until(lambda: not listens(served.port))
        served.process.send_signal(name)
        for (client, call), first in zip(calls, begun, strict=True):
            rest = call.rest()
            said = reported_in_stream(client, Answered(200, rest.headers, first + rest.body, rest.whole))
            expected = {"A": "overloaded_error", "C": "server_error", "R": "server_error", "G": "UNAVAILABLE"}
            assert said.type == expected[client.family]
        assert served.process.wait(DEADLINE_SECONDS) == 0
        assert served.log.read_bytes().count(b'"outcome":"gateway_abort"') == len(OWN_AND_CHAT)


@pytest.mark.whole
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=" ".join)
def test_reloads_asked_for_while_it_ends_change_nothing_about_its_end(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Up to the last moment: the default of SIGHUP is to kill the process."""
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path, *options) as served:
        served.process.send_signal(signal.SIGTERM)
        wait_until(lambda: b'"event":"draining"' in served.log.read_bytes())
        while served.process.poll() is None:
            served.process.send_signal(signal.SIGHUP)
        assert served.process.returncode == 0
        assert b'"event":"stopped"' in served.log.read_bytes()


def test_an_idle_process_ends_at_once(tmp_path: Path) -> None:
    """FAULTS 103"""
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path) as served:
        kept = http.client.HTTPConnection("127.0.0.1", served.port, timeout=DEADLINE_SECONDS)
        kept.request("GET", "/healthz")
        assert kept.getresponse().read()
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0
        kept.close()


def workers_of(served: Served) -> list[int]:
    """The children of the supervisor."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(served.process.pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def test_a_worker_that_dies_is_replaced_and_all_end_together(tmp_path: Path) -> None:
    """FAULTS 110, 103"""
    with (
        ScriptedUpstream() as upstream,
        serving(upstream, tmp_path, "--workers", "2", start=subprocess.Popen) as served,
    ):
        wait_until(lambda: len(workers_of(served)) == 2)
        model = "openai-chat-up/m1"
        body = encode(A.body(model, "hi", False))
        wait_until(lambda: b'state="answered"} 2' in served.get("/metrics")[1])
        for _ in range(12):
            assert post(served.port, "/v1/messages", body).status == 200
        text = served.get("/metrics")[1].decode()
        counted = re.findall(r'^wireglot_requests_total\{.*outcome="ok".*\} (\d+)', text, re.MULTILINE)
        assert sum(map(int, counted)) == 12, "anyone who is asked adds up all of them"
        victim = workers_of(served)[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in workers_of(served) and len(workers_of(served)) == 2)
        wait_until(lambda: b'state="answered"} 2' in served.get("/metrics")[1])
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0
        assert not listens(served.port)


@pytest.mark.whole
def test_two_processes_do_not_share_a_port(tmp_path: Path) -> None:
    """FAULTS 91: a port in use is reported, in one line."""
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path) as served:
        command = [sys.executable, "-m", "wireglot.cli", "serve", "--config", "wireglot.toml"]
        command += ["--port", str(served.port)]
        environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
        second = subprocess.run(
            command, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=20, check=False
        )
        assert second.returncode == 1
        assert "cannot listen" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_stream_that_began_before_the_signal_may_use_all_its_time(tmp_path: Path) -> None:
    """FAULTS 103: the drain has a limit of its own, after which streams are reported."""
    with ScriptedUpstream() as upstream:
        (tmp_path / "extra").mkdir()
        with serving(upstream, tmp_path) as served:
            (tmp_path / "wireglot.toml").write_text(every_dialect(upstream) + "[limits]\ndrain = 0.1\n")
            served.process.send_signal(signal.SIGHUP)
            wait_until(lambda: b'"event":"reloaded"' in served.log.read_bytes())
            upstream.otherwise = Behaviour(fault="stall-midstream")
            call = served.start(A, "openai-chat")
            first = call.until(b"{")
            began = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            rest = call.rest()
            assert time.monotonic() - began >= 0.1
            reported_in_stream(A, Answered(200, rest.headers, first + rest.body, rest.whole))
            assert served.process.wait(DEADLINE_SECONDS) == 0


@pytest.mark.whole
@pytest.mark.parametrize("workers", [1, pytest.param(8, marks=pytest.mark.whole)])
def test_a_reload_right_before_the_end_keeps_no_process_running(tmp_path: Path, workers: int) -> None:
    """FAULTS 103: both signals may arrive in one turn of the loop, and the reload must not swallow the
    cancellation that follows."""
    with ScriptedUpstream() as upstream:
        for attempt in range(2):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            with serving(upstream, folder, "--workers", str(workers)) as served:
                if workers > 1:
                    wait_until(partial(_all_answer, served, workers))
                    victim = workers_of(served)[0]
                    os.kill(victim, signal.SIGKILL)  # its replacement loads the configuration when it starts
                    wait_until(partial(_is_replaced, served, victim))
                    wait_until(partial(_all_answer, served, workers))
                served.process.send_signal(signal.SIGHUP)
                served.process.send_signal(signal.SIGTERM)
                assert served.process.wait(DEADLINE_SECONDS) == 0
                assert b'"event":"not closed"' not in served.log.read_bytes()


@pytest.mark.parametrize("turns", range(6))
def test_a_reload_in_the_turns_before_the_end_does_not_keep_it_from_ending(turns: int) -> None:
    """FAULTS 103: with none between them both are of one turn of the loop."""

    async def end_after_reload(process: Process) -> None:
        process.reload()
        for _ in range(turns):
            await asyncio.sleep(0)
        process.stop()
        await process.close()
        assert all(task.done() for task in process._tasks)

    with ScriptedUpstream() as upstream:
        gateway = LiveGateway(every_dialect(upstream)).start()
        try:
            gateway.call(end_after_reload(gateway.process))
        finally:
            gateway._end()


def test_a_signal_that_comes_when_all_requests_have_ended_drains_nothing_again() -> None:
    """FAULTS 104: nobody would wait for it, and the log would say that a stopped gateway drains."""

    async def end_and_stop_again(process: Process) -> None:
        process.stop()
        await asyncio.gather(*process._drains)
        await process.close()
        process.stop()
        assert all(drain.done() for drain in process._drains)

    with ScriptedUpstream() as upstream:
        gateway = LiveGateway(every_dialect(upstream)).start()
        try:
            gateway.call(end_and_stop_again(gateway.process))
        finally:
            gateway._end()


def test_a_signal_that_comes_while_everything_closes_gives_it_no_more_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deadlines: list[float] = []

    async def end_while_it_closes(process: Process) -> None:
        terminate = process._listen_to_signals(asyncio.get_running_loop())
        terminate()
        await process._stopping.wait()
        await asyncio.gather(*process._drains)
        closing = asyncio.create_task(process.close())
        await asyncio.sleep(0)
        terminate()
        await closing

    with ScriptedUpstream() as upstream:
        gateway = LiveGateway(every_dialect(upstream)).start()
        monkeypatch.setattr(run, "_exit_after", lambda seconds, fd: deadlines.append(seconds))
        monkeypatch.setattr(signal, "signal", lambda *_: None)  # only the main thread may
        try:
            gateway.call(end_while_it_closes(gateway.process))
        finally:
            gateway._end()
    assert len(deadlines) == 1


def _all_answer(served: Served, workers: int) -> bool:
    return b'state="answered"} %d' % workers in served.get("/metrics")[1]


def _is_replaced(served: Served, worker: int) -> bool:
    return worker not in workers_of(served)


STUCK = """
import asyncio, contextlib, sys, time
from pathlib import Path
from wireglot.cli.process_setup import run_loop
from wireglot.gateway import config, run

path, where, how = sys.argv[1:]

async def hang():
    while how == "awaits":
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    time.sleep(1e6)

class Stuck(run.Process):
    def stop(self):
        super().stop()
        if where == "drain":
            self._drains.append(asyncio.create_task(hang()))

    async def _close(self):
        await hang()

async def serve():
    settings = config.load(Path(path), overrides={"server": {"port": 0, "log": "json"}})
    await Stuck(settings, path=Path(path)).serve()

run.CLOSE_SECONDS = run.GRACE_SECONDS = 0.2
run_loop(serve())
"""


LATE = """
import asyncio, sys
from pathlib import Path
from wireglot.cli.process_setup import run_loop
from wireglot.gateway import config, run

path = sys.argv[1]

class Late(run.Process):
    again = None

    def stop(self):
        super().stop()
        if self.again is None:
            self.again = asyncio.Event()
            self._drains.append(asyncio.create_task(self.again.wait()))
        else:
            self.again.set()
            self._drains.append(asyncio.create_task(self.late()))

    async def late(self):
        await asyncio.sleep(0.2)
        self.observer.note("info", "late drain over")

async def serve():
    settings = config.load(Path(path), overrides={"server": {"port": 0, "log": "json"}})
    await Late(settings, path=Path(path)).serve()

run_loop(serve())
"""


def _says(log: Path, text: bytes) -> bool:
    return text in log.read_bytes()


@pytest.mark.whole
def test_a_drain_that_a_second_signal_began_is_awaited_before_anything_closes(tmp_path: Path) -> None:
    """FAULTS 104"""
    with ScriptedUpstream() as upstream:
        config = tmp_path / "wireglot.toml"
        config.write_text(every_dialect(upstream))
        environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
        log = tmp_path / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen([sys.executable, "-c", LATE, str(config)], stderr=sink, env=environ)
            try:
                for event in (b"listening", b"draining"):
                    wait_until(partial(_says, log, b'"event":"%b"' % event))
                    process.send_signal(signal.SIGTERM)
                assert process.wait(DEADLINE_SECONDS) == 0
            finally:
                process.kill()
        lines = log.read_bytes()
        assert 0 < lines.find(b'"event":"late drain over"') < lines.find(b'"event":"stopped"')


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["awaits", "blocks"])
@pytest.mark.parametrize("where", ["drain", "close"])
def test_a_process_that_hangs_at_its_end_ends_all_the_same(tmp_path: Path, where: str, how: str) -> None:
    """FAULTS 104: by a second signal while requests have time to finish, by itself when it closes."""
    with ScriptedUpstream() as upstream:
        config = tmp_path / "wireglot.toml"
        config.write_text(every_dialect(upstream) + "[limits]\ndrain = 300\ndrain_again = 0.1\n")
        environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
        log = tmp_path / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-c", STUCK, str(config), where, how], stderr=sink, stdout=sink, env=environ
            )
        served = Served(process, log)
        try:
            served.wait()
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: not listens(served.port))
            if where == "drain":
                process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 1
            assert b"most recent call first" in log.read_bytes(), "the log says where it was"
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE_SECONDS)
