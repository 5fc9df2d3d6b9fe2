"""What was recorded of an exchange, as a `Trace`: scrubbed and put in order, in the writer's thread."""

from __future__ import annotations

import base64
import codecs
import re
from typing import Any, Final

import msgspec

from wireglot import __version__
from wireglot.gateway.trace.recording import RecordedAttempt, Recording, Side
from wireglot.gateway.trace.rows import facts_of, mended, row_of, told, told_losses
from wireglot.gateway.trace.secrets import Scrubber
from wireglot.http.redaction import Redactor
from wireglot.traces.bodies import is_tangled
from wireglot.traces.target import recorded_target
from wireglot.traces.trace import Attempt, Frame, Message, Row, Step, Trace

_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_UNSEARCHED: Final = (
    "the request is not kept: it names tool servers, and has too many parts to look for credentials in it"
)
_UNKEPT: Final = "what the gateway put into the request is not kept: it has too many parts"
_SHORTEST_STEP_MS: Final = 0.05


def made_trace(recording: Recording, redactor: Redactor, worker: str) -> Trace:
    record, request = recording.record, recording.request
    body = b"".join(data for _, data in request.pieces)
    scrub = Scrubber(redactor, request.headers, request.url, body)
    row = scrubbed_row(row_of(facts_of(record), worker), scrub, redactor)
    notes = [scrub.text(note) for note in (*record.notes, *recording.notes)]
    if scrub.unsearched:
        notes.append(_UNSEARCHED)
        for side in (request, *(asked.request for asked in recording.attempts)):
            side.withhold()
    attempts = [_attempt(asked, scrub, redactor, record.started, notes) for asked in recording.attempts]
    return Trace(
        version=__version__,
        row=row,
        request=_message(request, scrub, record.started),
        answer=_message(recording.answer, scrub, record.started),
        attempts=attempts,
        losses=told_losses(record.losses, redactor),
        steps=_steps(recording),
        notes=list(dict.fromkeys(notes)),
    )


def scrubbed_row(row: Row, scrub: Scrubber, redactor: Redactor) -> Row:
    row = told(mended(row), redactor)
    texts = {name: scrub.text(getattr(row, name)) for name in ("agent", "session", "asked", "path", "error")}
    return msgspec.structs.replace(row, **texts)


def _attempt(
    asked: RecordedAttempt, scrub: Scrubber, redactor: Redactor, started: float, notes: list[str]
) -> Attempt:
    target, prepared = asked.target, asked.prepared
    return Attempt(
        provider=target.provider.name,
        model=scrub.text(target.model),
        dialect=target.dialect,
        began_ms=_ms(asked.began, started),
        passthrough=prepared.raw,
        request=_message(asked.request, scrub, started),
        answer=_message(asked.answer, scrub, started) if asked.answer is not None else None,
        error=scrub.text(asked.error),
        limits=_limits(asked, scrub, notes),
        losses=told_losses(prepared.losses, redactor),
    )


def _limits(asked: RecordedAttempt, scrub: Scrubber, notes: list[str]) -> dict[str, Any]:
    prepared = asked.prepared
    known = recorded_target(
        limits=asked.target.limits, stream=prepared.stream, account=prepared.context.account
    )
    if asked.differing is None:
        return known
    whole = msgspec.json.encode(asked.differing)
    if scrub.unsearched or is_tangled(whole):  # whoever looks at the trace must read it in one go
        notes.append(_UNKEPT)
        return known
    try:
        clean = msgspec.json.decode(scrub.data(whole), type=msgspec.Raw)  # its grammar alone is looked at
    except msgspec.DecodeError:  # what was hidden was no part of a text: then none of it is told
        return known
    return {**known, "asked": clean}


def _message(side: Side, scrub: Scrubber, started: float) -> Message:
    whole = b"".join(data for _, data in side.pieces)
    clean = scrub.data(whole)
    message = Message(
        method=side.method,
        url=scrub.url(side.url),
        status=side.status,
        headers=scrub.headers(side.headers),
        bytes=side.size,
        truncated=side.truncated,
    )
    if side.streamed:
        frames = _frames(side, whole, scrub, clean is not whole, started)
        return msgspec.structs.replace(message, frames=frames)
    text, coded = _text(clean, cut=side.truncated)
    return msgspec.structs.replace(message, body=text, base64=coded)


def _text(data: bytes, *, cut: bool) -> tuple[str, bool]:
    """As text; what is none, in base64. The last character of what was cut may be half."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(data, final=not cut), False
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), True


def _frames(side: Side, whole: bytes, scrub: Scrubber, dirty: bool, started: float) -> list[Frame]:
    """Events of a stream, each with the time of its last byte; where there are none, pieces as they came."""
    cut = _events(side, whole) or side.pieces
    if dirty:
        clean = [(at, scrub.data(data)) for at, data in cut]
        joined = b"".join(data for _, data in clean)
        if scrub.data(joined) is not joined:  # a secret in two events: none of it may be left
            clean = [(cut[-1][0], scrub.data(whole))]
        cut = clean
    cut = scrub.spread(cut)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [Frame(_ms(at, started), decoder.decode(data)) for at, data in cut]


def _events(side: Side, whole: bytes) -> list[tuple[float, bytes]]:
    """[] where it is no stream of events."""
    if not any(name == "content-type" and "event-stream" in value for name, value in side.headers):
        return []
    ends = [found.end() for found in _EVENT_END.finditer(whole)]
    if not ends or ends[-1] < len(whole):
        ends.append(len(whole))
    events: list[tuple[float, bytes]] = []
    begin = arrived = piece = 0
    at = 0.0
    for end in ends:
        while arrived < end:
            at, data = side.pieces[piece]
            arrived += len(data)
            piece += 1
        if end > begin:
            events.append((at, whole[begin:end]))
        begin = end
    return events


def _steps(recording: Recording) -> list[Step]:
    record = recording.record
    began, steps = record.started, list[Step]()
    stretches = list(recording.stretches)
    if stretches and record.finished:
        stretches.append(("events" if record.stream else "answer", record.finished))
    for name, ended in stretches:
        step = Step(name, _ms(began, record.started), _ms(ended, record.started))
        if step.ended_ms - step.began_ms >= _SHORTEST_STEP_MS:
            steps.append(step)
        began = ended
    return steps


def _ms(at: float, started: float) -> float:
    return round((at - started) * 1000, 3)
