"""What the gateway would send for a request, its target and the estimated cost. Nothing is sent."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from wireglot import __version__
from wireglot.gateway.config.prices import known_price
from wireglot.gateway.entry.callers import check_permitted
from wireglot.gateway.entry.guard import new_request_id
from wireglot.gateway.errors import RequestError, with_request_errors
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.pages.models import listed, models, permitted
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.relay.media import NeedsMedia
from wireglot.gateway.relay.preparation import prepare_best
from wireglot.gateway.request.account_details import shown_model
from wireglot.gateway.request.attempt import Attempt
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import Incoming, in_vendor_form, read
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.token_weight import TOKEN, token_weight
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.request.worker_thread import LARGE_BYTES, run_in_thread
from wireglot.gateway.settings import Provider, Settings
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target, Unroutable, route
from wireglot.gateway.trace.made_trace import made_trace
from wireglot.gateway.trace.own_view import HIDDEN, own_trace
from wireglot.gateway.trace.recording import recording_of
from wireglot.gateway.trace.search import Limiter
from wireglot.http.account import ByteAccount, MemoryLease
from wireglot.http.copies import Room
from wireglot.http.redaction import Redactor
from wireglot_core.dialects.registry import COMMON, surface
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.prices import cost
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.trace import Trace

_OUTPUT_UNSAID: Final = 128 * 1024
# Bytes of a request that is previewed.
_MAX_BYTES: Final = 16 * MIB
# Targets that the page offers for a preview.
_MAX_TARGETS: Final = 4000
_AT_ONCE_BYTES: Final = 8 * KIB
"""A few milliseconds, including the links between the documents."""

OfferTools = Callable[[Exchange], Awaitable[None] | None]
"""Offers functions in place of the tools that the gateway runs itself."""


class Targets:
    """`GET /inspector/api/targets`: the models that a request can be sent to, and those of catalog providers
    that are not configured: for these a request is translated, but not sent."""

    async def targets(self, page: PageRequest, viewer: Viewer) -> None:
        settings = page.settings
        listing = [each for each in permitted(models(settings, COMMON), page.caller.key) if not each.embeds]
        on = [
            {"id": model.id, "on": True, "context": model.context, "output": model.output}
            for model in listing
        ]
        off = [
            {"id": f"{name}/{entry.match}", "on": False, "context": entry.input_limit, "output": entry.output}
            for name in catalog.names()
            if name not in settings.providers
            for entry in catalog.provider(name).models
            if entry.answers and not route_provider(settings, f"{name}/{entry.match}")
        ]
        page.send({"targets": [*on, *off][:_MAX_TARGETS], "count": len(on) + len(off)})


def with_catalog(settings: Settings, model: str) -> Settings:
    """The settings with the provider that a model names, if only the catalog knows it: for a translation,
    which needs no key. Returns the same settings if the model can be routed already."""
    name = model.partition("/")[0]
    if name not in catalog.names() or name in settings.providers or route_provider(settings, model):
        return settings
    spec = catalog.provider(name)
    unset = {each: f"{{{each}}}" for each, value in spec.variables.items() if value.startswith("env:")}
    added = Provider(name, spec, variables=unset)
    return msgspec.structs.replace(settings, providers={**settings.providers, name: added})


class Preview:
    def __init__(self, redactor: Callable[[], Redactor], offer: OfferTools) -> None:
        """`redactor`: returns the one of the current settings."""
        self._redactor = redactor
        self._offer = offer
        self._turn = Limiter(1, run_in_thread)

    async def estimate(
        self, page: PageRequest, viewer: Viewer, incoming: Incoming, model: str, body: bytes, *, shows: bool
    ) -> dict[str, Any]:
        """Which key pays, the estimated cost, and, with `shows`, what would be sent: as an exchange without
        an answer yet. `incoming`: as it would be sent."""
        settings = incoming.settings
        provider = route_provider(settings, model)
        is_on = provider in page.settings.providers
        if is_on or not provider:  # the error names the providers that are on
            check_permitted(page.caller.key, model)
        exchange = await _exchange(incoming, body, self._redactor())
        try:
            exchange.targets = _targets(settings, model, incoming.asked.dialect)
            target = exchange.targets[0]
            reported = _reported(page, viewer, exchange, target) | {"sends": is_on}
            if shows:
                try:
                    would = await self._would(exchange, target)
                    reported["would"] = would if viewer.sees_all else _without_account(would, target)
                except RequestError as refused:  # and so would the request be
                    reported["why"] = str(refused)
                except NeedsMedia as needed:
                    files = f"{len(needed.wanted)} files"
                    reported["why"] = (
                        f"the gateway downloads {files} for this model before it sends the request"
                    )
            return reported
        finally:
            exchange.close()

    async def _would(self, exchange: Exchange, target: Target) -> Trace:
        job = exchange.job
        exchange.attempt = Attempt(job.policy or target.losses or job.settings.losses)
        offering = self._offer(exchange)
        if offering is not None:
            await offering
        if len(job.body) > _AT_ONCE_BYTES:
            return await self._turn.do(lambda: self._trace(exchange, target))
        return self._trace(exchange, target)

    def _trace(self, exchange: Exchange, target: Target) -> Trace:
        job, record = exchange.job, exchange.record
        pool = target.provider.credentials
        # Signatures and sign-ins are made when a request is sent.
        credential = pool[0] if pool and pool[0].login is None and pool[0].signing is None else None
        target, prepared = prepare_best(exchange, target, credential)
        _note_attempt(record, target, prepared)
        recording = recording_of(job.head, job.body, record, Room(_MAX_BYTES), body_bytes=_MAX_BYTES)
        asked = prepared.asked or (prepared.request if exchange.differs or exchange.rewritten else None)
        recording.asking(target, prepared, asked)
        trace = made_trace(recording, exchange.redactor, "")
        row = msgspec.structs.replace(trace.row, state="done")
        return with_analysis(msgspec.structs.replace(trace, version=__version__, row=row))


def route_provider(settings: Settings, model: str) -> str:
    """The provider that a request goes to first; "" if there is none."""
    try:
        return route(settings, model, COMMON)[0].provider.name
    except Unroutable:
        return ""


async def _exchange(incoming: Incoming, body: bytes, redactor: Redactor) -> Exchange:
    cloud = surface(incoming.asked.dialect).client.cloud
    if cloud is not None:
        incoming, body = in_vendor_form(incoming, body, cloud)
    id, now = new_request_id(), time.time()
    job = read(incoming, body, id=id, now=int(now))
    head = incoming.head
    record = ExchangeRecord(
        id, time.monotonic(), dialect=job.dialect, path=head.path, agent=head.headers.get("user-agent", "")
    )
    record.operation, record.caller = incoming.asked.operation, incoming.caller.name
    lease = MemoryLease(ByteAccount(_MAX_BYTES))
    exchange = Exchange(job, record, CollectedReply(), redactor, held=lease)
    if len(body) > LARGE_BYTES:
        await run_in_thread(exchange.request)
    return exchange


def _targets(settings: Settings, model: str, spoken: str) -> tuple[Target, ...]:
    try:
        return route(settings, model, spoken)
    except Unroutable as nowhere:
        raise RequestError("not_found", f"to: {nowhere}", param="to") from None


def _note_attempt(record: ExchangeRecord, target: Target, prepared: Prepared) -> None:
    record.asked(
        target.provider.name,
        target.model,
        target.dialect,
        url=prepared.outbound.url,
        passthrough=prepared.raw,
        losses=prepared.losses,
    )


def _without_account(would: Trace, target: Target) -> Trace:
    """For a viewer with a client key: what happens to the document, without its target and the account that
    pays. Raises RequestError if the document names the account."""
    shown = own_trace(would, {target.provider.name: target.provider})
    if any(each.request is not None and each.request.body == HIDDEN for each in shown.attempts):
        text = "only the operator can see the upstream request: it names the provider's account"
        raise RequestError("permission", text)
    return shown


def _reported(page: PageRequest, viewer: Viewer, exchange: Exchange, target: Target) -> dict[str, Any]:
    settings, request = exchange.job.settings, with_request_errors(exchange.request)
    known = listed(settings, f"{target.provider.name}/{target.model}", exchange.job.dialect)
    most = known.output if known is not None else 0
    output = min(request.max_tokens or most or _OUTPUT_UNSAID, most or _OUTPUT_UNSAID)
    usage = Usage(input=token_weight(request) // TOKEN, output=output)
    price = known_price(settings, target.provider.name, target.model, int(time.time() * 1000))
    credential = target.provider.credentials[0] if target.provider.credentials else None
    source = credential.secret.source if credential is not None else ""
    return {
        "model": target.model if viewer.sees_all else shown_model(target.model),
        "provider": target.provider.name,
        "dialect": target.dialect,
        "pays": source if viewer.sees_all else target.provider.name,
        "key": page.caller.name,
        "context": known.context if known is not None else 0,
        "output": most,
        "estimate": {
            "input": usage.input,
            "max_output": usage.output,
            "cost": cost(price, usage) if price is not None else None,
            "currency": settings.currency,
        },
    }
