"""`GET /inspector/api/dashboard`: from the ledger of usage, the list of exchanges, and the metrics."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.dashboard import (
    BY,
    GROUPS_SHOWN,
    STEPS_MOST,
    By,
    Span,
    charted,
    graded,
    usual_step,
)
from wireglot.gateway.inspector.dashboard_csv import as_csv
from wireglot.gateway.request.aside import aside
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.report import BadParameter, moment
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.targets.health import Health
from wireglot.stores.base import Ledger
from wireglot.stores.records import UsageQuery, UsageRow
from wireglot.traces.trace import Row

ROWS_MOST: Final = 20_000
"""Newer ones first: percentiles need each value. What is left out is told."""
_GROUPS_IN_CSV: Final = 1000
_USUAL_FROM: Final = "1h"
_AT_ONCE_ROWS: Final = 500
_SAMPLE: Final = re.compile(r"wireglot_([a-z_]+?)(?:\{(.*)\})? ([0-9.e+-]+)")
_LABEL: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_FLUSH_SECONDS: Final = 0.5
_WAITING_MOST: Final = 16
_WAITING_SECONDS: Final = 30.0


class Rows(Protocol):
    async def listed(self, since: float, until: float) -> Sequence[Row]:
        """The exchanges that are still in the list, of all workers and machines."""
        ...

    async def unbooked(self, since: float, until: float) -> Sequence[UsageRow]:
        """What machines of a fleet answered that keep books of their own, this one among them."""
        ...


class DashboardPage:
    def __init__(
        self,
        usage: UsageLedger,
        ledger: Ledger,
        health: Health,
        scrape: Callable[[], Awaitable[bytes]],
        rows: Rows | None = None,
    ) -> None:
        """`scrape`: the metrics of all workers, as Prometheus reads them."""
        self._usage = usage
        self._ledger = ledger
        self._health = health
        self._scrape = scrape
        self._rows = rows
        self._gate = Gate(1, _WAITING_MOST, _WAITING_SECONDS)

    async def dashboard(self, page: PageRequest, viewer: Viewer) -> None:
        span, by = _span(page), _by(page)
        form = page.query("format")
        if form not in ("", "json", "csv"):
            raise RequestError("bad", "format: expected json or csv", code="invalid_value", param="format")
        await self._usage.flush(_FLUSH_SECONDS)
        await self._gate.enter()
        try:
            most = _GROUPS_IN_CSV if form == "csv" else GROUPS_SHOWN
            told = await self._told(page, viewer, span, by, most)
        finally:
            self._gate.leave()
        if form == "csv":
            body = await aside(partial(as_csv, told))
            headers = [
                ("content-type", "text/csv; charset=utf-8"),
                ("content-disposition", 'attachment; filename="wireglot-dashboard.csv"'),
                *identity(page.record.id, page.asked.dialect),
            ]
            page.reply.send(200, headers, body)
            return
        told["grades"] = await self._grades(span, viewer)
        if viewer.sees_all:
            told["health"] = await self._condition(page.settings)
        page.send(told)

    async def _told(
        self, page: PageRequest, viewer: Viewer, span: Span, by: By, groups_most: int
    ) -> dict[str, Any]:
        query = _query(page, span, viewer)
        found = await self._ledger.rows(query, limit=ROWS_MOST + 1)
        if self._rows is not None and (more := await self._rows.unbooked(span.since, span.until)):
            known = {row.id for row in found}
            found += [row for row in more if row.id not in known and query.chooses(row)]
            found.sort(key=lambda row: -row.started)
        is_cut = len(found) > ROWS_MOST
        rows = found[:ROWS_MOST]
        work = partial(charted, rows, span, by, groups_most)
        return {
            "from": span.since,
            "to": span.until,
            "step": span.step,
            "by": by,
            "currency": page.settings.currency,
            "cut_before": rows[-1].started // 1000 if is_cut else None,
            **(await aside(work) if len(rows) > _AT_ONCE_ROWS else work()),
        }

    async def _grades(self, span: Span, viewer: Viewer) -> dict[str, int]:
        if self._rows is None:
            return {}
        rows = await self._rows.listed(span.since, span.until)
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


def _query(page: PageRequest, span: Span, viewer: Viewer) -> UsageQuery:
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


def _span(page: PageRequest) -> Span:
    now = time.time()
    try:
        since = moment("from", page.query("from") or _USUAL_FROM, now) // 1000
        until = moment("to", page.query("to"), now) // 1000 if page.query("to") else int(now) + 1
    except BadParameter as wrong:
        raise RequestError("bad", str(wrong), code="invalid_value", param=wrong.name) from None
    if until <= since:
        raise RequestError("bad", "to: expected a time after from", code="invalid_value", param="to")
    step = page.number("step", usual_step(since, until), 1, 366 * 86_400)
    if (until - since) / step > STEPS_MOST:
        raise RequestError(
            "bad", f"step: expected one that makes at most {STEPS_MOST} of it", code="invalid_value",
            param="step",
        )  # fmt: skip
    return Span(since, until, step)


def _by(page: PageRequest) -> By:
    asked = page.query("by") or BY[0]
    found = next((each for each in BY if each == asked), None)
    if found is None:
        raise RequestError("bad", f"by: expected one of {', '.join(BY)}", code="invalid_value", param="by")
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
