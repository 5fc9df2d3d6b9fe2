"""Reads Interactions that pass through untouched."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot_core.dialects.fields import object_in
from wireglot_core.dialects.gemini_interactions.errors import parse_error
from wireglot_core.dialects.gemini_interactions.names import (
    COMPLETED,
    CREATED,
    ERROR,
    FUNCTION_CALL,
    STATUS_UPDATE,
    STEP_START,
    STEP_STOP,
)
from wireglot_core.dialects.gemini_interactions.outcome import parse_stop, parse_usage
from wireglot_core.dialects.passthrough import SseTap, object_of, shaped
from wireglot_core.dialects.surface import AnswerGlance, StreamMarks
from wireglot_core.wire.sse import Frame

_TELLING: Final = re.compile(
    rb'"event_type"\s*:\s*"(?:interaction\.|step\.st|error")|"error"\s*:|"(?:total_)?usage"\s*:'
)
_DELTA: Final = "step.delta"

MARKS: Final = StreamMarks(
    signs=(b"tool", b"step.st", b"unction_", b"n.created"),
    calls=re.compile(rb'"function_call"'),
    thoughts=re.compile(rb'"thought(?:_summary|_signature)?"'),
    more=re.compile(
        rb'"delta"\s*:\s*\{\s*"type"\s*:\s*"(?:text|image|audio|video|document)"'
        rb'|"(?:function_call|model_output|interaction\.completed|error)"'
    ),
    start=re.compile(rb'event: ?interaction\.created\s+data:[^\r\n]*|"interaction\.created"'),
    blocks=b"step.st",
)


class InteractionsTap(SseTap):
    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._started = False
        self._calls = False
        self._id: Any = ""
        self._highest = -1
        self._open: Any = None

    def _frame(self, frame: Frame) -> None:
        name = frame.event
        if frame.data == b"[DONE]":  # sent in a separate frame after the last event
            self.ended = True
            return
        if name == _DELTA and b"usage" not in frame.data:
            return
        if _TELLING.search(frame.data) is None and not name:
            return
        event = object_of(frame.data)
        kind = event.get("event_type")
        if type(kind) is not str:
            kind = ERROR if event.get("error") else name
        if kind == COMPLETED:
            self._complete(object_in(event.get("interaction")))
        elif kind == ERROR:
            self._failed(parse_error(event))
        elif kind == STEP_START:
            self._step(event)
        elif kind in (STEP_STOP, STATUS_UPDATE):
            self._report(event.get("usage"))
        elif kind == _DELTA:
            self._report(object_in(event.get("metadata")).get("total_usage"))
        elif kind == CREATED:
            if self._started:
                self._flawed("second_start")
            self._started = True

    def _report(self, usage: Any) -> None:
        self.usage = parse_usage(usage) or self.usage

    def _step(self, event: dict[str, Any]) -> None:
        self._calls = self._calls or object_in(event.get("step")).get("type") == FUNCTION_CALL
        index = event.get("index")
        if type(index) is int:
            if index <= self._highest:
                self._flawed("index_not_growing")
            self._highest = max(index, self._highest)

    def _complete(self, body: dict[str, Any]) -> None:
        if self.complete and self.error is None:
            self._flawed("second_end")
        self._report(body.get("usage"))
        self.complete = True
        steps = body.get("steps")
        self._calls = self._calls or _has_calls(steps)
        self.stop = _stop(body.get("status"), self._calls, body.get("errors"))
        self.error = self.error or parse_error(body)


class _Interaction(msgspec.Struct):
    """The few fields to decode; msgspec skips the rest and still checks its syntax."""

    usage: Any = None
    status: Any = None
    errors: Any = None
    steps: Any = None


_read: Final = msgspec.json.Decoder(_Interaction).decode


def glance(body: bytes) -> AnswerGlance:
    answer = shaped(body, _read)
    if answer is None:
        return AnswerGlance()
    stop = _stop(answer.status, _has_calls(answer.steps), answer.errors)
    return AnswerGlance(parse_usage(answer.usage), stop)


def _has_calls(steps: Any) -> bool:
    return type(steps) is list and any(object_in(step).get("type") == FUNCTION_CALL for step in steps)


def _stop(status: Any, calls: bool, errors: Any) -> str:
    return parse_stop(status, calls, errors).reason if type(status) is str else ""
