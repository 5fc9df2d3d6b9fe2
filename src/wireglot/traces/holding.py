"""Whether the bodies of an exchange hold a text, however they write it."""

from __future__ import annotations

from wireglot.traces.bodies import Unreadable, whole
from wireglot.traces.trace import Trace
from wireglot.wire.json import BadJson, decode, encode_text


def holds_text(trace: Trace, text: str) -> bool:
    """`text` is in small letters."""
    messages = [trace.request, trace.answer]
    for attempt in trace.attempts:
        messages += [message for message in (attempt.request, attempt.answer) if message is not None]
    written = {text, encode_text(text)[1:-1]}  # quotes and line ends are escaped in JSON
    for message in messages:
        said = message.body.lower() or "".join(frame.data for frame in message.frames).lower()
        if any(each in said for each in written):
            return True
        if not text.isascii() and "\\u" in message.body and _holds_escaped(message.body, written):
            return True
    if not trace.answer.frames:
        return False
    try:  # a sentence stands in many events
        document = whole(trace.answer, trace.row.dialect, "the answer")
    except Unreadable:
        return False
    said = encode_text(document).lower()
    return any(each in said for each in written)


def _holds_escaped(body: str, written: set[str]) -> bool:
    """Some write every letter beyond ASCII by its number."""
    try:
        said = encode_text(decode(body)).lower()
    except BadJson:
        return False
    return any(each in said for each in written)
