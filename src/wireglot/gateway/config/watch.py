"""Looks for a changed configuration and loads it. A broken one changes nothing and is told once."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wireglot.gateway.config import read
from wireglot.gateway.config.build import load
from wireglot.gateway.config.problems import ConfigError, ConfigProblem
from wireglot.gateway.settings import Settings

Print = tuple[bytes, ...]


class Watcher:
    """Polls the file and the secret files it names; `now` is for SIGHUP.

    A change is loaded when two looks in a row agree on it: an editor that empties a file before it fills it
    leaves moments in which half a configuration is valid TOML.
    """

    def __init__(
        self,
        path: Path | None,
        on_change: Callable[[Settings], None],
        on_error: Callable[[ConfigError], None],
        *,
        environ: Mapping[str, str] = os.environ,
        overrides: Mapping[str, Any] | None = None,
        interval: float = 1.0,
    ) -> None:
        self.path = path
        self.on_change = on_change
        self.on_error = on_error
        self.environ = environ
        self.overrides = overrides
        self.interval = interval
        self._files: tuple[Path, ...] = ()
        self._seen: Print = ()
        self._tried: Print = ()
        self._wake = asyncio.Event()
        self._asked = False
        self._look()
        self._tried = self._seen

    def now(self) -> None:
        """Load at once, changed or not: the environment is not looked at by itself."""
        self._asked = True
        self._wake.set()

    async def run(self) -> None:
        """Until it is cancelled. Without a file there is nothing to look at, and `now` still works."""
        while True:
            timeout = self.interval if self.path is not None else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout)
            self._wake.clear()
            asked, self._asked = self._asked, False
            try:
                self.step(asked)
            except Exception as fault:  # whatever one configuration does must not be the end of all reloads
                self.on_error(self._unexpected(fault))

    def _unexpected(self, fault: Exception) -> ConfigError:
        # What an exception says may quote the file, and with it a key.
        source = str(self.path) if self.path is not None else "configuration"
        return ConfigError(
            [ConfigProblem(source, "settings that can be taken up", type(fault).__name__)], source
        )

    def step(self, asked: bool = False) -> None:
        """One look."""
        settled = not self._look()
        if asked or (settled and self._seen != self._tried):
            self._tried = self._seen
            self._load()

    def _load(self) -> None:
        try:
            settings = load(self.path, environ=self.environ, overrides=self.overrides)
        except ConfigError as error:
            self.on_error(error)
        else:
            self.on_change(settings)

    def _look(self) -> bool:
        """Whether the files differ from the last look. They are small, and a time stamp can miss a change."""
        if self.path is None:
            return False
        content = _content(self.path)
        digest = _digest(content)
        if self._seen[:1] != (digest,):
            self._files = _referred(self.path, content, self._files)
        seen = (digest, *(_digest(_content(file)) for file in self._files))
        changed, self._seen = seen != self._seen, seen
        return changed


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None


def _digest(content: bytes | None) -> bytes:
    return b"" if content is None else hashlib.sha256(content).digest()


def _referred(path: Path, content: bytes | None, before: tuple[Path, ...]) -> tuple[Path, ...]:
    """The secret files the configuration names; those of before while it is broken."""
    try:
        document = read.parse(content or b"", str(path))
    except ConfigError:
        return before
    return tuple(dict.fromkeys(read.referred_files(document, path.parent)))
