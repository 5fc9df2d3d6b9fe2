"""A gateway for tests: the real one, on a free port, in a thread of its own.

with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as gateway:
    client = anthropic.Anthropic(base_url=gateway.url, api_key="x")
    ...
    assert gateway.log()[-1]["route"] == "mine/some-model"
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from wireglot.gateway import config
from wireglot.gateway.run import Process
from wireglot.gateway.state.pace import Pace
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot.wire.json import decode

T = TypeVar("T")

BASES = {
    "anthropic": "",
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "gemini": "/v1beta",
    "code-assist": "",
}
"""What stands between a scripted upstream's address and the paths of a dialect."""


class LiveGateway:
    """`toml` is the configuration (none: that of a newcomer, who has the demo model). The port is any."""

    def __init__(
        self,
        toml: str = "",
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        pace: Pace | None = None,
    ) -> None:
        """`folder`: where it keeps its data and log; one that is given stays, for the next gateway. `pace`:
        how often it looks after what it remembers."""
        self._pace = pace
        self._toml = toml
        self._environ = dict(environ or {})
        self._folder = None if folder is not None else tempfile.TemporaryDirectory(prefix="wireglot-test-")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self.folder = Path(self._folder.name) if self._folder is not None else _existing(folder)
        self.url = ""
        self.process: Process

    @classmethod
    def before(cls, upstream: ScriptedUpstream, dialect: str, more: str = "", **provider: str) -> LiveGateway:
        """One in front of an upstream that speaks one dialect. Every model name leads there.

        `provider` are further lines of its entry, as TOML; `more` further tables.
        """
        lines = "\n".join(f"{name} = {value}" for name, value in provider.items())
        return cls(
            f'[providers.mine]\ndialect = "{dialect}"\nbase_url = "{upstream.url}{BASES[dialect]}"\n'
            f'api_key = "upstream-key-0123456789"\n{lines}\n[models]\n"*" = "mine/*"\n{more}'
        )

    def at(self, pace: Pace) -> LiveGateway:
        """The same, looking after what it remembers at another pace; to be said before it starts."""
        self._pace = pace
        return self

    def __enter__(self) -> LiveGateway:
        self._thread.start()
        path = None
        if self._toml:
            path = self.folder / "wireglot.toml"
            path.write_text(self._toml, encoding="utf-8")
        self._environ.setdefault("XDG_DATA_HOME", str(self.folder))
        overrides = {"server": {"port": 0, "log": "json"}}
        settings = config.load(path, environ=self._environ, overrides=overrides)
        self._log = os.open(self.folder / "log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.call(self._start(settings, path, overrides))
        self.url = f"http://127.0.0.1:{self.process.address[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.call(self.process.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        os.close(self._log)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def port(self) -> int:
        return self.process.address[1]

    def call(self, work: Any) -> Any:
        """Run a coroutine in the gateway's loop, to its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def reconfigure(self, toml: str) -> None:
        """Write a new configuration and have it loaded."""
        (self.folder / "wireglot.toml").write_text(toml, encoding="utf-8")
        self._loop.call_soon_threadsafe(self.process.reload)

    def log(self, event: str = "request") -> list[dict[str, Any]]:
        """The log lines so far of one kind."""
        data = (self.folder / "log").read_bytes()
        lines = data[: data.rfind(b"\n") + 1].splitlines()  # the last one may be half written
        return [line for line in map(decode, lines) if line["event"] == event]

    def wait_log(self, count: int = 1, event: str = "request", timeout: float = 5.0) -> list[dict[str, Any]]:
        """The log lines of one kind, once there are so many."""
        return _wait(lambda: self.log(event), lambda lines: len(lines) >= count, timeout)

    async def _start(self, settings: Any, path: Path | None, overrides: dict[str, Any]) -> None:
        self.process = Process(
            settings,
            path=path,
            overrides=overrides,
            environ=self._environ,
            log_fd=self._log,
            pace=self._pace,
        )
        await self.process.start()


def _existing(folder: Path | None) -> Path:
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _wait(look: Callable[[], T], enough: Callable[[T], bool], timeout: float) -> T:
    until = time.monotonic() + timeout
    while not enough(found := look()):
        if time.monotonic() > until:
            raise TimeoutError(f"still {found!r}")
        time.sleep(0.01)
    return found
