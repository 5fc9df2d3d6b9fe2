"""The interface of everything that turns an upstream's bytes into a client's, the code they share, and the
pump that feeds them.

A feeder is called from the socket's own read, so it never waits. Until its answer has begun a failure is
raised (`StreamRefused`, or `NoAnswer` for a stream that ends without an answer): another attempt may follow.
After that a failure is reported in the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from wireglot.gateway.errors import RequestError, cleaned
from wireglot.gateway.observe.record import UsageSource
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.problems import shown
from wireglot.gateway.targets.prepared import Prepared
from wireglot.http.transport import Answer, TransportFault
from wireglot_core.dialects.base import Dialect
from wireglot_core.ir.content import Reasoning, Text
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.outcome import Response, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)
from wireglot_core.providers.reasoning_filter import ReasoningFilter
from wireglot_core.providers.shown_searches import ShownSearches
from wireglot_core.wire.json import BadJson
from wireglot_core.wire.sse import FrameTooLarge

# Lines of one read of a stream that are fed in one step of the loop, about 64 events; the rest follows in the
# next steps, and meanwhile the upstream is not read. A read of 256 KiB can hold 30,000 events.
MAX_LINES_AT_ONCE: Final = 192

# Bytes of one read of a stream that are fed in one step of the loop, for streams whose events are not lines.
MAX_BYTES_AT_ONCE: Final = 16 * 1024

STREAM_TIMES: Final = 4
"""How much larger than a whole answer a stream may be: each event repeats its frame."""
_FEW_BYTES: Final = 1024
"""No more events than are fed at once, however small they are."""
_LINGER_SECONDS: Final = 2.0
"""How long an upstream may take to close a stream whose end has been seen."""


class StreamRefused(Exception):
    """The upstream's stream begins with an error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


class Feeder(Protocol):
    ended: bool
    """Nothing more will come that the client should see."""
    failure: ApiError | None
    """Why the stream ended too early, if it did."""
    moved: bool
    """Set by everything but keep-alives; cleared by the code that watches it."""
    cut: bool
    """The answer has ended before its upstream finished; the rest is not wanted."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> None:
        """The upstream closed: a stream that is not complete is reported as broken."""
        ...

    def fail(self, error: ApiError) -> None:
        """The upstream failed after the answer had begun."""
        ...

    def abandon(self) -> None:
        """The client has left: keep the account of what it received."""
        ...


class HoldsEnd(Protocol):
    """A feeder that delays the end of an answer until its state is stored."""

    holds_end: bool
    """Whether it does so; known at its end."""

    def response(self) -> Response | None:
        """The whole answer, if it came to its end."""
        ...

    def release(self, error: ApiError | None = None) -> None:
        """Send the end, or this error in its place."""
        ...


def too_large() -> TransportFault:
    return TransportFault("too_large", "the upstream's answer is too large")


def begins(events: list[Event]) -> bool:
    """Whether an answer has begun: it has content, or its end. `Start` and the beginning of a text do not
    count: the upstream may still fail with an overload after them."""
    for event in events:
        match event:
            case Delta():
                if event.text or event.logprobs:
                    return True
            case PartStart(part=part):
                if not isinstance(part, Text | Reasoning) or part.text or part.signature is not None:
                    return True
            case Failure():
                raise StreamRefused(event.error)
            case Finish() | ForeignEvent() | OtherAnswer():
                return True
            case Start() | UsageReport() | PartEnd():
                pass
    return False


def asked(exchange: Exchange) -> Request | None:
    """The client's request; None if only its own vendor can read it."""
    try:
        return exchange.request()
    except RequestError:
        return None


def reasoning_filter(exchange: Exchange, prepared: Prepared, *, keeps: bool) -> ReasoningFilter | None:
    """Removes from a stored answer the reasoning that its client did not ask for."""
    if not keeps or not exchange.withholds_reasoning or prepared.minter is None:
        return None
    return ReasoningFilter(prepared.minter, signs=exchange.job.surface.reasoning.signs_texts)


def shown_searches(exchange: Exchange, upstream: Dialect, request: Request | None) -> ShownSearches | None:
    """Shows a client the searches that an upstream of another dialect has run; None: there are none."""
    if request is None:
        return None
    return ShownSearches.of(request, upstream.surface, exchange.job.surface, exchange.record.id)


def signed(error: ApiError, exchange: Exchange) -> ApiError:
    """The error with our request id, which the log has too, and without our secrets, which the upstream
    knows, and details of the operator's account that the caller may not see."""
    reported = shown(cleaned(error, exchange.redactor.text), exchange)
    return msgspec.structs.replace(reported, request_id=exchange.record.id)


def usage_source(usage: Usage | None, complete: bool) -> UsageSource:
    if usage is None:
        return "none"
    return "provider" if complete else "partial"


class Pump:
    """Feeds an answer until its end, but not beyond it, and not for ever while only keep-alives come."""

    def __init__(
        self,
        answer: Answer,
        feeder: Feeder,
        idle: float,
        over: Callable[[], None] | None = None,
        waits: Callable[[], bool] | None = None,
    ) -> None:
        """`over` is called at the final event: the upstream may close later. `waits`: whether reading is
        paused, which must not count as the upstream's silence."""
        self._tell_over = over
        self._waits = waits
        self._answer = answer
        self._feeder = feeder
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._over = False
        self._stalled = False
        self._rest = b""
        """Read but not fed yet, from `_at` on."""
        self._at = 0
        self._next: asyncio.Handle | None = None
        """The step that feeds it."""
        self._pressed = False
        """The client reads slower than we write."""
        self._problem: Exception | None = None
        """Raised by the feeder in such a step."""
        self._timer = self._loop.call_later(idle, self._look)

    async def run(self) -> None:
        try:
            try:
                await self._answer.pump(self._feed)
            except TransportFault:
                await self._feed_rest()
                raise
            if self._rest:
                await self._feed_rest()
        except TransportFault:
            if self._stalled:
                raise TransportFault("idle_timeout", "the upstream sends nothing but keep-alives") from None
            if self._problem is None and not self._over:
                raise
        finally:
            self._timer.cancel()
            self._rest = b""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        if not self._over:
            self._feeder.finish()

    def pause(self) -> None:
        self._pressed = True
        self._answer.pause()

    def resume(self) -> None:
        self._pressed = False
        self._read_on()

    def _feed(self, data: bytes) -> None:
        if self._over:
            return
        if self._rest or len(data) > _FEW_BYTES:
            data = self._first_step(data)
            if not data:
                return
        try:
            self._feeder.feed(data)
        except BaseException as problem:
            self._rest = b""
            if isinstance(problem, FrameTooLarge | BadJson | UpstreamFault):
                raise TransportFault("protocol", "the upstream's stream cannot be read") from None
            raise
        if self._feeder.ended:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._rest = b""
        self._timer.cancel()
        if self._tell_over is not None:
            self._tell_over()
        if self._feeder.failure is not None or self._feeder.cut:
            self._answer.abort()
        else:
            self._timer = self._loop.call_later(_LINGER_SECONDS, self._answer.abort)

    def _first_step(self, data: bytes) -> bytes:
        """What is fed now. The rest follows in further steps, and meanwhile nothing is read."""
        if self._rest:
            self._rest, self._at = self._rest[self._at :] + data, 0
            self._answer.pause()
            return b""
        end = _end_of_step(data, 0)
        if end < len(data):
            self._rest, self._at = data, end
            self._answer.pause()
            self._read_on()
        return data[:end]

    def _read_on(self) -> None:
        if self._pressed:
            return
        if self._rest:
            if self._next is None:
                self._next = self._loop.call_soon(self._feed_next)
        elif self._waits is None or not self._waits():
            self._answer.resume()

    def _feed_next(self) -> None:
        self._next = None
        if self._pressed or not self._rest:
            return
        try:
            self._feed_step()
        except Exception as problem:  # it belongs to the one who pumps
            self._rest, self._problem = b"", problem
            self._answer.abort()
        else:
            self._read_on()

    async def _feed_rest(self) -> None:
        """The answer has ended: feed what was read before."""
        if self._next is not None:
            self._next.cancel()
        while self._rest:
            await asyncio.sleep(0)
            self._feed_step()

    def _feed_step(self) -> None:
        rest, at = self._rest, self._at
        end = _end_of_step(rest, at)
        self._rest = b""
        self._feed(rest[at:end])
        if end < len(rest) and not self._over:
            self._rest, self._at = rest, end

    def _look(self) -> None:
        if self._feeder.moved or self._rest or (self._waits is not None and self._waits()):
            self._feeder.moved = False
            self._timer = self._loop.call_later(self._idle, self._look)
        else:
            self._stalled = True
            self._answer.abort()


def _end_of_step(data: bytes, at: int) -> int:
    """Up to where the data from `at` on is fed in one step."""
    end = min(len(data), at + MAX_BYTES_AT_ONCE)
    if data.count(b"\n", at, end) <= MAX_LINES_AT_ONCE:
        return end
    for _ in range(MAX_LINES_AT_ONCE):
        at = data.find(b"\n", at) + 1
    return at
