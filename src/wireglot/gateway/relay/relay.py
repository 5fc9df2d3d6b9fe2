"""The one loop of the gateway: targets, keys, attempts, until a client has its answer or its error."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.dialects.registry import dialect
from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.attempt import Prepared, policy_of, prepare
from wireglot.gateway.relay.delivery import Delivery
from wireglot.gateway.relay.recovery import helps, is_about_state
from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.job import Job, common_headers
from wireglot.gateway.settings import Credential
from wireglot.gateway.streams.feeder import StreamRefused
from wireglot.gateway.targets.health import QUARANTINE, Breaker, Health
from wireglot.gateway.targets.routing import Target
from wireglot.http import failures
from wireglot.http.failures import AttemptFailed
from wireglot.http.retry import RetryBudget, advised_wait, wait_before
from wireglot.http.transport import Answer, Outbound, Timeouts, Transport, TransportFault
from wireglot.ir.content import Reasoning, Text, ToolCall
from wireglot.ir.errors import ApiError
from wireglot.wire.json import BadJson, decode

_COOL_UNADVISED: Final = 1.0
_PASSED_BACK: Final = ("x-ratelimit-", "anthropic-ratelimit-", "openai-processing-ms")
_UPSTREAM_IDS: Final = ("request-id", "x-request-id", "x-goog-request-id", "msh-request-id")

_ABOUT_REQUEST: Final = frozenset({"request", "model", "upstream"})
"""Refusals of a request come as 400, as 404 (an item that is not stored), and in streams without a status."""

CountError = Callable[[str, str], None]
"""Told the provider and the kind of each attempt that failed."""


class Relay:
    """Carries requests to providers. Holds what is remembered about them, and nothing about any request."""

    def __init__(self, transports: dict[str, Transport], health: Health, count_error: CountError) -> None:
        self._transports = transports
        self._health = health
        self._count_error = count_error
        self._gates: dict[str, Gate] = {}
        self.delivery = Delivery()

    async def answer(self, job: Job, targets: tuple[Target, ...]) -> Target:
        """Answer from the first target that can, and tell which did. Raises the last one's Failed."""
        if job.stream:
            job.client = ClientStream(
                job.heard or job.reply,
                job.dialect,
                job.framing,
                job.settings.limits.ping,
                lambda: common_headers(job),
                asyncio.get_running_loop(),
            )
        last = len(targets) - 1
        for place, target in enumerate(targets):
            try:
                await self._at_target(job, target, is_last=place == last)
                return target
            except AttemptFailed as failed:
                if failed.blame == "credential":
                    failed = failures.credential_rejected(failed)
                if failed.blame == "request" or place == last:
                    raise failed from None
                job.record.fallbacks = [*job.record.fallbacks, target.name]
        raise AssertionError("a route has at least one target")

    async def ask(self, job: Job, target: Target, outbound: Outbound, patience: float) -> bytes:
        """One question beside the conversation, asked once and not waited for long."""
        seconds = min(patience, job.timeout or patience)
        timeouts = msgspec.structs.replace(target.provider.timeouts, first_byte=seconds, total=seconds)
        try:
            answer = await self._transport(outbound).send(outbound, timeouts)
            try:
                if answer.status != 200:
                    raise await self._failure(job, target, answer)
                return await answer.read(job.settings.limits.response)
            except BaseException:
                answer.abort()
                raise
        except TransportFault as fault:
            raise failures.of_transport(fault) from None

    def _transport(self, outbound: Outbound) -> Transport:
        return self._transports[outbound.url.partition(":")[0]]

    async def _at_target(self, job: Job, target: Target, *, is_last: bool) -> None:
        """Try the keys of one target, and again where that can help."""
        provider, health = target.provider, self._health
        breaker, budget = health.breaker(target.name), health.budget(provider.name)
        budget.request()
        gate = await self._enter(job, target, is_last)
        try:
            await self._try(job, target, breaker, budget, is_last)
        finally:
            if gate is not None:
                gate.leave()

    async def _enter(self, job: Job, target: Target, is_last: bool) -> Gate | None:
        """Wait for a place where a provider takes only so many requests at once."""
        provider, guard = target.provider, job.settings.limits
        if not provider.concurrency:
            return None
        gate = self._gates.get(provider.name)
        if gate is None:
            gate = self._gates[provider.name] = Gate(provider.concurrency, guard.queue, guard.queue_time)
        gate.adapt(provider.concurrency, guard.queue, guard.queue_time)
        try:
            await gate.enter()
        except RequestError as shed:
            if is_last:
                raise
            raise AttemptFailed(shed.error, "timeout") from None
        return gate

    async def _try(
        self, job: Job, target: Target, breaker: Breaker, budget: RetryBudget, is_last: bool
    ) -> None:
        provider, loop = target.provider, asyncio.get_running_loop()
        tried = 0
        job.stripped = False  # what one upstream refuses may be another's own
        while True:
            closed_for = breaker.wait(loop.time())
            if closed_for > 0:
                raise _resting(target.name, closed_for)
            credential = await self.credential(job, target, is_last=is_last)
            breaker.begin(loop.time())
            tried += 1
            try:
                whole = await self._attempt(job, target, credential)
            except AttemptFailed as failed:
                self._count_error(provider.name, failed.error.kind)
                if not job.stripped and _goes_on_without_state(job, target, failed):
                    # Another account's, or forgotten: the conversation goes on without it, once.
                    breaker.succeeded(provider.breaker, loop.time())
                    job.stripped = True
                    job.record.notes = [*job.record.notes, "reasoning state refused: left out"]
                    continue
                account = credential.account if credential is not None else ""
                now = loop.time()
                if failed.blame == "gateway":
                    breaker.release()  # the upstream was not asked
                elif failed.blame in failures.COUNTED:
                    breaker.failed(provider.breaker, now)
                else:
                    breaker.succeeded(provider.breaker, now)
                wait = self._after(failed, target, account, tried, now)
                if wait is None or (failed.blame != "credential" and not budget.spend()):
                    raise
                if wait > 0:
                    await asyncio.sleep(wait)
            except BaseException:
                breaker.release()
                raise
            else:
                if whole:
                    breaker.succeeded(provider.breaker, loop.time())
                else:
                    breaker.failed(provider.breaker, loop.time())
                return

    def _after(
        self, failed: AttemptFailed, target: Target, account: str, tried: int, now: float
    ) -> float | None:
        """Seconds until the next attempt at this target; None: there is none."""
        provider, health = target.provider, self._health
        others = [
            credential
            for credential in provider.credentials
            if credential.account != account
            and health.usable_at(provider.name, credential.account, target.model, now) <= now
        ]
        match failed.blame:
            case "credential":
                if failed.error.kind == "auth" and account:
                    health.reject(provider.name, account, now)
                elif others:
                    # What one key may not do another may. The only key is not parked: it may do other things.
                    health.cool(provider.name, account, target.model, now + QUARANTINE)
                return 0.0 if others else None
            case "quota":
                health.cool(provider.name, account, target.model, now + 60.0)
                return 0.0 if others else None
            case "rate":
                rest = failed.wait if failed.wait is not None else _COOL_UNADVISED
                if provider.retry.schedule is None:
                    health.cool(provider.name, account, target.model, now + rest)
                if others:
                    return 0.0
            case "connection":
                if not provider.retry.connection_errors:
                    return None
        if failed.blame not in failures.HELPED_BY_RETRY:
            return None
        return wait_before(provider.retry, tried, failed.wait, random.random())

    async def credential(self, job: Job, target: Target, *, is_last: bool) -> Credential | None:
        """The key to use now. Waits for one that rests only where there is nowhere else to go."""
        provider, health = target.provider, self._health
        pool = provider.credentials
        if not pool:
            return None
        now = asyncio.get_running_loop().time()
        chosen = pool[0]
        if len(pool) > 1:
            chosen = health.order(
                provider.name,
                pool,
                target.model,
                now,
                minted_by=_minters(job) if job.sealed else (),
                conversation=job.affinity(),
            )[0]
        ready = health.usable_at(provider.name, chosen.account, target.model, now)
        if ready <= now:
            return chosen
        if health.is_rejected(provider.name, chosen.account, now):
            raise failures.credential_rejected(AttemptFailed(ApiError("auth", ""), "credential"))
        wait = ready - now
        if not is_last or wait > provider.retry.wait_max:
            raise AttemptFailed(
                ApiError("rate_limit", f"{provider.name} asked to wait", status=429, retry_after=wait),
                "rate",
                wait=wait,
            )
        await asyncio.sleep(wait)
        return chosen

    async def _attempt(self, job: Job, target: Target, credential: Credential | None) -> bool:
        """Ask once. False: the answer broke off after it had begun, and the client has been told."""
        prepared = prepare(job, target, credential)
        record = job.record
        record.attempts += 1
        record.provider, record.upstream_model = target.provider.name, target.model
        record.upstream_dialect, record.passthrough = target.dialect, prepared.raw
        record.upstream_url = prepared.outbound.url
        record.account = credential.account if credential is not None else ""
        record.losses = list(prepared.losses)
        job.tells_losses = policy_of(job, target) != "silent"
        job.losses = prepared.losses if job.tells_losses else ()
        timeouts = target.provider.timeouts
        if job.timeout is not None:
            timeouts = msgspec.structs.replace(
                timeouts,
                total=min(timeouts.total, job.timeout),
                first_byte=min(timeouts.first_byte, job.timeout),
            )
        if job.durable is not None:
            await job.durable
            job.durable = None
        answer = await self._send(prepared, timeouts)
        try:
            record.upstream_request_id = next(
                (answer.headers[name] for name in _UPSTREAM_IDS if name in answer.headers), ""
            )
            if answer.status != 200:
                raise await self._failure(job, target, answer)
            job.passed_back = [
                (name, job.redactor.text(value))
                for name, value in answer.headers.items()
                if name.startswith(_PASSED_BACK)
            ]
            if not prepared.stream:
                await self.delivery.whole(job, target, prepared, answer)
                return True
            return await self.delivery.streamed(job, target, prepared, answer)
        except TransportFault as fault:
            raise failures.of_transport(fault) from None
        except StreamRefused as refused:
            raise failures.of_stream(refused.error) from None
        except BaseException:
            answer.abort()
            raise

    async def _send(self, prepared: Prepared, timeouts: Timeouts) -> Answer:
        try:
            return await self._transport(prepared.outbound).send(prepared.outbound, timeouts)
        except TransportFault as fault:
            raise failures.of_transport(fault) from None

    async def _failure(self, job: Job, target: Target, answer: Answer) -> AttemptFailed:
        """What an answer that is no 200 means."""
        status = answer.status
        if status < 400:
            return failures.unreadable(f"the upstream answered with status {status}")
        try:
            body = await answer.read(job.settings.limits.error_body)
        except TransportFault as fault:
            if fault.problem != "too_large":
                raise
            body = b""  # its status says enough
        try:
            document = decode(body)
        except BadJson:
            document = body
        error = dialect(target.dialect).parse_error(document, status)
        if error is None:
            return failures.unreadable(f"the upstream answered with status {status}")
        readable = not isinstance(document, bytes)
        wait = advised_wait(answer.headers, time.time())
        return failures.of_error(
            error, status, wait, body if readable and target.dialect == job.dialect else None
        )


def _resting(route: str, seconds: float) -> AttemptFailed:
    return AttemptFailed(
        ApiError(
            "server",
            f"{route} has failed repeatedly and is given a rest",
            status=503,
            code="upstream_unavailable",
            retry_after=seconds,
        ),
        "timeout",
        wait=seconds,
    )


def _goes_on_without_state(job: Job, target: Target, failed: AttemptFailed) -> bool:
    """Whether the upstream refused the reasoning of earlier turns, and can be asked again without it. Whoever
    wants no losses gets the refusal."""
    if failed.blame not in _ABOUT_REQUEST or not is_about_state(failed.error):
        return False
    if job.thread or policy_of(job, target) == "strict":
        return False
    try:
        return helps(job.request(), target.dialect, job.record.passthrough)
    except RequestError:
        return False  # only its own vendor can read it


def _minters(job: Job) -> set[str]:
    """The accounts whose reasoning state the conversation carries."""
    accounts = set()
    for message in job.request().messages:
        for part in message.content:
            if isinstance(part, Reasoning | ToolCall | Text) and part.signature is not None:
                accounts.add(part.signature.origin.account)
    return accounts
