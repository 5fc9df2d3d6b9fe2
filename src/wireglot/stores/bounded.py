"""Wraps any store with a time limit for each call and a circuit breaker: a caller waits for a bounded time,
and after a few failures in a row no caller waits at all, until a check succeeds.

A shared server has to answer soon: requests can decide without it. They wait for a few times as long as its
calls usually take, and the call continues without them.

Reads and writes have separate breakers: a database that is locked, or whose disk is full, can still be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from wireglot.stores.base import (
    Counters,
    Documents,
    Engine,
    Keys,
    Ledger,
    Shared,
    Sort,
    StoreDown,
    Vault,
    VaultApart,
    kind_of,
)
from wireglot.stores.deferred import DeferredShared

P = ParamSpec("P")
T = TypeVar("T")

FAILURES_TO_OPEN: Final = 3
"""Consecutive failures that open a breaker."""
LONG_SECONDS: Final = 60.0
"""For reports, the sweep and the accounts, which no answer waits for."""
SHORT_SECONDS: Final = 0.05
"""For a call to a shared server (FAULTS 100), unless its calls usually take longer than a quarter of it."""
_USUAL_TIMES: Final = 4
_NEWEST_WEIGHT: Final = 1 / 8
"""The weight that TCP gives a new round-trip time (RFC 6298)."""


class StoreBreaker:
    """Whether calls of one sort are worth waiting for."""

    def __init__(self) -> None:
        self.why = ""
        """Why no call is made; "" if calls are made."""
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
        """Calls in progress when it opened do not close it."""
        if not self.why:
            self._failed = 0

    def close(self) -> None:
        self.why = ""
        self._failed = 0


class Bounds:
    """The time limits of one server, and its breakers."""

    def __init__(self, seconds: float, *, answers_soon: bool = False) -> None:
        """`seconds`: for one call. `answers_soon`: requests wait for a few times as long as calls usually
        take, and at least for SHORT_SECONDS."""
        self.seconds = seconds
        self.breakers: dict[Sort, StoreBreaker] = {"reads": StoreBreaker(), "writes": StoreBreaker()}
        self.answers_soon = answers_soon
        self._usual_seconds = 0.0
        self._late: set[asyncio.Task[Any]] = set()
        """Calls that continue without the request that made them."""

    @property
    def trouble(self) -> str:
        """Why some calls are not made; "" if all are."""
        return next((breaker.why for breaker in self.breakers.values() if breaker.why), "")

    @property
    def patience(self) -> float:
        """Seconds for which a request waits for a server that answers soon."""
        return min(self.seconds, max(SHORT_SECONDS, _USUAL_TIMES * self._usual_seconds))

    def learn(self, seconds: float) -> None:
        """Learn the duration of a call, also of one that came too late: a distant server does not hang."""
        usual = self._usual_seconds
        self._usual_seconds = usual + _NEWEST_WEIGHT * (seconds - usual) if usual else seconds

    async def soon(self, work: Callable[[], Awaitable[T]], breaker: StoreBreaker) -> T:
        """The result of a call within `patience`; after that it continues without the request that made
        it."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._timed(work))
        patience = self.patience
        is_held_up = True
        try:
            while is_held_up and not task.done():
                begun = loop.time()
                await asyncio.wait({task}, timeout=patience)
                # A timer that fires late itself shows that this process is slow, not the server.
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
        down = _unanswered(round(patience, 2))
        down.late = task
        raise down

    async def _timed(self, work: Callable[[], Awaitable[T]]) -> T:
        """Within the time limit of one call; its duration is learned."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        limit = asyncio.timeout(self.seconds)
        try:
            async with limit:
                done = await work()
        except TimeoutError:
            if not limit.expired():
                raise
            raise _unanswered(self.seconds) from None
        self.learn(loop.time() - begun)
        return done

    async def close(self) -> None:
        """Cancel the calls that no caller waits for any more."""
        for task in (late := [*self._late]):
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def check(self, work: Callable[[], Awaitable[None]]) -> None:
        """A success here closes the breakers: three more failures open them again."""
        try:
            await self._timed(work)
        except StoreDown as down:
            self.breakers["writes"].failed(str(down))
            raise
        for breaker in self.breakers.values():
            breaker.close()


def _unanswered(seconds: float) -> StoreDown:
    return StoreDown(f"the store does not answer within {seconds:g} s")


def bounded(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BoundedPart, P], Coroutine[Any, Any, T]]:
    """The method of a protocol within the limits for the kind that it declares."""
    kind, name = kind_of(method), method.__name__

    async def called(self: BoundedPart, /, *arguments: P.args, **named: P.kwargs) -> T:
        bounds, part = self.bounds, self._part
        breaker = bounds.breakers[kind.sort]
        if not kind.is_unattended:
            breaker.ask()
        seconds = LONG_SECONDS if kind.is_long else bounds.seconds
        limit = asyncio.timeout(seconds)
        done: T
        try:
            # The part is looked up with each call: it may not be open yet.
            if bounds.answers_soon and not kind.is_long and not kind.is_unattended:
                done = await bounds.soon(lambda: getattr(part(), name)(*arguments, **named), breaker)
            else:
                async with limit:
                    done = await getattr(part(), name)(*arguments, **named)
        except StoreDown as down:
            breaker.failed(str(down))
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            late = _unanswered(seconds)
            breaker.failed(str(late))
            raise late from None
        if not kind.is_unattended:
            breaker.succeeded()
        return done

    return called


class BoundedPart:
    """One part of a store."""

    def __init__(self, part: Callable[[], Any], bounds: Bounds) -> None:
        self._part = part
        self.bounds = bounds


class BoundedDocuments(BoundedPart):
    put = bounded(Documents.put)
    replace = bounded(Documents.replace)
    touch = bounded(Documents.touch)
    touch_pieces = bounded(Documents.touch_pieces)
    append = bounded(Documents.append)
    get = bounded(Documents.get)
    pieces = bounded(Documents.pieces)
    recent = bounded(Documents.recent)
    delete = bounded(Documents.delete)
    delete_pieces = bounded(Documents.delete_pieces)


class BoundedVault(BoundedPart):
    keep = bounded(Vault.keep)
    recall = bounded(Vault.recall)


class BoundedVaultApart(BoundedVault):
    forget = bounded(VaultApart.forget)


class BoundedLedger(BoundedPart):
    apply = bounded(Ledger.apply)
    totals = bounded(Ledger.totals)
    losses = bounded(Ledger.losses)
    sum_up = bounded(Ledger.sum_up)
    rows = bounded(Ledger.rows)
    spent = bounded(Ledger.spent)
    sessions = bounded(Ledger.sessions)
    forget_session = bounded(Ledger.forget_session)
    beat = bounded(Ledger.beat)
    close_open = bounded(Ledger.close_open)


class BoundedKeys(BoundedPart):
    version = bounded(Keys.version)
    all = bounded(Keys.all)
    get = bounded(Keys.get)
    changed = bounded(Keys.changed)
    put = bounded(Keys.put)
    delete = bounded(Keys.delete)


class BoundedCounters(BoundedPart):
    take = bounded(Counters.take)
    settle = bounded(Counters.settle)
    known = bounded(Counters.known)
    amounts = bounded(Counters.amounts)
    seed = bounded(Counters.seed)
    enter = bounded(Counters.enter)
    leave = bounded(Counters.leave)
    cool = bounded(Counters.cool)
    cooling = bounded(Counters.cooling)
    lock = bounded(Counters.lock)
    unlock = bounded(Counters.unlock)

    def __init__(self, shared: Shared | DeferredShared, bounds: Bounds) -> None:
        super().__init__(partial(getattr, shared, "counters"), bounds)
        self._shared = shared

    async def check(self) -> None:
        await self.bounds.check(self._shared.check)

    async def close(self) -> None:
        await self.bounds.close()
        await self._shared.close()


class BoundedEngine(BoundedPart):
    sweep = bounded(Engine.sweep)
    wipe = bounded(Engine.wipe)
    stats = bounded(Engine.stats)
    load = bounded(Engine.load)

    def __init__(self, behind: Engine, seconds: float) -> None:
        bounds = Bounds(seconds)
        super().__init__(lambda: behind, bounds)
        self.behind = behind
        self.documents = BoundedDocuments(partial(getattr, behind, "documents"), bounds)
        self.vault = BoundedVault(partial(getattr, behind, "vault"), bounds)
        self.ledger = BoundedLedger(partial(getattr, behind, "ledger"), bounds)
        self.keys = BoundedKeys(partial(getattr, behind, "keys"), bounds)
        # These return at once, or are as slow as their reader: no time limit is possible.
        self.lacks, self.kept_mark, self.export, self.close = (
            behind.lacks, behind.kept_mark, behind.export, behind.close
        )  # fmt: skip

    async def check(self) -> None:
        await self.bounds.check(self.behind.check)


class BoundedShared:
    """The same for counters, and their vault if they have one."""

    def __init__(
        self, shared: Shared | DeferredShared, seconds: float, *, answers_soon: bool = False
    ) -> None:
        self.bounds = bounds = Bounds(seconds, answers_soon=answers_soon)
        self.counters = BoundedCounters(shared, bounds)
        has_vault = isinstance(shared, DeferredShared) or shared.vault is not None
        self.vault = BoundedVaultApart(partial(getattr, shared, "vault"), bounds) if has_vault else None
