"""What the connections of one server share: the application, its limits, who is there, what is running."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from wireglot.http.account import ByteAccount
from wireglot.http.application import Application
from wireglot.http.limits import ServerLimits
from wireglot.http.server.render import StatusLines


class OpenConnection(Protocol):
    """What a server may do to one of its connections."""

    def sweep(self, now: float, limits: ServerLimits) -> None:
        """End what has been waited for long enough."""
        ...

    def close_if_idle(self) -> None: ...

    def close(self) -> None:
        """Close once what has been written is out."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


class Hub:
    def __init__(
        self,
        app: Application,
        limits: Callable[[], ServerLimits],
        account: ByteAccount | None = None,
        tell: Callable[[str, str], None] = lambda code, message: None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.tell = tell
        """Hears of an error of the HTTP class that was not given before, by its code and words: the client
        that it is for may not be able to read it."""
        self.loop: asyncio.AbstractEventLoop
        self.context: contextvars.Context
        """Requests run in copies of it: one that starts where another ends must not inherit its variables."""
        self.connections: set[OpenConnection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.status_lines = StatusLines(time.time())
        self.draining = False
        self.empty = asyncio.Event()
        """Set once a draining server has nothing left."""
        self.account = account if account is not None else ByteAccount(lambda: limits().buffered)
        """Of bodies that are arriving or in the hands of a handler, and of what clients have yet to take."""
        self.refused: Counter[str] = Counter()
        """How often each error of the HTTP class was given, by its code."""
        self._peers: Counter[str] = Counter()

    def open(self) -> None:
        """Belong to the loop that is running now."""
        self.loop = asyncio.get_running_loop()
        self.context = contextvars.copy_context()

    def enter(self, connection: OpenConnection, peer: str) -> int:
        """Count a new connection. Gives by how many there are too many, here or from its address."""
        limits = self.limits()
        self.connections.add(connection)
        excess = len(self.connections) - limits.connections
        if not _is_local(peer):
            self._peers[peer] += 1
            excess = max(excess, self._peers[peer] - limits.connections_per_peer)
        return excess

    def leave(self, connection: OpenConnection, peer: str) -> None:
        self.connections.discard(connection)
        if not _is_local(peer):
            self._peers[peer] -= 1
            if self._peers[peer] <= 0:
                del self._peers[peer]
        self._note_empty()

    def run(self, task: asyncio.Task[None]) -> None:
        # The loop itself holds tasks only weakly.
        self.tasks.add(task)

    def ran(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self._note_empty()

    def count_refusal(self, code: str, message: str) -> None:
        if not self.refused[code]:
            self.tell(code, message)
        self.refused[code] += 1

    def report(self, message: str, problem: BaseException) -> None:
        context: dict[str, Any] = {"message": message, "exception": problem}
        self.loop.call_exception_handler(context)

    def _note_empty(self) -> None:
        if self.draining and not self.connections and not self.tasks:
            self.empty.set()


def _is_local(peer: str) -> bool:
    return peer.startswith(("127.", "::ffff:127.")) or peer in ("", "::1")
