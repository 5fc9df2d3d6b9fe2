"""The central loop of the gateway: targets, keys and attempts, until a client has its answer or its error."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final

import msgspec

from wireglot.gateway.entry.gates import Gate, shed_seconds
from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay import refusals
from wireglot.gateway.relay.candidates import Candidates
from wireglot.gateway.relay.context_sizes import ContextSizes
from wireglot.gateway.relay.delivery import Delivery
from wireglot.gateway.relay.explanation import explained
from wireglot.gateway.relay.judge import Ask, Judge
from wireglot.gateway.relay.media import FindFetch, MediaDownloads, NeedsMedia
from wireglot.gateway.relay.preparation import prepare_best
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.relay.tries import Tries
from wireglot.gateway.relay.unavailable import UNSEARCHED, answer_unsearched
from wireglot.gateway.request.attempt import Attempt
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.settings import ClientKey, Credential
from wireglot.gateway.streams.feeder import StreamRefused
from wireglot.gateway.targets.health import Health, SpentAccount
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.retry import advised_wait
from wireglot.http.transport import Answer, Outbound, Transport, TransportFault
from wireglot_core.dialects.capabilities import WebSockets
from wireglot_core.dialects.registry import surfaces
from wireglot_core.ir import failures
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.verdict import NoAnswer
from wireglot_core.wire.json import BadJson, decode

_RETURNED_BY_MANY: Final = "x-ratelimit-"

CountError = Callable[[str, str], None]
"""Called with the provider and the kind of each failed attempt."""

Prepare = Callable[[Exchange, Target, Credential | None], tuple[Target, Prepared]]
"""Prepares a request for a target; also returns the target, which may change."""
Deliver = Callable[[Exchange, Target, Prepared, Answer], Awaitable[None]]
"""Sends the client the result of a good answer."""


class Relay:
    """Sends requests to providers. Keeps what is known about providers, and nothing about requests.

    It is the innermost `Answerer`: every step is around it.
    """

    def __init__(
        self,
        transports: dict[str, Transport],
        health: Health,
        count_error: CountError,
        sign_ins: SignIns,
        ask: Ask,
        is_gone: Callable[[ClientKey | None], bool],
        media: FindFetch,
        contexts: ContextSizes,
    ) -> None:
        """`ask`: has a request of the gateway itself answered. `is_gone`: see `Delivery`. `media`: downloads
        images and files."""
        self._contexts = contexts
        self._downloads = MediaDownloads(media)
        self._transports = transports
        self._sign_ins = sign_ins
        self._health = health
        self._count_error = count_error
        self._gates: dict[str, Gate] = {}
        self._refused_state = refusals.RefusedState()
        self._candidates = Candidates(ask)
        self.delivery = Delivery(Judge(ask), self._candidates, is_gone)
        self._prepare: Prepare = prepare_best
        self._deliver: Deliver = self.delivery.whole
        sides = [known.upstream for known in surfaces() if known.upstream is not None]
        returned = dict.fromkeys(name for side in sides for name in side.returned_headers)
        self._returned = (_RETURNED_BY_MANY, *returned)
        """Prefixes of response headers that are passed on to the client. Hosts sell the models of others and
        send those vendors' headers too, so any prefix may come from any target."""
        quotas = dict.fromkeys(name for side in sides for name in side.quota_headers)
        self._returned_without_key = (*self._returned, *quotas)
        self._request_ids = tuple(dict.fromkeys(name for side in sides for name in side.request_id_headers))

    def carrying(self, prepare: Prepare, deliver: Deliver) -> Relay:
        """The same relay for another kind of request: it shares the knowledge about providers."""
        other = copy.copy(self)
        other._prepare, other._deliver = prepare, deliver
        return other

    @property
    def inside(self) -> int:
        """Places taken at providers."""
        return sum(gate.inside for gate in self._gates.values())

    @property
    def waiting(self) -> int:
        """Requests that wait for a place at a provider or for a connection to it."""
        at_gates = sum(gate.waiting for gate in self._gates.values())
        return at_gates + sum(transport.waiting for transport in set(self._transports.values()))

    async def answer(self, exchange: Exchange) -> None:
        """Answer from the first target that succeeds. Raises the last one's AttemptFailed."""
        job, refused = exchange.job, self._refused_state
        if job.stream:
            exchange.open_stream()
        last = len(exchange.targets) - 1
        for place, target in enumerate(exchange.targets):
            exchange.attempt = Attempt(
                job.policy or target.losses or job.settings.losses,
                asks_state=target.name not in refused.without,
                asks_summary=target.name not in refused.without_summary,
            )
            tries = Tries(exchange, target, self._health, self._sign_ins)
            try:
                if target.provider.concurrency:
                    exchange.provider_gate = await self._enter(exchange, target, place == last)
                while True:
                    tries.check()
                    credential = await self.credential(exchange, target, is_last=place == last)
                    tries.begin()
                    if tries.number > 1:
                        exchange.attempt = exchange.attempt.again()
                    try:
                        whole = await self._attempt(exchange, target, credential)
                    except AttemptFailed as failed:
                        self._note_failure(exchange, target, failed)
                        goes_on = refused.goes_on(exchange, target, failed)
                        wait = tries.go_on() if goes_on else tries.failed(failed, credential)
                        if wait is None:
                            raise
                    else:
                        tries.answered(whole=whole)
                        return
                    if wait > 0:
                        await _sleep(exchange, "retry", wait)
                        if exchange.tap is not None:
                            exchange.tap.passed("retry wait")
            except AttemptFailed as failed:
                if failed.blame == "request" or place == last:
                    if failed.error.code == UNSEARCHED and answer_unsearched(exchange, failed):
                        return
                    raise explained(failed, target, exchange.record.upstream_url) from None
                exchange.record.fell_back(target.name)
            finally:
                if tries.is_probe:
                    tries.end()
                if exchange.provider_gate is not None:
                    exchange.leave_provider()
            if exchange.fall_back is not None and (rest := exchange.fall_back(exchange, place + 1)):
                await rest
                return
        raise AssertionError("a route has at least one target")

    def _note_failure(self, exchange: Exchange, target: Target, failed: AttemptFailed) -> None:
        exchange.record.waits = ""
        self._count_error(target.provider.name, failed.error.kind)
        if exchange.tap is not None:
            exchange.tap.attempt_failed(failed.error.message)

    async def ask(self, exchange: Exchange, target: Target, outbound: Outbound, patience: float) -> bytes:
        """Send one request outside the conversation, once. `patience`: timeout in seconds."""
        job = exchange.job
        seconds = min(patience, job.timeout or patience)
        timeouts = msgspec.structs.replace(target.provider.timeouts, first_byte=seconds, total=seconds)
        try:
            answer = await self._transports[outbound.url.partition(":")[0]].send(outbound, timeouts)
            try:
                if answer.status != 200:
                    raise await self._failure(exchange, target, answer)
                return await answer.read(job.settings.limits.response)
            except BaseException:
                answer.abort()
                raise
        except TransportFault as fault:
            raise failures.of_connection(fault.problem, fault.message) from None

    async def _enter(self, exchange: Exchange, target: Target, is_last: bool) -> Gate:
        """Wait for a place at a provider that takes a limited number of requests at once."""
        provider, limits = target.provider, exchange.job.settings.limits
        gate = self._gates.get(provider.name)
        if gate is None:
            gate = self._gates[provider.name] = Gate(provider.concurrency, limits.queue, limits.queue_time)
        gate.adapt(provider.concurrency, limits.queue, limits.queue_time)
        record = exchange.record
        record.waits = "provider queue"
        try:
            await gate.enter()
        except RequestError as shed:
            if is_last:
                raise
            raise AttemptFailed(shed.error, "timeout") from None
        record.waits = ""
        if exchange.tap is not None:
            exchange.tap.passed("provider queue")
        return gate

    async def credential(self, exchange: Exchange, target: Target, *, is_last: bool) -> Credential | None:
        """The key to use now. Waits for a paused one only if there is no other target."""
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
                minted_by=refusals.minters(exchange.request()) if exchange.sealed else (),
                conversation=exchange.affinity(),
            )[0]
        ready = health.usable_at(provider.name, chosen.account, target.model, now)
        if ready <= now:
            return chosen if chosen.login is None else await self._signed_in(exchange, chosen)
        if health.is_rejected(provider.name, chosen.account, now):
            said = health.last_words(provider.name, chosen.account)
            raise AttemptFailed(ApiError("auth", said), "credential")
        spent = health.spent(provider.name, chosen.account, target.model, now)
        if spent is not None:
            waiting = [
                (at, each)
                for each in pool
                if health.spent(provider.name, each.account, target.model, now) is None
                and not health.is_rejected(provider.name, each.account, now)
                and (at := health.usable_at(provider.name, each.account, target.model, now)) > now
            ]
            if not waiting:
                raise _repeated(exchange, spent, now)
            ready, chosen = min(waiting, key=itemgetter(0))
        wait = ready - now
        if not is_last or wait > provider.retry.wait_max:
            raise AttemptFailed(
                ApiError("rate_limit", f"{provider.name} requested a wait", status=429, retry_after=wait),
                "rate",
                wait=wait,
            )
        await _sleep(exchange, "key", wait)
        if exchange.tap is not None:
            exchange.tap.passed("key wait")
        return chosen if chosen.login is None else await self._signed_in(exchange, chosen)

    async def _signed_in(self, exchange: Exchange, chosen: Credential) -> Credential:
        """The credential with a valid token; waits for the sign-in if there is none."""
        record, tap = exchange.record, exchange.tap
        if tap is not None:
            tap.passed("translation")
        record.waits = "sign-in"
        credential = await self._sign_ins.ready(chosen)
        record.waits = ""
        if tap is not None:
            tap.passed("sign-in")
        return credential

    async def _attempt(self, exchange: Exchange, target: Target, credential: Credential | None) -> bool:
        """Send one request. False: the answer broke off after it had begun, and the client has been
        informed."""
        record, tap, ending = exchange.record, exchange.tap, exchange.ending
        target, prepared = await self._made_ready(exchange, target, credential)
        if (recorded := ending.before_asking()) is not None:
            if tap is not None:
                tap.passed("translation")
            record.waits = "store"
            await recorded
            if tap is not None:
                tap.passed("store")
        if prepared.further or exchange.asking:
            # A provider with a concurrency limit gets them one after the other, once this one has left its
            # place.
            self._candidates.start(exchange, 0 if target.provider.concurrency else prepared.further)
        if tap is not None:
            differs = exchange.attempt.stripped or exchange.invented or exchange.sealed  # without a call
            tap.asking(target, prepared, prepared.asked or (prepared.request if differs else None))
        record.waits = "first byte"
        try:
            answer = await self._sent(exchange, target, prepared, credential)
        except TransportFault as fault:
            raise _unsent(fault) from None
        if prepared.unframe is not None:
            answer = prepared.unframe(answer)
        if tap is not None:
            answer = tap.answering(answer)
        record.waits = "next event" if prepared.stream else "answer"
        try:
            if (recorded := ending.before_answering()) is not None:
                await recorded
            self._read_headers(exchange, answer.headers)
            if answer.status != 200:
                raise await self._failure(exchange, target, answer)
            if prepared.stream:
                return await self.delivery.streamed(exchange, target, prepared, answer)
            await self._deliver(exchange, target, prepared, answer)
            return True
        except (TransportFault, StreamRefused, NoAnswer) as problem:
            raise _as_failure(exchange, answer, problem) from None
        except BaseException:
            answer.abort()
            raise

    async def _made_ready(
        self, exchange: Exchange, target: Target, credential: Credential | None
    ) -> tuple[Target, Prepared]:
        """The request for the target, or for another of its dialects, and its entry in the record."""
        attempt, job = exchange.attempt, exchange.job
        if target.loads and not exchange.embeds:
            sizes = await self._contexts.of(target.provider, target.model, credential)
            attempt.context_size = sizes if sizes.is_known else None
        preparing = partial(self._prepare, exchange, target, credential)
        if exchange.is_large:
            exchange.held.attempt(len(job.body))  # about what is made of it, before it is made
        try:
            target, prepared = await run_in_thread(preparing) if exchange.is_large else preparing()
        except NeedsMedia as needed:
            target, prepared = await self._with_media(exchange, needed, preparing)
        outgoing = prepared.outbound.body
        exchange.held.attempt(0 if outgoing is job.body else len(outgoing))
        if prepared.context_size:
            self._contexts.asked(target.provider.name, target.model, prepared.context_size)
        attempt.minter = target.minter
        losses = prepared.losses + exchange.foreseen
        exchange.record.asked(
            target.provider.name,
            target.model,
            target.dialect,
            url=prepared.outbound.url,
            account=credential.account if credential is not None else "",
            passthrough=prepared.raw,
            losses=losses,
        )
        if attempt.policy != "silent":
            attempt.losses = losses
        return target, prepared

    def _sent(
        self, exchange: Exchange, target: Target, prepared: Prepared, credential: Credential | None
    ) -> Awaitable[Answer]:
        """The answer of the provider, once its head is here."""
        timeouts, given = target.provider.timeouts, exchange.job.timeout
        if given is not None:
            timeouts = msgspec.structs.replace(
                timeouts, total=min(timeouts.total, given), first_byte=min(timeouts.first_byte, given)
            )
        transport = self._transports[prepared.outbound.url.partition(":")[0]]
        carrier = exchange.carrier
        sockets = _sockets(target, prepared, credential) if carrier is not None else None
        if carrier is None or sockets is None:
            return transport.send(prepared.outbound, timeouts)
        return carrier.send(transport, prepared.outbound, timeouts, sockets)

    def _read_headers(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        """What the client is passed of them, and the provider's id of the request."""
        found = ""
        for name in self._request_ids:
            if name in headers:
                found = headers[name]
                break
        exchange.record.upstream_request_id = found
        returned = self._returned if exchange.job.caller.key is not None else self._returned_without_key
        for name in headers:
            if name.startswith(returned):
                exchange.attempt.returned_headers.append((name, exchange.redactor.text(headers[name])))

    async def _with_media(
        self, exchange: Exchange, needed: NeedsMedia, preparing: Callable[[], tuple[Target, Prepared]]
    ) -> tuple[Target, Prepared]:
        """Prepare the request with downloaded files, for the target or another of its dialects, which needs
        the same ones."""
        exchange.record.waits = "download"
        await self._downloads.download(exchange, needed)
        exchange.record.waits = ""
        if exchange.tap is not None:
            exchange.tap.passed("download")
        return await run_in_thread(preparing)

    async def _failure(self, exchange: Exchange, target: Target, answer: Answer) -> AttemptFailed:
        """The failure that a non-200 answer means."""
        status = answer.status
        if status < 400:
            return failures.unreadable(f"the upstream answered with status {status}")
        try:
            body = await answer.read(exchange.job.settings.limits.error_body)
        except TransportFault as fault:
            if fault.problem != "too_large":
                raise
            body = b""  # its status is enough
        try:
            document = decode(body)
        except BadJson:
            document = body
        error = target.codec.parse_error(document, status)
        if error is None:
            return failures.unreadable(f"the upstream answered with status {status}")
        readable = not isinstance(document, bytes)
        wait = advised_wait(answer.headers, time.time())
        own = readable and _is_own(exchange, target.dialect, document)
        if not own:
            error = msgspec.structs.replace(error, extra=None)
        failed = refusals.judged(failures.of_error(error, status, wait, body if own else None))
        if readable:
            failed.answered = target.dialect, body
        return failed


def _as_failure(
    exchange: Exchange, answer: Answer, problem: TransportFault | StreamRefused | NoAnswer
) -> Exception:
    """Of an answer that had begun."""
    match problem:
        case TransportFault():
            if problem.problem == "total_timeout" and exchange.held.waits:
                return exchange.held.refused()  # could not pass the answer on: our own fault
            return failures.of_connection(problem.problem, problem.message)
        case StreamRefused():
            return refusals.judged(failures.of_stream(problem.error))
        case NoAnswer():
            answer.abort()  # it may still be on its way
            exchange.record.answered_nothing(problem.error, problem.usage)
            return failures.no_answer(problem.error)


def _is_own(exchange: Exchange, dialect: str, document: Any) -> bool:
    """Whether an error is in the client's own form. A server of its dialect may report errors in another
    dialect's."""
    owns = exchange.job.surface.client.owns_error
    return dialect == exchange.job.dialect and (owns is None or owns(document))


def _repeated(exchange: Exchange, spent: SpentAccount, now: float) -> AttemptFailed:
    """What a provider said of a spent account to another request, as the answer to this one."""
    id, error, body = exchange.record.id, spent.error, spent.body
    if error.request_id:
        body = body.replace(error.request_id.encode(), id.encode())
        error = msgspec.structs.replace(error, request_id=id)
    own = bool(body) and _is_own(exchange, spent.dialect, decode(body))
    wait = spent.free_at - now if spent.free_at > now else None
    return AttemptFailed(error, "quota", wait=wait, body=body if own else None, status=spent.status)


def _sockets(target: Target, prepared: Prepared, credential: Credential | None) -> WebSockets | None:
    """How a request is sent over a WebSocket. None if its bytes must not change: it is passed as-is, or its
    bytes are signed."""
    is_signed = credential is not None and credential.signing is not None
    return target.websockets if prepared.stream and not prepared.as_is and not is_signed else None


async def _sleep(exchange: Exchange, what: str, seconds: float) -> None:
    record = exchange.record
    record.waits, record.waits_until = what, time.monotonic() + seconds
    await asyncio.sleep(seconds)
    record.waits, record.waits_until = "", 0.0


def _unsent(fault: TransportFault) -> AttemptFailed:
    failed = failures.of_connection(fault.problem, fault.message)
    if fault.problem == "busy":
        failed.reported_wait = shed_seconds()  # not all of them may retry at the same time
    return failed
