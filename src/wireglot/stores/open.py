"""Opens stores by their URLs."""

from __future__ import annotations

import os
from collections.abc import Callable

from wireglot.stores.base import Documents, Engine, FleetLog, Shared, StoreUnusable
from wireglot.stores.document_log import DocumentLog
from wireglot_core.extras import install_hint


async def open_engine(url: str) -> Engine:
    """`memory:`, `sqlite:///path/to/file` (or `sqlite:relative`), `postgresql://...`."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            from wireglot.stores.memory import MemoryEngine

            return MemoryEngine()
        case "sqlite":
            from wireglot.stores.sqlite import SqliteEngine

            return await SqliteEngine.open(sqlite_path(rest))
        case "postgresql" | "postgres":
            try:
                from wireglot.stores.postgres import PostgresEngine
            except ImportError:
                raise StoreUnusable(f"store.url: PostgreSQL needs `{install_hint('fleet')}`") from None
            return await PostgresEngine.open(url)
    raise StoreUnusable(f"store.url: expected memory:, sqlite:///... or postgresql://..., got {scheme}:")


async def open_counters(url: str) -> Shared:
    """`redis://` (also `rediss://`, `valkey://`, each also with `+sentinel`): counters and a vault for a
    fleet. `sqlite:` shares between the processes of one machine, `memory:` is for one process; both leave the
    vault to the engine."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            from wireglot.stores.memory import MemoryCounters

            return Shared(MemoryCounters(), None)
        case "sqlite":
            from wireglot.stores.sqlite import SqliteCounters

            return Shared(await SqliteCounters.open(sqlite_path(rest)), None)
        case _ if scheme.removesuffix("+sentinel") in ("redis", "rediss", "valkey", "valkeys"):
            try:
                from wireglot.stores.redis import open_redis
            except ImportError:
                raise StoreUnusable(f"store.shared: Redis needs `{install_hint('fleet')}`") from None
            return Shared(*await open_redis(url))
    raise StoreUnusable(f"store.shared: expected redis://... or redis+sentinel://..., got {scheme}:")


def open_fleet_log(url: str, shared: str, documents: Callable[[], Documents]) -> FleetLog | None:
    """For the machines of a fleet: in PostgreSQL if that is the store (`documents` are its own), else in
    Redis if that is shared. None: there is one machine."""
    if url.startswith("postgres"):
        return DocumentLog(documents)
    if not shared:
        return None
    try:
        from wireglot.stores.redis import RedisLog
    except ImportError:
        raise StoreUnusable(f"store.shared: Redis needs `{install_hint('fleet')}`") from None
    return RedisLog(shared)


def sqlite_path(rest: str) -> str:
    """`///absolute`, `//relative` and `relative` are all in use."""
    if rest.startswith("///"):
        return rest[2:]
    return rest.removeprefix("//")


def described(url: str) -> str:
    """A store for display: the path of its file, or its URL without user, password and options."""
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        return "memory"
    if scheme == "sqlite":
        return os.path.abspath(sqlite_path(rest))
    place = rest.removeprefix("//").partition("?")[0]
    host, slash, path = place.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
