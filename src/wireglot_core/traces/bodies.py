"""Decodes recorded messages: their bytes, and the document that they are or add up to."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from wireglot_core.ir.errors import WireglotError
from wireglot_core.traces.again import Amounted, amounted
from wireglot_core.traces.trace import Trace, TraceMessage
from wireglot_core.wire.json import BadJson, decode, encode_text

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{\[,]', re.DOTALL)
"""A string that is never closed ends with the text: otherwise each quote in it would be tried again."""
_COMMA, _QUOTE = b',"'
# Objects and lists of a body that is analysed for display.
MAX_CONTAINERS: Final = 50_000
MAX_VALUES: Final = 200_000
"""Values of a body that is analysed for display. Parsing it is one call that no other thread can interrupt:
four megabytes of brackets would block a gateway's interpreter for a second."""


class UnreadableBody(ValueError):
    """A recorded body that cannot be processed; the message is for users."""


def payload(message: TraceMessage) -> bytes:
    """The body, or the concatenated pieces of its stream. Raises UnreadableBody."""
    if message.frames:
        return "".join(frame.data for frame in message.frames).encode("utf-8", "surrogatepass")
    if not message.base64:
        return message.body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(message.body, validate=True)
    except ValueError:
        raise UnreadableBody("the body is no base64, although it says so") from None


def is_tangled(data: bytes) -> bool:
    """Whether a body has more values than any real request: counted one by one, and no further than
    needed."""
    if data.count(b"{") + data.count(b"[") <= MAX_CONTAINERS and data.count(b",") <= MAX_VALUES:
        return False
    containers = values = 0
    for token in _TOKEN.finditer(data):  # brackets within texts do not count: a program may be full of them
        sign = data[token.start()]
        if sign == _COMMA:
            values += 1
        elif sign != _QUOTE:
            containers += 1
        if containers > MAX_CONTAINERS or values > MAX_VALUES:
            return True
    return False


def check_linkable(message: TraceMessage | None, name: str) -> None:
    """Raises UnreadableBody if the message is too large to analyse while other requests are served."""
    if message is None:
        return
    texts = [frame.data for frame in message.frames] or [message.body]
    if any(is_tangled(text.encode("utf-8", "surrogatepass")) for text in texts):
        raise UnreadableBody(f"{name}: too large to be linked (it has more than {MAX_CONTAINERS:,} parts)")


def document(message: TraceMessage | None, name: str) -> dict[str, Any]:
    """The JSON object in a message. Raises UnreadableBody; `name` is used for the message in the error."""
    if message is None or not (message.body or message.frames):
        raise UnreadableBody(f"{name}: no body was recorded")
    if message.truncated and not message.shortened:
        raise UnreadableBody(f"{name}: only the beginning of it was recorded")
    try:
        value = decode(payload(message))
    except BadJson as fault:
        raise UnreadableBody(f"{name}: {fault}") from None
    if type(value) is list and len(value) == 1:  # Gemini wraps an error like this
        value = value[0]
    if type(value) is not dict:
        raise UnreadableBody(f"{name}: expected a JSON object")
    return value


def whole(message: TraceMessage | None, dialect: str, name: str) -> dict[str, Any]:
    """The document of an answer, or the one that its stream adds up to. Raises UnreadableBody."""
    return amount(message, dialect, name).document


def amount(message: TraceMessage | None, dialect: str, name: str) -> Amounted:
    """The same, and whether its stream stops before its end. Raises UnreadableBody."""
    if message is None or not message.frames:
        return Amounted(document(message, name))
    if message.truncated:
        raise UnreadableBody(f"{name}: only the beginning of it was recorded")
    try:
        return amounted(dialect, payload(message))
    except WireglotError as fault:
        raise UnreadableBody(f"{name}: {fault.message}") from None


def holds_text(trace: Trace, text: str) -> bool:
    """Whether the trace contains `text`, ignoring case. `text` is in lower case."""
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
    try:  # a sentence is spread over many events
        document = whole(trace.answer, trace.row.dialect, "the answer")
    except UnreadableBody:
        return False
    said = encode_text(document).lower()
    return any(each in said for each in written)


def _holds_escaped(body: str, written: set[str]) -> bool:
    """Whether the text is in a body whose JSON escapes non-ASCII characters as `\\u` sequences."""
    try:
        said = encode_text(decode(body)).lower()
    except BadJson:
        return False
    return any(each in said for each in written)
