"""Parses streams of an upstream into events.

One step is open at a time: it starts, receives pieces and stops. The end is `interaction.completed`, which
has the status and the usage and, as a rule, none of the steps. An `error` event ends the stream without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.answer_reader import LAST_BLANK_LINE, AnswerReader, json_or_text, named_event
from wireglot_core.dialects.arguments import arguments_text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import broken
from wireglot_core.dialects.fields import Fields, object_in, text_in
from wireglot_core.dialects.gemini_interactions.content import parse_annotations, parse_content
from wireglot_core.dialects.gemini_interactions.errors import parse_error
from wireglot_core.dialects.gemini_interactions.names import (
    COMPLETED,
    CREATED,
    ERROR,
    FUNCTION_CALL,
    JOINED,
    MEDIA,
    MODEL_OUTPUT,
    OWN,
    STATUS_UPDATE,
    STEP_DELTA,
    STEP_START,
    STEP_STOP,
    THOUGHT,
)
from wireglot_core.dialects.gemini_interactions.outcome import parse_usage
from wireglot_core.dialects.gemini_interactions.parse_answer import (
    answer_extra,
    answer_stop,
    parse_answer_step,
    parse_answer_thought,
    parse_output,
    parse_response,
    unknown_of_output,
)
from wireglot_core.dialects.gemini_interactions.steps import CarriedSignature, parse_call
from wireglot_core.dialects.iso_time import unix_seconds
from wireglot_core.dialects.repeated_chunks import Place, RepeatedChunks
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Media,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    unfold,
)
from wireglot_core.wire.sse import Frame, SseDecoder

_PROSE: Final = {"text": "text", "arguments_delta": "arguments"}
"""Deltas with a piece of text, and the field that contains it."""
_SUMMARY: Final = {"type", "text"}


class InteractionsChunks(RepeatedChunks):
    """`event_id` differs in every event, and no reader uses it."""

    __slots__ = ("_texts",)

    varying = re.compile(rb'"(?:text|arguments|event_id)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"')

    def __init__(self, most: int, texts: list[str]) -> None:
        """`texts`: pieces of the open text, which its annotations refer to."""
        super().__init__(most)
        self._texts = texts

    def text_place(self, document: dict[str, Any]) -> Place | None:
        delta = document.get("delta")
        if document.get("event_type") != STEP_DELTA or type(delta) is not dict or "metadata" in document:
            return None
        kind = delta.get("type")
        if kind == "thought_summary":
            delta = object_in(delta.get("content"))
            return (delta, "text") if delta.keys() == _SUMMARY and type(delta["text"]) is str else None
        key = _PROSE.get(kind) if type(kind) is str else None
        if key is None or delta.keys() != {"type", key} or type(delta[key]) is not str:
            return None
        return delta, key

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return [(document, "event_id")] if type(document.get("event_id")) is str else []

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return self._texts


class _OpenStep:
    """The step that is being streamed."""

    __slots__ = (
        "annotations", "arguments", "citations", "index", "kind", "part", "said", "signature", "value",
    )  # fmt: skip

    def __init__(self, index: Any, kind: str, value: dict[str, Any]) -> None:
        self.index = index
        self.kind = kind
        self.value = value
        self.part: Part | None = None  # started and not ended
        self.said = False  # whether a part of it is in the answer
        self.annotations: list[Any] = []
        self.citations: tuple[Citation, ...] = ()  # of the open text, from the start event
        self.arguments: Any = None  # from the start event
        self.signature = ""


class InteractionsReader(AnswerReader):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._texts: list[str] = []  # of the open part
        super().__init__(SseDecoder(context.max_frame), InteractionsChunks(context.max_frame, self._texts))
        self._started = False
        self._origin: Origin
        self._id = ""
        self._count = 0  # parts so far
        self._calls = False
        self._highest = -1  # of the indices of steps so far
        self._step: _OpenStep | None = None
        self._body: dict[str, Any] = {}  # of the interaction, as far as reported
        self._usage: Usage | None = None
        self._early: list[ForeignEvent] = []
        self._held: PartEnd | None = None  # end of a text or medium: its signature may follow
        self._waiting: Signature | None = None  # of the call that comes next

    # Bytes

    def _frame(self, frame: Frame, out: list[Event]) -> None:
        event = named_event(frame)
        if type(event) is dict:
            self._event(event, frame.event, out)
        elif event is not None:
            raise UpstreamFault("expected an event object")

    def _read_end(self, out: list[Event]) -> None:
        self._read_stream(LAST_BLANK_LINE, out)

    def _read_document(self, document: bytes, out: list[Event]) -> None:
        body = json_or_text(document)
        error = parse_error(body) if type(body) is dict else parse_error(body, 502)
        if error is not None:
            self._fail(error, out)
            return
        out += unfold(parse_response(body, self._context))
        self._ended = True

    # Events

    def _event(self, event: dict[str, Any], name: str, out: list[Event]) -> None:
        kind = event.get("event_type")
        if type(kind) is not str:
            kind = ERROR if event.get("error") else name
        if kind == STEP_DELTA:
            self._begin({}, out)
            self._delta(event, out)
        elif kind == STEP_START:
            self._begin({}, out)
            self._start_step(event, out)
        elif kind == STEP_STOP:
            self._begin({}, out)
            self._stop_step(event, out)
        elif kind == ERROR:
            self._fail(parse_error(event) or broken("an error event"), out)
        elif kind == CREATED:
            self._created(object_in(event.get("interaction")), out)
        elif kind == STATUS_UPDATE:
            self._update(event, out)
        elif kind == COMPLETED:
            self._complete(object_in(event.get("interaction")), out)
        elif kind and kind != "done":
            foreign = ForeignEvent(OWN, kind, event)
            (out if self._started else self._early).append(foreign)

    def _begin(self, body: dict[str, Any], out: list[Event]) -> None:
        """Also called by the first other event, for a stream whose beginning is missing."""
        if self._started:
            return
        self._started = True
        self._body = body
        self._id, model = text_in(body.get("id")), text_in(body.get("model"))
        self._origin = self._context.origin(OWN, model)
        created = unix_seconds(body.get("created"))
        out.append(Start(self._id, model, created, extra=answer_extra(_lasting(body))))
        out += self._early

    def _created(self, body: dict[str, Any], out: list[Event]) -> None:
        if self._started:
            identifier = body.get("id")
            if self._id and type(identifier) is str and identifier not in ("", self._id):
                self._fail(broken("a second interaction begins inside the first"), out)
                return
            self._flawed("second_start")
        self._begin(body, out)

    def _update(self, event: dict[str, Any], out: list[Event]) -> None:
        self._begin({"id": event.get("interaction_id")}, out)
        self._report(event.get("usage"), out)

    def _report(self, raw: Any, out: list[Event]) -> None:
        usage = parse_usage(raw)
        if usage is not None and usage != self._usage:
            self._usage = usage
            out.append(UsageReport(usage))

    # Steps

    def _start_step(self, event: dict[str, Any], out: list[Event]) -> None:
        value = Fields(event.get("step"), "$.step", UpstreamFault)
        index = event.get("index")
        if type(index) is int:
            if index <= self._highest:
                self._flawed("index_not_growing")
            self._highest = max(index, self._highest)
        self._close_step(out)
        kind = value.text_or("type")
        step = self._step = _OpenStep(index, kind, value.value)
        if kind == FUNCTION_CALL:
            self._start_call(step, value, out)
        elif kind == THOUGHT and not value.value.get("summary"):
            step.signature = text_in(value.value.get("signature"))
        elif kind == THOUGHT:
            thought = parse_answer_thought(value, self._origin, self._context)
            if type(thought) is Reasoning:
                step.signature = text_in(value.value.get("signature"))
                self._open(step, Reasoning(extra=thought.extra), out)
                self._say(thought.text, out)
        elif kind == MODEL_OUTPUT and value.value.get("content"):
            for part in parse_output(value):
                self._part(step, part, out)

    def _start_call(self, step: _OpenStep, value: Fields, out: list[Event]) -> None:
        """The arguments of the start are only used if no delta has any."""
        call = parse_call(value, self._context, str(self._count), self._waiting)
        self._calls, self._waiting = True, None
        step.arguments = value.value.get("arguments")
        extra = call.extra
        if extra is not None and "arguments" in extra.form:  # it may come without them, in the start alone
            form = {key: item for key, item in extra.form.items() if key != "arguments"}
            extra = Extra(OWN, extra.fields, form) if extra.fields or form else None
        self._open(step, replace(call, arguments="", extra=extra), out)

    def _stop_step(self, event: dict[str, Any], out: list[Event]) -> None:
        step, index = self._step, event.get("index")
        if step is None or (type(index) is int and type(step.index) is int and index != step.index):
            self._flawed("piece_without_part")
        else:
            self._close_step(out)
        self._report(event.get("usage"), out)

    def _close_step(self, out: list[Event]) -> None:
        step, self._step = self._step, None
        if step is None:
            return
        part = step.part
        if part is None and not step.said:
            # Nothing was streamed of it: its content is in its start and its deltas.
            value = {**step.value, "signature": step.signature} if step.signature else step.value
            self._whole_step(Fields(value, "$.step", UpstreamFault), out)
        elif type(part) is ToolCall and not self._texts and step.arguments:
            arguments = step.arguments
            self._say(arguments if type(arguments) is str else arguments_text(object_in(arguments)), out)
        self._end_part(step, out)

    def _whole_step(self, step: Fields, out: list[Event]) -> None:
        for part in parse_answer_step(step, self._origin, self._context, self._count):
            if not isinstance(part, CarriedSignature):
                self._whole(part, out)
            elif part.holder == "call":
                self._waiting = part.signature
            elif self._held is not None:
                self._held = replace(self._held, signature=part.signature)

    # Pieces of a step

    def _delta(self, event: dict[str, Any], out: list[Event]) -> None:
        delta = Fields(event.get("delta"), "$.delta", UpstreamFault)
        self._report(object_in(event.get("metadata")).get("total_usage"), out)
        kind = delta.text_or("type")
        step, index = self._step, event.get("index")
        if step is None or (type(index) is int and type(step.index) is int and index != step.index):
            self._flawed("piece_without_part")
            self._close_step(out)
            step = self._step = _OpenStep(index, _STEP_OF.get(kind, kind), {"type": _STEP_OF.get(kind, kind)})
        if kind == "text":
            self._text(step, delta.text("text"), out)
        elif kind == "arguments_delta":
            self._argument(step, delta, out)
        elif kind == "text_annotation_delta":
            step.annotations += delta.array_or_empty("annotations")
        elif kind == "thought_summary":
            self._summary(step, delta, event, out)
        elif kind == "thought_signature":
            step.signature = delta.text_or("signature") or step.signature
        elif kind in MEDIA:
            part = parse_content(delta)
            self._part(step, part, out)
        elif kind == step.kind:
            self._merge(step, delta)
        else:
            out.append(ForeignEvent(OWN, STEP_DELTA, event))

    def _text(self, step: _OpenStep, text: str, out: list[Event]) -> None:
        if type(step.part) is not Text:
            if not text:
                return
            unknown = {} if step.said else unknown_of_output(step.value)
            self._open(step, Text("", extra=Extra(OWN, unknown) if unknown else None), out)
        self._say(text, out)

    def _argument(self, step: _OpenStep, delta: Fields, out: list[Event]) -> None:
        if type(step.part) is not ToolCall:
            self._flawed("piece_without_part")
            return
        piece = delta.value.get("arguments")
        if type(piece) is dict:
            step.arguments = piece
        else:
            self._say(delta.text_or("arguments"), out)

    def _summary(self, step: _OpenStep, delta: Fields, event: dict[str, Any], out: list[Event]) -> None:
        content = object_in(delta.value.get("content"))
        text = content.get("text")
        if type(text) is not str:  # a picture of a thought
            out.append(ForeignEvent(OWN, STEP_DELTA, event))
            return
        if type(step.part) is not Reasoning:
            self._open(step, Reasoning(), out)
        self._say(text, out)

    def _merge(self, step: _OpenStep, delta: Fields) -> None:
        """Merges a piece of a step that is only complete at its end: the input or the result of one of
        Google's tools."""
        value = dict(step.value)
        for key, item in delta.value.items():
            before = value.get(key)
            if type(before) is list and type(item) is list:
                value[key] = [*before, *item]
            elif item is not None:
                value[key] = item
        step.value = value

    # Parts

    def _part(self, step: _OpenStep, part: Part, out: list[Event]) -> None:
        """Handles a part of the open step that came in one piece."""
        self._end_part(step, out)
        if step.said and (type(part) is Text or type(part) is Media):
            extra = part.extra
            fields, form = (extra.fields, extra.form) if extra is not None else ({}, {})
            part = replace(part, extra=Extra(OWN, fields, {**form, JOINED: True}))
        if type(part) is Text:
            self._open(step, replace(part, text="", citations=()), out)
            self._say(part.text, out)
            step.citations = part.citations
        else:
            step.said = True
            self._whole(part, out)

    def _open(self, step: _OpenStep, part: Part, out: list[Event]) -> None:
        self._end_part(step, out)
        self._release(out)
        if step.said and type(part) is Text and part.extra is None:
            part = replace(part, extra=Extra(OWN, {}, {JOINED: True}))
        out.append(PartStart(self._count, part))
        self._count += 1
        step.part, step.said = part, True

    def _say(self, text: str, out: list[Event]) -> None:
        if text:
            self._texts.append(text)
            out.append(Delta(self._count - 1, text))

    def _end_part(self, step: _OpenStep, out: list[Event]) -> None:
        part, step.part = step.part, None
        if part is None:
            return
        if type(part) is Text:
            citations = step.citations
            if step.annotations:
                citations += parse_annotations(step.annotations, "".join(self._texts))
            step.annotations, step.citations = [], ()
            self._held = PartEnd(self._count - 1, None, citations)
        elif type(part) is Reasoning:
            out.append(PartEnd(self._count - 1, self._signature(step.signature)))
        else:
            out.append(PartEnd(self._count - 1))
        self._texts.clear()

    def _signature(self, stated: str) -> Signature | None:
        if not stated:
            return None
        sealed = self._context.unseal(stated)
        return sealed.signature if sealed is not None else Signature(stated, self._origin)

    def _release(self, out: list[Event]) -> None:
        if self._held is not None:
            out.append(self._held)
            self._held = None

    def _whole(self, part: Part, out: list[Event]) -> None:
        self._release(out)
        index = self._count
        self._count += 1
        text = ""
        end = PartEnd(index)
        if type(part) is Text:
            text, end = part.text, PartEnd(index, part.signature, part.citations)
            part = replace(part, text="", citations=(), signature=None)
        elif type(part) is Reasoning and not part.redacted:
            text, end = part.text, PartEnd(index, part.signature)
            part = replace(part, text="", signature=None)
        elif type(part) is ToolCall:
            self._calls = True
            text, part = part.arguments, replace(part, arguments="", signature=self._waiting)
            self._waiting = None
        out.append(PartStart(index, part))
        if text:
            out.append(Delta(index, text))
        if type(part) is Text or type(part) is Media:
            self._held = end
        else:
            out.append(end)

    # The end

    def _complete(self, body: dict[str, Any], out: list[Event]) -> None:
        self._begin(body, out)
        self._close_step(out)
        steps = body.get("steps")
        if not self._count and type(steps) is list:
            for position, value in enumerate(steps):
                self._whole_step(Fields(value, f"$.interaction.steps[{position}]", UpstreamFault), out)
        self._release(out)
        error = parse_error(body)
        if error is not None:
            self._fail(error, out)
            return
        whole = {**_lasting(self._body), **_lasting(body)}
        usage = parse_usage(body.get("usage")) or self._usage
        stop = answer_stop(body, self._calls)
        out.append(Finish(stop, usage, text_in(body.get("service_tier")), answer_extra(whole)))
        self._ended = True


def _lasting(body: dict[str, Any]) -> dict[str, Any]:
    """Fields of the interaction in an event that have no other place."""
    return {key: value for key, value in body.items() if key not in ("status", "steps", "usage")}


_STEP_OF: Final[dict[str, str]] = {
    "text": MODEL_OUTPUT,
    "text_annotation_delta": MODEL_OUTPUT,
    "image": MODEL_OUTPUT,
    "audio": MODEL_OUTPUT,
    "document": MODEL_OUTPUT,
    "video": MODEL_OUTPUT,
    "thought_summary": THOUGHT,
    "thought_signature": THOUGHT,
    "arguments_delta": FUNCTION_CALL,
}
"""The step that a delta belongs to, if none has started."""
