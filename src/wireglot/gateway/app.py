"""The application behind the HTTP server: admits requests, has them answered and reports errors."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Final, cast

import msgspec

from wireglot.gateway import errors
from wireglot.gateway.entry import guard
from wireglot.gateway.entry.callers import LOCAL, Caller, Gatekeeper, take_key
from wireglot.gateway.entry.gates import Gates, no_room
from wireglot.gateway.entry.guard import cors_preflight, new_request_id
from wireglot.gateway.entry.routes import LOGIN_PATHS, SECOND_ROOT, Asked, NoRoute, Routes, is_inspector
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.access import SecuredReply, secured
from wireglot.gateway.inspector.inspector import Inspector, max_body_bytes
from wireglot.gateway.login.pages import LoginPages
from wireglot.gateway.login.replies import MAX_BODY_BYTES
from wireglot.gateway.observe.client_names import OWN_AGENT
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.observe.workers import Siblings
from wireglot.gateway.pages import telemetry_intake
from wireglot.gateway.pages.health import Condition, HealthPages
from wireglot.gateway.pages.models import ModelPages
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.relay.web_tools import WebTools
from wireglot.gateway.request.collected_reply import FramedReply
from wireglot.gateway.request.exchange import Exchange, OwnRound
from wireglot.gateway.request.headers import JSON, identity
from wireglot.gateway.request.job import Incoming, Job, in_vendor_form, read
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.problems import error_of, is_final, may_pass, redacted, shown, tells_all
from wireglot.gateway.request.worker_thread import LARGE_BYTES, known_of, run_in_thread, worker
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.pages import StatePages
from wireglot.gateway.state.state import State
from wireglot.gateway.steps import Pipeline, admit
from wireglot.gateway.targets.health import Health
from wireglot.gateway.targets.routing import Router
from wireglot.gateway.trace.recording import RecordedReply, Recording
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.websockets import SocketService
from wireglot.http.account import ByteAccount, MemoryLease
from wireglot.http.application import Head, Headers, Refusal, Reply, UpgradableReply
from wireglot.http.server.connection import ServerReply
from wireglot_core.dialects.registry import surface, surfaces
from wireglot_core.dialects.surface import ClientSide
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.stream import Event, Failure, Finish, Start
from wireglot_core.wire.cache import Caches
from wireglot_core.wire.json import encode

_FIGURES: Final = ("/v1/sessions", "/v1/usage", "/v1/admin/usage", "/v1/requests/")
"""Paths of pages with figures of the gateway."""
_MODEL_LISTS: Final = ("/v1/models", "/v1beta/models")
_WITH_BODY: Final = frozenset({"generate", "compact", "count", "embed", "assist", "model"})
_STATE: Final = frozenset({"state", "admin"})
_UNRECORDED: Final = frozenset({*HealthPages.OPERATIONS, "websocket", "telemetry"})
_PAGES: Final = frozenset({*_STATE, *ModelPages.OPERATIONS, "inspector", "login"})


class _Admitted(msgspec.Struct, frozen=True):
    incoming: Incoming
    id: str
    within: str = ""
    """For a request that the gateway itself sends: the id of the client's request that it belongs to."""
    operation: str = ""
    """The purpose of such a request."""
    round: OwnRound | None = None
    """The `OwnRound` that prepares such a request, where its body alone does not describe it completely."""


class _Known(msgspec.Struct, frozen=True):
    """The route of a request under these settings, and the digests of the keys in its head."""

    settings: Settings
    asked: Asked
    digests: list[str]


class GatewayPages(msgspec.Struct, frozen=True, kw_only=True):
    """The pages of the gateway: everything that is not a request to a model."""

    health: HealthPages
    models: ModelPages
    state: StatePages
    inspector: Inspector
    telemetry: telemetry_intake.TelemetryIntake
    login: LoginPages
    sockets: SocketService


class GatewayParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway is made of; `composition.py` connects them."""

    observer: Observer
    state: State
    routes: Routes
    gatekeeper: Gatekeeper
    gates: Gates
    account: ByteAccount
    """Bytes held by all requests, in both directions."""
    memories: Caches
    router: Router
    health: Health
    sign_ins: SignIns
    relay: Relay
    pipeline: Pipeline
    traces: Traces
    web: WebTools
    pages: GatewayPages


class Gateway:
    """Implements `Application`. `settings` can be replaced at any time: a request keeps those that it came in
    under."""

    def __init__(self, settings: Settings, parts: GatewayParts) -> None:
        self.settings = settings
        self._body_limits = _body_limits(settings)
        self.config_refused = False
        """Whether a newer configuration was refused, so that `settings` differ from the file."""
        self.siblings: Siblings | None = None
        self.observer = parts.observer
        self.account = parts.account
        self.memories = parts.memories
        self.health = parts.health
        self.sign_ins = parts.sign_ins
        self.relay = parts.relay
        self.traces = parts.traces
        self.web = parts.web
        self._parts = parts

    def adopt(self, settings: Settings) -> None:
        """Switch to new settings. Running requests keep theirs."""
        self.settings = settings
        self._body_limits = _body_limits(settings)
        self.observer.adopt(settings)
        self._parts.state.adopt(settings)
        self.traces.adopt(settings)
        self._parts.router.adopt(settings)
        self._parts.gates.adopt(settings.limits)
        self.memories.clear()

    @property
    def asks_for_keys(self) -> bool:
        """Whether a request needs a client key now."""
        return self._parts.gatekeeper.asks_for_keys(self.settings)

    @property
    def draining(self) -> bool:
        """Whether the process is shutting down: running requests end, new ones are refused."""
        return self._parts.gates.draining

    @draining.setter
    def draining(self, draining: bool) -> None:
        self._parts.gates.draining = draining

    @property
    def in_flight(self) -> int:
        return self._parts.gates.all.inside

    @property
    def waiting(self) -> int:
        return self._parts.gates.waiting + self.relay.waiting

    @property
    def permits(self) -> int:
        return self._parts.gates.inside + self.relay.inside

    # Check a head before the server reads the body: the refusal, or None.

    def admit(self, head: Head) -> Refusal | None:
        settings = self.settings
        request_id = new_request_id()
        familiar = head.familiar
        known: _Known | None = familiar.found if familiar is not None else None
        try:
            if head.path.startswith(self._parts.routes.key_roots):
                take_key(head, self._parts.routes.key_roots)
                self._parts.routes.check_behind_key(head)
            if known is not None and known.settings is settings:
                # Only the caller may have changed since then: a key can expire or be revoked at any time.
                caller = self._parts.gatekeeper.caller(head, known.asked, settings, known.digests)
                head.admission = _Admitted(Incoming(settings, head, known.asked, caller), request_id)
                return None
            guard.check_host(head, settings.server)
            if is_inspector(head.path):
                head.admission = _Admitted(self._parts.pages.inspector.admit(head, settings), request_id)
                return None
            if head.path in LOGIN_PATHS and self._parts.pages.login.is_on(settings):
                head.admission = _Admitted(self._parts.pages.login.admit(head, settings), request_id)
                return None
            if not guard.PAGE_HEADERS.isdisjoint(head.headers):
                guard.check_origin(head, settings.server)
                preflight = cors_preflight(head, settings)
                if preflight is not None:
                    return preflight
            asked = self._parts.routes.match(head)
            if asked.operation == "login":
                raise NoRoute(self._parts.routes.dialect_of(head))  # it is off
            caller = self._admitted_caller(head, asked, settings)
            head.admission = _Admitted(Incoming(settings, head, asked, caller), request_id)
            return None
        except NoRoute as lost:
            refused = self._refused(head, self._parts.routes.nowhere(head, lost), request_id, lost.dialect)
            if lost.allowed:
                refused.headers.append(("allow", ", ".join(lost.allowed)))
            return refused
        except RequestError as error:
            return self._refused(head, error, request_id, self._parts.routes.dialect_of(head))

    def _admitted_caller(self, head: Head, asked: Asked, settings: Settings) -> Caller:
        """The caller of a request whose form is right."""
        keeper = self._parts.gatekeeper
        if asked.operation in _STATE:
            has_body = head.method != "GET" and head.headers.get("content-length", "0") != "0"
        else:
            has_body = asked.operation in _WITH_BODY and head.method == "POST"
        if has_body:
            guard.check_body_form(head, typed=surface(asked.dialect).client.typed_bodies)
        elif asked.operation == "telemetry":
            guard.check_body_form(head, is_telemetry=True)
        if asked.operation == "admin":
            return keeper.admin(head, settings)
        if asked.operation == "metrics":
            return keeper.metrics(head, settings)
        caller = LOCAL if asked.open else keeper.caller(head, asked, settings)
        if asked.operation == "websocket":
            self._parts.pages.sockets.check(head, caller, settings)
        if head.familiar is not None and not asked.open and has_body:
            head.familiar.found = _Known(settings, asked, keeper.digests(head, asked))
        return caller

    def body_limit(self, head: Head) -> int:
        asked = head.admission.incoming.asked
        limit = self._body_limits[asked.dialect]
        if asked.operation == "telemetry":
            return min(limit, telemetry_intake.MAX_BODY)
        if asked.operation == "login":
            return min(limit, MAX_BODY_BYTES)
        return min(limit, max_body_bytes(asked)) if asked.operation == "inspector" else limit

    def too_large(self, head: Head, limit: int) -> Refusal:
        error = RequestError("too_large", f"the body is larger than {limit} bytes")
        return self._refused(head, error, new_request_id(), self._parts.routes.dialect_of(head), close=True)

    def overloaded(self, head: Head) -> Refusal:
        error = no_room()
        return self._refused(head, error, new_request_id(), self._parts.routes.dialect_of(head), close=True)

    def stalled(self, head: Head) -> Refusal:
        error = RequestError("bad", "the body stopped arriving", code="request_timeout")
        refused = self._refused(
            head, error, new_request_id(), self._parts.routes.dialect_of(head), close=True
        )
        return msgspec.structs.replace(refused, status=408)

    def refuse_message(self, incoming: Incoming, error: RequestError) -> Refusal:
        """The refusal of a WebSocket message that did not become a request."""
        dialect, caller = incoming.asked.dialect, incoming.caller.name
        return self._refused(incoming.head, error, new_request_id(), dialect, caller=caller)

    def _refused(
        self,
        head: Head,
        error: RequestError,
        request_id: str,
        dialect_name: str,
        *,
        close: bool = False,
        caller: str = "",
    ) -> Refusal:
        record = _record(head, request_id, dialect_name)
        record.caller = caller
        if is_inspector(head.path):
            record.operation = "inspector"
        record.failed(error.error)
        refused = errors.refusal(error.error, dialect_name, request_id, final=error.final, close=close)
        record.answered(refused.status)
        self.observer.begin(record)
        self.observer.finish(record)
        headers = [*refused.headers, *identity(request_id, dialect_name)]
        if is_inspector(head.path):
            headers = secured(head.path, headers)
        return msgspec.structs.replace(refused, headers=headers)

    # Answer one request.

    async def handle(self, head: Head, body: bytes, reply: Reply) -> None:
        admitted: _Admitted = head.admission
        head.admission = None  # they reference each other: this frees them without the garbage collector
        incoming = admitted.incoming
        asked = incoming.asked
        if asked.operation in _UNRECORDED:
            await self._answer_unrecorded(incoming, body, reply)
            return
        worker.set(head.peer if incoming.caller.key is None else incoming.caller.name)
        client = surface(asked.dialect).client
        if (client.cloud or client.framing) and not admitted.within:
            # The gateway's own requests have the vendor's form.
            incoming, body, reply = await _in_vendor_form(incoming, body, reply, client)
            head = incoming.head
        record = _record(head, admitted.id, asked.dialect)
        record.operation = admitted.operation or asked.operation
        record.caller, record.within = incoming.caller.name, admitted.within
        is_looking = asked.operation == "inspector"
        """The inspector's own requests are not part of the traffic: they are not counted or recorded."""
        if is_looking:
            reply = SecuredReply(head.path, reply)
        else:
            self.observer.begin(record)
        exchange: Exchange | None = None
        recording: Recording | None = None
        traces = self.traces
        if traces.policy.active or traces.memory.most:
            recording = traces.begin(incoming, body, record)
            if recording is not None:
                if type(reply) is ServerReply:
                    reply.copy = recording.answer
                else:
                    reply = RecordedReply(reply, recording.answer)
        try:
            if is_looking or asked.operation in _PAGES:
                await self._answer_page(_page(incoming, body, reply, record))
            else:
                turn = self._parts.gates.starts.turn()
                if turn is not None:
                    await turn
                now = int(time.time())
                if len(body) < self.memories.least_bytes:
                    job = read(incoming, body, id=record.id, now=now)
                else:
                    job = await self._read(incoming, body, record.id, now)
                exchange = Exchange(
                    job, record, reply, self.observer.redactor, held=MemoryLease(self.account)
                )
                if not admitted.within:
                    exchange.estimates = self._parts.pipeline.parts.counting.expected_input
                exchange.tap = recording
                if admitted.round is not None:
                    admitted.round.begin(exchange)
                await self._parts.pipeline.of(exchange).answer(exchange)
        except asyncio.CancelledError:
            self._cancelled(exchange, record, reply)
            raise
        except Exception as problem:  # whatever it is, the caller gets an error and the process continues
            if admitted.round is not None:
                admitted.round.problem = problem
            self._tell(problem, exchange, record, reply)
        finally:
            self._over(exchange, record, recording)

    async def _answer_unrecorded(self, incoming: Incoming, body: bytes, reply: Reply) -> None:
        """Answer a request that is not recorded. The messages of a socket are requests of their own."""
        head, asked, pages = incoming.head, incoming.asked, self._parts.pages
        if asked.operation == "websocket":
            await pages.sockets.serve(incoming, cast(UpgradableReply, reply))
        elif asked.operation == "telemetry":
            await pages.telemetry.answer(incoming.settings.telemetry, head, asked, body, reply)
        else:
            await pages.health.answer(head, asked, reply)

    async def _answer_page(self, page: PageRequest) -> None:
        pages, operation = self._parts.pages, page.asked.operation
        if operation == "inspector":
            await pages.inspector.answer(page)
        elif operation == "login":
            await pages.login.answer(page)
        elif operation in ModelPages.OPERATIONS:
            await pages.models.answer(page)
        else:
            await pages.state.answer(page)

    def _over(self, exchange: Exchange | None, record: ExchangeRecord, recording: Recording | None) -> None:
        if exchange is not None:
            exchange.close()
        if recording is not None:
            self.traces.over(recording)
        if record.operation != "inspector":
            self.observer.finish(record)
        if recording is not None and record.recorded:
            self.traces.keep(recording)

    async def _read(self, incoming: Incoming, body: bytes, id: str, now: int) -> Job:
        """Parse a body. The result may be cached; a large body is parsed in a worker thread."""
        caller = incoming.caller.name
        memory = self.memories.for_next_turn(caller, body)
        find = self.memories.finder(caller)
        large, known = len(body) > LARGE_BYTES, None
        if large:
            known = known_of(body, memory, surface(incoming.asked.dialect).client.turns)
        reading = partial(read, incoming, body, id=id, now=now, memory=memory, grown=known, find_memory=find)
        return await run_in_thread(reading) if large and known is None else reading()

    async def submit(
        self,
        incoming: Incoming,
        body: bytes,
        reply: Reply,
        within: str = "",
        operation: str = "",
        round: OwnRound | None = None,
    ) -> str:
        """Answer a request of the gateway itself like one from a client. Returns its id."""
        incoming.head.admission = _Admitted(
            incoming, request_id := new_request_id(), within, operation, round
        )
        await self.handle(incoming.head, body, reply)
        return request_id

    async def prewarm(self, incoming: Incoming, body: bytes, reply: Reply) -> None:
        """Handle a request that is only read and checked: it gets an empty answer, and no provider is
        called."""
        record = _record(incoming.head, new_request_id(), incoming.asked.dialect)
        record.operation, record.caller = "prewarm", incoming.caller.name
        self.observer.begin(record)
        try:
            job = await self._read(incoming, body, record.id, int(time.time()))
            job = msgspec.structs.replace(job, context=msgspec.structs.replace(job.context, generates=False))
            exchange = Exchange(job, record, reply, self.observer.redactor, held=MemoryLease(self.account))
            try:
                admit(self._parts.gates, exchange)
                writer = exchange.codec.stream_writer(job.context, exchange.request())
                id = f"resp_{record.id.removeprefix('req_')}"
                events: list[Event] = [Start(id, job.model, int(time.time())), Finish(Stop("end"), Usage())]
                record.answered()
                reply.start(200, exchange.headers())
                reply.write(writer.write(events))
                reply.end()
            finally:
                exchange.close()
        except asyncio.CancelledError:
            self._cancelled(None, record, reply)
            raise
        except Exception as problem:  # as in `handle`
            self._tell(problem, None, record, reply)
        finally:
            self.observer.finish(record)

    # Log the failure of a request and report it to the client.

    def _tell(
        self, problem: Exception, exchange: Exchange | None, record: ExchangeRecord, reply: Reply
    ) -> None:
        error = error_of(problem, record.id, self.observer.redactor, self.observer.note)
        fix = problem.fix if isinstance(problem, AttemptFailed) else ""
        record.failed(error, fix)
        if fix and exchange is not None and tells_all(exchange):
            said = f"{error.message} | {self.observer.redactor.text(fix)}"
            error = msgspec.structs.replace(error, message=said)
        if exchange is not None and isinstance(problem, AttemptFailed):
            error = shown(error, exchange)
        opened = exchange is not None and exchange.client is not None and exchange.client.opened
        if opened:
            _tell_in_stream(exchange, record, error)
            return
        if exchange is not None:
            exchange.budget_headers = ()
        headers = exchange.headers() if exchange is not None else identity(record.id, record.dialect)
        if isinstance(problem, RequestError):
            headers += problem.headers
        final = is_final(problem)
        if isinstance(problem, AttemptFailed):
            if (
                problem.body is not None
                and problem.blame != "credential"
                and (exchange is None or may_pass(problem.error, problem.body, exchange))
            ):
                # In its own dialect an upstream's error is passed on unchanged, except for secrets.
                body = redacted(problem.body, self.observer.redactor)
                headers = [*errors.error_headers(error, problem.status, final=final), *headers]
                _send(record, reply, problem.status, headers, body)
                return
        elif isinstance(problem, RequestError) and problem.document is not None:
            document = {**problem.document, "request_id": record.id}
            _send(record, reply, error.status, headers, encode(document))
            return
        refused = errors.refusal(error, record.dialect, record.id, final=final)
        _send(record, reply, refused.status, [*refused.headers[1:], *headers], refused.body)

    def _cancelled(self, exchange: Exchange | None, record: ExchangeRecord, reply: Reply) -> None:
        """The client left, or the process is stopping: report that to everyone who still listens."""
        if not self.draining:
            record.left()
            return
        ending = RequestError("shed", "the gateway is shutting down", retry_after=1)
        if not reply.started or (exchange is not None and exchange.client is not None):
            self._tell(ending, exchange, record, reply)
        record.cut_off()

    # For `GatewayPages` and other parts.

    @property
    def condition(self) -> Condition:
        state = self._parts.state
        trouble = state.trouble or state.ledger.trouble
        return Condition(self.draining, trouble, state.ledger.full, self.config_refused)

    async def scrape(self) -> bytes:
        """The metrics of this process, with those of its sibling workers where there are any."""
        if self.siblings is not None:
            return await self.siblings.gather()
        return self.observer.metrics.render()


async def _in_vendor_form(
    incoming: Incoming, body: bytes, reply: Reply, client: ClientSide
) -> tuple[Incoming, bytes, Reply]:
    """A request in a cloud's form -> the vendor's; its reply is framed as the cloud does."""
    form, framing = client.cloud, client.framing
    if form is not None:
        rewriting = partial(in_vendor_form, incoming, body, form)
        incoming, body = await run_in_thread(rewriting) if len(body) > LARGE_BYTES else rewriting()
        framing = form.framing
    return incoming, body, FramedReply(reply, framing) if framing is not None else reply


def _body_limits(settings: Settings) -> dict[str, int]:
    """The maximum size of a body in each dialect."""
    return {spoken.name: settings.limits.body_of(spoken.name) for spoken in surfaces()}


def _record(head: Head, request_id: str, dialect_name: str) -> ExchangeRecord:
    return ExchangeRecord(
        request_id,
        time.monotonic(),
        dialect=dialect_name,
        path=head.path,
        agent=head.headers.get("user-agent", ""),
        traceparent=head.headers.get("traceparent", ""),
        routine=head.method == "GET" and _is_routine(head),
    )


def _is_routine(head: Head) -> bool:
    """Whether it is a read of the gateway's figures (the status line of a client sends two at each refresh),
    or of its models by one of its own commands. Other reads of theirs are logged: any client can send their
    user agent."""
    path = head.path.removeprefix(SECOND_ROOT)
    if path.startswith(_FIGURES):
        return True
    is_list = path == "/" or path.startswith(_MODEL_LISTS)
    return is_list and head.headers.get("user-agent", "").startswith(OWN_AGENT)


def _page(incoming: Incoming, body: bytes, reply: Reply, record: ExchangeRecord) -> PageRequest:
    return PageRequest(
        settings=incoming.settings,
        caller=incoming.caller,
        head=incoming.head,
        asked=incoming.asked,
        body=body,
        reply=reply,
        record=record,
    )


def _tell_in_stream(exchange: Exchange | None, record: ExchangeRecord, error: ApiError) -> None:
    """The status has been sent already, so the error is reported in the stream."""
    assert exchange is not None
    assert exchange.client is not None
    record.answered()
    if exchange.client.begun and exchange.feeder is not None:
        exchange.feeder.fail(error)
        return
    error = msgspec.structs.replace(error, request_id=record.id)
    writer = exchange.codec.stream_writer(exchange.job.context, None)
    exchange.client.write(writer.write([Failure(error)]), last=True, answers=False)
    exchange.client.end()


def _send(record: ExchangeRecord, reply: Reply, status: int, headers: Headers, body: bytes) -> None:
    record.answered(status)
    reply.send(status, [JSON, *headers], body)
