"""The end of an answer, which one object owns: what must be written down before a provider is asked, and what
must have happened before the last bytes go out to the client.

In this order, each at most once: the intent is written, the provider is asked, the intent is durable (where
the settings want that, before the provider is asked), the first bytes go out, what must be kept of the answer
is kept, its account is completed, the last bytes go out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from wireglot.gateway.targets.routing import Target
from wireglot.ir.outcome import Response


class Account(Protocol):
    """One request in the ledger, opened before a provider is asked."""

    def before_asking(self) -> Awaitable[None] | None:
        """What must be waited for before a provider is asked, None where nothing must. A RequestError where
        there must be a trace of the request and can be none."""
        ...

    def before_answering(self) -> Awaitable[None] | None:
        """What must be waited for before the client gets anything of an answer, None where nothing must. It
        never fails: the answer has been bought."""
        ...

    def complete(self) -> None:
        """Write down what became of it. A second call is nothing."""
        ...


class Meter(Protocol):
    """Counts an answer whose provider may not tell what it came to."""

    def heard(self, data: bytes) -> None:
        """This much more of it is about to go out."""
        ...

    def estimate(self) -> None:
        """Put down what was heard, where the provider has not reported. A client that asks at once finds
        it."""
        ...


class Keeper(Protocol):
    """Something that must be remembered of an answer before its end goes out to the client."""

    def needs(self, target: Target) -> bool:
        """Asked before the first byte: whether an answer of this target may have to be kept. A stream that
        no keeper needs is not collected."""
        ...

    def expects(self, data: bytes, *, whole: bool) -> bool:
        """Whether there may be anything to keep in an answer that passes as it comes, all of it or the
        beginning of its stream: one that is not kept need not be read."""
        ...

    def wants(self, response: Response) -> bool:
        """Whether there is anything in it to keep: otherwise there is nothing to wait for."""
        ...

    async def keep(self, response: Response) -> None:
        """`response` is as the client sees it. A RequestError raised here is what the client gets instead."""
        ...


class KeepsAll:
    """A `Keeper` of every answer, once it has `keep`."""

    def needs(self, target: Target) -> bool:
        return True

    def expects(self, data: bytes, *, whole: bool) -> bool:
        return True

    def wants(self, response: Response) -> bool:
        return True


class Ending(msgspec.Struct, eq=False):
    completed: bool = False
    """Whether its account is."""
    listener: Callable[[bytes], None] | None = None
    """Called with each piece of an answer before it goes out, where its tokens are counted."""
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

    # Followed by the relay and by the one that writes to the client.

    def before_asking(self) -> Awaitable[None] | None:
        """What must be waited for, None where nothing must. Once: further attempts are part of the same
        account."""
        if self._asked or self.account is None:
            return None
        self._asked = True
        return self.account.before_asking()

    def before_answering(self) -> Awaitable[None] | None:
        """What must be waited for, None where nothing must. Asked by every attempt, and by anyone who would
        keep the client's connection alive meanwhile."""
        return self.account.before_answering() if self.account is not None else None

    def holds(self, target: Target) -> bool:
        """Whether the answer of this target must be whole and kept before its end goes out."""
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
        """Whether any keeper finds something to keep in it."""
        for keeper in self.keepers:  # noqa: SIM110 - as above
            if keeper.wants(response):
                return True
        return False

    async def keep(self, response: Response) -> None:
        """All keepers, or the error of the first that cannot."""
        for keeper in self.keepers:
            await keeper.keep(response)

    def complete(self) -> None:
        """Once: the estimate first, since the account tells it too."""
        if self.completed:
            return
        self.completed = True
        if self._meter is not None:
            self._meter.estimate()
        if self.account is not None:
            self.account.complete()

    def close(self) -> None:
        """Nothing more will come. They hold one another: let go, and nothing waits for the collector."""
        if not self.completed:
            self.complete()
        self.keepers = []
        self.account = self._meter = self.listener = None
