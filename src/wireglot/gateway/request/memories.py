"""What is remembered of each caller's requests: one memory each, so none can meet another's (decision 18).

Only for the loop's own thread; the memories themselves are used beside it too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

import msgspec

from wireglot.gateway.process_limits import ProcessLimits
from wireglot.http.account import ByteAccount
from wireglot.wire.memory import Memory


class _Counted(msgspec.Struct, eq=False):
    memory: Memory
    size: int = 0
    """As the account knows it."""


class Memories:
    def __init__(self, limits: Callable[[], ProcessLimits], account: ByteAccount) -> None:
        self._limits = limits
        self._account = account
        self._of: OrderedDict[str, _Counted] = OrderedDict()  # the caller that was not here for longest first
        account.forget = self.forget

    def __len__(self) -> int:
        return len(self._of)

    def of(self, caller: str) -> Memory | None:
        """The caller's own; None where nothing is to be remembered."""
        limits = self._limits()
        most = limits.remembered
        if not most:
            return None
        known = self._of.get(caller)
        if known is None:
            known = self._of[caller] = _Counted(Memory(min(most, limits.remembered_per_key), Lock()))
        else:
            self._of.move_to_end(caller)
            self._count(known)  # what its last request left
            if self._account.remembered > most:
                self.forget(self._account.remembered - most)
        return known.memory

    def forget(self, size: int) -> None:
        """At least so many bytes, or all there is."""
        while size > 0 and self._of:
            caller, known = next(iter(self._of.items()))
            self._count(known)
            before = known.size
            known.memory.shrink(max(0, before - size))
            self._count(known)
            size -= before - known.size
            if not known.size:
                del self._of[caller]

    def clear(self) -> None:
        """Other settings may read the same bytes in another way."""
        for known in self._of.values():
            self._account.remembered -= known.size
        self._of.clear()

    def _count(self, known: _Counted) -> None:
        now = known.memory.held
        self._account.remembered += now - known.size
        known.size = now
