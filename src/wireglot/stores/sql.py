"""Shared by the SQL engines: any Python string as text that a database accepts, usage as columns and sums.

Names come from clients. No database accepts half a surrogate pair, and PostgreSQL no NUL either; a lookup of
such a name must find nothing rather than fail, and two different names must stay different.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from wireglot.stores.records import Spender, UsageQuery, UsageRow
from wireglot_core.ir.usage import COUNTS

_FORBIDDEN: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def is_plain(value: str) -> bool:
    """Whether a database accepts it unchanged."""
    if (
        value.isascii()
    ):  # nearly all are: then only two characters are special, and finding them takes a tenth of the time
        return "\\" not in value and "\0" not in value
    return not _FORBIDDEN.search(value)


def to_text(value: str) -> str:
    if is_plain(value):
        return value
    return _FORBIDDEN.sub(lambda found: r"\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", value)


def to_texts(values: Sequence[str]) -> list[str]:
    """The same for many: usually none of them needs a change."""
    if not _FORBIDDEN.search("".join(values)):
        return list(values)
    return [to_text(value) for value in values]


def from_text(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", value)


# Usage rows.

Sort = Literal["text", "word", "number", "flag", "list"]
"""`word` is one of a few values that we chose; a `list` contains texts, as JSON."""


class Column(NamedTuple):
    name: str
    sort: Sort
    default: Any
    """Also the value in rows from before this column existed."""


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
    opened. That needs no version of the schema: a program that does not know the column omits it, and may run
    next to one that does, so that an upgrade can be rolled out, and taken back.
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

MODEL: Final = "CASE WHEN upstream_model <> '' THEN upstream_model ELSE model END"

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


class UsageSql(NamedTuple):
    """SQL statements about usage, with the parts that differ between databases. The values are numbered in
    the order in which they first occur, which both understand: SQLite takes `$1` for a name."""

    day: str
    """Of `started`, as YYYY-MM-DD."""
    session: str
    """A condition for the rows of a session, `{}`."""
    cast: str = ""
    """A cast after the first of several counts that are added up."""

    def filters(self, query: UsageQuery, model: str, values: Sequence[Any]) -> tuple[list[str], list[Any]]:
        """The conditions of a query besides its time, with their values after those given. `model`: the
        column."""
        terms: list[str] = []
        values = list(values)

        def add(term: str, value: str) -> None:
            values.append(to_text(value))
            terms.append(term.replace("{}", f"${len(values)}"))

        if query.caller is not None:
            add("caller = {}", query.caller)
        named = {
            model: query.model,
            "provider": query.provider,
            "caller_group": query.group,
            "client": query.client,
            "agent": query.agent,
        }
        for column, value in named.items():
            if value:
                add(f"{column} = {{}}", value)
        if query.session:
            add(f"{self.session} AND session <> ''", query.session)
        return terms, values

    def where(self, query: UsageQuery) -> tuple[str, list[Any]]:
        """Only conditions that the query has, so that the database picks the matching index."""
        times: list[Any] = [query.since]
        if query.until:
            times.append(query.until)
        terms, values = self.filters(query, MODEL, times)
        return " AND ".join([*("started >= $1", "started < $2")[: len(times)], *terms]), values

    def rows(self, query: UsageQuery, *, limit: int, newest_first: bool) -> tuple[str, list[Any]]:
        where, values = self.where(query)
        order = "DESC" if newest_first else "ASC"
        return (
            f"SELECT {USAGE_COLUMNS} FROM usage WHERE {where}"
            f" ORDER BY started {order}, id {order} LIMIT ${len(values) + 1}",
            [*values, limit],
        )
