"""Creates the parts of a gateway and connects them: the only module that knows all of them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from wireglot.gateway.app import Gateway, GatewayPages, GatewayParts
from wireglot.gateway.config.edit import ConfigSource
from wireglot.gateway.entry.callers import Gatekeeper
from wireglot.gateway.entry.gates import Gates, no_room
from wireglot.gateway.entry.routes import Routes
from wireglot.gateway.errors import RequestError
from wireglot.gateway.hosted.mcp import McpRunner
from wireglot.gateway.hosted.runner import HostedRunners
from wireglot.gateway.hosted.tool_search import ToolSearchRunner
from wireglot.gateway.hosted.web import SearchLedger, SourceSealer, web_runners
from wireglot.gateway.inspector.access import TICKET_SECONDS, InspectorSessions
from wireglot.gateway.inspector.config_page import ConfigPages
from wireglot.gateway.inspector.inspector import Inspector, inspector_handlers
from wireglot.gateway.inspector.preview import Preview
from wireglot.gateway.login.pages import LoginPages
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.pages import health as health_pages
from wireglot.gateway.pages.counts import Counting
from wireglot.gateway.pages.health import HealthPages
from wireglot.gateway.pages.models import ModelPages, UpstreamLists
from wireglot.gateway.pages.telemetry_intake import TelemetryIntake
from wireglot.gateway.relay.context_sizes import ContextSizes
from wireglot.gateway.relay.embeddings import EmbeddingDelivery
from wireglot.gateway.relay.embeddings import prepare as prepare_embedding
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.relay.web_tools import WebTools
from wireglot.gateway.request.exchange import Exchange, OwnRound
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.pages import StatePages
from wireglot.gateway.state.quotas.tool_uses import ToolUses
from wireglot.gateway.state.state import State
from wireglot.gateway.steps import Pipeline, StepParts, hosted_tool_offer
from wireglot.gateway.targets.health import Health
from wireglot.gateway.targets.routing import Router
from wireglot.gateway.trace.pages import TracePages
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.websockets import SocketService
from wireglot.http.account import ByteAccount
from wireglot.http.application import Refusal, Reply
from wireglot.http.transport import Transport
from wireglot.logins.login import LoginFailed
from wireglot.web.contract import Fetch, WebSearch
from wireglot_core.cache.caches import Memories
from wireglot_core.dialects.registry import surfaces

NO_SOURCE: Final = ConfigSource(why_fixed="this gateway has no configuration file")


class _Link:
    """What parts ask the gateway, which is made last."""

    gateway: Gateway

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def submit(
        self,
        incoming: Incoming,
        body: bytes,
        reply: Reply,
        within: str = "",
        operation: str = "",
        round: OwnRound | None = None,
    ) -> Coroutine[Any, Any, str]:
        return self.gateway.submit(incoming, body, reply, within, operation, round)

    def prewarm(self, incoming: Incoming, body: bytes, reply: Reply) -> Coroutine[Any, Any, None]:
        return self.gateway.prewarm(incoming, body, reply)

    def refuse_message(self, incoming: Incoming, error: RequestError) -> Refusal:
        return self.gateway.refuse_message(incoming, error)

    def scrape(self) -> Coroutine[Any, Any, bytes]:
        return self.gateway.scrape()

    def current(self) -> Settings:
        return self.gateway.settings

    def signed_in(self, account: str, failed: LoginFailed | None) -> None:
        _note_sign_in(self._observer, self.gateway.settings, account, failed)

    def count_error(self, provider: str, kind: str) -> None:
        self._observer.metrics.upstream_errors.add((provider, kind))

    def count_hosted_call(self, tool: str, backend: str, outcome: str) -> None:
        self._observer.metrics.hosted_calls.add((tool, backend, outcome))


class _RequestPath(msgspec.Struct, frozen=True, eq=False):
    """What a request meets on its way to a provider."""

    routes: Routes
    gatekeeper: Gatekeeper
    gates: Gates
    account: ByteAccount
    router: Router
    health: Health
    sign_ins: SignIns
    web: WebTools
    contexts: ContextSizes
    relay: Relay
    steps: StepParts


class _Inspection(msgspec.Struct, frozen=True, eq=False):
    """What shows requests, and who may look."""

    traces: Traces
    state_pages: StatePages
    sessions: InspectorSessions
    inspector: Inspector


def compose(
    settings: Settings,
    transports: dict[str, Transport],
    observer: Observer,
    state: State,
    source: ConfigSource = NO_SOURCE,
) -> Gateway:
    """Build a complete gateway. `transports`: by URL scheme. `source`: where its configuration comes from,
    for the page that edits it."""
    link = _Link(observer)
    path = _request_path(settings, transports, observer, state, link)
    inspection = _inspection(settings, transports, observer, state, source, link, path)
    sockets = SocketService(
        current=link.current,
        gatekeeper=path.gatekeeper,
        routes=path.routes,
        submit=link.submit,
        prewarm=link.prewarm,
        refuse=link.refuse_message,
    )
    gateway = link.gateway = Gateway(
        settings,
        GatewayParts(
            observer=observer,
            state=state,
            routes=path.routes,
            gatekeeper=path.gatekeeper,
            gates=path.gates,
            account=path.account,
            memories=Memories(lambda: link.gateway.settings.limits, path.account),
            router=path.router,
            health=path.health,
            sign_ins=path.sign_ins,
            relay=path.relay,
            pipeline=Pipeline(path.steps),
            traces=inspection.traces,
            web=path.web,
            pages=_pages(transports, observer, state, link, path, inspection, sockets),
        ),
    )
    health_pages.publish(observer, path.gates, path.health, lambda: path.relay.waiting)
    sockets.publish(observer.metrics)
    state.ledger.publish(observer.metrics)
    state.publish(observer.metrics)
    inspection.traces.publish(observer.metrics)
    return gateway


def _request_path(
    settings: Settings, transports: dict[str, Transport], observer: Observer, state: State, link: _Link
) -> _RequestPath:
    gates, router, health = Gates(settings.limits), Router(settings), Health()
    sign_ins = SignIns(link.signed_in, observer.hide)
    web = WebTools(link.submit, transports)
    contexts = ContextSizes(transports)
    relay = Relay(
        transports,
        health,
        link.count_error,
        sign_ins=sign_ins,
        ask=link.submit,
        is_gone=state.keys.is_gone,
        media=web.media,
        contexts=contexts,
    )
    uses = ToolUses(state.quotas.tools, state.ledger)
    steps = StepParts(
        state=state,
        router=router,
        gates=gates,
        counting=Counting(relay),
        relay=relay,
        embedding=relay.carrying(prepare_embedding, EmbeddingDelivery(relay).deliver),
        runners=hosted_runners(web.search, web.fetch, SourceSealer(state.sealer), uses),
        ask_round=link.submit,
        count_hosted_call=link.count_hosted_call,
    )
    return _RequestPath(
        routes=Routes(surfaces()),
        gatekeeper=Gatekeeper(time.monotonic, state.keys),
        gates=gates,
        account=ByteAccount(settings.limits.buffered, no_room),
        router=router,
        health=health,
        sign_ins=sign_ins,
        web=web,
        contexts=contexts,
        relay=relay,
        steps=steps,
    )


def _inspection(
    settings: Settings,
    transports: dict[str, Transport],
    observer: Observer,
    state: State,
    source: ConfigSource,
    link: _Link,
    path: _RequestPath,
) -> _Inspection:
    sessions = InspectorSessions(operator_key=lambda: state.keys.operator_key)
    traces = Traces(
        settings,
        observer,
        state.sealer,
        state.fleet_log,
        sessions,
        asks_for_keys=lambda: path.gatekeeper.asks_for_keys(link.gateway.settings),
    )
    state_pages = StatePages(state, traces.forget)
    preview = Preview(lambda: observer.redactor, hosted_tool_offer(path.steps))
    general = inspector_handlers(
        state, state_pages.admin, path.health, link.scrape, link.submit, traces, preview, source
    )
    inspector = Inspector(
        path.routes.match,
        path.gatekeeper,
        link.current,
        observer.note,
        sessions=sessions,
        command=traces.command,
        claim=lambda name: state.counters.lock(name, secrets.token_hex(8), TICKET_SECONDS),
        handlers={
            **general,
            **ConfigPages(source, link.current, transports.get("https"), observer.note).handlers,
            **TracePages(traces, state.losses.find, lambda: path.gates.draining).handlers(),
        },
    )
    return _Inspection(traces, state_pages, sessions, inspector)


def _pages(
    transports: dict[str, Transport],
    observer: Observer,
    state: State,
    link: _Link,
    path: _RequestPath,
    inspection: _Inspection,
    sockets: SocketService,
) -> GatewayPages:
    lists = UpstreamLists(transports, sign_ins=path.sign_ins, contexts=path.contexts)
    return GatewayPages(
        health=HealthPages(lambda: link.gateway.condition, link.scrape, path.routes.probe),
        models=ModelPages(lists),
        state=inspection.state_pages,
        inspector=inspection.inspector,
        telemetry=TelemetryIntake(transports, observer.metrics.client_telemetry, observer.note),
        sockets=sockets,
        login=LoginPages(
            path.routes.match,
            state=state,
            gatekeeper=path.gatekeeper,
            inspector=inspection.sessions,
            transports=transports,
            note=observer.note,
        ),
    )


def hosted_runners(
    search: Callable[[Exchange], WebSearch | None],
    fetch: Callable[[Exchange], Fetch | None],
    seal: SourceSealer,
    uses: SearchLedger,
) -> HostedRunners:
    """Everything that runs hosted tools, by their kinds."""
    runners = web_runners(search, fetch, seal, uses)
    return {**runners, "tool_search": ToolSearchRunner(), "mcp": McpRunner()}


def _note_sign_in(observer: Observer, settings: Settings, account: str, failed: LoginFailed | None) -> None:
    named = [
        provider.name
        for provider in settings.providers.values()
        if any(credential.account == account for credential in provider.credentials)
    ]
    who = ", ".join(named) or "a previous provider"
    if failed is None:
        observer.note("info", "signed in", provider=who)
    else:
        observer.note("warn", "login failed", provider=who, detail=failed.message, fix=failed.fix)
