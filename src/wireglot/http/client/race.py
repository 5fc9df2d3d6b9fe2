"""Reaching one of several addresses (RFC 8305, Happy Eyeballs): one that does not answer is not waited for.

The next address is tried when the one before has failed, or has not connected in a moment; then both are on
their way, and the first to connect is taken. A family that is there and leads nowhere costs that moment.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Final

Address = tuple[socket.AddressFamily, str, int]
Reach = Callable[[Address], Awaitable[socket.socket]]

HEAD_START_SECONDS: Final = 0.2
"""RFC 8305 names 250 ms, and no less than 100; broken IPv6 is to cost no more than 250 ms, all told."""


def interleaved(addresses: Iterable[Address]) -> list[Address]:
    """The families in turn, the resolver's first choice first: one that is broken holds up the other once."""
    families: dict[socket.AddressFamily, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


async def first_reached(
    reach: Reach, addresses: Sequence[Address], head_start: float = HEAD_START_SECONDS
) -> socket.socket:
    """Raises the OSError of the last address to fail, and at once whatever is no OSError."""
    if len(addresses) == 1:
        return await reach(addresses[0])
    loop = asyncio.get_running_loop()
    attempts: list[asyncio.Task[socket.socket]] = []
    left = iter(interleaved(addresses))
    fault: OSError = OSError("no address")
    try:
        while True:
            following = next(left, None)
            if following is not None:
                attempts.append(loop.create_task(_run(reach, following)))
            elif not attempts:
                raise fault
            done, _ = await asyncio.wait(
                attempts,
                timeout=head_start if following is not None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in [attempt for attempt in attempts if attempt in done]:
                try:
                    reached = attempt.result()
                except OSError as failed:
                    fault = failed
                    attempts.remove(attempt)
                else:
                    attempts.remove(attempt)
                    return reached
    finally:
        if attempts:
            await _end(attempts)


async def _run(reach: Reach, address: Address) -> socket.socket:
    return await reach(address)


async def _end(attempts: list[asyncio.Task[socket.socket]]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for ended in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(ended, socket.socket):  # connected in the same moment as the one that is taken
            ended.close()
