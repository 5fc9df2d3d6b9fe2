"""A connection to the one of several hosts that takes writes, whichever it is by now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from wireglot.stores.postgres.address import Address
from wireglot.stores.servers import Host

_KNOWN_SHARE: Final = 0.4
"""Of the time there is, what the host of the last connection gets alone."""


class HostConnector:
    """What the driver's pool calls for a new connection.

    The driver itself asks the hosts in turn within one time limit: a first one that is silent (its machine
    has gone, nobody refuses) would use it up for ever. Here the one that was right before is asked first, and
    then all of them at once.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._known: Host | None = None

    async def connect(self, dsn: str, *, timeout: float, **options: Any) -> Any:
        def to(host: Host, seconds: float) -> Coroutine[Any, Any, Any]:
            return asyncpg.connect(  # type: ignore[no-any-return]  # it ships no types
                dsn,
                host=host[0],
                port=host[1],
                timeout=seconds,
                target_session_attrs=self._address.writer,
                **options,
            )

        # Not known until it answers again: whoever waits may leave before the time is up.
        known, self._known = self._known, None
        if known is not None:
            with suppress(
                OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError
            ):
                connection = await to(known, timeout * _KNOWN_SHARE)
                self._known = known
                return connection
        return await self._first(lambda host: to(host, timeout * (1 - _KNOWN_SHARE)))

    async def _first(self, to: Callable[[Host], Coroutine[Any, Any, Any]]) -> Any:
        tasks = {asyncio.create_task(to(host)): host for host in self._address.hosts}
        problems: list[BaseException] = []
        waiting = set(tasks)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if (problem := task.exception()) is None:
                        self._known = tasks.pop(task)
                        return task.result()
                    problems.append(problem)
        finally:
            await _drop(list(tasks))
        raise max(problems, key=_weight)


async def _drop(tasks: list[asyncio.Task[Any]]) -> None:
    """Also one that came at the same moment as the one that is used."""
    for task in tasks:
        task.cancel()
    for late in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(late, BaseException):
            late.terminate()


def _weight(problem: BaseException) -> int:
    """What a server said tells more than that another one is away."""
    if isinstance(problem, asyncpg.PostgresError):
        return 3
    if isinstance(problem, asyncpg.TargetServerAttributeNotMatched):
        return 2
    return 0 if isinstance(problem, TimeoutError) else 1
