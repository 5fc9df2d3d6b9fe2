"""A stream that goes on as it came, byte for byte, while a tap listens to what it tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from wireglot.dialects.base import (
    Mender,
    RepeatedFrames,
    StreamReader,
    Surface,
    Tap,
    readable,
    readable_elements,
)
from wireglot.dialects.registry import dialect
from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.streams.feeder import StreamRefused, asked, begins, signed, usage_source
from wireglot.gateway.streams.late_verdict import LateVerdict
from wireglot.gateway.streams.translation import Translation
from wireglot.gateway.targets.prepared import Prepared
from wireglot.ir.content import Text
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response
from wireglot.ir.stream import Delta, Event, Failure, Finish, Folding, PartStart, StreamFailed, fold
from wireglot.ir.verdict import INTERRUPTIONS, NoAnswer, accept
from wireglot.wire.json import BadJson

_TRUNCATED: Final = ApiError(
    "server", "the upstream stream ended before it was complete", status=502, code="upstream_error"
)
_KEEP_ALIVES: Final = (b":", b"event: ping", b"\n", b"\r\n")
_GAPS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_GAP_BYTES_MOST: Final = 3
"""Bytes at the end that may be the beginning of a gap."""
_ESCAPED: Final = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|/)")
"""Letters that JSON may spell otherwise, of those that keys are made of."""
_PEEKED_BYTES: Final = 64


class Passthrough:
    """The stream as it is. Whole frames only: half a frame of a stream that breaks is never sent."""

    def __init__(
        self, exchange: Exchange, prepared: Prepared, client: ClientStream, *, keeps: bool, judged: bool
    ) -> None:
        """`keeps`: the answer is read beside its bytes, which stay as they are, and its end waits. `judged`:
        what ends before anything of it has gone out must be an answer; a vendor's own word is taken."""
        job = exchange.job
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self._exchange = exchange
        self._client = client
        self._buffer = bytearray()
        """What has come and may not go out yet: half a frame, or an opening that is no answer so far."""
        self._sent = 0
        self._told = False
        self._prepared = prepared
        self._keeps = keeps
        self._judged = judged
        self._framed = job.framing == "sse"
        self._tap: Tap = job.surface.tap(job.settings.limits.event)
        mender = job.surface.mender if not prepared.as_is else None
        self._mender = mender() if mender is not None else None
        self._late = self._late_verdict() if judged else None
        self._hide = _hidden_usage(job.surface) if prepared.own_usage else None
        self._opening: StreamReader | None = dialect(job.dialect).stream_reader(prepared.context)
        self._opening_events: list[Event] = []
        self._beside: StreamReader | None = None
        self._folding = Folding()
        self._last = bytearray()
        """The end of an answer that is to be kept first."""
        self._one_document: Translation | None = None
        """Where a whole answer came in place of a stream."""
        self._repeated = RepeatedFrames(job.settings.limits.event)
        self._unheard = b""
        """The last frames that the tap was not told, as it would learn nothing but their numbers."""

    def feed(self, data: bytes) -> None:
        if self._repeated.hold(data):
            self._repeat(data)
            return
        if not self.moved:
            self.moved = not data.startswith(_KEEP_ALIVES)
        if self._opening is not None:
            self._open(data)
            return
        self._hear()
        before = self._rest()
        self._take(data)
        if before is None or self._rest() != before or not self._leaves(data):
            self._repeated.forget()
        else:
            self._repeated.learn(data)

    def _leaves(self, data: bytes) -> bool:
        """Whether whole frames go out as they came, and others will that only have other words in them."""
        if self._hide is not None and self._hide(data) != data:
            return False
        return self._mender is None or self._mender.leaves(data)

    def _rest(self) -> tuple[bool, int] | None:
        """What is known so far, where whole frames came to their client and the answer goes on."""
        if self.ended or self._tap.complete or self._buffer or not self._framed:
            return None
        return self._late.rest if self._late is not None else (True, 0)

    def _repeat(self, data: bytes) -> None:
        """Frames that tell what others told, in other words: nobody here need look at them."""
        self.moved = True
        self._unheard = data
        if self._beside is not None:
            self._folding.add(self._beside.read(data))
        self._client.write(data)

    def _hear(self) -> None:
        if self._unheard:
            self._tap.feed(self._unheard)
            self._unheard = b""

    def finish(self) -> None:
        if self.ended:
            return
        self.ended = True
        self._hear()
        opening, self._opening = self._opening, None
        if opening is not None:
            self._tap.feed(bytes(self._buffer))
        elif self._buffer and self._framed and not readable(bytes(self._buffer), self._is_end):
            self.fail(_TRUNCATED)
            return
        self._tap.close()
        if opening is not None and not self._is_stream():
            self._write_one_document(opening)
            return
        if opening is not None:
            self._judge(opening.end())
        self._settle()
        if self._tap.complete and (self._framed or self._is_whole_array()):
            if self._buffer:
                self._write(bytes(self._buffer))
            if self._late is not None:
                self._late.end()
                if self.failure is not None or self._is_none(self._late):
                    return
            self._close()
        else:
            self.fail(_TRUNCATED)

    def _is_stream(self) -> bool:
        """Whether what was held to its end is a whole stream, though no part of an answer came in it."""
        opening = bytes(self._buffer[:_PEEKED_BYTES]).lstrip()[:1]
        shaped = opening not in (b"{", b"[") if self._framed else opening == b"["
        return shaped and self._tap.complete and self._tap.error is None

    def _is_whole_array(self) -> bool:
        return self._tap.settled == self._sent + len(self._buffer.rstrip())

    def _write_one_document(self, opening: StreamReader) -> None:
        """It showed only at its end that this is an answer: one document where a stream was asked for."""
        written = self._one_document = Translation(
            self._exchange, self._exchange.job.dialect, self._prepared, self._client, keeps=self._keeps
        )
        written.events([*self._opening_events, *opening.end()])
        self.failure = written.failure

    def fail(self, error: ApiError) -> None:
        if self._one_document is not None:
            self._one_document.fail(error)
            self.failure = self._one_document.failure
            return
        self.ended = True
        self._hear()
        self._settle()
        if self._tap.complete and self._framed:  # all of the answer is there; what broke was its epilogue
            self._close()
            return
        self._tell(error)

    def response(self) -> Response | None:
        if self._one_document is not None:
            return self._one_document.response()
        if self._beside is None or self.failure is not None or self._tap.error is not None:
            return None
        self._folding.add(self._beside.end())
        try:
            return self._folding.response()
        except StreamFailed:
            return None

    def release(self, error: ApiError | None = None) -> None:
        if self._one_document is not None:
            self._one_document.release(error)
            return
        if self.failure is not None or self._beside is None:
            return  # the stream is over, and the client has its end
        if error is not None:
            self._tell(error)
            return
        self._client.write(bytes(self._last), last=True)
        self._client.end()

    def _late_verdict(self) -> LateVerdict:
        exchange, context = self._exchange, self._prepared.context  # `self` in them would be a circle
        spoken = dialect(exchange.job.dialect)
        return LateVerdict(
            lambda: spoken.stream_reader(context),
            lambda: asked(exchange),
            exchange.job.surface.marks,
            leaves_out=exchange.job.surface.client.leaves_out_calls,
        )

    def _write(self, data: bytes) -> None:
        if self._late is not None:
            self._late.hear(data, complete=self._tap.complete)
            if self._is_none(self._late):
                return
        if self._mender is not None:
            data = self._mended(self._mender, data)
        self._send(data)

    def _send(self, data: bytes) -> None:
        self._told = True
        if self._hide is not None:
            data = self._hide(data)
        if self._beside is not None and self._tap.complete:
            self._last += data
        else:
            self._client.write(data, last=self._tap.ended)

    def _is_none(self, late: LateVerdict) -> bool:
        """Whether what has begun as an answer has turned out to be none; the client has been told. Raises
        NoAnswer where nothing has gone out."""
        if late.verdict is None:
            return False
        if not self._told and late.verdict not in INTERRUPTIONS:
            raise NoAnswer(late.verdict, self._tap.usage)
        self.ended = True
        self._settle()
        self._tell(late.verdict)
        return True

    def _mended(self, mender: Mender, data: bytes) -> bytes:
        data = mender.mend(data)
        if mender.losses:
            self._exchange.record.lost(mender.losses)
            mender.losses = []
        return data

    def _close(self) -> None:
        """The end of a whole answer, unless it is to be kept first."""
        if self._beside is None:
            self._client.end()

    def _tell(self, error: ApiError) -> None:
        job = self._exchange.job
        self.failure = error
        self._exchange.record.failed(error)
        context = msgspec.structs.replace(job.context, first_event=self._tap.next_event)
        writer = dialect(job.dialect).stream_writer(context, None)
        data = writer.write([Failure(signed(error, self._exchange))])
        if not self._framed and self._sent:
            data = b"," + data[data.index(b"{") :]  # the array has begun: its next element, and its end
        self._client.write(data)
        self._client.end()

    def abandon(self) -> None:
        if self._one_document is not None:
            self._one_document.abandon()
        elif not self.ended:
            self._hear()
            self._settle()

    def _open(self, data: bytes) -> None:
        """Hold everything back until the first event that is part of an answer."""
        assert self._opening is not None
        self._buffer += data
        for piece in _frame_by_frame(data):
            events = self._opening.read(piece)
            self._opening_events += events
            if begins(events):
                self._judge(events)
                break
        else:
            return
        if self._late is not None:
            self._late.said = _says(self._opening_events)
        self._opening, self._opening_events = None, []
        held, self._buffer = bytes(self._buffer), bytearray()
        job = self._exchange.job
        if self._keeps and self._exchange.ending.expects(held, whole=False):
            self._beside = dialect(job.dialect).stream_reader(self._prepared.context)
        if job.surface.client.asked_model is not None and not self._prepared.as_is:
            held = job.surface.client.asked_model.in_opening(held, job.model)
        self._take(held)

    def _judge(self, events: list[Event]) -> None:
        """Nothing of it has gone out. Raises NoAnswer where it ends, and answers nothing, and StreamRefused
        where its end is an error."""
        if not self._judged or not events:
            return
        last = events[-1]
        if type(last) is Failure and self._tap.complete:
            raise StreamRefused(last.error)
        if type(last) is not Finish:
            return
        if events[-1] not in self._opening_events:
            self._opening_events += events
        accept(fold(self._opening_events), asked(self._exchange))

    def _take(self, data: bytes) -> None:
        """Raises BadJson at the first frame that a client could not read; those before it have gone out."""
        whole = self._readable(data) if self._framed else data
        if whole:
            self._take_readable(whole)
        if len(whole) < len(data) and not self.ended:
            raise BadJson("an event is not JSON")

    def _readable(self, data: bytes) -> bytes:
        """What comes before the first whole frame that a client could not read."""
        held, frames = self._buffer, data
        if held or not data.endswith((b"\n\n", b"\r\n\r\n")):
            # A large frame arrives in many reads: it is put together once.
            edge = bytes(held[-_GAP_BYTES_MOST:])
            end = _last_frame_end(edge + data, 0)
            if not end:
                return data
            frames = bytes(held) + data[: end - len(edge)]
        count = readable(frames, self._is_end)
        return data if count == len(frames) else data[: max(0, count - len(held))]

    def _is_end(self, frame: bytes) -> bool:
        job = self._exchange.job
        tap = job.surface.tap(job.settings.limits.event)
        tap.feed(frame)
        return tap.ended

    def _take_readable(self, data: bytes) -> None:
        self._tap.feed(data)
        error = self._tap.error
        if error is not None and self._tells_a_secret(bytes(self._buffer) + data):
            self.ended = True
            self._settle()
            self._tell(error)
            return
        if self._beside is not None:
            self._folding.add(self._beside.read(data))
        if self._tap.ended:
            self._settle()  # before the client can see the end
        self._forward(data)
        if self._tap.ended and not self._buffer:  # half a line end may still be on its way
            self.finish()  # the client need not wait for the upstream to close

    def _tells_a_secret(self, data: bytes) -> bool:
        """Whether an upstream repeats our key in its complaint, however JSON lets it be spelled."""
        plain = _ESCAPED.sub(_unescaped, data)
        return self._exchange.redactor.data(plain) != plain

    def _forward(self, data: bytes) -> None:
        if not self._framed:
            self._forward_elements(data)
            return
        held = self._buffer
        if not held and (data[-2:] == b"\n\n" or data[-4:] == b"\r\n\r\n"):
            self._write(data)
            return
        # A large frame arrives in many reads: no byte is looked at twice.
        searched = max(0, len(held) - _GAP_BYTES_MOST)
        held += data
        cut = _last_frame_end(held, searched)
        if cut:
            self._write(bytes(memoryview(held)[:cut]))
            del held[:cut]

    def _forward_elements(self, data: bytes) -> None:
        self._buffer += data
        whole = self._tap.settled - self._sent
        if self._late is not None and self._tap.complete and self._buffer[:whole].rstrip()[-1:] != b"]":
            return  # judged with the end of the array, which is what its reader waits for
        if whole > 0:
            elements = bytes(memoryview(self._buffer)[:whole])
            count = readable_elements(elements)
            if count:
                self._write(elements[:count])
            del self._buffer[:whole]
            self._sent += count
            if count < whole and not self.ended:
                raise BadJson("an element is not JSON")

    def _settle(self) -> None:
        record, usage = self._exchange.record, self._tap.usage
        record.used(usage, usage_source(usage, self._tap.complete))
        record.stopped(self._tap.stop)
        if self._tap.error is not None:
            record.failed(self._tap.error)


def _says(events: list[Event]) -> bool:
    """Whether there are words in it. Thoughts are none, and calls are judged when they end."""
    others = {event.index for event in events if type(event) is PartStart and type(event.part) is not Text}
    return any(type(event) is Delta and event.text and event.index not in others for event in events)


def _frame_by_frame(data: bytes) -> Iterator[bytes]:
    """The first read may hold a whole answer, and its first event is all that decides: no more is parsed."""
    at = 0
    while (end := data.find(b"\n\n", at)) >= 0:
        yield data[at : end + 2]
        at = end + 2
    yield data[at:]


def _hidden_usage(surface: Surface) -> Callable[[bytes], bytes] | None:
    """Whole frames without the usage that we asked for and the client did not."""
    usage = surface.upstream.stream_usage if surface.upstream is not None else None
    return usage.hide if usage is not None else None


def _last_frame_end(data: bytes | bytearray, start: int) -> int:
    """Where the last whole frame ends, whatever line ends the server uses."""
    return max((at + len(gap) for gap in _GAPS if (at := data.rfind(gap, start)) >= 0), default=0)


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes((int(found[1], 16),)) if found[1] else b"/"
