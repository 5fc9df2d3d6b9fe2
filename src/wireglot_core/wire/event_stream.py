"""Amazon's event stream, `application/vnd.amazon.eventstream`: binary frames with typed headers and two CRCs.

    total length | length of the headers | CRC-32 of these two | headers | payload | CRC-32 of all before it

Numbers are big-endian and take four bytes each.
https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct, error
from typing import Final
from zlib import crc32

import msgspec


class StreamMessage(msgspec.Struct, frozen=True, gc=False):
    """One message: its text headers, and its payload unchanged."""

    headers: dict[str, str]
    payload: bytes


__all__ = ["BadFrame", "EventStreamDecoder", "StreamMessage", "message"]

_PRELUDE: Final = Struct(">III")
_CRC: Final = Struct(">I")
_AROUND_BYTES: Final = _PRELUDE.size + _CRC.size
# Bytes of the headers of one message in Amazon's event stream.
_MAX_HEADERS: Final = 128 * 1024

_TEXT: Final = 7
_LENGTH_OF_TEXT: Final = Struct(">H")
_LONG_VALUES: Final = frozenset({6, _TEXT})
"""Types of bytes and text values, which have a length prefix."""
_FIXED_BYTES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes by type: true, false, numbers of four sizes, a timestamp and a UUID."""


class BadFrame(ValueError):
    """The bytes are not a valid frame: an impossible length, a wrong CRC, or an end in the middle."""


class EventStreamDecoder:
    """Decodes a stream into messages, each as soon as its last byte arrives, however the bytes are split."""

    __slots__ = ("_buffer", "_fault", "_max_message", "_total")

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._buffer = bytearray()
        self._total = 0
        """The length of the message that is arriving, once its prelude has been checked."""
        self._fault: BadFrame | None = None

    @property
    def fault(self) -> BadFrame | None:
        """The error after the messages already returned: the next call would raise it."""
        return self._fault

    def feed(self, data: bytes) -> list[StreamMessage]:
        """The messages that `data` completes. Messages before invalid bytes are returned; the next call
        raises."""
        if self._fault is not None:
            raise self._fault
        self._buffer += data
        messages: list[StreamMessage] = []
        try:
            while (found := self._next()) is not None:
                messages.append(found)
        except BadFrame as fault:
            self._fault = fault
            self._buffer.clear()
            if not messages:
                raise
        return messages

    def close(self) -> None:
        """End of the bytes. Raises if that is in the middle of a message."""
        if self._fault is not None:
            raise self._fault
        if self._buffer:
            raise BadFrame("the stream ends inside a message")

    def _next(self) -> StreamMessage | None:
        buffer = self._buffer
        if not self._total:
            if len(buffer) < _PRELUDE.size:
                return None
            self._total = self._checked_length()
        if len(buffer) < self._total:
            return None
        with memoryview(buffer) as view:
            raw = bytes(view[: self._total])
        del buffer[: self._total]
        self._total = 0
        return _read(raw)

    def _checked_length(self) -> int:
        """The message length, verified before waiting for the message: the bytes of a garbage length would
        never arrive."""
        total, headers, checksum = _PRELUDE.unpack_from(self._buffer)
        if crc32(self._buffer[: _PRELUDE.size - _CRC.size]) != checksum:
            raise BadFrame("the checksum of a prelude does not fit")
        if headers > _MAX_HEADERS or total < _AROUND_BYTES + headers:
            raise BadFrame("the lengths of a message cannot be")
        if total > self._max_message:
            raise BadFrame(f"a message is larger than {self._max_message} bytes")
        return int(total)


def _read(raw: bytes) -> StreamMessage:
    (checksum,) = _CRC.unpack_from(raw, len(raw) - _CRC.size)
    if crc32(memoryview(raw)[: -_CRC.size]) != checksum:
        raise BadFrame("the checksum of a message does not fit")
    _, headers, _ = _PRELUDE.unpack_from(raw)
    start = _PRELUDE.size + headers
    try:
        named = _read_headers(raw[_PRELUDE.size : start])
    except (error, IndexError, KeyError, UnicodeDecodeError):
        raise BadFrame("the headers of a message cannot be read") from None
    return StreamMessage(named, raw[start : -_CRC.size])


def _read_headers(data: bytes) -> dict[str, str]:
    """The text headers: only those are used. Others are skipped."""
    named: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name, kind = data[at + 1 : end].decode(), data[end]
        at = end + 1
        if kind in _LONG_VALUES:
            (length,) = _LENGTH_OF_TEXT.unpack_from(data, at)
            at += _LENGTH_OF_TEXT.size
            if kind == _TEXT:
                named[name] = data[at : at + length].decode()
        else:
            length = _FIXED_BYTES[kind]
        at += length
    if at != len(data):
        raise IndexError("a value is longer than what is there")
    return named


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """The bytes of one message, its headers as text."""
    named = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    lengths = (_AROUND_BYTES + len(named) + len(payload), len(named))
    prelude = Struct(">II").pack(*lengths)
    whole = b"".join((prelude, _CRC.pack(crc32(prelude)), named, payload))
    return whole + _CRC.pack(crc32(whole))


def _header(name: bytes, value: bytes) -> bytes:
    return b"".join((bytes((len(name),)), name, bytes((_TEXT,)), _LENGTH_OF_TEXT.pack(len(value)), value))
