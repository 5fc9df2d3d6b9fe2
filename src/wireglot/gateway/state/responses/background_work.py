"""One response that is made in the background, from its request to its final state."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, Literal, Protocol

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import CLIENT_LEFT, ExchangeRecord
from wireglot.gateway.request.exchange import Answerer, Exchange, Tap, TapBeside
from wireglot.gateway.request.problems import error_of, note_bug, shown
from wireglot.gateway.state.conversations.items import stored_of
from wireglot.gateway.state.responses.event_log import EventLog, frame, frames
from wireglot.gateway.state.responses.heartbeat import Heartbeats
from wireglot.gateway.state.responses.orphans import Running
from wireglot.gateway.state.responses.store import ResponseStore, Unstored
from wireglot.gateway.state.stored_forms import EVENT, KeptResponse, now_ms
from wireglot.stores import StoreDown
from wireglot.stores.base import Documents
from wireglot.stores.records import Document
from wireglot_core.ir.content import Message
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.stream import Failure, Start

_UNFINISHED: Final = frozenset({"queued", "in_progress"})
STOPPED: Final = "the gateway stopped while it worked on this response"
UNSTORED: Final = "the gateway's store was not available when this response ended"

_GATHER_SECONDS: Final = 0.2
"""How long events wait for more, to be stored together."""
_AGAIN_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds between attempts to store how it ended."""
_HOUR_MS: Final = 3600 * 1000


def is_final(body: dict[str, Any]) -> bool:
    """Whether a response has ended."""
    return body.get("status") not in _UNFINISHED


Why = Literal["", "cancelled", "deleted", "stopped"]


class ObservesRequests(Protocol):
    """Informed of requests that run without a client."""

    @property
    def note(self) -> Note: ...

    def begin(self, record: ExchangeRecord) -> None: ...

    def finish(self, record: ExchangeRecord) -> None: ...


class Workplace(msgspec.Struct, kw_only=True):
    """The parts that every background response needs."""

    instance: str
    responses: ResponseStore
    documents: Documents
    heartbeats: Heartbeats
    running: Running
    watch: ObservesRequests
    unended: Unstored = msgspec.field(default_factory=Unstored)
    """Responses whose end could not be stored: a request for one reports it as failed, with the reason."""
    draining: bool = False
    """The process is stopping: no more long retries."""


class Work:
    """Answers `exchange` into `event_log`; `body` is the response before anything was done for it."""

    def __init__(
        self,
        id: str,
        exchange: Exchange,
        event_log: EventLog,
        body: dict[str, Any],
        place: Workplace,
    ) -> None:
        self.id = id
        self.caller = exchange.job.caller.name
        self.exchange = exchange
        self.event_log = event_log
        self.why: Why = ""
        """Why it was stopped, if it was."""
        self.refusal: Exception | None = None
        """Why there is nothing to work on: the error for its request."""
        self.accepted = asyncio.Event()
        """Set when it is stored or refused: the client can be answered."""
        self.task: asyncio.Task[None] | None = None
        self.first = body
        self._body = body
        self._kept: KeptResponse | None = None
        self._whole: dict[str, Any] = {}
        self._turns: tuple[Message, ...] = ()
        self._stored = stored_of(exchange.job)
        self._place = place
        self._tap: TapBeside | None = None
        self._responses = place.responses
        self._documents = place.documents
        self._heartbeats = place.heartbeats
        self._hours = exchange.job.settings.store.keep.events_hours
        self._ending = False

    @property
    def exists(self) -> bool:
        """Whether it was ever stored: then its client has been told its id."""
        return self._kept is not None

    def _is_ending(self) -> bool:
        """Whether only its final state remains to be written."""
        return self._ending

    def record_beside(self, asker: Tap | None) -> None:
        """Record it beside its request, if that is recorded."""
        if asker is not None:
            own = self.exchange
            self._tap = own.tap = asker.beside(own.job.head, own.job.body, own.record)
            self.event_log.listener = self._tap.wrote

    def answered(self, body: dict[str, Any], turns: tuple[Message, ...]) -> None:
        """The whole answer, if its last event does not contain it."""
        self._whole, self._turns = body, turns

    def stop(self, why: Why) -> None:
        if not self.why and not self._ending:
            self.why = why
            if self.task is not None:
                self.task.cancel()

    # Storage.

    async def keep(self, kept: KeptResponse) -> None:
        """Store its first form; from here on it exists, and its client is told."""
        kept = msgspec.structs.replace(
            kept,
            body=self._body,
            background=True,
            stream=self.event_log.keeps,
            instance=self._place.instance,
        )
        await self._heartbeats.begin(self.caller, self.id)
        await self._place.running.enter(self.caller, self.id, self._place.instance)
        await self._responses.save(self.caller, self.id, kept)
        self._kept = kept
        self._place.watch.begin(self.exchange.record)
        self.accepted.set()

    async def beat(self) -> None:
        """Send a heartbeat. A response that was deleted meanwhile is cancelled."""
        if self._kept is not None and not await self._heartbeats.beat(self.caller, self.id):
            self.stop("deleted")

    async def _save(self, *, working: bool) -> bool:
        assert self._kept is not None
        kept = msgspec.structs.replace(
            self._kept, body=self._body, instance=self._place.instance if working else ""
        )
        if self._turns and not working:
            kept = msgspec.structs.replace(kept, turns=self._turns)
        return await self._responses.replace(self.caller, self.id, kept)

    # The work.

    async def run(self, answerer: Answerer) -> None:
        saver = asyncio.create_task(self._keep_events())
        try:
            error = await self._answered(answerer)
        finally:
            # Not cancelled: a write in progress must not come after those at the end.
            self._ending = True
            self.event_log.dirty.set()
            self.event_log.full.set()
            try:
                (problem,) = await asyncio.gather(saver, return_exceptions=True)
                if isinstance(problem, Exception):
                    note_bug(problem, self.exchange.record.id, self._place.watch.note)
            finally:
                self._close_account()
        if self._kept is None:
            self.refusal = self.refusal or RequestError("internal", "the response was not stored")
            self.accepted.set()
            return
        try:
            if self.why != "deleted":
                self._end(error)
        finally:
            if self._tap is not None:
                self._tap.keep()  # with its last event, and without waiting for the store
        if self.why != "deleted":
            await self._store_end()
        else:
            await self._forget()
        self.event_log.close()

    def _close_account(self) -> None:
        record = self.exchange.record
        self.exchange.close()
        if self._tap is not None:
            self._tap.over()
        if record.begun:
            self._place.watch.finish(record)

    async def _answered(self, answerer: Answerer) -> ApiError | None:
        """Have it answered like any request; an error becomes part of the response."""
        exchange, record = self.exchange, self.exchange.record
        try:
            await answerer.answer(exchange)
            return None
        except asyncio.CancelledError:
            if self.why == "stopped":
                record.cut_off()
                record.answered(record.status or CLIENT_LEFT)
            else:
                record.left()
            if self.task is not None:
                self.task.uncancel()  # the remaining work must still be done
            self.refusal = RequestError("shed", "the gateway is shutting down", retry_after=1)
            return None
        except Exception as problem:  # whatever it is, the response must end and report it
            self.refusal = problem
            error = error_of(problem, record.id, exchange.redactor, self._place.watch.note)
        record.failed(error)
        record.answered(error.status)
        return error

    def _end(self, error: ApiError | None) -> None:
        """Write the last event, if the stream has none."""
        event_log = self.event_log
        if event_log.final is None and error is not None:
            if isinstance(self.refusal, AttemptFailed):
                error = shown(error, self.exchange)
            reported = msgspec.structs.replace(error, request_id=self.exchange.record.id)
            job = self.exchange.job
            context = msgspec.structs.replace(job.context, first_event=event_log.next)
            writer = self.exchange.codec.stream_writer(context, self.exchange.request())
            opening = [] if event_log.opening is not None else [Start("", job.model)]
            event_log.write(writer.write([*opening, Failure(reported)]))
        if event_log.final is None:
            status = "cancelled" if self.why == "cancelled" else "failed"
            body = self._stored.ended(event_log.opening or self._body, status, STOPPED)
            kind, content = self._stored.events.last(body)
            event_log.add(frame(self._stored.events, kind, event_log.next, content))
        assert event_log.final is not None
        self._body = {**self._whole, **event_log.final}

    async def _keep_events(self) -> None:
        """Store events in batches as they come."""
        reported = False
        while not self._is_ending():
            await self.event_log.dirty.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GATHER_SECONDS):
                    await self.event_log.full.wait()
            if self._is_ending():
                break
            if not reported and self.event_log.opening is not None:
                self._body = self.event_log.opening
                with contextlib.suppress(StoreDown):
                    if not await self._save(working=True):
                        self.stop("deleted")
                    reported = True
            with contextlib.suppress(StoreDown):  # they stay in the event log
                await self._store_events()

    async def _store_events(self) -> None:
        fresh = self.event_log.fresh()
        if not fresh:
            return
        now, number = now_ms(), fresh[-1].number + 1  # counted from 1: after event n it is above n + 1
        piece = Document(
            self.caller,
            EVENT,
            f"{self.id}.{number}",
            b"".join(each.data for each in fresh),
            parent=self.id,
            number=number,
            created=now,
            expires=now + int(self._hours * _HOUR_MS) if self._hours else 0,
        )
        await self._documents.put([piece])
        self.event_log.stored(len(fresh))

    async def _store_end(self) -> None:
        """The events first: a client that sees the end finds all of them."""
        for wait in (*_AGAIN_SECONDS, None):
            try:
                await self._store_last_events()
                # Another process that assumed this one dead has already reported that to the client, and that
                # remains true.
                now = await self._responses.load(self.caller, self.id)
                if now is None:
                    await self._forget()
                elif not is_final(now.body):
                    await self._save(working=False)
                    await self._heartbeats.end(self.caller, self.id)
                    await self._place.running.remove(self.id)
                return
            except StoreDown:
                if wait is None or self._place.draining:
                    detail = "the store is down: the result is lost"
                    self._place.watch.note("error", "background", id=self.exchange.record.id, detail=detail)
                    self._place.unended.add(self.caller, self.id)
                    return
                await asyncio.sleep(wait)

    async def _store_last_events(self) -> None:
        try:
            await self._store_events()
        except StoreDown:
            raise
        except Exception as bug:  # even if they cannot be stored, its end is reported
            note_bug(bug, self.exchange.record.id, self._place.watch.note)

    async def _forget(self) -> None:
        with contextlib.suppress(StoreDown):
            await self._documents.delete_pieces(self.caller, EVENT, self.id)
            await self._heartbeats.end(self.caller, self.id)
            await self._place.running.remove(self.id)


def opened(exchange: Exchange, patch: dict[str, Any]) -> dict[str, Any]:
    """The response before any work was done for it."""
    job = exchange.job
    form = stored_of(job).events
    writer = exchange.codec.stream_writer(job.context, exchange.request())
    first = next(frames(form, writer.write([Start("", job.model)])))
    body: dict[str, Any] = msgspec.json.decode(first.data.partition(b"data: ")[2])[form.holder]
    return {**body, **patch, "status": form.waiting}
