"""A gateway as a process of its own: it can be killed at any moment, and started again on the same data."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import msgspec

from proofs.bench import processes

_NO_PROXY = build_opener(ProxyHandler({}))
_START_SECONDS = 120
"""Long, for a machine that is busy. How long it took is reported to anyone who measures it."""


class DidNotStart(RuntimeError):
    """A server ended or stayed silent; carries the end of its log."""


class Tree(msgspec.Struct, frozen=True):
    """A checkout, and the interpreter that has what it needs. Without one: the tree that runs this."""

    checkout: Path | None = None
    python: Path = Path(sys.executable)

    def command(self, *words: str) -> list[str]:
        return [str(self.python), "-m", "wireglot.cli", *words]

    def environ(
        self, home: Path, more: dict[str, str] | None = None, *, bare: bool = False
    ) -> dict[str, str]:
        """`home`: where its data lies. `bare`: without the caller's variables: a provider's key among them
        would switch that provider on."""
        place = {"XDG_DATA_HOME": str(home), "HOME": str(home), "WIREGLOT_DEBUGGABLE": "1"}
        if self.checkout is not None:
            place["PYTHONPATH"] = str(self.checkout / "src")
        # Compiled once, as what is installed is: else every start compiles the whole package again.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name != "PYTHONDONTWRITEBYTECODE" and (name == "PATH" or not bare)
        }
        return {**inherited, **place, **(more or {})}


HERE = Tree()


def keys_table(keys: dict[str, str]) -> str:
    """Names and keys of clients, for a configuration."""
    digests = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in keys.items()}
    return "[keys]\n" + "".join(f'{name} = "sha256:{digest}"\n' for name, digest in digests.items())


class Served:
    """`toml` is its configuration; data, journal and log lie in `folder`."""

    def __init__(
        self,
        folder: Path,
        toml: str,
        *,
        workers: int = 1,
        port: int = 0,
        tree: Tree = HERE,
        environ: dict[str, str] | None = None,
        log: str = "json",
        bare: bool = False,
    ) -> None:
        self.folder = folder
        self._log = ("--log", log)
        self.port = port or processes.free_port()
        self.tree = tree
        self._workers = workers
        self._environ = tree.environ(folder, environ, bare=bare)
        folder.mkdir(parents=True, exist_ok=True)
        self.configure(toml)
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, toml: str) -> None:
        """For the next start, or for a gateway that looks after its file."""
        config = self.folder / "wireglot.toml"
        config.write_text(toml, encoding="utf-8")
        config.chmod(0o600)  # it may hold secrets, and the gateway would say so

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.stop()
            return
        self.kill()

    @property
    def is_started(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """The seconds until it answered."""
        began = time.monotonic()
        options = ["--config", "wireglot.toml", "--port", str(self.port), "--workers", str(self._workers)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.tree.command("serve", *options, *self._log),
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while not self._answers():
            if self._process.poll() is not None:
                raise DidNotStart(f"the gateway ended:\n{self.log_tail()}")
            if time.monotonic() - began > _START_SECONDS:
                raise DidNotStart(f"the gateway does not answer:\n{self.log_tail()}")
            time.sleep(0.01)
        return time.monotonic() - began

    def run(self, *words: str) -> str:
        """What a command (`wireglot usage`, `store export`) writes, with the same configuration and data."""
        done = subprocess.run(
            self.tree.command(*words),
            cwd=self.folder,
            env={**self._environ, "WIREGLOT_CONFIG": str(self.folder / "wireglot.toml")},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"wireglot {' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

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

    def ended(self) -> int | None:
        """Its exit status, once it has one."""
        assert self._process is not None
        return self._process.poll()

    def log_tail(self, lines: int = 20) -> str:
        text = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _answers(self) -> bool:
        try:
            with _NO_PROXY.open(f"{self.url}/healthz", timeout=1) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False
