"""The demo provider as the relay sees it: a transport that carries nothing anywhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault
from wireglot.ir.errors import ApiError

if TYPE_CHECKING:
    from wireglot.demo.service import Served

_SCHEME = "demo:"


class DemoTransport:
    """Answers requests to `demo:` URLs. `seed` keeps the ids of two gateways apart."""

    waiting = 0
    """There is room for any number."""

    def __init__(self, seed: str = "", clock: Callable[[], float] = time.time) -> None:
        self._seed = seed
        self._clock = clock

    async def send(self, request: Outbound, timeouts: Timeouts) -> Answer:
        # Loaded on first use: a gateway without a demo provider starts without a demo model.
        from wireglot.demo.service import refused, serve, target_of

        path, _, query = request.url.removeprefix(_SCHEME).partition("?")
        headers = dict(request.headers)
        target = target_of(path, query, headers)
        if target is None:
            unknown = ApiError("not_found", f"The demo provider has nothing at {path}", 404)
            return DemoAnswer(refused("openai-chat", unknown), timeouts)
        served = serve(target, request.body, seed=self._seed, now=int(self._clock()))
        if served.ending == "silent":
            await asyncio.sleep(min(timeouts.first_byte, timeouts.total))
            raise TransportFault("first_byte_timeout", "the demo provider was told not to answer")
        return DemoAnswer(served, timeouts)

    async def close(self) -> None:
        """There is nothing to close."""


class DemoAnswer:
    """Its pieces come one by one, `gap` apart, so that a stream is one and others get their turn."""

    def __init__(self, served: Served, timeouts: Timeouts) -> None:
        self.status = served.status
        self.headers = {name.lower(): value for name, value in served.headers}
        if not served.streams:
            self.headers["content-length"] = str(len(served.body))
        self._served = served
        self._timeouts = timeouts
        self._aborted = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        kept = bytearray()

        def keep(piece: bytes) -> None:
            kept.extend(piece)
            if held is not None:
                held(len(piece))
            if len(kept) > limit:
                raise TransportFault("too_large", f"the answer is larger than {limit} bytes")

        await self.pump(keep)
        return bytes(kept)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timeouts.total
        for piece in self._served.pieces:
            await self._pass(self._served.gap)
            await self._flowing.wait()
            if clock() > deadline:
                raise TransportFault("total_timeout", "the demo provider was told to be slow")
            if self._aborted:
                raise TransportFault("broken", "the answer was aborted")
            feed(piece)
        if self._served.ending == "hang":
            await self._pass(float("inf"))
        if self._served.ending == "cut" and not self._served.streams:
            raise TransportFault("broken", "the demo provider was told to cut its answer")

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def abort(self) -> None:
        self._aborted = True
        self._flowing.set()

    async def _pass(self, gap: float) -> None:
        limit = min(self._timeouts.idle, self._timeouts.total)
        await asyncio.sleep(min(gap, limit))
        if gap > limit:
            raise TransportFault("idle_timeout", "the demo provider was told to fall silent")
