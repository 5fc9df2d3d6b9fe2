"""SQLite engine: one file, shared by the processes of a machine. SQLite comes with apsw, not with Python."""

from __future__ import annotations

from wireglot.stores.sqlite.counters import SqliteCounters
from wireglot.stores.sqlite.engine import SqliteEngine

__all__ = ["SqliteCounters", "SqliteEngine"]
