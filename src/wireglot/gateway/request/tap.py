"""What whoever records an exchange is told on its way: the seam that nothing else knows of.

An exchange that nobody records has no tap, and nothing of this is called.
"""

from __future__ import annotations

from typing import Protocol

from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
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
