"""One pass over a JSON text, by the small native module `_scan` where it was built.

Without it, or with `WIREGLOT_PURE=1` in the environment of the command line, every text gets the closer look
that only unusual ones get with it: the results are the same, only the time differs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

Span = tuple[int, int]


def _unscanned(body: bytes, depth: int) -> None:
    return None


def _hashed(data: memoryview, seed: int) -> int:
    return hash((seed, data)) & 0xFFFF_FFFF_FFFF_FFFF


_native: Any
try:
    _native = import_module("wireglot_core.wire._scan")
except ImportError:
    _native = None

IS_NATIVE: Final = _native is not None

scan: Final[Callable[[bytes, int], dict[str, Span] | None]] = _native.scan if _native else _unscanned
"""Where the value of each top-level member begins and ends, in their order. None unless the text is an object
that `decode` reads without repairing anything, nested at most `depth` deep, with no key twice on its top
level; also where a closer look is needed to know that: an escape in a top-level key, a number that is very
long or has an exponent of three digits."""

fold: Final[Callable[[memoryview, int], int]] = _native.fold if _native else _hashed
"""A hash of 64 bits, the same for the same data and seed in this process. Collisions can be constructed."""
