"""A stream that is forwarded byte for byte, while a tap reads what it reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import msgspec

from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.problems import may_pass
from wireglot.gateway.streams.feeder import StreamRefused, asked, begins, signed, usage_source
from wireglot.gateway.streams.late_verdict import LateVerdict
from wireglot.gateway.streams.translation import Translation
from wireglot.gateway.targets.prepared import Prepared
from wireglot.http.redaction import Redactor
from wireglot_core.dialects.base import StreamReader
from wireglot_core.dialects.passthrough import RepeatedFrames, readable, readable_elements, whole_frames
from wireglot_core.dialects.surface import Tap
from wireglot_core.ir.content import Text
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.stream import Delta, Event, Failure, Finish, Folding, PartStart, StreamFailed, fold
from wireglot_core.ir.verdict import INTERRUPTIONS, NoAnswer, accept
from wireglot_core.wire.json import BadJson
from wireglot_core.wire.sse import SseDecoder

_TRUNCATED: Final = ApiError(
    "server", "the upstream stream ended before it was complete", status=502, code="upstream_error"
)
_KEEP_ALIVES: Final = (b":", b"event: ping", b"\n", b"\r\n")
_GAPS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_USUAL_GAPS: Final = (b"\n\n", b"\r\n\r\n")
_BEHIND_GAP: Final = re.compile(rb"(?<=\n\n)")
_MAX_GAP_BYTES: Final = 3
"""Bytes at the end of a forwarded piece that may be the beginning of the gap between two events."""
_ESCAPED: Final = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|/)")
"""JSON escapes of characters that occur in keys."""
_PEEKED_BYTES: Final = 64


class _Kept:
    """An answer that is to be stored: it is parsed while its bytes pass through, and its end waits for
    that."""

    def __init__(self, reader: StreamReader) -> None:
        self.end = bytearray()
        self._reader = reader
        self._folding = Folding()

    def read(self, data: bytes) -> None:
        self._folding.add(self._reader.read(data))

    def response(self) -> Response | None:
        self._folding.add(self._reader.end())
        try:
            return self._folding.response()
        except StreamFailed:
            return None


class Passthrough:
    """Forwards a stream unchanged. Only whole frames: half a frame of a stream that breaks is never sent.

    The table at the end of this file lists its states, and what each does with its input.
    """

    def __init__(
        self, exchange: Exchange, prepared: Prepared, client: ClientStream, *, keeps: bool, judged: bool
    ) -> None:
        """`keeps`: the answer is parsed while its bytes pass unchanged, and its end waits. `judged`: a stream
        that ends before anything of it was sent must be an answer; a vendor's own stream is not checked."""
        job = exchange.job
        surface, limit = job.surface, job.settings.limits.event
        new_reader = partial(exchange.codec.stream_reader, prepared.context)
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self.cut = False
        self.holds_end = False
        self._state = OPENING
        self._exchange = exchange
        self._client = client
        self._prepared = prepared
        self._keeps = keeps
        self._framed = job.context.framing == "sse"
        self._buffer = bytearray()
        """Received bytes that may not be sent yet: half a frame, or an opening that is no answer so far."""
        self._sent = 0
        """Bytes of an array that have been sent, or are about to be."""
        self._begun = False
        """Whether anything has been sent."""
        self._tap: Tap = surface.tap(limit)
        self._repair = surface.repair() if surface.repair is not None and not prepared.as_is else None
        usage = surface.upstream.stream_usage if prepared.own_usage and surface.upstream is not None else None
        self._hide = usage.hide if usage is not None else None
        """Removes the usage that we asked for and the client did not, from whole frames."""
        leaves_out = surface.client.leaves_out_calls
        wanted = partial(asked, exchange)  # with `self` in it there would be a reference cycle
        self._late = LateVerdict(new_reader, wanted, surface.marks, leaves_out=leaves_out) if judged else None
        self._opening: StreamReader = new_reader()
        self._opening_events: list[Event] = []
        self._kept: _Kept | None = None
        self._one_document: Translation | None = None
        """Set if a whole answer came in place of a stream."""
        # Only the dialects with marks define the text in which frames may differ.
        self._repeated = RepeatedFrames(limit if surface.marks is not None else 0)
        self._unheard = b""
        """The last frames that were not passed to the tap, as it would learn nothing but their number."""

    def feed(self, data: bytes) -> None:
        if self._repeated.shape is not None and self._repeated.hold(data):
            # They differ from checked frames only in their text: they need not be parsed here.
            self.moved = True
            self._unheard = data
            if self._kept is not None:
                self._kept.read(data)
            self._client.write(data)
            return
        if not self.moved:
            self.moved = not data.startswith(_KEEP_ALIVES)
        self._state.feed(self, data)

    def finish(self) -> None:
        self._state.finish(self)

    def fail(self, error: ApiError) -> None:
        if not self.ended:
            self._break(error)

    def abandon(self) -> None:
        if not self.ended:
            self._settle()

    def response(self) -> Response | None:
        if self._one_document is not None:
            return self._one_document.response()
        if self._kept is None or self.failure is not None or self._tap.error is not None:
            return None
        return self._kept.response()

    def release(self, error: ApiError | None = None) -> None:
        if self._one_document is not None:
            self._one_document.release(error)
        elif self.failure is not None or self._kept is None:
            pass  # the stream is over, and the client has its end
        elif error is not None:
            self._tell(error)
        else:
            self._client.write(bytes(self._kept.end), last=True)
            self._client.end()

    # Before an answer has begun.

    def _hold(self, data: bytes) -> None:
        """Hold everything back until the first event that is part of an answer."""
        self._buffer += data
        # The first read may contain a whole answer, but its first event alone decides: no more is parsed.
        for piece in _BEHIND_GAP.split(data):
            events = self._opening.read(piece)
            self._opening_events += events
            if begins(events):
                break
        else:
            return
        if self._late is not None:
            self._judge(events)
            self._late.said = _says(self._opening_events)
        self._opening_events = []
        held, self._buffer = bytes(self._buffer), bytearray()
        job = self._exchange.job
        if self._keeps and self._exchange.ending.expects(held, whole=False):
            self._kept = _Kept(self._exchange.codec.stream_reader(self._prepared.context))
            self.holds_end = True
        if job.surface.client.asked_model is not None and not self._prepared.as_is:
            held = job.surface.client.asked_model.in_opening(held, job.model)
        self._state = FRAMES if self._framed else ELEMENTS
        self._state.feed(self, held)

    def _finish_held(self) -> None:
        """The end came before any part of an answer: of a stream, or of one document."""
        self._over()
        self._tap.feed(bytes(self._buffer))
        self._tap.close()
        events = self._opening.end()
        first = bytes(self._buffer[:_PEEKED_BYTES]).lstrip()[:1]
        is_stream = first not in (b"{", b"[") if self._framed else first == b"["
        if is_stream and self._tap.complete and self._tap.error is None:
            if self._late is not None:
                self._judge(events)
            self._settle()
            self._complete()
            return
        written = self._one_document = Translation(
            self._exchange, self._exchange.codec, self._prepared, self._client, keeps=self._keeps
        )
        written.events([*self._opening_events, *events])
        self.failure, self.holds_end = written.failure, written.holds_end

    def _judge(self, events: list[Event]) -> None:
        """Called while nothing of it has been sent. Raises NoAnswer if it ends without an answer, and
        StreamRefused if its end is an error."""
        last = events[-1] if events else None
        if type(last) is Failure and self._tap.complete:
            raise StreamRefused(last.error)
        if type(last) is not Finish:
            return
        if last not in self._opening_events:
            self._opening_events += events
        accept(fold(self._opening_events), asked(self._exchange))

    # While an answer is being sent.

    def _take_frames(self, data: bytes) -> None:
        """Raises BadJson at the first frame that a client could not parse; those before it have been sent."""
        held, frames, came = self._buffer, data, data
        if held or not data.endswith(_USUAL_GAPS):
            # A large frame arrives in many reads: no byte is scanned twice, and it is joined once.
            edge = bytes(held[-_MAX_GAP_BYTES:])
            end = _last_frame_end(edge + data)
            frames = bytes(held) + data[: end - len(edge)] if end else b""
        good = readable(frames, self._is_end) if frames else 0
        is_bad = good < len(frames)
        if is_bad:
            came, frames = data[: max(0, good - len(held))], frames[:good]
        if came and self._hear(came):
            if came is not frames:
                held += came
                del held[: len(frames)]
            is_known = bool(frames) and self._pass(frames)
            if is_known and frames is data and not self._tap.complete:
                self._repeated.learn(data)
            else:
                self._repeated.shape = None
        if is_bad and not self.ended:
            raise BadJson("an event is not JSON")

    def _take_elements(self, data: bytes) -> None:
        """Raises BadJson as above."""
        if not self._hear(data):
            return
        held = self._buffer
        held += data
        whole = self._tap.settled - self._sent
        if self._late is not None and self._tap.complete and held[:whole].rstrip()[-1:] != b"]":
            return  # checked with the end of the array, which its reader waits for
        if whole > 0:
            elements = bytes(memoryview(held)[:whole])
            del held[:whole]
            count = readable_elements(elements)
            self._sent += count
            if count:
                self._pass(elements[:count])
            if count < whole and not self.ended:
                raise BadJson("an element is not JSON")

    def _hear(self, data: bytes) -> bool:
        """Pass data to the tap before it is sent. False: it was an error that may not be forwarded unchanged,
        and the client was sent another."""
        tap = self._tap
        if self._unheard:
            self._hear_last()
        tap.feed(data)
        if tap.error is not None and not self._may_pass(tap.error, bytes(self._buffer) + data):
            self._over()
            if self._framed:
                self._pass_up_to_error(bytes(self._buffer) + data)
            self._settle()
            self._tell(tap.error)
            return False
        if self._kept is not None:
            self._kept.read(data)
        if tap.ended:
            self._settle()  # before the client can see the end
        return True

    def _may_pass(self, error: ApiError, data: bytes) -> bool:
        exchange = self._exchange
        return not _tells_a_secret(data, exchange.redactor) and may_pass(error, data, exchange)

    def _pass_up_to_error(self, data: bytes) -> None:
        """Frames that came together with an error, before it, are part of the answer."""
        job = self._exchange.job
        tap = job.surface.tap(job.settings.limits.event)
        good = 0
        for frame in whole_frames(data):
            tap.feed(frame)
            if tap.error is not None:
                break
            good += len(frame)
        if 0 < good < len(data):  # the error is only found with the data before it
            self._client.write(self._fitted(data[:good]))
            self._begun = True

    def _hear_last(self) -> None:
        if self._unheard:
            self._tap.feed(self._unheard)
            self._unheard = b""

    def _pass(self, frames: bytes) -> bool:
        """Send whole frames or elements. Returns whether they were sent unchanged, and others that differ
        only in their text will be."""
        late, tap, is_known = self._late, self._tap, True
        if late is not None:
            is_known = late.hear(frames, complete=tap.complete and not self._holds_frame())
            if late.verdict is not None:
                self._refuse(late.verdict)
                return False
        is_left = self._repair is None or self._repair.leaves(frames)
        out = frames if is_left and self._hide is None else self._fitted(frames)
        self._begun = True
        if self._kept is not None and tap.complete:
            self._kept.end += out
        else:
            self._client.write(out, last=tap.ended)
        if tap.ended and not self._buffer and not self.ended:  # half a line end may still come
            self._over()
            self._complete()  # the client need not wait for the upstream to close
        return is_known and is_left and out is frames

    def _holds_frame(self) -> bool:
        """Whether the tap has read a frame that waits for the second half of its last line end."""
        return self._framed and bool(self._buffer) and bool(SseDecoder().cut(bytes(self._buffer)))

    def _fitted(self, frames: bytes) -> bytes:
        """The frames as the client gets them."""
        if self._repair is not None:
            frames = self._repair.repair(frames)
            if self._repair.losses:
                self._exchange.record.lost(self._repair.losses)
                self._repair.losses = []
        return self._hide(frames) if self._hide is not None else frames

    def _is_end(self, frame: bytes) -> bool:
        job = self._exchange.job
        tap = job.surface.tap(job.settings.limits.event)
        tap.feed(frame)
        return tap.ended

    # The end of a stream.

    def _finish_taken(self) -> None:
        self._over()
        if self._framed and self._buffer and not readable(bytes(self._buffer), self._is_end):
            self._break(_TRUNCATED)
            return
        self._hear_last()
        self._tap.close()
        self._settle()
        self._complete()

    def _complete(self) -> None:
        """The end of a whole answer, unless it must be stored first."""
        tap, late = self._tap, self._late
        is_whole = self._framed or tap.settled == self._sent + len(self._buffer.rstrip())
        if not tap.complete or not is_whole:
            self._break(_TRUNCATED)
            return
        held = b""
        if self._buffer:
            held, self._buffer = bytes(self._buffer), bytearray()
            self._pass(held)
        if late is not None and self.failure is None:
            late.end()
            if late.verdict is not None:
                self._refuse(late.verdict)
        if self.failure is None:
            self._end_whole(b"" if held.endswith(_USUAL_GAPS) or not held else b"\n\n")

    def _end_whole(self, gap: bytes = b"") -> None:
        """Ends a whole answer, with the last frame of its dialect if the upstream left it out. `gap`: what is
        missing of the frame before it."""
        frame = self._exchange.job.surface.client.end_frame
        is_left_out = frame and self._framed and not self._tap.ended and not self._prepared.as_is
        if is_left_out and self._kept is not None:
            self._kept.end += gap + frame
        elif is_left_out:
            self._client.write(gap + frame, last=True)
        if self._kept is None:
            self._client.end()

    def _refuse(self, verdict: ApiError) -> None:
        """A stream that began as an answer has turned out to be none. Raises NoAnswer if nothing has been
        sent."""
        if not self._begun and verdict not in INTERRUPTIONS:
            raise NoAnswer(verdict, self._tap.usage)
        self._end_with(verdict)

    def _break(self, error: ApiError) -> None:
        """The upstream failed. The answer may be complete: then only its epilogue broke."""
        self._hear_last()
        if not self._tap.complete or not self._framed:
            self._end_with(error)
            return
        self._over()
        self._settle()
        self._end_whole()

    def _end_with(self, error: ApiError) -> None:
        self._over()
        self._settle()
        self._tell(error)

    def _over(self) -> None:
        self.ended, self._state = True, OVER

    def _settle(self) -> None:
        """Enter what is known of the answer into the record."""
        if self._unheard:
            self._hear_last()
        tap, record = self._tap, self._exchange.record
        usage = tap.usage
        record.used(usage, usage_source(usage, tap.complete))
        record.stopped(tap.stop)
        if flaws := getattr(tap, "flaws", None):  # a custom dialect need not have any
            record.flawed(flaws)
        if tap.error is not None:
            record.failed(tap.error)

    def _tell(self, error: ApiError) -> None:
        job = self._exchange.job
        self.failure = error
        self._exchange.record.failed(error)
        context = msgspec.structs.replace(job.context, first_event=self._tap.next_event)
        writer = self._exchange.codec.stream_writer(context, None)
        data = writer.write([Failure(signed(error, self._exchange))])
        if not self._framed and self._begun:
            data = b"," + data[data.index(b"{") :]  # the array has begun: its next element, and its end
        self._client.write(data, answers=False)
        self._client.end()

    def _ignore(self, data: bytes = b"") -> None: ...


class _State(NamedTuple):
    feed: Callable[[Passthrough, bytes], None]
    """Called with data."""
    finish: Callable[[Passthrough], None]
    """Called when no more will come."""


OPENING: Final = _State(Passthrough._hold, Passthrough._finish_held)
"""No part of an answer has come: nothing has been sent, and another upstream may still be called."""
FRAMES: Final = _State(Passthrough._take_frames, Passthrough._finish_taken)
"""Server-sent events are being sent."""
ELEMENTS: Final = _State(Passthrough._take_elements, Passthrough._finish_taken)
"""Elements of a JSON array are being sent."""
OVER: Final = _State(Passthrough._ignore, Passthrough._ignore)
"""The end has come. It has been sent, unless it waits for `release`."""


def _says(events: list[Event]) -> bool:
    """Whether the events contain text. Thoughts do not count, and calls are checked when they end."""
    others = set()
    for event in events:
        if type(event) is PartStart and type(event.part) is not Text:
            others.add(event.index)
        elif type(event) is Delta and event.text and event.index not in others:
            return True
    return False


def _last_frame_end(data: bytes) -> int:
    """Where the last whole frame ends, whichever line ends the server uses."""
    return max((at + len(gap) for gap in _GAPS if (at := data.rfind(gap)) >= 0), default=0)


def _tells_a_secret(data: bytes, redactor: Redactor) -> bool:
    """Whether an upstream repeats our key in its error message, in any JSON spelling."""
    plain = _ESCAPED.sub(_unescaped, data)
    return redactor.data(plain) != plain


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes((int(found[1], 16),)) if found[1] else b"/"
