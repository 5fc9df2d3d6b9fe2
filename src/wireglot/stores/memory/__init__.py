"""In-memory engine: for tests, and for gateways that need no persistence."""

from __future__ import annotations

from wireglot.stores.memory.counters import MemoryCounters
from wireglot.stores.memory.engine import MemoryEngine

__all__ = ["MemoryCounters", "MemoryEngine"]
