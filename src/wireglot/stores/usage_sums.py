"""Sums of usage by hour and day, which the SQL engines store next to the rows: statements without a database.

A sum is computed from the rows of a past hour, and stored. A trigger removes the sums of an hour and of its
day with every change of a row in it, so stored sums always equal the rows, whichever program writes them. A
report takes whole days and hours from the sums and reads the rows of the rest.

To add up an hour, it is marked first. The sums are written only if its mark still exists: a row that was
written meanwhile has removed it.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from wireglot.stores.durations import (
    BOUNDS,
    Durations,
    letter_sql,
    of_letters,
    of_numbers,
    packed,
)
from wireglot.stores.records import Grouping, UsageQuery, UsageTotal
from wireglot.stores.sql import MODEL, TOKENS, UsageSql, from_text
from wireglot_core.ir.usage import COUNTS, KINDS

T = TypeVar("T")
Statement = tuple[str, Sequence[Any]]
Steps = Generator[Statement, Sequence[Sequence[Any]], T]
"""Reads of one snapshot of the store: yields a statement and gets its rows."""
Range = tuple[int, int]

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
_FOREVER: Final = 1 << 61
MAX_EXACT_ROWS: Final = 100_000
"""Rows of usage whose quantiles are computed exactly; more are put into buckets."""
CHUNK_ROWS: Final = 5_000
"""Rows that are added up at once, unless one hour has more."""
_CHUNK_MS: Final = 31 * DAY
_REACH_MS: Final = 1100 * DAY
"""Older hours are not added up any more: a row that a wrong clock has put into 1970 would have all hours
since then marked. Existing sums stay."""

DIMENSIONS: Final[tuple[Grouping, ...]] = (
    "caller", "caller_group", "model", "provider", "client", "agent", "purpose", "operation", "outcome",
)  # fmt: skip
"""All groupings of usage except sessions: there are nearly as many sessions as requests."""
_KEPT: Final = ("", *DIMENSIONS[:-1])
"""Most reports are by one dimension. For each of them, and for none, there are separate sums besides the full
ones (`kept` is "*"): with this dimension and the outcome kept, and the others "". They are a tenth as
many."""
_ALL_KEPT: Final = "*"
COUNTED: Final = ("requests", *COUNTS, "cost", "unpriced", "milliseconds", "lossy")
COLUMNS: Final = (
    "span",
    "at",
    "kept",
    *DIMENSIONS,
    *COUNTED,
    "first",
    "last",
    "took",
    "first_byte",
    "losses",
)

SUM_NUMBERS: Final = frozenset(("span", "at", *COUNTED, "first", "last"))

# A version of the program with other columns has other tables, and both are right at the same time.
_SHAPE: Final = f"{zlib.crc32(repr((COLUMNS, BOUNDS)).encode()):08x}"
SUMS: Final = f"usage_sums_{_SHAPE}"
MARKS: Final = f"usage_summed_{_SHAPE}"

SUMMED_FROM: Final = (
    "started", "caller", "caller_group", "model", "upstream_model", "provider", "client", "agent", "purpose",
    "operation", "outcome", "finished", "first_byte", "source", "cost", "losses", *COUNTS,
)  # fmt: skip
"""The columns of a row that its sum depends on."""

_TOOK: Final = "finished - started"
_ROW: Final = {
    **dict.fromkeys((*DIMENSIONS, "session"), ""),
    "started": "",
    "model": MODEL,
    "requests": "1",
    **dict.fromkeys(COUNTS, ""),
    "cost": "coalesce(cost, 0)",
    # The last condition: the provider answered, but did not report its usage.
    "unpriced": f"CASE WHEN outcome <> '' AND cost IS NULL AND ({TOKENS} > 0 OR outcome = 'ok'"
    " AND source = 'none') THEN 1 ELSE 0 END",
    "milliseconds": f"CASE WHEN outcome <> '' THEN {_TOOK} ELSE 0 END",
    "lossy": "CASE WHEN losses <> '{nothing}' THEN 1 ELSE 0 END",
    "first": "started",
    "last": "started",
    "took": "CASE WHEN outcome <> '' THEN {took} ELSE '' END",
    "first_byte": "CASE WHEN outcome <> '' AND first_byte > 0 THEN {first_byte} ELSE '' END",
    "losses": "nullif(losses, '{nothing}')",
}
"""A row as a sum of one; "": its column of this name."""

_PLAIN: Final = {
    "requests": "coalesce(sum(requests), 0)",
    "failed": "coalesce(sum(CASE WHEN outcome NOT IN ('', 'ok') THEN requests ELSE 0 END), 0)",
    "left": "coalesce(sum(CASE WHEN outcome = 'client_abort' THEN requests ELSE 0 END), 0)",
    "open": "coalesce(sum(CASE WHEN outcome = '' THEN requests ELSE 0 END), 0)",
    "cost": "coalesce(sum(cost), 0)",
    "unpriced": "coalesce(sum(unpriced), 0)",
    "milliseconds": "coalesce(sum(milliseconds), 0)",
    "lossy": "coalesce(sum(lossy), 0)",
    "first": "coalesce(min(first), 0)",
    "last": "coalesce(max(last), 0)",
}
_JOINED: Final = ("coalesce(string_agg(took, ''), '')", "coalesce(string_agg(first_byte, ''), '')")
_FEATURES: Final = msgspec.json.Decoder(dict[str, int] | list[str])


class Cover(NamedTuple):
    """What a query reads: ranges of sums, by the length of their cells, and ranges of rows."""

    runs: list[tuple[int, int, int]]
    gaps: list[Range]


class UnsummedCells(NamedTuple):
    """Cells to be added up."""

    span: int
    since: int
    until: int

    @property
    def cells(self) -> range:
        return range(self.since, self.until, self.span)


class SumsSql(NamedTuple):
    usage: UsageSql
    nothing: str
    """The value of that column in a row without losses."""

    # Reports.

    def totals(self, query: UsageQuery) -> Steps[list[UsageTotal]]:
        cover = yield from self._cover(query)
        is_exact = query.durations and not cover.runs and (yield from self._are_few(query, cover))
        groups = [self._group(name, query.step) for name in query.groups]
        sums = [*_PLAIN.values(), *(self._kind(kind.counts) for kind in KINDS.values())]
        columns = [*COUNTED, "first", "last"]
        if query.durations:
            sums += _JOINED
            columns += ["took", "first_byte"]
        found = yield self._select(query, cover, groups, sums, columns, is_exact=is_exact)
        totals = [_total(row, len(groups), query, is_exact=is_exact) for row in found]
        return sorted(totals, key=lambda total: total.group)

    def losses(self, query: UsageQuery) -> Steps[dict[str, int]]:
        """How many requests lost each feature."""
        cover = yield from self._cover(query)
        text, values = self._parts(query, cover, ["losses"])
        found = yield (
            f"{text} SELECT losses, count(*) FROM parts WHERE losses IS NOT NULL AND losses <> ''"
            " GROUP BY losses",
            values,
        )
        counts: Counter[str] = Counter()
        for losses, times in found:
            counts.update({name: count * times for name, count in _features(losses).items()})
        return dict(counts)

    def _cover(self, query: UsageQuery) -> Steps[Cover]:
        gaps: list[Range] = [(query.since, query.until or _FOREVER)]
        runs: list[tuple[int, int, int]] = []
        for span in _spans(query):
            ready = yield _READY, [span, gaps[0][0] if gaps else 0, gaps[-1][1] if gaps else 0]
            taken, gaps = _taken(gaps, [at for (at,) in ready], span)
            runs += [(span, *run) for run in taken]
        return Cover(runs, gaps)

    def _are_few(self, query: UsageQuery, cover: Cover) -> Steps[bool]:
        text, values = self._parts(query, cover, ["requests"])
        ((count,),) = yield (
            f"{text} SELECT count(*) FROM (SELECT 1 FROM parts LIMIT {MAX_EXACT_ROWS + 1}) counted",
            values,
        )
        return bool(count <= MAX_EXACT_ROWS)

    def _group(self, name: Grouping, step: int) -> str:
        if name == "day":
            return self.usage.day
        return f"CAST(started - started % {step} AS text)" if name == "step" else name

    def _kind(self, counts: Sequence[str]) -> str:
        return f"coalesce(sum({f'{self.usage.cast} + '.join(counts)}), 0)"

    def _select(
        self,
        query: UsageQuery,
        cover: Cover,
        groups: Sequence[str],
        sums: Sequence[str],
        columns: Sequence[str],
        *,
        is_exact: bool = False,
    ) -> Statement:
        text, values = self._parts(query, cover, columns, is_exact=is_exact)
        text += f" SELECT {', '.join([*groups, *sums])} FROM parts"
        if groups:
            text += " GROUP BY " + ", ".join(str(place) for place in range(1, len(groups) + 1))
        return text, values

    def _parts(
        self, query: UsageQuery, cover: Cover, columns: Sequence[str], *, is_exact: bool = False
    ) -> Statement:
        """`WITH ... parts`: the sums, and each row as one."""
        wanted = list(dict.fromkeys(("started", *_dimensions(query), "outcome", *columns)))
        names = {"nothing": self.nothing, "took": "", "first_byte": ""}
        # One character for each row, or its number.
        for name, value in (("took", _TOOK), ("first_byte", "first_byte")):
            if name in wanted:
                names[name] = f"CAST({value} AS text) || ' '" if is_exact else _letter(value)
        tables, sources, values = [], [], list[Any]()
        if cover.runs:
            tables.append(f"runs (span, since, until) AS (VALUES {_tuples(cover.runs)})")
            chosen, values = self._filters(query, "model")
            sources.append(
                f"SELECT {', '.join('at AS started' if name == 'started' else name for name in wanted)}"
                f" FROM runs CROSS JOIN {SUMS} s WHERE s.span = runs.span AND s.kept = '{_kept(query)}'"
                f" AND at >= since AND at < until{chosen}"
            )
        if cover.gaps:
            tables.append(f"gaps (since, until) AS (VALUES {_tuples(cover.gaps)})")
            chosen, values = self._filters(query, MODEL)
            row = [f"{_ROW[name].format(**names)} AS {name}" if _ROW[name] else name for name in wanted]
            sources.append(
                f"SELECT {', '.join(row)} FROM gaps CROSS JOIN usage"
                f" WHERE started >= since AND started < until{chosen}"
            )
        tables.append(f"parts AS ({' UNION ALL '.join(sources)})")
        return f"WITH {', '.join(tables)}", values

    def _filters(self, query: UsageQuery, model: str) -> tuple[str, list[Any]]:
        """Numbered alike for sums and rows."""
        terms, values = self.usage.filters(query, model, ())
        return "".join(f" AND {term}" for term in terms), values

    # Adding up.

    def next_work(self, until: int) -> Steps[UnsummedCells | None]:
        """The newest hours before `until` without sums; otherwise the newest such day."""
        end = until - until % HOUR
        ((first,),) = yield "SELECT min(started) FROM usage WHERE started >= $1", [end - _REACH_MS]
        if first is None or first >= end:
            return None
        begin = first - first % DAY
        ready = yield _READY, [HOUR, begin, end]
        _, gaps = _taken([(begin, end)], [at for (at,) in ready], HOUR)
        if not gaps:
            days = yield _UNSUMMED_DAY, [begin, end]
            return UnsummedCells(DAY, days[0][0], days[0][0] + DAY) if days else None
        since, end = gaps[-1]
        since = max(since, end - _CHUNK_MS)
        beyond = yield _BEYOND_CHUNK, [since, end]
        if beyond:
            last = beyond[0][0]
            since = min(end - HOUR, last - last % HOUR + HOUR)
        return UnsummedCells(HOUR, since, end)

    def added_up(self, work: UnsummedCells) -> Statement:
        """The input of `kept`."""
        query = UsageQuery(groups=DIMENSIONS)
        whole = (work.since, work.until)
        cover = Cover([], [whole]) if work.span == HOUR else Cover([(HOUR, *whole)], [])
        sums = [f"sum({name})" for name in COUNTED]
        sums += ["min(first)", "max(last)", *_JOINED, "string_agg(losses, '\n')"]
        columns = [*COUNTED, "first", "last", "took", "first_byte", "losses"]
        return self._select(query, cover, [f"started - started % {work.span}", *DIMENSIONS], sums, columns)


@cache
def _letter(value: str) -> str:
    """For the two durations: 12 KB of SQL, the same each time."""
    return letter_sql(f"({value})")


def kept(work: UnsummedCells, found: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of the table, by COLUMNS."""
    sums: dict[tuple[Any, ...], list[_Sum]] = {}
    for at, *row in found:
        *dimensions, outcome = row[: len(DIMENSIONS)]
        numbers = [int(number) for number in row[len(DIMENSIONS) : -3]]
        each = _Sum(numbers, row[-3], row[-2], row[-1] or "")
        sums[at, _ALL_KEPT, *dimensions, outcome] = [each]
        for place, name in enumerate(_KEPT, -1):
            rest = [value if at_place == place else "" for at_place, value in enumerate(dimensions)]
            sums.setdefault((at, name, *rest, outcome), []).append(each)
    return [(work.span, *group, *_as_columns(parts)) for group, parts in sums.items()]


class _Sum(NamedTuple):
    numbers: list[int]
    """As COUNTED, the first and the last."""
    took: str
    first_byte: str
    losses: str


def _as_columns(parts: Sequence[_Sum]) -> tuple[Any, ...]:
    *counted, first, last = zip(*[part.numbers for part in parts], strict=True)
    return (
        *map(sum, counted),
        min(first),
        max(last),
        packed("".join([part.took for part in parts])),
        packed("".join([part.first_byte for part in parts])),
        _packed_losses("\n".join([part.losses for part in parts])),
    )


def _kept(query: UsageQuery) -> str:
    """Which sums can answer a query."""
    filtered = {
        "caller": query.caller is not None,
        "model": query.model,
        "provider": query.provider,
        "caller_group": query.group,
        "client": query.client,
        "agent": query.agent,
    }
    needed = {*_dimensions(query), *(name for name, value in filtered.items() if value)} - {"outcome"}
    return _ALL_KEPT if len(needed) > 1 else next(iter(needed), "")


_READY: Final = f"SELECT at FROM {MARKS} WHERE span = $1 AND ready = 1 AND at >= $2 AND at < $3 ORDER BY at"
_UNSUMMED_DAY: Final = (
    f"SELECT day FROM (SELECT at - at % {DAY} AS day FROM {MARKS} WHERE span = {HOUR} AND ready = 1"
    f" AND at >= $1 AND at < $2 GROUP BY 1 HAVING count(*) = 24) whole WHERE NOT EXISTS"
    f" (SELECT 1 FROM {MARKS} WHERE span = {DAY} AND ready = 1 AND at = day) ORDER BY day DESC LIMIT 1"
)
_BEYOND_CHUNK: Final = (
    f"SELECT started FROM usage WHERE started >= $1 AND started < $2 ORDER BY started DESC"
    f" LIMIT 1 OFFSET {CHUNK_ROWS}"
)


def steps_run(steps: Steps[T], execute: Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]) -> T:
    try:
        asked = next(steps)
        while True:
            asked = steps.send(execute(*asked))
    except StopIteration as done:
        result: T = done.value
        return result


def _spans(query: UsageQuery) -> tuple[int, ...]:
    """The lengths of the sums that can answer the query, the longest first."""
    if query.session or "session" in query.groups:
        return ()
    if "step" in query.groups and query.step % DAY:
        return () if query.step % HOUR else (HOUR,)
    return (DAY, HOUR)


def _taken(gaps: Iterable[Range], cells: Sequence[int], span: int) -> tuple[list[Range], list[Range]]:
    """The parts of the gaps that the cells cover, and the rest."""
    taken: list[Range] = []
    left: list[Range] = []
    place = 0
    for since, until in gaps:
        at = since
        while place < len(cells) and cells[place] + span <= until:
            cell = cells[place]
            place += 1
            if cell < since:
                continue
            if cell > at:
                left.append((at, cell))
            if taken and taken[-1][1] == cell:
                taken[-1] = (taken[-1][0], cell + span)
            else:
                taken.append((cell, cell + span))
            at = cell + span
        if at < until:
            left.append((at, until))
    return taken, left


def _tuples(rows: Iterable[Sequence[int]]) -> str:
    """Our own integers as literals: a database accepts thousands of them so, but not as parameters."""
    return ", ".join(f"({', '.join(f'CAST({number} AS bigint)' for number in row)})" for row in rows)


def _dimensions(query: UsageQuery) -> list[str]:
    return [name for name in query.groups if name not in ("day", "step")]


def _features(text: str) -> dict[str, int]:
    """The features in a row's list, or in a sum."""
    found = _FEATURES.decode(text)
    return found if isinstance(found, dict) else dict.fromkeys(found, 1)


def _packed_losses(text: str | None) -> str:
    if not text:
        return ""
    counts: Counter[str] = Counter()
    for losses, times in Counter(filter(None, text.split("\n"))).items():
        counts.update({name: count * times for name, count in _features(losses).items()})
    return msgspec.json.encode(dict(sorted(counts.items()))).decode()


def _total(row: Sequence[Any], groups: int, query: UsageQuery, *, is_exact: bool) -> UsageTotal:
    count = groups + len(_PLAIN) + len(KINDS)
    # Databases may return sums as decimals: all of them are whole numbers.
    numbers = [int(number) for number in row[groups:count]]
    read = of_numbers if is_exact else of_letters
    took, first_byte = map(read, row[count:]) if query.durations else (Durations(), Durations())
    return UsageTotal(
        group=tuple(map(from_text, row[:groups])),
        tokens=dict(zip(KINDS, numbers[len(_PLAIN) :], strict=True)),
        took=took,
        first_byte=first_byte,
        **dict(zip(_PLAIN, numbers, strict=False)),
    )
