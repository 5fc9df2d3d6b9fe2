"""An answer whose stream comes in a framing of its own, as if it came in server-sent events."""

from __future__ import annotations

from collections.abc import Callable

from wireglot.dialects.base import Unframer
from wireglot.http.transport import Answer, TransportFault
from wireglot.wire.event_stream import BadFrame

EVENT_STREAM = "text/event-stream"


class UnframedAnswer:
    """Implements `Answer`. A frame that is broken breaks the connection: what came before it has gone on."""

    def __init__(self, answer: Answer, unframer: Unframer) -> None:
        self.status = answer.status
        self.headers = {**answer.headers, "content-type": EVENT_STREAM}
        self._answer = answer
        self._unframer = unframer

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        """Not a stream after all: an error, or an answer in one piece."""
        return await self._answer.read(limit, held)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        unframer = self._unframer

        def unframed(data: bytes) -> None:
            try:
                events = unframer.feed(data)
            except BadFrame as fault:
                raise _broken(fault) from None
            if events:
                feed(events)
            if unframer.fault is not None:
                raise _broken(unframer.fault)

        await self._answer.pump(unframed)
        try:
            unframer.close()
        except BadFrame as fault:
            raise _broken(fault) from None

    def pause(self) -> None:
        self._answer.pause()

    def resume(self) -> None:
        self._answer.resume()

    def abort(self) -> None:
        self._answer.abort()


def _broken(fault: BadFrame) -> TransportFault:
    return TransportFault("broken", f"the upstream's stream is broken: {fault}")
