"""Upstream bytes in, client bytes out, as they arrive: passed through, translated, or collected.

A feeder is called from the socket's own read, so it never waits. Until its answer has begun a failure is
raised (`Refused`): another attempt may follow. After that a failure is told in the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import msgspec

from wireglot.dialects.base import StreamReader, StreamWriter
from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import cleaned
from wireglot.gateway.observe.record import Record, UsageSource
from wireglot.gateway.relay.attempt import Prepared
from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.job import Job
from wireglot.gateway.streams.tap import Tap, tap
from wireglot.http.transport import TransportFault
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response, Usage
from wireglot.ir.stream import Event, Failure, Finish, Start, StreamFailed, UsageReport, fold
from wireglot.providers.aliases import EventRestorer

_TRUNCATED = ApiError(
    "server", "the upstream stream ended before it was complete", status=502, code="upstream_error"
)
_KEEP_ALIVES = (b":", b"event: ping", b"\n", b"\r\n")
_GAPS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_ESCAPED = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|/)")
"""Letters that JSON may spell otherwise, of those that keys are made of."""
_NO_CHOICE = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_USAGE_ONLY = re.compile(rb'^data:(?=.*"choices"\s*:\s*\[\s*\])(?=.*"usage"\s*:\s*\{)', re.MULTILINE)
_FRAMES = re.compile(rb"(\r\n\r\n|\n\n|\r\r)")
_PEEKED = 64
_GAP_MAX = 3
"""Bytes at the end that may be the beginning of a gap."""
_STREAM_TIMES = 4
"""How much larger than a whole answer a stream may be: each event repeats its frame."""


class StreamRefused(Exception):
    """The upstream's stream is an error before it is an answer."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


class Feeder(Protocol):
    ended: bool
    """Nothing more will come that the client should see."""
    failure: ApiError | None
    """Why the stream ended too early, where it did."""
    moved: bool
    """Set by everything but keep-alives; whoever watches clears it."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> None:
        """The upstream's end: a stream that is not complete is told as broken."""
        ...

    def fail(self, error: ApiError) -> None:
        """The upstream failed after the answer had begun."""
        ...

    def abandon(self) -> None:
        """The client has gone: keep the account of what it got."""
        ...


class HoldsEnd(Protocol):
    """A feeder that waits with the end of an answer until what must be kept of it is kept."""

    def response(self) -> Response | None:
        """The whole answer, if it came to its end."""
        ...

    def release(self, error: ApiError | None = None) -> None:
        """Let the end go out, or this error in its place."""
        ...


class Passthrough:
    """The stream as it is. Whole frames only: half a frame of a stream that breaks is never sent."""

    def __init__(self, job: Job, prepared: Prepared, client: ClientStream, max_frame: int) -> None:
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self._job = job
        self._client = client
        self._held = bytearray()
        self._sent = 0
        self._prepared = prepared
        self._events: list[Event] = []  # of the opening
        self._framed = job.framing == "sse"
        self._tap: Tap = tap(job.dialect, max_frame)
        self._opening: StreamReader | None = dialect(job.dialect).stream_reader(prepared.context)
        self._max_frame = max_frame
        # What is kept of the answer is read beside it; the bytes stay as they are.
        self._beside = dialect(job.dialect).stream_reader(prepared.context) if job.keepings else None
        self._seen: list[Event] = []
        self._last = bytearray()
        self._late: Translation | None = None

    def feed(self, data: bytes) -> None:
        if not self.moved:
            self.moved = not data.startswith(_KEEP_ALIVES)
        if self._opening is not None:
            self._open(data)
            return
        self._take(data)

    def finish(self) -> None:
        if self.ended:
            return
        self.ended = True
        opening, self._opening = self._opening, None
        if opening is not None:
            self._tap.feed(bytes(self._held))
        self._tap.close()
        if opening is not None and not self._is_stream():
            self._write_late(opening)
            return
        self._settle()
        if self._tap.complete and (self._framed or self._is_whole_array()):
            if self._held:
                self._write(bytes(self._held))
            self._close()
        else:
            self.fail(_TRUNCATED)

    def _is_stream(self) -> bool:
        """Whether what was held to its end is a whole stream, though no part of an answer came in it."""
        opening = bytes(self._held[:_PEEKED]).lstrip()[:1]
        shaped = opening not in (b"{", b"[") if self._framed else opening == b"["
        return shaped and self._tap.complete and self._tap.error is None

    def _is_whole_array(self) -> bool:
        return self._tap.settled == self._sent + len(self._held.rstrip())

    def _write_late(self, opening: StreamReader) -> None:
        """It showed only at its end that this is an answer: one document where a stream was asked for."""
        late = self._late = Translation(self._job, self._job.dialect, self._prepared, self._client)
        late.events([*self._events, *opening.end()])
        self.failure = late.failure

    def fail(self, error: ApiError) -> None:
        self.ended = True
        self._settle()
        if self._tap.complete and self._framed:  # all of the answer is there; what broke was its epilogue
            self._close()
            return
        self._tell(error)

    def response(self) -> Response | None:
        if self._late is not None:
            return self._late.response()
        if self._beside is None or self.failure is not None or self._tap.error is not None:
            return None
        self._seen += self._beside.end()
        try:
            return fold(self._seen)
        except StreamFailed:
            return None

    def release(self, error: ApiError | None = None) -> None:
        if self._late is not None:
            self._late.release(error)
            return
        if self.failure is not None:
            return  # it has been told, and the stream is over
        if error is not None:
            self._tell(error)
            return
        self._client.write(bytes(self._last))
        self._client.end()

    def _write(self, data: bytes) -> None:
        if self._prepared.own_usage and _NO_CHOICE.search(data):
            data = _without_usage(data)
        if self._beside is not None and self._tap.complete:
            self._last += data
        else:
            self._client.write(data)

    def _close(self) -> None:
        """The end of a whole answer."""
        self._job.completed()
        if self._beside is None:
            self._client.end()

    def _tell(self, error: ApiError) -> None:
        self.failure = error
        _note_failure(self._job.record, error)
        context = msgspec.structs.replace(self._job.context, first_event=self._tap.next_event)
        writer = dialect(self._job.dialect).stream_writer(context, None)
        data = writer.write([Failure(_signed(error, self._job))])
        if not self._framed and self._sent:
            data = b"," + data[data.index(b"{") :]  # the array has begun: its next element, and its end
        self._client.write(data)
        self._client.end()

    def abandon(self) -> None:
        if not self.ended:
            self._settle()

    def _open(self, data: bytes) -> None:
        """Hold everything back until the first event that is part of an answer."""
        assert self._opening is not None
        self._held += data
        for piece in _frame_by_frame(data):
            events = self._opening.read(piece)
            self._events += events
            if _begins(events):
                break
        else:
            return
        self._events = []
        self._opening = None
        held, self._held = bytes(self._held), bytearray()
        self._take(held)

    def _take(self, data: bytes) -> None:
        self._tap.feed(data)
        error = self._tap.error
        if error is not None and self._tells_a_secret(bytes(self._held) + data):
            self.ended = True
            self._settle()
            self._tell(error)
            return
        if self._beside is not None:
            self._seen += self._beside.read(data)
        if self._tap.ended:
            self._settle()
            self._job.completed()  # before the client can see the end
        self._forward(data)
        if self._tap.ended and not self._held:  # half a line end may still be on its way
            self.finish()  # the client need not wait for the upstream to close

    def _tells_a_secret(self, data: bytes) -> bool:
        """Whether an upstream repeats our key in its complaint, however JSON lets it be spelled."""
        plain = _ESCAPED.sub(_unescaped, data)
        return self._job.redactor.data(plain) != plain

    def _forward(self, data: bytes) -> None:
        if not self._framed:
            self._forward_elements(data)
            return
        held = self._held
        if not held and (data[-2:] == b"\n\n" or data[-4:] == b"\r\n\r\n"):
            self._write(data)
            return
        searched = max(
            0, len(held) - _GAP_MAX
        )  # a large frame arrives in many reads: no byte is looked at twice
        held += data
        cut = _last_frame_end(held, searched)
        if cut:
            self._write(bytes(memoryview(held)[:cut]))
            del held[:cut]

    def _forward_elements(self, data: bytes) -> None:
        self._held += data
        whole = self._tap.settled - self._sent
        if whole > 0:
            self._write(bytes(memoryview(self._held)[:whole]))
            del self._held[:whole]
            self._sent += whole

    def _settle(self) -> None:
        record = self._job.record
        record.usage = self._tap.usage
        record.stop = self._tap.stop
        record.usage_source = _source(record.usage, self._tap.complete)
        if self._tap.error is not None:
            _note_failure(record, self._tap.error)


def _frame_by_frame(data: bytes) -> Iterator[bytes]:
    """The first read may hold a whole answer, and its first event is all that decides: no more is parsed."""
    at = 0
    while (end := data.find(b"\n\n", at)) >= 0:
        yield data[at : end + 2]
        at = end + 2
    yield data[at:]


def _without_usage(data: bytes) -> bytes:
    """Whole frames without the one that tells only the usage."""
    frames = _FRAMES.split(data)  # each followed by its gap
    whole = zip(frames[::2], [*frames[1::2], b""], strict=True)
    return b"".join(frame + gap for frame, gap in whole if not _USAGE_ONLY.search(frame))


def _last_frame_end(data: bytearray, start: int) -> int:
    """Where the last whole frame ends, whatever line ends the server uses."""
    return max((at + len(gap) for gap in _GAPS if (at := data.rfind(gap, start)) >= 0), default=0)


class Translation:
    """Events of one dialect written in another."""

    def __init__(self, job: Job, target_dialect: str, prepared: Prepared, client: ClientStream) -> None:
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self.writer: StreamWriter = dialect(job.dialect).stream_writer(prepared.context, prepared.request)
        self._job = job
        self._client = client
        self._reader = dialect(target_dialect).stream_reader(prepared.context)
        self._restorer = EventRestorer(prepared.aliases) if prepared.aliases else None
        self._room = (
            job.settings.limits.response * _STREAM_TIMES
        )  # writers keep the text for their last event
        self._held: list[Event] = []
        self._begun = False
        self._usage: Usage | None = None
        self._keeps = bool(job.keepings)
        self._seen: list[Event] = []
        self._pending: Finish | None = None

    def feed(self, data: bytes) -> None:
        self._room = _less(self._room, data)
        events = self._reader.read(data)
        if events:
            self.moved = True
            self._take(events)

    def finish(self) -> None:
        if not self.ended:
            self._take(self._reader.end())

    def fail(self, error: ApiError) -> None:
        if not self.ended:
            self._begun = True
            self._take([Failure(error)])

    def abandon(self) -> None:
        if not self.ended:
            record = self._job.record
            record.usage, record.usage_source = self._usage, _source(self._usage, False)

    def events(self, events: list[Event]) -> None:
        """Events that came by another way than the wire (an answer that was not streamed)."""
        self._take(events)

    def _take(self, events: list[Event]) -> None:
        if self.ended:
            return
        if not self._begun:
            self._held += events
            if not _begins(events):
                return
            self._begun = True
            events, self._held = self._held, []
        for event in events:
            kind = type(event)
            if kind is UsageReport or kind is Finish or kind is Start:
                self._usage = event.usage or self._usage  # type: ignore[union-attr]  # the three that have it
        last = events[-1]
        if type(last) is Failure:
            last = Failure(_signed(last.error, self._job))
            events = [*events[:-1], last]
        if self._restorer is not None:
            events = self._restorer.events(events)
        if self._keeps:
            self._seen += events
            if type(last) is Finish:
                events, self._pending, self.ended = events[:-1], last, True
        if type(last) is Failure or (type(last) is Finish and not self._keeps):
            self._end(last, self.writer.write(events))
            return
        data = self.writer.write(events)
        if data:
            self._client.write(data)

    def response(self) -> Response | None:
        return fold(self._seen) if self._pending is not None else None

    def release(self, error: ApiError | None = None) -> None:
        if self._pending is None:
            return  # it did not come to its end, and that has been told
        last = self._pending if error is None else Failure(_signed(error, self._job))
        self._end(last, self.writer.write([last]))

    def _end(self, last: Finish | Failure, data: bytes) -> None:
        self.ended = True
        record = self._job.record
        record.usage = self._usage
        record.usage_source = _source(self._usage, type(last) is Finish)
        record.losses = [*record.losses, *self.writer.losses]
        if type(last) is Finish:
            record.stop = last.stop.reason
        elif type(last) is Failure:
            self.failure = last.error
            _note_failure(record, last.error)
        self._job.completed()
        if data:
            self._client.write(data)
        self._client.end()


class Collection:
    """A stream for a client that wants one answer: collected, then folded."""

    def __init__(self, target_dialect: str, prepared: Prepared, limit: int) -> None:
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self._reader = dialect(target_dialect).stream_reader(prepared.context)
        self._events: list[Event] = []
        self._room = limit * _STREAM_TIMES

    def feed(self, data: bytes) -> None:
        self._room = _less(self._room, data)
        events = self._reader.read(data)
        if events:
            self.moved = True
            self._events += events
            self.ended = type(events[-1]) is Finish or type(events[-1]) is Failure

    def finish(self) -> None:
        if not self.ended:
            self._events += self._reader.end()
            self.ended = True

    def fail(self, error: ApiError) -> None:
        raise StreamRefused(error)

    def abandon(self) -> None:
        """Nothing of it has reached the client."""

    def response(self) -> Response:
        try:
            return fold(self._events)
        except StreamFailed as failed:
            raise StreamRefused(failed.error) from None


def _less(room: int, data: bytes) -> int:
    """What is left of a stream's allowance."""
    room -= len(data)
    if room < 0:
        raise TransportFault("too_large", "the upstream's answer is too large")
    return room


def _begins(events: list[Event]) -> bool:
    """Whether an answer has begun. `Start` alone is a promise, which overload can still break."""
    for event in events:
        if type(event) is Failure:
            raise StreamRefused(event.error)
        if type(event) is not Start and type(event) is not UsageReport:
            return True
    return False


def _signed(error: ApiError, job: Job) -> ApiError:
    """With our request id, which the log has too, and without our secrets, which the upstream knows."""
    return msgspec.structs.replace(cleaned(error, job.redactor.text), request_id=job.record.id)


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes((int(found[1], 16),)) if found[1] else b"/"


def _source(usage: Usage | None, complete: bool) -> UsageSource:
    if usage is None:
        return "none"
    return "provider" if complete else "partial"


def _note_failure(record: Record, error: ApiError) -> None:
    record.outcome = "error"
    record.error_kind = error.kind
    record.error_code = error.code
    record.error_message = error.message
