"""What the SQL engines share: any Python string as text that a database holds, usage as columns and sums.

Names come from clients. No database holds half a surrogate pair, and PostgreSQL no NUL either; a lookup of
such a name must find nothing rather than fail, and two different names must stay different.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from wireglot.ir.usage import COUNTS, KINDS
from wireglot.stores.records import Spender, UsageQuery, UsageRow, UsageTotal

_FORBIDDEN: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def is_plain(value: str) -> bool:
    """Whether a database holds it as it is."""
    if (
        value.isascii()
    ):  # as nearly all: then only two letters are not, which are found in a tenth of the time
        return "\\" not in value and "\0" not in value
    return not _FORBIDDEN.search(value)


def to_text(value: str) -> str:
    if is_plain(value):
        return value
    return _FORBIDDEN.sub(lambda found: r"\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", value)


def to_texts(values: Sequence[str]) -> list[str]:
    """The same for many: mostly there is nothing to do for any of them."""
    if not _FORBIDDEN.search("".join(values)):
        return list(values)
    return [to_text(value) for value in values]


def from_text(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", value)


# Usage rows.

Sort = Literal["text", "word", "number", "flag", "list"]
"""`word` is one of a few that we chose ourselves; a `list` is one of texts, as JSON."""


class Column(NamedTuple):
    name: str
    sort: Sort
    default: Any
    """Also of the rows from before there was this column."""


def _column(field: msgspec.structs.FieldInfo, hint: Any) -> Column:
    sort: Sort
    if hint is bool:
        sort = "flag"
    elif hint is int or get_args(hint) == (int, type(None)):
        sort = "number"
    elif get_origin(hint) is tuple:
        sort = "list"
    elif get_origin(hint) is Literal:
        sort = "word"
    else:
        assert hint is str, f"no column holds {field.name}: {hint}"
        sort = "text"
    return Column(field.name, sort, field.default)


_HINTS: Final = get_type_hints(UsageRow)
USAGE: Final = tuple(_column(field, _HINTS[field.name]) for field in msgspec.structs.fields(UsageRow))
"""In the order of the row's fields."""
USAGE_NAMES: Final = tuple(column.name for column in USAGE)
USAGE_COLUMNS: Final = ", ".join(USAGE_NAMES)


def added_columns(types: Mapping[Sort, str], empty_list: str) -> dict[str, str]:
    """By name, the definitions of columns that a table of usage may lack.

    The tables of the first version are written out in each engine's schema, which was released and never
    changes. A field that is declared later is a column that such a table lacks: it is added when the store is
    opened. That needs no version of the schema: anyone who does not know the column leaves it out, and may go
    on beside one who does, so that an upgrade can be rolled out, and taken back.
    """
    return {
        column.name: f"{column.name} {types[column.sort]} {_default(column, empty_list)}"
        for column in USAGE
        if column.default is not msgspec.NODEFAULT
    }


def _default(column: Column, empty_list: str) -> str:
    if column.default is None:
        return "DEFAULT NULL"
    if column.sort in ("number", "flag"):
        return f"NOT NULL DEFAULT {column.default}"
    return f"NOT NULL DEFAULT '{empty_list if column.sort == 'list' else column.default}'"


TOKENS: Final = f"({' + '.join(COUNTS)})"
"""All tokens of a row."""

_MODEL: Final = "CASE WHEN upstream_model <> '' THEN upstream_model ELSE model END"

APPLY_OVER: Final = (
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in USAGE_NAMES if name != "id")
    + " WHERE usage.outcome IN ('', 'crash') AND excluded.outcome NOT IN ('', usage.outcome)"
)
"""`records.gives_way`, in SQL."""

_SPENT: Final = (
    f"SELECT coalesce(sum({TOKENS}), 0), coalesce(sum(cost), 0) FROM usage"
    " WHERE {} = $1 AND started >= $2 AND outcome <> ''"
)
SPENT: Final[dict[Spender, str]] = {
    "caller": _SPENT.format("caller"),
    # The last condition: the index has no rows without a group.
    "caller_group": f"{_SPENT.format('caller_group')} AND caller_group <> ''",
}

_PLAIN_SUMS: Final = {
    "requests": "count(*)",
    "failed": "count(*) FILTER (WHERE outcome NOT IN ('', 'ok'))",
    "open": "count(*) FILTER (WHERE outcome = '')",
    "cost": "coalesce(sum(cost), 0)",
    # The last condition: the provider answered, and did not say what that took.
    "unpriced": "count(*) FILTER (WHERE outcome <> '' AND cost IS NULL"
    f" AND ({TOKENS} > 0 OR outcome = 'ok' AND source = 'none'))",
    "milliseconds": "coalesce(sum(finished - started) FILTER (WHERE outcome <> ''), 0)",
    "p50": "coalesce({median} FILTER (WHERE outcome <> ''), 0)",
    "first": "coalesce(min(started), 0)",
    "last": "coalesce(max(started), 0)",
}


class UsageSql(NamedTuple):
    """Statements about usage, and where databases say the same in other words. The values are numbered in the
    order in which they first occur, which both read: SQLite takes `$1` for a name."""

    day: str
    """Of `started`, as YYYY-MM-DD."""
    median: str
    """Of `finished - started`."""
    session: str
    """Whether a row is of a session, `{}`."""
    cast: str = ""
    """Behind the first of several counts that are added up."""

    def where(self, query: UsageQuery) -> tuple[str, list[str | int]]:
        """Only what the query names, so that the database picks the index that serves it."""
        terms = ["started >= $1"]
        values: list[str | int] = [query.since]

        def add(term: str, value: str | int) -> None:
            values.append(value)
            terms.append(term.replace("{}", f"${len(values)}"))

        if query.until:
            add("started < {}", query.until)
        if query.caller is not None:
            add("caller = {}", to_text(query.caller))
        if query.model:
            add(f"{_MODEL} = {{}}", to_text(query.model))
        if query.provider:
            add("provider = {}", to_text(query.provider))
        if query.session:
            add(f"{self.session} AND session <> ''", to_text(query.session))
        return " AND ".join(terms), values

    def rows(self, query: UsageQuery, *, limit: int, newest_first: bool) -> tuple[str, list[str | int]]:
        where, values = self.where(query)
        order = "DESC" if newest_first else "ASC"
        return (
            f"SELECT {USAGE_COLUMNS} FROM usage WHERE {where}"
            f" ORDER BY started {order}, id {order} LIMIT ${len(values) + 1}",
            [*values, limit],
        )

    def totals(self, query: UsageQuery) -> tuple[str, list[str | int]]:
        """For `usage_totals`."""
        where, values = self.where(query)
        columns = {"model": _MODEL, "day": self.day}
        groups = [columns.get(name, name) for name in query.groups]
        plain = [sum.replace("{median}", self.median) for sum in _PLAIN_SUMS.values()]
        kinds = [f"coalesce(sum({f'{self.cast} + '.join(kind.counts)}), 0)" for kind in KINDS.values()]
        statement = f"SELECT {', '.join([*groups, *plain, *kinds])} FROM usage WHERE {where}"
        if groups:
            statement += " GROUP BY " + ", ".join(str(place) for place in range(1, len(groups) + 1))
        return statement, values


def usage_totals(query: UsageQuery, found: Iterable[Sequence[Any]]) -> list[UsageTotal]:
    count = len(query.groups)
    totals = [_usage_total(tuple(map(from_text, row[:count])), row[count:]) for row in found]
    return sorted(totals, key=lambda total: total.group)


def _usage_total(group: tuple[str, ...], found: Sequence[Any]) -> UsageTotal:
    # Databases may tell sums as decimals and percentiles as floating point: all of them are whole.
    numbers = [int(number) for number in found]
    return UsageTotal(
        group=group,
        tokens=dict(zip(KINDS, numbers[len(_PLAIN_SUMS) :], strict=True)),
        **dict(zip(_PLAIN_SUMS, numbers, strict=False)),
    )
