"""An upstream's good answer on its way to the client: whole or streamed, passed through or translated, and
kept where something of it must be remembered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.attempt import Prepared
from wireglot.gateway.request.job import Job, Keeping, common_headers
from wireglot.gateway.streams.feeder import Collection, Feeder, HoldsEnd, Passthrough, Translation
from wireglot.gateway.streams.pump import Pump
from wireglot.gateway.streams.tap import glance
from wireglot.gateway.targets.routing import Target
from wireglot.http import failures
from wireglot.http.failures import AttemptFailed
from wireglot.http.transport import Answer, TransportFault
from wireglot.ir.errors import ApiError, UpstreamFault
from wireglot.ir.outcome import Response
from wireglot.ir.stream import unfold
from wireglot.wire.json import BadJson, decode, encode

_OPENING: Final = 64


class Delivery:
    """Holds nothing of any request but what is being written down of it."""

    def __init__(self) -> None:
        self._keeping: set[asyncio.Task[None]] = set()

    async def drain(self, seconds: float) -> None:
        """Let what is being kept be kept."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=seconds)

    async def whole(self, job: Job, target: Target, prepared: Prepared, answer: Answer) -> None:
        """An answer in one piece, for a client that wants it so or for one that wants a stream."""
        body = await answer.read(job.settings.limits.response)
        record = job.record
        if prepared.raw:
            if b'"error"' in body[:_OPENING]:
                self._parsed(target, prepared, body)  # raises if it is one: some say so under a status of 200
            try:
                seen = glance(target.dialect, body)
            except BadJson:
                raise failures.unreadable("the upstream's answer is not JSON") from None
            record.usage, record.stop = seen.usage, seen.stop
            record.usage_source = "provider" if seen.usage is not None else "none"
            if job.keepings:
                await self._keep_raw(job, target, prepared, body)
            self._send_whole(job, body)
            return
        response = self._parsed(target, prepared, body)
        if job.client is not None:
            record.status = 200
            feeder = job.feeder = Translation(job, target.dialect, prepared, job.client)
            feeder.events(list(unfold(response)))
            await self._release(job, feeder)
            return
        await self._render(job, prepared, response)

    async def _keep_raw(self, job: Job, target: Target, prepared: Prepared, body: bytes) -> None:
        """What we cannot read the client perhaps can: it goes on, and only our memory has a gap."""
        try:
            response = self._parsed(target, prepared, body)
        except AttemptFailed as unread:
            job.record.notes = [*job.record.notes, f"not kept: {unread.error.message}"]
            return
        await self._keep(job, response)

    def _parsed(self, target: Target, prepared: Prepared, body: bytes) -> Response:
        upstream = dialect(target.dialect)
        try:
            document = decode(body)
            if isinstance(document, list) and len(document) == 1:
                document = document[0]  # how Gemini wraps an error
            if not isinstance(document, dict):
                raise BadJson("expected a JSON object")
            error = upstream.parse_error(document)
            if error is not None:
                raise failures.of_error(error, error.status)
            return upstream.parse_response(document, prepared.context)
        except BadJson:
            raise failures.unreadable("the upstream's answer is not JSON") from None
        except UpstreamFault as fault:
            raise failures.unreadable(f"the upstream's answer cannot be read: {fault.message}") from None

    async def _render(self, job: Job, prepared: Prepared, response: Response) -> None:
        record = job.record
        aliases = prepared.aliases
        if aliases:
            restored = tuple(aliases.restore(part) for part in response.content)
            response = msgspec.structs.replace(response, content=restored)
        rendered = dialect(job.dialect).render_response(response, prepared.context, prepared.request)
        record.usage, record.stop = response.usage, response.stop.reason
        record.usage_source = "provider" if response.usage is not None else "none"
        record.response_model = response.model
        if rendered.losses:
            record.losses = [*record.losses, *rendered.losses]
            if job.tells_losses:
                job.losses = (*job.losses, *rendered.losses)
        if job.keepings:
            await self._keep(job, response)
        self._send_whole(job, encode(rendered.value))

    async def _release(self, job: Job, feeder: HoldsEnd) -> None:
        """Let the end of an answer out once what must be kept of it is kept."""
        if not job.keepings:
            return
        response = feeder.response()
        try:
            if response is not None:
                await self._keep(job, response)
        except RequestError as fault:
            feeder.release(fault.error)
        else:
            feeder.release()

    def _send_whole(self, job: Job, body: bytes) -> None:
        headers = [("content-type", "application/json"), *common_headers(job)]
        job.record.status = 200
        job.record.first_byte = time.monotonic()
        job.completed()
        (job.heard or job.reply).send(200, headers, body)

    async def streamed(self, job: Job, target: Target, prepared: Prepared, answer: Answer) -> bool:
        """False: the upstream broke off after its answer had begun."""
        client = job.client
        is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        feeder: Feeder
        if client is None:
            feeder = Collection(target.dialect, prepared, job.settings.limits.response)
        elif prepared.raw and is_stream == (job.framing == "sse"):
            feeder = Passthrough(job, prepared, client, job.settings.limits.event)
        else:
            feeder = Translation(job, target.dialect, prepared, client)
        job.feeder = feeder
        job.reply.on_pressure(answer.pause, answer.resume)
        releasing: asyncio.Task[None] | None = None
        broken: ApiError | None = None

        def over() -> None:
            """The end that counts has come; the upstream may take a while to close."""
            nonlocal releasing, broken
            broken = feeder.failure  # from here on a failure may be our own
            if job.keepings and isinstance(feeder, Passthrough | Translation):
                releasing = self._started(self._release(job, feeder))

        try:
            await Pump(answer, feeder, target.provider.timeouts.idle, over).run()
        except asyncio.CancelledError:
            feeder.abandon()
            raise
        except TransportFault as fault:
            if client is None or not client.begun:
                raise
            feeder.fail(failures.transport_error(fault))
        job.record.status = 200
        if releasing is not None:
            await asyncio.shield(releasing)
            return broken is None or not failures.is_counted(broken)
        broken = feeder.failure
        if isinstance(feeder, Collection):
            await self._render(job, prepared, feeder.response())
        elif isinstance(feeder, Passthrough | Translation):
            await self._release(job, feeder)
        return broken is None or not failures.is_counted(broken)

    async def _keep(self, job: Job, response: Response) -> None:
        """To the end, also where the client leaves meanwhile: half a turn would be worse than none."""
        await asyncio.shield(self._started(_keep_all(job.keepings, response)))

    def _started(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._keeping.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._keeping.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited for it has heard; if nobody did, nobody need


async def _keep_all(keepings: list[Keeping], response: Response) -> None:
    for keeping in keepings:
        await keeping.keep(response)
