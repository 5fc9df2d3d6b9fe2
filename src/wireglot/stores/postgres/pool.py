"""The pool of connections, and what happens when one of them fails (FAULTS 101)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.postgres.address import Address

# The driver's pool tells of every try to reconnect, with a traceback; what matters of it StoreDown tells.
logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)

Connection = Any
"""asyncpg's, which has no types."""

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 5.0
LONG_SECONDS: Final = 60.0
"""For reports and the sweep, which nobody's request waits for."""
_PAUSES_SECONDS: Final = (0.02, 0.1, 0.3)
"""Before a second, third and fourth try."""
TRIES: Final = 1 + len(_PAUSES_SECONDS)

_LOST_STATES: Final = ("08", "57P01", "57P02", "57P03", "25006")
"""The connection has gone, or leads to a server that does not write any more: all others are suspect."""
_AGAIN_STATES: Final = ("40001", "40P01", "53300", "55P03", "0A000")
"""Serialization failure, deadlock, too many connections, lock not available; a statement prepared before
another process changed the tables."""
_REASONS: Final = {
    "25006": "it is read-only",
    "28": "it refuses the user or the password",
    "3D000": "there is no such database",
    "40": "other writers were always in the way",
    "42501": "the user lacks a right",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has too many connections",
    "57014": "it does not answer in time",
    "57P": "it is starting or stopping",
    "08": "the connection was lost",
}
FAILURES: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_CONFIGURATION_STATES: Final = ("28", "3D000", "42501", "0A000")
"""What waiting does not mend."""


class PostgresPool:
    """Runs pieces of work on a connection; again, where it is known to help."""

    def __init__(self, pool: Any, connect_seconds: float) -> None:
        self._pool = pool
        self._connect_seconds = connect_seconds

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        command_seconds: float = COMMAND_SECONDS,
    ) -> PostgresPool:
        """Raises StoreUnusable where waiting would not help."""
        settings = {"search_path": address.quoted_schema, "application_name": "wireglot", "jit": "off"}
        try:
            pool = await asyncio.wait_for(
                asyncpg.create_pool(
                    address.dsn,
                    min_size=1,
                    max_size=8,
                    timeout=connect_seconds,
                    command_timeout=command_seconds,
                    server_settings=settings,
                    reset=_as_it_is,
                ),
                connect_seconds * 2,
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            # The driver's own words may repeat the URL, and with it the password.
            raise StoreUnusable("store.url: not a PostgreSQL URL the driver understands") from None
        except FAILURES as problem:
            raise down(problem, at_open=True) from None
        return cls(pool, connect_seconds)

    async def run(self, work: Callable[[Connection, int], Awaitable[T]]) -> T:
        """`work` gets a connection and how many tries came before: after a lost one, it may have happened."""
        for turn in range(TRIES):
            if turn:
                await asyncio.sleep(_PAUSES_SECONDS[turn - 1] * random.uniform(0.5, 1.5))
            try:
                return await self._once(work, turn)
            except FAILURES as problem:
                if _is_ours(problem):
                    raise  # no server could do it: a fault of this program
                if turn == TRIES - 1 or not _worth_another(problem):
                    raise down(problem) from problem
                if _is_lost(problem):
                    await self._pool.expire_connections()
        raise AssertionError("unreachable: the last try returns or raises")

    async def _once(self, work: Callable[[Connection, int], Awaitable[T]], turn: int) -> T:
        connection = await self._pool.acquire(timeout=self._connect_seconds)
        try:
            return await work(connection, turn)
        except (TimeoutError, OSError, asyncio.CancelledError):
            # A silent server would not answer the driver's polite cancellation either, and whoever waited
            # for it has waited long enough.
            connection.terminate()
            raise
        finally:
            # Whatever is wrong with the connection now, the work has its own answer.
            with suppress(*FAILURES):
                await self._pool.release(connection, timeout=1.0)

    async def fetch(self, query: str, *values: object, seconds: float | None = None) -> list[Any]:
        async def work(connection: Connection, _: int) -> list[Any]:
            rows: list[Any] = await connection.fetch(query, *values, timeout=seconds)
            return rows

        return await self.run(work)

    async def execute(self, query: str, *values: object, seconds: float | None = None) -> int:
        """How many rows it touched."""

        async def work(connection: Connection, _: int) -> int:
            return touched(await connection.execute(query, *values, timeout=seconds))

        return await self.run(work)

    async def change(self, query: str, *values: object) -> int:
        """How many rows it touched, also where the answer to a first try was lost: of what that one did,
        another would find nothing left. The count is known before the commit."""
        most = 0

        async def work(connection: Connection, _: int) -> int:
            nonlocal most
            async with connection.transaction():
                most = max(most, touched(await connection.execute(query, *values)))
            return most

        return await self.run(work)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """A connection that sees one moment of the store, for as long as it takes."""
        try:
            async with (
                self._pool.acquire(timeout=self._connect_seconds) as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield connection
        except FAILURES as problem:
            raise down(problem) from problem

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), self._connect_seconds)
        except FAILURES:
            self._pool.terminate()


async def _as_it_is(_: Connection) -> None:
    """Nothing here changes a session, so a connection needs no second journey before its next use."""


def touched(status: str) -> int:
    """`UPDATE 3`, `INSERT 0 3`."""
    return int(status.rpartition(" ")[2])


def down(problem: BaseException, *, at_open: bool = False) -> StoreDown | StoreUnusable:
    """In our own words: the server's may hold names of hosts and users."""
    state = _state(problem)
    if at_open and state.startswith(_CONFIGURATION_STATES):
        return StoreUnusable(f"store.url: PostgreSQL cannot be used: {_reason(state)}")
    if isinstance(problem, TimeoutError):
        return StoreDown("PostgreSQL does not answer in time")
    if isinstance(problem, OSError):
        return StoreDown("PostgreSQL cannot be reached")
    if not isinstance(problem, asyncpg.PostgresError):
        return StoreDown("PostgreSQL: the connection was lost")
    return StoreDown(f"PostgreSQL: {_reason(state)}")


def _reason(state: str) -> str:
    for start, reason in _REASONS.items():
        if state.startswith(start):
            return reason
    return f"it refused the request ({state})"


def _is_ours(problem: BaseException) -> bool:
    """A value no column can hold."""
    return isinstance(problem, ValueError) or _state(problem).startswith("22")


def _state(problem: BaseException) -> str:
    return getattr(problem, "sqlstate", None) or ""


def _is_lost(problem: BaseException) -> bool:
    if isinstance(problem, asyncpg.PostgresError):
        return _state(problem).startswith(_LOST_STATES)
    return not isinstance(problem, TimeoutError)


def _worth_another(problem: BaseException) -> bool:
    """Not after silence: whoever waits has waited long enough."""
    if isinstance(problem, asyncpg.PostgresError):
        return _state(problem).startswith(_LOST_STATES + _AGAIN_STATES)
    return not isinstance(problem, TimeoutError)
