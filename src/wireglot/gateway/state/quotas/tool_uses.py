"""Paid tools that the gateway runs: limited per key, with a row of the ledger for each use."""

from __future__ import annotations

import time
from typing import Final, Literal

from msgspec.structs import replace

from wireglot.gateway.entry.guard import new_request_id
from wireglot.gateway.observe.client_names import client_name
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.quotas.tool_claims import ToolClaims
from wireglot.stores.base import StoreDown
from wireglot.stores.records import MICRO, Budget, Rate, UsageRow

UseOutcome = Literal["ok", "error", "client_abort"]
_STATUS: Final[dict[UseOutcome, int]] = {"ok": 200, "error": 502, "client_abort": 499}


class ToolUses:
    def __init__(self, claims: ToolClaims, ledger: UsageLedger) -> None:
        self._claims = claims
        self._ledger = ledger

    async def begin(self, exchange: Exchange, kind: str, backend: str, price: float) -> ToolUse | str:
        """Begin one use; returns the refusal if it is not allowed."""
        job = exchange.job
        cost = round(price * MICRO)
        claims = self._claims.claims(job, cost)
        if claims:
            try:
                refused = await self._claims.take(claims)
            except StoreDown:
                return "the limits of this key cannot be checked at the moment"
            if refused:
                return refused
        return ToolUse(self, claims, self._row(exchange, kind, backend), cost)

    def _row(self, exchange: Exchange, kind: str, backend: str) -> UsageRow | None:
        job, record = exchange.job, exchange.record
        row = UsageRow(
            id=new_request_id(),
            caller=record.caller,
            started=int(time.time() * 1000),
            operation=kind,
            dialect=job.surface.name,
            session=record.session,
            model=job.model,
            provider=backend,
            purpose=record.facts.purpose,
            agent=record.facts.agent,
            caller_group=job.caller.key.group if job.caller.key is not None else "",
            client=client_name(record.agent),
        )
        return self._ledger.begin_row(row)

    def end(self, use: ToolUse, outcome: UseOutcome) -> None:
        """End a use. A failed one costs nothing. One that the client did not wait for does: the backend was
        called."""
        if use.row is not None:
            now = max(int(time.time() * 1000), use.row.started)
            self._ledger.end_row(
                replace(
                    use.row,
                    outcome=outcome,
                    finished=now,
                    status=_STATUS[outcome],
                    attempts=1,
                    cost=0 if outcome == "error" else use.cost,
                )
            )
        if outcome == "error":
            self._claims.give_back([claim for claim in use.claims if isinstance(claim, Budget)])


class ToolUse:
    """Implements `hosted.web.PaidUse`: one use, from its start to its end."""

    def __init__(self, uses: ToolUses, claims: list[Rate | Budget], row: UsageRow | None, cost: int) -> None:
        self.claims = claims
        self.row = row
        self.cost = cost
        self._uses = uses

    def end(self, outcome: UseOutcome) -> None:
        self._uses.end(self, outcome)
