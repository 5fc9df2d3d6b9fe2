"""One exchange while it is recorded: data is referenced unchanged; nothing is copied, parsed or waited for.

All of it happens on the loop. The trace is made in a thread (`made_trace.py`): by the writer once the answer
was sent, or when it is viewed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.collected_reply import PassedReply
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.client.answer import HttpAnswer
from wireglot.http.copies import PIECE_BYTES, MessageCopy, Room
from wireglot.http.transport import Answer
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

MAX_SHORTENED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a request or answer that is held whole until its trace is made, and is then shortened to `[trace]
body_bytes`. Of a longer one only the beginning is recorded."""
_IN_VALUES: Final = 4
"""How many times its bytes a parsed conversation takes."""
_EVENTS: Final = [("content-type", "text/event-stream; charset=utf-8")]


class RecordedAttempt(msgspec.Struct, eq=False):
    """One attempt, without the objects it was made of: a parsed conversation takes several times its
    bytes."""

    began: float
    target: Target
    stream: bool
    passthrough: bool
    account: str
    emulates: bool
    losses: tuple[Loss, ...]
    request: MessageCopy
    answer: MessageCopy | None = None
    error: str = ""
    differing: Request | None = None
    """The translated request, if it differs from the client's body. It is written as JSON."""


class KeepsRecordings(Protocol):
    """Decides what happens to recordings."""

    running: dict[str, Recording]
    """By id."""

    def over(self, recording: Recording) -> None: ...

    def keep(self, recording: Recording) -> None: ...


class Recording(msgspec.Struct, eq=False):
    """Implements `Tap`, and `TapBeside`."""

    record: ExchangeRecord
    room: Room
    body_bytes: int
    request: MessageCopy
    answer: MessageCopy
    keeper: KeepsRecordings | None = None
    is_temporary: bool = False
    """In memory only: the settings do not say that it should be written."""
    title: str | None = None
    """The last words of the user, if they were requested."""
    notes: list[str] = []
    attempts: list[RecordedAttempt] = []
    stretches: list[tuple[str, float]] = []
    """Names, and when each ended."""
    held: int = 0
    """Memory that it takes in addition to its messages."""

    @property
    def lost(self) -> bool:
        """There was no memory for it."""
        return any(side.lost for side in self.sides())

    @property
    def size(self) -> int:
        """All memory that it takes."""
        return self.held + sum(side.held for side in self.sides())

    def let_go(self) -> None:
        """Everything was released."""
        for side in self.sides():
            side.let_go()
        for attempt in self.attempts:
            attempt.differing = None
        self.room.held -= self.held
        self.held = 0

    def sides(self) -> list[MessageCopy]:
        answers = [attempt.answer for attempt in self.attempts if attempt.answer is not None]
        return [self.request, self.answer, *(attempt.request for attempt in self.attempts), *answers]

    # Methods of `Tap`.

    def passed(self, stretch: str) -> None:
        self.stretches.append((stretch, time.monotonic()))

    def asking(self, target: Target, prepared: Prepared, asked: Request | None) -> None:
        now, outbound, context = time.monotonic(), prepared.outbound, prepared.context
        self.stretches.append(("translation", now))
        room, body = self.room, outbound.body
        request = MessageCopy(room, self.body_bytes, outbound.method, outbound.url, headers=outbound.headers)
        size = len(body)
        if not _may_hold(size, room, self.body_bytes):
            request.add(body)
        elif size:
            request.pieces.append((now, body))
            request.size = size
            request.held = size + PIECE_BYTES
            room.held += size + PIECE_BYTES
        if asked is not None:
            values = size * _IN_VALUES
            if request.lost or room.held + values > room.most:
                request.lost, asked = True, None
            else:
                self.held += values
                room.held += values
        self.attempts.append(
            RecordedAttempt(
                now,
                target,
                stream=prepared.stream,
                passthrough=prepared.raw,
                account=context.account,
                emulates=context.emulates,
                losses=prepared.losses,
                request=request,
                differing=asked,
            )
        )

    def answering(self, answer: Answer) -> Answer:
        self.stretches.append(("first byte", time.monotonic()))
        attempt = self.attempts[-1]
        side = attempt.answer = _answer_copy(self.room, self.body_bytes)
        side.status, side.headers = answer.status, list(answer.headers.items())
        if type(answer) is HttpAnswer:
            side.streamed = attempt.stream and answer.status == 200
            answer.copy = side
            for piece in answer.pieces:  # that came with its head
                side.add(piece)
            return answer
        return RecordedAnswer(answer, side)

    def attempt_failed(self, message: str) -> None:
        self.passed("failed attempt")
        if self.attempts:
            self.attempts[-1].error = self.attempts[-1].error or message

    # An exchange without a waiting client, see `TapBeside`.

    def beside(self, head: Head, body: bytes, record: ExchangeRecord) -> Recording:
        record.wiped = self.record.wiped
        own = recording_of(head, body, record, self.room, self.body_bytes, self.keeper)
        own.is_temporary = self.is_temporary
        if self.keeper is not None:
            self.keeper.running[record.id] = own
        own.notes.append(f"made in the background for {self.record.id}")
        own.answer.streamed = True
        own.answer.status, own.answer.headers = 200, _EVENTS
        self.notes.append(f"its response was made in the background: {record.id}")
        return own

    def wrote(self, data: bytes) -> None:
        self.answer.add(data)

    def over(self) -> None:
        if self.keeper is not None and self.record.begun:
            self.keeper.over(self)
        else:  # a refusal, which its sender gets
            if self.keeper is not None:
                self.keeper.running.pop(self.record.id, None)
            self.let_go()

    def keep(self) -> None:
        if self.keeper is not None:
            self.keeper.keep(self)


def recording_of(
    head: Head,
    body: bytes,
    record: ExchangeRecord,
    room: Room,
    body_bytes: int,
    keeper: KeepsRecordings | None = None,
) -> Recording:
    """The recording of an exchange that begins: it has its request."""
    headers, size = list(head.headers.items()), len(body)
    request = MessageCopy(room, body_bytes, head.method, head.target, headers=headers)
    if not _may_hold(size, room, body_bytes):
        request.add(body)
    elif size:
        request.pieces.append((record.started, body))
        request.size = size
        request.held = size + PIECE_BYTES
        room.held += size + PIECE_BYTES
    return Recording(
        record, room, body_bytes, request=request, answer=_answer_copy(room, body_bytes), keeper=keeper
    )


def _answer_copy(room: Room, body_bytes: int) -> MessageCopy:
    return MessageCopy(room, body_bytes, spare=max(0, MAX_SHORTENED_BYTES - body_bytes))


def _may_hold(size: int, room: Room, body_bytes: int) -> bool:
    """Whether a request is held whole until its trace is made, which shortens one that is too long."""
    if size > body_bytes:
        return size <= MAX_SHORTENED_BYTES and room.held <= room.most // 2 - size - PIECE_BYTES
    return room.held <= room.most - size - PIECE_BYTES


class RecordedAnswer:
    """Implements `Answer`, for an upstream's answer that does not come over a connection of ours."""

    __slots__ = ("_behind", "_side", "headers", "status")

    def __init__(self, behind: Answer, side: MessageCopy) -> None:
        self.status = behind.status
        self.headers = behind.headers
        self._behind = behind
        self._side = side

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        body = await self._behind.read(limit, held)
        self._side.add(body)
        return body

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        side = self._side
        side.streamed = True

        def reported(data: bytes) -> None:
            side.add(data)
            feed(data)

        await self._behind.pump(reported)

    def pause(self) -> None:
        self._behind.pause()

    def resume(self) -> None:
        self._behind.resume()

    def abort(self) -> None:
        self._behind.abort()


class RecordedReply(PassedReply):
    """Records a reply that is not on a connection of ours."""

    __slots__ = ("_side",)

    def __init__(self, behind: Reply, side: MessageCopy) -> None:
        super().__init__(behind)
        self._side = side

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self._side.status, self._side.headers = status, list(headers)
        self._side.add(body)
        self.behind.send(status, headers, body)

    def start(self, status: int, headers: Headers) -> None:
        self._side.status, self._side.headers = status, list(headers)
        self._side.streamed = True
        self.behind.start(status, headers)

    def write(self, data: bytes) -> None:
        self._side.add(data)
        self.behind.write(data)


# Recordings that wait to be written.
MAX_WAITING: Final = 1_000
_THREAD_NAME: Final = "traces"


class Writer:
    """`write` and `written` are called in the writer's thread: `written` with each recording afterwards,
    whether or not it succeeded."""

    def __init__(
        self,
        write: Callable[[Recording], None],
        through: Callable[[Recording], None],
        note: Note,
        most: int = MAX_WAITING,
    ) -> None:
        self._write = write
        self._through = through
        self._note = note
        self._most = most
        self._waiting: deque[Recording] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._working: Recording | None = None
        self._closed = False
        self._trouble = ""
        self.failed = 0
        """Recordings that could not be written."""

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self._most

    def take(self, recording: Recording) -> None:
        """Never waits, except for a lock that is only held briefly."""
        with self._changed:
            self._waiting.append(recording)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name=_THREAD_NAME, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def forget(self, key: str, until: float, seconds: float) -> int:
        """Write nothing of one caller, up to a time. Returns how many waited. One being written now is waited
        for; if that takes longer, its writer removes it."""

        def is_theirs(recording: Recording) -> bool:
            return recording.record.caller == key and recording.record.at <= until

        with self._changed:
            gone = [each for each in self._waiting if is_theirs(each)]
            self._waiting = deque(each for each in self._waiting if not is_theirs(each))
        for recording in gone:
            self._through(recording)
        if not self.flush(seconds):
            with self._changed:
                if self._working is not None and is_theirs(self._working):
                    self._working.record.wiped = True
        return len(gone)

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written. Returns whether it is."""
        until = time.monotonic() + seconds
        with self._changed:
            while (self._waiting or self._working) and self._thread is not None:
                if not self._changed.wait(max(0.0, until - time.monotonic())) and time.monotonic() >= until:
                    return False
        return True

    def close(self, seconds: float) -> None:
        self.flush(seconds)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._working = None
                self._changed.notify_all()
                while not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait()
                recording = self._working = self._waiting.popleft()
            self._step(recording)

    def _step(self, recording: Recording) -> None:
        try:
            self._write(recording)
            self._trouble = ""
        except Exception as fault:  # one recording that cannot be written does not block the others
            self.failed += 1
            trouble = (
                f"{type(fault).__name__}: {fault}" if isinstance(fault, OSError) else type(fault).__name__
            )
            if trouble != self._trouble:
                self._trouble = trouble
                self._note("error", "trace not written", detail=trouble)
        finally:
            self._through(recording)
