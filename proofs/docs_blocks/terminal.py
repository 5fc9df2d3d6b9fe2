"""A program in a terminal of its own, left running; what it prints is kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_ROWS_AND_COLUMNS: Final = (50, 160)
_END_SECONDS: Final = 10.0


class Terminal:
    def __init__(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], is_gateway: bool
    ) -> None:
        self.is_gateway = is_gateway
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_ROWS_AND_COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._read: list[str] = []
        self._thread = threading.Thread(target=self._reading, daemon=True)
        self._thread.start()

    @property
    def printed(self) -> str:
        return "".join(self._read)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Ctrl-C, and its end."""
        self._end(signal.SIGINT, signal.SIGKILL)

    def close(self) -> None:
        self._end(signal.SIGKILL)
        self._thread.join()
        os.close(self._ours)

    def _end(self, *signals: signal.Signals) -> None:
        for number in signals:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                return

    def _reading(self) -> None:
        with contextlib.suppress(OSError):  # nobody is at the other end any more
            while data := os.read(self._ours, 65536):
                self._read.append(data.decode(errors="replace"))
