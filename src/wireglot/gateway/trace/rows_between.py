"""Exchanges of a stretch of time, as the dashboard adds them up."""

from __future__ import annotations

import msgspec

from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.records import Outcome, UsageRow
from wireglot.traces.trace import Row, State, Tokens

_OUTCOMES: dict[State, Outcome] = {"running": "", "done": "ok", "failed": "error", "left": "client_abort"}


class RowsBetween:
    def __init__(self, traces: Traces) -> None:
        self._traces = traces

    async def listed(self, since: float, until: float) -> list[Row]:
        """Those that are still in the list, of all workers and machines."""
        return await self._traces.listed(Wanted(since=since, until=until))

    async def unbooked(self, since: float, until: float) -> list[UsageRow]:
        """What all machines of the fleet answered, where each keeps books of its own."""
        fleet = self._traces.fleet
        rows = await fleet.unbooked(since, until) if fleet is not None else []
        return [usage_of(self._traces.told(row)) for row in rows if row.booked]


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
