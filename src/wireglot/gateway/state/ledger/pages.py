"""`GET /v1/usage`: what was used, added up. A caller sees its own; the admin sees everybody's."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import parse_qs

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.state.ledger.report import BadParameter, query_of, report
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.stores.base import Ledger

_SIBLINGS_SECONDS: Final = 0.15
"""After which the other workers' rows are in the store too."""


class UsagePages:
    def __init__(self, usage: UsageLedger, ledger: Ledger) -> None:
        """`usage` writes, `ledger` is where it can be read."""
        self._usage = usage
        self._ledger = ledger

    async def usage(self, page: PageRequest) -> None:
        given = {
            name: ",".join(values)
            for name, values in parse_qs(page.head.query, keep_blank_values=True).items()
        }
        everybody = page.asked.operation == "admin"
        if not everybody:
            # Gemini's clients send their secret under this name; and it is their own anyway.
            given.pop("key", None)
        try:
            query = query_of(given)
        except BadParameter as wrong:
            raise RequestError("bad", str(wrong), code="invalid_value", param=wrong.name) from None
        if not everybody:
            # What another key of this name used before is not this one's to see.
            made = page.caller.key.created if page.caller.key is not None else 0
            query = msgspec.structs.replace(query, caller=page.caller.name, since=max(query.since, made))
        # Who asks right after a request finds it here.
        await self._usage.flush()
        if page.settings.server.workers > 1:
            await asyncio.sleep(_SIBLINGS_SECONDS)
        page.send(await report(self._ledger, query, page.settings.currency))
