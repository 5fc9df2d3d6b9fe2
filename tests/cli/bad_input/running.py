"""Runs a case of the table, in this process or as one of its own, and gives what it said and its status."""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from unittest import mock

from tests.cli.bad_input.case import Case
from tests.cli.bad_input.world import Hosts
from tests.cli.running import run_in
from tests.processes import ForkedCommand, heed_hangups
from tests.tiers import WHOLE
from tests.waiting import DEADLINE_SECONDS

COMMAND: Final = [sys.executable, "-m", "wireglot"]
ALL_AS_PROCESSES: Final = WHOLE
_TRIES: Final = 4

_AT: Final = """\
import os, runpy, signal, sys

class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == {at!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.{signal})

sys.meta_path.insert(0, Hook())
runpy.run_module("wireglot", run_name="__main__", alter_sys=True)
"""
"""The command, which gets a signal when it loads a module: always at the same place."""

_TIMES_FASTER: Final = 400.0


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    said: str


def _started(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """For what depends on how the interpreter begins or ends."""
    return subprocess.Popen(command, preexec_fn=heed_hangups, **options)


def run_case(case: Case, hosts: Hosts, folder: Path, environ: Mapping[str, str]) -> Done:
    arguments = shlex.split(case.line.format(**hosts.names))
    for line in case.before:
        made = run_here(shlex.split(line), Case(line), environ, folder)
        assert made.status == 0, made
    environ = {**environ, **case.env}
    is_silent = "{silent}" in case.line and not case.while_asking
    if case.how == "here" and (not ALL_AS_PROCESSES or is_silent):
        return run_here(arguments, case, environ, folder)
    return _process(arguments, case, environ, folder, hosts)


def run_here(arguments: list[str], case: Case, environ: Mapping[str, str], folder: Path) -> Done:
    """Nobody waits here for as long as a silent host is given."""
    wait = socket.socket.settimeout

    def briefly(sock: socket.socket, seconds: float | None) -> None:
        wait(sock, seconds and seconds / _TIMES_FASTER)

    is_silent = "{silent}" in case.line
    with mock.patch.object(socket.socket, "settimeout", briefly) if is_silent else nullcontext():
        done = run_in(folder, environ, *arguments, given=case.given)
    return Done(done.returncode, done.stdout, done.stderr)


def _process(
    arguments: list[str], case: Case, environ: Mapping[str, str], folder: Path, hosts: Hosts
) -> Done:
    command = [*COMMAND, *arguments]
    start: Callable[..., subprocess.Popen[bytes]] = ForkedCommand
    if case.at:
        command = [sys.executable, "-c", _AT.format(at=case.at, signal=case.signal), *arguments]
        start = _started
    out: int | IO[bytes] = subprocess.PIPE
    match case.how:
        case "disk full":
            out = os.open("/dev/full", os.O_WRONLY)
            start = _started
        case "pipe left":
            reading, out = os.pipe()
            os.close(reading)
        case "output closed":
            command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
            start = _started
    hosts.silent.asked.clear()
    process = start(
        command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE
    )
    if isinstance(out, int) and out >= 0:
        os.close(out)
    heard = b""
    if case.while_asking:
        assert hosts.silent.asked.wait(DEADLINE_SECONDS), "it asks nobody"
        process.send_signal(getattr(signal, case.signal))
    if case.until:
        heard = heard_until(process, case.until.encode(), DEADLINE_SECONDS)
        process.send_signal(getattr(signal, case.signal))
    written, said = _ended(process, case)
    status = process.returncode
    return Done(128 - status if status < 0 else status, (written or b"").decode(), (heard + said).decode())


def heard_until(process: subprocess.Popen[bytes], words: bytes, seconds: float) -> bytes:
    """Its standard error up to these words. Where they do not come in time the process is ended, and what came instead
    is in the failure."""
    assert process.stderr is not None
    heard, deadline = b"", time.monotonic() + seconds
    while words not in heard:
        left = max(deadline - time.monotonic(), 0.0)
        readable, _, _ = select.select([process.stderr], [], [], left)
        more = os.read(process.stderr.fileno(), 65_536) if readable else b""
        if not more:
            process.kill()
            process.wait()
            raise AssertionError(f"it did not write {words!r}, but {heard!r}")
        heard += more
    return heard


def _ended(process: subprocess.Popen[bytes], case: Case) -> tuple[bytes, bytes]:
    """What it wrote and said. A signal in the instant before Python waits for an answer is heard once the answer has
    come: as a person would, it is sent again."""
    given: bytes | None = case.given.encode()
    for left in range(_TRIES, 0, -1):
        try:
            return process.communicate(given, timeout=DEADLINE_SECONDS / _TRIES)
        except subprocess.TimeoutExpired:
            given = None
            if left == 1:
                process.kill()
                raise
            if case.at or case.while_asking or case.until:
                process.send_signal(getattr(signal, case.signal))
    raise AssertionError("never tried")
