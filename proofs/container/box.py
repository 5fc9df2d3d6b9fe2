"""A container that can be started, asked, ended and started again: by an engine, or in a root directory."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final

from proofs.container.dockerfile import Stage
from proofs.container.network import Network
from proofs.container.root import Root, entering

PORT: Final = 8484
HEALTHY_WITHIN_SECONDS: Final = 90.0
_POLL_SECONDS: Final = 0.2
ENDED_WITHIN_SECONDS: Final = 60.0
HARDENED: Final = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


def ask(
    address: tuple[str, int], method: str, path: str, body: object = None, key: str = "", *, host: str = ""
) -> Answer:
    """One request; `host` is the name it is called by, where that is not its address."""
    connection = http.client.HTTPConnection(*address, timeout=HEALTHY_WITHIN_SECONDS)
    headers = {"content-type": "application/json"}
    headers |= {"authorization": f"Bearer {key}"} if key else {}
    headers |= {"host": host} if host else {}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return Answer(response.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode())


class Box(ABC):
    """Read-only but for one volume, which outlives it."""

    @abstractmethod
    def start(self, environment: Mapping[str, str]) -> None: ...

    @abstractmethod
    def address(self) -> tuple[str, int]: ...

    @abstractmethod
    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command inside, as the container's user."""

    @abstractmethod
    def is_healthy(self) -> bool:
        """By the Dockerfile's own check."""

    @abstractmethod
    def has_ended(self) -> bool: ...

    @abstractmethod
    def log(self) -> str: ...

    @abstractmethod
    def end(self, how: signal.Signals) -> int:
        """Its exit status."""

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + HEALTHY_WITHIN_SECONDS
        while not self.is_healthy():
            if self.has_ended() or time.monotonic() > deadline:
                raise RuntimeError(f"it did not get healthy:\n{self.log()}")
            time.sleep(_POLL_SECONDS)

    def wait_until_known(self, key: str) -> None:
        """A key that another process has made opens within seconds."""
        deadline = time.monotonic() + HEALTHY_WITHIN_SECONDS
        while self.ask("GET", "/v1/models", key=key).status != HTTPStatus.OK:
            if time.monotonic() > deadline:
                raise RuntimeError("a new key does not open")
            time.sleep(_POLL_SECONDS)

    def ask(self, method: str, path: str, body: object = None, key: str = "") -> Answer:
        """Over the network, from outside."""
        return ask(self.address(), method, path, body, key)


class RootBox(Box):
    """In a root directory with an address of its own."""

    def __init__(self, name: str, root: Root, stage: Stage, volume: Path, network: Network) -> None:
        self._name, self._root, self._stage, self._network = name, root, stage, network
        (self._inside,) = stage.volumes
        self._volume = volume
        if (
            not volume.exists()
        ):  # a new volume begins with what the image has there, and belongs to the same user
            shutil.copytree(root.directory / self._inside.relative_to("/"), volume)
            shutil.chown(volume, *stage.user)
            volume.chmod(0o700)
        if name not in network.addresses:
            network.add(name)
        self._process: subprocess.Popen[bytes] | None = None
        self._log = volume.with_name(f"{volume.name}.log")
        self._environment: dict[str, str] = {}

    def start(self, environment: Mapping[str, str]) -> None:
        self._environment = {**self._stage.environment, **environment}
        command = self._entering(self._stage.command())
        script = f"{self._root.mounting({self._inside: self._volume}, read_only=True)}\nexec {command}"
        contained = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._network.joining(self._name), *contained],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def _entering(self, command: Sequence[str]) -> str:
        return entering(
            self._root.directory, command, self._environment, self._stage.user, self._stage.directory
        )

    def address(self) -> tuple[str, int]:
        return self._network.addresses[self._name], PORT

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        into = ["nsenter", f"--target={self._first()}", "--mount", "--pid", "--net", "sh", "-c"]
        return subprocess.run([*into, self._entering(command)], capture_output=True, text=True, check=False)

    def is_healthy(self) -> bool:
        return bool(self._first()) and self.run(*self._stage.health_command).returncode == 0

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        subprocess.run(["kill", f"-{how.value}", str(self._first())], check=True)
        return self._process.wait(ENDED_WITHIN_SECONDS)

    def _first(self) -> int:
        """The first process inside: the one that was forked into the new namespace of processes."""
        assert self._process is not None
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        except OSError:
            return 0
        return int(children[0]) if children else 0


class EngineBox(Box):
    """By docker or podman."""

    def __init__(self, engine: str, image: str, name: str, volume: PurePosixPath) -> None:
        self._engine, self._image, self._name, self._inside = engine, image, name, volume

    def start(self, environment: Mapping[str, str]) -> None:
        variables = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
        self._do("rm", "--force", self._name)
        volume = f"{self._name}:{self._inside}"
        publish = f"127.0.0.1::{PORT}"
        self._do(
            "run", "--detach", "--name", self._name, *HARDENED, "--volume", volume, "--publish", publish,
            *variables, self._image,
        )  # fmt: skip

    def address(self) -> tuple[str, int]:
        host, _, port = self._do("port", self._name, f"{PORT}/tcp").splitlines()[0].rpartition(":")
        return host, int(port)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._engine, "exec", self._name, *command], capture_output=True, text=True, check=False
        )

    def is_healthy(self) -> bool:
        return self._do("inspect", "--format", "{{.State.Health.Status}}", self._name).strip() == "healthy"

    def has_ended(self) -> bool:
        return self._do("inspect", "--format", "{{.State.Running}}", self._name).strip() != "true"

    def log(self) -> str:
        done = subprocess.run([self._engine, "logs", self._name], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def end(self, how: signal.Signals) -> int:
        self._do("kill", "--signal", how.name, self._name)
        return int(self._do("wait", self._name))

    def remove(self) -> None:
        self._do("rm", "--force", self._name)
        self._do("volume", "rm", "--force", self._name)

    def _do(self, *words: str) -> str:
        done = subprocess.run([self._engine, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{self._engine} {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout
