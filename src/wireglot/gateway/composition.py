"""Creates the parts of a gateway and connects them: the only module that knows all of them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final

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


def compose(
    settings: Settings,
    transports: dict[str, Transport],
    observer: Observer,
    state: State,
    source: ConfigSource = NO_SOURCE,
) -> Gateway:
    """Build a complete gateway. `transports`: by URL scheme. `source`: where its configuration comes from,
    for the page that edits it."""

    # What parts ask the gateway, which is made last.

    async def submit(
        incoming: Incoming,
        body: bytes,
        reply: Reply,
        within: str = "",
        operation: str = "",
        round: OwnRound | None = None,
    ) -> str:
        return await gateway.submit(incoming, body, reply, within, operation, round)

    async def prewarm(incoming: Incoming, body: bytes, reply: Reply) -> None:
        await gateway.prewarm(incoming, body, reply)

    def refuse_message(incoming: Incoming, error: RequestError) -> Refusal:
        return gateway.refuse_message(incoming, error)

    async def scrape() -> bytes:
        return await gateway.scrape()

    def current() -> Settings:
        return gateway.settings

    def signed_in(account: str, failed: LoginFailed | None) -> None:
        _note_sign_in(observer, gateway.settings, account, failed)

    def count_error(provider: str, kind: str) -> None:
        observer.metrics.upstream_errors.add((provider, kind))

    def count_hosted_call(tool: str, backend: str, outcome: str) -> None:
        observer.metrics.hosted_calls.add((tool, backend, outcome))

    # The path of a request.
    routes = Routes(surfaces())
    gatekeeper = Gatekeeper(time.monotonic, state.keys)
    gates = Gates(settings.limits)
    account = ByteAccount(settings.limits.buffered, no_room)
    router = Router(settings)
    health = Health()
    sign_ins = SignIns(signed_in, observer.hide)
    web = WebTools(submit, transports)
    contexts = ContextSizes(transports)
    relay = Relay(
        transports,
        health,
        count_error,
        sign_ins=sign_ins,
        ask=submit,
        is_gone=state.keys.is_gone,
        media=web.media,
        contexts=contexts,
    )
    embedding = relay.carrying(prepare_embedding, EmbeddingDelivery(relay).deliver)
    counting = Counting(relay)
    uses = ToolUses(state.quotas, state.ledger)
    runners = hosted_runners(web.search, web.fetch, SourceSealer(state.sealer), uses)
    steps = StepParts(
        state=state,
        router=router,
        gates=gates,
        counting=counting,
        relay=relay,
        embedding=embedding,
        runners=runners,
        ask_round=submit,
        count_hosted_call=count_hosted_call,
    )

    # Pages.
    sessions = InspectorSessions(operator_key=lambda: state.keys.operator_key)
    traces = Traces(
        settings,
        observer,
        state.sealer,
        state.fleet_log,
        sessions,
        asks_for_keys=lambda: gatekeeper.asks_for_keys(gateway.settings),
    )
    state_pages = StatePages(state, traces.forget)
    preview = Preview(lambda: observer.redactor, hosted_tool_offer(steps))
    inspector = Inspector(
        routes.match,
        gatekeeper,
        current,
        observer.note,
        sessions=sessions,
        command=traces.command,
        claim=lambda name: state.counters.lock(name, secrets.token_hex(8), TICKET_SECONDS),
        handlers={
            **inspector_handlers(state, state_pages.admin, health, scrape, submit, traces, preview, source),
            **ConfigPages(source, current, transports.get("https"), observer.note).handlers,
            **TracePages(traces, state.losses.find, lambda: gates.draining).handlers(),
        },
    )

    sockets = SocketService(
        current=current,
        gatekeeper=gatekeeper,
        routes=routes,
        submit=submit,
        prewarm=prewarm,
        refuse=refuse_message,
    )
    gateway = Gateway(
        settings,
        GatewayParts(
            observer=observer,
            state=state,
            routes=routes,
            gatekeeper=gatekeeper,
            gates=gates,
            account=account,
            memories=Memories(lambda: gateway.settings.limits, account),
            router=router,
            health=health,
            sign_ins=sign_ins,
            relay=relay,
            pipeline=Pipeline(steps),
            traces=traces,
            web=web,
            pages=GatewayPages(
                health=HealthPages(lambda: gateway.condition, scrape, routes.probe),
                models=ModelPages(UpstreamLists(transports, sign_ins=sign_ins, contexts=contexts)),
                state=state_pages,
                inspector=inspector,
                telemetry=TelemetryIntake(transports, observer.metrics.client_telemetry, observer.note),
                sockets=sockets,
                login=LoginPages(
                    routes.match,
                    state=state,
                    gatekeeper=gatekeeper,
                    inspector=sessions,
                    transports=transports,
                    note=observer.note,
                ),
            ),
        ),
    )
    health_pages.publish(observer, gates, health, lambda: relay.waiting)
    sockets.publish(observer.metrics)
    state.ledger.publish(observer.metrics)
    state.publish(observer.metrics)
    traces.publish(observer.metrics)
    return gateway


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
