"""Pages about stored state: one table, verb -> handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from wireglot.gateway.entry.guard import check_body_form
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.headers import check_version
from wireglot.gateway.request.page_request import PageRequest, listed, order_of, page_size, unavailable
from wireglot.gateway.state.conversations.pages import ConversationPages, SessionPages
from wireglot.gateway.state.keys.admin import AdminPages
from wireglot.gateway.state.ledger.report import BadParameter, query_of, report
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.losses.shelf import LossShelf
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.responses.background import Background
from wireglot.gateway.state.responses.store import ResponseStore
from wireglot.gateway.state.state import State
from wireglot.gateway.state.stored_forms import KeptResponse
from wireglot.stores import StoreDown
from wireglot.stores.base import Ledger
from wireglot_core.dialects.capabilities import Stored
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import decode

_ID_LONGEST: Final = 64
_SIBLINGS_SECONDS: Final = 0.15
"""After this time the other workers' rows are in the store too."""

Handler = Callable[[PageRequest], Awaitable[None]]


class ResponsePages:
    """Stored answers, shown and deleted."""

    def __init__(self, responses: ResponseStore, background: Background) -> None:
        self._responses = responses
        self._background = background

    async def cancel(self, page: PageRequest) -> None:
        await self._found(page)
        await self._background.cancel(page, _stored_of(page).noun)

    async def get(self, page: PageRequest) -> None:
        if page.query("stream") == "true":
            await self._found(page)
            await self._background.stream(page)
            return
        kept = await self._found(page)
        query = {name: values[-1] for name, values in parse_qs(page.head.query).items()}
        page.send(_stored_of(page).shown(kept.body, kept.input, query))

    async def _found(self, page: PageRequest) -> KeptResponse:
        """A stored answer of the same dialect: documents of another would mean nothing to its clients."""
        (id,) = page.asked.ids
        check_version(page.head, surface(page.asked.dialect).client)
        kept = await self._responses.load(page.caller.name, id)
        if kept is not None:
            kept = await self._background.current(page.caller.name, id, kept)
        stored = _stored_of(page)
        if kept is None or kept.dialect != ("" if stored.items is not None else page.asked.dialect):
            raise self._responses.missing(page.caller.name, id, stored.noun)
        return kept

    async def delete(self, page: PageRequest) -> None:
        await self._found(page)
        (id,) = page.asked.ids
        if not await self._responses.delete(page.caller.name, id):
            raise self._responses.missing(page.caller.name, id, _stored_of(page).noun)
        await self._background.dropped(page.caller.name, id)
        page.send(_stored_of(page).deleted(id))

    async def input_items(self, page: PageRequest) -> None:
        items: list[dict[str, Any]] = (await self._found(page)).input
        if order_of(page) == "desc":
            items = items[::-1]
        after, limit = page.query("after"), page_size(page)
        if after:
            places = [place for place, item in enumerate(items) if item["id"] == after]
            if not places:
                raise RequestError("bad", f"after: there is no item '{after}' in this list", param="after")
            items = items[places[0] + 1 :]
        page.send(listed(items[:limit], has_more=len(items) > limit))


def _stored_of(page: PageRequest) -> Stored:
    stored = surface(page.asked.dialect).stored
    assert stored is not None, "only a dialect with stored answers has a path to them"
    return stored


class UsagePages:
    """`GET /v1/usage`: usage, added up. A caller sees its own; the admin sees everybody's."""

    def __init__(self, usage: UsageLedger, ledger: Ledger) -> None:
        """`usage` writes, `ledger` reads."""
        self._usage = usage
        self._ledger = ledger

    async def usage(self, page: PageRequest) -> None:
        given = {
            name: ",".join(values)
            for name, values in parse_qs(page.head.query, keep_blank_values=True).items()
        }
        everybody = page.asked.operation == "admin"
        if not everybody:
            # Gemini's clients send their secret in this parameter; and a caller's report covers its own key
            # anyway.
            given.pop("key", None)
        try:
            query = query_of(given)
        except BadParameter as wrong:
            raise RequestError("bad", str(wrong), code="invalid_value", param=wrong.name) from None
        if not everybody:
            # Usage of an earlier key of the same name is not visible to this one.
            made = page.caller.key.created if page.caller.key is not None else 0
            query = msgspec.structs.replace(query, caller=page.caller.name, since=max(query.since, made))
        # Includes a request that has just ended.
        await self._usage.flush()
        if page.settings.server.workers > 1:
            await asyncio.sleep(_SIBLINGS_SECONDS)
        page.send(await report(self._ledger, query, page.settings.currency))


class BudgetPages:
    """How much of the caller's budget is used, in the form that a dialect's clients show."""

    def __init__(self, usage: UsageLedger, quotas: Quotas) -> None:
        self._usage = usage
        self._quotas = quotas

    async def get(self, page: PageRequest) -> None:
        reports = surface(page.asked.dialect).client.budgets
        assert reports is not None, "only a dialect with budgets has a path to them"
        key, settings = page.caller.key, page.settings
        budgets = self._quotas.budgets
        standings = await budgets.standings(key, settings) if key is not None else []
        await self._usage.flush()
        spending = await budgets.spending(page.caller.name, key.created if key is not None else 0)
        page.send(reports.page(standings, spending, settings.currency), more=[("cache-control", "no-store")])


class LossPages:
    """`GET /v1/requests/{id}/losses`: what of a request was lost in translation, reported to its sender."""

    def __init__(self, shelf: LossShelf) -> None:
        self._shelf = shelf

    async def get(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        found = await self._shelf.find(page.caller.name, id) if len(id) <= _ID_LONGEST else None
        if found is None:
            # The same message for other callers' requests: a caller must not learn that they exist.
            raise RequestError(
                "not_found",
                f"no losses of {id[:_ID_LONGEST]}: it had none, belongs to another caller, or has expired",
                code="losses_not_found",
            )
        page.send(decode(found))


class StatePages:
    def __init__(self, state: State, forget_traces: Callable[[str], Awaitable[int]]) -> None:
        engine = state.engine
        responses = ResponsePages(state.responses, state.background)
        conversations = ConversationPages(state.conversations)
        sessions = SessionPages(state.conversations, engine.ledger, state.ledger)
        usage = UsagePages(state.ledger, engine.ledger)
        losses = LossPages(state.losses)
        admin = self.admin = AdminPages(
            engine,
            state.keys,
            state.health,
            state.note,
            vault_apart=state.vault_apart,
            losses=state.losses,
            forget_traces=forget_traces,
            flush_usage=state.ledger.flush,
        )
        self._handlers: Final[dict[str, Handler]] = {
            "responses.get": responses.get,
            "responses.delete": responses.delete,
            "responses.cancel": responses.cancel,
            "responses.input_items": responses.input_items,
            "conversations.create": conversations.create,
            "conversations.get": conversations.get,
            "conversations.update": conversations.update,
            "conversations.delete": conversations.delete,
            "items.create": conversations.create_items,
            "items.list": conversations.list_items,
            "items.get": conversations.get_item,
            "items.delete": conversations.delete_item,
            "sessions.list": sessions.list_all,
            "sessions.get": sessions.get,
            "sessions.delete": sessions.delete,
            "usage": usage.usage,
            "losses.get": losses.get,
            "budgets": BudgetPages(state.ledger, state.quotas).get,
            "keys.list": admin.list_keys,
            "keys.create": admin.create_key,
            "keys.get": admin.get_key,
            "keys.update": admin.update_key,
            "keys.revoke": admin.revoke_key,
            "keys.rotate": admin.rotate_key,
            "keys.delete": admin.delete_key,
            "store.stats": admin.store_stats,
            "callers.wipe": admin.wipe_caller,
        }

    async def answer(self, page: PageRequest) -> None:
        handler = self._handlers.get(page.asked.verb)
        if handler is None:
            raise RequestError("not_found", f"there is no endpoint {page.head.path}", code="unknown_url")
        if page.body:
            check_body_form(page.head)  # a chunked body is only visible once it has come
        try:
            await handler(page)
        except StoreDown:
            raise unavailable(page.head.path) from None
