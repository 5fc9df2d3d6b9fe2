"""Reads Responses that pass through untouched."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot_core.dialects.openai_responses.errors import event_error, parse_error
from wireglot_core.dialects.openai_responses.outcome import parse_stop, parse_usage
from wireglot_core.dialects.passthrough import SseTap, object_of, shaped
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.wire.sse import Frame

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
_CREATED: Final = "response.created"
_BEGINNINGS: Final = frozenset({_CREATED, "response.output_item.added"})
_TELLING: Final = re.compile(rb'"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"')


class ResponsesTap(SseTap):
    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._last = b""
        self._started = False
        self._number = -1
        self._highest = -1

    def close(self) -> None:
        whole = self._last
        super().close()
        if not object_of(self._last):
            self._last = whole  # an incomplete event has no number

    @property
    def next_event(self) -> int:
        number = object_of(self._last).get("sequence_number")
        return number + 1 if type(number) is int else 0

    def _frame(self, frame: Frame) -> None:
        self._last = frame.data
        name = frame.event
        if name in _BEGINNINGS:
            self._begin(name, object_of(frame.data))
            return
        if name not in _ENDS and (name or _TELLING.search(frame.data) is None):
            return
        document = object_of(frame.data)
        kind = document.get("type", name)
        if kind == "error" or name == "error":
            self._failed(event_error(document))
            return
        answer = document.get("response")
        if type(kind) is not str or kind not in _ENDS or type(answer) is not dict:
            return
        if self.ended and self.error is None:
            self._flawed("second_end")
        self._count(document.get("sequence_number"))
        self.complete = self.ended = True
        self.usage = parse_usage(answer.get("usage"))
        self.stop = _stop(answer.get("status"), answer.get("incomplete_details"), answer.get("output"))
        if kind == "response.failed":
            # An `error` event before it reports the same error, and distinguishes overload.
            self.error = self.error or parse_error(document)

    def _begin(self, name: str, document: dict[str, Any]) -> None:
        self._count(document.get("sequence_number"))
        if name == _CREATED:
            if self._started:
                self._flawed("second_start")
            self._started = True
        elif type(index := document.get("output_index")) is int:
            if index <= self._highest:
                self._flawed("index_not_growing")
            self._highest = index

    def _count(self, number: Any) -> None:
        if type(number) is int:
            if number <= self._number:
                self._flawed("number_not_growing")
            self._number = number


class _Response(msgspec.Struct):
    """The few fields to decode; msgspec skips the rest and still checks its syntax."""

    usage: Any = None
    status: Any = None
    incomplete_details: Any = None
    output: Any = None


_read: Final = msgspec.json.Decoder(_Response).decode


def glance(body: bytes) -> AnswerGlance:
    answer = shaped(body, _read)
    if answer is None:
        return AnswerGlance()
    stop = _stop(answer.status, answer.incomplete_details, answer.output)
    return AnswerGlance(parse_usage(answer.usage), stop)


def _stop(status: Any, details: Any, items: Any) -> str:
    """Why an answer ended, as the value that logs use for every dialect."""
    kinds = [item.get("type") for item in items if type(item) is dict] if type(items) is list else []
    calls = any(type(kind) is str and kind.endswith("_call") for kind in kinds)
    return parse_stop(status, details, calls, False).reason if type(status) is str else ""
