"""Repairs calls in Responses that pass through: makes their arguments valid JSON if their meaning is clear.

A stream has them up to four times: in pieces, at their end, in the item and in the response.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.argument_stream import MendedArguments
from wireglot_core.dialects.arguments import declare_arguments, read_arguments
from wireglot_core.dialects.passthrough import event_of, object_of, whole_frames
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.json import encode, encode_text
from wireglot_core.wire.sse import frame

_SIGN: Final = b"arguments"
_DELTA: Final = "response.function_call_arguments.delta"
_DONE: Final = "response.function_call_arguments.done"


class ArgumentsRepair:
    """Implements `StreamRepair`. Events pass unchanged, except that those whose arguments may be superfluous
    are held back (`MendedArguments`) until their call is done."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._calls: dict[Any, tuple[MendedArguments, list[bytes]]] = {}

    def repair(self, data: bytes) -> bytes:
        if data.find(_SIGN) < 0:
            return data
        return b"".join([self._frame(whole) for whole in whole_frames(data)])

    def leaves(self, frames: bytes) -> bool:
        return frames.find(_SIGN) < 0

    def _frame(self, whole: bytes) -> bytes:
        if whole.find(_SIGN) < 0:
            return whole
        event = object_of(event_of(whole))
        kind, index = event.get("type"), event.get("output_index")
        if kind == _DELTA and type(event.get("delta")) is str:
            call, waiting = self._calls.setdefault(index, (MendedArguments(), []))
            waiting.append(whole)
            call.feed(event["delta"])
            return b"" if call.waits else _released(waiting)
        if kind == _DONE:
            return self._end(index) + self._final(whole, event, event)
        if type(item := event.get("item")) is dict:
            return self._end(index) + self._final(whole, event, item)
        response = event.get("response")
        output = response.get("output") if type(response) is dict else None
        items = [item for item in output if type(item) is dict] if type(output) is list else []
        return b"".join(map(self._end, list(self._calls))) + self._final(whole, event, *items)

    def _end(self, index: Any) -> bytes:
        """The held events of a call; for a repaired one the first held event, with all the remaining
        arguments."""
        call, waiting = self._calls.pop(index, (None, []))
        rest = call.finish() if call is not None else ""
        if call is None or not call.form:
            return _released(waiting)
        declare_arguments(call.form, f"$.output[{index}]", self.losses)
        event = object_of(event_of(waiting[0]))
        return frame(encode({**event, "delta": rest}), _DELTA.encode()) if rest else b""

    def _final(self, whole: bytes, event: dict[str, Any], *calls: dict[str, Any]) -> bytes:
        """Repairs an event that contains whole calls."""
        changed = False
        for call in calls:
            text = call.get("arguments")
            meant, form = read_arguments(text) if type(text) is str else ({}, "")
            if form == "repaired" and call.get("type") in (_DONE, "function_call"):
                call["arguments"] = encode_text(meant)
                changed = True
        return frame(encode(event), str(event.get("type")).encode()) if changed else whole


def _released(waiting: list[bytes]) -> bytes:
    data = b"".join(waiting)
    waiting.clear()
    return data
