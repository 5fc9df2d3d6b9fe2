"""Counting tokens for a client: asked of the provider where it can count, else estimated and marked so."""

from __future__ import annotations

import time

from wireglot.gateway.errors import told
from wireglot.gateway.relay.outbound import outbound
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.estimator import (
    Estimator,
    can_count,
    parse_count_answer,
    parse_count_request,
    render_count_answer,
    render_count_request,
)
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.headers import JSON, common_headers
from wireglot.gateway.targets.routing import Target
from wireglot.http import failures
from wireglot.http.application import Headers
from wireglot.http.failures import AttemptFailed
from wireglot.ir.errors import UpstreamFault
from wireglot.ir.outcome import Usage
from wireglot.ir.request import Request
from wireglot.providers.spec import names
from wireglot.translate import plan
from wireglot.wire.json import BadJson, decode, encode
from wireglot.wire.splice import splice

ESTIMATE = ("x-wireglot-estimate", "true")

_PATIENCE_SECONDS = 15.0
"""An estimate is better than a client that waits."""
_WITHOUT_SECONDS = 600.0
_WITHOUT_MOST = 1000


class Counting:
    """Knows which providers cannot count, and what those that answer say of each conversation."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._estimator = Estimator()
        self._without: dict[tuple[str, str], float] = {}
        self._estimated_for: set[str] = set()

    def learn(self, exchange: Exchange) -> None:
        """What a provider reported for a conversation makes the next estimate for it better.

        Weighing costs about as much as translating, so only providers are heard for which somebody counts.
        """
        record, usage = exchange.record, exchange.record.usage
        if record.provider not in self._estimated_for or usage is None or not can_count(exchange.job.dialect):
            return
        answered = (record.provider, record.upstream_model)
        target = next((t for t in exchange.targets if (t.provider.name, t.model) == answered), None)
        if target is None or self._may_count(target):
            return
        self._estimator.learn(*answered, exchange.conversation_key(), exchange.request(), usage.total_input)

    async def answer(self, exchange: Exchange) -> None:
        target, record = exchange.targets[0], exchange.record
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
            body = self._estimated(exchange, target)
            headers.append(ESTIMATE)
        tokens = self._read(exchange.job.dialect, body)
        record.used(Usage(input=tokens), "estimated" if headers else "provider")
        record.answered()
        exchange.reply.send(200, [JSON, *common_headers(exchange), *headers], body)

    def _may_count(self, target: Target) -> bool:
        """Whether the upstream has an endpoint for it. One that the catalog does not know is asked once."""
        provider = target.provider
        if target.dialect in provider.spec.counts:
            return True
        unknown = not provider.spec.counts and provider.spec.name not in names()
        if not unknown or not can_count(target.dialect):
            return False
        until = self._without.get((target.name, target.dialect))
        return until is None or until < time.monotonic()

    def _remember_without(self, target: Target) -> None:
        """For a while: it may be the model that is not there, and not the counter."""
        if len(self._without) >= _WITHOUT_MOST:
            self._without.clear()
        self._without[target.name, target.dialect] = time.monotonic() + _WITHOUT_SECONDS

    async def _counted(self, exchange: Exchange, target: Target) -> bytes:
        """The provider's own count."""
        job = exchange.job
        named_inside = job.dialect in ("gemini", "code-assist")
        if (
            target.dialect == job.dialect
            and not exchange.sealed
            and not (named_inside and target.model != job.model)
        ):
            body = job.body
            if target.model != job.model:
                body = splice(body, {"model": encode(target.model)})
            answer = await self._ask(exchange, target, body)
            self._read(target.dialect, answer)  # whatever cannot be read is estimated instead
            return answer
        answer = await self._ask(exchange, target, encode(self._request_for(exchange, target)))
        return encode(render_count_answer(job.dialect, self._read(target.dialect, answer)))

    async def _ask(self, exchange: Exchange, target: Target, body: bytes) -> bytes:
        credential = await self._relay.credential(exchange, target, is_last=False)
        question = outbound(exchange.job, target, credential, operation="count", body=body)
        return await self._relay.ask(exchange, target, question, _PATIENCE_SECONDS)

    def _read(self, name: str, body: bytes) -> int:
        try:
            return parse_count_answer(name, decode(body))
        except (BadJson, UpstreamFault):
            raise failures.unreadable("the upstream's count cannot be read") from None

    def _request_for(self, exchange: Exchange, target: Target) -> object:
        request = self._request(exchange)
        planned = told(
            lambda: plan(
                request,
                source=exchange.job.dialect,
                target=target.dialect,
                model=target.model,
                provider=target.provider.name,
                limits=target.limits,
                context=exchange.job.context,
            )
        )
        nested = "publishers" not in target.provider.spec.base_url  # Vertex takes them beside the contents
        return render_count_request(target.dialect, planned.upstream, planned.context, nested=nested).value

    def _request(self, exchange: Exchange) -> Request:
        if exchange.rewritten:  # with the turns that the gateway holds
            return exchange.request()
        job = exchange.job
        return told(lambda: parse_count_request(job.dialect, exchange.document(), job.context))

    def _estimated(self, exchange: Exchange, target: Target) -> bytes:
        self._estimated_for.add(target.provider.name)
        job, request = exchange.job, self._request(exchange)
        conversation = Estimator.conversation(request, job.session, job.caller.name)
        tokens = self._estimator.estimate(target.provider.name, target.model, conversation, request)
        return encode(render_count_answer(job.dialect, tokens))


class Counted:
    """A step: counts are answered here, and what providers report of answers is learned from."""

    def __init__(self, inner: Answerer, counting: Counting) -> None:
        self._inner = inner
        self._counting = counting

    async def answer(self, exchange: Exchange) -> None:
        if exchange.job.asked.operation == "count":
            await self._counting.answer(exchange)
            return
        await self._inner.answer(exchange)
        self._counting.learn(exchange)
