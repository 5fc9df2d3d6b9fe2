"""Signs of life of whoever works on a response, for those who only see what is stored."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from wireglot.stores.base import Documents
from wireglot.stores.records import Document

BEAT: Final = "beat"
"""One for each response that is being worked on, by the response's id: other bytes with every beat."""

_KEPT_MS: Final = 24 * 3600 * 1000
_SEEN_MOST: Final = 10_000


class Heartbeats:
    """Only whether a sign moves counts, and for how long it has not by the clock of whoever looks: those of
    two machines need not agree."""

    def __init__(self, documents: Documents, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._documents = documents
        self._clock = clock
        self._seen: OrderedDict[tuple[str, str], tuple[bytes, float]] = OrderedDict()
        """What a sign was when it was last looked at, and since when."""

    async def begin(self, caller: str, id: str) -> None:
        await self._documents.put([_sign(caller, id)])

    async def beat(self, caller: str, id: str) -> bool:
        """False: it is no longer there. The response was deleted."""
        return await self._documents.replace(_sign(caller, id))

    async def end(self, caller: str, id: str) -> None:
        await self._documents.delete(caller, BEAT, [id])

    async def read(self, caller: str, id: str) -> bytes:
        """b"": there is none."""
        found = await self._documents.get(caller, BEAT, [id])
        return found[0].body if found else b""

    def still(self, caller: str, id: str, sign: bytes) -> float:
        """Seconds for which this process has seen it stand still."""
        now = self._clock()
        known = self._seen.pop((caller, id), None)
        if known is None or known[0] != sign:
            known = (sign, now)
        self._seen[caller, id] = known
        if len(self._seen) > _SEEN_MOST:
            self._seen.popitem(last=False)
        return now - known[1]

    def forget(self, caller: str, id: str) -> None:
        self._seen.pop((caller, id), None)


def _sign(caller: str, id: str) -> Document:
    now = int(time.time() * 1000)
    return Document(caller, BEAT, id, secrets.token_bytes(8), created=now, expires=now + _KEPT_MS)
