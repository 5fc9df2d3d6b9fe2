"""The pool of connections, and the handling of failed ones (FAULTS 101)."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.postgres.address import HostConnector, PostgresAddress
from wireglot.stores.servers import tls_fault

# The driver's pool logs every reconnect with a traceback; StoreDown reports what matters.
logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)

Connection = Any
"""asyncpg's, which has no types."""

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 5.0
LONG_SECONDS: Final = 60.0
"""For reports and the sweep, for which no request waits."""
_SILENCE_SECONDS: Final = 0.5
"""A caller that waited this long for a connection did not just leave early."""
_PAUSES_SECONDS: Final = (0.02, 0.1, 0.3)
"""Before a second, third and fourth attempt."""
TRIES: Final = 1 + len(_PAUSES_SECONDS)

_LOST_STATES: Final = ("08", "57P01", "57P02", "57P03", "25006")
"""The connection is lost, or its server does not accept writes any more: all others are suspect."""
_AGAIN_STATES: Final = ("40001", "40P01", "53300", "55P03", "0A000")
"""Serialization failure, deadlock, too many connections, lock not available; a statement prepared before
another process changed the tables."""
_REASONS: Final = {
    "25006": "it is read-only",
    "28": "it refuses the user or the password",
    "3D000": "there is no such database",
    "40": "other writers were always in the way",
    "42704": "it does not know an option of the URL",
    "42501": "the user lacks a right",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has too many connections",
    "57014": "it does not answer in time",
    "57P": "it is starting or stopping",
    "08": "the connection was lost",
}
FAILURES: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_CONFIGURATION_STATES: Final = ("28", "3D000", "42501", "0A000", "42704")
"""Errors that waiting does not fix."""
_POOLER_STATE: Final = "08P01"
"""PgBouncer's error for settings at the start of a session."""


class PostgresPool:
    """Runs work on a connection, with retries if they are known to help."""

    def __init__(self, pool: Any, connect_seconds: float, address: PostgresAddress) -> None:
        self._pool = pool
        self._connect_seconds = connect_seconds
        self._several_hosts = bool(address.hosts)
        self._before = f"SET LOCAL search_path = {address.quoted_schema}" if address.pooled else ""
        """The beginning of a transaction if sessions are not ours to keep."""

    @classmethod
    async def open(
        cls,
        address: PostgresAddress,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        command_seconds: float = COMMAND_SECONDS,
    ) -> PostgresPool:
        """Raises StoreUnusable if waiting would not help."""
        settings = {"application_name": "wireglot"}
        options: dict[str, Any] = {"ssl": address.tls} if address.tls is not None else {}
        if address.pooled:
            # Settings and prepared statements would not exist in the next transaction.
            options["statement_cache_size"] = 0
        else:
            settings |= {"search_path": address.quoted_schema, "jit": "off"}
        if address.hosts:
            options["connect"] = HostConnector(address).connect
        try:
            async with asyncio.timeout(connect_seconds * 2):
                pool = await asyncpg.create_pool(
                    address.dsn,
                    min_size=1,
                    max_size=8,
                    timeout=connect_seconds,
                    command_timeout=command_seconds,
                    server_settings=settings,
                    reset=_as_it_is,
                    **options,
                )
        except ssl.SSLError as problem:  # some are ValueErrors, too
            raise down(problem, at_open=True) from None
        except (ValueError, asyncpg.ClientConfigurationError):
            # The driver's message may repeat the URL, and with it the password.
            raise StoreUnusable("store.url: not a PostgreSQL URL the driver understands") from None
        except FAILURES as problem:
            raise down(problem, at_open=True) from None
        return cls(pool, connect_seconds, address)

    async def run(self, work: Callable[[Connection, int], Awaitable[T]]) -> T:
        """`work` gets a connection and the number of earlier attempts: after a lost connection, one of these
        may have succeeded."""
        for turn in range(TRIES):
            if turn:
                await asyncio.sleep(_PAUSES_SECONDS[turn - 1] * random.uniform(0.5, 1.5))
            try:
                return await self._once(work, turn)
            except FAILURES as problem:
                if _is_ours(problem):
                    raise  # no server could do it: a bug in this program
                if _is_lost(problem):
                    await self._pool.expire_connections()
                if turn == TRIES - 1 or not _worth_another(problem):
                    raise down(problem) from problem
        raise AssertionError("unreachable: the last try returns or raises")

    async def _once(self, work: Callable[[Connection, int], Awaitable[T]], turn: int) -> T:
        connection = await self._pool.acquire(timeout=self._connect_seconds)
        began = asyncio.get_running_loop().time()
        try:
            if not self._before:
                return await work(connection, turn)
            return await self._in_transaction(connection, work, turn)
        except (TimeoutError, OSError, asyncio.CancelledError):
            # A silent server would not answer the driver's cancel request either, and a caller that waited
            # for it has waited long enough.
            connection.terminate()
            if self._several_hosts and asyncio.get_running_loop().time() - began > _SILENCE_SECONDS:
                # Its machine may be down, and another host be the primary by now.
                await self._pool.expire_connections()
            raise
        finally:
            # Whatever is wrong with the connection now, the work has its own result.
            with suppress(*FAILURES):
                await self._pool.release(connection, timeout=1.0)

    async def _in_transaction(
        self, connection: Connection, work: Callable[[Connection, int], Awaitable[T]], turn: int
    ) -> T:
        """Two more round trips. Transactions of the work itself become savepoints."""
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(self._before)
            answer = await work(connection, turn)
        except (TimeoutError, OSError, asyncio.CancelledError):
            raise  # the connection is closed, and the transaction with it
        except BaseException:
            await transaction.rollback()
            raise
        await transaction.commit()
        return answer

    async def fetch(self, query: str, *values: object, seconds: float | None = None) -> list[Any]:
        async def work(connection: Connection, _: int) -> list[Any]:
            rows: list[Any] = await connection.fetch(query, *values, timeout=seconds)
            return rows

        return await self.run(work)

    async def execute(self, query: str, *values: object, seconds: float | None = None) -> int:
        """Returns the number of affected rows."""

        async def work(connection: Connection, _: int) -> int:
            return touched(await connection.execute(query, *values, timeout=seconds))

        return await self.run(work)

    async def change(self, query: str, *values: object) -> int:
        """Returns the number of affected rows, even if the answer to a first attempt was lost: another
        attempt would find nothing left to change. The count is known before the commit."""
        most = 0

        async def work(connection: Connection, _: int) -> int:
            nonlocal most
            async with connection.transaction():
                most = max(most, touched(await connection.execute(query, *values)))
            return most

        return await self.run(work)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """A connection that sees a snapshot of the store, for as long as needed."""
        try:
            async with (
                self._pool.acquire(timeout=self._connect_seconds) as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                if self._before:
                    await connection.execute(self._before)
                yield connection
        except FAILURES as problem:
            raise down(problem) from problem

    async def close(self) -> None:
        try:
            async with asyncio.timeout(self._connect_seconds):
                await self._pool.close()
        except FAILURES:
            self._pool.terminate()


async def _as_it_is(_: Connection) -> None:
    """Nothing here changes a session, so a connection needs no reset, and no second round trip, before its
    next use."""


def touched(status: str) -> int:
    """`UPDATE 3`, `INSERT 0 3`."""
    return int(status.rpartition(" ")[2])


def down(problem: BaseException, *, at_open: bool = False) -> StoreDown | StoreUnusable:
    """In our own words: the server's may contain names of hosts and users."""
    state = _state(problem)
    if at_open and state.startswith(_CONFIGURATION_STATES):
        return StoreUnusable(f"store.url: PostgreSQL cannot be used: {_reason(state)}")
    if at_open and state == _POOLER_STATE and "startup parameter" in str(problem):
        return StoreUnusable("store.url: what answers is PgBouncer: add pooler=transaction to the URL")
    if isinstance(problem, TimeoutError):
        return StoreDown("PostgreSQL does not answer in time")
    if fault := _tls_fault(problem):
        text = f"PostgreSQL: {fault}"
        return StoreUnusable(f"store.url: {text}") if at_open else StoreDown(text)
    if isinstance(problem, asyncpg.TargetServerAttributeNotMatched):
        return StoreDown("PostgreSQL: none of the hosts takes writes")
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


def _tls_fault(problem: BaseException) -> str:
    if fault := tls_fault(problem):
        return fault
    # The driver has no type for it.
    if isinstance(problem, ConnectionError) and "rejected SSL upgrade" in str(problem):
        return "it does not speak TLS, and sslmode asks for it"
    return ""


def _is_ours(problem: BaseException) -> bool:
    """A value that no column can store. An untrusted certificate is a ValueError, too."""
    if isinstance(problem, ssl.SSLError):
        return False
    return isinstance(problem, ValueError) or _state(problem).startswith("22")


def _state(problem: BaseException) -> str:
    return getattr(problem, "sqlstate", None) or ""


def _is_lost(problem: BaseException) -> bool:
    if isinstance(problem, asyncpg.PostgresError):
        return _state(problem).startswith(_LOST_STATES)
    return not isinstance(problem, TimeoutError)


def _worth_another(problem: BaseException) -> bool:
    """Not after a silence: the caller has waited long enough."""
    if isinstance(problem, asyncpg.PostgresError):
        return _state(problem).startswith(_LOST_STATES + _AGAIN_STATES)
    return not isinstance(problem, TimeoutError | ssl.SSLError)
