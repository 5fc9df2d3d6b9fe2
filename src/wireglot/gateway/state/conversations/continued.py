"""Conversations that the gateway holds for dialects that know none: their turns are put back and kept.

A request that brings its own history (a turn of the model) is taken at its word: nothing is put before it,
and what it says is held from then on. System messages are not held; they come with each request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from wireglot.gateway.request.results import paired, with_calls
from wireglot.gateway.state.conversations.items import items_of, turns_of, with_tools
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.page_request import unavailable
from wireglot.gateway.state.responses.chain import new_conversation
from wireglot.gateway.state.store_health import StoreHealth
from wireglot.gateway.state.stored_forms import KeptConversation
from wireglot.ir.content import Message
from wireglot.ir.outcome import Response
from wireglot.ir.request import AnyTool
from wireglot.stores import StoreDown

if TYPE_CHECKING:
    from wireglot.gateway.request.job import Job


class Holding:
    def __init__(self, conversations: ConversationStore, store_health: StoreHealth) -> None:
        self.store_health = store_health
        self.conversations = conversations

    async def load(self, job: Job) -> None:
        try:
            self.store_health.check()
            await self._load(job)
        except StoreDown:
            raise unavailable(f"conversation {job.conversation!r}") from None

    async def _load(self, job: Job) -> None:
        caller, request = job.caller.name, job.request()
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
        if job.dialect == "gemini-simple":
            request, job.invented = with_calls(request)
        job.rewrite(request)
        if job.asked.operation != "generate":
            return
        said = [message for message in new if message.role != "system"]
        job.keepings.append(_Turn(self, job, kept, said, begins=found is None, whole=brings_history))


class _Turn:
    """The new messages and the answer to them, held before the answer's end is told."""

    def __init__(
        self,
        holding: Holding,
        job: Job,
        kept: KeptConversation,
        said: list[Message],
        *,
        begins: bool,
        whole: bool,
    ) -> None:
        self._holding = holding
        self._job = job
        self._kept = kept
        self._said = said
        self._begins = begins
        self._whole = whole

    async def keep(self, response: Response) -> None:
        job, kept, caller = self._job, self._kept, self._job.caller.name
        messages = [*self._said, Message("assistant", response.content)]
        items = items_of(messages, job.context, job.record.id)
        try:
            await self._holding.conversations.keep_turn(
                caller, kept, items, job.context, begins=self._begins, whole=self._whole
            )
        except StoreDown as down:
            self._holding.store_health.suspect(down)
            raise unavailable(f"conversation {kept.id!r}") from None
