"""An upstream's stream fed to whoever writes it for the client, up to its end and no further."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from wireglot.gateway.streams.feeder import Feeder
from wireglot.http.transport import Answer, TransportFault
from wireglot.ir.errors import UpstreamFault
from wireglot.wire.json import BadJson
from wireglot.wire.sse import FrameTooLarge

_LINGER_SECONDS: Final = 2.0
"""For an upstream to close a stream whose end has been seen."""


class Pump:
    """Feeds an answer to its end: not beyond it, and not for ever while only keep-alives come."""

    def __init__(
        self,
        answer: Answer,
        feeder: Feeder,
        idle: float,
        over: Callable[[], None] | None = None,
        waits: Callable[[], bool] | None = None,
    ) -> None:
        """`over` is called at the end that counts: the upstream may close later. `waits`: whether it
        is not read for now, which is no silence of its own."""
        self._tell_over = over
        self._waits = waits
        self._answer = answer
        self._feeder = feeder
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._over = False
        self._stalled = False
        self._timer = self._loop.call_later(idle, self._look)

    async def run(self) -> None:
        try:
            await self._answer.pump(self._feed)
        except TransportFault:
            if self._stalled:
                raise TransportFault("idle_timeout", "the upstream sends nothing but keep-alives") from None
            if not self._over:
                raise
        finally:
            self._timer.cancel()
        if not self._over:
            self._feeder.finish()

    def _feed(self, data: bytes) -> None:
        if self._over:
            return
        try:
            self._feeder.feed(data)
        except (FrameTooLarge, BadJson, UpstreamFault):
            raise TransportFault("protocol", "the upstream's stream cannot be read") from None
        if self._feeder.ended:
            self._over = True
            self._timer.cancel()
            if self._tell_over is not None:
                self._tell_over()
            if self._feeder.failure is not None:
                self._answer.abort()
            else:
                self._timer = self._loop.call_later(_LINGER_SECONDS, self._answer.abort)

    def _look(self) -> None:
        if self._feeder.moved or (self._waits is not None and self._waits()):
            self._feeder.moved = False
            self._timer = self._loop.call_later(self._idle, self._look)
        else:
            self._stalled = True
            self._answer.abort()
