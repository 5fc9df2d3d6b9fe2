"""The tables, as migration steps. A released step never changes; a new one is added at the end.

`PRAGMA user_version` counts the steps applied to a file. Each is one transaction that also sets that number.
"""

from __future__ import annotations

from typing import Final

from wireglot.stores.sql import Sort, added_columns
from wireglot.stores.usage_sums import COLUMNS, DAY, HOUR, MARKS, SUM_NUMBERS, SUMMED_FROM, SUMS

STORE_ID: Final = 0x57474C54
"""`application_id`: "WGLT" in ASCII. Other programs' files are left alone."""

COUNTERS_ID: Final = 0x57474C43

# Bodies are large, so documents and vault have a rowid and a separate index: a b-tree that is ordered by its
# key stores whole rows in its inner pages.
_STORE_1: Final = """
CREATE TABLE documents (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT NOT NULL,
    number INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX documents_by_id ON documents (tenant, kind, id);
CREATE INDEX documents_by_parent ON documents (tenant, kind, parent, number) WHERE parent != '';
CREATE INDEX documents_by_time ON documents (tenant, kind, created, id);
CREATE INDEX documents_by_age ON documents (kind, created, size);
CREATE INDEX documents_by_end ON documents (expires) WHERE expires > 0;

CREATE TABLE vault (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    expires INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX vault_by_name ON vault (tenant, name);
CREATE INDEX vault_by_end ON vault (expires);

CREATE TABLE usage (
    id TEXT NOT NULL,
    caller TEXT NOT NULL,
    started INTEGER NOT NULL,
    instance TEXT NOT NULL,
    operation TEXT NOT NULL,
    dialect TEXT NOT NULL,
    session TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    upstream_model TEXT NOT NULL,
    upstream_dialect TEXT NOT NULL,
    stream INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    finished INTEGER NOT NULL,
    status INTEGER NOT NULL,
    error TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_long INTEGER NOT NULL,
    tool_prompt INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    source TEXT NOT NULL,
    cost INTEGER,
    losses TEXT NOT NULL,
    flags TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX usage_by_id ON usage (id);
CREATE INDEX usage_by_time ON usage (started);
CREATE INDEX usage_by_caller ON usage (caller, started);
CREATE INDEX usage_by_session ON usage (caller, session, started) WHERE session != '';
CREATE INDEX usage_open ON usage (instance) WHERE outcome = '';

CREATE TABLE instances (instance TEXT PRIMARY KEY, beat INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE keys (name TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE revisions (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO revisions VALUES ('keys', 0), ('check', 0);
"""

STORE_STEPS: Final = (_STORE_1,)

_TYPES: Final[dict[Sort, str]] = {
    "text": "TEXT",
    "word": "TEXT",
    "number": "INTEGER",
    "flag": "INTEGER",
    "list": "TEXT",
}
STORE_COLUMNS: Final = {
    "usage": added_columns(_TYPES, empty_list=""),
    "keys": {"revision": "revision INTEGER NOT NULL DEFAULT 0"},
}
STORE_INDEXES: Final = (
    "keys_by_revision ON keys (revision)",
    "usage_by_group ON usage (caller_group, started) WHERE caller_group <> ''",
)

_SUM_COLUMNS: Final = ", ".join(
    f"{name} {'INTEGER' if name in SUM_NUMBERS else 'TEXT'} NOT NULL" for name in COLUMNS
)


def _unsum(*rows: str) -> str:
    """Part of a trigger: the sums of the row's hour and day are not valid any more."""
    return " ".join(
        f"DELETE FROM {MARKS} WHERE span = {span} AND at = {row}.started - {row}.started % {span};"
        for row in rows
        for span in (HOUR, DAY)
    )


STORE_DERIVED: Final = (
    f"TABLE {{exists}} {MARKS} (span INTEGER NOT NULL, at INTEGER NOT NULL, token TEXT NOT NULL,"
    " ready INTEGER NOT NULL, PRIMARY KEY (span, at)) STRICT, WITHOUT ROWID",
    f"TABLE {{exists}} {SUMS} ({_SUM_COLUMNS}) STRICT",
    f"INDEX {{exists}} {SUMS}_at ON {SUMS} (span, at)",
    f"INDEX {{exists}} {SUMS}_kept ON {SUMS} (kept, span, at)",
    f"INDEX {{exists}} {SUMS}_caller ON {SUMS} (caller, span, at) WHERE kept = '*'",
    f"TRIGGER {{exists}} {MARKS}_inserted AFTER INSERT ON usage BEGIN {_unsum('NEW')} END",
    f"TRIGGER {{exists}} {MARKS}_deleted AFTER DELETE ON usage BEGIN {_unsum('OLD')} END",
    f"TRIGGER {{exists}} {MARKS}_updated AFTER UPDATE OF {', '.join(SUMMED_FROM)} ON usage"
    f" BEGIN {_unsum('OLD', 'NEW')} END",
    f"TRIGGER {{exists}} {MARKS}_gone AFTER DELETE ON {MARKS}"
    f" BEGIN DELETE FROM {SUMS} WHERE span = OLD.span AND at = OLD.at; END",
)
"""Tables that are derived from the others: they need no version, and older programs keep them right without
knowing them."""

# Times are unix milliseconds with a fraction. `clock` is the last time seen: see counters.py.
_COUNTERS_1: Final = """
CREATE TABLE rates (name TEXT PRIMARY KEY, empty_at REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE budgets (
    name TEXT PRIMARY KEY, value INTEGER NOT NULL, until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE places (
    name TEXT NOT NULL, holder TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (name, holder)
) STRICT, WITHOUT ROWID;
CREATE TABLE cooling (name TEXT PRIMARY KEY, until REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE locks (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), last REAL NOT NULL, tidied REAL NOT NULL) STRICT;
INSERT INTO clock VALUES (1, 0, 0);
"""

COUNTERS_STEPS: Final = (_COUNTERS_1,)
