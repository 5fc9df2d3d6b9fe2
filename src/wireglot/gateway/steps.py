"""The steps around an answer, in one list: how a request is wrapped, from the outside in.

Each step is a small class that takes the next one and is one itself. The list says which requests can need
it; the chain for each kind of request is built once, of those steps only. A new concern is a class in the
package it belongs to, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from wireglot.dialects.base import Surface
from wireglot.gateway.entry.gates import Gates
from wireglot.gateway.pages.counts import Counted, Counting
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.steps import Admission, Queue, Routing, TimeLimit
from wireglot.gateway.state.conversations.continued import ConversationLoader
from wireglot.gateway.state.idempotency import HEADER, IdempotentReplay
from wireglot.gateway.state.ledger.usage_ledger import Accounted
from wireglot.gateway.state.quotas.quotas import QuotaGrowth, QuotaReservation
from wireglot.gateway.state.reasoning.vault import ReasoningRecall
from wireglot.gateway.state.responses.background import BackgroundStart
from wireglot.gateway.state.responses.chain import HistoryLoader
from wireglot.gateway.state.responses.compaction import CompactionUnsealer, Summarizer
from wireglot.gateway.state.state import State
from wireglot.gateway.targets.routing import Router


class StepParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps are made with."""

    state: State
    router: Router
    gates: Gates
    counting: Counting
    relay: Relay


class RequestKind(NamedTuple):
    """What decides which steps a request can need."""

    surface: Surface
    operation: str
    has_key: bool
    has_timeout: bool
    is_idempotent: bool
    is_conversation: bool
    is_own: bool
    """Sent by the gateway itself, for the answer to another request: that one was admitted, and holds a place
    in every queue."""

    @property
    def generates(self) -> bool:
        return self.operation == "generate"

    @property
    def stores(self) -> bool:
        """Whether the dialect has stored responses."""
        return self.surface.stored is not None

    @property
    def compacts(self) -> bool:
        """Whether the dialect has sealed summaries of conversations."""
        return self.surface.stored is not None and self.surface.stored.compaction is not None

    @property
    def counts_like_generate(self) -> bool:
        """Whether tokens are counted of the same body that generates."""
        return self.surface.counts is not None and self.surface.counts.same_body


class PipelineStep(NamedTuple):
    around: Callable[[Answerer, StepParts], Answerer]
    applies: Callable[[RequestKind], bool]


STEPS: Final = (
    # Around whole answers: the same one again, a summary in its place, or one that no client waits for.
    PipelineStep(
        lambda inner, parts: IdempotentReplay(inner, parts.state.idempotency),
        lambda kind: not kind.is_own and kind.is_idempotent and kind.operation in ("generate", "compact"),
    ),
    PipelineStep(
        lambda inner, parts: Summarizer(inner, parts.state.compaction),
        lambda kind: not kind.is_own and (kind.operation == "compact" or (kind.generates and kind.compacts)),
    ),
    PipelineStep(
        lambda inner, parts: BackgroundStart(inner, parts.state.background),
        lambda kind: not kind.is_own and kind.generates and kind.stores,
    ),
    # Whether, and where to: the route before the quotas, which reserve by the first target's price.
    PipelineStep(lambda inner, parts: Admission(inner, parts.gates), lambda kind: not kind.is_own),
    PipelineStep(lambda inner, parts: Routing(inner, parts.router), lambda kind: True),
    PipelineStep(lambda inner, parts: QuotaReservation(inner, parts.state.quotas), lambda kind: kind.has_key),
    # What the client did not send and the model needs. The store is read before the queue: a request that
    # waits for it takes no place. Summaries are unsealed once the stored history is in front of them.
    PipelineStep(
        lambda inner, parts: ConversationLoader(inner, parts.state.continuing),
        lambda kind: (
            not kind.is_own
            and kind.is_conversation
            and not kind.stores
            and (kind.generates or kind.counts_like_generate)
        ),
    ),
    PipelineStep(
        lambda inner, parts: HistoryLoader(inner, parts.state.chain),
        lambda kind: not kind.is_own and kind.stores,
    ),
    PipelineStep(
        lambda inner, parts: CompactionUnsealer(inner, parts.state.compaction),
        lambda kind: not kind.is_own and kind.compacts,
    ),
    PipelineStep(
        lambda inner, parts: ReasoningRecall(inner, parts.state.reasoning),
        lambda kind: not kind.is_own and kind.generates and kind.surface.reasoning.returns != "all",
    ),
    PipelineStep(
        lambda inner, parts: QuotaGrowth(inner, parts.state.quotas),
        lambda kind: not kind.is_own and kind.has_key,
    ),
    # Its turn, its account, its time.
    PipelineStep(lambda inner, parts: Queue(inner, parts.gates), lambda kind: not kind.is_own),
    PipelineStep(lambda inner, parts: Counted(inner, parts.counting), lambda kind: not kind.is_own),
    PipelineStep(lambda inner, parts: Accounted(inner, parts.state.ledger), lambda kind: True),
    PipelineStep(lambda inner, parts: TimeLimit(inner), lambda kind: kind.has_timeout),
)


class Pipeline:
    """The relay within the steps that a request can need."""

    def __init__(self, parts: StepParts) -> None:
        self._parts = parts
        self._chains: dict[RequestKind, Answerer] = {}

    def of(self, exchange: Exchange) -> Answerer:
        job = exchange.job
        return self.chain(
            RequestKind(
                job.surface,
                job.asked.operation,
                has_key=job.caller.key is not None,
                has_timeout=job.timeout is not None,
                is_idempotent=HEADER in job.head.headers,
                is_conversation=bool(job.conversation),
                is_own=bool(exchange.record.within),
            )
        )

    def chain(self, kind: RequestKind) -> Answerer:
        chain = self._chains.get(kind)
        if chain is None:
            chain = self._parts.relay
            for step in reversed(STEPS):
                if step.applies(kind):
                    chain = step.around(chain, self._parts)
            self._chains[kind] = chain
        return chain
