"""Any store, with a budget for each call and a breaker: whoever asks it waits for so long at most, and where
it has failed a few times in a row nobody waits at all, until a check of it goes well.

A server that is shared has to answer soon: requests can decide without it. They wait for a few times as long
as its calls usually take, and the call goes on without them.

Reads and writes have a breaker each: a database that is locked, or whose disk is full, is read as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, cast

from wireglot.stores.base import Counters, Documents, Engine, Keys, Ledger, StoreDown, Vault
from wireglot.stores.records import Document, KeyRow, KindLimits, Stats, Swept, UsageRow, VaultEntry

T = TypeVar("T")

FAILURES_TO_OPEN: Final = 3
"""In a row, without one that went well between them."""
LONG_SECONDS: Final = 60.0
"""For reports, the sweep and the books, which no answer waits for."""
SHORT_SECONDS: Final = 0.05
"""For a call to a shared server (FAULTS 100), unless its calls usually take longer than a quarter of it."""
_USUAL_TIMES: Final = 4
_NEWEST_WEIGHT: Final = 1 / 8
"""As TCP weighs a new round trip against those before it (RFC 6298)."""

Sort = Literal["reads", "writes"]

_READS: Final = frozenset(
    {
        "get", "pieces", "recent",  # documents
        "recall",  # vault
        "totals", "rows", "spent", "sessions",  # ledger
        "version", "all",  # keys
        "stats",
    }
)  # fmt: skip
_LONG: Final = frozenset(
    {
        "apply", "close_open", "totals", "rows", "sessions", "forget_session",  # ledger
        "forget", "stats", "sweep", "wipe", "load",
    }
)  # fmt: skip
_UNATTENDED: Final = frozenset(
    {"apply", "close_open", "beat", "version", "sweep", "cool", "cooling", "amounts"}
)
"""Asked by tasks that nobody waits for, at a pace of their own: they ask on, whatever came of it before. One
of them that goes well says nothing for the others: it may be all that the store can do."""


class StoreBreaker:
    """Whether one sort of calls is worth the wait."""

    def __init__(self) -> None:
        self.why = ""
        """Why nobody waits for it, "" where calls are made."""
        self.refused = 0
        """Calls that were not made."""
        self._failed = 0

    def ask(self) -> None:
        if self.why:
            self.refused += 1
            raise StoreDown(self.why)

    def failed(self, why: str) -> None:
        self._failed += 1
        if self._failed >= FAILURES_TO_OPEN:
            self.why = why or "the store does not answer"

    def succeeded(self) -> None:
        """Of calls that were under way when it opened, none closes it."""
        if not self.why:
            self._failed = 0

    def close(self) -> None:
        self.why = ""
        self._failed = 0


class Bounds:
    """The budgets of one server, and its breakers."""

    def __init__(self, seconds: Callable[[], float], *, answers_soon: bool = False) -> None:
        """`seconds`: of one call, as the settings have it now. `answers_soon`: requests wait for a few times
        as long as calls usually take, and at least for SHORT_SECONDS."""
        self.breakers: dict[Sort, StoreBreaker] = {"reads": StoreBreaker(), "writes": StoreBreaker()}
        self._seconds = seconds
        self._answers_soon = answers_soon
        self._usual_seconds = 0.0
        self._late: set[asyncio.Task[Any]] = set()
        """Calls that go on without the request that made them."""

    @property
    def trouble(self) -> str:
        """Why some calls are not made, "" where all are."""
        return next((breaker.why for breaker in self.breakers.values() if breaker.why), "")

    async def call(self, method: str, work: Callable[[], Awaitable[T]]) -> T:
        breaker = self.breakers["reads" if method in _READS else "writes"]
        is_waited_for = method not in _UNATTENDED
        if is_waited_for:
            breaker.ask()
        seconds = self._seconds()
        try:
            if method in _LONG:
                done = await _within(LONG_SECONDS, work)
            elif self._answers_soon and is_waited_for:
                done = await self._soon(seconds, work, breaker)
            else:
                done = await _within(seconds, work)
        except StoreDown as down:
            breaker.failed(str(down))
            raise
        if is_waited_for:
            breaker.succeeded()
        return done

    @property
    def patience(self) -> float:
        """Seconds for which a request waits for a server that answers soon."""
        return min(self._seconds(), max(SHORT_SECONDS, _USUAL_TIMES * self._usual_seconds))

    def learn(self, seconds: float) -> None:
        """What a call took, also one that came too late: a server that is far away does not hang."""
        usual = self._usual_seconds
        self._usual_seconds = usual + _NEWEST_WEIGHT * (seconds - usual) if usual else seconds

    async def _soon(self, seconds: float, work: Callable[[], Awaitable[T]], breaker: StoreBreaker) -> T:
        loop = asyncio.get_running_loop()
        task = loop.create_task(_within(seconds, lambda: self._timed(work)))
        patience = self.patience
        is_held_up = True
        try:
            while is_held_up and not task.done():
                begun = loop.time()
                await asyncio.wait({task}, timeout=patience)
                # A timer that is late itself shows that this process is slow, not the server.
                is_held_up = loop.time() - begun > 2 * patience
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            return task.result()

        def end(late: asyncio.Task[T]) -> None:
            self._late.discard(late)
            if not late.cancelled() and late.exception() is None:
                breaker.succeeded()

        self._late.add(task)
        task.add_done_callback(end)
        raise StoreDown(f"the store does not answer within {patience:.2g} s")

    async def _timed(self, work: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        done = await work()
        self.learn(loop.time() - begun)
        return done

    async def check(self, work: Callable[[], Awaitable[None]]) -> None:
        """What goes well here closes the breakers: three more failures open them again."""
        writes = self.breakers["writes"]
        try:
            await _within(self._seconds(), lambda: self._timed(work))
        except StoreDown as down:
            writes.failed(str(down))
            raise
        for breaker in self.breakers.values():
            breaker.close()


async def _within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work()
    except TimeoutError:
        if not limit.expired():
            raise
        raise StoreDown(f"the store does not answer within {seconds:g} s") from None


class BoundedEngine:
    def __init__(self, behind: Engine, seconds: Callable[[], float]) -> None:
        self.behind = behind
        self.bounds = bounds = Bounds(seconds)
        self.documents = cast(Documents, BoundedPart(lambda: behind.documents, bounds))
        self.vault = cast(Vault, BoundedPart(lambda: behind.vault, bounds))
        self.ledger = cast(Ledger, BoundedPart(lambda: behind.ledger, bounds))
        self.keys = cast(Keys, BoundedPart(lambda: behind.keys, bounds))

    async def check(self) -> None:
        await self.bounds.check(self.behind.check)

    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        return await self.bounds.call(
            "sweep",
            lambda: self.behind.sweep(now, usage_before=usage_before, dead_before=dead_before, kinds=kinds),
        )

    async def wipe(self, caller: str) -> dict[str, int]:
        return await self.bounds.call("wipe", lambda: self.behind.wipe(caller))

    async def stats(self) -> Stats:
        return await self.bounds.call("stats", self.behind.stats)

    def export(self) -> AsyncIterator[Document | UsageRow | KeyRow | VaultEntry]:
        """As slow as whoever reads it: no budget could be told."""
        return self.behind.export()

    async def load(self, records: Sequence[Document | UsageRow | KeyRow | VaultEntry]) -> None:
        await self.bounds.call("load", lambda: self.behind.load(records))

    def lacks(self, caller: str) -> bool:
        return self.behind.lacks(caller)

    def kept_mark(self, caller: str) -> Hashable:
        return self.behind.kept_mark(caller)

    async def close(self) -> None:
        await self.behind.close()


class BoundedShared:
    """The same for counters, and the vault beside them where they have one."""

    def __init__(
        self,
        counters: Counters,
        vault: Vault | None,
        seconds: Callable[[], float],
        *,
        answers_soon: bool = False,
    ) -> None:
        self.bounds = Bounds(seconds, answers_soon=answers_soon)
        self.counters = cast(Counters, _BoundedCounters(lambda: counters, self.bounds))
        self.vault = cast(Vault, BoundedPart(lambda: vault, self.bounds)) if vault is not None else None


class BoundedPart:
    """One side of a store. What is behind is looked up with each call: it may not be open yet."""

    def __init__(self, behind: Callable[[], Any], bounds: Bounds) -> None:
        self._behind = behind
        self._bounds = bounds

    def __getattr__(self, method: str) -> Any:
        async def called(*arguments: Any, **more: Any) -> Any:
            async def work() -> Any:
                return await getattr(self._behind(), method)(*arguments, **more)

            return await self._bounds.call(method, work)

        setattr(self, method, called)  # found at once from now on
        return called


class _BoundedCounters(BoundedPart):
    async def check(self) -> None:
        await self._bounds.check(self._behind().check)

    async def close(self) -> None:
        await self._behind().close()
