"""One response that is made in the background, from the request that asked for it to its last word."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import RequestError, cleaned
from wireglot.gateway.pages import health
from wireglot.gateway.state.clock import now_ms
from wireglot.gateway.state.responses.event_log import EventLog, frame, frames
from wireglot.gateway.state.stored_forms import EVENT, KeptResponse
from wireglot.http.failures import AttemptFailed
from wireglot.ir.errors import ApiError
from wireglot.ir.stream import Failure, Start
from wireglot.stores import StoreDown
from wireglot.stores.records import Document

if TYPE_CHECKING:
    from wireglot.gateway.app import Gateway
    from wireglot.gateway.request.job import Job
    from wireglot.gateway.state.responses.heartbeat import Heartbeats
    from wireglot.gateway.state.responses.store import ResponseStore
    from wireglot.stores.base import Documents

FINAL: Final = frozenset({"completed", "failed", "incomplete", "cancelled"})
STOPPED: Final = "the gateway stopped while it worked on this response"

_GATHER: Final = 0.2
"""Seconds that events wait for more of them before they are stored together."""
_AGAIN: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds between tries to store how it ended."""
_HOUR: Final = 3600 * 1000

Why = Literal["", "cancelled", "deleted", "stopped"]


class Work:
    def __init__(
        self,
        id: str,
        job: Job,
        event_log: EventLog,
        body: dict[str, Any],
        *,
        stream: bool,
        instance: str,
        responses: ResponseStore,
        documents: Documents,
        heartbeats: Heartbeats,
    ) -> None:
        self.id = id
        self.caller = job.caller.name
        self.job = job
        self.event_log = event_log
        self.stream = stream
        self.why: Why = ""
        """Why it was stopped, where it was."""
        self.refusal: Exception | None = None
        """Why there is nothing to work on: the answer to the request that asked for it."""
        self.accepted = asyncio.Event()
        """It is stored, or refused: whoever asked can be told."""
        self.task: asyncio.Task[None] | None = None
        self.first = body
        """The response before anything was done for it."""
        self._body = body
        self._kept: KeptResponse | None = None
        self._instance = instance
        self._responses = responses
        self._documents = documents
        self._heartbeats = heartbeats
        self._hours = job.settings.store.keep.events_hours
        self._ending = False

    @property
    def exists(self) -> bool:
        """Whether it was ever stored: then whoever asked for it has been told its id."""
        return self._kept is not None

    def _is_ending(self) -> bool:
        """Whether nothing more comes of it but its last words."""
        return self._ending

    def stop(self, why: Why) -> None:
        if not self.why and not self._ending:
            self.why = why
            if self.task is not None:
                self.task.cancel()

    # How it is kept.

    async def keep(self, gateway: Gateway, kept: KeptResponse) -> None:
        """Its first form; from here on it exists, and whoever asked for it is told so."""
        kept = msgspec.structs.replace(
            kept, body=self._body, background=True, stream=self.stream, instance=self._instance
        )
        await self._heartbeats.begin(self.caller, self.id)
        await self._responses.save(self.caller, self.id, kept)
        self._kept = kept
        gateway.observer.begin(self.job.record)
        self.accepted.set()

    async def beat(self) -> None:
        """Say that it is being worked on. A response that was deleted meanwhile is no longer."""
        if self._kept is not None and not await self._heartbeats.beat(self.caller, self.id):
            self.stop("deleted")

    async def _save(self, *, working: bool) -> bool:
        assert self._kept is not None
        kept = msgspec.structs.replace(
            self._kept, body=self._body, instance=self._instance if working else ""
        )
        return await self._responses.replace(self.caller, self.id, kept)

    # The work.

    async def run(self, gateway: Gateway) -> None:
        saver = asyncio.create_task(self._keep_events())
        try:
            error = await self._answered(gateway)
        finally:
            # Not cancelled: what it is writing just now must not come after what is written at the end.
            self._ending = True
            self.event_log.dirty.set()
            self.event_log.full.set()
            try:
                (problem,) = await asyncio.gather(saver, return_exceptions=True)
                if isinstance(problem, Exception):
                    self._tell_bug(gateway, problem)
            finally:
                self._close_books(gateway)
        if self._kept is None:
            self.refusal = self.refusal or RequestError("internal", "the response was not stored")
            self.accepted.set()
            return
        if self.why != "deleted":
            self._end(error)
            await self._store_end(gateway)
        else:
            await self._forget()
        self.event_log.close()

    def _close_books(self, gateway: Gateway) -> None:
        job, record = self.job, self.job.record
        if job.client is not None:
            job.client.close()
            record.first_byte = job.client.first
        job.client = job.feeder = job.heard = None
        job.keepings = []
        gateway.state.ledger.finish(record)
        if record.begun:
            gateway.observer.finish(record)

    def _tell_bug(self, gateway: Gateway, bug: Exception) -> None:
        where = health.place(bug)
        gateway.observer.note("error", "bug", id=self.job.record.id, type=type(bug).__name__, where=where)

    async def _answered(self, gateway: Gateway) -> ApiError | None:
        """Have it answered like any request; what goes wrong becomes a part of the response."""
        record = self.job.record
        try:
            await gateway.answer(self.job)
            return None
        except (RequestError, AttemptFailed) as problem:
            self.refusal = problem
            error = cleaned(problem.error, self.job.redactor.text)
        except asyncio.CancelledError:
            record.outcome = "gateway_abort" if self.why == "stopped" else "client_abort"
            record.status = record.status or 499
            if self.task is not None:
                self.task.uncancel()  # what is left to do is done
            self.refusal = RequestError("shed", "the gateway is shutting down", retry_after=1)
            return None
        except Exception as bug:
            self._tell_bug(gateway, bug)
            self.refusal = bug
            error = RequestError("internal", "an internal error; it has been logged").error
        record.outcome = "error"
        record.status = error.status
        record.error_kind, record.error_code, record.error_message = error.kind, error.code, error.message
        return error

    def _end(self, error: ApiError | None) -> None:
        """The last event, where the stream has not come to one."""
        event_log = self.event_log
        if event_log.final is None and error is not None:
            told = msgspec.structs.replace(error, request_id=self.job.record.id)
            context = msgspec.structs.replace(self.job.context, first_event=event_log.next)
            writer = dialect(self.job.dialect).stream_writer(context, self.job.request())
            opening = [] if event_log.opening is not None else [Start("", self.job.model)]
            event_log.write(writer.write([*opening, Failure(told)]))
        if event_log.final is None:
            status = "cancelled" if self.why == "cancelled" else "failed"
            event_log.add(
                frame(
                    f"response.{status}",
                    event_log.next,
                    response=ended(event_log.opening or self._body, status),
                )
            )
        assert event_log.final is not None
        self._body = event_log.final

    async def _keep_events(self) -> None:
        """Store events as they come, many together."""
        told = False
        while not self._is_ending():
            await self.event_log.dirty.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.event_log.full.wait(), _GATHER)
            if self._is_ending():
                break
            if not told and self.event_log.opening is not None:
                self._body = self.event_log.opening
                with contextlib.suppress(StoreDown):
                    if not await self._save(working=True):
                        self.stop("deleted")
                    told = True
            with contextlib.suppress(StoreDown):  # they stay on the tape
                await self._store_events()

    async def _store_events(self) -> None:
        fresh = self.event_log.fresh()
        if not fresh:
            return
        now, number = now_ms(), fresh[-1].number + 1  # from 1: a piece beyond the event n is one above n + 1
        piece = Document(
            self.caller,
            EVENT,
            f"{self.id}.{number}",
            b"".join(each.data for each in fresh),
            parent=self.id,
            number=number,
            created=now,
            expires=now + int(self._hours * _HOUR) if self._hours else 0,
        )
        await self._documents.put([piece])
        self.event_log.stored(len(fresh))

    async def _store_end(self, gateway: Gateway) -> None:
        """Its events first: whoever sees that it has ended finds all of them."""
        for wait in (*_AGAIN, None):
            try:
                await self._store_last_events(gateway)
                # Somebody who took us for dead has told the client so, and that stays true.
                now = await self._responses.load(self.caller, self.id)
                if now is None:
                    await self._forget()
                elif now.body.get("status") not in FINAL:
                    await self._save(working=False)
                    await self._heartbeats.end(self.caller, self.id)
                return
            except StoreDown:
                if wait is None or gateway.draining:
                    gateway.observer.note(
                        "error",
                        "background",
                        id=self.job.record.id,
                        detail="the store is down: the end is lost",
                    )
                    return
                await asyncio.sleep(wait)

    async def _store_last_events(self, gateway: Gateway) -> None:
        try:
            await self._store_events()
        except StoreDown:
            raise
        except Exception as bug:  # whatever is wrong with them: how it ended is told all the same
            self._tell_bug(gateway, bug)

    async def _forget(self) -> None:
        with contextlib.suppress(StoreDown):
            await self._documents.delete_pieces(self.caller, EVENT, self.id)
            await self._heartbeats.end(self.caller, self.id)


def opened(job: Job, patch: dict[str, Any]) -> dict[str, Any]:
    """The response before anything has been done for it."""
    writer = dialect(job.dialect).stream_writer(job.context, job.request())
    first = next(frames(writer.write([Start("", job.model)])))
    body: dict[str, Any] = msgspec.json.decode(first.data.partition(b"data: ")[2])["response"]
    return {**body, **patch, "status": "queued"}


def ended(body: dict[str, Any], status: str) -> dict[str, Any]:
    error = {"code": "server_error", "message": STOPPED} if status == "failed" else None
    return {**body, "status": status, "error": error}
