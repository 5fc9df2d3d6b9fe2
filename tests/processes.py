"""Processes of `wireglot` for tests that need many: each a fork of one that has loaded the modules.

    with ForkedCommand([*COMMAND, "serve", "--port", "0"], cwd=folder, env=environ) as process:
    done = run_forked([*COMMAND, "run", "claude"], env=environ, capture_output=True)

To load the modules takes half a second of computing, a fork some hundredths. Apart from that it is a process like any
other: a child of the test's process with its own arguments, environment, folder, descriptors, group and terminal, and
with its own end. Tests of what is loaded, of closed descriptors, of shells and of the interpreter's own variables
start the command itself; so does everything here where the system is not Linux.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import os
import pickle
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from clients.terminal import Terminal, prepare
from tests.waiting import wait_until

_ROOT: Final = Path(__file__).parents[1]
_PROGRAMS: Final = ("wireglot", "wireglot.cli")
_DIALECTS: Final = ("anthropic", "gemini", "gemini_interactions", "ollama", "openai_chat", "openai_responses")
_LOADED: Final = (
    "encodings.idna",
    "uvloop",
    *(f"wireglot_core.dialects.{name}.dialect" for name in _DIALECTS),
    "wireglot_core.dialects.anthropic.cloud_form",
    "wireglot_core.dialects.gemini.assist",
    "wireglot.cli.parser",
    "wireglot.cli.inspect",
    "wireglot.cli.run.gateway",
    "wireglot.cli.run.launch",
    "wireglot.cli.serve",
    "wireglot.gateway.composition",
    "wireglot.gateway.run",
    "wireglot.gateway.supervisor",
)
_MAX_REQUEST_BYTES: Final = 1 << 20
_SET_CHILD_SUBREAPER: Final = 36  # <linux/prctl.h>
_STANDARD: Final = (0, 1, 2)
_OURS, _READY = b"ours", b"ready"


class _Start(NamedTuple):
    program: str
    arguments: tuple[str, ...]
    cwd: str
    environ: dict[str, str]
    own_session: bool = False
    group: int = -1
    in_terminal: bool = False


class ForkedCommand(subprocess.Popen[Any]):
    """A `Popen` of `[sys.executable, "-m", "wireglot", ...]`."""

    def _execute_child(
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite,
        restore_signals, gid, gids, uid, umask, start_new_session, process_group,
    ) -> None:  # fmt: skip
        assert preexec_fn is None
        environ = dict(os.environ if env is None else env)
        if pass_fds or not _can_fork(environ):
            super()._execute_child(  # type: ignore[misc]  # typeshed leaves it out
                args, executable, heed_hangups, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite,
                restore_signals, gid, gids, uid, umask, start_new_session, process_group,
            )  # fmt: skip
            return
        start = _start(args, cwd, environ)._replace(own_session=start_new_session, group=process_group)
        given = (p2cread, c2pwrite, errwrite)
        self.pid = _fork(start, [at if one == -1 else one for at, one in enumerate(given)])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]  # typeshed leaves it out


def run_forked(
    command: Sequence[str],
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run`."""
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with ForkedCommand(command, **options) as process:
        try:
            out, said = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, said)


class ForkedTerminal(Terminal):
    """The same in a terminal of its own."""

    def _start(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], size: tuple[int, int]
    ) -> tuple[int, int]:
        environ = dict(env)
        if not _can_fork(environ):
            return super()._start(command, cwd, env, size)
        ours, theirs = os.openpty()
        try:
            prepare(theirs, size)
            start = _start(command, cwd, environ)._replace(own_session=True, in_terminal=True)
            return _fork(start, [theirs] * len(_STANDARD)), ours
        finally:
            os.close(theirs)

    def type(self, text: str) -> None:
        """Once it waits: an interrupt just before a read begins would not end it."""
        if sys.platform == "linux":
            wait_until(lambda: _state_of(self.pid) in ("S", "Z"))
        super().type(text)


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _start(command: Sequence[str], cwd: str | Path | None, environ: dict[str, str]) -> _Start:
    python, option, program, *arguments = (str(word) for word in command)
    assert (python, option) == (sys.executable, "-m"), command
    assert program in _PROGRAMS, command
    return _Start(program, tuple(arguments), os.path.abspath(cwd or "."), environ)


def _can_fork(environ: Mapping[str, str]) -> bool:
    return sys.platform == "linux" and _of_the_interpreter(environ) == _of_the_interpreter(os.environ)


def _of_the_interpreter(environ: Mapping[str, str]) -> dict[str, str]:
    """What it reads once, at its start, but for what a fork follows or has no use for."""
    followed = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
    return {
        name: value
        for name, value in environ.items()
        if name.startswith("PYTHON") and name not in followed and value
    }


class _Server:
    """The process that has loaded the modules; it ends with this one."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = f"from tests.processes import _serve; _serve({theirs.fileno()})"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], cwd=_ROOT, pass_fds=[theirs.fileno()]
            )
        atexit.register(self._end)

    def fork(self, start: _Start, descriptors: list[int]) -> int:
        gate, opener = os.pipe()
        try:
            # The child of a child that ends becomes ours.
            with self._lock:
                _prctl(_SET_CHILD_SUBREAPER, 1)
                try:
                    socket.send_fds(self._line, [pickle.dumps(start)], [gate, *descriptors])
                    pid = int(self._line.recv(20))
                    assert self._line.recv(20) == _OURS
                finally:
                    _prctl(_SET_CHILD_SUBREAPER, 0)
                os.write(opener, b"!")
                said = self._line.recv(_MAX_REQUEST_BYTES)
                assert said == _READY, said.decode()
        finally:
            os.close(gate)
            os.close(opener)
        return pid

    def _end(self) -> None:
        if self.owner == os.getpid():
            self._line.close()
            self._process.wait()


_server: list[_Server] = []


def _fork(start: _Start, descriptors: list[int]) -> int:
    if not _server or _server[0].owner != os.getpid():
        _server[:] = [_Server()]
    return _server[0].fork(start, descriptors)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _serve(number: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal in which the tests run
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as line:
        while True:
            request, given, _, _ = socket.recv_fds(line, _MAX_REQUEST_BYTES, 1 + len(_STANDARD))
            if not request:
                return
            gate, *descriptors = given
            between = os.fork()
            if between == 0:
                pid = os.fork()
                if pid == 0:
                    _become(pickle.loads(request), line, gate, descriptors)
                line.send(str(pid).encode())
                os._exit(0)
            os.waitpid(between, 0)
            line.send(_OURS)
            for each in given:
                os.close(each)


def _become(start: _Start, line: socket.socket, gate: int, descriptors: list[int]) -> None:
    """The command, to its end."""
    status = 1
    try:
        os.read(gate, 1)
        os.close(gate)
        _set_up(start, descriptors)
        line.send(_READY)
        line.close()
        status = _status_of(start.program)
    except BaseException:
        traceback.print_exc()
        with suppress(OSError):
            line.send(traceback.format_exc().encode())
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def heed_hangups() -> None:
    """Tests that run below `nohup` would hand down that hangups are ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _set_up(start: _Start, descriptors: list[int]) -> None:
    apart = [fcntl.fcntl(each, fcntl.F_DUPFD, len(_STANDARD)) for each in descriptors]
    for at, each in zip(_STANDARD, apart, strict=True):
        os.dup2(each, at)
    for each in {*descriptors, *apart} - set(_STANDARD):
        os.close(each)
    if start.own_session:
        os.setsid()
    if start.in_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if start.group != -1:
        os.setpgid(0, start.group)
    os.chdir(start.cwd)
    os.environ.clear()
    os.environ.update(start.environ)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    heed_hangups()
    sys.stdin, sys.stdout = _stream(0, "r", "strict"), _stream(1, "w", "strict")
    sys.stderr = _stream(2, "w", "backslashreplace")
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    sys.path[0] = start.cwd
    sys.argv = [start.program, *start.arguments]


def _status_of(program: str) -> int:
    """As the interpreter ends: threads, then what was registered for the end."""
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]  # typeshed leaves it out
    atexit._run_exitfuncs()
    return status


def _stream(number: int, mode: str, errors: str) -> io.TextIOWrapper:
    raw = os.fdopen(number, f"{mode}b", closefd=False)
    by_lines = number == 2 or os.isatty(number)
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(
        raw, encoding="utf-8", errors=errors, line_buffering=by_lines or at_once, write_through=at_once
    )
