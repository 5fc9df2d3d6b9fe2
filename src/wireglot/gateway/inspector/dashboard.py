"""A stretch of time in steps: counts, percentiles of what was really measured, tokens, money, losses."""

from __future__ import annotations

import asyncio
import csv
import io
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

import msgspec

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import RequestError, invalid_value
from wireglot.gateway.request.aside import aside
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.report import BadParameter, moment
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.targets.health import Health
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.base import Ledger
from wireglot.stores.records import MICRO, Outcome, UsageQuery, UsageRow, model_of
from wireglot.traces.trace import Row, State, Tokens

By = Literal["model", "provider", "key"]
BY: Final[tuple[By, ...]] = ("model", "provider", "key")
_STEPS: Final = (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 7 * 86_400)
_STEPS_USUAL: Final = 60
MAX_STEPS: Final = 500
GROUPS_SHOWN: Final = 30
_PERCENTILES: Final = (50, 95, 99)
_FAILED: Final = frozenset({"error", "gateway_abort", "crash"})

_NAMES: Final[dict[By, Callable[[UsageRow], str]]] = {
    "model": model_of,
    "provider": lambda row: row.provider,
    "key": lambda row: row.caller,
}


class TimeSpan(msgspec.Struct, frozen=True):
    """Unix seconds. Steps begin at whole multiples of `step`."""

    since: int
    until: int
    step: int

    @property
    def times(self) -> list[int]:
        first = self.since - self.since % self.step
        return list(range(first, self.until, self.step))

    def place(self, milliseconds: int) -> int:
        return (milliseconds // 1000 - (self.since - self.since % self.step)) // self.step


def usual_step(since: int, until: int) -> int:
    for step in _STEPS:
        if (until - since) / step <= _STEPS_USUAL * 2:
            return step
    return max(_STEPS[-1], math.ceil((until - since) / MAX_STEPS))


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """By nearest rank: a value that was really measured. None where there is none."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def charted(
    rows: Iterable[UsageRow], span: TimeSpan, by: By, max_groups: int = GROUPS_SHOWN
) -> dict[str, Any]:
    """The series of all rows together, and of the largest groups."""
    found = list(rows)
    count = len(span.times)
    groups: dict[str, list[UsageRow]] = {}
    name_of = _NAMES[by]
    for row in found:
        groups.setdefault(name_of(row), []).append(row)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))
    shown = largest[:max_groups]
    return {
        "times": span.times,
        "total": _summed(found),
        "series": _series(found, span, count),
        "groups": [
            {"name": name, "total": _summed(groups[name]), "series": _series(groups[name], span, count)}
            for name in shown
        ],
        "more_groups": len(largest) - len(shown),
        "losses": _features(found),
    }


def graded(rows: Iterable[Row]) -> dict[str, int]:
    """Losses by grade, of the exchanges that are still in the list."""
    grades = Counter({"serious": 0, "degraded": 0, "harmless": 0})
    for row in rows:
        if row.losses is not None:
            grades.update(msgspec.structs.asdict(row.losses))
    return dict(grades)


def _series(rows: list[UsageRow], span: TimeSpan, count: int) -> dict[str, list[Any]]:
    steps: list[list[UsageRow]] = [[] for _ in range(count)]
    for row in rows:
        place = span.place(row.started)
        if 0 <= place < count:
            steps[place].append(row)
    summed = [_flat(_summed(step)) for step in steps]
    return {name: [each[name] for each in summed] for name in _flat(_summed([]))}


def _summed(rows: list[UsageRow]) -> dict[str, Any]:
    ended = [row for row in rows if row.outcome]
    latency = sorted(row.finished - row.started for row in ended if row.finished >= row.started > 0)
    first = sorted(row.first_byte for row in ended if row.first_byte > 0)
    return {
        "requests": len(rows),
        "errors": sum(row.outcome in _FAILED for row in ended),
        "left": sum(row.outcome == "client_abort" for row in ended),
        "open": len(rows) - len(ended),
        "latency_ms": {f"p{each}": percentile(latency, each) for each in _PERCENTILES},
        "first_ms": {f"p{each}": percentile(first, each) for each in _PERCENTILES},
        "input_tokens": sum(row.total_input for row in ended),
        "output_tokens": sum(row.total_output for row in ended),
        "cached_tokens": sum(row.cache_read for row in ended),
        "cost": sum(row.cost or 0 for row in ended) / MICRO,
        "unpriced": sum(row.cost is None for row in ended),
        "lossy": sum(bool(row.losses) for row in ended),
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


def _features(rows: list[UsageRow]) -> list[dict[str, Any]]:
    """How many requests had a loss of this feature, the most first."""
    counted = Counter(feature for row in rows for feature in row.losses)
    return [{"feature": feature, "requests": times} for feature, times in counted.most_common()]


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""A spreadsheet takes a text that begins so for something to run: names of models and keys are anybody's."""


def as_csv(reported: dict[str, Any]) -> bytes:
    by = reported["by"]
    columns = list(reported["series"])
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["time", by, *columns])
    groups = [(group["name"] or "(none)", group["series"]) for group in reported["groups"]]
    lines = [("", reported["series"]), *groups]
    for name, series in lines:
        for place, at in enumerate(reported["times"]):
            time = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
            writer.writerow([time, plain(name), *(_number(series[column][place]) for column in columns)])
    return out.getvalue().encode()


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    cleaned = "".join(letter if letter.isprintable() else " " for letter in text)
    return f"'{cleaned}" if cleaned.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else cleaned


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if type(value) is int else f"{value:.6f}".rstrip("0").rstrip(".")


MAX_ROWS: Final = 20_000
"""Newer ones first: percentiles need each value. What is left out is reported."""
_GROUPS_IN_CSV: Final = 1000
_USUAL_FROM: Final = "1h"
_AT_ONCE_ROWS: Final = 500
_SAMPLE: Final = re.compile(r"wireglot_([a-z_]+?)(?:\{(.*)\})? ([0-9.e+-]+)")
_LABEL: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_FLUSH_SECONDS: Final = 0.5
_MAX_WAITING: Final = 16
_WAITING_SECONDS: Final = 30.0


_OUTCOMES: dict[State, Outcome] = {"running": "", "done": "ok", "failed": "error", "left": "client_abort"}


def usage_of(row: Row) -> UsageRow:
    """What is added up of it."""
    started, tokens = round(row.at * 1000), row.tokens or Tokens()
    usage = UsageRow(
        id=row.id,
        caller=row.key,
        started=started,
        finished=started + round(row.total_ms or 0),
        model=row.asked,
        provider=row.provider,
        upstream_model=row.model,
        outcome=_OUTCOMES[row.state],
        first_byte=round(row.first_ms or 0),
        cost=row.cost,
        losses=tuple(row.features),
    )
    return msgspec.structs.replace(
        usage,
        input=tokens.input - tokens.cached - tokens.cache_written,
        cache_read=tokens.cached,
        cache_write=tokens.cache_written,
        output=tokens.output - tokens.reasoning,
        reasoning=tokens.reasoning,
    )


class DashboardPage:
    def __init__(
        self,
        usage: UsageLedger,
        ledger: Ledger,
        health: Health,
        scrape: Callable[[], Awaitable[bytes]],
        traces: Traces,
    ) -> None:
        """`scrape`: the metrics of all workers, as Prometheus reads them."""
        self._usage = usage
        self._ledger = ledger
        self._health = health
        self._scrape = scrape
        self._traces = traces
        self._gate = Gate(1, _MAX_WAITING, _WAITING_SECONDS)

    async def dashboard(self, page: PageRequest, viewer: Viewer) -> None:
        span, by = span_of(page), _by(page)
        form = page.query("format")
        if form not in ("", "json", "csv"):
            raise invalid_value("format", "json or csv")
        await self._usage.flush(_FLUSH_SECONDS)
        await self._gate.enter()
        try:
            most = _GROUPS_IN_CSV if form == "csv" else GROUPS_SHOWN
            reported = await self._reported(page, viewer, span, by, most)
        finally:
            self._gate.leave()
        if form == "csv":
            body = await aside(partial(as_csv, reported))
            headers = [
                ("content-type", "text/csv; charset=utf-8"),
                ("content-disposition", 'attachment; filename="wireglot-dashboard.csv"'),
                *identity(page.record.id, page.asked.dialect),
            ]
            page.reply.send(200, headers, body)
            return
        reported["grades"] = await self._grades(span, viewer)
        if viewer.sees_all:
            reported["health"] = await self._condition(page.settings)
        page.send(reported)

    async def _reported(
        self, page: PageRequest, viewer: Viewer, span: TimeSpan, by: By, max_groups: int
    ) -> dict[str, Any]:
        query = query_of(page, span, viewer)
        found = await self._ledger.rows(query, limit=MAX_ROWS + 1)
        # What machines of a fleet answered that keep books of their own, this one among them.
        if more := await self._traces.fleet.unbooked(span.since, span.until):
            known = {row.id for row in found}
            booked = (usage_of(self._traces.redacted(row)) for row in more if row.booked)
            found += [row for row in booked if row.id not in known and query.chooses(row)]
            found.sort(key=lambda row: -row.started)
        is_cut = len(found) > MAX_ROWS
        rows = found[:MAX_ROWS]
        work = partial(charted, rows, span, by, max_groups)
        return {
            "from": span.since,
            "to": span.until,
            "step": span.step,
            "by": by,
            "currency": page.settings.currency,
            "cut_before": rows[-1].started // 1000 if is_cut else None,
            **(await aside(work) if len(rows) > _AT_ONCE_ROWS else work()),
        }

    async def _grades(self, span: TimeSpan, viewer: Viewer) -> dict[str, int]:
        rows = await self._traces.listed(Wanted(since=span.since, until=span.until))
        return graded(row for row in rows if viewer.sees(row.key, row.at))

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


def query_of(page: PageRequest, span: TimeSpan, viewer: Viewer) -> UsageQuery:
    query = UsageQuery(
        since=span.since * 1000,
        until=span.until * 1000,
        caller=page.query("key") or None,
        model=page.query("model"),
        provider=page.query("provider"),
    )
    if viewer.sees_all:
        return query
    # What another key of this name used before is not this one's to see.
    return msgspec.structs.replace(query, caller=viewer.key, since=max(query.since, viewer.created))


def span_of(page: PageRequest) -> TimeSpan:
    now = time.time()
    try:
        since = moment("from", page.query("from") or _USUAL_FROM, now) // 1000
        until = moment("to", page.query("to"), now) // 1000 if page.query("to") else int(now) + 1
    except BadParameter as wrong:
        raise RequestError("bad", str(wrong), code="invalid_value", param=wrong.name) from None
    if until <= since:
        raise invalid_value("to", "a time after from")
    step = page.number("step", usual_step(since, until), 1, 366 * 86_400)
    if (until - since) / step > MAX_STEPS:
        raise invalid_value("step", f"one that makes at most {MAX_STEPS} of it")
    return TimeSpan(since, until, step)


def _by(page: PageRequest) -> By:
    asked = page.query("by") or BY[0]
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
