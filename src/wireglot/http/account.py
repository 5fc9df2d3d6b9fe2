"""Memory accounting: how many bytes the process holds (arriving bodies, data made from them, answers, unsent
output), and each request's share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from wireglot.http.transport import Answer


class ByteAccount:
    """One account for both directions. Code that holds bytes adds them and removes them again; beyond
    `limit`, which may change at any time, no request should take on more. Only used in the loop's own thread.

    Answers that have been paid for wait for room instead of being refused. One of them at a time may exceed
    the limit, else all could wait for one another: the total is at most the limit and one answer.
    """

    __slots__ = ("_first", "_queue", "forget", "held", "limit", "owed", "refusal", "remembered", "shed")

    def __init__(self, limit: int, refusal: Callable[[], Exception] = MemoryError) -> None:
        """`refusal`: the exception for a request that is refused for lack of room."""
        self.held = 0
        self.owed = 0
        """Bytes that clients have yet to take: released when they do, or when they are disconnected."""
        self.limit = limit
        self.refusal = refusal
        self.shed = 0
        """How many requests were refused for lack of room."""
        self.remembered = 0
        """Bytes that are only cached. They are counted in any thread."""
        self.forget: Callable[[int], None] = lambda size: None
        """Drops this many of the cached bytes: before a request is turned away."""
        self._first: MemoryLease | None = None
        """The lease admitted last: the one that reaches the limit may exceed it, and needs no room."""
        self._queue: dict[MemoryLease, None] = {}

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._queue)

    def lacks(self, size: int) -> bool:
        """Whether there is no room for this many more bytes."""
        over = self.held + self.remembered + size - self.limit
        if over > 0 and self.remembered:
            self.forget(over)
            over = self.held + self.remembered + size - self.limit
        return over > 0

    def give(self, size: int) -> None:
        """Release this many bytes."""
        self.held -= size
        if self._queue:
            self._let_in()

    def owe(self, size: int) -> None:
        """Count this many more bytes that wait for a client; a negative number releases them."""
        self.owed += size
        self.held += size
        if self._queue:
            self._let_in()

    def admits(self, lease: MemoryLease) -> bool:
        """Whether it may hold more now."""
        if lease is self._first:
            return True
        over = self.held + self.remembered > self.limit and self.lacks(0)
        if over and (self._first is not None or self.held - self.owed <= self.limit):
            return False  # another request will end, or clients take their output
        self._first = lease
        return True

    def wait(self, lease: MemoryLease) -> None:
        """Admit it when there is room, in the order of arrival."""
        self._queue[lease] = None

    def leave(self, lease: MemoryLease, size: int) -> None:
        """It needs nothing more, and returns this many bytes."""
        self._queue.pop(lease, None)
        if self._first is lease:
            self._first = None
        self.held -= size
        if self._queue:
            self._let_in()

    def _let_in(self) -> None:
        while self._queue:
            lease = next(iter(self._queue))
            if not self.admits(lease):
                return
            del self._queue[lease]
            lease.admitted()


class MemoryLease(msgspec.Struct, eq=False):
    """The memory of one request in addition to its body: data made from it, and its answer.

    Before a provider is called, a request without room is refused (`ByteAccount.refusal`): its client may
    retry, and the work for others continues. An answer has been paid for: it waits for room, and is not read
    meanwhile.
    """

    account: ByteAccount
    held: int = 0
    waits: bool = False
    """Whether its answer waits for room."""
    lasting: int | None = None
    """Bytes that stay, whichever attempt it is."""
    missing: int = 0
    """Bytes without room yet."""
    pause: Callable[[], None] | None = None
    go_on: Callable[[], None] | None = None
    """Called when there is room again for more of the answer."""

    def another(self) -> MemoryLease:
        """For a request with a separate lifetime."""
        return MemoryLease(self.account)

    def take(self, size: int) -> None:
        account = self.account
        account.held += size
        self.held += size
        if account.held + account.remembered > account.limit and account.lacks(0):
            raise self.refused()

    def refused(self) -> Exception:
        self.account.shed += 1
        return self.account.refusal()

    def attempt(self, size: int) -> None:
        """Count the bytes of this attempt in place of those of the attempt before."""
        if self.lasting is None:
            self.lasting = self.held
        else:
            self.release(keep=self.lasting)
        self.take(size)

    def reading(self, answer: Answer) -> Callable[[int], None]:
        """Counts the bytes of an answer, which is paused while there is no room for more of it."""
        self.pause, self.go_on = answer.pause, answer.resume
        return self.grow

    async def room(self, size: int) -> None:
        """Wait until there is room for this many more bytes, made from an answer, and for all of the answer
        received so far."""
        self.grow(size)
        if self.waits:
            there = asyncio.Event()
            self.go_on = there.set
            await there.wait()

    def grow(self, size: int) -> None:
        """Count this many more bytes of an answer, or wait for room for them."""
        account = self.account
        if not self.waits and account.admits(self):
            account.held += size
            self.held += size
            return
        self.waits = True
        self.missing += size
        account.wait(self)
        if self.pause is not None:
            self.pause()

    def admitted(self) -> None:
        """There is room: count the waiting bytes, and continue."""
        self.account.held += self.missing
        self.held += self.missing
        self.waits, self.missing = False, 0
        if self.go_on is not None:
            self.go_on()

    def release(self, keep: int = 0) -> None:
        """Stop waiting, and release all but this many bytes."""
        self.waits, self.missing = False, 0
        self.pause = self.go_on = None
        size, self.held = self.held - keep, keep
        self.account.leave(self, size)
