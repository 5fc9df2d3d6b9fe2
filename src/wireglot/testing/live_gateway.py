"""A gateway for tests: the real one, on a free port, in a separate thread.

    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as gateway:
        client = anthropic.Anthropic(base_url=gateway.url, api_key="x")
        ...
        assert gateway.wait_log()[-1]["route"] == "mine/some-model"

It only sees the environment that it is given, and leaves nothing behind: no key of the user who runs the
tests is used, and its data is in a separate folder.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from wireglot.gateway import config
from wireglot.gateway.run import Process
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.tasks import Pace
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode

T = TypeVar("T")

BASES: Final = {
    "anthropic": "",
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "gemini": "/v1beta",
    "code-assist": "",
    "gemini-interactions": "/v1beta",
}
"""The prefix of a dialect's paths at a scripted upstream; none for the others."""

_OVERRIDES: Final = {"server": {"port": 0, "log": "json"}}
_CALL_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.01
_SETTLE_SECONDS: Final = 0.01
"""`reconfigure` requests a reload only after the file is written."""


class LiveGateway:
    """`toml` is the configuration (none: that of a new user, with the demo model). The port is any free
    one."""

    def __init__(
        self,
        toml: str = "",
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        pace: Pace | None = None,
    ) -> None:
        """`folder`: for its data and log; a given one is kept, for the next gateway. `pace`: how often it
        checks its stored state."""
        self._pace = pace
        self._toml = toml
        self._environ = dict(environ or {})
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="wireglot-test-")
            folder = Path(self._temporary.name)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self._log_fd = -1
        self.folder = folder
        self.url = ""
        """Without a path: the client adds `/v1` and the like."""
        self.process: Process
        """The gateway itself, for tests of its internals; it runs in its own thread (see `call`)."""

    @classmethod
    def before(cls, upstream: ScriptedUpstream, dialect: str, more: str = "", **provider: str) -> LiveGateway:
        """One in front of an upstream that speaks one dialect. Every model name is routed there.

        `provider` are further lines of its entry, as TOML; `more` further tables.
        """
        lines = "\n".join(f"{name} = {value}" for name, value in provider.items())
        return cls(
            f'[providers.mine]\ndialect = "{dialect}"\nbase_url = "{upstream.url}{BASES.get(dialect, "")}"\n'
            f'api_key = "upstream-key-0123456789"\n{lines}\n[models]\n"*" = "mine/*"\n{more}'
        )

    def at(self, pace: Pace) -> LiveGateway:
        """The same with another pace of background checks; call it before the start."""
        self._pace = pace
        return self

    def start(self) -> LiveGateway:
        """Listen. An invalid configuration raises a ConfigError, and nothing is left running."""
        self._thread.start()
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def stop(self) -> None:
        """Shut down in order, as after SIGTERM, and remove the folder if it was created here."""
        try:
            self.call(self.process.close())
        finally:
            self._end()

    def __enter__(self) -> LiveGateway:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self.process.address[1]

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the gateway's loop, to its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_SECONDS)

    def reconfigure(self, toml: str) -> None:
        """Write a new configuration and have it loaded."""
        (self.folder / "wireglot.toml").write_text(toml, encoding="utf-8")
        self._loop.call_soon_threadsafe(self.process.reload)

    def log(self, event: str = "request") -> list[dict[str, Any]]:
        """The log lines so far of one kind."""
        data = (self.folder / "log").read_bytes()
        lines = data[: data.rfind(b"\n") + 1].splitlines()  # the last one may be incomplete
        return [line for line in map(decode, lines) if line["event"] == event]

    def wait_log(self, count: int = 1, event: str = "request", timeout: float = 60.0) -> list[dict[str, Any]]:
        """The log lines of one kind, once there are this many."""
        until = time.monotonic() + timeout
        while len(lines := self.log(event)) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"still {lines!r}")
            time.sleep(_POLL_SECONDS)
        return lines

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = None
        if self._toml:
            path = self.folder / "wireglot.toml"
            path.write_text(self._toml, encoding="utf-8")
        self._environ.setdefault("XDG_DATA_HOME", str(self.folder))
        settings = config.load(path, environ=self._environ, overrides=_OVERRIDES)
        self._log_fd = os.open(self.folder / "log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.call(self._listen(settings, path))
        self.url = f"http://127.0.0.1:{self.port}"

    async def _listen(self, settings: Settings, path: Path | None) -> None:
        self.process = Process(
            settings,
            path=path,
            overrides=_OVERRIDES,
            environ=self._environ,
            log_fd=self._log_fd,
            pace=self._pace,
            settle=_SETTLE_SECONDS,
        )
        await self.process.start()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._log_fd >= 0:
            os.close(self._log_fd)
        if self._temporary is not None:
            self._temporary.cleanup()
