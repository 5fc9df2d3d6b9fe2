"""A time span in steps: counts, percentiles, tokens, cost, losses, and the rest of budgets."""

from __future__ import annotations

import asyncio
import csv
import io
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any, Final, Literal

import msgspec

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import invalid_value
from wireglot.gateway.observe.record import MARKS
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.gateway.state.ledger.report import BadParameter, moment
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.targets.health import Health
from wireglot.gateway.trace.export import as_text
from wireglot.gateway.trace.rows import COPIED
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores import StoreDown
from wireglot.stores.base import Ledger
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import MICRO, Grouping, Outcome, UsageQuery, UsageRow, UsageTotal, added
from wireglot_core.ir.grades import GRADES, Grade
from wireglot_core.ir.usage import KINDS
from wireglot_core.traces.trace import Row, State, Tokens

By = Literal["model", "provider", "key", "group", "client", "agent"]
BY: Final[dict[By, Grouping]] = {
    "model": "model",
    "provider": "provider",
    "key": "caller",
    "group": "caller_group",
    "client": "client",
    "agent": "agent",
}
_SHORT_STEPS: Final = (1, 5, 10, 30, 60, 300)
_HOUR_STEPS: Final = (3600, 2 * 3600, 3 * 3600, 6 * 3600)
_DAY_STEPS: Final = (86_400, 7 * 86_400, 28 * 86_400)
_SHORT_SECONDS: Final = 6 * 3600
"""For longer spans the steps are whole hours, and beyond `_HOURS_SECONDS` whole days (UTC), since their
requests have been added up."""
_HOURS_SECONDS: Final = 14 * 86_400
_STEPS_USUAL: Final = 60
# Points of one curve of the dashboard.
MAX_STEPS: Final = 500
GROUPS_SHOWN: Final = 30
_PERCENTILES: Final = (50, 95, 99)


class TimeSpan(msgspec.Struct, frozen=True):
    """Unix seconds. Steps begin at whole multiples of `step`."""

    since: int
    until: int
    step: int

    @property
    def times(self) -> list[int]:
        first = self.since - self.since % self.step
        return list(range(first, self.until, self.step))


def usual_step(since: int, until: int) -> int:
    seconds = until - since
    steps: Sequence[int] = _SHORT_STEPS
    if seconds > _SHORT_SECONDS + 1:
        steps = _HOUR_STEPS if seconds <= _HOURS_SECONDS else _DAY_STEPS
    for step in steps:
        if seconds / step <= _STEPS_USUAL * 2:
            return step
    return max(steps[-1], math.ceil(seconds / MAX_STEPS / 86_400) * 86_400)


class Figures:
    """The figures of a dashboard, from the ledger and from rows that are in another machine's."""

    def __init__(self, ledger: Ledger, more: Sequence[UsageRow] = ()) -> None:
        self._ledger = ledger
        self._more = MemoryLedger()
        self._rows = more

    async def charted(
        self,
        query: UsageQuery,
        span: TimeSpan,
        by: By,
        max_groups: int = GROUPS_SHOWN,
        *,
        whole: bool = False,
    ) -> dict[str, Any]:
        """The series of all requests together, and of the largest groups. `whole`: include how long the
        requests of each group took in each step."""
        step = span.step * 1000
        by_group = await self._totals(query, BY[by])
        by_step = await self._totals(msgspec.structs.replace(query, step=step), "step")
        bare = msgspec.structs.replace(query, step=step, durations=whole)
        parts = await self._totals(bare, BY[by], "step")
        losses = await self._losses(query)
        return await run_in_thread(partial(_charts, span, max_groups, by_group, by_step, parts, losses))

    async def total(self, query: UsageQuery) -> UsageTotal:
        return added(await self._totals(query))

    async def _totals(self, query: UsageQuery, *groups: Grouping) -> list[UsageTotal]:
        query = msgspec.structs.replace(query, groups=groups)
        found = await self._ledger.totals(query)
        if not self._rows:
            return found
        await self._more.apply(self._rows)
        by_name: dict[tuple[str, ...], list[UsageTotal]] = {}
        for total in (*found, *await self._more.totals(query)):
            by_name.setdefault(total.group, []).append(total)
        return [added(totals, group) for group, totals in by_name.items()]

    async def _losses(self, query: UsageQuery) -> Counter[str]:
        counts = Counter(await self._ledger.losses(query))
        for row in self._rows:
            if query.chooses(row):
                counts.update(dict.fromkeys(row.losses, 1))
        return counts


def graded(rows: Iterable[Row]) -> dict[str, int]:
    """Losses by grade, of exchanges that are still in the list."""
    grades = Counter({"serious": 0, "degraded": 0, "harmless": 0})
    for row in rows:
        if row.losses is not None:
            grades.update(msgspec.structs.asdict(row.losses))
    return dict(grades)


def _only_grade(feature: str) -> dict[str, Grade]:
    """The grade of a feature, if all its losses have the same one."""
    grades = {grade for (name, _), (grade, _) in GRADES.items() if name == feature}
    return {"grade": grades.pop()} if len(grades) == 1 else {}


def _charts(
    span: TimeSpan,
    max_groups: int,
    by_group: list[UsageTotal],
    by_step: list[UsageTotal],
    parts: list[UsageTotal],
    losses: Mapping[str, int],
) -> dict[str, Any]:
    largest = sorted(by_group, key=lambda total: (-total.requests, total.group))
    steps = {total.group[0]: dict[str, UsageTotal]() for total in largest[:max_groups]}
    for part in parts:
        name, at = part.group
        if name in steps:
            steps[name][at] = part
    total = added(by_group)
    is_exact = total.took.is_exact and all(each.took.is_exact for each in by_step)
    return {
        "times": span.times,
        "total": summed(total),
        "series": _series({each.group[0]: each for each in by_step}, span),
        "groups": [
            {
                "name": each.group[0],
                "total": summed(each),
                "series": _series(steps[each.group[0]], span),
            }
            for each in largest[:max_groups]
        ],
        "more_groups": max(0, len(largest) - max_groups),
        "losses": [
            {"feature": feature, "requests": times, **_only_grade(feature)}
            for feature, times in sorted(losses.items(), key=lambda each: (-each[1], each[0]))
        ],
        "durations": "measured" if is_exact else "within_5_percent",
    }


def _series(steps: Mapping[str, UsageTotal], span: TimeSpan) -> dict[str, list[Any]]:
    nothing = _flat(summed(added(())))
    flat = {at: _flat(summed(total)) for at, total in steps.items()}
    found = [flat.get(str(at * 1000), nothing) for at in span.times]
    return {name: [each[name] for each in found] for name in nothing}


def summed(total: UsageTotal) -> dict[str, Any]:
    tokens = total.tokens
    sides = {
        side: sum(tokens[kind] for kind, about in KINDS.items() if about.side == side)
        for side in ("input", "output")
    }
    return {
        "requests": total.requests,
        "errors": total.failed - total.left,
        "left": total.left,
        "open": total.open,
        "latency_ms": {f"p{each}": total.took.percentile(each) for each in _PERCENTILES},
        "first_ms": {f"p{each}": total.first_byte.percentile(each) for each in _PERCENTILES},
        "input_tokens": sides["input"],
        "output_tokens": sides["output"],
        "cached_tokens": tokens["cache_read"],
        "cost": total.cost / MICRO,
        "unpriced": total.unpriced,
        "lossy": total.lossy,
    }


def _flat(summed: dict[str, Any]) -> dict[str, Any]:
    """`latency_ms: {p50: 1}` -> `latency_p50: 1`."""
    flat: dict[str, Any] = {}
    for name, value in summed.items():
        if isinstance(value, dict):
            flat |= {f"{name.removesuffix('_ms')}_{each}": number for each, number in value.items()}
        else:
            flat[name] = value
    return flat


def as_csv(reported: dict[str, Any]) -> bytes:
    by = reported["by"]
    columns = list(reported["series"])
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    currency = plain(reported.get("currency", ""))
    writer.writerow(["time", by, *columns, "currency"])
    groups = [(group["name"] or "(none)", group["series"]) for group in reported["groups"]]
    lines = [("", reported["series"]), *groups]
    for name, series in lines:
        for place, at in enumerate(reported["times"]):
            time = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
            numbers = (_number(series[column][place]) for column in columns)
            writer.writerow([time, plain(name), *numbers, currency])
    return out.getvalue().encode()


def plain(text: str) -> str:
    """A line that no spreadsheet takes for a formula."""
    cleaned = "".join(letter if letter.isprintable() else " " for letter in text)
    return as_text(cleaned) if as_text(text) == text else f"'{cleaned}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if type(value) is int else f"{value:.6f}".rstrip("0").rstrip(".")


_MAX_KNOWN_ROWS: Final = 20_000
"""Rows of this machine, used to recognize those that other machines of a fleet report as well."""
_LINES_IN_FILE: Final = 200_000
"""Steps of all groups together. The number of omitted groups is reported."""
_USUAL_FROM: Final = "1h"
ALL_TIME: Final = "all"
_SAMPLE: Final = re.compile(r"wireglot_([a-z_]+?)(?:\{(.*)\})? ([0-9.e+-]+)")
_LABEL: Final = re.compile(r'(?<![a-z_])([a-z_]+)="((?:[^"\\]|\\.)*)"')
_FLUSH_SECONDS: Final = 0.5
# Rows that the dashboard reads for its losses.
_MAX_GRADED: Final = 5000
# Requests for a dashboard that wait at once.
_MAX_WAITING: Final = 16
# Keys whose budgets the dashboard shows.
_MAX_BUDGET_KEYS: Final = 1000
_WAITING_SECONDS: Final = 30.0


_OUTCOMES: dict[State, Outcome] = {"running": "", "done": "ok", "failed": "error", "left": "client_abort"}


_IN_LIST: Final = {source.path: source.name for source in COPIED}
_COLUMNS: Final = {
    source.name: _IN_LIST[source.path] for source in MARKS.sources("ledger") if source.path in _IN_LIST
}
"""Columns of the ledger whose value is also in the list, and its name there."""
_columns_of: Final = attrgetter(*_COLUMNS.values())


def usage_of(row: Row, group: str = "") -> UsageRow:
    """The row of usage for an exchange. `group`: of its key."""
    columns: dict[str, Any] = dict(zip(_COLUMNS, _columns_of(row), strict=True))
    started, tokens = round(row.at * 1000), row.tokens or Tokens()
    columns |= {
        "started": started,
        "finished": started + round(row.total_ms or 0),
        "outcome": _OUTCOMES[row.state],
        "first_byte": round(row.first_ms or 0),
        "losses": tuple(row.features),
        "client": row.client,
        "caller_group": group,
        "input": tokens.input - tokens.cached - tokens.cache_written,
        "cache_read": tokens.cached,
        "cache_write": tokens.cache_written,
        "output": tokens.output - tokens.reasoning,
        "reasoning": tokens.reasoning,
    }
    return UsageRow(**columns)


class DashboardPage:
    def __init__(
        self,
        usage: UsageLedger,
        ledger: Ledger,
        health: Health,
        scrape: Callable[[], Awaitable[bytes]],
        *,
        traces: Traces,
        quotas: Quotas,
        keys: KeyTable,
    ) -> None:
        """`scrape`: returns the metrics of all workers in Prometheus's format."""
        self._usage = usage
        self._ledger = ledger
        self._health = health
        self._scrape = scrape
        self._traces = traces
        self._quotas = quotas
        self._keys = keys
        self._gate = Gate(1, _MAX_WAITING, _WAITING_SECONDS)

    async def dashboard(self, page: PageRequest, viewer: Viewer) -> None:
        by = _by(page)
        form = page.query("format")
        if form not in ("", "json", "csv"):
            raise invalid_value("format", "json or csv")
        span = span_of(page)
        await self._usage.flush(_FLUSH_SECONDS)
        await self._gate.enter()
        try:
            if page.query("from") == ALL_TIME:
                span = await self._since_the_first(page, viewer, span)
            reported = await self._reported(page, viewer, span, by, is_file=form != "")
        finally:
            self._gate.leave()
        if form == "csv":
            body = await run_in_thread(partial(as_csv, reported))
            page.reply.send(200, _file(page, "text/csv; charset=utf-8", "csv"), body)
            return
        reported |= await self._grades(page.settings, query_of(page, span, viewer))
        reported["budgets"] = await self._budgets(page.settings, viewer)
        if viewer.sees_all:
            reported["health"] = await self._condition(page.settings)
        if form == "json":
            page.reply.send(200, _file(page, "application/json", "json"), msgspec.json.encode(reported))
            return
        page.send(reported)

    async def _reported(
        self, page: PageRequest, viewer: Viewer, span: TimeSpan, by: By, *, is_file: bool
    ) -> dict[str, Any]:
        query = query_of(page, span, viewer)
        figures = Figures(self._ledger, await self._of_others(page.settings, span))
        most = max(GROUPS_SHOWN, _LINES_IN_FILE // len(span.times)) if is_file else GROUPS_SHOWN
        before = previous(query, viewer) if page.query("from") != ALL_TIME else None
        return {
            "from": span.since,
            "to": span.until,
            "step": span.step,
            "by": by,
            "currency": page.settings.currency,
            "previous": summed(await figures.total(before)) if before is not None else None,
            **await figures.charted(query, span, by, most, whole=is_file),
        }

    async def _of_others(self, settings: Settings, span: TimeSpan) -> list[UsageRow]:
        """Usage from machines of a fleet that have their own ledgers."""
        more = await self._traces.fleet.unbooked(span.since, span.until)
        groups = self._groups(settings)
        rows = [usage_of(self._traces.redacted(row), groups.get(row.key, "")) for row in more if row.booked]
        if not rows:
            return []
        # This machine is one of those that report, but its rows are in its own ledger.
        since, until = min(row.started for row in rows) - 1000, max(row.started for row in rows) + 1000
        own = await self._ledger.rows(UsageQuery(since=max(0, since), until=until), limit=_MAX_KNOWN_ROWS)
        known = {row.id for row in own}
        return [row for row in rows if row.id not in known]

    async def _since_the_first(self, page: PageRequest, viewer: Viewer, span: TimeSpan) -> TimeSpan:
        """The same span, beginning with the first request."""
        query = msgspec.structs.replace(query_of(page, span, viewer), durations=False)
        first = (await Figures(self._ledger).total(query)).first // 1000
        since = min(first, span.until - 1) if first else max(0, span.until - 3600)
        return TimeSpan(since, span.until, _step(page, since, span.until))

    async def _budgets(self, settings: Settings, viewer: Viewer) -> list[dict[str, Any]] | None:
        """The budgets of all keys and groups, or the viewer's own. None: they cannot be read now."""
        keys = [key for key in (*settings.keys, *self._keys.clients()) if viewer.sees(key.name)]
        try:
            found = await self._quotas.budgets.of_keys(keys[:_MAX_BUDGET_KEYS], settings)
        except StoreDown:
            return None
        return [
            {
                "of": "group" if standing.shared else "key",
                "name": name,
                "unit": standing.unit,
                "period": standing.period,
                "limit": _in_units(standing.limit, standing.unit),
                "used": _in_units(standing.used, standing.unit),
                "left": _in_units(max(0, standing.limit - standing.used), standing.unit),
                "resets": standing.resets,
            }
            for name, standing in found
        ]

    async def _grades(self, settings: Settings, query: UsageQuery) -> dict[str, Any]:
        """From the newest exchanges that are still in the list: the ledger has features, but no grades."""
        wanted = Wanted(since=query.since / 1000, until=query.until / 1000, limit=_MAX_GRADED)
        rows, groups = await self._traces.listed(wanted), self._groups(settings)
        chosen = [row for row in rows if query.chooses(usage_of(row, groups.get(row.key, "")))]
        # A request for a model that is unknown, for one, is in no ledger: no provider was called.
        rejected = sum(row.state == "failed" and not row.booked for row in chosen)
        return {"grades": graded(chosen), "graded": len(chosen), "rejected": rejected}

    def _groups(self, settings: Settings) -> dict[str, str]:
        """The group of each client key."""
        return {key.name: key.group for key in (*settings.keys, *self._keys.clients())}

    async def _condition(self, settings: Settings) -> dict[str, Any]:
        now = asyncio.get_running_loop().time()
        samples = _samples((await self._scrape()).decode("utf-8", "replace"))
        open_routes = [labels["route"] for labels, value in samples.get("breaker_open", ()) if value]
        resting = self._health.resting(now)
        providers = [
            {
                "name": name,
                "breakers": [route for route in open_routes if route.startswith(f"{name}/")],
                "cooling": [
                    {"model": rest.model, "account": rest.account, "seconds": round(rest.seconds, 1)}
                    for rest in resting
                    if rest.provider == name and not rest.rejected
                ],
                "rejected": [
                    {"account": rest.account, "seconds": round(rest.seconds, 1)}
                    for rest in resting
                    if rest.provider == name and rest.rejected
                ],
                "errors": {
                    labels["kind"]: value
                    for labels, value in samples.get("upstream_errors_total", ())
                    if labels.get("provider") == name
                },
            }
            for name in settings.providers
        ]
        return {
            "providers": providers,
            "queue": _sum(samples, "queue"),
            "in_flight": _sum(samples, "requests_in_flight"),
            "store_down": bool(_sum(samples, "store_down")),
            "losses": [{**labels, "requests": value} for labels, value in samples.get("losses_total", ())],
        }


def _in_units(amount: int, unit: str) -> float:
    return amount / MICRO if unit == "cost" else amount


def _file(page: PageRequest, content_type: str, ending: str) -> list[tuple[str, str]]:
    return [
        ("content-type", content_type),
        ("content-disposition", f'attachment; filename="wireglot-dashboard.{ending}"'),
        *identity(page.record.id, page.asked.dialect),
    ]


def query_of(page: PageRequest, span: TimeSpan, viewer: Viewer) -> UsageQuery:
    query = UsageQuery(
        since=span.since * 1000,
        until=span.until * 1000,
        caller=page.query("key") or None,
        model=page.query("model"),
        provider=page.query("provider"),
        group=page.query("group"),
        client=page.query("client"),
        agent=page.query("agent"),
    )
    if viewer.sees_all:
        return query
    # Usage of an earlier key of this name is not visible to this one.
    return msgspec.structs.replace(query, caller=viewer.key, since=max(query.since, viewer.created))


def previous(query: UsageQuery, viewer: Viewer) -> UsageQuery | None:
    """The previous span of the same length. None: the viewer may not see all of it."""
    since = 2 * query.since - query.until
    if since < 0 or (not viewer.sees_all and since < viewer.created):
        return None
    return msgspec.structs.replace(query, since=since, until=query.since)


def span_of(page: PageRequest) -> TimeSpan:
    now = time.time()
    asked = page.query("from") or _USUAL_FROM
    try:
        since = moment("from", asked, now) // 1000 if asked != ALL_TIME else 0
        until = moment("end", page.query("to"), now) // 1000 if page.query("to") else int(now) + 1
    except BadParameter as wrong:
        name = "to" if wrong.name == "end" else wrong.name
        expected = str(wrong).partition("expected ")[2]
        raise invalid_value(name, expected + (" or all" if name == "from" else "")) from None
    if until <= since:
        raise invalid_value("to", "a time after from")
    step = usual_step(since, until) if asked == ALL_TIME else _step(page, since, until)
    return TimeSpan(since, until, step)


def _step(page: PageRequest, since: int, until: int) -> int:
    step = page.number("step", usual_step(since, until), 1, 366 * 86_400)
    if (until - since) / step > MAX_STEPS:
        raise invalid_value("step", f"one that makes at most {MAX_STEPS} of it")
    return step


def _by(page: PageRequest) -> By:
    asked = page.query("by") or "model"
    found = next((each for each in BY if each == asked), None)
    if found is None:
        raise invalid_value("by", f"one of {', '.join(BY)}")
    return found


Samples = dict[str, list[tuple[dict[str, str], float]]]


def _samples(text: str) -> Samples:
    found: Samples = {}
    for line in text.split("\n"):
        sample = _SAMPLE.fullmatch(line)
        if sample is not None:
            labels = {name: _unescaped(value) for name, value in _LABEL.findall(sample[2] or "")}
            found.setdefault(sample[1], []).append((labels, float(sample[3])))
    return found


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], value)


def _sum(samples: Samples, name: str) -> int:
    return int(sum(value for _, value in samples.get(name, ())))
