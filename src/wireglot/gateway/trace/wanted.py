"""A request for rows: a filter of the list, a page of it, and its order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from wireglot.gateway.trace.filters import FIELDS, Filter, FreeText, Term
from wireglot_core.traces.trace import Row, Trace

_SEARCHED: Final = (
    "id", "client", "agent", "dialect", "operation", "path", "key", "session", "asked", "provider", "model",
    "upstream_dialect", "stop", "error", "purpose", "agent_name", "agent_id", "title",
)  # fmt: skip
_NOTHING: Final = 1e300
"""Larger than any number in a row; JSON has no infinity."""
_LAST_LETTER: Final = "\U0010ffff"

SORTS: Final[Mapping[str, Callable[[Row], float | str | None]]] = {
    "time": lambda row: row.at,
    "client": lambda row: row.client.lower(),
    "asked": lambda row: row.asked.lower(),
    "target": lambda row: f"{row.provider}/{row.model}".lower().strip("/"),
    "status": lambda row: row.status or None,
    "first": FIELDS["first"].number,
    "total": FIELDS["total"].number,
    "tokens": FIELDS["tokens"].number,
    "cached": FIELDS["cached"].number,
    "cost": FIELDS["cost"].number,
    "losses": FIELDS["losses"].number,
    "attempts": FIELDS["attempts"].number,
    "dialect": lambda row: row.dialect.lower(),
    "key": lambda row: row.key.lower(),
    "stop": lambda row: row.stop.lower(),
    "session": lambda row: row.session.lower(),
}
"""The columns by which rows may be sorted."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sent as JSON to sibling workers. "" and 0: any value."""

    terms: tuple[Term, ...] = ()
    texts: tuple[FreeText, ...] = ()
    """The texts that `Search` looks for, in rows and in bodies: `matches` does not."""
    since: float = 0.0
    until: float = 0.0
    ids: tuple[str, ...] | None = None
    """Only these exchanges, of those that run or ended recently."""
    sort: str = "time"
    ascending: bool = False
    before: tuple[float | str, float, str] | None = None
    """The `key` of the last row that was seen."""
    limit: int = 0
    histories: bool = False
    """Whether rows include their histories."""
    only_key: str | None = None
    """The only key whose rows the viewer may see."""
    only_since: float = 0.0

    @classmethod
    def of(cls, wanted: Filter, **more: Any) -> Wanted:
        return cls(terms=wanted.terms, texts=wanted.texts, since=wanted.since, until=wanted.until, **more)

    @property
    def is_newest_first(self) -> bool:
        return self.sort == "time" and not self.ascending

    def matches(self, row: Row) -> bool:
        return (
            row.at >= self.since
            and (not self.until or row.at < self.until)
            and (self.only_key is None or (row.key == self.only_key and row.at >= self.only_since))
            and (self.ids is None or row.id in self.ids)
            and all(term.matches(row) for term in self.terms)
            and (self.before is None or self._is_behind(row))
        )

    def key(self, row: Row) -> tuple[float | str, float, str]:
        """The sort key; rows without a value come last."""
        value = SORTS[self.sort](row)
        if value is None:
            value = _NOTHING if self.ascending else -_NOTHING
        elif value == "" and self.ascending:
            value = _LAST_LETTER
        return value, row.at, row.id

    def _is_behind(self, row: Row) -> bool:
        assert self.before is not None
        # Both are of the same column: two numbers, or two texts.
        key: Any = self.key(row)
        return bool(key > self.before if self.ascending else key < self.before)

    def page(self, rows: Iterable[Row]) -> list[Row]:
        """The matching rows, in order, one for each exchange, as many as are wanted."""
        found: dict[str, Row] = {}
        for row in rows:
            if self.matches(row):
                before = found.get(row.id)
                if before is None or before.state == "running":
                    found[row.id] = row
        return self.first(found.values())

    def first(self, rows: Iterable[Row]) -> list[Row]:
        """The first rows in order, as many as are wanted: no more of them are kept meanwhile."""
        if not self.limit:
            return sorted(rows, key=self.key, reverse=not self.ascending)
        return (heapq.nsmallest if self.ascending else heapq.nlargest)(self.limit, rows, key=self.key)


def holds(row: Row, text: str) -> bool:
    """Whether any text of the row contains this one, in lower case."""
    words: list[str] = [getattr(row, name) for name in _SEARCHED]
    return any(text in word.lower() for word in (*words, *row.features))


def found_in_row(row: Row, texts: Iterable[FreeText]) -> bool | None:
    """Whether the row contains the texts; None: its bodies decide."""
    missing = False
    for each in texts:
        if holds(row, each.text):
            if each.negated:
                return False
        else:
            missing = missing or not each.negated or row.recorded
    return None if missing and row.recorded else not missing


def found_in_bodies(
    row: Row, trace: Trace, texts: Iterable[FreeText], holds_text: Callable[[Trace, str], bool]
) -> bool:
    return all((holds(row, each.text) or holds_text(trace, each.text)) != each.negated for each in texts)
