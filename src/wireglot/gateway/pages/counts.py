"""Counting tokens for a client: asked of the provider where it can count, else estimated and marked so."""

from __future__ import annotations

import time

from wireglot.gateway.relay.attempt import outbound
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.estimator import (
    Estimator,
    can_count,
    parse_count_answer,
    parse_count_request,
    render_count_answer,
    render_count_request,
)
from wireglot.gateway.request.job import Job, common_headers, with_faults_told
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

_PATIENCE = 15.0
"""Seconds for a count; an estimate is better than a client that waits."""
_FORGET = 600.0
_REMEMBERED = 1000


class Counting:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._estimator = Estimator()
        self._without: dict[tuple[str, str], float] = {}
        self._estimated_for: set[str] = set()

    def learn(self, job: Job, target: Target) -> None:
        """What a provider reported for a conversation makes the next estimate for it better.

        Weighing costs about as much as translating, so only providers are heard for which somebody counts.
        """
        usage = job.record.usage
        if (
            target.provider.name not in self._estimated_for
            or usage is None
            or not can_count(job.dialect)
            or self._may_count(target)
        ):
            return
        self._estimator.learn(
            target.provider.name, target.model, job.conversation_key(), job.request(), usage.total_input
        )

    async def answer(self, job: Job, targets: tuple[Target, ...]) -> None:
        target = targets[0]
        record = job.record
        record.provider, record.upstream_model = target.provider.name, target.model
        record.upstream_dialect = target.dialect
        headers: Headers = []
        body: bytes | None = None
        if self._may_count(target):
            try:
                body = await self._counted(job, target)
            except AttemptFailed as failed:
                if failed.blame == "request":
                    raise
                if failed.blame == "model" and not target.provider.spec.counts:
                    self._remember_without(target)
                record.notes = [*record.notes, f"counting failed: {failed.error.message}"]
        if body is None:
            body = self._estimated(job, target)
            record.usage_source = "estimated"
            headers.append(ESTIMATE)
        else:
            record.usage_source = "provider"
        record.usage = Usage(input=self._read(job.dialect, body))
        record.status = 200
        job.reply.send(200, [("content-type", "application/json"), *common_headers(job), *headers], body)

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
        if len(self._without) >= _REMEMBERED:
            self._without.clear()
        self._without[target.name, target.dialect] = time.monotonic() + _FORGET

    async def _counted(self, job: Job, target: Target) -> bytes:
        """The provider's own count."""
        named_inside = job.dialect in ("gemini", "code-assist")
        if (
            target.dialect == job.dialect
            and not job.sealed
            and not (named_inside and target.model != job.model)
        ):
            body = job.body
            if target.model != job.model:
                body = splice(body, {"model": encode(target.model)})
            answer = await self._ask(job, target, body)
            self._read(target.dialect, answer)  # whatever cannot be read is estimated instead
            return answer
        answer = await self._ask(job, target, encode(self._request_for(job, target)))
        return encode(render_count_answer(job.dialect, self._read(target.dialect, answer)))

    async def _ask(self, job: Job, target: Target, body: bytes) -> bytes:
        credential = await self._relay.credential(job, target, is_last=False)
        return await self._relay.ask(job, target, outbound(job, target, credential, "count", body), _PATIENCE)

    def _read(self, name: str, body: bytes) -> int:
        try:
            return parse_count_answer(name, decode(body))
        except (BadJson, UpstreamFault):
            raise failures.unreadable("the upstream's count cannot be read") from None

    def _request_for(self, job: Job, target: Target) -> object:
        request = self._request(job)
        planned = with_faults_told(
            lambda: plan(
                request,
                source=job.dialect,
                target=target.dialect,
                model=target.model,
                provider=target.provider.name,
                limits=target.limits,
                context=job.context,
            )
        )
        nested = "publishers" not in target.provider.spec.base_url  # Vertex takes them beside the contents
        return render_count_request(target.dialect, planned.upstream, planned.context, nested=nested).value

    def _request(self, job: Job) -> Request:
        if job.rewritten:  # with the turns that the gateway holds
            return job.request()
        request: Request = with_faults_told(
            lambda: parse_count_request(job.dialect, job.document(), job.context)
        )
        return request

    def _estimated(self, job: Job, target: Target) -> bytes:
        self._estimated_for.add(target.provider.name)
        request = self._request(job)
        conversation = Estimator.conversation(request, job.session, job.caller.name)
        tokens = self._estimator.estimate(target.provider.name, target.model, conversation, request)
        return encode(render_count_answer(job.dialect, tokens))
