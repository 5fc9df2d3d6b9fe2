"""The application behind the HTTP server: lets requests in, has them answered, tells how it went."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Final

import msgspec

from wireglot.dialects.registry import dialect
from wireglot.gateway import errors
from wireglot.gateway.entry import guard
from wireglot.gateway.entry.gates import Gate, shed
from wireglot.gateway.entry.guard import Caller, Gatekeeper
from wireglot.gateway.entry.routes import Asked, NoRoute, dialect_of, match
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import Record
from wireglot.gateway.observe.workers import Siblings
from wireglot.gateway.pages import health
from wireglot.gateway.pages import models as listing
from wireglot.gateway.pages.counts import Counting
from wireglot.gateway.pages.models import ListedModel
from wireglot.gateway.relay.attempt import ThreadUnsupported
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.job import Job, common_headers, identity
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.page_request import PageRequest
from wireglot.gateway.state.quotas.reservation import Reservation
from wireglot.gateway.state.state import State
from wireglot.gateway.targets.health import Health
from wireglot.gateway.targets.routing import Target, Unroutable, depends_on_effort, has_effort_rules, route
from wireglot.http.application import Head, Headers, Refusal, Reply
from wireglot.http.failures import AttemptFailed
from wireglot.http.transport import Transport
from wireglot.ir.errors import ApiError
from wireglot.ir.stream import Failure
from wireglot.wire.json import encode

_ROUTES: Final = 4096
_WITH_BODY: Final = frozenset({"generate", "compact", "count", "assist"})
_STATE: Final = frozenset({"state", "admin"})


class _Admitted(msgspec.Struct, frozen=True):
    asked: Asked
    caller: Caller
    settings: Settings
    request_id: str


class Gateway:
    """`settings` may be exchanged at any time: a request keeps those it came in under."""

    def __init__(
        self, settings: Settings, transports: dict[str, Transport], observer: Observer, state: State
    ) -> None:
        self.settings = settings
        self.state = state
        self.observer = observer
        self.health = Health()
        self.relay = Relay(
            transports,
            self.health,
            lambda provider, kind: observer.metrics.upstream_errors.add((provider, kind)),
        )
        self.counting = Counting(self.relay)
        self.draining = False
        self._gatekeeper = Gatekeeper(time.monotonic, state.keys)
        self._routes: dict[tuple[str, str, str], tuple[Target, ...]] = {}
        limits = settings.limits
        self._all = Gate(limits.requests, limits.queue, limits.queue_time)
        self._per_key: dict[str, Gate] = {}
        self._effort_rules = has_effort_rules(settings)
        self._models: tuple[Settings, tuple[ListedModel, ...]] | None = None
        self.siblings: Siblings | None = None
        health.publish(self)

    def adopt(self, settings: Settings) -> None:
        """Go over to new settings. Running requests keep theirs."""
        self.settings = settings
        self.observer.adopt(settings)
        self.state.adopt(settings)
        self._routes = {}
        self._effort_rules = has_effort_rules(settings)
        limits = settings.limits
        self._all.adapt(limits.requests, limits.queue, limits.queue_time)
        for gate in self._per_key.values():
            gate.adapt(limits.requests_per_key, limits.queue, limits.queue_time)

    @property
    def in_flight(self) -> int:
        return self._all.inside

    @property
    def waiting(self) -> int:
        return self._all.waiting

    @property
    def trouble(self) -> str:
        return self.state.trouble or self.state.ledger.trouble

    @property
    def ledger_full(self) -> bool:
        return self.state.ledger.full

    async def scrape(self) -> bytes:
        """The metrics of this process, with those of its sibling workers where there are any."""
        if self.siblings is not None:
            return await self.siblings.gather()
        return self.observer.metrics.render()

    # What the server asks before it reads a body.

    def admit(self, head: Head) -> Refusal | None:
        settings = self.settings
        request_id = f"req_{secrets.token_hex(12)}"
        try:
            guard.check_host(head, settings.server)
            guard.check_origin(head, settings.server)
            preflight = health.preflight(head, settings)
            if preflight is not None:
                return preflight
            asked = match(head)
            if _brings_a_body(head, asked):
                guard.check_body_form(head)
            if asked.operation == "admin":
                caller = self._gatekeeper.admin(head, settings)
            else:
                caller = guard.LOCAL if asked.open else self._gatekeeper.caller(head, asked, settings)
            head.admission = _Admitted(asked, caller, settings, request_id)
            return None
        except NoRoute as nowhere:
            refused = self._refused(head, health.nowhere(head, nowhere), request_id, nowhere.dialect)
            if nowhere.allowed:
                refused.headers.append(("allow", ", ".join(nowhere.allowed)))
            return refused
        except RequestError as fault:
            return self._refused(head, fault, request_id, dialect_of(head))

    def body_limit(self, head: Head) -> int:
        limits = self.settings.limits
        return limits.anthropic_body if "/v1/messages" in head.path else limits.body

    def too_large(self, head: Head, limit: int) -> Refusal:
        fault = RequestError("too_large", f"the body is larger than {limit} bytes")
        return self._refused(head, fault, f"req_{secrets.token_hex(12)}", dialect_of(head), close=True)

    def stalled(self, head: Head) -> Refusal:
        fault = RequestError("bad", "the body stopped arriving", code="request_timeout")
        refused = self._refused(head, fault, f"req_{secrets.token_hex(12)}", dialect_of(head), close=True)
        return msgspec.structs.replace(refused, status=408)

    def _refused(
        self, head: Head, fault: RequestError, request_id: str, dialect_name: str, *, close: bool = False
    ) -> Refusal:
        record = self._record(head, request_id, dialect_name)
        _note(record, fault.error)
        refused = errors.refusal(fault.error, dialect_name, request_id, final=fault.final, close=close)
        record.status = refused.status
        self.observer.begin(record)
        self.observer.finish(record)
        headers = [*refused.headers, *identity(request_id, dialect_name)]
        return msgspec.structs.replace(refused, headers=headers)

    # A whole request.

    async def handle(self, head: Head, body: bytes, reply: Reply) -> None:
        admitted: _Admitted = head.admission
        asked = admitted.asked
        if asked.operation in ("health", "ready", "metrics", "stub"):
            await health.answer(self, head, asked, reply)
            return
        record = self._record(head, admitted.request_id, asked.dialect)
        record.operation, record.caller = asked.operation, admitted.caller.name
        self.observer.begin(record)
        job: Job | None = None
        try:
            if asked.operation in ("models", "model", "assist", "operation"):
                models = self._listed(admitted.settings)
                health.describe(admitted.settings, models, admitted.caller, head, asked, body, reply, record)
                return
            if asked.operation in _STATE:
                question = PageRequest(
                    self, admitted.settings, admitted.caller, head, asked, body, reply, record
                )
                await self.state.answer(question)
                return
            job = self.job(admitted.settings, head, body, asked, admitted.caller, record, reply)
            if self.state.is_plain(job):
                await self.answer(job)
            else:
                await self.state.around(self, job)
        except RequestError as fault:
            self._tell(job, record, reply, fault.error, final=fault.final)
        except AttemptFailed as failed:
            self._tell_upstream(job, record, reply, failed)
        except ThreadUnsupported:
            body = encode({**ThreadUnsupported.BODY, "request_id": record.id})
            self._send(record, reply, 400, identity(record.id, record.dialect), body)
            _note(record, ThreadUnsupported.ERROR)
        except asyncio.CancelledError:
            self._cancelled(job, record, reply)
            raise
        except Exception as bug:
            self.observer.note("error", "bug", id=record.id, type=type(bug).__name__, where=health.place(bug))
            self._tell(
                job, record, reply, RequestError("internal", "an internal error; it has been logged").error
            )
        finally:
            if job is not None:
                if job.client is not None:
                    job.client.close()
                    record.first_byte = job.client.first
                # They hold one another: let go, and nothing waits for the collector.
                job.client = job.feeder = job.heard = None
                job.keepings = []
            self.state.ledger.finish(record)
            self.observer.finish(record)

    def job(
        self,
        settings: Settings,
        head: Head,
        body: bytes,
        asked: Asked,
        caller: Caller,
        record: Record,
        reply: Reply,
    ) -> Job:
        now = int(time.time())
        job = Job(settings, head, body, asked, caller, record, reply, self.observer.redactor, now)
        record.model, record.stream, record.session = job.model, job.stream, job.session
        return job

    async def answer(self, job: Job) -> None:
        """Have a request answered by an upstream, within everybody's limits."""
        if self.draining:
            raise shed("the gateway is shutting down")
        listing.check_permitted(job.caller.key, job.model)
        targets = self._targets(job)
        claim = await self.state.quotas.admit(job, targets[0])
        if claim is None:
            await self._within_gates(job, targets, claim)
            return
        ended: BaseException | None = None
        try:
            await self._within_gates(job, targets, claim)
        except BaseException as problem:
            ended = problem
            raise
        finally:
            self.state.quotas.settle(claim, job.record, ended)

    async def _within_gates(self, job: Job, targets: tuple[Target, ...], claim: Reservation | None) -> None:
        # The store first: whoever waits for it takes nobody's place.
        if self.state.concerns(job, targets):
            await self.state.before(job, targets)
        if claim is not None:
            await self.state.quotas.grow(claim, job, targets[0])
        gates = self._gates(job)
        entered = []
        try:
            for gate in gates:
                if not gate.try_enter():
                    await gate.enter()
                entered.append(gate)
            if job.asked.operation == "count":
                await self.counting.answer(job, targets)
            else:
                self.state.ledger.begin(job, targets[0])
                if claim is not None:
                    self.state.quotas.follow(claim, job)
                self.counting.learn(job, await self._relayed(job, targets))
        finally:
            for gate in entered:
                gate.leave()

    async def _relayed(self, job: Job, targets: tuple[Target, ...]) -> Target:
        """Within the time that the caller gives it, waiting and further attempts included."""
        if job.timeout is None:
            return await self.relay.answer(job, targets)
        try:
            async with asyncio.timeout(job.timeout):
                return await self.relay.answer(job, targets)
        except TimeoutError:
            raise RequestError(
                "upstream_timeout", f"no whole answer within {job.timeout:g} seconds"
            ) from None

    def _listed(self, settings: Settings) -> tuple[ListedModel, ...]:
        if self._models is None or self._models[0] is not settings:
            self._models = (settings, listing.models(settings))
        return self._models[1]

    def _targets(self, job: Job) -> tuple[Target, ...]:
        settings = job.settings
        effort = job.effort() if self._effort_rules and depends_on_effort(settings, job.model) else ""
        if settings is not self.settings:  # reloaded since it came in: its own routes hold
            return _route(settings, job.model, job.dialect, effort)
        key = (job.model, job.dialect, effort)
        found = self._routes.get(key)
        if found is None:
            found = _route(settings, job.model, job.dialect, effort)
            if len(self._routes) >= _ROUTES:  # model names are clients' words
                self._routes.clear()
            self._routes[key] = found
        return found

    def _gates(self, job: Job) -> list[Gate]:
        limits, name = job.settings.limits, job.caller.name
        if job.caller.key is None or not limits.requests_per_key:
            return [self._all]
        own = self._per_key.get(name)
        if own is None:
            own = self._per_key[name] = Gate(limits.requests_per_key, limits.queue, limits.queue_time)
        return [self._all, own]

    # How it went.

    def _record(self, head: Head, request_id: str, dialect_name: str) -> Record:
        return Record(
            request_id,
            time.monotonic(),
            dialect_name,
            path=head.path,
            agent=head.headers.get("user-agent", ""),
            traceparent=head.headers.get("traceparent", ""),
        )

    def _tell_upstream(self, job: Job | None, record: Record, reply: Reply, failed: AttemptFailed) -> None:
        """An upstream's error. In its own dialect it goes on as it came, but for secrets."""
        redactor = self.observer.redactor
        error = msgspec.structs.replace(
            errors.cleaned(failed.error, redactor.text),
            retry_after=failed.told_wait if failed.told_wait is not None else failed.error.retry_after,
        )
        final = record.attempts > 1 or failed.blame in ("credential", "quota")
        opened = job is not None and job.client is not None and job.client.opened
        if failed.body is not None and failed.blame != "credential" and not opened:
            assert job is not None
            _note(record, error)
            headers = errors.error_headers(error, final=final)
            body = health.redacted(failed.body, redactor)
            self._send(record, reply, failed.status, [*headers, *common_headers(job)], body)
        else:
            self._tell(job, record, reply, error, final=final)

    def _tell(
        self, job: Job | None, record: Record, reply: Reply, error: ApiError, *, final: bool = False
    ) -> None:
        _note(record, error)
        client = job.client if job is not None else None
        if client is not None and client.opened:
            self._tell_in_stream(job, record, error)
            return
        refused = errors.refusal(error, record.dialect, record.id, final=final)
        headers = common_headers(job) if job is not None else identity(record.id, record.dialect)
        self._send(record, reply, refused.status, [*refused.headers[1:], *headers], refused.body)

    def _tell_in_stream(self, job: Job | None, record: Record, error: ApiError) -> None:
        """The status is spent: the stream says what happened."""
        assert job is not None
        assert job.client is not None
        record.status = 200
        if job.client.begun and job.feeder is not None:
            job.feeder.fail(error)
            return
        error = msgspec.structs.replace(error, request_id=record.id)
        writer = dialect(job.dialect).stream_writer(job.context, None)
        job.client.write(writer.write([Failure(error)]))
        job.client.end()

    def _cancelled(self, job: Job | None, record: Record, reply: Reply) -> None:
        """The client left, or the process must: then whoever still listens is told."""
        if not self.draining:
            record.outcome = "client_abort"
            record.status = record.status or 499
            return
        error = RequestError("shed", "the gateway is shutting down", retry_after=1).error
        if job is not None and job.client is not None and job.client.opened:
            self._tell_in_stream(job, record, error)
        elif not reply.started:
            self._tell(job, record, reply, error)
        record.outcome = "gateway_abort"

    def _send(self, record: Record, reply: Reply, status: int, headers: Headers, body: bytes) -> None:
        record.status = status
        reply.send(status, [("content-type", "application/json"), *headers], body)


def _brings_a_body(head: Head, asked: Asked) -> bool:
    if asked.operation in _STATE:
        return head.method != "GET" and head.headers.get("content-length", "0") != "0"
    return asked.operation in _WITH_BODY and head.method == "POST"


def _route(settings: Settings, model: str, dialect_name: str, effort: str) -> tuple[Target, ...]:
    if not model:
        raise RequestError("bad", "model: expected the name of a model", code="invalid_value", param="model")
    try:
        return route(settings, model, dialect_name, effort)
    except Unroutable as nowhere:
        raise RequestError("not_found", f"model: {nowhere}", param="model") from None


def _note(record: Record, error: ApiError) -> None:
    record.outcome = "error"
    record.error_kind, record.error_code, record.error_message = error.kind, error.code, error.message
