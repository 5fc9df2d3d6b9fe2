"""Responses in the background: started, retrieved, streamed, cancelled."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.headers import JSON, identity
from wireglot.gateway.request.job import read
from wireglot.gateway.request.page_request import PageRequest, unavailable
from wireglot.gateway.request.problems import note_bug
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.state.conversations.items import stored_of
from wireglot.gateway.state.responses.background_work import (
    STOPPED,
    UNSTORED,
    ObservesRequests,
    Work,
    Workplace,
    is_final,
    opened,
)
from wireglot.gateway.state.responses.event_log import FULL_BYTES, HELD_BYTES, EventLog, terminal
from wireglot.gateway.state.responses.follower import Follower
from wireglot.gateway.state.responses.heartbeat import Heartbeats
from wireglot.gateway.state.responses.orphans import Orphans, Running
from wireglot.gateway.state.responses.store import ResponseStore
from wireglot.gateway.state.stored_forms import CANCEL, EVENT, KeptResponse
from wireglot.gateway.state.tasks import Guarded, Pace, stop
from wireglot.stores import StoreDown
from wireglot.stores.base import Documents
from wireglot.stores.records import Document
from wireglot_core.dialects.capabilities import Stored
from wireglot_core.dialects.registry import ITEMS, surface
from wireglot_core.wire.json import encode

# Background responses that run at once in one process.
MOST: Final = 1000
# Background responses of one caller that run at once.
MAX_OF_A_CALLER: Final = 64

_BEAT_LOOKS: Final = 5
"""Seconds between two heartbeats."""
_CANCELLING_SECONDS: Final = 5.0
_CANCEL_KEPT_MS: Final = 600 * 1000
_ENDING_SECONDS: Final = 5.0


class Background:
    def __init__(
        self,
        documents: Documents,
        responses: ResponseStore,
        instance: str,
        watch: ObservesRequests,
        pace: Pace,
    ) -> None:
        self.lease = 30.0
        """Seconds without a heartbeat after which the process that works on a response may have died."""
        self.grace = 1.5 * _BEAT_LOOKS * pace.background_look_seconds
        """Seconds in which another one must come: after a store was down, it only has old heartbeats of live
        processes."""
        self._pace = pace
        self.most_of_a_caller = MAX_OF_A_CALLER
        self.full_bytes, self.held_bytes = FULL_BYTES, HELD_BYTES
        self._documents = documents
        self._responses = responses
        note = watch.note
        self._works: dict[tuple[str, str], Work] = {}
        self._by_record: dict[str, Work] = {}
        self._watch: asyncio.Task[None] | None = None
        self._heartbeats = Heartbeats(documents)
        self._running = Running(documents)
        self._orphans = Orphans(self._running, self._heartbeats, instance, self._settle)
        self._settling: asyncio.Task[None] | None = None
        self._place = Workplace(
            instance=instance,
            responses=responses,
            documents=documents,
            heartbeats=self._heartbeats,
            running=self._running,
            watch=watch,
        )
        self._hearing = Guarded(note, "background: orders")
        self._beating = Guarded(note, "background: beats")
        self._finding = Guarded(note, "background: orphans")

    def open(self) -> None:
        """From now on, responses whose process has died are reported to have failed."""
        self._settling = asyncio.create_task(self._find_orphans())

    async def _find_orphans(self) -> None:
        def is_ours(caller: str, id: str) -> bool:
            return (caller, id) in self._works

        while True:
            await self._finding.run(lambda: self._orphans.look(self.lease, self.grace, is_ours))
            await asyncio.sleep(_BEAT_LOOKS * self._pace.background_look_seconds)

    # Requests for background responses.

    async def start(self, exchange: Exchange, answerer: Answerer) -> None:
        """Answer a request for a response in the background: with its first form, or with its stream. The
        response itself is made by `answerer`, whether or not a client waits for it."""
        job = exchange.job
        if job.outline.get("store") is False:
            noun = stored_of(job).noun
            raise RequestError(
                "bad", f"background: needs the {noun} to be stored (store: true)", param="background"
            )
        self._check_room(job.caller.name)
        work = (
            await run_in_thread(lambda: self._work(exchange)) if exchange.is_large else self._work(exchange)
        )
        try:
            work.exchange.held.take(len(work.exchange.job.body))
        except RequestError:
            work.exchange.close()
            raise
        work.record_beside(exchange.tap)  # from here on it is known, and will end
        self._works[work.caller, work.id] = self._by_record[work.exchange.record.id] = work
        work.task = asyncio.create_task(self._run(work, answerer))
        try:
            await work.accepted.wait()
        except asyncio.CancelledError:
            work.stop("cancelled")  # no client knows of it
            raise
        if not work.exists:
            assert work.refusal is not None
            raise work.refusal
        exchange.record.answered()
        headers = exchange.headers()
        if job.stream:
            follower = self._follower(work.caller, work.id, -1, stored_of(job), work.event_log)
            await follower.tell(exchange.reply, headers, job.settings.limits.ping)
        else:
            exchange.reply.send(200, [JSON, *headers], encode(work.first))

    def of(self, exchange: Exchange) -> Work | None:
        """The work of this exchange, if it runs in the background."""
        return self._by_record.get(exchange.record.id) if self._by_record else None

    async def loaded(self, exchange: Exchange, kept: KeptResponse) -> None:
        """All stored data that it builds on was found: from here on the response exists."""
        try:
            await self._by_record[exchange.record.id].keep(kept)
        except StoreDown:
            raise unavailable("background") from None

    def _work(self, exchange: Exchange) -> Work:
        job, head = exchange.job, exchange.job.head
        document = {key: value for key, value in exchange.document().items() if key != "background"}
        body = encode({**document, "stream": True})  # so that there are events to store
        stored = stored_of(job)
        id = f"{stored.prefix}{secrets.token_hex(24)}"
        patch = stored.patch(id, job.context.now, document)
        event_log = EventLog(
            stored, patch, keeps=job.stream, full_bytes=self.full_bytes, held_bytes=self.held_bytes
        )
        record = ExchangeRecord(
            f"req_{secrets.token_hex(12)}",
            time.monotonic(),
            asked_as=exchange.record.id,
            dialect=job.dialect,
            operation=job.asked.operation,
            caller=job.caller.name,
            path=head.path,
            agent=head.headers.get("user-agent", ""),
            traceparent=head.headers.get("traceparent", ""),
        )
        asking = read(job, body, id=record.id, now=int(time.time()), memory=job.content.memory)
        own = Exchange(asking, record, event_log, exchange.redactor, held=exchange.held.another())
        own.estimates = exchange.estimates
        own.rewrite(own.request())  # a body that passes unchanged has another id
        return Work(id, own, event_log, opened(own, patch), place=self._place)

    def _check_room(self, caller: str) -> None:
        own = sum(1 for owner, _ in self._works if owner == caller)
        if own >= self.most_of_a_caller or len(self._works) >= MOST:
            most = self.most_of_a_caller if own >= self.most_of_a_caller else MOST
            raise RequestError("rate", f"background: {most} responses are running already", retry_after=10)

    async def _run(self, work: Work, answerer: Answerer) -> None:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look())
        try:
            await work.run(answerer)
        except Exception as bug:  # a separate task: nothing else would report it
            note_bug(bug, work.exchange.record.id, self._place.watch.note)
        finally:
            del self._works[work.caller, work.id], self._by_record[work.exchange.record.id]
            work.accepted.set()
            work.event_log.close()

    # Requests about background responses.

    async def current(self, caller: str, id: str, kept: KeptResponse) -> KeptResponse | None:
        """The response, marked as failed if the process that worked on it has died; None: it was deleted
        meanwhile."""
        if not self._is_elsewhere(caller, id, kept):
            return kept
        if (caller, id) in self._place.unended:
            return await self._over(caller, id, kept, UNSTORED)
        sign = await self._heartbeats.read(caller, id)
        if not await self._running.has_died(id):
            if self._heartbeats.still(caller, id, sign, _stored(kept).begun(kept.body)) < self.lease:
                return kept
            await asyncio.sleep(self.grace)
        again = await self._responses.load(caller, id)
        if again is None or not self._is_elsewhere(caller, id, again):
            return again
        if await self._heartbeats.read(caller, id) != sign:
            return again
        return await self._over(caller, id, again)

    async def _settle(self, caller: str, id: str) -> None:
        """Settle a response before anyone requests it, so that no request has to wait."""
        kept = await self._responses.load(caller, id)
        if kept is not None and self._is_elsewhere(caller, id, kept):
            await self._over(caller, id, kept)
            self._place.watch.note(
                "warn", "background", detail="abandoned by a process that has exited: marked as failed"
            )
        await self._heartbeats.end(caller, id)

    async def _over(
        self, caller: str, id: str, kept: KeptResponse, why: str = STOPPED
    ) -> KeptResponse | None:
        self._heartbeats.forget(caller, id)
        stored = _stored(kept)
        body = await self._last_words(caller, id, stored) or stored.ended(kept.body, "failed", why)
        over = msgspec.structs.replace(kept, body=body, instance="")
        return over if await self._responses.replace(caller, id, over) else None

    async def _last_words(self, caller: str, id: str, stored: Stored) -> dict[str, Any] | None:
        """How it ended, if its process died after storing its last event but before storing the response."""
        newest = await self._documents.pieces(caller, EVENT, id, limit=1, newest_first=True)
        return terminal(stored.events, newest[0].body) if newest else None

    async def cancel(self, page: PageRequest, noun: str) -> None:
        caller, id = page.caller.name, page.asked.ids[0]
        kept = await self._found(caller, id)
        if not kept.background:
            raise RequestError("bad", f"Cannot cancel a synchronous {noun}.", code="invalid_value")
        if not is_final(kept.body):
            work = self._works.get((caller, id))
            if work is not None and work.task is not None:
                work.stop("cancelled")
                await asyncio.wait({work.task}, timeout=_CANCELLING_SECONDS)
            else:
                await self._order(caller, id)
            kept = await self._found(caller, id)
        page.send(_stored(kept).shown(kept.body, [], {}))

    async def stream(self, page: PageRequest) -> None:
        """The events of a response after the one that the query names."""
        caller, id = page.caller.name, page.asked.ids[0]
        kept = await self._found(caller, id)
        stored = _stored(kept)
        after = page.number(stored.events.after, -1, 0, 1 << 31)
        if not kept.background or not kept.stream:
            raise RequestError(
                "bad",
                f"stream: the {stored.noun} was not created with background and stream: it cannot be "
                "streamed again",
                code="invalid_value",
                param="stream",
            )
        page.record.answered()
        page.record.stream = True
        work = self._works.get((caller, id))
        event_log = work.event_log if work is not None else None
        follower = self._follower(caller, id, after, stored, event_log)
        headers = identity(page.record.id, page.asked.dialect)
        await follower.tell(page.reply, headers, page.settings.limits.ping)

    async def dropped(self, caller: str, id: str) -> None:
        """A response was deleted: stop the work on it, and remove its data."""
        work = self._works.get((caller, id))
        if work is not None:
            work.stop("deleted")
        await self._documents.delete_pieces(caller, EVENT, id)
        await self._heartbeats.end(caller, id)  # the missing heartbeat stops another process that works on it

    async def _found(self, caller: str, id: str) -> KeptResponse:
        kept = await self._responses.load(caller, id)
        if kept is not None:
            kept = await self.current(caller, id, kept)
        if kept is None:
            raise self._responses.missing(caller, id, "response")
        return kept

    async def _order(self, caller: str, id: str) -> None:
        """Have the process that works on it cancel it, and wait a while until that has happened."""
        now = int(time.time() * 1000)
        await self._documents.put(
            [Document(caller, CANCEL, id, b"", created=now, expires=now + _CANCEL_KEPT_MS)]
        )
        until = time.monotonic() + _CANCELLING_SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(self._pace.background_follow_seconds)
            kept = await self._responses.load(caller, id)
            if kept is None or is_final(kept.body):
                break

    def _is_elsewhere(self, caller: str, id: str, kept: KeptResponse) -> bool:
        """Whether another process works on it, or did."""
        return kept.background and not is_final(kept.body) and (caller, id) not in self._works

    def _follower(
        self, caller: str, id: str, after: int, stored: Stored, event_log: EventLog | None
    ) -> Follower:
        async def look() -> KeptResponse | None:
            kept = await self._responses.load(caller, id)
            return None if kept is None else await self.current(caller, id, kept)

        return Follower(
            self._documents,
            caller,
            id,
            after,
            form=stored.events,
            event_log=event_log,
            look=look,
            poll_seconds=self._pace.background_follow_seconds,
        )

    # The process's own work.

    async def _look(self) -> None:
        """While there is work: send heartbeats, and check for orders to stop."""
        looks, late = 0, False
        while self._works:
            await asyncio.sleep(self._pace.background_look_seconds)
            looks += 1
            works = list(self._works.values())
            await self._hearing.run(partial(self._hear, works))
            if late or looks % _BEAT_LOOKS == 0:
                done = await asyncio.gather(*(self._beating.run(work.beat) for work in works))
                late = not all(done)
        self._watch = None

    async def _hear(self, works: list[Work]) -> None:
        for caller in {work.caller for work in works}:
            own = {work.id: work for work in works if work.caller == caller}
            for order in await self._documents.get(caller, CANCEL, list(own)):
                own[order.id].stop("cancelled")

    async def drain(self, seconds: float) -> None:
        """Let work finish for this long; the rest then fails. A later call with less time takes
        precedence."""
        self._place.draining = True
        tasks = {work.task for work in self._works.values() if work.task is not None}
        if not tasks:
            return
        if seconds > 0:
            await asyncio.wait(tasks, timeout=seconds)
        for work in tuple(self._works.values()):
            work.stop("stopped")
        await asyncio.wait(tasks, timeout=_ENDING_SECONDS)

    async def close(self) -> None:
        await self.drain(0)
        watch, self._watch = self._watch, None
        await stop(watch, self._settling)
        self._orphans.close()


def _stored(kept: KeptResponse) -> Stored:
    """The form of a stored answer."""
    stored = surface(kept.dialect or ITEMS).stored
    assert stored is not None, "only dialects with stored answers have any"
    return stored


class BackgroundStart:
    """A step: a response that no client waits for is made by a separate task."""

    def __init__(self, inner: Answerer, background: Background) -> None:
        self._inner = inner
        self._background = background

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        job = exchange.job
        if job.outline.get("background") is not True or job.agent_field:
            return self._inner.answer(exchange)
        if job.settings.store.responses == "upstream":
            return self._inner.answer(exchange)
        return self._background.start(exchange, self._inner)
