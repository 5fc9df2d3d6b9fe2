"""A running exchange, for viewers: both requests at once, both streams as they grow. A page sends its
position and gets what is new; nothing is prepared before it is requested.

A secret may span several events. What may be its beginning is held back until more has come.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

import msgspec

from wireglot.gateway.trace.made_trace import (
    EVENT_END,
    Scrubber,
    clean_events,
    is_event_stream,
    milliseconds,
    open_events,
    traced_attempt,
    traced_message,
    traced_steps,
    withhold_unsearched,
)
from wireglot.gateway.trace.recording import Recording
from wireglot.http.copies import MessageCopy
from wireglot.http.redaction import Redactor
from wireglot_core.traces.trace import Attempt, Row, TraceFrame, TraceMessage, TraceStep

MAX_LOOKED_AT: Final = 8
"""Exchanges whose displayed events are cached; those of others are made again."""
_AT_ONCE_BYTES: Final = 512 * 1024
"""Bytes of one stream in one answer to a page: the rest comes with the next."""
_CONTEXT_EVENTS: Final = 8
_CONTEXT_BYTES: Final = 16 * 1024
"""Bytes of events already shown, in which a secret may have begun."""
_HELD_BYTES: Final = 64 * 1024
"""No secret is this long: what was held back until then is shown."""
_CURSOR: Final = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)
"""The numbers of attempts, of events to the client and of events of the last attempt that a page has."""
_STEPS: Final = {"next event": "events", "retry": "retry wait", "key": "key wait"}
"""Names of steps, by what is waited for."""


class GrowingTrace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is new of a running exchange."""

    row: Row
    cursor: str
    """To be sent with the next request."""
    more: bool = False
    """More is available already."""
    now_ms: float = 0.0
    """Since the request came in."""
    request: TraceMessage | None = None
    """The client's request; sent once."""
    answer: TraceMessage | None = None
    """The answer to the client, with its new frames."""
    first_attempt: int = 0
    """The number of the first of `attempts`: earlier ones have not changed."""
    attempts: list[Attempt] = []
    """A request is given once; an answer has its new frames."""
    steps: list[TraceStep] = []
    """All steps. The last one is in progress."""


class _Frames:
    """The frames of one stream, as far as they may be shown."""

    def __init__(self) -> None:
        self.frames: list[TraceFrame] = []
        self.more = False
        self._taken = 0
        self._rest = bytearray()
        """The beginning of an event. It grows in place: an upstream may send it byte by byte."""
        self._context: list[tuple[float, bytes]] = []
        self._held: list[tuple[float, bytes]] = []

    def grow(self, side: MessageCopy, scrub: Scrubber, started: float) -> None:
        new = self._new_events(side)
        if not new:
            return
        context, waiting = self._context, self._held + new
        place = max(0, len(waiting) - open_events([*context, *waiting], scrub))
        if sum(len(data) for _, data in waiting[place:]) > _HELD_BYTES:
            place = len(waiting)
        self._held = waiting[place:]
        if not place:
            return
        cleaned = clean_events([*context, *waiting[:place]], scrub, shown=len(context))[len(context) :]
        self.frames += [
            TraceFrame(milliseconds(at, started), data.decode("utf-8", "replace")) for at, data in cleaned
        ]
        kept = [*context, *cleaned][-_CONTEXT_EVENTS:]
        while kept and sum(len(data) for _, data in kept) > _CONTEXT_BYTES:
            kept.pop(0)
        self._context = kept

    def _new_events(self, side: MessageCopy) -> list[tuple[float, bytes]]:
        pieces, taken, size = side.pieces, self._taken, 0
        new: list[tuple[float, bytes]] = []
        while taken < len(pieces) and size < _AT_ONCE_BYTES:
            new.append(pieces[taken])
            size += len(pieces[taken][1])
            taken += 1
        self._taken, self.more = taken, taken < len(pieces)
        if not is_event_stream(side):
            return new
        events: list[tuple[float, bytes]] = []
        rest = self._rest
        for at, data in new:
            begin, look = 0, max(0, len(rest) - 3)
            rest += data
            for end in [found.end() for found in EVENT_END.finditer(rest, look)]:
                events.append((at, bytes(rest[begin:end])))
                begin = end
            del rest[:begin]
        return events


class _Look:
    """The cached display of one exchange."""

    def __init__(self, recording: Recording, redactor: Redactor) -> None:
        self.lock = Lock()
        self._recording = recording
        self._redactor = redactor
        self._scrub: Scrubber | None = None
        self._request = TraceMessage()
        self._answer = _Frames()
        self._attempts: list[Attempt] = []
        self._answers: list[_Frames] = []

    @property
    def is_over(self) -> bool:
        return self._recording.record.finished > 0

    def since(self, row: Row, cursor: str, now: float) -> GrowingTrace:
        """Runs in a thread."""
        recording = self._recording
        started = recording.record.started
        if self._scrub is None:
            request = recording.request
            body = b"".join(data for _, data in list(request.pieces))
            self._scrub = Scrubber(self._redactor, request.headers, request.url, body)
            withhold_unsearched(recording, self._scrub)
            self._request = traced_message(request, self._scrub, started, recording.body_bytes)
        scrub = self._scrub
        is_known = _CURSOR.fullmatch(cursor) is not None
        shown_before, client, upstream = map(int, cursor.split(".")) if is_known else (0, 0, 0)
        attempts = list(recording.attempts)
        while len(self._attempts) < len(attempts):
            attempt = attempts[len(self._attempts)]
            withhold_unsearched(recording, scrub)
            bare = msgspec.structs.replace(attempt, answer=None, differing=None)
            self._attempts.append(
                traced_attempt(bare, scrub, self._redactor, started, [], recording.body_bytes)
            )
            self._answers.append(_Frames())
        first = max(0, shown_before - 1)
        shown: list[Attempt] = []
        for number in range(first, len(attempts)):
            answer, frames = attempts[number].answer, self._answers[number]
            made = self._attempts[number]
            if number < shown_before:
                made = msgspec.structs.replace(made, request=None)
            if answer is not None:
                skipped = upstream if number == shown_before - 1 else 0
                made = msgspec.structs.replace(
                    made,
                    answer=self._message(answer, frames, scrub, skipped),
                    error=scrub.text(attempts[number].error),
                )
            elif attempts[number].error:
                made = msgspec.structs.replace(made, error=scrub.text(attempts[number].error))
            shown.append(made)
        answer_message = self._message(recording.answer, self._answer, scrub, client)
        last = self._answers[-1] if self._answers else None
        return GrowingTrace(
            row=row,
            cursor=f"{len(attempts)}.{len(self._answer.frames)}.{len(last.frames) if last else 0}",
            more=self._answer.more or any(each.more for each in self._answers),
            now_ms=milliseconds(now, started),
            request=None if is_known else self._request,
            answer=answer_message if recording.answer.status else None,
            first_attempt=first,
            attempts=shown,
            steps=_steps(recording, row, now),
        )

    def _message(self, side: MessageCopy, frames: _Frames, scrub: Scrubber, skipped: int) -> TraceMessage:
        if side.streamed:
            frames.grow(side, scrub, self._recording.record.started)
            while frames.more and len(frames.frames) <= skipped:  # it was dropped, and is made again
                frames.grow(side, scrub, self._recording.record.started)
        return TraceMessage(
            status=side.status,
            headers=scrub.headers(side.headers),
            bytes=side.size,
            truncated=side.truncated,
            frames=frames.frames[skipped:],
        )


def _steps(recording: Recording, row: Row, now: float) -> list[TraceStep]:
    """All steps, including the one in progress."""
    record = recording.record
    steps = traced_steps(recording)
    last = recording.stretches[-1][1] if recording.stretches else record.started
    name = row.waits_for or ("translation" if recording.stretches else "store")
    began, ended = milliseconds(last, record.started), milliseconds(now, record.started)
    return [*steps, TraceStep(_STEPS.get(name, name), began, ended)]


class GrowingTraces:
    """The exchanges that are being viewed now."""

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        """`redactor`: returns the one that knows the current secrets."""
        self._redactor = redactor
        self._looks: OrderedDict[str, _Look] = OrderedDict()

    async def since(self, recording: Recording, row: Row, cursor: str) -> GrowingTrace:
        id = recording.record.id
        for gone in [id for id, held in self._looks.items() if held.is_over]:
            del self._looks[gone]
        look = self._looks.get(id)
        if look is None:
            look = self._looks[id] = _Look(recording, self._redactor())
            if len(self._looks) > MAX_LOOKED_AT:
                self._looks.popitem(last=False)
        self._looks.move_to_end(id)
        now, held = time.monotonic(), look

        def made() -> GrowingTrace:
            with held.lock:
                return held.since(row, cursor, now)

        return await asyncio.to_thread(made)
