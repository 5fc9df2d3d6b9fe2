"""Sends an upstream's answer to the client: whole or streamed, passed through or translated, and stored if a
part of it is needed later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.candidates import Candidates, with_further
from wireglot.gateway.relay.judge import Judge
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.headers import ESTIMATE, JSON
from wireglot.gateway.request.token_weight import ESTIMATED, is_unreported, parts_weight, tells_usage
from wireglot.gateway.request.worker_thread import LARGE_BYTES, run_in_thread
from wireglot.gateway.settings import ClientKey
from wireglot.gateway.streams.collection import Collection
from wireglot.gateway.streams.feeder import Feeder, HoldsEnd, Pump, asked, reasoning_filter, shown_searches
from wireglot.gateway.streams.passthrough import Passthrough
from wireglot.gateway.streams.translation import Translation
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot.http.transport import Answer, TransportFault
from wireglot_core.dialects.arguments import with_repaired_calls
from wireglot_core.dialects.passthrough import has_no_answer, is_doubtful
from wireglot_core.dialects.places import answer_located
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.ir import failures
from wireglot_core.ir.content import Part, ToolCall
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.stream import unfold
from wireglot_core.ir.verdict import Accepted, accept
from wireglot_core.providers.carried import with_minter
from wireglot_core.providers.reasoning_filter import ReasoningFilter
from wireglot_core.wire.json import MAX_DEPTH, BadJson, TooDeep, decode, encode, exceeds_depth

_OPENING_BYTES: Final = 64


class _Rendered(msgspec.Struct, frozen=True):
    """A response for the client."""

    response: Response
    document: dict[str, Any]
    body: bytes
    headers: Headers
    losses: tuple[Loss, ...]


class Delivery:
    """Keeps no state of requests, except for answers that are being stored."""

    def __init__(
        self, judge: Judge, candidates: Candidates, is_gone: Callable[[ClientKey | None], bool]
    ) -> None:
        """`is_gone`: whether a key was revoked meanwhile. Then its caller's data is wiped, and nothing more
        is stored."""
        self._judge = judge
        self._candidates = candidates
        self._is_gone = is_gone
        self._keeping: set[asyncio.Task[None]] = set()

    async def drain(self, seconds: float) -> None:
        """Wait for answers that are being stored."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=seconds)

    async def whole(self, exchange: Exchange, target: Target, prepared: Prepared, answer: Answer) -> None:
        """Deliver an answer in one piece, to a client that asked for that or for a stream."""
        held = exchange.held
        body = await answer.read(exchange.job.settings.limits.response, held.reading(answer))
        size = len(body)
        await held.room(size)  # for the decoded copy, or the one with another name in it
        record = exchange.record
        keeps = exchange.ending.holds(target) or bool(prepared.checks or prepared.further)
        large = size > LARGE_BYTES
        if prepared.raw:
            looking = partial(self._looked_at, exchange, target, prepared, body)
            seen, repaired = await run_in_thread(looking) if large else looking()
            if repaired is not None:
                del body, looking  # the written copy replaces it
                await self._render(exchange, prepared, repaired, keeps=keeps, size=size)
                return
            record.used(seen.usage)
            record.stopped(seen.stop)
            if keeps and exchange.ending.expects(body, whole=True):
                await self._keep_raw(exchange, target, prepared, body)
            named = exchange.job.surface.client.asked_model
            if named is not None and not prepared.as_is:
                naming = partial(named.in_answer, body, exchange.job.model)
                body = await run_in_thread(naming) if large else naming()
                del naming
            self._send_whole(exchange, body)
            return
        reading = partial(self._accepted, exchange, target, prepared, body)
        accepted = await run_in_thread(reading) if large else reading()
        del body, reading  # the written copy replaces it
        if exchange.client is not None:
            record.answered()
            places = exchange.codec.places
            exchange.lose(*answer_located(places, accepted.losses))
            feeder = Translation(exchange, target.codec, prepared, exchange.client, keeps=keeps)
            exchange.feeder = feeder
            feeder.events(list(unfold(accepted.response)))
            if keeps:
                await self._release(exchange, prepared, feeder)
            return
        accepted = _with_searches(exchange, target, prepared, accepted)
        await self._render(exchange, prepared, accepted, keeps=keeps, size=size)

    def _looked_at(
        self, exchange: Exchange, target: Target, prepared: Prepared, body: bytes
    ) -> tuple[AnswerGlance, Accepted | None]:
        """Facts about an answer that is passed through, and the repaired answer to send instead, if it needs
        repair."""
        if body.find(b'"error"', 0, _OPENING_BYTES) >= 0:
            self._parsed(target, prepared, body)  # raises for an error: some come with status 200
        try:
            seen = target.surface.glance(body)
        except BadJson as fault:
            raise _unread(fault) from None
        if exceeds_depth(body, MAX_DEPTH):
            raise _unread(TooDeep())
        if not body.isascii() and not _is_utf8(body):
            raise failures.unreadable("the upstream's answer is not UTF-8")
        generated = exchange.job.asked.operation == "generate" and not prepared.as_is
        judged = generated and not target.provider.spec.home
        if (
            prepared.leaks_calls
            or (judged and (target.surface.marks is None or is_doubtful(body)))
            or (not judged and generated and has_no_answer(body))
        ):
            response = self._parsed(target, prepared, body)
            accepted = _judged(response, exchange, prepared)
            content = accepted.response.content
            if accepted.response is not response or with_repaired_calls(content, "$", []) is not content:
                return seen, accepted
        return seen, None

    def _accepted(self, exchange: Exchange, target: Target, prepared: Prepared, body: bytes) -> Accepted:
        response = self._parsed(target, prepared, body)
        if prepared.emulation is None:
            return _judged(response, exchange, prepared)
        losses: list[Loss] = []
        accepted = _judged(prepared.emulation.response(response, losses), exchange, prepared)
        return Accepted(accepted.response, (*losses, *accepted.losses))

    async def _keep_raw(self, exchange: Exchange, target: Target, prepared: Prepared, body: bytes) -> None:
        """Pass on an answer that we cannot read: the client perhaps can, and only our stored history is
        incomplete."""
        reading = partial(self._parsed, target, prepared, body)
        try:
            response = await run_in_thread(reading) if len(body) > LARGE_BYTES else reading()
        except AttemptFailed as unread:
            exchange.record.noted(f"not kept: {unread.error.message}")
            return
        await self.keep(exchange, response)

    def _parsed(self, target: Target, prepared: Prepared, body: bytes) -> Response:
        upstream = target.codec
        try:
            document = decode(body)
            if isinstance(document, list) and len(document) == 1:
                document = document[0]  # some hosts wrap it in a list, whatever their dialect
            error = upstream.parse_error(document)
            if error is not None:
                raise failures.of_error(error, error.status)
            if not isinstance(document, dict):
                raise BadJson("expected a JSON object")
            return upstream.parse_response(document, prepared.context)
        except BadJson as fault:
            raise _unread(fault) from None
        except UpstreamFault as fault:
            raise failures.unreadable(f"the upstream's answer cannot be read: {fault.message}") from None

    async def _render(
        self, exchange: Exchange, prepared: Prepared, accepted: Accepted, *, keeps: bool, size: int
    ) -> None:
        """`size`: of the source, for as much of which memory is reserved."""
        if prepared.checks:
            accepted = await self._checked(exchange, prepared, accepted)
        if prepared.further:
            exchange.further = await self._candidates.results(exchange, prepared.further)
        large = size > LARGE_BYTES
        hider = reasoning_filter(exchange, prepared, keeps=keeps)
        rendering = partial(self._rendered, exchange, prepared, accepted, hider)
        rendered = await run_in_thread(rendering) if large else rendering()
        if rendered.losses:
            exchange.lose(*rendered.losses)
        if keeps:
            if hider is None and _tells_all(exchange, prepared):
                exchange.client_document = rendered.document
            await self.keep(exchange, rendered.response)
            if exchange.unstored:  # which the answer itself reports
                rendered = await run_in_thread(rendering) if large else rendering()
        await exchange.held.room(max(0, len(rendered.body) - size))
        self._send_whole(exchange, rendered.body, rendered.headers)

    def _rendered(
        self, exchange: Exchange, prepared: Prepared, accepted: Accepted, hider: ReasoningFilter | None
    ) -> _Rendered:
        record, response = exchange.record, accepted.response
        aliases = prepared.aliases
        if aliases:
            restored = tuple(aliases.restore(part) for part in response.content)
            others = tuple(map(aliases.restore_answer, response.others))
            response = msgspec.structs.replace(response, content=restored, others=others)
        answered_by = response.model
        client = exchange.codec
        if client.surface.client.asked_model is not None:
            response = msgspec.structs.replace(response, model=exchange.job.model)
        headers: Headers = []
        record.used(response.usage)
        if tells_usage(client.surface.client, prepared.request) and is_unreported(response.usage):
            usage = exchange.estimated_usage(parts_weight(response.content))
            response = msgspec.structs.replace(response, usage=usage)
            record.used(usage, "estimated")
            headers.append(ESTIMATE)
        if exchange.further:
            response = with_further(response, exchange.further)
            if not headers and any(each.estimated for each in exchange.further):
                headers.append(ESTIMATE)
        unseen: list[Loss] = []
        minter = prepared.minter
        shown = hider.response(response) if hider is not None else response
        if hider is not None:
            unseen = hider.losses
        signed = with_minter(shown, minter, unseen) if minter is not None else shown
        rendered = client.render_response(signed, prepared.context, prepared.request)
        record.stopped(response.stop.reason, answered_by)
        losses = (*accepted.losses, *unseen, *rendered.losses)
        losses = answer_located(client.places, losses, rendered.value, shown.content)
        if headers:
            losses = (*losses, ESTIMATED)
        return _Rendered(response, rendered.value, encode(rendered.value), headers, losses)

    async def _release(self, exchange: Exchange, prepared: Prepared, feeder: HoldsEnd) -> None:
        """Send the end of an answer once it is checked and its state is stored."""
        response = feeder.response()
        if prepared.checks and response is not None:
            calls = _calls_of_client(exchange, response.content)
            cut = feeder.cut_calls() if isinstance(feeder, Translation) else []
            work = self._judge.results(exchange, prepared.checks, calls, cut)
            checking = exchange.checking = asyncio.create_task(work)
            await asyncio.wait([checking])
            if not checking.cancelled():  # it is cancelled if the client has left
                exchange.safeguard_results = checking.result()
        try:
            if prepared.further and response is not None:
                exchange.further = await self._candidates.results(exchange, prepared.further)
            if response is not None:
                await self.keep(exchange, response)
        except RequestError as refused:
            feeder.release(refused.error)
        else:
            feeder.release()

    def _send_whole(self, exchange: Exchange, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        exchange.record.answered()
        exchange.record.began()
        exchange.send(200, [JSON, *exchange.headers(), *headers], body)

    async def streamed(self, exchange: Exchange, target: Target, prepared: Prepared, answer: Answer) -> bool:
        """Deliver a stream. False: the upstream broke off after its answer had begun."""
        client, job = exchange.client, exchange.job
        keeps = exchange.ending.holds(target) or bool(prepared.checks or prepared.further)
        is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        feeder: Feeder
        if client is None:
            held = exchange.held.reading(answer)
            feeder = Collection(target.codec, prepared, job.settings.limits.response, held)
        elif prepared.raw and not prepared.leaks_calls and is_stream == (job.context.framing == "sse"):
            judged = _is_judged(exchange, target, prepared)
            feeder = Passthrough(exchange, prepared, client, keeps=keeps, judged=judged)
        else:
            feeder = Translation(exchange, target.codec, prepared, client, keeps=keeps)
        exchange.feeder = feeder
        releasing: asyncio.Task[None] | None = None
        broken: ApiError | None = None

        def over() -> None:
            """The final event has come; the upstream may take a while to close."""
            nonlocal releasing, broken
            broken = feeder.failure  # a failure after this point may be our own
            if isinstance(feeder, Passthrough | Translation) and feeder.holds_end:
                releasing = self._started(self._release(exchange, prepared, feeder))

        pump = Pump(answer, feeder, target.provider.timeouts.idle, over, lambda: exchange.held.waits)
        if client is not None:
            exchange.reply.on_pressure(pump.pause, pump.resume)
        try:
            await pump.run()
        except asyncio.CancelledError:
            feeder.abandon()
            raise
        except TransportFault as fault:
            if client is None or not client.begun:
                raise
            feeder.fail(failures.connection_error(fault.problem, f"{target.provider.name}: {fault.message}"))
        exchange.record.answered()
        if releasing is not None:
            await asyncio.shield(releasing)
            return broken is None or not failures.is_counted(broken)
        broken = feeder.failure
        if isinstance(feeder, Collection):
            folding = partial(_folded, exchange, prepared, feeder)
            accepted = await run_in_thread(folding) if feeder.size > LARGE_BYTES else folding()
            accepted = _with_searches(exchange, target, prepared, accepted)
            await self._render(exchange, prepared, accepted, keeps=keeps, size=feeder.size)
        elif feeder.holds_end:
            await self._release(exchange, prepared, feeder)
        return broken is None or not failures.is_counted(broken)

    async def _checked(self, exchange: Exchange, prepared: Prepared, accepted: Accepted) -> Accepted:
        """A whole answer with the results of the checks that its client asked for."""
        response, aliases = accepted.response, prepared.aliases
        restored = [aliases.restore(part) if aliases else part for part in response.content]
        calls = _calls_of_client(exchange, restored)
        results = await self._judge.results(exchange, prepared.checks, calls)
        return Accepted(msgspec.structs.replace(response, safeguard_results=results), accepted.losses)

    async def keep(self, exchange: Exchange, response: Response) -> None:
        """Store an answer completely, also if the client leaves meanwhile: half a turn would be worse than
        none."""
        if not exchange.ending.wants(response) or self._is_gone(exchange.job.caller.key):
            return
        if exchange.record.wiped:
            return
        await asyncio.shield(self._started(exchange.ending.keep(response)))

    def _started(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._keeping.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._keeping.discard(task)
        if not task.cancelled():
            task.exception()  # reported to the waiting task, if there was one


def _folded(exchange: Exchange, prepared: Prepared, collection: Collection) -> Accepted:
    accepted = _judged(collection.response(), exchange, prepared)
    return Accepted(accepted.response, (*collection.losses, *accepted.losses))


def _calls_of_client(exchange: Exchange, content: Iterable[Part]) -> list[ToolCall]:
    own = exchange.own_functions
    return [part for part in content if type(part) is ToolCall and part.name not in own]


def _with_searches(exchange: Exchange, target: Target, prepared: Prepared, accepted: Accepted) -> Accepted:
    searches = shown_searches(exchange, target.codec, prepared.request)
    if searches is None:
        return accepted
    return Accepted(searches.response(accepted.response), (*accepted.losses, *searches.losses))


def _judged(response: Response, exchange: Exchange, prepared: Prepared) -> Accepted:
    renamed = prepared.aliases.functions if prepared.leaks_calls else {}
    return accept(
        response,
        asked(exchange),
        leaks_calls=prepared.leaks_calls,
        renamed=renamed,
        cuts=prepared.context.emulates,
    )


def _tells_all(exchange: Exchange, prepared: Prepared) -> bool:
    """Whether the client's document equals the one that a store would keep: of the same request, signed by
    the same minter, and without names that the upstream was not given."""
    return (
        prepared.minter is exchange.attempt.minter
        and not prepared.context.withheld
        and prepared.request is exchange.request()
    )


def _unread(fault: BadJson) -> AttemptFailed:
    said = f"is {fault.reason}" if isinstance(fault, TooDeep) else "is not JSON"
    return failures.unreadable(f"the upstream's answer {said}")


def _is_judged(exchange: Exchange, target: Target, prepared: Prepared) -> bool:
    """Whether the answer is checked. Passed on without checks are a vendor's own answer in its own dialect,
    answers that are not a model's, and those that the caller wants unchanged (as-is)."""
    generated = exchange.job.asked.operation == "generate" and not prepared.as_is
    return generated and not target.provider.spec.home


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
