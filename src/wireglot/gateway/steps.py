"""The steps of a request, in one list and in their order.

Most steps come before an answer: functions that take the exchange, one after the other. A few are around a
whole answer: small classes that take the next one and are one themselves. The list says which requests can
need a step; the chain for each kind of request is built once, of those steps only. A new concern is a
function or a class in the package it belongs to, and a line here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import msgspec

from wireglot.gateway.entry.callers import check_permitted
from wireglot.gateway.entry.gates import Gate, Gates, shed
from wireglot.gateway.errors import RequestError
from wireglot.gateway.hosted.history import HostedHistory
from wireglot.gateway.hosted.loop import AskRound, CountHostedCall, HostedTools
from wireglot.gateway.hosted.runner import HostedRunners
from wireglot.gateway.pages.counts import Counting
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.headers import JSON
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.state.idempotency import HEADER, IdempotentReplay
from wireglot.gateway.state.responses.background import BackgroundStart
from wireglot.gateway.state.responses.compaction import Summarizer
from wireglot.gateway.state.state import State
from wireglot.gateway.targets.routing import Router
from wireglot_core.dialects.surface import Surface
from wireglot_core.wire.json import encode

BeforeAnswer = Callable[[Exchange], Awaitable[None] | None]
"""A function that is run before a request is answered. Returns an awaitable if it must be waited for, else
None. What it acquires is released through `Exchange.at_end`."""


class StepParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that the steps are made with."""

    state: State
    router: Router
    gates: Gates
    counting: Counting
    relay: Relay
    embedding: Answerer
    runners: HostedRunners
    ask_round: AskRound
    count_hosted_call: CountHostedCall


class RequestKind(NamedTuple):
    """The properties of a request that decide which steps it can need."""

    surface: Surface
    operation: str
    has_key: bool
    has_timeout: bool
    is_idempotent: bool
    is_conversation: bool
    is_own: bool
    """Sent by the gateway itself, to answer another request: that one was admitted and has a place in every
    queue."""

    @property
    def generates(self) -> bool:
        return self.operation == "generate"

    @property
    def embeds(self) -> bool:
        return self.operation == "embed"

    @property
    def may_ask_nothing(self) -> bool:
        """Whether a client may send a request only to have the model loaded."""
        return self.surface.client.idle is not None and (self.generates or self.embeds)

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
        """Whether the count of tokens is asked for with the same body as an answer."""
        return self.surface.counts is not None and self.surface.counts.same_body


class Around(NamedTuple):
    """A step around a whole answer."""

    name: str
    make: Callable[[Answerer, StepParts], Answerer]
    applies: Callable[[RequestKind], bool]


class Before(NamedTuple):
    """A step before an answer."""

    name: str
    make: Callable[[StepParts], BeforeAnswer]
    applies: Callable[[RequestKind], bool]


def _hosted_tools(inner: Answerer, parts: StepParts) -> HostedTools:
    rebuild = HostedHistory(parts.state.sealer).rebuild
    return HostedTools(
        inner,
        parts.runners,
        rebuild=rebuild,
        ask=parts.ask_round,
        keep=parts.relay.delivery.keep,
        count=parts.count_hosted_call,
    )


def hosted_tool_offer(parts: StepParts) -> BeforeAnswer:
    """Declares functions in place of the tools that the gateway runs itself."""
    return _hosted_tools(parts.relay, parts).offer_for_count


STEPS: Final[tuple[Around | Before, ...]] = (
    # Steps around whole answers: a repeated answer, a summary instead of one, or an answer in the background.
    Around(
        "IdempotentReplay",
        lambda inner, parts: IdempotentReplay(inner, parts.state.idempotency),
        lambda kind: (
            not kind.is_own and kind.is_idempotent and kind.operation in ("generate", "compact", "embed")
        ),
    ),
    Around(
        "Summarizer",
        lambda inner, parts: Summarizer(inner, parts.state.compaction),
        lambda kind: not kind.is_own and (kind.operation == "compact" or (kind.generates and kind.compacts)),
    ),
    Around(
        "BackgroundStart",
        lambda inner, parts: BackgroundStart(inner, parts.state.background),
        lambda kind: not kind.is_own and kind.generates and kind.stores,
    ),
    # Whether the request is admitted and where it goes: the route comes before the quotas, which reserve by
    # the first target's price.
    Before("Admission", lambda parts: partial(admit, parts.gates), lambda kind: not kind.is_own),
    Before("Routing", lambda parts: partial(route, parts.router), lambda kind: not kind.embeds),
    Before(
        "EmbeddingRouting", lambda parts: partial(route_embedding, parts.router), lambda kind: kind.embeds
    ),
    Around(
        "IdleAnswer",
        lambda inner, parts: IdleAnswer(inner),
        lambda kind: not kind.is_own and kind.may_ask_nothing,
    ),
    Before("QuotaReservation", lambda parts: parts.state.quotas.reserve, lambda kind: kind.has_key),
    # Adds stored data that the model needs and the client did not send. The store is read before the queue,
    # so that a request waiting for the store takes no place. Summaries are unsealed after the stored history
    # was put in front of them.
    Before(
        "ConversationLoader",
        lambda parts: parts.state.continuing.load,
        lambda kind: (
            not kind.is_own
            and kind.is_conversation
            and not kind.stores
            and (kind.generates or kind.counts_like_generate)
        ),
    ),
    Before(
        "HistoryLoader",
        lambda parts: parts.state.chain.load_history,
        lambda kind: not kind.is_own and kind.stores,
    ),
    Before(
        "CompactionUnsealer",
        lambda parts: parts.state.compaction.open,
        lambda kind: not kind.is_own and kind.compacts,
    ),
    Before(
        "ReasoningRecall",
        lambda parts: parts.state.reasoning.recall,
        lambda kind: not kind.is_own and kind.generates and kind.surface.reasoning.returns != "all",
    ),
    Before(
        "HostedHistory",
        lambda parts: HostedHistory(parts.state.sealer).rebuild,
        lambda kind: (
            not kind.is_own
            and bool(kind.surface.client.hosted.marks)
            and (kind.generates or kind.counts_like_generate)
        ),
    ),
    Before(
        "HostedToolCount",
        hosted_tool_offer,
        lambda kind: not kind.is_own and kind.operation == "count" and kind.counts_like_generate,
    ),
    Before(
        "QuotaGrowth",
        lambda parts: parts.state.quotas.reserve_history,
        lambda kind: not kind.is_own and kind.has_key,
    ),
    # Its turn, its account and its time limit.
    Before("Queue", lambda parts: partial(enter, parts.gates), lambda kind: not kind.is_own),
    Before(
        "CountLearning",
        lambda parts: parts.counting.watch,
        lambda kind: (
            not kind.is_own
            and kind.operation != "count"
            and not kind.embeds
            and kind.surface.counts is not None
        ),
    ),
    Before("Account", lambda parts: parts.state.ledger.open_account, lambda kind: kind.operation != "count"),
    Around(
        "TimeLimit",
        lambda inner, parts: TimeLimit(inner),
        lambda kind: kind.has_timeout and kind.operation != "count",
    ),
    # Innermost: one answer may take several rounds, each of which is relayed.
    Around(
        "HostedTools",
        lambda inner, parts: _hosted_tools(inner, parts),
        lambda kind: not kind.is_own and kind.generates,
    ),
)


# Steps that keep no state.


def admit(gates: Gates, exchange: Exchange) -> None:
    """Refuse requests during shutdown, and models that the client key does not allow."""
    if gates.draining:
        raise shed("the gateway is shutting down")
    job = exchange.job
    if job.caller.key is not None:
        check_permitted(job.caller.key, job.surface.client.model_name(job.model))


def route(router: Router, exchange: Exchange) -> Awaitable[None] | None:
    """Find the targets. Where the route depends on a large body, that is read in a thread, and later steps
    reuse it."""
    if exchange.targets:
        return None  # a further round of an answer goes to the same targets as the first
    job = exchange.job
    client, model = job.surface.client, job.model
    if client.alias_prefix or client.alias_suffix:
        model = client.model_name(model)
    if exchange.is_large and router.has_conditions and router.reads_body(job.settings, model):
        return _read_and_route(router, exchange, model)
    exchange.targets = router.targets(job.settings, model, job.dialect, exchange)
    return _read_large(exchange) if exchange.is_large else None


def route_embedding(router: Router, exchange: Exchange) -> None:
    """Find the targets that embed. A text to embed never contains state of a conversation, whatever it looks
    like."""
    job = exchange.job
    exchange.sealed = False
    model = job.surface.client.model_name(job.model)
    exchange.targets = router.embedding_targets(job.settings, model, job.dialect, exchange)


class IdleAnswer:
    """A step that answers a request without a question to its model."""

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner

    async def answer(self, exchange: Exchange) -> None:
        job = exchange.job
        idle, embeddings = job.surface.client.idle, job.surface.embeddings
        if job.asked.operation == "embed" and embeddings is not None:
            idle = embeddings.forms[job.embed_operation].idle
        document = idle(job.content, job.context) if idle is not None else None
        if document is None:
            await self._inner.answer(exchange)
            return
        exchange.record.answered(200)
        exchange.record.noted("no model call needed: answered by the gateway")
        exchange.reply.send(200, [JSON, *exchange.headers()], encode(document))


async def _read_and_route(router: Router, exchange: Exchange, model: str) -> None:
    job = exchange.job
    await _read_aside(exchange, decodes=True)
    exchange.targets = router.targets(job.settings, model, job.dialect, exchange)


async def _read_large(exchange: Exchange) -> None:
    job = exchange.job
    passes = all(target.dialect == job.dialect and target.plain for target in exchange.targets)
    wanted = not passes or job.surface.stored is not None or bool(job.conversation)
    if wanted or exchange.sealed:
        await _read_aside(exchange, decodes=wanted)


async def _read_aside(exchange: Exchange, *, decodes: bool) -> None:
    exchange.record.waits = "body"
    if decodes:
        exchange.held.take(len(exchange.job.body))  # the decoded body takes memory a second time
    exchange.recall()
    if exchange.is_large:
        with suppress(RequestError):  # raised again by the step that needs the request
            await run_in_thread(exchange.request)


def enter(gates: Gates, exchange: Exchange) -> Awaitable[None] | None:
    """Take a place, or wait for one, if there are too many requests at once."""
    job, tap = exchange.job, exchange.tap
    if tap is not None:
        tap.passed("store")
    wanted = gates.of(job.caller, job.settings.limits)
    for place, gate in enumerate(wanted):
        if not gate.try_enter():
            return _wait(exchange, wanted[place:])
        exchange.gates.append(gate)
    return None


async def _wait(exchange: Exchange, gates: tuple[Gate, ...]) -> None:
    exchange.record.waits = "queue"
    for gate in gates:
        await gate.enter()
        exchange.gates.append(gate)
    if exchange.tap is not None:
        exchange.tap.passed("queue")


class TimeLimit:
    """A step that limits the time of the whole answer, waiting and further attempts included, to what the
    caller allows."""

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner

    async def answer(self, exchange: Exchange) -> None:
        seconds = exchange.job.timeout
        try:
            async with asyncio.timeout(seconds):
                await self._inner.answer(exchange)
        except TimeoutError:
            raise RequestError("upstream_timeout", f"no complete answer within {seconds:g} seconds") from None


# The steps of one kind of request, connected.


class StepSequence:
    """Steps before an answer and the answer itself, run in a single coroutine however many steps there
    are."""

    def __init__(self, steps: list[BeforeAnswer], inner: Answerer) -> None:
        self._steps = tuple(steps)
        self._inner = inner

    async def answer(self, exchange: Exchange) -> None:
        try:
            for step in self._steps:
                waiting = step(exchange)
                if waiting is not None:
                    exchange.record.waits = "store"  # a step that waits for anything else sets it itself
                    await waiting
                    exchange.record.waits = ""
            await self._inner.answer(exchange)
        except BaseException as problem:
            exchange.leave(problem)
            raise
        exchange.leave(None)


class Pipeline:
    """The steps that a request can need, followed by a relay or the token counter."""

    def __init__(self, parts: StepParts) -> None:
        self.parts = parts
        self._chains: dict[RequestKind, Answerer] = {}

    def of(self, exchange: Exchange) -> Answerer:
        job = exchange.job
        kind = RequestKind(
            job.surface,
            job.asked.operation,
            has_key=job.caller.key is not None,
            has_timeout=job.timeout is not None,
            is_idempotent=HEADER in job.head.headers,
            is_conversation=bool(job.conversation),
            is_own=bool(exchange.record.within),
        )
        return self._chains.get(kind) or self.chain(kind)

    def chain(self, kind: RequestKind) -> Answerer:
        parts = self.parts
        chain: Answerer = parts.counting if kind.operation == "count" else parts.relay
        if kind.embeds:
            chain = parts.embedding
        before: list[BeforeAnswer] = []
        for step in reversed(steps_of(kind)):
            if isinstance(step, Before):
                before.insert(0, step.make(parts))
                continue
            if before:
                chain, before = StepSequence(before, chain), []
            chain = step.make(chain, parts)
        self._chains[kind] = chain = StepSequence(before, chain) if before else chain
        return chain


def steps_of(kind: RequestKind) -> list[Around | Before]:
    """The steps that a request of this kind can need."""
    return [step for step in STEPS if step.applies(kind)]
