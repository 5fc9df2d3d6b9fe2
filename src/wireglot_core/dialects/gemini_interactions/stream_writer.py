"""Writes events as the client's event stream.

One step is open at a time, numbered without gaps: a part that starts while another is open is held back. The
end of a step with output is held until the next part is known, which may be in the same step. Every event has
a number, by which a stream can be resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, assert_never

from wireglot_core.dialects.argument_stream import ArgumentStream
from wireglot_core.dialects.arguments import declare_arguments
from wireglot_core.dialects.common_losses import CUT_CALL, LATE_SIGNATURE
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini_interactions.content import (
    render_annotations,
    render_content,
)
from wireglot_core.dialects.gemini_interactions.errors import error_object
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST, NO_LOGPROBS
from wireglot_core.dialects.gemini_interactions.names import (
    COMPLETED,
    CREATED,
    DONE,
    ERROR,
    JOINED,
    MODEL_OUTPUT,
    OWN,
    STATUS_UPDATE,
    STEP_DELTA,
    STEP_START,
    STEP_STOP,
    THOUGHT,
    part_extra,
    put_back,
    step_fields,
)
from wireglot_core.dialects.gemini_interactions.response import ending, finished, reported, shell
from wireglot_core.dialects.gemini_interactions.steps import begin_call, carrier, signature_for_client
from wireglot_core.dialects.google_shared import NO_OPAQUE_STATE
from wireglot_core.dialects.ordered_writer import OrderedWriter, WaitingPart
from wireglot_core.ir.content import Foreign, Media, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import left_out, losses_of_extra
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Finish,
    ForeignEvent,
    GrowingText,
    PartEnd,
    Start,
    finish_part,
)
from wireglot_core.wire.json import encode

_DELTA_HEAD: Final = b'event: step.delta\ndata: {"event_type":"step.delta","index":%d,"delta":'
_TEXT: Final = b'{"type":"text","text":'
_SUMMARY: Final = b'{"type":"thought_summary","content":{"type":"text","text":'
_ARGUMENTS: Final = b'{"type":"arguments_delta","arguments":'
_NAMED: Final = ("type", "id", "call_id", "name", "server_name")
"""The fields of a hosted step in its start event; the rest comes in one delta."""


class InteractionsWriter(OrderedWriter):
    __slots__ = ("_calls", "_held", "_number", "_shell", "_steps", "_tail", "_text")

    dialect = OWN
    no_logprobs = NO_LOGPROBS

    def __init__(self, context: Context, request: Request | None = None) -> None:
        super().__init__(context, request)
        self._number = context.first_event
        self._steps = 0  # how many have begun
        self._held = False  # whether the end of an output step is not written yet
        self._calls = False
        self._tail = b""
        self._text: GrowingText | None = None  # of the part being written, if its citations need it
        self._shell: dict[str, Any] = {}

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if self._ended:
                break
            if type(event) is not Delta:
                self.events[type(event)](self, event, out)
            elif event.index == self._live and not event.logprobs:
                text = event.text
                if self._arguments is not None:
                    text = self._arguments.feed(text)
                elif self._text is not None:
                    self._text.add(text)
                if text:
                    out.append(self._spoken(text))
            else:
                self._delta(event, out)
        return out[0] if len(out) == 1 else b"".join(out)

    def _spoken(self, text: str) -> bytes:
        number = self._number
        self._number = number + 1
        return b'%b%b%b,"event_id":"%d"}\n\n' % (self._prefix, encode(text), self._tail, number)

    # The interaction

    def _write_start(self, start: Start, out: list[bytes]) -> None:
        self._shell = shell(start.id, start.model, start.created, start.extra, self._context, self._request)
        self._event(CREATED, {"interaction": self._shell}, out)
        self._event(STATUS_UPDATE, {"interaction_id": self._shell["id"], "status": "in_progress"}, out)

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        self._release(out)
        finish = self._completed(finish)
        LOST.of(finish, "$", self.losses)
        body = dict(self._shell)
        ending(body, finish.stop, self._calls, finish.usage, finish.service_tier, self.losses)
        body.update(reported(self._request))  # again: whether it is stored is known only now
        body = finished(body, finish.extra)
        body.pop("steps", None)
        self._event(COMPLETED, {"interaction": body}, out)
        out.append(DONE)
        self._ended = True

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        """Writes one terminal error and nothing after it."""
        self._event(ERROR, {"error": error_object(error, self.losses)}, out)
        self._ended = True

    def _pass_on(self, event: ForeignEvent, out: list[bytes]) -> None:
        value = {key: item for key, item in event.value.items() if key not in ("event_type", "event_id")}
        self._event(event.type, value, out)

    # One part after the other

    def _begin_part(self, waiting: WaitingPart, out: list[bytes]) -> None:
        part = waiting.part
        match part:
            case Text():
                self._begin_text(waiting, part, out)
            case Reasoning():
                self._begin_thought(waiting, part, out)
            case ToolCall():
                self._begin_call(waiting, part, out)
            case Foreign():
                self._foreign_step(part, waiting.path, out)
            case Media():
                self._medium(waiting, part, out)
            case ToolResult():
                raise AssertionError("a result in an answer")
            case _:
                assert_never(part)

    def _begin_text(self, waiting: WaitingPart, part: Text, out: list[bytes]) -> None:
        LOST.of(part, waiting.path, self.losses)
        waiting.scored = bool(part.logprobs)
        step: dict[str, Any] = {"type": MODEL_OUTPUT, **step_fields(part.extra)}
        content = put_back({"type": "text", "text": part.text}, _of_own(part_extra(part.extra)))
        if len(content) > 2:
            step["content"] = [content]
        self._output(step, is_joined=False, out=out)
        waiting.opened = True
        self._go_live(waiting, _TEXT, b"}")
        self._text = GrowingText()
        self._text.add(part.text)
        if part.text and "content" not in step:
            out.append(self._spoken(part.text))

    def _begin_thought(self, waiting: WaitingPart, part: Reasoning, out: list[bytes]) -> None:
        LOST.of(part, waiting.path, self.losses)
        step: dict[str, Any] = {"type": THOUGHT}
        summary = own_fields(part.extra, OWN).get("summary")
        waiting.silent = summary is not None
        self._begin_step(put_back(step, _of_own(part.extra)), out)
        waiting.opened = True
        if not waiting.silent:
            self._go_live(waiting, _SUMMARY, b"}}")
            if part.text:
                out.append(self._spoken(part.text))

    def _begin_call(self, waiting: WaitingPart, part: ToolCall, out: list[bytes]) -> None:
        self._calls = True
        if part.signature is not None:
            self._carry(carrier(part, part.signature, self._context), out)
        step = put_back(begin_call(part, waiting.path, self.losses), _of_own(part.extra))
        self._begin_step(step, out)
        waiting.opened = True
        if part.kind == "function":
            waiting.arguments = ArgumentStream()
            self._go_live(waiting, _ARGUMENTS, b"}")
        if part.arguments:
            self._more(waiting, part.arguments, out)

    def _foreign_step(self, part: Foreign, path: str, out: list[bytes]) -> None:
        if part.dialect != OWN:
            self.losses.append(left_out(part, path))
            return
        kind = part.type
        if not kind.endswith(("_call", "_result")):
            self._begin_step(part.value, out)
        else:
            self._begin_step({key: part.value[key] for key in _NAMED if key in part.value}, out)
            rest = {key: item for key, item in part.value.items() if key not in _NAMED[:3]}
            if rest:
                self._step_delta({"type": kind, **rest}, out)
        self._stop(out)

    def _medium(self, waiting: WaitingPart, part: Media, out: list[bytes]) -> None:
        content = render_content(part, waiting.path, self.losses)
        if content is None:
            return
        step = {"type": MODEL_OUTPUT, **step_fields(part.extra)}
        self._output(step, is_joined=bool(own_form(part.extra, OWN).get(JOINED)), out=out)
        waiting.opened = True
        self._step_delta(content, out)

    def _more(self, waiting: WaitingPart, text: str, out: list[bytes]) -> None:
        match waiting.part:
            case Text():
                assert self._text is not None
                self._text.add(text)
                out.append(self._spoken(text))
            case Reasoning():
                if not waiting.silent:
                    out.append(self._spoken(text))
            case ToolCall():
                if waiting.arguments is None:
                    waiting.pieces.append(text)  # freeform text, wrapped as a whole at its end
                elif passed := waiting.arguments.feed(text):
                    out.append(self._spoken(passed))
            case _:
                pass

    def _end(self, waiting: WaitingPart, end: PartEnd, out: list[bytes]) -> None:
        part = waiting.part
        self._live, self._arguments = -1, None
        match part:
            case Text():
                self._end_text(waiting, part, end, out)
            case Reasoning():
                self._end_thought(waiting, part, end, out)
            case ToolCall() if end.cut:
                self.losses.append(CUT_CALL.at(waiting.path))
                self._stop(out)
            case ToolCall():
                self._end_call(waiting, part, end, out)
            case Media():
                if waiting.opened and part.signature is not None:
                    self._carry(carrier(part, part.signature, self._context), out)
            case _:
                pass
        if end.extra is not None and end.extra.dialect != OWN:
            losses_of_extra(end.extra, OWN, waiting.path, self.losses)

    def _end_text(self, waiting: WaitingPart, part: Text, end: PartEnd, out: list[bytes]) -> None:
        citations = part.citations + end.citations
        text = str(self._text or "")
        self._text = None
        if citations:
            annotations = render_annotations(citations, text, waiting.path, self.losses)
            if annotations:
                self._step_delta({"type": "text_annotation_delta", "annotations": annotations}, out)
        signature = end.signature or part.signature
        if signature is not None:
            self._carry(carrier(part, signature, self._context), out)

    def _end_thought(self, waiting: WaitingPart, part: Reasoning, end: PartEnd, out: list[bytes]) -> None:
        whole = finish_part(part, "", (), end)
        assert isinstance(whole, Reasoning)
        if whole.signature is not None:
            holder = "redacted" if whole.redacted else "reasoning"
            signature = signature_for_client(
                whole.signature, "redacted" if holder == "redacted" else "reasoning", self._context
            )
            self._step_delta({"type": "thought_signature", "signature": signature}, out)
        elif whole.redacted:
            self.losses.append(NO_OPAQUE_STATE.at(waiting.path))
        self._stop(out)

    def _end_call(self, waiting: WaitingPart, part: ToolCall, end: PartEnd, out: list[bytes]) -> None:
        if end.signature is not None and end.signature != part.signature:
            self.losses.append(LATE_SIGNATURE.at(f"{waiting.path}.signature"))
        if waiting.arguments is not None:
            rest = waiting.arguments.finish()
            declare_arguments(waiting.arguments.form, waiting.path, self.losses)
        else:
            rest = encode({"input": "".join(waiting.pieces)}).decode()
        if rest:
            self._step_delta({"type": "arguments_delta", "arguments": rest}, out)
        self._stop(out)

    # Steps

    def _output(self, step: dict[str, Any], *, is_joined: bool, out: list[bytes]) -> None:
        """Begin a step with output, or continue the one that is open."""
        if not (is_joined and self._held):
            self._begin_step(step, out)
        self._held = True

    def _begin_step(self, step: dict[str, Any], out: list[bytes]) -> None:
        self._release(out)
        index = self._steps
        self._steps = index + 1
        self._event(STEP_START, {"index": index, "step": step}, out)

    def _release(self, out: list[bytes]) -> None:
        """Write the end of an output step that was held."""
        if self._held:
            self._held = False
            self._stop(out)

    def _stop(self, out: list[bytes]) -> None:
        self._event(STEP_STOP, {"index": self._steps - 1}, out)

    def _carry(self, thought: dict[str, Any], out: list[bytes]) -> None:
        """A whole thought that carries the signature of a neighbouring part."""
        self._begin_step({"type": THOUGHT}, out)
        self._step_delta({"type": "thought_signature", "signature": thought["signature"]}, out)
        self._stop(out)

    def _go_live(self, waiting: WaitingPart, delta: bytes, tail: bytes) -> None:
        self._live = waiting.index
        self._arguments = waiting.arguments
        self._prefix = _DELTA_HEAD % (self._steps - 1) + delta
        self._tail = tail

    def _step_delta(self, delta: dict[str, Any], out: list[bytes]) -> None:
        self._event(STEP_DELTA, {"index": self._steps - 1, "delta": delta}, out)

    def _event(self, name: str, value: dict[str, Any], out: list[bytes]) -> None:
        """`name`: an event name of this dialect, without a line end; JSON contains none either."""
        number = self._number
        self._number = number + 1
        event = {"event_type": name, **value, "event_id": str(number)}
        out.append(b"event: %b\ndata: %b\n\n" % (name.encode(), encode(event)))


def _of_own(extra: Any) -> Any:
    return extra if extra is not None and extra.dialect == OWN else None
