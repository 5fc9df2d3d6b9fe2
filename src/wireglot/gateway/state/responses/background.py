"""Responses that are made while nobody waits for them: asked for, looked at, listened to, cancelled."""

from __future__ import annotations

import asyncio
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.job import common_headers, identity
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.page_request import PageRequest, unavailable
from wireglot.gateway.state.responses.background_work import FINAL, Work, ended, opened
from wireglot.gateway.state.responses.event_log import EventLog, terminal
from wireglot.gateway.state.responses.follower import POLL, Follower
from wireglot.gateway.state.responses.heartbeat import Heartbeats
from wireglot.gateway.state.responses.store import ResponseStore
from wireglot.gateway.state.stored_forms import CANCEL, EVENT, KeptResponse
from wireglot.gateway.state.tasks import Guarded, Note, stop
from wireglot.stores import StoreDown
from wireglot.stores.base import Documents
from wireglot.stores.records import Document
from wireglot.wire.json import encode

if TYPE_CHECKING:
    from wireglot.gateway.app import Gateway
    from wireglot.gateway.request.job import Job

MOST: Final = 1000
MOST_OF_A_CALLER: Final = 64

_LOOK: Final = 1.0
"""Seconds between two looks for orders to cancel, which come by another process."""
_BEAT: Final = 5
"""Looks between two signs of life."""
_CANCELLING: Final = 5.0
_CANCEL_KEPT: Final = 600 * 1000
_ENDING: Final = 5.0


class Background:
    def __init__(
        self, documents: Documents, responses: ResponseStore, settings: Settings, instance: str, note: Note
    ) -> None:
        self.lease = 30.0
        """Seconds without a sign of life after which whoever works on a response may have died."""
        self.grace = 1.5 * _BEAT * _LOOK
        """Seconds for one more: a store that was away has only old ones of the living."""
        self._documents = documents
        self._responses = responses
        self._instance = instance
        self._note = note
        self._works: dict[tuple[str, str], Work] = {}
        self._by_record: dict[str, Work] = {}
        self._watch: asyncio.Task[None] | None = None
        self._gateway: Gateway | None = None
        self._heartbeats = Heartbeats(documents)
        self._hearing = Guarded(note, "background: orders")
        self._beating = Guarded(note, "background: beats")

    def adopt(self, settings: Settings) -> None:
        """Each response keeps the settings it was asked for under."""

    # Asked for.

    def wants(self, job: Job) -> bool:
        return (
            job.dialect == "openai-responses"
            and job.asked.operation == "generate"
            and job.outline.get("background") is True
        )

    async def start(self, gateway: Gateway, job: Job) -> None:
        """Answer a request for a response in the background: with its first form, or with its stream."""
        if job.outline.get("store") is False:
            raise RequestError(
                "bad", "background: needs the response to be stored (store: true)", param="background"
            )
        self._check_room(job.caller.name)
        work = self._work(gateway, job)
        self._works[work.caller, work.id] = self._by_record[work.job.record.id] = work
        work.task = asyncio.create_task(self._run(gateway, work))
        try:
            await work.accepted.wait()
        except asyncio.CancelledError:
            work.stop("cancelled")  # nobody was told of it
            raise
        if not work.exists:
            assert work.refusal is not None
            raise work.refusal
        job.record.status = 200
        if job.stream:
            follower = self._follower(work.caller, work.id, -1, work.event_log)
            await follower.tell(job.reply, common_headers(job), job.settings.limits.ping)
        else:
            headers = [("content-type", "application/json"), *common_headers(job)]
            job.reply.send(200, headers, encode(work.first))

    def of(self, job: Job) -> Work | None:
        """The work that this job does, where it is done in the background."""
        return self._by_record.get(job.record.id) if self._by_record else None

    async def loaded(self, job: Job, kept: KeptResponse) -> None:
        """Everything it builds on was found: from here on the response exists."""
        work = self._by_record[job.record.id]
        assert self._gateway is not None
        try:
            await work.keep(self._gateway, kept)
        except StoreDown:
            raise unavailable("background") from None

    def _work(self, gateway: Gateway, job: Job) -> Work:
        self._gateway = gateway
        document = {key: value for key, value in job.document().items() if key != "background"}
        body = encode({**document, "stream": True})  # so that there are events to keep
        id = f"resp_{secrets.token_hex(24)}"
        patch = {
            "id": id,
            "background": True,
            "store": True,
            "created_at": job.context.now,
            **_links(document),
        }
        event_log = EventLog(patch, keeps=job.stream)
        head = job.head
        record = Record(
            f"req_{secrets.token_hex(12)}",
            time.monotonic(),
            job.dialect,
            job.asked.operation,
            job.caller.name,
            path=head.path,
            agent=head.headers.get("user-agent", ""),
            traceparent=head.headers.get("traceparent", ""),
        )
        inner = gateway.job(job.settings, head, body, job.asked, job.caller, record, event_log)
        inner.rewrite(inner.request())  # what passes as it came has another id
        return Work(
            id,
            inner,
            event_log,
            opened(inner, patch),
            stream=job.stream,
            instance=self._instance,
            responses=self._responses,
            documents=self._documents,
            heartbeats=self._heartbeats,
        )

    def _check_room(self, caller: str) -> None:
        own = sum(1 for owner, _ in self._works if owner == caller)
        if own >= MOST_OF_A_CALLER or len(self._works) >= MOST:
            most = MOST_OF_A_CALLER if own >= MOST_OF_A_CALLER else MOST
            raise RequestError("rate", f"background: {most} responses are being made already", retry_after=10)

    async def _run(self, gateway: Gateway, work: Work) -> None:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look())
        try:
            await work.run(gateway)
        except Exception as bug:
            self._note("error", "bug", id=work.job.record.id, type=type(bug).__name__, where="background")
        finally:
            del self._works[work.caller, work.id], self._by_record[work.job.record.id]
            work.accepted.set()
            work.event_log.close()

    # Asked about.

    async def current(self, caller: str, id: str, kept: KeptResponse) -> KeptResponse | None:
        """The response, failed by now if whoever worked on it has died; None: it was deleted meanwhile."""
        if not self._is_elsewhere(caller, id, kept):
            return kept
        sign = await self._heartbeats.read(caller, id)
        if self._heartbeats.still(caller, id, sign) < self.lease:
            return kept
        await asyncio.sleep(self.grace)
        again = await self._responses.load(caller, id)
        if again is None or not self._is_elsewhere(caller, id, again):
            return again
        if await self._heartbeats.read(caller, id) != sign:
            return again
        self._heartbeats.forget(caller, id)
        body = await self._last_words(caller, id) or ended(again.body, "failed")
        over = msgspec.structs.replace(again, body=body, instance="")
        return over if await self._responses.replace(caller, id, over) else None

    async def _last_words(self, caller: str, id: str) -> dict[str, Any] | None:
        """How it ended, where its process died between storing its last event and itself."""
        newest = await self._documents.pieces(caller, EVENT, id, limit=1, newest_first=True)
        return terminal(newest[0].body) if newest else None

    async def cancel(self, page: PageRequest) -> None:
        caller, id = page.caller.name, page.asked.ids[0]
        kept = await self._found(caller, id)
        if not kept.background:
            raise RequestError("bad", "Cannot cancel a synchronous response.", code="invalid_value")
        if kept.body["status"] not in FINAL:
            work = self._works.get((caller, id))
            if work is not None and work.task is not None:
                work.stop("cancelled")
                await asyncio.wait({work.task}, timeout=_CANCELLING)
            else:
                await self._order(caller, id)
            kept = await self._found(caller, id)
        page.send(kept.body)

    async def stream(self, page: PageRequest) -> None:
        """`GET ...?stream=true&starting_after=N`"""
        caller, id = page.caller.name, page.asked.ids[0]
        after = page.number("starting_after", -1, 0, 1 << 31)
        kept = await self._found(caller, id)
        if not kept.background or not kept.stream:
            raise RequestError(
                "bad",
                "stream: only a response that was created with background and stream can be streamed again",
                code="invalid_value",
                param="stream",
            )
        page.record.status, page.record.stream = 200, True
        work = self._works.get((caller, id))
        follower = self._follower(caller, id, after, work.event_log if work is not None else None)
        headers = identity(page.record.id, page.asked.dialect)
        await follower.tell(page.reply, headers, page.settings.limits.ping)

    async def dropped(self, caller: str, id: str) -> None:
        """A response was deleted: nobody needs the rest of it, and nothing of it stays."""
        work = self._works.get((caller, id))
        if work is not None:
            work.stop("deleted")
        await self._documents.delete_pieces(caller, EVENT, id)
        await self._heartbeats.end(caller, id)  # which tells another process that works on it

    async def _found(self, caller: str, id: str) -> KeptResponse:
        kept = await self._responses.load(caller, id)
        if kept is not None:
            kept = await self.current(caller, id, kept)
        if kept is None:
            raise unknown(id)
        return kept

    async def _order(self, caller: str, id: str) -> None:
        """Have whoever works on it cancel it, and wait a while until that has happened."""
        now = int(time.time() * 1000)
        await self._documents.put(
            [Document(caller, CANCEL, id, b"", created=now, expires=now + _CANCEL_KEPT)]
        )
        until = time.monotonic() + _CANCELLING
        while time.monotonic() < until:
            await asyncio.sleep(POLL)
            kept = await self._responses.load(caller, id)
            if kept is None or kept.body["status"] in FINAL:
                break

    def _is_elsewhere(self, caller: str, id: str, kept: KeptResponse) -> bool:
        """Whether another process works on it, or did."""
        return kept.background and kept.body["status"] not in FINAL and (caller, id) not in self._works

    def _follower(self, caller: str, id: str, after: int, event_log: EventLog | None) -> Follower:
        async def look() -> KeptResponse | None:
            kept = await self._responses.load(caller, id)
            return None if kept is None else await self.current(caller, id, kept)

        return Follower(self._documents, caller, id, after, event_log=event_log, look=look)

    # The process.

    async def _look(self) -> None:
        """While there is work: tell others that we live, hear whether to stop."""
        looks, late = 0, False
        while self._works:
            await asyncio.sleep(_LOOK)
            looks += 1
            works = list(self._works.values())
            await self._hearing.run(partial(self._hear, works))
            if late or looks % _BEAT == 0:
                done = await asyncio.gather(*(self._beating.run(work.beat) for work in works))
                late = not all(done)
        self._watch = None

    async def _hear(self, works: list[Work]) -> None:
        for caller in {work.caller for work in works}:
            own = {work.id: work for work in works if work.caller == caller}
            for order in await self._documents.get(caller, CANCEL, list(own)):
                own[order.id].stop("cancelled")

    async def drain(self, seconds: float) -> None:
        """Let work finish for so long; what is left then fails. A later call with less time overtakes."""
        tasks = {work.task for work in self._works.values() if work.task is not None}
        if not tasks:
            return
        if seconds > 0:
            await asyncio.wait(tasks, timeout=seconds)
        for work in tuple(self._works.values()):
            work.stop("stopped")
        await asyncio.wait(tasks, timeout=_ENDING)

    async def close(self) -> None:
        await self.drain(0)
        watch, self._watch = self._watch, None
        await stop(watch)


def unknown(id: str) -> RequestError:
    return RequestError("not_found", f"Response with id '{id}' not found.", code="response_not_found")


def _links(document: dict[str, Any]) -> dict[str, Any]:
    """What the response says of the conversation it belongs to."""
    conversation = document.get("conversation")
    named = conversation.get("id") if isinstance(conversation, dict) else conversation
    return {
        "previous_response_id": document.get("previous_response_id"),
        "conversation": {"id": named} if isinstance(named, str) else None,
    }
