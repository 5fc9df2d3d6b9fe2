"""Pages about what is remembered: one table, verb -> handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from wireglot.gateway.entry.guard import check_body_form
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest, unavailable
from wireglot.gateway.state.conversations.pages import ConversationPages, SessionPages
from wireglot.gateway.state.keys.admin import AdminPages
from wireglot.gateway.state.ledger.pages import UsagePages
from wireglot.gateway.state.losses.pages import LossPages
from wireglot.gateway.state.responses.pages import ResponsePages
from wireglot.gateway.state.state import State
from wireglot.stores import StoreDown

Handler = Callable[[PageRequest], Awaitable[None]]


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
            raise RequestError("not_found", f"there is nothing at {page.head.path}", code="unknown_url")
        if page.body:
            check_body_form(page.head)  # one in chunks does not show before it has come
        try:
            await handler(page)
        except StoreDown:
            raise unavailable(page.head.path) from None
