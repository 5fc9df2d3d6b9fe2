"""Conversations that the gateway stores for dialects that have none: their turns are put back and stored.

A request with its own history (a turn of the model) is complete: nothing is put before it, and its history
replaces the stored one. System messages are not stored; they come with each request.
"""

from __future__ import annotations

from msgspec.structs import replace

from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.ending import KeepsAll
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.page_request import unavailable
from wireglot.gateway.request.results import paired, with_calls
from wireglot.gateway.state.conversations.items import items_of, turns_of, with_tools
from wireglot.gateway.state.conversations.store import ConversationStore, new_conversation
from wireglot.gateway.state.store_health import NOT_HELD, StoreHealth
from wireglot.gateway.state.stored_forms import KeptConversation
from wireglot.stores import StoreDown
from wireglot_core.ir.content import Message
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import AnyTool


class Continuing:
    """Puts the stored turns of a conversation before a request, and has the next one stored."""

    def __init__(self, conversations: ConversationStore, store_health: StoreHealth, note: Note) -> None:
        self.note = note
        self.store_health = store_health
        self.conversations = conversations

    async def load(self, exchange: Exchange) -> None:
        """A step for dialects without conversations: the one that the client names is put before its
        request."""
        try:
            self.store_health.check()
            await self._load(exchange)
        except StoreDown:
            raise unavailable(f"conversation {exchange.job.conversation!r}") from None

    async def _load(self, exchange: Exchange) -> None:
        job, request = exchange.job, exchange.request()
        caller = job.caller.name
        found = await self.conversations.find(caller, job.conversation)
        brings_history = any(message.role == "assistant" for message in request.messages)
        history: list[Message] = []
        tools: tuple[AnyTool, ...] = ()
        kept = found or new_conversation(job.conversation, job)
        if found is not None and not brings_history:
            placed = await self.conversations.items(caller, found)
            history, tools = turns_of((entry.kept for entry in placed), job.context, job.dialect)
        new = paired(history, request.messages)
        leading = next((place for place, message in enumerate(new) if message.role != "system"), len(new))
        request = replace(
            request,
            messages=(*new[:leading], *history, *new[leading:]),
            tools=with_tools(request.tools, tools) if tools else request.tools,
        )
        if job.surface.client.results_without_calls:
            request, exchange.invented = with_calls(request)
        exchange.rewrite(request)
        if job.asked.operation != "generate":
            return
        said = [message for message in new if message.role != "system"]
        turn = _KeepsTurn(self, exchange, kept, said, begins=found is None, whole=brings_history)
        exchange.ending.keepers.append(turn)


class _KeepsTurn(KeepsAll):
    """The new messages and the answer to them, stored before the answer's end is reported."""

    def __init__(
        self,
        continuing: Continuing,
        exchange: Exchange,
        kept: KeptConversation,
        said: list[Message],
        *,
        begins: bool,
        whole: bool,
    ) -> None:
        self._continuing = continuing
        self._exchange = exchange
        self._kept = kept
        self._said = said
        self._begins = begins
        self._whole = whole

    async def keep(self, response: Response) -> None:
        job, kept = self._exchange.job, self._kept
        messages = [*self._said, Message("assistant", response.content)]
        items = items_of(messages, job.context, job.id)
        try:
            await self._continuing.conversations.keep_turn(
                job.caller.name, kept, items, job.context, begins=self._begins, whole=self._whole
            )
        except StoreDown as down:
            # The answer is paid for: it is sent, and reports what was not stored.
            self._continuing.store_health.suspect(down)
            self._continuing.note("error", "not stored", id=self._exchange.record.id, detail=str(down))
            self._exchange.lose(NOT_HELD)
