"""Streams of Claude on Amazon Bedrock (InvokeModelWithResponseStream): Anthropic's events inside Amazon's
frames.

Each message of the type `chunk` contains one event of the Messages API, in base64 inside JSON. An exception
ends the stream; it becomes the `error` event that Anthropic itself would send.
"""

from __future__ import annotations

from typing import Final

import msgspec

from wireglot_core.wire.event_stream import BadFrame, EventStreamDecoder, StreamMessage
from wireglot_core.wire.json import encode
from wireglot_core.wire.sse import frame

AMAZON: Final = "amazon-event-stream"

_ERRORS: Final = {
    "accessDenied": "permission_error",
    "expiredToken": "authentication_error",
    "internalServer": "api_error",
    "modelError": "api_error",
    "modelNotReady": "overloaded_error",
    "modelStreamError": "api_error",
    "modelTimeout": "timeout_error",
    "resourceNotFound": "not_found_error",
    "serviceQuotaExceeded": "rate_limit_error",
    "serviceUnavailable": "overloaded_error",
    "throttling": "rate_limit_error",
    "unrecognizedClient": "authentication_error",
    "validation": "invalid_request_error",
}
"""The exceptions of `bedrock-runtime` in the service model of botocore 1.44.0, without the suffix
`Exception`."""


class _Chunk(msgspec.Struct, rename={"event": "bytes"}):
    event: bytes
    """Base64 on the wire."""


class _Kind(msgspec.Struct):
    type: str = ""


class _Exception(msgspec.Struct, rename={"original": "originalMessage"}):
    message: str = ""
    original: str = ""
    """The model's message, if the exception only wraps it."""


_read_chunk: Final = msgspec.json.Decoder(_Chunk).decode
_read_kind: Final = msgspec.json.Decoder(_Kind).decode
_read_exception: Final = msgspec.json.Decoder(_Exception).decode


class InvokedStream:
    """Implements `Unframer`."""

    def __init__(self, max_event: int) -> None:
        # In base64 an event is a third longer, and there is padding next to it.
        self._messages = EventStreamDecoder(2 * max_event + 1024)

    def feed(self, data: bytes) -> bytes:
        return b"".join([_event(message) for message in self._messages.feed(data)])

    @property
    def fault(self) -> BadFrame | None:
        return self._messages.fault

    def close(self) -> bytes:
        self._messages.close()
        return b""


def _event(message: StreamMessage) -> bytes:
    kind = message.headers.get(":message-type", "event")
    if kind == "exception":
        return _error(message.headers.get(":exception-type", ""), message.payload)
    if kind == "error":
        reported = message.headers.get(":error-message", "")
        return _error(message.headers.get(":error-code", ""), encode({"message": reported}))
    if message.headers.get(":event-type", "chunk") != "chunk":
        return b""  # messages that a later version may send next to the answer
    try:
        data = _read_chunk(message.payload).event
        name = _read_kind(data).type
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise BadFrame("a message holds no event of the Messages API") from None
    return frame(data, name.encode())


def _error(name: str, payload: bytes) -> bytes:
    try:
        reported = _read_exception(payload)
    except (msgspec.DecodeError, msgspec.ValidationError):
        reported = _Exception()
    plain = name[:1].lower() + name[1:].removesuffix("Exception")
    document = {
        "type": "error",
        "error": {
            "type": _ERRORS.get(plain, "api_error"),
            "message": reported.original or reported.message or name or "the stream ended in an error",
        },
    }
    return frame(encode(document), b"error")
