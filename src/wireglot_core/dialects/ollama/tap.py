"""Reads answers that pass through untouched."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot_core.dialects.ollama.errors import parse_error
from wireglot_core.dialects.ollama.framing import AsEvents
from wireglot_core.dialects.ollama.outcome import METRICS, parse_stop, parse_usage
from wireglot_core.dialects.passthrough import SseTap, object_of, shaped
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.wire.sse import Frame

_TELLING: Final = re.compile(rb'"done"\s*:\s*true|"error"\s*:\s*[^\s]')
_CALLS: Final = re.compile(rb'"tool_calls"\s*:\s*\[\s*\{')
_CALLS_SIGN: Final = b"tool_calls"


class OllamaTap(SseTap):
    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._events = AsEvents(max_frame)
        self._calls = False

    def feed(self, data: bytes) -> None:
        super().feed(self._events.feed(data))

    def close(self) -> None:
        super().feed(self._events.close())
        super().close()

    def _frame(self, frame: Frame) -> None:
        data = frame.data
        if self.ended:
            return
        if data.find(_CALLS_SIGN) >= 0 and _CALLS.search(data) is not None:
            self._calls = True
        if _TELLING.search(data) is None:
            return
        document = object_of(data)
        error = parse_error(document)
        if error is not None:
            self._failed(error)
        elif document.get("done") is True:
            self.usage = parse_usage(document)
            self.stop = parse_stop(document.get("done_reason"), self._calls).reason
            self.complete = self.ended = True


class _Message(msgspec.Struct):
    tool_calls: Any = None


class _Answer(msgspec.Struct):
    """The few fields to decode; msgspec skips the rest and still checks its syntax."""

    done: Any = None
    done_reason: Any = None
    message: _Message | None = None
    total_duration: Any = None
    load_duration: Any = None
    prompt_eval_count: Any = None
    prompt_eval_duration: Any = None
    eval_count: Any = None
    eval_duration: Any = None


_read: Final = msgspec.json.Decoder(_Answer).decode


def glance(body: bytes) -> AnswerGlance:
    answer = shaped(body, _read)
    if answer is None:
        return AnswerGlance()
    calls = answer.message is not None and bool(answer.message.tool_calls)
    usage = parse_usage({name: getattr(answer, name) for name in sorted(METRICS)})
    return AnswerGlance(usage, parse_stop(answer.done_reason, calls).reason if answer.done is True else "")
