"""Large bodies in worker threads: while one is read, fitted or written, other requests are served.

A few threads are enough for it, although only one runs Python at a time: anyone who waits for the interpreter
gets it within a millisecond, whatever the others do. Only single calls into C keep it longer (decision 16).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from wireglot.wire.cache import Cache, KnownBody

T = TypeVar("T")

LARGE_BYTES: Final = 128 * 1024
"""Work on less is done at once: even 650 turns of a conversation take the loop for only some 30 milliseconds,
and most bodies of this size for one or two."""

_MAX_KNOWN_BYTES: Final = 2 * 1024 * 1024
"""Up to here to compare what is known and to write it again takes a fraction of a millisecond."""

THREAD_NAME: Final = "large-body"
_MAX_THREADS: Final = 4
"""So many large bodies share the interpreter with the loop at once; any more wait. With one thread, all would
wait for the largest."""
_SWITCH_SECONDS: Final = 0.001
"""Python's own 5 ms would be felt in each round of the loop, of which a request takes about ten."""


def weight(body: bytes, grown: KnownBody | None) -> int:
    """How much work a body is, in bytes of one that is not cached."""
    if grown is None or len(body) > _MAX_KNOWN_BYTES:
        return len(body)
    return min(len(body), grown.work)


def known_of(body: bytes, memory: Cache | None, turns: str) -> KnownBody | None:
    """What is known of a large body, where so little of it is new that it is read at once."""
    if memory is None or not turns or len(body) > _MAX_KNOWN_BYTES:
        return None
    grown = memory.compare(body, turns, LARGE_BYTES)
    return grown if weight(body, grown) <= LARGE_BYTES else None


_threads: Final = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=THREAD_NAME)  # each starts when needed


async def run_in_thread(work: Callable[[], T]) -> T:
    """What `work` gives, or raises. It may change nothing that anybody else looks at meanwhile.

    Anyone who is cancelled leaves at once: work that waits is dropped, and what comes of work that runs too.
    """
    if sys.getswitchinterval() > _SWITCH_SECONDS:
        sys.setswitchinterval(_SWITCH_SECONDS)
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
