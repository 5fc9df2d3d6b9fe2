"""A process whose event loop hangs: it ends by itself or is replaced, and the log says where it hung."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.watchdog import TICK_SECONDS, Pulses, Silence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are Unix's")

SCRIPT = """
import asyncio, os, re, sys, threading
from pathlib import Path
from wireglot.cli.process_setup import run_loop
from wireglot.gateway import config, run
from wireglot.gateway.supervisor import Supervisor

path, how = sys.argv[1:]
settings = config.load(Path(path))

def python_that_does_not_end():
    while True:
        pass

def one_call_into_c():
    re.match("(a|a)*b", "a" * 60)

def one_call_into_c_in_a_thread():
    threading.Thread(target=one_call_into_c).start()

def a_wait_that_does_not_end():
    threading.Event().wait()

def hang():
    os.write(2, b"hanging\\n")
    globals()[how]()

class Hanging(run.Process):
    async def start(self):
        await super().start()
        place = self._place
        if place is None or (place.index == 0 and not place.again):
            asyncio.get_running_loop().call_later(0.1, hang)

def work(settings, place):
    run_loop(Hanging(settings, path=Path(path), watches=False, place=place, guarded=True).serve())
    return 0

if settings.server.workers > 1:
    sys.exit(Supervisor(settings, work).run())
sys.exit(work(settings, None))
"""
HANGS = [
    "python_that_does_not_end",
    "one_call_into_c",
    "one_call_into_c_in_a_thread",
    "a_wait_that_does_not_end",
]


SIGNALS = """
import asyncio, os, signal
from wireglot.gateway.watchdog import Pulses, Watchdog

read = os.read
os.read = lambda descriptor, size: read(descriptor, min(size, 7))  # as if it were still being written

async def main():
    heard = []
    pulses = Pulses(1)
    watchdog = Watchdog(lambda: 9.0, 2, lambda: heard.append(1), pulses=pulses)
    watchdog.start()
    for _ in range(3):
        signal.raise_signal(signal.SIGTERM)
        for _ in range(1000):
            await asyncio.sleep(0)
    beats = pulses.read(0)[0]
    watchdog.stop()
    print(len(heard), beats > 0, pulses.read(0))

asyncio.run(main())
"""


OTHER_THREADS = """
import asyncio, ctypes, signal
from wireglot.gateway.watchdog import Pulses, Watchdog

libc = ctypes.CDLL(None)

def thread_without_python():
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)
    return thread.value

async def main():
    heard = []
    pulses = Pulses(1)

    async def beats(count):
        until = pulses.read(0)[0] + count
        while pulses.read(0)[0] < until:
            await asyncio.sleep(0.01)

    watchdog = Watchdog(lambda: 9.0, 2, lambda: heard.append(1), pulses=pulses)
    watchdog.start()
    for thread in (thread_without_python(), None, thread_without_python()):
        if thread is None:
            signal.raise_signal(signal.SIGTERM)
        else:
            signal.pthread_kill(thread, signal.SIGTERM)
        await beats(3)
        print(len(heard))
    watchdog.stop()

asyncio.run(main())
"""


class Started:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def says(self, text: bytes) -> bool:
        return text in self.log.read_bytes()


@contextmanager
def started(folder: Path, how: str, *, hang: float, workers: int = 1) -> Iterator[Started]:
    folder.mkdir(exist_ok=True)
    config = folder / "wireglot.toml"
    server = f'[server]\nport = 0\nlog = "json"\nworkers = {workers}\n'
    config.write_text(f'{server}[store]\nurl = "memory:"\n[limits]\nhang = {hang}\n[providers.demo]\n')
    environ = {**os.environ, "XDG_DATA_HOME": str(folder), "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(config), how], stderr=log, stdout=log, env=environ
        )
    try:
        yield Started(process, folder / "log")
    finally:
        process.kill()
        process.wait(DEADLINE_SECONDS)


@pytest.mark.parametrize("how", HANGS)
def test_a_process_that_hangs_ends_and_says_where(tmp_path: Path, how: str) -> None:
    with started(tmp_path, how, hang=2) as served:
        status = served.process.wait(DEADLINE_SECONDS)
        # No Python code runs in a thread while a call into C holds the interpreter.
        assert status == (-signal.SIGPROF if how.startswith("one_call") else 1)
        assert served.says(how.removesuffix("_in_a_thread").encode()), "the stack"


def test_sigterm_ends_a_process_that_hangs_and_is_not_watched(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        running = {
            how: stack.enter_context(started(tmp_path / how, how, hang=0)) for how in (HANGS[0], HANGS[2])
        }
        for served in running.values():
            wait_until(partial(served.says, b"hanging"))
            served.process.send_signal(signal.SIGTERM)
            served.process.send_signal(signal.SIGTERM)
        for how, served in running.items():
            assert served.process.wait(DEADLINE_SECONDS) == -signal.SIGALRM
            assert served.says(how.removesuffix("_in_a_thread").encode()), "the stack"


def test_a_signal_counts_once_when_its_stack_arrives_in_pieces() -> None:
    """Another thread may handle it, which is still writing when the loop reads the first part. Afterwards no
    supervisor expects a sign of life: the process is ending, within a time of its own."""
    command = [sys.executable, "-c", SIGNALS]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE_SECONDS)
    assert ended.stdout == b"3 True (0, 0.0)\n"


@pytest.mark.skipif(sys.platform == "darwin", reason="the type of a thread's id is Linux's")
def test_a_signal_counts_once_in_whichever_thread_it_arrives() -> None:
    """After SIGSTOP and SIGCONT, for instance, any thread gets it, also one that runs no Python, as those of
    uvloop do: faulthandler has no stack to write for such a thread."""
    command = [sys.executable, "-c", OTHER_THREADS]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE_SECONDS)
    assert ended.stdout.split() == [b"1", b"2", b"3"]


@pytest.mark.parametrize("how", [HANGS[0], HANGS[2]])
def test_a_worker_that_hangs_is_replaced_and_leaves_no_process(tmp_path: Path, how: str) -> None:
    with started(tmp_path, how, hang=5, workers=2) as served:
        wait_until(lambda: served.says(b"worker 0 not responding for 5 s"))
        wait_until(lambda: served.says(how.removesuffix("_in_a_thread").encode()))
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(served.process.pid)], capture_output=True, check=True
        )
        wait_until(lambda: served.log.read_bytes().count(b'"event":"listening"') == 2)
        workers = [int(line) for line in found.stdout.split()]
        assert workers
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(DEADLINE_SECONDS) == 0
        for worker in workers:
            with pytest.raises(ProcessLookupError):
                os.kill(worker, 0)


def test_time_in_which_the_observer_does_not_run_is_no_silence() -> None:
    now = 0.0
    silence = Silence(lambda: now)
    silence.look(1)
    for _ in range(10):
        now += 3600  # it was suspended
        assert silence.look(1) <= 10 * 2 * TICK_SECONDS
    for _ in range(10):
        now += TICK_SECONDS
        silence.look(1)
    assert silence.seconds == 10 * 2 * TICK_SECONDS + 10 * TICK_SECONDS
    assert silence.look(2) == 0


def test_a_worker_that_has_not_begun_to_serve_is_not_silent() -> None:
    pulses = Pulses(2)
    assert pulses.read(1) == (0, 0.0)
    pulses.beat(1, 60.0)
    pulses.beat(1, 30.0)
    assert (pulses.read(0), pulses.read(1)) == ((0, 0.0), (2, 30.0))
    pulses.forget(1)
    assert pulses.read(1) == (0, 0.0)
