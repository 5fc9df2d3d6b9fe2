"""Questions about what is remembered, each to whoever knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wireglot.gateway.state.keys import admin
from wireglot.gateway.state.ledger import pages
from wireglot.gateway.state.page_request import PageRequest, unavailable
from wireglot.stores import StoreDown

if TYPE_CHECKING:
    from wireglot.gateway.state.state import State


async def answer(state: State, page: PageRequest) -> None:
    verb = page.asked.verb
    try:
        if verb == "usage":
            await pages.answer(state, page)
        elif page.asked.operation == "admin":
            await admin.answer(state, page)
        else:
            await state.held.inquire(page)
    except StoreDown:
        raise unavailable(page.head.path) from None
