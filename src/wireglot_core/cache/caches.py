"""The caches of all callers: one memory each, so that no caller can see another's data (decision 18).

Large bodies are read in worker threads, and look up their caller's memory from there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock, RLock
from typing import Final, Protocol

from wireglot_core.cache.memory import Memory
from wireglot_core.cache.sightings import Sightings

_LEAST_BYTES: Final = 8 * 1024
"""Smaller bodies are parsed as fast as they are looked up."""
_HELD_FOR_BYTE: Final = 7
"""Bytes held for each byte of a conversation, including everything derived from it."""


class CacheLimits(Protocol):
    """Limits in bytes, for all callers together and for each. 0: nothing is cached."""

    @property
    def remembered(self) -> int: ...

    @property
    def remembered_per_key(self) -> int: ...


class CacheAccount(Protocol):
    """Reports how many bytes are cached, as part of all memory that the process accounts for."""

    remembered: int
    forget: Callable[[int], None]
    """Drops this many of the cached bytes."""


class Memories:
    """Implements `wire.cache.Caches`."""

    least_bytes: Final = _LEAST_BYTES

    def __init__(self, limits: Callable[[], CacheLimits], account: CacheAccount) -> None:
        self._limits = limits
        self._account = account
        self._counting = Lock()
        self._lock = RLock()
        self._settings = 0
        """Version of the settings that bodies are parsed with."""
        self._of: OrderedDict[str, Memory] = OrderedDict()  # the least recently used first
        self._sightings = Sightings()
        account.forget = self.forget

    def __len__(self) -> int:
        return len(self._of)

    def for_next_turn(self, caller: str, body: bytes) -> Memory | None:
        """The caller's own cache, if the body probably continues a known conversation."""
        memory = self._of.get(caller) if len(body) >= _LEAST_BYTES else None
        if memory is None or not memory.may_know(body):
            return None
        memory.sent(len(body))
        with self._lock:
            self._sightings.pass_by(caller, len(body))
            return self.of(caller)

    def for_body(self, caller: str, body: bytes) -> Memory | None:
        """The caller's cache for any other repeated body; None if caching it would not pay."""
        if len(body) < _LEAST_BYTES:
            return None
        limits = self._limits()
        if not limits.remembered:
            return None
        memory = self._of.get(caller)
        if memory is not None:
            memory.sent(len(body))
        within = limits.remembered // _HELD_FOR_BYTE
        within_own = min(limits.remembered, limits.remembered_per_key) // _HELD_FOR_BYTE
        with self._lock:
            if not self._sightings.comes_again(caller, body, within=within, within_own=within_own):
                return None
            worth = memory is None or memory.learns or memory.may_frame(body)
            return self.of(caller) if worth else None

    def finder(self, caller: str) -> Callable[[bytes], Memory | None]:
        """Returns `for_body` of the caller, as long as the current settings are valid."""
        settings = self._settings

        def find(body: bytes) -> Memory | None:
            with self._lock:
                return self.for_body(caller, body) if self._settings == settings else None

        return find

    def of(self, caller: str) -> Memory | None:
        """The caller's cache; None if caching is off."""
        with self._lock:
            limits = self._limits()
            most = limits.remembered
            if not most:
                return None
            memory = self._of.get(caller)
            if memory is None:
                share = min(most, limits.remembered_per_key)
                memory = self._of[caller] = Memory(share, Lock(), self._count)
            else:
                self._of.move_to_end(caller)
            over = self._account.remembered - most
            if over > 0:  # added by requests since the last call
                self.forget(over)
                return self._of.get(caller)
            return memory

    def forget(self, size: int) -> None:
        """Evict at least this many bytes, or everything if there are fewer."""
        with self._lock:
            while size > 0 and self._of:
                caller, memory = next(iter(self._of.items()))
                before = memory.held
                if before > size:
                    memory.shrink(before - size)
                else:
                    del self._of[caller]
                    memory.retire()  # a request of the caller may be under way
                size -= before - memory.held

    def clear(self) -> None:
        """Called when settings change: others may parse the same bytes differently."""
        with self._lock:
            self._settings += 1
            for memory in self._of.values():
                memory.retire()
            self._of.clear()

    def _count(self, size: int) -> None:
        """Called by the event loop and by worker threads."""
        with self._counting:
            self._account.remembered += size
