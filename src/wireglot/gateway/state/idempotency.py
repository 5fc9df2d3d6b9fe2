"""One answer per Idempotency-Key: a repeated request gets the same bytes."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import time
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.job import Job
from wireglot.gateway.request.page_request import unavailable
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.recorder import Recorder
from wireglot.gateway.state.stored_forms import IDEMPOTENT
from wireglot.gateway.state.tasks import Guarded, Pace, stop
from wireglot.stores import StoreDown
from wireglot.stores.base import Documents
from wireglot.stores.records import Document

HEADER: Final = "idempotency-key"
# Characters of an idempotency key.
MAX_KEY_LETTERS: Final = 255
PATIENCE_SECONDS: Final = 10.0
"""Seconds in which the store must accept an answer: the client waits for its end."""
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Bytes of an answer that is stored for a repeated `Idempotency-Key`."""

_CLOSING_SECONDS: Final = 2.0
_TRIES: Final = 5
_HOUR_MS: Final = 3600 * 1000


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request with this key. It has no status while it is being answered."""

    digest: bytes
    """Hash of method, path and body: a different request must not use the same key."""
    nonce: bytes = b""
    """Identifies the claim: a request of the same kind may have replaced it."""
    status: int = 0
    content_type: str = ""
    body: bytes = b""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Record)


class Claim:
    """The right to answer a request, renewed while it is being answered."""

    def __init__(self, owner: Idempotency, document: Document, recorder: Recorder, record: _Record) -> None:
        self._owner = owner
        self._document = document
        self._recorder = recorder
        self._record = record
        self._renewed = time.monotonic()
        self._beat = asyncio.create_task(
            Guarded(owner.note, "idempotency").forever(self._renew, lambda: owner.pace.claim_beat_seconds)
        )

    async def finish(self, exchange: Exchange) -> None:
        """Store a complete answer; after anything else the key is free again."""
        # In a separate task: a client that leaves now must not leave a partial record or a claimed key
        # behind.
        work = asyncio.create_task(self._settle(exchange))
        self._owner.hold(work)
        try:
            await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
        finally:
            self._recorder.release()

    async def _settle(self, exchange: Exchange) -> None:
        await stop(self._beat)
        recorder, document, note = self._recorder, self._document, self._owner.note
        complete = recorder.whole and 200 <= recorder.status < 300 and exchange.record.outcome == "ok"
        try:
            if not await self._owner.is_ours(document, self._record):
                return  # it was not renewed in time, and another has it by now
            if complete and recorder.too_large:
                note(
                    "warn",
                    "idempotency",
                    id=exchange.record.id,
                    detail="the answer is too large to be stored",
                )
            elif complete:
                record = msgspec.structs.replace(
                    self._record,
                    status=recorder.status,
                    content_type=recorder.content_type,
                    body=recorder.body,
                )
                if await self._owner.documents.replace(self._owner.form(document, record, done=True)):
                    return
            await self._owner.documents.delete(document.caller, IDEMPOTENT, [document.id])
        except StoreDown:
            # The answer exists and is paid for: it is sent all the same. The claim ends with its lease.
            note(
                "error",
                "idempotency",
                id=exchange.record.id,
                detail="the store is down: the answer is not stored",
            )

    async def _renew(self) -> None:
        began = time.monotonic()
        if began - self._renewed > self._owner.pace.claim_lease_seconds:
            return  # another request may hold the claim by now
        form = self._owner.form(self._document, self._record)
        touched = await self._owner.documents.touch(
            form.caller, form.kind, form.id, created=form.created, expires=form.expires
        )
        if touched:
            self._renewed = began


class Idempotency:
    def __init__(
        self,
        documents: Documents,
        settings: Settings,
        note: Note,
        pace: Pace,
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.documents = documents
        self.note = note
        self.pace = pace
        self.max_answer_bytes = max_answer_bytes
        self._hours = settings.store.keep.idempotency_hours
        self._settling: set[asyncio.Task[None]] = set()

    def adopt(self, settings: Settings) -> None:
        self._hours = settings.store.keep.idempotency_hours

    async def close(self) -> None:
        """Wait for answers that are being stored."""
        if self._settling:
            await asyncio.wait(self._settling, timeout=_CLOSING_SECONDS)

    async def begin(self, exchange: Exchange) -> Claim | None:
        """The right to answer the request; None: it was answered before, and that answer has been sent
        again."""
        key = exchange.job.head.headers[HEADER]
        _check(key)
        try:
            return await self._claim(exchange, key)
        except StoreDown:
            raise unavailable("Idempotency-Key") from None

    async def _claim(self, exchange: Exchange, key: str) -> Claim | None:
        job = exchange.job
        name = hashlib.blake2b(f"{job.dialect}\x1f{key}".encode(), digest_size=24).hexdigest()
        digest = _digest(job)
        document = Document(job.caller.name, IDEMPOTENT, name, b"")
        own = _Record(digest, nonce=secrets.token_bytes(12))
        for _ in range(_TRIES):
            if await self._put(document, own):
                recorder = Recorder(exchange.reply, self.max_answer_bytes)
                exchange.reply = recorder
                return Claim(self, document, recorder, own)
            found = await self.documents.get(job.caller.name, IDEMPOTENT, [name])
            if not found:
                continue  # it was released just now
            record = _DECODER.decode(found[0].body)
            if record.digest != digest:
                raise RequestError("conflict", "Idempotency-Key: this key was used with another request")
            if record.status:
                _replay(exchange, record)
                return None
            raise RequestError(
                "conflict", "Idempotency-Key: a request with this key is still running", retry_after=1
            )
        # A record exists that cannot be opened: it is sealed with a secret that the gateway no longer has.
        raise RequestError(
            "conflict", "Idempotency-Key: its answer cannot be read; use another key", retry_after=1
        )

    async def _put(self, document: Document, record: _Record) -> bool:
        """If the client leaves meanwhile, no claim is left behind."""
        work = asyncio.create_task(self.documents.put([self.form(document, record)], new=True))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self.hold(asyncio.create_task(self._withdraw(work, document, record)))
            raise

    async def _withdraw(self, work: asyncio.Task[bool], document: Document, record: _Record) -> None:
        with contextlib.suppress(StoreDown):  # it ends with its lease
            if await work and await self.is_ours(document, record):
                await self.documents.delete(document.caller, document.kind, [document.id])

    async def is_ours(self, document: Document, record: _Record) -> bool:
        """Whether this claim is the current one."""
        found = await self.documents.get(document.caller, document.kind, [document.id])
        return bool(found) and _DECODER.decode(found[0].body).nonce == record.nonce

    def form(self, document: Document, record: _Record, *, done: bool = False) -> Document:
        """The record as it is stored. A claim that is not renewed expires."""
        now = int(time.time() * 1000)
        kept = round(self._hours * _HOUR_MS) if done else round(self.pace.claim_lease_seconds * 1000)
        return msgspec.structs.replace(
            document, body=_ENCODER.encode(record), created=now, expires=now + kept if kept else 0
        )

    def hold(self, task: asyncio.Task[None]) -> None:
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)


class IdempotentReplay:
    """A step: a request with an Idempotency-Key is answered once, and repeats get the same answer."""

    def __init__(self, inner: Answerer, idempotency: Idempotency) -> None:
        self._inner = inner
        self._idempotency = idempotency

    async def answer(self, exchange: Exchange) -> None:
        claim = await self._idempotency.begin(exchange)
        if claim is None:
            return  # answered before: that answer has been sent again
        try:
            await self._inner.answer(exchange)
        finally:
            await claim.finish(exchange)


def _check(key: str) -> None:
    if not key or len(key) > MAX_KEY_LETTERS or not key.isprintable():
        raise RequestError(
            "bad", f"Idempotency-Key: expected 1 to {MAX_KEY_LETTERS} printable characters", param=HEADER
        )


def _digest(job: Job) -> bytes:
    """The hash of everything that must be equal. The query may contain a key of the client: only the
    parameters that affect the answer are included."""
    head = job.head
    said = f"{head.method}\x1f{head.path}\x1f{job.context.framing}\x1f{job.conversation}\x1f"
    digest = hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=32)
    digest.update(job.body)
    return digest.digest()


def _replay(exchange: Exchange, record: _Record) -> None:
    exchange.record.answered(record.status)
    exchange.record.noted("stored answer sent again")
    reported = exchange.headers()
    headers = [("content-type", record.content_type), ("idempotent-replayed", "true"), *reported]
    if record.content_type.startswith("text/event-stream"):
        headers += [("cache-control", "no-cache"), ("x-accel-buffering", "no")]
    exchange.reply.send(record.status, headers, record.body)
