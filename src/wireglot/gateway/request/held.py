"""What one request holds of the process's memory, beside its body: what is made of it, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wireglot.gateway.entry.gates import shed
from wireglot.gateway.errors import RequestError
from wireglot.http.account import ByteAccount
from wireglot.http.transport import Answer


class Held:
    """Counted until the request is through, on the loop alone: two threads must not count at once.

    Before a provider is called, a request for which there is no room is refused (RequestError): its caller is
    asked to come back, and other requests go on. An answer has been paid for: it waits for room, and
    is not read meanwhile.
    """

    __slots__ = ("_account", "_asked", "_bytes", "_go_on", "_lasting", "waits")

    def __init__(self, account: ByteAccount) -> None:
        self._account = account
        self._bytes = 0
        self._lasting: int | None = None
        """What stays, whichever attempt it is."""
        self.waits = False
        """Whether its answer waits for room."""
        self._asked = 0
        """What there is no room for yet."""
        self._go_on: Callable[[], None] | None = None

    def another(self) -> Held:
        """For a request that lives on its own."""
        return Held(self._account)

    def take(self, size: int) -> None:
        self._count(size)
        if self._account.lacks(0):
            raise self.refused()

    def refused(self) -> RequestError:
        self._account.shed += 1
        return shed("the gateway holds as many bytes as it may")

    def attempt(self, size: int) -> None:
        """So much goes out now, in the place of what an attempt before this one held."""
        if self._lasting is None:
            self._lasting = self._bytes
        self._leave()
        self._give(self._bytes - self._lasting)
        self.take(size)

    def reading(self, answer: Answer) -> Callable[[int], None]:
        """Counts what comes of an answer, which is paused while there is no room for more of it."""

        def come(size: int) -> None:
            if not self._has_room(size):
                self._go_on = answer.resume
                answer.pause()

        return come

    async def room(self, size: int) -> None:
        """Wait until there is room for `size` more bytes made of an answer, and for all that has come of
        it."""
        if not self._has_room(size):
            there = asyncio.Event()
            self._go_on = there.set
            await there.wait()

    def close(self) -> None:
        self._leave()
        self._give(self._bytes)

    def admitted(self) -> None:
        size, go_on = self._asked, self._go_on
        self._stop_waiting()
        self._count(size)
        if go_on is not None:
            go_on()

    def _has_room(self, size: int) -> bool:
        """Counts it, or asks for it."""
        if not self.waits and self._account.admits(self):
            self._count(size)
            return True
        self.waits = True
        self._asked += size
        self._account.wait(self)
        return False

    def _leave(self) -> None:
        self._stop_waiting()
        self._account.leave(self)

    def _stop_waiting(self) -> None:
        self.waits = False
        self._asked, self._go_on = 0, None

    def _count(self, size: int) -> None:
        self._account.held += size
        self._bytes += size

    def _give(self, size: int) -> None:
        self._bytes -= size
        self._account.give(size)
