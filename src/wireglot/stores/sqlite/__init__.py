"""One file on one machine, shared safely by its processes. SQLite comes with apsw, not with Python."""

from __future__ import annotations

from wireglot.stores.sqlite.counters import SqliteCounters
from wireglot.stores.sqlite.engine import SqliteEngine

__all__ = ["SqliteCounters", "SqliteEngine"]
