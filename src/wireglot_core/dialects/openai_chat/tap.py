"""Reads Chat answers that pass through untouched, and requests usage in their streams."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot_core.dialects.openai_chat.errors import parse_error
from wireglot_core.dialects.openai_chat.outcome import parse_stop, parse_usage
from wireglot_core.dialects.passthrough import SseTap, object_of, shaped
from wireglot_core.dialects.surface import AnswerGlance, StreamUsage
from wireglot_core.wire.sse import Frame

_ERROR: Final = "error"
_TELLING: Final = re.compile(rb'"(?:finish_reason|usage|error)"\s*:\s*[{"]')
_NAMED: Final = b"event:"
"""Prefix of an event name; only errors have one. A second alternative in the pattern would cost more."""
_SAID: Final = re.compile(rb'"(?:content"\s*:\s*"[^"]|tool_calls"\s*:\s*\[\s*\{)')
_NO_CHOICE: Final = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_USAGE_ONLY: Final = re.compile(rb'^data:(?=.*"choices"\s*:\s*\[\s*\])(?=.*"usage"\s*:\s*\{)', re.MULTILINE)
_CR: Final = ord("\r")
_FRAMES: Final = re.compile(rb"(\r\n\r\n|\n\n|\r\r)")


class ChatTap(SseTap):
    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._max_frame = max_frame
        self._between = True  # whether the last read ended with a frame
        self._first_ended = False  # of several answers, the first

    def feed(self, data: bytes) -> None:
        if self._between and len(data) <= self._max_frame:
            # Frames before the first relevant one are skipped without being split.
            found = _TELLING.search(data)
            first = found.start() if found is not None else len(data)
            named = data.find(_NAMED, 0, first)
            if named >= 0:
                first = named
            done = data.find(b"[DONE]", 0, first)
            start = data.rfind(b"\n\n", 0, done if done >= 0 else first)
            if start >= 0 and not self.complete:
                data = data[start + 2 :]
            if (
                data[:6] == b"data: "
                and data.find(b"\n") == data.find(b"\n\n") == len(data) - 2
                and _CR not in data
            ):
                self._frame(Frame("", data[6:-2]))  # one frame of one line needs no splitting
                return
        if data:
            super().feed(data)
        self._between = not data or data.endswith(b"\n\n")

    def _frame(self, frame: Frame) -> None:
        data = frame.data
        if self._first_ended and _SAID.search(data) is not None and _first(object_of(data)):
            self._flawed("content_after_end")
        if frame.event != _ERROR and _TELLING.search(data) is None:
            if data == b"[DONE]":
                self.complete = self.ended = True
            return
        document = object_of(data)
        if frame.event == _ERROR or (
            type(document.get("error")) in (dict, str) and not document.get("choices")
        ):
            error = parse_error(document)
            if error is not None or "choices" not in document:
                self._failed(error)
                return
        first = _first(document)
        if type(first.get("finish_reason")) is str and first["finish_reason"]:  # some send "" for none
            if self._first_ended:
                self._flawed("second_end")
            self._first_ended = True
            self.stop = _stop(first["finish_reason"])
            self.complete = True
        usage = document.get("usage") or first.get("usage")
        if type(usage) is dict:
            self.usage = parse_usage(usage)


def _first(document: dict[str, Any]) -> dict[str, Any]:
    """The choice of the first answer: of several, any may end first."""
    choices = document.get("choices")
    for choice in choices if type(choices) is list else ():
        if type(choice) is dict and not (type(index := choice.get("index")) is int and index):
            return choice
    return {}


class _Choice(msgspec.Struct):
    finish_reason: Any = None
    usage: Any = None


class _Completion(msgspec.Struct):
    """The few fields to decode; msgspec skips the rest and still checks its syntax."""

    usage: Any = None
    choices: list[_Choice] | None = None


_read: Final = msgspec.json.Decoder(_Completion).decode


def glance(body: bytes) -> AnswerGlance:
    completion = shaped(body, _read)
    if completion is None:
        return AnswerGlance()
    first = completion.choices[0] if completion.choices else _Choice()
    usage = completion.usage or first.usage
    return AnswerGlance(parse_usage(usage) if type(usage) is dict else None, _stop(first.finish_reason))


def _stop(raw: Any) -> str:
    """Why an answer ended, as the value that logs use for every dialect."""
    return parse_stop(raw, raw in ("tool_calls", "function_call"), False).reason if raw else ""


# --- the usage of a stream


def _is_asked(options: Any) -> bool:
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _asking(options: Any) -> dict[str, Any]:
    return {**(options if isinstance(options, dict) else {}), "include_usage": True}


def _hide(data: bytes) -> bytes:
    """The frames without the one that contains only the usage."""
    if _NO_CHOICE.search(data) is None:
        return data
    frames = _FRAMES.split(data)  # each followed by its gap
    whole = zip(frames[::2], [*frames[1::2], b""], strict=True)
    return b"".join(frame + gap for frame, gap in whole if not _USAGE_ONLY.search(frame))


STREAM_USAGE: Final = StreamUsage("stream_options", _is_asked, _asking, _hide)
