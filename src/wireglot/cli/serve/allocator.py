"""How the C library hands out memory, for a process that lives for months and meets large bodies."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import Final

# <malloc.h> of glibc
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

_LARGE_BYTES: Final = 256 * 1024
_ARENAS: Final = 2


def give_large_blocks_back() -> None:
    """What a large body took goes back to the system when it is freed.

    glibc moves its own threshold up with the first large block that is freed, and from then on puts such
    blocks between small ones, where they leave holes; and every thread has a heap of its own. After 96 bodies
    of 2 MB beside other traffic a gateway held 103 MiB, and 79 with this. Other C libraries are left as they
    are.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
            mallopt(_ARENA_MAX, _ARENAS)
