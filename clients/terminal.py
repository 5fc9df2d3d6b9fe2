"""A program in a terminal of its own: what it shows, what is typed, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_READ_BYTES = 65536
_LOOK_SECONDS = 0.2
_ROWS, _COLUMNS = 40, 120
_LOCAL_MODES = 3  # in what tcgetattr returns
# Colours, moves of the cursor and titles: what is left is the text.
_CONTROL = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[@-Z\\-_=>]|[\x00-\x08\x0e-\x1f]"
)


def prepare(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    modes = termios.tcgetattr(terminal)
    # An interrupt drops nothing that was printed and not yet read, and puts no ^C between.
    modes[_LOCAL_MODES] = modes[_LOCAL_MODES] & ~termios.ECHOCTL | termios.NOFLSH
    termios.tcsetattr(terminal, termios.TCSANOW, modes)


class Terminal:
    """Starts it at once. `shown` is what came so far, without control characters."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        size: tuple[int, int] = (_ROWS, _COLUMNS),
    ) -> None:
        self._raw = b""
        self.pid, self._terminal = self._start(command, cwd, env, size)

    def _start(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], size: tuple[int, int]
    ) -> tuple[int, int]:
        """The process, and our side of its terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                prepare(0, size)  # before the program looks
                os.chdir(cwd)
                os.execve(command[0], list(command), dict(env))
            finally:
                os._exit(127)
        return pid, terminal

    @property
    def shown(self) -> str:
        # The echo of an interrupt may come within another sequence.
        text = _CONTROL.sub(b"", self._raw.replace(b"\x03", b"")).replace(b"\r", b"")
        return text.decode("utf-8", "replace")

    def type(self, text: str) -> None:
        with suppress(OSError):  # it has ended
            os.write(self._terminal, text.encode())

    def wait_for(self, text: str, seconds: float, times: int = 1) -> bool:
        """Whether it was shown in time, and so often."""
        deadline = time.monotonic() + seconds
        while self.shown.count(text) < times:
            if time.monotonic() > deadline or not self._read():
                return self.shown.count(text) >= times
        return True

    def settle(self, quiet_seconds: float, most_seconds: float) -> None:
        """Until nothing more was shown for a while: who types earlier may be overheard."""
        deadline = time.monotonic() + most_seconds
        before, since = self._raw, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - since < quiet_seconds and self._read():
            if self._raw != before:
                before, since = self._raw, time.monotonic()

    def end(self, seconds: float) -> int | None:
        """How it ended, as a shell tells it; None where it had to be killed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._read():
            pass
        killed = time.monotonic() >= deadline
        if killed:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._terminal)
        code = os.waitstatus_to_exitcode(status)
        return None if killed else 128 - code if code < 0 else code

    def _read(self) -> bool:
        """Whether there may be more."""
        ready, _, _ = select.select([self._terminal], [], [], _LOOK_SECONDS)
        if not ready:
            return True
        try:
            data = os.read(self._terminal, _READ_BYTES)
        except OSError:  # nobody holds the other side any more
            return False
        self._raw += data
        return bool(data)
