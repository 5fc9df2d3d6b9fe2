"""Limits how many requests are answered at once: a short queue holds those that must wait, and the rest are
told to retry later. Waiting longer than a client's timeout would only prolong an overload (backpressure)."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Final

from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.errors import RequestError
from wireglot.gateway.process_limits import ProcessLimits

MAX_STARTS: Final = 4
"""Requests that start in one round of the event loop. Each takes about a millisecond, and all of them delay
the running streams."""


class Gate:
    """Admits at most `limit` at once (0: no limit) and queues `queue` more, each for at most `seconds`."""

    def __init__(self, limit: int, queue: int, seconds: float) -> None:
        self.inside = 0
        self._limit = limit
        self._queue = queue
        self._seconds = seconds
        self._waiting: deque[asyncio.Future[bool]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def adapt(self, limit: int, queue: int, seconds: float) -> None:
        """Set new limits, for the requests that come next."""
        self._limit, self._queue, self._seconds = limit, queue, seconds

    def try_enter(self) -> bool:
        if self._limit and self.inside >= self._limit:
            return False
        self.inside += 1
        return True

    async def enter(self) -> None:
        if self.try_enter():
            return
        if len(self._waiting) >= self._queue:
            raise shed("too many concurrent requests: the queue is full")
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        # Not `wait_for`: in Python 3.11 it loses a cancellation that comes in the same step as the turn.
        timer = loop.call_later(self._seconds, _expire, turn)
        try:
            is_ours = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave()  # the place was given just as its owner left
            raise
        finally:
            timer.cancel()
            if turn in self._waiting:
                self._waiting.remove(turn)
        if not is_ours:
            raise shed("too many concurrent requests: the request waited too long in the queue")

    def leave(self) -> None:
        """Give the place to the request that has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(True)
                return
        self.inside -= 1


class Starts:
    """At most MAX_STARTS requests start in one round of the event loop: when thousands come at once, running
    streams are served between them. First come, first served."""

    def __init__(self) -> None:
        self._left = MAX_STARTS
        self._waiting: deque[asyncio.Future[None]] = deque()

    def turn(self) -> asyncio.Future[None] | None:
        """The future to wait for, or None."""
        loop = asyncio.get_running_loop()
        if self._left == MAX_STARTS:
            loop.call_soon(self._next_round)
        if self._left:
            self._left -= 1
            return None
        turn = loop.create_future()
        self._waiting.append(turn)
        return turn

    def _next_round(self) -> None:
        self._left = MAX_STARTS
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # the client may have left
                turn.set_result(None)
                self._left -= 1
        if self._left < MAX_STARTS:
            asyncio.get_running_loop().call_soon(self._next_round)


class Gates:
    """The gate of the whole process, and one for each client key."""

    def __init__(self, limits: ProcessLimits) -> None:
        self.draining = False
        """Whether the gateway is shutting down, and takes no more requests."""
        self.all = Gate(limits.requests, limits.queue, limits.queue_time)
        self.starts = Starts()
        self._by_caller: dict[str, Gate] = {}

    @property
    def inside(self) -> int:
        """Places taken at all gates together."""
        return self.all.inside + sum(gate.inside for gate in self._by_caller.values())

    @property
    def waiting(self) -> int:
        """Requests that wait at any of the gates."""
        return self.all.waiting + sum(gate.waiting for gate in self._by_caller.values())

    def adopt(self, limits: ProcessLimits) -> None:
        self.all.adapt(limits.requests, limits.queue, limits.queue_time)
        for gate in self._by_caller.values():
            gate.adapt(limits.requests_per_key, limits.queue, limits.queue_time)

    def of(self, caller: Caller, limits: ProcessLimits) -> tuple[Gate, ...]:
        """The gates that a request of this caller must pass."""
        if caller.key is None or not limits.requests_per_key:
            return (self.all,)
        own = self._by_caller.get(caller.name)
        if own is None:
            own = Gate(limits.requests_per_key, limits.queue, limits.queue_time)
            self._by_caller[caller.name] = own
        return (self.all, own)


def _expire(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)


def shed(message: str) -> RequestError:
    return RequestError("shed", message, retry_after=shed_seconds())


def no_room() -> RequestError:
    """The error for requests that the gateway has no memory for."""
    return shed("the gateway is at its memory limit")


def shed_seconds() -> float:
    """The `retry_after` of a refused request."""
    return 1 + 4 * random.random()
