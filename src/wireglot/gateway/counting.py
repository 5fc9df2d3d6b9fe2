"""Counting tokens for a client: asked of the provider where it can count, else estimated and marked so."""

from __future__ import annotations

from wireglot.gateway import failures
from wireglot.gateway.attempt import outbound
from wireglot.gateway.count import (
    Estimator,
    parse_count_answer,
    parse_count_request,
    render_count_answer,
    render_count_request,
)
from wireglot.gateway.failures import Failed
from wireglot.gateway.job import Job, common_headers, with_faults_told
from wireglot.gateway.relay import Relay
from wireglot.gateway.routing import Target
from wireglot.ir.errors import UpstreamFault
from wireglot.ir.request import Request
from wireglot.translate import plan
from wireglot.wire.json import BadJson, decode, encode
from wireglot.wire.splice import splice

ESTIMATE = ("x-wireglot-estimate", "true")


class Counting:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._estimator = Estimator()

    def learn(self, job: Job, target: Target | None) -> None:
        """What a provider reported for a conversation makes the next estimate for it better."""
        usage = job.record.usage
        if target is None or target.provider.spec.counts or usage is None or not job.is_parsed:
            return
        self._estimator.learn(
            target.provider.name, target.model, job.conversation(), job.request(), usage.total_input
        )

    async def answer(self, job: Job, targets: tuple[Target, ...]) -> None:
        target = targets[0]
        record = job.record
        record.provider, record.upstream_model = target.provider.name, target.model
        headers = []
        try:
            body = await self._counted(job, target)
        except Failed as failed:
            if failed.blame == "request":
                raise
            record.notes = [*record.notes, f"counting failed: {failed.error.message}"]
            body = None
        if body is None:
            body = self._estimated(job, target)
            record.usage_source = "estimated"
            headers.append(ESTIMATE)
        record.status = 200
        job.reply.send(200, [("content-type", "application/json"), *common_headers(job), *headers], body)

    async def _counted(self, job: Job, target: Target) -> bytes | None:
        """The provider's own count; None where it has none."""
        counts = target.provider.spec.counts
        if not counts:
            return None
        same = job.dialect in counts and target.dialect == job.dialect
        if same and not job.sealed:
            body = job.body
            if job.dialect != "gemini" and target.model != job.model and job.dialect != "code-assist":
                body = splice(body, {"model": encode(target.model)})
            answer = await self._ask(job, target, body)
            self._read(target.dialect, answer)  # whatever cannot be read is estimated instead
            return answer
        if target.dialect not in counts:
            return None
        body = encode(self._request_for(job, target))
        return encode(
            render_count_answer(job.dialect, self._read(target.dialect, await self._ask(job, target, body)))
        )

    async def _ask(self, job: Job, target: Target, body: bytes) -> bytes:
        credential = target.provider.credentials[0] if target.provider.credentials else None
        return await self._relay.ask(job, target, outbound(job, target, credential, "count", body))

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
        request: Request = with_faults_told(
            lambda: parse_count_request(job.dialect, job.document(), job.context)
        )
        return request

    def _estimated(self, job: Job, target: Target) -> bytes:
        request = self._request(job)
        conversation = Estimator.conversation(request, job.session, job.caller.name)
        tokens = self._estimator.estimate(target.provider.name, target.model, conversation, request)
        return encode(render_count_answer(job.dialect, tokens))
