"""Conversations that the gateway holds: stored responses, conversations, sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wireglot.gateway.settings import Settings
from wireglot.gateway.state.conversations.continued import Holding
from wireglot.gateway.state.conversations.items import RESPONSES
from wireglot.gateway.state.conversations.pages import ConversationPages
from wireglot.gateway.state.conversations.session_pages import SessionPages
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.page_request import PageRequest
from wireglot.gateway.state.responses.background import Background
from wireglot.gateway.state.responses.chain import Chain
from wireglot.gateway.state.responses.compaction import Compaction
from wireglot.gateway.state.responses.pages import ResponsePages
from wireglot.gateway.state.responses.store import ResponseStore
from wireglot.gateway.state.store_health import StoreHealth
from wireglot.gateway.targets.routing import Target
from wireglot.stores.base import Documents, Ledger
from wireglot.stores.seal import Sealer

if TYPE_CHECKING:
    from wireglot.gateway.app import Gateway
    from wireglot.gateway.request.job import Job


class Held:
    def __init__(
        self,
        documents: Documents,
        ledger: Ledger,
        settings: Settings,
        note: Any,
        instance: str,
        sealer: Sealer,
        store_health: StoreHealth,
    ) -> None:
        self.responses = ResponseStore(documents, settings)
        self.conversations = ConversationStore(documents, settings)
        self.background = Background(documents, self.responses, settings, instance, note)
        self.chain = Chain(self.responses, self.conversations, self.background, store_health, note)
        self._compaction = Compaction(sealer)
        self._holding = Holding(self.conversations, store_health)
        self._response_routes = ResponsePages(self.responses, self.background)
        self._conversation_routes = ConversationPages(self.conversations)
        self._session_routes = SessionPages(self.conversations, ledger)

    def adopt(self, settings: Settings) -> None:
        self.responses.adopt(settings)
        self.conversations.adopt(settings)
        self.background.adopt(settings)

    async def start(self, gateway: Gateway) -> None:
        """Nothing runs by itself: what others left behind shows when it is asked for."""

    async def drain(self, seconds: float) -> None:
        await self.background.drain(seconds)

    async def close(self) -> None:
        await self.background.close()

    async def answer(self, gateway: Gateway, job: Job) -> None:
        theirs = job.settings.store.responses == "upstream"
        if job.asked.operation == "compact":
            await self._compaction.answer(gateway, job)
        elif self.background.wants(job) and not theirs:
            await self.background.start(gateway, job)
        else:
            await gateway.answer(job)

    async def load(self, job: Job, targets: tuple[Target, ...]) -> None:
        """Put before a request what the gateway holds of its conversation."""
        if job.dialect != RESPONSES:
            if job.conversation and (job.asked.operation == "generate" or job.dialect == "anthropic"):
                await self._holding.load(job)  # Gemini's counts have other bodies than its requests
            return
        if self._compaction.passes(job):
            return
        theirs = job.settings.store.responses == "upstream" and targets[0].dialect == RESPONSES
        if not theirs:
            await self.chain.load(job)
        self._compaction.shape(job)

    async def inquire(self, page: PageRequest) -> None:
        subject, _, verb = page.asked.verb.partition(".")
        match subject:
            case "responses":
                await self._response_routes.answer(page, verb)
            case "sessions":
                await self._session_routes.answer(page)
            case _:
                await self._conversation_routes.answer(page)
