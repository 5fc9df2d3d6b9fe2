"""The end of an answer, owned by one object: what must be recorded before a provider is called, and what must
have happened before the last bytes are sent to the client.

In this order, each at most once: the intent is written, the provider is called, the intent is durable (if the
settings require it, before the provider is called), the first bytes are sent, the answer's state is stored,
its account is completed, the last bytes are sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from wireglot.gateway.targets.routing import Target
from wireglot_core.ir.outcome import Response


class Account(Protocol):
    """One request in the ledger, opened before a provider is called."""

    def before_asking(self) -> Awaitable[None] | None:
        """Returns what must be waited for before a provider is called, or None. Raises a RequestError if a
        record of the request is required and cannot be written."""
        ...

    def before_answering(self) -> Awaitable[None] | None:
        """Returns what must be waited for before the client gets anything of an answer, or None. It never
        fails: the answer has been paid for."""
        ...

    def complete(self) -> None:
        """Record the result. A second call has no effect."""
        ...


class Meter(Protocol):
    """Counts an answer whose provider may not report its usage."""

    def heard(self, data: bytes) -> None:
        """Called with data that is about to be sent."""
        ...

    def estimate(self) -> None:
        """Record an estimate of what was sent, if the provider has not reported any usage. A query right
        after the answer includes it."""
        ...


class Keeper(Protocol):
    """Something that must be stored of an answer before its end is sent to the client."""

    def needs(self, target: Target) -> bool:
        """Called before the first byte: whether an answer of this target may have to be stored. A stream that
        no keeper needs is not collected."""
        ...

    def expects(self, data: bytes, *, whole: bool) -> bool:
        """Whether there may be anything to store in an answer that passes unchanged (all of it, or the
        beginning of its stream): otherwise it need not be parsed."""
        ...

    def wants(self, response: Response) -> bool:
        """Whether there is anything in it to store: otherwise there is nothing to wait for."""
        ...

    async def keep(self, response: Response) -> None:
        """`response` is as the client sees it. The client gets a RequestError raised here instead."""
        ...


class KeepsAll:
    """A `Keeper` of every answer; subclasses define `keep`."""

    def needs(self, target: Target) -> bool:
        return True

    def expects(self, data: bytes, *, whole: bool) -> bool:
        return True

    def wants(self, response: Response) -> bool:
        return True


class Ending(msgspec.Struct, eq=False):
    completed: bool = False
    """Whether its account is complete."""
    listener: Callable[[bytes], None] | None = None
    """Called with each piece of an answer before it is sent, if its tokens are counted."""
    account: Account | None = None
    """Set by the step that opens it."""
    keepers: list[Keeper] = []
    """Added by the steps that need something of the answer."""
    _meter: Meter | None = None
    _asked: bool = False

    def count_with(self, meter: Meter) -> None:
        self._meter = meter
        self.listener = meter.heard

    def of_one_round(self) -> Ending:
        """The same account for the first of several rounds, without the keepers: they wait for the whole
        answer."""
        return Ending(listener=self.listener, account=self.account, _meter=self._meter, _asked=self._asked)

    # Called by the relay and by the code that writes to the client.

    def before_asking(self) -> Awaitable[None] | None:
        """What must be waited for, or None. Once: further attempts are part of the same account."""
        if self._asked or self.account is None:
            return None
        self._asked = True
        return self.account.before_asking()

    def before_answering(self) -> Awaitable[None] | None:
        """What must be waited for, or None. Called by every attempt, and by code that keeps the client's
        connection alive meanwhile."""
        return self.account.before_answering() if self.account is not None else None

    def holds(self, target: Target) -> bool:
        """Whether the answer of this target must be complete and stored before its end is sent."""
        for keeper in self.keepers:  # noqa: SIM110 - a generator would cost more than most answers
            if keeper.needs(target):
                return True
        return False

    def expects(self, data: bytes, *, whole: bool) -> bool:
        for keeper in self.keepers:  # noqa: SIM110 - as above
            if keeper.expects(data, whole=whole):
                return True
        return False

    def wants(self, response: Response) -> bool:
        """Whether any keeper finds something to store in it."""
        for keeper in self.keepers:  # noqa: SIM110 - as above
            if keeper.wants(response):
                return True
        return False

    async def keep(self, response: Response) -> None:
        """Runs all keepers; raises the error of the first that fails."""
        for keeper in self.keepers:
            await keeper.keep(response)

    def complete(self) -> None:
        """Once. The estimate comes first, since the account includes it."""
        if self.completed:
            return
        self.completed = True
        if self._meter is not None:
            self._meter.estimate()
        if self.account is not None:
            self.account.complete()

    def close(self) -> None:
        """The request is over. These objects reference each other: this frees them without the garbage
        collector."""
        if not self.completed:
            self.complete()
        self.keepers = []
        self.account = self._meter = self.listener = None
