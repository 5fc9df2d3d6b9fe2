"""Background responses whose process has died: found without a request for them, and reported as failed.

Every response in progress is entered in one list of the whole fleet, which each process checks from its start
on. A process is dead if its heartbeat has not changed for the lease, or if it is known to be gone from this
machine, and the heartbeat is still unchanged a grace period later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from wireglot.gateway.state.responses.heartbeat import Heartbeats
from wireglot.stores.base import Documents, StoreDown
from wireglot.stores.records import Document

RUNNING: Final = "running"
"""The kind of an entry, by the response's id; its body contains the caller and the process that works on
it."""
FLEET: Final = "*fleet"
"""The tenant of the list: no caller can have this name."""

_KEPT_MS: Final = 24 * 3600 * 1000
_PAGE: Final = 200


_living: Final[set[str]] = set()
"""Instances within this process: tests have several."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    caller: str
    instance: str
    pid: int = 0
    pids: str = ""
    """Where the process id is valid; see `pid_space`."""


class Running:
    """The list."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def enter(self, caller: str, id: str, instance: str) -> None:
        now = int(time.time() * 1000)
        body = msgspec.msgpack.encode(Entry(caller, instance, os.getpid(), pid_space()))
        await self._documents.put([Document(FLEET, RUNNING, id, body, created=now, expires=now + _KEPT_MS)])

    async def remove(self, id: str) -> None:
        await self._documents.delete(FLEET, RUNNING, [id])

    async def has_died(self, id: str) -> bool:
        """Whether the process that works on it is certainly gone from this machine."""
        found = await self._documents.get(FLEET, RUNNING, [id])
        try:
            return bool(found) and has_died(msgspec.msgpack.decode(found[0].body, type=Entry))
        except msgspec.DecodeError:  # from a later version
            return False

    async def all(self) -> list[tuple[str, Entry]]:
        found: list[tuple[str, Entry]] = []
        before: tuple[int, str] | None = None
        while True:
            page = await self._documents.recent(FLEET, RUNNING, limit=_PAGE, before=before)
            for each in page:
                try:
                    found.append((each.id, msgspec.msgpack.decode(each.body, type=Entry)))
                except msgspec.DecodeError:  # from a later version
                    continue
            if len(page) < _PAGE:
                return found
            before = (page[-1].created, page[-1].id)


class Orphans:
    """`settle(caller, id)` is called for each; it may find that the response has ended after all."""

    def __init__(
        self,
        running: Running,
        heartbeats: Heartbeats,
        instance: str,
        settle: Callable[[str, str], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running = running
        self._heartbeats = heartbeats
        self._instance = instance
        _living.add(instance)
        self._settle = settle
        self._clock = clock
        self._suspected: dict[str, tuple[bytes, float]] = {}
        """By response: the heartbeat that did not change, and since when that has been known."""

    def close(self) -> None:
        _living.discard(self._instance)

    async def look(self, lease: float, grace: float, ours: Callable[[str, str], bool]) -> None:
        try:
            entries = await self._running.all()
            suspected = {}
            for id, entry in entries:
                if ours(entry.caller, id):
                    continue
                sign = await self._heartbeats.read(entry.caller, id)
                still = self._heartbeats.still(entry.caller, id, sign)
                if still < lease and not has_died(entry):
                    continue
                now = self._clock()
                before, since = self._suspected.get(id, (b"", now))
                if id in self._suspected and before == sign and now - since >= grace:
                    await self._settle(entry.caller, id)
                    await self._running.remove(id)
                else:
                    suspected[id] = (sign, since if before == sign else now)
            self._suspected = suspected
        except StoreDown:
            # While the store was down, live processes could not write heartbeats: all get a new grace period.
            self._suspected = {}
            raise


def has_died(entry: Entry) -> bool:
    """Whether a process of this machine is certainly gone; for other machines that is unknown here."""
    if entry.instance in _living or not entry.pids or entry.pids != pid_space():
        return False
    if entry.pid == os.getpid():
        return True  # the process id is ours now
    try:
        os.kill(entry.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


@cache
def pid_space() -> str:
    """Identifies this boot of this machine and its container; "" if the system does not report them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
