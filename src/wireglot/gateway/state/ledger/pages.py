"""`GET /v1/usage`: what was used, added up. A caller sees its own; the admin sees everybody's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.state.ledger.report import BadParameter, query_of, report
from wireglot.gateway.state.page_request import PageRequest

if TYPE_CHECKING:
    from wireglot.gateway.state.state import State

_SIBLINGS: Final = 0.15
"""Seconds after which the other workers' rows are in the store too."""


async def answer(state: State, page: PageRequest) -> None:
    given = {
        name: ",".join(values) for name, values in parse_qs(page.head.query, keep_blank_values=True).items()
    }
    everybody = page.asked.operation == "admin"
    if not everybody:
        given.pop(
            "key", None
        )  # Gemini's clients send their secret under this name; and it is their own anyway
    try:
        query = query_of(given)
    except BadParameter as wrong:
        raise RequestError("bad", str(wrong), code="invalid_value", param=wrong.name) from None
    if not everybody:
        query = msgspec.structs.replace(query, caller=page.caller.name)
    # Who asks right after a request finds it here.
    await state.ledger.flush()
    if page.settings.server.workers > 1:
        await asyncio.sleep(_SIBLINGS)
    page.send(await report(state.engine.ledger, query, page.settings.currency))
