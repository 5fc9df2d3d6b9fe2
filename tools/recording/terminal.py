"""A shell in a terminal of its own, typed into at the speed of a hand, and what it showed at which time."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROMPT_MARK: Final = b"\x1b]133;A\x07"
"""What a shell may write before its prompt, for terminals to know where it stands; it is not shown."""
_PROMPT: Final = r"\[\e]133;A\a\]$ "
_KEY_SECONDS: Final = 0.045
_LOOK_SECONDS: Final = 0.05
_READ_BYTES: Final = 65536


class Written(NamedTuple):
    """Bytes that the terminal got, and when."""

    seconds: float
    data: bytes


class Stuck(Exception):
    """The shell did not come back in time; the message has its last words."""


class Terminal:
    def __init__(self, columns: int, lines: int, cwd: Path, env: Mapping[str, str]) -> None:
        self.columns, self.lines = columns, lines
        self.written: list[Written] = []
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            try:
                os.chdir(cwd)
                shell = ["bash", "--noprofile", "--norc", "--noediting", "-i"]
                os.execvpe(shell[0], shell, {**env, "PS1": _PROMPT, "TERM": "xterm-256color"})
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._wait(1, 30)

    @property
    def shown(self) -> bytes:
        return b"".join(one.data for one in list(self.written))

    @property
    def asked(self) -> int:
        """How often the shell has shown its prompt."""
        return self.shown.count(_PROMPT_MARK)

    def type(self, command: str) -> None:
        """Key by key, then return."""
        for key in command:
            os.write(self._fd, key.encode())
            time.sleep(_KEY_SECONDS)
        os.write(self._fd, b"\n")

    def run(self, command: str, seconds: float) -> None:
        """Type it, and wait for the next prompt."""
        count = self.asked + 1
        self.type(command)
        self._wait(count, seconds)

    def wait_text(self, text: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while text.encode() not in self.shown:
            self._look(until)

    def close(self) -> None:
        """Interrupt what runs, and leave the shell."""
        count = self.asked + 1
        with suppress(OSError, Stuck):
            os.write(self._fd, b"\x03")
            self._wait(count, 15)
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGHUP)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    def _wait(self, count: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.asked < count:
            self._look(until)

    def _look(self, until: float) -> None:
        if time.monotonic() > until or not self._reader.is_alive():
            raise Stuck(self.shown[-2000:].decode("utf-8", "replace"))
        time.sleep(_LOOK_SECONDS)

    def _read(self) -> None:
        with suppress(OSError):  # nobody holds the other side any more
            while data := os.read(self._fd, _READ_BYTES):
                self.written.append(Written(time.monotonic(), data))
