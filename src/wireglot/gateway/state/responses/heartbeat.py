"""Heartbeats of the process that works on a response, for processes that only see the store."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from wireglot.stores.base import Documents
from wireglot.stores.records import Document

BEAT: Final = "beat"
"""One for each response in progress, by the response's id: different bytes with every beat."""

_KEPT_MS: Final = 24 * 3600 * 1000
# Background responses whose heartbeat is known.
_MAX_SEEN: Final = 10_000
_NONCE_BYTES: Final = 8
_TIME_BYTES: Final = 8
_CLOCKS_APART_SECONDS: Final = 300.0
"""How far the clocks of two machines may differ."""


class Heartbeats:
    """Only whether a heartbeat changes counts, and for how long it has not by the observer's clock: the
    clocks of two machines need not agree. Only a heartbeat older than clocks may differ counts as unchanged
    since before it was first seen."""

    def __init__(
        self,
        documents: Documents,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._documents = documents
        self._clock = clock
        self._wall = wall
        self._seen: OrderedDict[tuple[str, str], tuple[bytes, float]] = OrderedDict()
        """The last seen heartbeat, and since when."""

    async def begin(self, caller: str, id: str) -> None:
        await self._documents.put([self._sign(caller, id)])

    async def beat(self, caller: str, id: str) -> bool:
        """False: it no longer exists. The response was deleted."""
        return await self._documents.replace(self._sign(caller, id))

    async def end(self, caller: str, id: str) -> None:
        await self._documents.delete(caller, BEAT, [id])

    async def read(self, caller: str, id: str) -> bytes:
        """b"": there is none."""
        found = await self._documents.get(caller, BEAT, [id])
        return found[0].body if found else b""

    def still(self, caller: str, id: str, sign: bytes, began: float = 0.0) -> float:
        """Seconds for which it has certainly not changed. `began`: when the response did (unix seconds), if
        known: an old one has no heartbeat any more."""
        now = self._clock()
        known = self._seen.pop((caller, id), None)
        if known is None or known[0] != sign:
            known = (sign, now - self._surely_old(sign, began))
        self._seen[caller, id] = known
        if len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)
        return now - known[1]

    def forget(self, caller: str, id: str) -> None:
        self._seen.pop((caller, id), None)

    def _surely_old(self, sign: bytes, began: float) -> float:
        if len(sign) == _NONCE_BYTES + _TIME_BYTES:  # those of older versions have no time
            began = int.from_bytes(sign[_NONCE_BYTES:], "big") / 1000
        elif sign:
            return 0.0
        return max(0.0, self._wall() - began - _CLOCKS_APART_SECONDS) if began else 0.0

    def _sign(self, caller: str, id: str) -> Document:
        now = int(self._wall() * 1000)
        sign = secrets.token_bytes(_NONCE_BYTES) + now.to_bytes(_TIME_BYTES, "big")
        return Document(caller, BEAT, id, sign, created=now, expires=now + _KEPT_MS)
