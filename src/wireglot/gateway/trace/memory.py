"""The last exchanges of this process with their bodies, in memory alone: what a gateway of one person has to
show before anything is recorded. They go with the process, and as soon as anybody needs a key."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from wireglot.gateway.entry.guard import is_loopback
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.recording import Recording

MAX_EXCHANGES: Final = 200
_BESIDE_BODIES_BYTES: Final = 4096
"""That an exchange takes in addition to its bodies."""


def memory_bytes(settings: Settings) -> int:
    """How much is held under these settings; 0: nothing, since others than the one person may come in."""
    server = settings.server
    is_private = (
        server.inspector == "auto"
        and is_loopback(server.host)
        and all(is_loopback(name) for name in server.hosts)
        and not server.require_key
        and not settings.keys
    )
    return settings.trace.memory_bytes if is_private else 0


class RecentRecordings:
    """All of it belongs to the loop, but `find`."""

    def __init__(self, settings: Settings, asks_for_keys: Callable[[], bool]) -> None:
        """`asks_for_keys`: whether a request needs a key now, also one that was made since."""
        self.most = memory_bytes(settings)
        """0: it is off. Requests look at nothing else."""
        self.held = 0
        self._asks_for_keys = asks_for_keys
        self._found: OrderedDict[str, tuple[Recording, int]] = OrderedDict()
        """With what each takes, the oldest first."""

    def adopt(self, settings: Settings) -> None:
        self.most = memory_bytes(settings)
        self._shrink()

    @property
    def is_on(self) -> bool:
        """Where a key was made meanwhile, nothing is left."""
        if self.most and self._asks_for_keys():
            self.clear()
            return False
        return self.most > 0

    def put(self, recording: Recording) -> None:
        """One that is over. What it took of the room for running ones is free again."""
        size, lost = recording.held, recording.request.lost or recording.answer.lost
        size += recording.request.held + recording.answer.held
        for attempt in recording.attempts:
            size += attempt.request.held
            lost = lost or attempt.request.lost
            if attempt.answer is not None:
                size += attempt.answer.held
                lost = lost or attempt.answer.lost
        recording.room.held -= size
        size += _BESIDE_BODIES_BYTES
        if lost or size > self.most:
            return
        self._found[recording.record.id] = recording, size
        self.held += size
        if self.held > self.most or len(self._found) > MAX_EXCHANGES:
            self._shrink()

    def find(self, id: str) -> Recording | None:
        found = self._found.get(id)
        return found[0] if found is not None else None

    def __contains__(self, id: str) -> bool:
        return id in self._found

    def forget(self, key: str, until: float = float("inf")) -> None:
        """Everything of one caller, up to a moment in unix seconds."""
        since_then = time.monotonic() - (time.time() - until)
        for id, (held, _) in list(self._found.items()):
            if held.record.caller == key and held.record.started <= since_then:
                self._remove(id)

    def clear(self) -> None:
        self._found.clear()
        self.held = 0

    def status(self) -> dict[str, Any] | None:
        """For people; None: it is off."""
        if not self.is_on:
            return None
        return {"exchanges": len(self._found), "bytes": self.held, "most_bytes": self.most}

    def _remove(self, id: str) -> None:
        _, size = self._found.pop(id)
        self.held -= size

    def _shrink(self) -> None:
        while self._found and (self.held > self.most or len(self._found) > MAX_EXCHANGES):
            self._remove(next(iter(self._found)))
