"""The clocks of one connection: a single timer, which asks what is due when it fires and arms itself again.

A request that goes as usual touches no timer at all: the one armed before is due earlier than anything new.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, Literal

from wireglot.http.transport import Timeouts, TransportFault

_SLACK_SECONDS: Final = 0.001
"""uvloop counts in milliseconds: a timer may fire this much too early."""


class Watch:
    """`expired` is told which fault is due, None when the time in the pool is over."""

    __slots__ = (
        "_backlog",
        "_blocked",
        "_due",
        "_expired",
        "_expiry",
        "_handle",
        "_loop",
        "_now",
        "_phase",
        "_started",
        "_timeouts",
        "_unsent",
        "held",
        "last",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float],
        expired: Callable[[TransportFault | None], None],
        backlog: Callable[[], int],
    ) -> None:
        self.held = False
        self.last = 0.0
        """When something of the answer came; the connection notes it."""
        self._loop = loop
        self._now = now
        self._expired = expired
        self._backlog = backlog
        self._handle: asyncio.TimerHandle | None = None
        self._due = math.inf
        self._phase: Literal["rest", "head", "body"] = "rest"
        self._expiry = math.inf
        self._timeouts = Timeouts()
        self._started = 0.0
        self._blocked = False
        self._unsent = 0

    def overdue(self) -> bool:
        return self._now() >= self._expiry

    def request(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._phase = "head"
        self._blocked = False
        self._started = self.last = self._now()
        first, total = timeouts.first_byte, timeouts.total
        self._arm(self._started + (first if first < total else total))

    def since_request(self) -> float:
        return self._now() - self._started

    def block(self) -> None:
        """Some of the request is unsent."""
        self._blocked = True
        self._unsent = self._backlog()
        self._arm(self._now() + self._timeouts.idle)

    def unblock(self) -> None:
        """All of it is gone: only now does the wait for the answer begin."""
        self._blocked = False
        if self._phase == "head":
            self.last = self._now()
            self._arm(self.last + self._timeouts.first_byte)

    def answered(self) -> None:
        self._phase = "body"
        self.last = self._now()
        self._arm(self.last + self._timeouts.idle)

    def hold(self) -> None:
        self.held = True

    def unhold(self) -> None:
        self.held = False
        self.last = self._now()
        self._arm(self.last + self._timeouts.idle)

    def rest(self, expiry: float) -> None:
        self._phase = "rest"
        self._expiry = self._now() + expiry
        self._arm(self._expiry)

    def end(self) -> None:
        """For good: who made it is not held any longer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._due = math.inf
        self._expired = _told_nobody
        self._backlog = _nothing

    def _arm(self, due: float) -> None:
        if due >= self._due:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._due = due
        self._handle = self._loop.call_later(max(due - self._now(), _SLACK_SECONDS), self._tick)

    def _tick(self) -> None:
        self._handle = None
        self._due = math.inf
        if self._blocked:
            unsent = self._backlog()
            if unsent != self._unsent:
                self._unsent = unsent
                self.last = self._now()
        due = self._next()
        if due > self._now() + _SLACK_SECONDS:
            self._arm(due)
        else:
            self._expired(self._fault())

    def _next(self) -> float:
        if self._phase == "rest":
            return self._expiry
        timeouts = self._timeouts
        total = self._started + timeouts.total
        if self.held:
            return total
        quiet = timeouts.first_byte if self._phase == "head" and not self._blocked else timeouts.idle
        return min(total, self.last + quiet)

    def _fault(self) -> TransportFault | None:
        if self._phase == "rest":
            return None
        if self._now() + _SLACK_SECONDS >= self._started + self._timeouts.total:
            return TransportFault("total_timeout", "the upstream's answer took too long")
        if self._phase == "body":
            return TransportFault("idle_timeout", "the upstream stopped sending")
        if self._blocked:
            return TransportFault("first_byte_timeout", "the upstream did not take the request in time")
        return TransportFault("first_byte_timeout", "the upstream did not answer in time")


def _told_nobody(fault: TransportFault | None) -> None: ...


def _nothing() -> int:
    return 0
