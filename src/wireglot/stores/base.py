"""What every store can do. One set of small protocols; the same contract tests run over all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from wireglot.stores.records import (
    Budget,
    Denied,
    Document,
    KeyRow,
    KindLimits,
    LogEntry,
    Rate,
    Record,
    Session,
    Spender,
    Stats,
    Swept,
    UsageQuery,
    UsageRow,
    UsageTotal,
)


class StoreDown(Exception):
    """The store cannot be reached, is full or does not answer in time. What was asked has not happened, or
    is unknown. The message is for people and holds no secret."""

    late: asyncio.Future[Any] | None = None
    """The call, where it goes on and only the request does not wait for it: it may happen yet."""


class StoreUnusable(Exception):
    """The store cannot be opened at all: damaged, of a newer version, not ours. Nothing has been changed."""


Sort = Literal["reads", "writes"]
"""Each has a breaker of its own: a database that is locked, or whose disk is full, is read as ever."""


class CallKind(msgspec.Struct, frozen=True):
    """How a call is waited for, and what becomes of it for others: see `bounded.py`."""

    sort: Sort
    is_long: bool
    """Reports, the sweep and the books, which no answer waits for."""
    is_unattended: bool
    """Used by background tasks at their own pace: they go on, whatever the previous result.
    One that goes well says nothing for others: it may be all that the store can do."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def call(sort: Sort, *, long: bool = False, unattended: bool = False) -> Callable[[_Method], _Method]:
    """Declares the kind of a method."""

    def declared(method: _Method) -> _Method:
        method.__dict__["kind"] = CallKind(sort, long, unattended)
        return method

    return declared


def kind_of(method: Callable[..., Any]) -> CallKind:
    kind = method.__dict__.get("kind")
    if not isinstance(kind, CallKind):
        raise TypeError(f"{method.__qualname__} declares no kind")
    return kind


class Documents(Protocol):
    """Sealed values of callers. What has expired is not there, whether or not it has been swept yet.

    Every write is durable when it returns: it survives `kill -9` and, with the engine's default, power loss.
    """

    @call("writes")
    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        """Write all of them or none. An existing one is replaced; with `new`, one that exists (and has not
        expired) means that nothing is written and the answer is False."""
        ...

    @call("writes")
    async def replace(self, document: Document) -> bool:
        """Write it only where it exists: what has been deleted stays deleted."""
        ...

    @call("writes")
    async def touch(self, caller: str, kind: str, id: str, *, created: int, expires: int) -> bool:
        """Set its times and nothing else, where it exists: a change of its body meanwhile is not undone."""
        ...

    @call("writes")
    async def touch_pieces(self, caller: str, kind: str, parent: str, *, expires: int) -> None:
        """Give all pieces of a parent a new end."""
        ...

    @call("writes")
    async def append(self, documents: Sequence[Document]) -> int:
        """Pieces of one tenant, kind and parent, numbered on from the parent's last piece, in one step: two
        callers never get the same numbers. The first one's number; the first piece of a parent is 1."""
        ...

    @call("reads")
    async def get(self, caller: str, kind: str, ids: Sequence[str]) -> list[Document]:
        """Those that are there, in any order."""
        ...

    @call("reads")
    async def pieces(
        self,
        caller: str,
        kind: str,
        parent: str,
        *,
        after: int = 0,
        before: int = 0,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Document]:
        """The pieces of a parent by number, those beyond `after` and below `before` (0: no bound)."""
        ...

    @call("reads")
    async def recent(
        self, caller: str, kind: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[Document]:
        """The newest of a kind first; `before` is (created, id) of the last one seen."""
        ...

    @call("writes")
    async def delete(self, caller: str, kind: str, ids: Sequence[str]) -> int:
        """How many were there."""
        ...

    @call("writes")
    async def delete_pieces(self, caller: str, kind: str, parent: str) -> int: ...


class Vault(Protocol):
    """Opaque values under unguessable names, for a limited time. Losing one costs quality, not
    correctness."""

    @call("writes")
    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        """Visible to every process of the fleet when it returns."""
        ...

    @call("reads")
    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        """Those that are there."""
        ...


class VaultApart(Vault, Protocol):
    """One that is not the engine's, whose `wipe` does not reach it."""

    @call("writes", long=True)
    async def forget(self, caller: str) -> int:
        """Remove everything of a caller. How many there were."""
        ...


class Ledger(Protocol):
    @call("writes", long=True, unattended=True)
    async def apply(self, rows: Sequence[UsageRow]) -> None:
        """Intents (no outcome) and completions, in any order, any number of times: a row is inserted once,
        completed once, and a completed row never changes again; only a `crash`, which is a guess, gives way
        to what its process tells later. All or none."""
        ...

    @call("reads", long=True)
    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        """Sorted by their groups."""
        ...

    @call("reads", long=True)
    async def losses(self, query: UsageQuery) -> dict[str, int]:
        """How many requests lost each feature; the query's groups do not matter."""
        ...

    @call("writes", long=True, unattended=True)
    async def sum_up(self, until: int) -> bool:
        """Add up and keep the next hours that were over `until` then, so that reports need not read their
        rows. Whether there may be more. It changes no figure, but how fast they are found."""
        ...

    @call("reads", long=True)
    async def rows(self, query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]: ...

    @call("reads")
    async def spent(self, name: str, since: int, by: Spender = "caller") -> tuple[int, int]:
        """Tokens and cost of the completed requests of a caller, or of a group's keys, that started then or
        later."""
        ...

    @call("reads", long=True)
    async def sessions(self, caller: str, *, limit: int, before: int = 0, beyond: str = "") -> list[Session]:
        """The last used first, of those used in the same millisecond the greatest id; `before` and `beyond`
        are the `last` and the `id` of the last one seen."""
        ...

    @call("writes", long=True)
    async def forget_session(self, caller: str, session: str) -> int:
        """Take the session's name off its rows; the rows stay. How many there were."""
        ...

    @call("writes", unattended=True)
    async def beat(self, instance: str) -> None:
        """This process is alive, by the store's own clock where it has one. Open rows of an instance that has
        not said so for long are crashes."""
        ...

    @call("writes", long=True, unattended=True)
    async def close_open(self, instances: Sequence[str], now: int) -> int:
        """Complete the open rows of these instances as `crash`. How many there were."""
        ...


class Keys(Protocol):
    @call("reads", unattended=True)
    async def version(self) -> int:
        """Changes with every change of a key. Cheap: asked every second."""
        ...

    @call("reads")
    async def all(self) -> list[KeyRow]: ...

    @call("reads")
    async def get(self, name: str) -> KeyRow | None: ...

    @call("reads")
    async def changed(self, since: int) -> list[KeyRow] | None:
        """The key whose write made the version `since`, and those written after it, in this order. None where
        that is not known: one of them was written again or deleted, or written by a program that does not
        number its changes."""
        ...

    @call("writes")
    async def put(self, row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
        """With `new`: False, and nothing written, where a key of this name ever existed. With `over`: the
        same where that is not what stands there now: of two changes at once none is lost in silence."""
        ...

    @call("writes")
    async def delete(self, name: str) -> bool:
        """As if it had never been there; False where it is not. What its caller stored is wiped before: the
        next key of that name is another caller's."""
        ...


class Counters(Protocol):
    """Limits and agreements between processes. They hold for anyone who shares the store."""

    @call("writes")
    async def take(self, claims: Sequence[Rate | Budget]) -> Denied | None:
        """All of them, in one step, or none."""
        ...

    @call("writes")
    async def settle(self, claims: Sequence[Rate | Budget]) -> None:
        """Correct what was taken: `amount` is the difference, and may be below zero. Never denied."""
        ...

    @call("writes")
    async def known(self, names: Sequence[str]) -> dict[str, int]:
        """What is taken of budgets, of those that have been begun or seeded. A request waits for it."""
        ...

    @call("writes", unattended=True)
    async def amounts(self, names: Sequence[str]) -> dict[str, int]:
        """The same for reports, which no request waits for."""
        return await self.known(names)

    @call("writes")
    async def seed(self, name: str, value: int, until: int) -> None:
        """Begin a budget at what the ledger says; one that has begun is left alone."""
        ...

    @call("writes")
    async def enter(self, name: str, holder: str, limit: int, seconds: float) -> bool:
        """Be one of at most `limit` holders. A place that is not renewed (entered again) within `seconds` is
        free: its holder has died."""
        ...

    @call("writes")
    async def leave(self, name: str, holder: str) -> None: ...

    @call("writes", unattended=True)
    async def cool(self, entries: Mapping[str, float]) -> None:
        """Tell everybody to leave these alone for so many seconds (the longer of two reported times
        holds)."""
        ...

    @call("writes", unattended=True)
    async def cooling(self) -> dict[str, float]:
        """Seconds left, by name."""
        ...

    @call("writes")
    async def lock(self, name: str, holder: str, seconds: float) -> bool:
        """Whether `holder` has it now. It ends by itself: the one that holds it may have died."""
        ...

    @call("writes")
    async def unlock(self, name: str, holder: str) -> None:
        """Nothing happens if another one holds it by now."""
        ...

    async def check(self) -> None:
        """Raises StoreDown where it does not answer."""
        ...

    async def close(self) -> None: ...


class Shared(NamedTuple):
    """Counters, and the vault that comes with them if they have one."""

    counters: Counters
    vault: VaultApart | None

    async def check(self) -> None:
        await self.counters.check()

    async def close(self) -> None:
        await self.counters.close()


class FleetLog(Protocol):
    """What the machines of a fleet tell one another, in the order in which it was reported, and what they
    hand over: for a while, and never of so much worth that anybody waits for it."""

    async def tell(self, log: str, body: bytes, *, seconds: float, most: int) -> None:
        """One more entry. Those of a log are all reported with the same `seconds`, after which they go; of
        more than `most` the oldest go (a few more may be there for a moment)."""
        ...

    async def heard(self, log: str, after: str, limit: int) -> list[LogEntry]:
        """What was reported after a place ("": from the first on), the oldest first. Where the log has been
        emptied and begun again, it is reported from its first entry on."""
        ...

    async def last(self, log: str, before: str, limit: int) -> list[LogEntry]:
        """What was reported before a place ("": up to now), the newest first."""
        ...

    async def remove(self, log: str, places: Sequence[str]) -> None: ...

    async def keep(self, caller: str, id: str, body: bytes, *, seconds: float, max_bytes: int) -> None:
        """Hand something over, sealed as it is. Of more than `max_bytes` the oldest go."""
        ...

    async def find(self, caller: str, id: str) -> bytes | None: ...

    async def forget(self, caller: str) -> int:
        """All that was handed over of one caller. How many there were."""
        ...

    async def close(self) -> None: ...


class Engine(Protocol):
    """A whole store of durable records."""

    @property
    def documents(self) -> Documents: ...

    @property
    def vault(self) -> Vault: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def keys(self) -> Keys: ...

    async def check(self) -> None:
        """Raises StoreDown where it does not answer."""
        ...

    @call("writes", long=True, unattended=True)
    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        """Remove what has expired, what is too much of its kind, usage from before `usage_before`; complete
        open rows of instances that were not heard of since `dead_before`."""
        ...

    @call("writes", long=True)
    async def wipe(self, caller: str) -> dict[str, int]:
        """Remove every document and vault entry of a caller, by kind, and the sessions' names of its usage.
        Usage rows are the owner's account, not the caller's data: they stay."""
        ...

    @call("reads", long=True)
    async def stats(self) -> Stats: ...

    def export(self) -> AsyncIterator[Record]:
        """Everything, sealed as it is."""
        ...

    @call("writes", long=True)
    async def load(self, records: Sequence[Record]) -> None:
        """What `export` gave, in any store; what is there already stays as it is."""
        ...

    def lacks(self, caller: str) -> bool:
        """Whether nothing at all of this caller is in the vault, reported at once and without asking: some
        know it from a recall that found nothing. What any process has kept by now counts. False tells
        nothing."""
        ...

    def kept_mark(self, caller: str) -> Hashable:
        """Another one whenever anything of this caller is kept in the vault, by whichever process: what was
        not there under the same mark is not there now. None where that is not known just now, 0 by
        stores that never tell it."""
        ...

    async def close(self) -> None: ...
