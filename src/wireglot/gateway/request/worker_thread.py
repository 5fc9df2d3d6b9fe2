"""Large bodies in worker threads: while one is parsed, fitted or written, other requests are served.

A few threads are enough, although only one runs Python at a time: a thread that waits for the interpreter
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
"""Smaller bodies are handled on the loop: even 650 turns of a conversation take only some 30 milliseconds,
and most bodies of this size one or two."""

_MAX_KNOWN_BYTES: Final = 2 * 1024 * 1024
"""Up to this size, comparing and rewriting the cached part takes a fraction of a millisecond."""

THREAD_NAME: Final = "large-body"
_MAX_THREADS: Final = 4
"""This many large bodies share the interpreter with the loop at once; any more wait. With one thread, all
would wait for the largest."""
_SWITCH_SECONDS: Final = 0.001
"""Python's own 5 ms would be felt in each round of the loop, and a request takes about ten of those."""


def weight(body: bytes, grown: KnownBody | None) -> int:
    """The amount of work for a body, in bytes that are not cached."""
    if grown is None or len(body) > _MAX_KNOWN_BYTES:
        return len(body)
    return min(len(body), grown.work)


def known_of(body: bytes, memory: Cache | None, turns: str) -> KnownBody | None:
    """The cached part of a large body, if so little of it is new that it is parsed on the loop."""
    if memory is None or not turns or len(body) > _MAX_KNOWN_BYTES:
        return None
    grown = memory.compare(body, turns, LARGE_BYTES)
    return grown if weight(body, grown) <= LARGE_BYTES else None


_threads: Final = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=THREAD_NAME)  # each starts when needed


async def run_in_thread(work: Callable[[], T]) -> T:
    """The result of `work`, or its exception. It may change nothing that other code reads meanwhile.

    A cancelled caller returns at once: work that waits is dropped, and the result of running work too.
    """
    if sys.getswitchinterval() > _SWITCH_SECONDS:
        sys.setswitchinterval(_SWITCH_SECONDS)
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
