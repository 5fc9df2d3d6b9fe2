"""The interfaces of stores: a set of small protocols; the same contract tests run over all stores."""

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
    """The store cannot be reached, is full or does not answer in time. The call had no effect, or its effect
    is unknown. The message is for people and contains no secret."""

    late: asyncio.Future[Any] | None = None
    """The call, if it is still running and only the request does not wait for it: it may yet take effect."""


class StoreUnusable(Exception):
    """The store cannot be opened at all: damaged, of a newer version, not ours. Nothing has been changed."""


Sort = Literal["reads", "writes"]
"""Each has a separate breaker: a database that is locked, or whose disk is full, can still be read."""


class CallKind(msgspec.Struct, frozen=True):
    """How a call is waited for, and what its result means for other calls: see `bounded.py`."""

    sort: Sort
    is_long: bool
    """Reports, the sweep and the accounts, which no answer waits for."""
    is_unattended: bool
    """Used by background tasks at their own pace: they continue whatever the previous result. Their success
    means nothing for other calls: it may be all that the store can do."""


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
    """Sealed values of callers. An expired value does not exist, whether or not it has been swept yet.

    Every write is durable when it returns: it survives `kill -9` and, with the engine's default, power loss.
    """

    @call("writes")
    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        """Write all of them or none. An existing one is replaced; with `new`, if one exists (and has not
        expired), nothing is written and the result is False."""
        ...

    @call("writes")
    async def replace(self, document: Document) -> bool:
        """Write it only if it exists: what has been deleted stays deleted."""
        ...

    @call("writes")
    async def touch(self, caller: str, kind: str, id: str, *, created: int, expires: int) -> bool:
        """Set only its times, if it exists: a concurrent change of its body is not undone."""
        ...

    @call("writes")
    async def touch_pieces(self, caller: str, kind: str, parent: str, *, expires: int) -> None:
        """Set the expiry of all pieces of a parent."""
        ...

    @call("writes")
    async def append(self, documents: Sequence[Document]) -> int:
        """Append pieces of one tenant, kind and parent, numbered after the last piece of the parent, in one
        step: two callers never get the same numbers. Returns the number of the first one, which is 1 for the
        first piece of a parent."""
        ...

    @call("reads")
    async def get(self, caller: str, kind: str, ids: Sequence[str]) -> list[Document]:
        """The existing ones, in any order."""
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
        """The pieces of a parent by number, those after `after` and before `before` (0: no bound)."""
        ...

    @call("reads")
    async def recent(
        self, caller: str, kind: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[Document]:
        """The newest of a kind first; `before` is (created, id) of the last one seen."""
        ...

    @call("writes")
    async def delete(self, caller: str, kind: str, ids: Sequence[str]) -> int:
        """Returns how many existed."""
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
        """The existing ones."""
        ...


class VaultApart(Vault, Protocol):
    """A vault that is not the engine's, which the engine's `wipe` does not include."""

    @call("writes", long=True)
    async def forget(self, caller: str) -> int:
        """Remove everything of a caller. Returns how many entries there were."""
        ...


class Ledger(Protocol):
    @call("writes", long=True, unattended=True)
    async def apply(self, rows: Sequence[UsageRow]) -> None:
        """Intents (no outcome) and completions, in any order, any number of times: a row is inserted once,
        completed once, and a completed row never changes again; only a `crash`, which is a guess, is replaced
        by what its process reports later. All rows or none."""
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
        """Add up and store the next hours that had ended by `until`, so that reports need not read their
        rows. Returns whether there may be more. It changes no result, but makes reports faster."""
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
        """The most recently used first, of those used in the same millisecond the greatest id; `before` and
        `beyond` are the `last` and the `id` of the last one seen."""
        ...

    @call("writes", long=True)
    async def forget_session(self, caller: str, session: str) -> int:
        """Remove the session's name from its rows; the rows stay. Returns how many there were."""
        ...

    @call("writes", unattended=True)
    async def beat(self, instance: str) -> None:
        """Report that this process is alive, by the store's own clock if it has one. Open rows of an instance
        without a recent report are crashes."""
        ...

    @call("writes", long=True, unattended=True)
    async def close_open(self, instances: Sequence[str], now: int) -> int:
        """Complete the open rows of these instances as `crash`. Returns how many there were."""
        ...


class Keys(Protocol):
    @call("reads", unattended=True)
    async def version(self) -> int:
        """Changes with every change of a key. Cheap, since it is called every second."""
        ...

    @call("reads")
    async def all(self) -> list[KeyRow]: ...

    @call("reads")
    async def get(self, name: str) -> KeyRow | None: ...

    @call("reads")
    async def changed(self, since: int) -> list[KeyRow] | None:
        """The key whose write made the version `since`, and those written after it, in this order. None if
        that is unknown: one of them was written again or deleted, or written by a program that does not
        number its changes."""
        ...

    @call("writes")
    async def put(self, row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
        """With `new`: False, and nothing written, if a key of this name ever existed. With `over`: the same
        if the current row is another one, so that of two changes at once none is lost silently."""
        ...

    @call("writes")
    async def delete(self, name: str) -> bool:
        """As if it had never existed; False if it does not exist. Its caller's data is wiped before: the next
        key of that name belongs to another caller."""
        ...


class Counters(Protocol):
    """Limits and agreements between all processes that share the store."""

    @call("writes")
    async def take(self, claims: Sequence[Rate | Budget]) -> Denied | None:
        """Take all of them, in one step, or none."""
        ...

    @call("writes")
    async def settle(self, claims: Sequence[Rate | Budget]) -> None:
        """Correct what was taken: `amount` is the difference, which may be negative. Never denied."""
        ...

    @call("writes")
    async def known(self, names: Sequence[str]) -> dict[str, int]:
        """The used amounts of budgets that have been begun or seeded. A request waits for this call."""
        ...

    @call("writes", unattended=True)
    async def amounts(self, names: Sequence[str]) -> dict[str, int]:
        """The same for reports, which no request waits for."""
        return await self.known(names)

    @call("writes")
    async def seed(self, name: str, value: int, until: int) -> None:
        """Begin a budget with the ledger's sum; one that has begun is not changed."""
        ...

    @call("writes")
    async def enter(self, name: str, holder: str, limit: int, seconds: float) -> bool:
        """Become one of at most `limit` holders. A place that is not renewed (entered again) within `seconds`
        is free: its holder has died."""
        ...

    @call("writes")
    async def leave(self, name: str, holder: str) -> None: ...

    @call("writes", unattended=True)
    async def cool(self, entries: Mapping[str, float]) -> None:
        """Report that these must not be used for this many seconds (the longer of two reported times
        applies)."""
        ...

    @call("writes", unattended=True)
    async def cooling(self) -> dict[str, float]:
        """Seconds left, by name."""
        ...

    @call("writes")
    async def lock(self, name: str, holder: str, seconds: float) -> bool:
        """Whether `holder` has it now. It expires by itself, since the holder may have died."""
        ...

    @call("writes")
    async def unlock(self, name: str, holder: str) -> None:
        """Has no effect if another one holds it by now."""
        ...

    async def check(self) -> None:
        """Raises StoreDown if it does not answer."""
        ...

    async def close(self) -> None: ...


class Shared(NamedTuple):
    """Counters, and their vault if they have one."""

    counters: Counters
    vault: VaultApart | None

    async def check(self) -> None:
        await self.counters.check()

    async def close(self) -> None:
        await self.counters.close()


class FleetLog(Protocol):
    """Messages between the machines of a fleet, in the order in which they were reported, and recordings that
    they upload: kept for a while, and never so valuable that anything waits for them."""

    async def tell(self, log: str, body: bytes, *, seconds: float, most: int) -> None:
        """Append an entry. All entries of a log have the same `seconds`, after which they expire; of more
        than `most` the oldest are dropped (a few more may exist for a moment)."""
        ...

    async def heard(self, log: str, after: str, limit: int) -> list[LogEntry]:
        """The entries after a place ("": from the first on), the oldest first. If the log has been emptied
        and begun again, it is read from its first entry on."""
        ...

    async def last(self, log: str, before: str, limit: int) -> list[LogEntry]:
        """The entries before a place ("": up to now), the newest first."""
        ...

    async def remove(self, log: str, places: Sequence[str]) -> None: ...

    async def keep(self, caller: str, id: str, body: bytes, *, seconds: float, max_bytes: int) -> None:
        """Upload a value that is already sealed. Above `max_bytes` the oldest are dropped."""
        ...

    async def find(self, caller: str, id: str) -> bytes | None: ...

    async def forget(self, caller: str) -> int:
        """Remove everything that was uploaded of one caller. Returns how many there were."""
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
        """Raises StoreDown if it does not answer."""
        ...

    @call("writes", long=True, unattended=True)
    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        """Remove expired documents, excess ones of a kind, and usage before `usage_before`; complete open
        rows of instances without a report since `dead_before`."""
        ...

    @call("writes", long=True)
    async def wipe(self, caller: str) -> dict[str, int]:
        """Remove every document and vault entry of a caller, by kind, and the sessions' names of its usage.
        Usage rows are the owner's account, not the caller's data: they stay."""
        ...

    @call("reads", long=True)
    async def stats(self) -> Stats: ...

    def export(self) -> AsyncIterator[Record]:
        """All records; values stay sealed."""
        ...

    @call("writes", long=True)
    async def load(self, records: Sequence[Record]) -> None:
        """Load records from `export` of any store; existing ones are not changed."""
        ...

    def lacks(self, caller: str) -> bool:
        """Whether the vault is known to have nothing of this caller, without a call: some stores know it from
        a recall that found nothing. Includes what other processes have stored by now. False: unknown."""
        ...

    def kept_mark(self, caller: str) -> Hashable:
        """A mark that changes whenever any process stores something of this caller in the vault: what was
        missing under the same mark is still missing. None if it is unknown at the moment, 0 from stores that
        never know it."""
        ...

    async def close(self) -> None: ...
