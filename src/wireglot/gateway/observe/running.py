"""Which gateways of this user run on this machine, for other commands to find them.

Each gateway holds a lock on a small file in the user's data folder for as long as it lives, however it ends:
if the lock is held, the gateway runs, and this user started it. An open port does not show that. The file
also contains a key for the gateway's admin API: whoever can read the file can read the store, too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from wireglot.gateway.config.environment import data_dir

try:
    import fcntl
except ImportError:  # Windows: no gateway is found there
    fcntl = None  # type: ignore[assignment]  # Windows has none

_FOLDER: Final = "running"
_PRIVATE_FOLDER: Final = "running-private"
"""For gateways that `wireglot run` started for one client: nothing joins them, but their page can be
opened."""
# Bytes of the file that describes a running gateway.
_FILE_MAX_BYTES: Final = 64 * 1024
SYSTEM_DATA: Final = Path("/var/lib/wireglot")
"""Data of the service that docs/operations.md describes, readable by root."""


class RunningGateway(msgspec.Struct, frozen=True):
    """A gateway, as it describes itself."""

    url: str
    pid: int
    version: str
    config: str = ""
    """The path of its configuration; empty if it has none."""
    store: str = ""
    """Its store's URL, without a password."""
    key: str = ""
    """For its admin API; valid as long as it lives."""
    client: str = ""
    """The client that it is private to; empty: any."""
    folder: str = ""
    """The folder in which that client was started."""
    since: float = 0.0
    """Start time, in unix seconds; 0: unknown."""


class Announcement:
    """The file by which other commands find a gateway; None: it cannot have one."""

    def __init__(self, place: Path | None) -> None:
        self._place = place
        self._held: list[int] = []
        """Files that were replaced stay locked: a process that has just opened one must not take it for a
        leftover."""

    def __call__(self, about: RunningGateway) -> None:
        """Write the description, or replace it."""
        place = self._place
        descriptor = _locked(place, about) if place is not None and fcntl is not None else None
        if descriptor is not None:
            self._held.append(descriptor)

    @property
    def is_lost(self) -> bool:
        """Whether someone has removed the file: other commands would open the store themselves."""
        return bool(self._held) and self._place is not None and not self._place.exists()

    def end(self) -> None:
        if self._held and self._place is not None:
            with contextlib.suppress(OSError):
                self._place.unlink()
        for descriptor in self._held:
            os.close(descriptor)


@contextlib.contextmanager
def announced(running: RunningGateway, environ: Mapping[str, str]) -> Iterator[Announcement]:
    """Lets other commands find the gateway until the end of the context. If the file cannot be written, none
    can."""
    home = data_dir(environ)
    # A process id alone is not unique: in two containers with one home two gateways may have the same.
    name = f"{running.pid}-{secrets.token_hex(4)}.json"
    folder = _PRIVATE_FOLDER if running.client else _FOLDER
    place = home / folder / name if home is not None else None
    announcement = Announcement(place)
    announcement(running)
    try:
        yield announcement
    finally:
        announcement.end()


def find_running(
    environ: Mapping[str, str], *, tidy: bool = True, system: Path | None = None
) -> list[RunningGateway]:
    """The newest first. `tidy`: remove the files of gateways that have ended. `system`: data of a service,
    which come after the user's own."""
    homes = dict.fromkeys(home for home in (data_dir(environ), system) if home is not None)
    if not homes or fcntl is None:
        return []
    return [
        running for home in homes for running in _running_in(home / _FOLDER, tidy=tidy and home != system)
    ]


def find_private(environ: Mapping[str, str]) -> list[RunningGateway]:
    """Running private gateways of clients, the newest first."""
    home = data_dir(environ)
    return _running_in(home / _PRIVATE_FOLDER, tidy=True) if home is not None and fcntl is not None else []


def _running_in(folder: Path, *, tidy: bool) -> list[RunningGateway]:
    found = []
    with contextlib.suppress(OSError):
        for place in folder.iterdir():
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                running = _living(place, tidy)
                if running is not None:
                    found.append((place.stat().st_mtime_ns, running))
    return [running for _, running in sorted(found, key=lambda entry: entry[0], reverse=True)]


def left_over(environ: Mapping[str, str]) -> list[Path]:
    """Files of ended gateways, which a search for running ones would remove."""
    home = data_dir(environ)
    if home is None or fcntl is None:
        return []
    with contextlib.suppress(OSError):
        return [
            place
            for place in sorted((home / _FOLDER).iterdir())
            if place.suffix == ".json" and _is_left(place)
        ]
    return []


def _is_left(place: Path) -> bool:
    with contextlib.suppress(OSError), place.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


def _locked(place: Path, running: RunningGateway) -> int | None:
    """Written before it has its final name: any process that finds the file finds it complete and locked."""
    draft = place.with_suffix(".new")
    descriptor = -1
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, msgspec.json.encode(running))
        draft.replace(place)
    except OSError:  # no file can be written or locked there
        with contextlib.suppress(OSError):
            draft.unlink()
        if descriptor >= 0:
            os.close(descriptor)
        return None
    return descriptor


def _living(place: Path, tidy: bool) -> RunningGateway | None:
    if place.suffix != ".json":
        return None
    with place.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return msgspec.json.decode(file.read(_FILE_MAX_BYTES), type=RunningGateway)
        if tidy:
            place.unlink()
        return None
