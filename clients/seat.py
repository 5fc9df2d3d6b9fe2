"""Where a client runs: a scratch home and project, a clean environment, a marker file to read by tool."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

# Nothing listens on the discard port: a client that calls home is refused instead of measured.
NOWHERE = "http://127.0.0.1:9"
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
_LOOPBACK = "127.0.0.1,localhost,::1"


@dataclass(frozen=True)
class Launch:
    """How to start a client: the command, its variables, and the settings files below its home."""

    command: Sequence[str | Path]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    node: Path | None = None
    """Folder of the Node program to find first."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    passed: bool
    seconds: float
    reason: str
    """Why it failed, empty where it passed."""
    turns: int = 0
    """Turns that brought a tool's result to the upstream, where it takes notes."""
    thoughts: int = 0
    """Earlier turns whose state the last of them had to carry."""


class Seat:
    """A place for one run of one client. The nonce is in the last marker file and nowhere else.

    `files`: how many to read, one by one. Zero: one file, and no word to the model to think.
    """

    def __init__(self, base: str, key: str, logs: Path, upstream: str = "", files: int = 0) -> None:
        self.base = base
        self.key = key
        self.upstream = upstream
        self.thinks = files > 0
        self._logs = logs
        # Outside the repository, or a client would take its instructions and history for the project's.
        self._folder = Path(tempfile.mkdtemp(prefix="wireglot-client-")).resolve()
        self.home = self._folder / "home"
        self.project = self._folder / "project"
        names = [f"note-{number}.txt" for number in range(1, files)]
        self._files = [*(self.project / name for name in names), self.project / "marker.txt"]
        self.marker = self._files[-1]
        self._nonce = f"NONCE-{secrets.token_hex(6)}"
        for folder in (self.home, self.project, self._folder / "tmp", logs):
            folder.mkdir(parents=True, exist_ok=True)
        for file in self._files[:-1]:
            file.write_text(f"{file.name} says nothing: the word is in another file.\n")
        self.marker.write_text(self._nonce + "\n")

    def __enter__(self) -> Seat:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A client's last helper processes may still be writing; what they leave is no one's concern.
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def final(self) -> str:
        """What is printed by who has read the last marker file."""
        return f"FINAL-OK {self._nonce}"

    @property
    def prompt(self) -> str:
        named = " ".join(f"[[marker-file:{file}]]" for file in self._files)
        think = "[[demo:think]] " if self.thinks else ""
        return f"{think}Read the marker file {named} with a tool, then reply with its content."

    def run(self, launch: Launch, *, finals: int, timeout: float) -> Outcome:
        """Run the client to its end. It passes if it printed the final text and the nonce `finals` times."""
        for name, text in launch.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        started = time.monotonic()
        code = self._spawn(launch, timeout)
        seconds = time.monotonic() - started
        return Outcome(not (reason := self._verdict(code, finals, timeout)), seconds, reason)

    def _spawn(self, launch: Launch, timeout: float) -> int | None:
        """The exit code, or None where the time ran out."""
        with (self._logs / "stdout").open("wb") as out, (self._logs / "stderr").open("wb") as err:
            process = subprocess.Popen(
                launch.command,
                cwd=self.project,
                env=self._environment(launch),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return None
            finally:
                # The session is the client's own: this ends whatever it left running, and nothing else.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _environment(self, launch: Launch) -> dict[str, str]:
        path = os.environ.get("PATH", os.defpath)
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self._folder / "tmp"),
            "PATH": f"{launch.node}{os.pathsep}{path}" if launch.node else path,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
            "DO_NOT_TRACK": "1",
            "DISABLE_TELEMETRY": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **NO_NETWORK,
            **dict.fromkeys(("NO_PROXY", "no_proxy"), _LOOPBACK),
            **launch.env,
        }

    def _verdict(self, code: int | None, finals: int, timeout: float) -> str:
        if code is None:
            return f"still running after {timeout:.0f} s"
        if code:
            return f"exit code {code}"
        text = (self._logs / "stdout").read_text(errors="replace")
        seen = text.count(self.final)
        return "" if seen >= finals else f"the final text was printed {seen} of {finals} times"
