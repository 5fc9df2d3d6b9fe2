"""Watches the configuration and loads it when it changes. A broken one changes nothing and is reported
once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from wireglot.gateway.config import read
from wireglot.gateway.config.build import load
from wireglot.gateway.config.kept_keys import kept_file
from wireglot.gateway.config.problems import ConfigError, ConfigProblem, NotApproved, shown
from wireglot.gateway.config.urls import is_loopback
from wireglot.gateway.settings import Settings

Print = tuple[bytes, ...]
SETTLE_SECONDS: Final = 0.25
"""Between two checks after SIGHUP: its sender has written the file, or is about to finish."""


class Watcher:
    """Polls the file, the secret files it names and the kept keys; `now` is for SIGHUP.

    Content is loaded when two checks in a row find it equal, also after SIGHUP: an editor that empties a file
    before it fills it leaves moments in which half a configuration is valid TOML. `on_change` may refuse
    settings with a ConfigError.

    `why_not` returns why content must not be loaded, or "". It is called at every check: content that is
    approved later is loaded then. Until then none of the files that the content names is read.
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
        settle: float = SETTLE_SECONDS,
        why_not: Callable[[bytes], str] | None = None,
        later: Path | None = None,
    ) -> None:
        """`later`: without a `path`, the file that is loaded once it exists."""
        self.path = path
        self._later = later
        self.on_change = on_change
        self.on_error = on_error
        self.environ = environ
        self.overrides = overrides
        self.interval = interval
        self._settle = settle
        self._why_not = why_not
        self._kept = kept_file(environ)
        self._files: tuple[Path, ...] = ()
        self._content: bytes | None = None
        self._refusal = ""
        """Why the content must not be loaded."""
        self._seen: Print = ()
        self._tried: Print = ()
        self._wake = asyncio.Event()
        self._asked = False
        self._due = False
        """Whether a reload was requested and waits until the file does not change."""
        self._look()
        self._tried = self._seen

    def now(self) -> None:
        """Load as soon as the file does not change any more, even if it is unmodified: the environment is not
        watched."""
        self._asked = True
        self._wake.set()

    async def run(self) -> None:
        """Runs until it is cancelled. Without any file there is nothing to watch, but `now` still works."""
        while True:
            if self._due:  # further signals must not postpone it
                await asyncio.sleep(self._settle)
            else:
                looks = self.path is not None or self._kept is not None or self._later is not None
                timeout = self.interval if looks else None
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await self._wake.wait()
            self._wake.clear()
            asked, self._asked = self._asked, False
            try:
                self.step(asked)
            except Exception as fault:  # one bad configuration must not end all reloads
                self.on_error(self._unexpected(fault))

    def _unexpected(self, fault: Exception) -> ConfigError:
        # An exception's message may quote the file, and with it a key.
        source = str(self.path) if self.path is not None else "configuration"
        return ConfigError(
            [ConfigProblem(source, "settings that can be applied", type(fault).__name__)], source
        )

    def step(self, asked: bool = False) -> None:
        """One check."""
        settled = not self._look()
        if asked and not self._due and self.path is not None:
            # The last check may have been a moment ago, and both have read the same half of a file.
            self._due = True
            return
        if asked or self._due or self._seen != self._tried:
            self._due = not settled and (asked or self._due)
            if settled:
                self._tried = self._seen
                self._load()

    def _load(self) -> None:
        """Load the content that was checked, not the current one."""
        try:
            if self.path is not None and not self._checked(self.path):
                return
            settings = load(self.path, environ=self.environ, overrides=self.overrides, content=self._content)
            self.on_change(settings)
        except ConfigError as error:
            self.on_error(error)

    def _checked(self, path: Path) -> bool:
        """Whether there is a file to load. An empty one cannot be meant for a running gateway: it was emptied
        to be written again, or by mistake."""
        if self._content is None:
            read.document(path)  # raises the reason why it cannot be read
            return False  # or it is back by now, and the next checks will find it unchanged
        if self._refusal:
            raise NotApproved(self._refusal, str(path))
        if not read.parse(self._content, str(path)):
            raise ConfigError([ConfigProblem(str(path), "settings", "an empty file")], str(path))
        return True

    def _look(self) -> bool:
        """Whether the files differ from the last check. They are small, and a time stamp can miss a
        change."""
        if self.path is None and self._later is not None and self._later.is_file():
            self.path = self._later
        content = self._content = None if self.path is None else _content(self.path)
        self._refusal = "" if content is None or self._why_not is None else self._why_not(content)
        head = (_digest(content), self._refusal.encode())
        if self.path is not None and self._seen[:2] != head and not self._refusal:
            self._files = _referred(self.path, content, self._files)
        files = self._files if self._kept is None else (*self._files, self._kept)
        seen = (*head, *map(_digest, map(_content, files)))
        changed, self._seen = seen != self._seen, seen
        return changed


def _content(file: Path) -> bytes | None:
    try:
        return read.read_file(file)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None


def _digest(content: bytes | None) -> bytes:
    return b"" if content is None else hashlib.sha256(content).digest()


def _referred(path: Path, content: bytes | None, before: tuple[Path, ...]) -> tuple[Path, ...]:
    """The secret files the configuration names; the previous ones while it is broken."""
    try:
        document = read.parse(content or b"", str(path))
    except ConfigError:
        return before
    return tuple(dict.fromkeys(read.referred_files(document, path.parent)))


_LOCK: Final = "a client key in [keys], or require_key = true"
_RESTART: Final = f"{_LOCK} (only a restart can remove the key requirement)"


def needs_key(settings: Settings) -> bool:
    """Whether the configuration by itself requires a key. Stored keys do not count here: they can be deleted,
    and it may be unknown whether there are any."""
    return bool(settings.keys) or settings.server.require_key


def check_reload(before: Settings, after: Settings, bound: Iterable[str]) -> None:
    """ConfigError if `after` must not replace `before`. `bound` are the addresses that the gateway listens
    on: they do not change, whatever `after` says of host and port."""
    if needs_key(after):
        return
    if needs_key(before):
        raise ConfigError([ConfigProblem("keys", _RESTART, "neither")], after.source)
    for address in bound:
        if not is_loopback(address):
            raise ConfigError(
                [ConfigProblem("keys", _LOCK, f"neither, and it listens on {shown(address)}")], after.source
            )


_PLACE: Final = struct.Struct("QQ")
"""The offset of the settings in the file, and their length."""


class HandedDown:
    """A file without a name, open in the supervisor and in all its workers: no other process can read it."""

    def __init__(self) -> None:
        self._fd = _nameless()

    def write(self, settings: Settings) -> None:
        """Write new settings. The previous ones stay intact until these are complete: a writer may be killed
        at any point."""
        data = pickle.dumps(settings)
        with self._alone():
            start, length = self._place()
            begin = _PLACE.size if _PLACE.size + len(data) <= start else start + length
            os.pwrite(self._fd, data, begin)
            os.pwrite(self._fd, _PLACE.pack(begin, len(data)), 0)

    def read(self) -> Settings | None:
        """The last ones written; None if there were none since the start."""
        with self._alone():
            start, length = self._place()
            data = os.pread(self._fd, length, start)
        if not data:
            return None
        found = pickle.loads(data)  # written by this very program, in this run of it
        assert isinstance(found, Settings)
        return found

    def _place(self) -> tuple[int, int]:
        head = os.pread(self._fd, _PLACE.size, 0)
        start, length = _PLACE.unpack(head) if head else (_PLACE.size, 0)
        return start, length

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Locks of processes, not of descriptors, since all workers share the descriptor."""
        import fcntl  # Windows has none, and no workers

        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)


def _nameless() -> int:
    if hasattr(os, "memfd_create"):  # Linux: it is on no disk either
        return os.memfd_create("wireglot-settings")
    with tempfile.TemporaryFile(prefix="wireglot-") as file:
        return os.dup(file.fileno())
