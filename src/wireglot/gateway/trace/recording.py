"""One exchange while it is recorded: what goes by is held as it is, nothing is copied, read or waited for.

All of it happens on the loop. What it comes to, once the answer is out, is made by the writer's thread
(`made_trace.py`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.collected_reply import PassedReply
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.transport import Answer
from wireglot.ir.request import Request

_PIECE_BYTES: Final = 100
"""That a piece takes beside its data."""
_EVENTS: Final = [("content-type", "text/event-stream; charset=utf-8")]


class Room:
    """Bytes that all recordings of the process may hold, from the first of a request until it is written."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0

    def take(self, size: int) -> bool:
        if self.held + size > self.most:
            return False
        self.held += size
        return True


class RecordedSide:
    """One message as it goes by. Of what is longer than it may be, the beginning is kept."""

    __slots__ = (
        "_recording",
        "headers",
        "method",
        "pieces",
        "size",
        "status",
        "streamed",
        "truncated",
        "url",
    )

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.method = ""
        self.url = ""
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.pieces: list[tuple[float, bytes]] = []
        """With the time of each."""
        self.streamed = False
        self.size = 0
        self.truncated = False

    def head(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.status, self.headers = status, list(headers)

    def data(self, data: bytes) -> None:
        if not data:
            return
        recording, before = self._recording, self.size
        self.size = before + len(data)
        if self.truncated:
            return
        if self.size > recording.body_bytes:
            self.truncated = True
            data = data[: recording.body_bytes - before]
        if recording.hold(len(data) + _PIECE_BYTES):
            self.pieces.append((time.monotonic(), data))

    def withhold(self) -> None:
        """How long it was is all that is reported about it."""
        self.pieces = []
        self.truncated = True


class RecordedAttempt:
    """One attempt, without what it was made of: the conversation as values takes several times its bytes."""

    __slots__ = (
        "account", "answer", "began", "differing", "emulates", "error", "losses", "passthrough", "request",
        "stream", "target",
    )  # fmt: skip

    def __init__(
        self, recording: Recording, target: Target, prepared: Prepared, differing: Request | None
    ) -> None:
        outbound = prepared.outbound
        self.began = time.monotonic()
        self.target = target
        self.stream = prepared.stream
        self.passthrough = prepared.raw
        self.account = prepared.context.account
        self.emulates = prepared.context.emulates
        self.losses = prepared.losses
        self.error = ""
        self.request = RecordedSide(recording)
        self.request.method, self.request.url = outbound.method, outbound.url
        self.request.head(0, outbound.headers)
        self.request.data(outbound.body)
        self.answer: RecordedSide | None = None
        # What was translated, where that is not just what the client's body says. It is written as JSON.
        self.differing = differing if differing is None or recording.hold(len(outbound.body)) else None


class KeepsRecordings(Protocol):
    """Who decides what becomes of a recording."""

    def over(self, recording: Recording) -> None: ...

    def keep(self, recording: Recording) -> None: ...


class Recording:
    """Implements `Tap`, and `TapBeside`."""

    def __init__(
        self,
        head: Head,
        body: bytes,
        record: Record,
        room: Room,
        body_bytes: int,
        keeper: KeepsRecordings | None = None,
    ) -> None:
        self.record: Final = record
        self.notes: list[str] = []
        self._keeper = keeper
        self.body_bytes: Final = body_bytes
        self.lost = False
        """There was no room for it."""
        self.held = 0
        self._room = room
        self.attempts: list[RecordedAttempt] = []
        self.stretches: list[tuple[str, float]] = []
        """Names, and when each ended."""
        self.request = RecordedSide(self)
        self.request.method, self.request.url = head.method, head.target
        self.request.head(0, head.headers.items())
        self.answer = RecordedSide(self)
        self.request.data(body)

    def hold(self, size: int) -> bool:
        if self.lost:
            return False
        if not self._room.take(size):
            self.let_go()
            self.lost = True
            return False
        self.held += size
        return True

    def let_go(self) -> None:
        """Nothing is held any more."""
        for side in self._sides():
            side.pieces = []
        for attempt in self.attempts:
            attempt.differing = None
        self._room.held -= self.held
        self.held = 0

    def _sides(self) -> list[RecordedSide]:
        answers = [attempt.answer for attempt in self.attempts if attempt.answer is not None]
        return [self.request, self.answer, *(attempt.request for attempt in self.attempts), *answers]

    # What it is given, as `Tap` says.

    def passed(self, stretch: str) -> None:
        self.stretches.append((stretch, time.monotonic()))

    def asking(self, target: Target, prepared: Prepared, asked: Request | None) -> None:
        self.passed("translation")
        self.attempts.append(RecordedAttempt(self, target, prepared, asked))

    def answering(self, answer: Answer) -> Answer:
        self.passed("first byte")
        side = self.attempts[-1].answer = RecordedSide(self)
        side.head(answer.status, answer.headers.items())
        return RecordedAnswer(answer, side)

    def attempt_failed(self, message: str) -> None:
        self.passed("failed attempt")
        if self.attempts:
            self.attempts[-1].error = self.attempts[-1].error or message

    # An exchange that no client waits for, as `TapBeside` says.

    def beside(self, head: Head, body: bytes, record: Record) -> Recording:
        own = Recording(head, body, record, self._room, body_bytes=self.body_bytes, keeper=self._keeper)
        own.notes.append(f"made in the background, as {self.record.id} asked for it")
        own.answer.streamed = True
        own.answer.head(200, _EVENTS)
        self.notes.append(f"what it asked for was made in the background: {record.id}")
        return own

    def wrote(self, data: bytes) -> None:
        self.answer.data(data)

    def over(self) -> None:
        if self._keeper is not None and self.record.begun:
            self._keeper.over(self)
        else:  # it was refused, which is reported to its asker
            self.let_go()

    def keep(self) -> None:
        if self._keeper is not None:
            self._keeper.keep(self)


class RecordedAnswer:
    """Implements `Answer`: an upstream's, which tells what is read of it."""

    __slots__ = ("_behind", "_side", "headers", "status")

    def __init__(self, behind: Answer, side: RecordedSide) -> None:
        self.status = behind.status
        self.headers = behind.headers
        self._behind = behind
        self._side = side

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        body = await self._behind.read(limit, held)
        self._side.data(body)
        return body

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        side = self._side
        side.streamed = True

        def reported(data: bytes) -> None:
            side.data(data)
            feed(data)

        await self._behind.pump(reported)

    def pause(self) -> None:
        self._behind.pause()

    def resume(self) -> None:
        self._behind.resume()

    def abort(self) -> None:
        self._behind.abort()


class RecordedReply(PassedReply):
    """A client's, which tells what goes out over it."""

    __slots__ = ("_side",)

    def __init__(self, behind: Reply, side: RecordedSide) -> None:
        super().__init__(behind)
        self._side = side

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self._side.head(status, headers)
        self._side.data(body)
        self.behind.send(status, headers, body)

    def start(self, status: int, headers: Headers) -> None:
        self._side.head(status, headers)
        self._side.streamed = True
        self.behind.start(status, headers)

    def write(self, data: bytes) -> None:
        self._side.data(data)
        self.behind.write(data)


MAX_WAITING: Final = 1_000
_THREAD_NAME: Final = "traces"


class Writer:
    """`write` is called in its thread, `written` in the thread's too: it is given each recording that is
    through, however that went."""

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
        self._working = False
        self._closed = False
        self._trouble = ""
        self.failed = 0
        """Recordings that could not be written."""

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self._most

    def take(self, recording: Recording) -> None:
        """Never waits, but for a lock that nobody holds for long."""
        with self._changed:
            self._waiting.append(recording)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name=_THREAD_NAME, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written. Whether it is."""
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
                self._working = False
                self._changed.notify_all()
                while not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait()
                recording = self._waiting.popleft()
                self._working = True
            self._step(recording)

    def _step(self, recording: Recording) -> None:
        try:
            self._write(recording)
            self._trouble = ""
        except Exception as fault:  # one recording that cannot be written holds up no other
            self.failed += 1
            trouble = (
                f"{type(fault).__name__}: {fault}" if isinstance(fault, OSError) else type(fault).__name__
            )
            if trouble != self._trouble:
                self._trouble = trouble
                self._note("error", "trace not written", detail=trouble)
        finally:
            self._through(recording)
