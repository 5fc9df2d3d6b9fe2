"""Everything in the process's own memory: for tests, and for a gateway that need not remember."""

from __future__ import annotations

from wireglot.stores.memory.counters import MemoryCounters
from wireglot.stores.memory.engine import MemoryEngine

__all__ = ["MemoryCounters", "MemoryEngine"]
