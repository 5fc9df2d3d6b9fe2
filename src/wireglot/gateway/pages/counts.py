"""Counts tokens for a client: by the provider if it can count, else by an estimate marked as such."""

from __future__ import annotations

import time
from functools import partial

from wireglot.gateway.errors import with_request_errors
from wireglot.gateway.relay.outbound import outbound
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.headers import ESTIMATE, JSON
from wireglot.gateway.request.token_weight import Estimator
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import Counts, Surface
from wireglot_core.ir import failures
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.request import Request
from wireglot_core.providers.spec import names
from wireglot_core.translate import plan
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.splice import splice

_PATIENCE_SECONDS = 15.0
"""An estimate is better than a client that waits."""
_WITHOUT_SECONDS = 600.0
# Targets known to count no tokens.
_MAX_WITHOUT = 1000


class Counting:
    """Knows which providers cannot count, and what others have reported for each conversation."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._estimator = Estimator()
        self._without: dict[tuple[str, str], float] = {}
        self.estimated_for: set[str] = set()
        """Providers for which a client has requested a count that had to be estimated."""

    def watch(self, exchange: Exchange) -> None:
        """A step: learn from the answer, if estimates have been needed for its provider."""
        if self.estimated_for:
            exchange.at_end.append(partial(self._answered, exchange))

    def _answered(self, exchange: Exchange, problem: BaseException | None) -> None:
        if problem is None:
            self.learn(exchange)

    def learn(self, exchange: Exchange) -> None:
        """Improve the next estimate for a conversation by the usage that a provider reported.

        Weighing costs about as much as translating, so it is done only for providers for which clients count
        tokens.
        """
        record, usage = exchange.record, exchange.record.usage
        if record.provider not in self.estimated_for or usage is None or exchange.job.surface.counts is None:
            return
        if record.wasted is not None:
            return  # the usage of several attempts
        if record.usage_source != "provider":
            return  # an estimate of our own teaches nothing
        provider, model = record.provider, record.upstream_model
        for target in exchange.targets:
            if target.model == model and target.provider.name == provider:
                break
        else:
            return
        if not self._may_count(target):
            key, request = exchange.conversation_key(), exchange.request()
            self._estimator.learn(provider, model, key, request, usage.total_input)

    def expected_input(self, exchange: Exchange) -> int:
        """The input tokens of a provider that does not report them, based on what it once reported for this
        conversation."""
        record = exchange.record
        self.estimated_for.add(record.provider)
        return self._estimator.estimate(
            record.provider, record.upstream_model, exchange.conversation_key(), exchange.request()
        )

    async def answer(self, exchange: Exchange) -> None:
        target, record = exchange.targets[0], exchange.record
        counts = _counts(exchange.job.surface)
        record.routed(target.provider.name, target.model, target.dialect)
        headers: Headers = []
        body: bytes | None = None
        if self._may_count(target):
            try:
                body = await self._counted(exchange, target)
            except AttemptFailed as failed:
                if failed.blame == "request":
                    raise
                if failed.blame == "model" and not target.provider.spec.counts:
                    self._remember_without(target)
                record.noted(f"counting failed: {failed.error.message}")
        if body is None:
            estimating = partial(self._estimated, exchange, target)
            body = await run_in_thread(estimating) if exchange.is_large else estimating()
            headers.append(ESTIMATE)
        tokens = _tokens(counts, body)
        record.used(Usage(input=tokens), "estimated" if headers else "provider")
        record.answered()
        exchange.reply.send(200, [JSON, *exchange.headers(), *headers], body)

    def _may_count(self, target: Target) -> bool:
        """Whether the upstream has an endpoint for it. One that the catalog does not know is tried once."""
        provider = target.provider
        if surface(target.dialect).counts is None:
            return False
        if target.dialect in provider.spec.counts:
            return True
        unknown = not provider.spec.counts and provider.spec.name not in names()
        if not unknown:
            return False
        until = self._without.get((target.name, target.dialect))
        return until is None or until < time.monotonic()

    def _remember_without(self, target: Target) -> None:
        """For a limited time: the model may be missing, and not the counter."""
        if len(self._without) >= _MAX_WITHOUT:
            self._without.clear()
        self._without[target.name, target.dialect] = time.monotonic() + _WITHOUT_SECONDS

    async def _counted(self, exchange: Exchange, target: Target) -> bytes:
        """The provider's own count."""
        job = exchange.job
        theirs, ours = _counts(surface(target.dialect)), _counts(job.surface)
        renamed = target.model != job.model
        passes = target.plain and target.dialect == job.dialect
        if passes and not exchange.sealed and not (ours.model_inside and renamed):
            checking = job.content.check
            await run_in_thread(checking) if exchange.is_large else checking()
            body = job.body
            if renamed and target.surface.model_field:
                body = splice(body, {target.surface.model_field: encode(target.model)})
            answer = await self._ask(exchange, target, body)
            tokens = _tokens(theirs, answer)  # anything unreadable is estimated instead
            return answer if ours.parse_answer is theirs.parse_answer else encode(ours.render_answer(tokens))
        asking = partial(self._question, exchange, target, theirs)
        question = await run_in_thread(asking) if exchange.is_large else asking()
        answer = await self._ask(exchange, target, question)
        return encode(ours.render_answer(_tokens(theirs, answer)))

    async def _ask(self, exchange: Exchange, target: Target, body: bytes) -> bytes:
        credential = await self._relay.credential(exchange, target, is_last=False)
        question = outbound(exchange.job, target, credential, operation="count", body=body)
        return await self._relay.ask(exchange, target, question, _PATIENCE_SECONDS)

    def _question(self, exchange: Exchange, target: Target, counts: Counts) -> bytes:
        request = self._request(exchange)
        planned = with_request_errors(
            lambda: plan(
                request,
                source=exchange.job.dialect,
                target=target.dialect,
                model=target.model,
                provider=target.provider.name,
                limits=target.limits,
                context=exchange.job.content.reading(exchange.job.context),
            )
        )
        base_url = target.provider.spec.base_url
        return encode(counts.render_request(planned.upstream, planned.context, base_url).value)

    def _request(self, exchange: Exchange) -> Request:
        if exchange.rewritten:  # including the turns that the gateway stores
            return exchange.request()
        job = exchange.job
        counts = _counts(job.surface)
        return with_request_errors(
            lambda: counts.parse_request(exchange.document(), job.content.reading(job.context))
        )

    def _estimated(self, exchange: Exchange, target: Target) -> bytes:
        self.estimated_for.add(target.provider.name)
        job, request = exchange.job, self._request(exchange)
        conversation = Estimator.conversation(request, job.session, job.caller.name)
        tokens = self._estimator.estimate(target.provider.name, target.model, conversation, request)
        return encode(_counts(job.surface).render_answer(tokens))


def _counts(spoken: Surface) -> Counts:
    counts = spoken.counts
    assert counts is not None, "only a dialect with a counter has a path to it"
    return counts


def _tokens(counts: Counts, body: bytes) -> int:
    try:
        return counts.parse_answer(decode(body))
    except (BadJson, UpstreamFault):
        raise failures.unreadable("the upstream's count cannot be read") from None
