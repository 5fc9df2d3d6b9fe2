"""Memory: how many bytes the process holds (bodies that arrive, what is made of them, answers, what clients
have yet to take), and what each request holds of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from wireglot.http.transport import Answer


class ByteAccount:
    """One for both directions. What holds bytes adds them and takes them off again; beyond `limit`, which may
    change at any time, no request should take on more. Only for the loop's own thread.

    Answers that have been paid for wait for room instead of being turned away. One of them at a time may go
    past the limit, else all could wait for one another: no more is held than the limit and one answer.
    """

    __slots__ = ("_first", "_queue", "forget", "held", "limit", "owed", "refusal", "remembered", "shed")

    def __init__(self, limit: int, refusal: Callable[[], Exception] = MemoryError) -> None:
        """`refusal`: what is raised where a request is turned away for want of room."""
        self.held = 0
        self.owed = 0
        """What of it clients have yet to take: it goes when they do, or when they are given up."""
        self.limit = limit
        self.refusal = refusal
        self.shed = 0
        """How often a request was turned away for it."""
        self.remembered = 0
        """What is only cached. It is counted in any thread."""
        self.forget: Callable[[int], None] = lambda size: None
        """Drops this many of the cached bytes: before a request is turned away."""
        self._first: MemoryLease | None = None
        """The one let in last: the one that reaches the limit may go past it, and needs no room."""
        self._queue: dict[MemoryLease, None] = {}

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._queue)

    def lacks(self, size: int) -> bool:
        """Whether there is no room for this many bytes more."""
        over = self.held + self.remembered + size - self.limit
        if over > 0 and self.remembered:
            self.forget(over)
            over = self.held + self.remembered + size - self.limit
        return over > 0

    def give(self, size: int) -> None:
        """That many bytes are held no longer."""
        self.held -= size
        if self._queue:
            self._let_in()

    def owe(self, size: int) -> None:
        """That many more bytes wait for a client; fewer, where it is below 0."""
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
            return False  # another request will end, or clients take what is theirs
        self._first = lease
        return True

    def wait(self, lease: MemoryLease) -> None:
        """Let it in when there is room, in the order in which they have come."""
        self._queue[lease] = None

    def leave(self, lease: MemoryLease, size: int) -> None:
        """It wants nothing more, and gives back this many bytes."""
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
    """What one request holds in addition to its body: what is made of it, and its answer.

    Before a provider is called, a request for which there is no room is refused (`ByteAccount.refusal`): its
    client may come back, and the work for all others goes on. An answer has been paid for: it waits for room,
    and is not read meanwhile.
    """

    account: ByteAccount
    held: int = 0
    waits: bool = False
    """Whether its answer waits for room."""
    lasting: int | None = None
    """What stays, whichever attempt it is."""
    missing: int = 0
    """What there is no room for yet."""
    pause: Callable[[], None] | None = None
    go_on: Callable[[], None] | None = None
    """What to do where there is no room for more of the answer, and when there is."""

    def another(self) -> MemoryLease:
        """For a request that lives on its own."""
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
        """This many go out now, in the place of what the attempt before this one held."""
        if self.lasting is None:
            self.lasting = self.held
        else:
            self.release(keep=self.lasting)
        self.take(size)

    def reading(self, answer: Answer) -> Callable[[int], None]:
        """Counts what comes of an answer, which is paused while there is no room for more of it."""
        self.pause, self.go_on = answer.pause, answer.resume
        return self.grow

    async def room(self, size: int) -> None:
        """Wait until there is room for this many more, made of an answer, and for all that has come of it."""
        self.grow(size)
        if self.waits:
            there = asyncio.Event()
            self.go_on = there.set
            await there.wait()

    def grow(self, size: int) -> None:
        """Count this many bytes more of an answer, or wait for room for them."""
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
        """There is room: count what it was for, and go on."""
        self.account.held += self.missing
        self.held += self.missing
        self.waits, self.missing = False, 0
        if self.go_on is not None:
            self.go_on()

    def release(self, keep: int = 0) -> None:
        """Wait no longer, and give back all but this many bytes."""
        self.waits, self.missing = False, 0
        self.pause = self.go_on = None
        size, self.held = self.held - keep, keep
        self.account.leave(self, size)
