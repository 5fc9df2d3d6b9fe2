"""Repairs calls in a stream that passes through; it stays byte for byte until a repair is needed.

Hosts of this dialect send the input of a call at its start, at its start and again as deltas, or as an object
twice (R-AJ). Clients add up the deltas and ignore everything else: Anthropic's SDK finds no input in the
first form and invalid JSON in the others. A call whose start is empty, as Anthropic's own are, passes
unchanged for as long as its deltas are JSON.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot_core.dialects.anthropic.open_blocks import choose_arguments
from wireglot_core.dialects.argument_stream import MendedArguments
from wireglot_core.dialects.arguments import Form, declare_arguments, read_arguments
from wireglot_core.dialects.passthrough import event_of, object_of, whole_frames
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.json import BadJson, decode, encode, encode_text
from wireglot_core.wire.sse import frame

_CALL: Final = b'"tool_use"'
_LAST: Final = frozenset({"message_delta", "message_stop", "error"})


class _InputDelta(msgspec.Struct):
    type: str = ""
    partial_json: str = ""


class _Event(msgspec.Struct):
    """The fields needed from frames that arrive while a call is open."""

    type: str = ""
    index: int | None = None
    delta: _InputDelta | None = None


_read = msgspec.json.Decoder(_Event).decode


class MessageRepair:
    """Implements `StreamRepair`."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._calls: dict[int | None, _GivenCall | _StreamedCall] = {}

    def repair(self, data: bytes) -> bytes:
        if not self._calls and data.find(_CALL) < 0:
            return data
        return b"".join([self._frame(whole) for whole in whole_frames(data)])

    def leaves(self, frames: bytes) -> bool:
        return not self._calls and frames.find(_CALL) < 0

    def _frame(self, whole: bytes) -> bytes:
        if not self._calls:
            return self._start(whole) if whole.find(_CALL) >= 0 else whole
        said = event_of(whole)
        try:
            event = _read(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._pass(whole)
        call = self._calls.get(event.index)
        if event.type == "content_block_delta":
            if call is not None and event.delta is not None and event.delta.type == "input_json_delta":
                return call.delta(event.delta.partial_json, whole)
        elif event.type == "content_block_stop" and call is not None:
            del self._calls[event.index]
            return self._end(call) + whole
        elif event.type == "content_block_start" and _CALL in whole:
            return self._start(whole)
        elif event.type in _LAST:
            calls, self._calls = self._calls, {}
            return b"".join([self._end(call) for call in calls.values()]) + whole
        return self._pass(whole)

    def _pass(self, whole: bytes) -> bytes:
        """A frame of another kind: held frames are written before it."""
        return b"".join([call.go_on() for call in self._calls.values()]) + whole

    def _end(self, call: _GivenCall | _StreamedCall) -> bytes:
        data = call.end()
        declare_arguments(call.form, f"$.content[{call.index}]", self.losses)
        return data

    def _start(self, whole: bytes) -> bytes:
        document = object_of(event_of(whole))
        block, index = document.get("content_block"), document.get("index")
        if type(block) is not dict or block.get("type") != "tool_use" or type(index) is not int:
            return whole
        before = self._pass(b"")
        if index in self._calls:  # its stop got lost
            before += self._end(self._calls.pop(index))
        said = block.get("input")
        given = _given(said)
        if given:
            self._calls[index] = _GivenCall(index, given)
        elif said is None or said in ("", {}):
            self._calls[index] = _StreamedCall(index)
            if said == {}:
                return before + whole
        else:
            return before + whole  # not an input that deltas could be added to
        bare = {**document, "content_block": {**block, "input": {}}}
        return before + frame(encode(bare), b"content_block_start")


class _GivenCall:
    """A call whose start has an input: whether its deltas repeat it is known when it ends."""

    def __init__(self, index: int, given: dict[str, Any]) -> None:
        self.index = index
        self.form: Form = ""
        self._given = given
        self._pieces: list[str] = []

    def delta(self, piece: str, whole: bytes) -> bytes:
        self._pieces.append(piece)
        return b""

    def go_on(self) -> bytes:
        return b""

    def end(self) -> bytes:
        arguments = choose_arguments(self._given, "".join(self._pieces))
        meant, form = read_arguments(arguments)
        if form == "repaired":
            arguments, self.form = encode_text(meant), form
        return _delta(self.index, arguments)


class _StreamedCall:
    """A call whose deltas pass as they arrive, unless they are held back (`MendedArguments`)."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._arguments = MendedArguments()
        self._waiting: list[bytes] = []

    @property
    def form(self) -> Form:
        return self._arguments.form

    def delta(self, piece: str, whole: bytes) -> bytes:
        self._waiting.append(whole)
        self._arguments.feed(piece)
        return b"" if self._arguments.waits else self._release()

    def go_on(self) -> bytes:
        """Something else follows: text that was only held for more is released."""
        if self._arguments.is_bent:
            return b""
        self._arguments.release()
        return self._release()

    def end(self) -> bytes:
        rest = self._arguments.finish()
        return _delta(self.index, rest) if self.form else self._release()

    def _release(self) -> bytes:
        data = b"".join(self._waiting)
        self._waiting.clear()
        return data


def _given(value: Any) -> dict[str, Any] | None:
    """The input in a start; None if it has none, or one that no client could parse."""
    if type(value) is str:
        try:
            value = decode(value)
        except BadJson:
            return None
    return value if type(value) is dict else None


def _delta(index: int, text: str) -> bytes:
    if not text:
        return b""
    delta = {"type": "input_json_delta", "partial_json": text}
    event = {"type": "content_block_delta", "index": index, "delta": delta}
    return frame(encode(event), b"content_block_delta")
