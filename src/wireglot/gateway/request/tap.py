"""What whoever records an exchange is told on its way: the seam that nothing else knows of.

An exchange that nobody records has no tap, and nothing of this is called.
"""

from __future__ import annotations

from typing import Protocol

from wireglot.gateway.observe.record import Record
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Head
from wireglot.http.transport import Answer
from wireglot.ir.request import Request


class Tap(Protocol):
    def passed(self, stretch: str) -> None:
        """A stretch of the way lies behind it, which began where the one before ended."""
        ...

    def asking(self, target: Target, prepared: Prepared, asked: Request | None) -> None:
        """One more provider is asked, or the same one again. `asked`: where it is not what the client's body
        says, but what came of it."""
        ...

    def answering(self, answer: Answer) -> Answer:
        """The provider has begun to answer. To be read in its place: it tells what it is read of."""
        ...

    def attempt_failed(self, message: str) -> None: ...

    def beside(self, head: Head, body: bytes, record: Record) -> TapBeside:
        """What this one asks for is made in the background: an exchange of its own, recorded as this one."""
        ...


class TapBeside(Tap, Protocol):
    """Of an exchange that no client waits for."""

    def wrote(self, data: bytes) -> None:
        """What a client may fetch of it, as it is made."""
        ...

    def over(self) -> None:
        """Its record is complete, and its row not told yet. Where it has none, nothing is kept."""
        ...

    def keep(self) -> None:
        """There is no more to come."""
        ...
