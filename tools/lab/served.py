"""A gateway as a process of its own, that can be killed at any moment and started again on the same data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tools.bench import processes


class Served:
    """`toml` is its configuration; data, journal and log lie in `folder`."""

    def __init__(self, folder: Path, toml: str, *, workers: int = 1, port: int = 0) -> None:
        self.folder = folder
        self.port = port or processes.free_port()
        self._workers = workers
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "wireglot.toml").write_text(toml, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """The seconds until it answered."""
        began = time.monotonic()
        command = [str(Path(sys.executable).with_name("wireglot")), "serve"]
        options = ["--config", "wireglot.toml", "--port", str(self.port), "--workers", str(self._workers)]
        environ = {**os.environ, "XDG_DATA_HOME": str(self.folder), "HOME": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *options, "--log", "json"],
                cwd=self.folder,
                env=environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(f"the gateway ended:\n{self.log_tail()}")
            if time.monotonic() - began > 30:
                raise RuntimeError(f"the gateway does not answer:\n{self.log_tail()}")
            time.sleep(0.01)
        return time.monotonic() - began

    def kill(self) -> None:
        """All of it, workers too, at once and without a word."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(timeout=30)

    def log_tail(self, lines: int = 20) -> str:
        text = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=1) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False
