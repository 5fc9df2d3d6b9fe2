"""Messages answers that pass through: reads what they report, and replaces the model name."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot_core.dialects.anthropic.errors import parse_error
from wireglot_core.dialects.anthropic.outcome import merge_usage, parse_stop, parse_usage
from wireglot_core.dialects.passthrough import SseTap, object_of, shaped
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.wire.json import BadJson, encode
from wireglot_core.wire.splice import splice
from wireglot_core.wire.sse import Frame


class MessageTap(SseTap):
    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._account: dict[str, Any] = {}
        self._started = False
        self._highest = -1

    def _frame(self, frame: Frame) -> None:
        name = frame.event
        if name == "message_delta":
            document = object_of(frame.data)
            self._merge(document.get("usage"))
            delta = document.get("delta")
            if type(delta) is dict and (stop := _stop(delta.get("stop_reason"))):
                if self.stop:
                    self._flawed("second_end")
                self.stop = stop
        elif name == "content_block_start":
            self._block(object_of(frame.data).get("index"))
        elif name == "message_stop":
            if self.ended:
                self._flawed("second_end")
            self.complete = self.ended = True
        elif name == "message_start":
            if self._started:
                self._flawed("second_start")
            self._started = True
            message = object_of(frame.data).get("message")
            if type(message) is dict:
                self._merge(message.get("usage"))
        elif name == "error":
            self._failed(parse_error(object_of(frame.data)))

    def _block(self, index: Any) -> None:
        if self.stop:
            self._flawed("content_after_end")
        if type(index) is int:
            if index <= self._highest:
                self._flawed("index_not_growing")
            self._highest = index

    def _merge(self, usage: Any) -> None:
        self._account = merge_usage(self._account, usage)
        self.usage = parse_usage(self._account)


class _Message(msgspec.Struct):
    """The few fields to decode; msgspec skips the rest and still checks its syntax."""

    usage: Any = None
    stop_reason: Any = None


_read: Final = msgspec.json.Decoder(_Message).decode


def glance(body: bytes) -> AnswerGlance:
    message = shaped(body, _read)
    if message is None:
        return AnswerGlance()
    usage = message.usage
    return AnswerGlance(parse_usage(usage) if type(usage) is dict else None, _stop(message.stop_reason))


def _stop(raw: Any) -> str:
    """Why an answer ended, as the value that logs use for every dialect."""
    return parse_stop(raw, None, {}, False).reason if raw else ""


# Claude Code 2.1.197 drops the thinking of an answer whose model is not the one it requested: the requested
# name replaces the one in the answer. If the names are equal, and elsewhere, nothing changes.

_DATA = b"data:"
_START = b"message_start"
_LINE_END = re.compile(rb"[\r\n]")


class _Named(msgspec.Struct):
    model: str = ""


class _Opening(msgspec.Struct):
    type: str = ""
    message: msgspec.Raw = msgspec.Raw(b"{}")


_read_name: Final = msgspec.json.Decoder(_Named).decode
_read_opening: Final = msgspec.json.Decoder(_Opening).decode


def in_answer(body: bytes, asked: str) -> bytes:
    """Replaces the model in a whole answer."""
    try:
        named = _read_name(body).model
        return body if named in ("", asked) else splice(body, {"model": encode(asked)})
    except (msgspec.DecodeError, BadJson, UnicodeDecodeError):
        return body  # its reader will report the error


def in_opening(frames: bytes, asked: str) -> bytes:
    """Replaces the model in the first bytes of a stream, which contain its `message_start`."""
    at = 0
    while (start := frames.find(_DATA, at)) >= 0:
        start += len(_DATA)
        end = _LINE_END.search(frames, start)
        at = end.start() if end is not None else len(frames)
        line = frames[start:at]
        if _START in line:
            return frames[:start] + _renamed(line, asked) + frames[at:]
    return frames


def _renamed(line: bytes, asked: str) -> bytes:
    try:
        opening = _read_opening(line)
        if opening.type != "message_start":
            return line
        message = bytes(opening.message)
        renamed = in_answer(message, asked)
        return line if renamed is message else splice(line, {"message": renamed})
    except (msgspec.DecodeError, BadJson, UnicodeDecodeError):
        return line
