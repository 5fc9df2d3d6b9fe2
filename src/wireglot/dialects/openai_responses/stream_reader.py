"""An upstream's stream: events keyed by `output_index`, with the done items as the truth."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.dialects.fields import Fields
from wireglot.dialects.openai_responses.errors import parse_error
from wireglot.dialects.openai_responses.items import SEPARATOR, Carried
from wireglot.dialects.openai_responses.outcome import parse_stop, parse_usage
from wireglot.dialects.openai_responses.parts import parse_citation, parse_logprobs
from wireglot.dialects.openai_responses.response import (
    body_extra,
    created_of,
    parse_output_item,
    parse_response,
)
from wireglot.dialects.openai_responses.settings import parse_tier
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Citation, Extra, Foreign, Media, Part, Reasoning, Signature, Text, ToolCall
from wireglot.ir.errors import ApiError, UpstreamFault
from wireglot.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    unfold,
)
from wireglot.wire.json import BadJson, decode
from wireglot.wire.sse import Frame, FrameTooLarge, SseDecoder

_SILENT = frozenset({"ping", "keepalive", "response.keepalive", "response.heartbeat"})
_MAX_BODY = 64 * 1024 * 1024
_CALLS = frozenset({"function_call", "custom_tool_call"})
_TEXT_ITEMS = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})


class _Open:
    """A part being streamed: its index in the IR (-1 once it ended) and what of it went out."""

    __slots__ = ("citations", "final", "index", "refusal", "sent")

    def __init__(self, index: int, refusal: bool = False) -> None:
        self.index = index
        self.sent: list[str] = []
        self.refusal = refusal
        self.citations: list[Citation] = []
        self.final: Part | None = None


class _Item:
    """One output item: its open parts by content index (0 for calls and reasoning)."""

    __slots__ = ("done", "identity", "kind", "parts", "section", "source", "value")

    def __init__(self, kind: str, value: dict[str, Any]) -> None:
        self.kind = kind
        self.value = value
        self.parts: dict[int, _Open] = {}
        self.done = False
        self.identity = _identity(value)
        self.source = ""  # reasoning: which list is shown
        self.section = 0  # reasoning: the entry of that list now streaming


class ResponsesReader:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._sse = SseDecoder()
        self._body: bytearray | None = None  # a whole JSON document instead of a stream
        self._streaming = False
        self._opening = b""  # blanks, while it is not known which of both it is
        self._out: list[Event] = []
        self._early: list[ForeignEvent] = []  # events that came before the response did
        self._items: dict[int, _Item] = {}
        self._count = 0
        self._id = ""
        self._model = context.model
        self._started = False
        self._ended = False
        self._calls = False
        self._refused = False
        self._held: tuple[_Open, PartEnd] | None = None  # a text whose signature may still follow
        self._waiting: Signature | None = None  # a signature whose call is still to come

    # Bytes

    def read(self, data: bytes) -> list[Event]:
        if self._ended:
            return []
        if self._body is not None:
            self._collect(data)
        elif self._streaming or self._is_stream(data):
            data, self._opening = self._opening + data, b""
            try:
                frames = self._sse.feed(data)
            except FrameTooLarge as problem:
                self._fail(ApiError("server", str(problem), code="frame_too_large"))
            else:
                self._read_frames(frames)
        return self._take()

    def end(self) -> list[Event]:
        if self._ended:
            return []
        if self._body is not None:
            self._read_body(bytes(self._body))
        else:
            try:
                self._read_frames(self._sse.feed(self._opening) + self._sse.close())
            except FrameTooLarge as problem:
                self._fail(ApiError("server", str(problem), code="frame_too_large"))
        if not self._ended:
            message = "the upstream stream ended before it was complete"
            self._fail(ApiError("server", message, code="stream_truncated"))
        return self._take()

    def _take(self) -> list[Event]:
        out, self._out = self._out, []
        return out

    def _is_stream(self, data: bytes) -> bool:
        """Whether it may be SSE: only a document (or a page) begins with these characters."""
        self._opening += data
        first = self._opening.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if not first:
            return False
        if first in b"{[<":
            self._body = bytearray(self._opening)
            self._opening = b""
            return False
        self._streaming = True
        self._opening = self._opening[: len(self._opening) - len(data)]
        return True

    def _collect(self, data: bytes) -> None:
        assert self._body is not None
        self._body += data
        if len(self._body) > _MAX_BODY:
            self._body.clear()
            self._fail(ApiError("server", "the upstream's answer is too large", code="frame_too_large"))

    def _read_body(self, data: bytes) -> None:
        try:
            body = decode(data)
        except BadJson:
            body = data.decode("utf-8", "replace")
        error = parse_error(body) if type(body) is dict else parse_error(body, 502)
        if error is not None:
            self._fail(error)
            return
        try:
            self._out += unfold(parse_response(body, self._context))
            self._ended = True
        except UpstreamFault as problem:
            self._fail(ApiError("server", str(problem)))

    def _read_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            if self._ended:
                return
            data = frame.data
            try:
                event = decode(data)
            except BadJson as problem:
                if data.strip() in (b"[DONE]", b""):
                    continue
                self._fail(ApiError("server", f"the upstream sent a broken event: {problem}"))
                return
            if type(event) is dict:
                try:
                    self._read_event(event, frame.event)
                except UpstreamFault as problem:
                    self._fail(ApiError("server", f"the upstream sent a broken event: {problem}"))

    # Events

    def _read_event(self, event: dict[str, Any], name: str) -> None:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            live = self._live(event)
            delta = event.get("delta")
            if live is not None and type(delta) is str:
                if delta:
                    live.sent.append(delta)
                    logprobs = event.get("logprobs")
                    self._out.append(
                        Delta(live.index, delta, parse_logprobs(logprobs))
                        if logprobs
                        else Delta(live.index, delta)
                    )
                return
        if type(kind) is not str:
            if type(event.get("error")) is dict:
                kind = "error"
            elif name:
                kind = name
            else:
                return
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, event)
        elif kind not in _SILENT:
            foreign = ForeignEvent(NAME, kind, event)
            (self._out if self._started else self._early).append(foreign)

    def _live(self, event: dict[str, Any]) -> _Open | None:
        """The open text a delta belongs to, if it was announced as it should be."""
        position, number = event.get("output_index"), event.get("content_index")
        if type(position) is not int or type(number) is not int:
            return None
        item = self._items.get(position)
        part = item.parts.get(number) if item is not None and item.kind == "message" else None
        return part if part is not None and part.index >= 0 else None

    def _start(self, event: dict[str, Any]) -> None:
        if self._started:
            return
        self._started = True
        response = event.get("response")
        body = response if type(response) is dict else {}
        identifier, model = body.get("id"), body.get("model")
        self._id = identifier if type(identifier) is str else ""
        self._model = model if type(model) is str else ""
        self._out.append(Start(self._id, self._model, created_of(body)))
        self._out += self._early

    def _lifecycle(self, event: dict[str, Any]) -> None:
        self._start(event)

    def _item_added(self, event: dict[str, Any]) -> None:
        self._start(event)
        value = event.get("item")
        if type(value) is not dict:
            return
        position = self._position(event, value, new=True)
        if position in self._items:
            return
        item = self._open_item(position, value)
        if item.kind in _CALLS:
            self._open_call(item, value)
        elif item.kind not in _TEXT_ITEMS:
            self._out.append(ForeignEvent(NAME, "response.output_item.added", event))

    def _open_item(self, position: int, value: dict[str, Any]) -> _Item:
        kind = value.get("type")
        if type(kind) is not str:
            kind = "message" if "content" in value else ""
        item = _Item(kind, value)
        self._items[position] = item
        return item

    def _position(self, event: dict[str, Any], value: dict[str, Any] | None = None, new: bool = False) -> int:
        """The item an event is about: by its index, else by its id, else the newest."""
        index = event.get("output_index")
        if type(index) is int:
            return index
        if not new:
            identifier = value.get("id") if value is not None else event.get("item_id")
            for position, item in self._items.items():
                if type(identifier) is str and identifier in item.identity:
                    return position
            if self._items and (value is None or not next(reversed(self._items.values())).done):
                return next(reversed(self._items))
        return max(self._items, default=-1) + 1

    def _item_for(self, event: dict[str, Any], kind: str) -> _Item:
        """The item an event is about, opened if it was never announced."""
        self._start(event)
        position = self._position(event)
        item = self._items.get(position)
        return (
            item
            if item is not None
            else self._open_item(position, {"type": kind, "id": event.get("item_id")})
        )

    # Message items

    def _part_added(self, event: dict[str, Any]) -> None:
        part = event.get("part")
        kind = part.get("type") if type(part) is dict else None
        if kind in ("output_text", "refusal", "text"):
            item = self._item_for(event, "message")
            if item.kind == "message" and not item.done:
                self._open_text(item, _number(event, "content_index"), kind == "refusal")

    def _open_text(self, item: _Item, number: int, refusal: bool) -> _Open:
        part = item.parts.get(number)
        if part is not None:
            return part
        self._end_texts(item)
        self._refused = self._refused or refusal
        form = {"item": {"number": self._number_of(item), **_light_form(item.value)}}
        part = self._open(Text("", refusal=refusal, extra=Extra(NAME, form=form)))
        part.refusal = refusal
        item.parts[number] = part
        return part

    def _number_of(self, item: _Item) -> int:
        return next(position for position, other in self._items.items() if other is item)

    def _end_texts(self, item: _Item) -> None:
        """Earlier texts of the item are over when the next one begins."""
        for part in item.parts.values():
            if part.final is None or not isinstance(part.final, Text) or part.index < 0:
                continue
            self._end_text(part, part.final)

    def _end_text(self, part: _Open, final: Text | None) -> None:
        if part.index < 0:
            return
        citations = final.citations if final is not None and final.citations else tuple(part.citations)
        if final is not None:
            self._complete(part, final.text, final)
        end = PartEnd(part.index, None, citations, final.extra if final is not None else None)
        self._release()
        self._held = (part, end)
        part.index = -1

    def _text_delta(self, event: dict[str, Any]) -> None:
        """A delta off the fast path: its part was not announced."""
        item = self._item_for(event, "message")
        delta = event.get("delta")
        if item.kind != "message" or item.done or type(delta) is not str or not delta:
            return
        refusal = event.get("type") == "response.refusal.delta"
        part = self._open_text(item, _number(event, "content_index"), refusal)
        if part.index >= 0:
            part.sent.append(delta)
            self._out.append(Delta(part.index, delta, parse_logprobs(event.get("logprobs"))))

    def _text_done(self, event: dict[str, Any]) -> None:
        item = self._item_for(event, "message")
        refusal = event.get("type") == "response.refusal.done"
        text = event.get("refusal" if refusal else "text")
        if item.kind != "message" or item.done or type(text) is not str or not text:
            return
        self._complete(self._open_text(item, _number(event, "content_index"), refusal), text)

    def _part_done(self, event: dict[str, Any]) -> None:
        value = event.get("part")
        item = self._item_for(event, "message")
        if type(value) is not dict or item.kind != "message" or item.done:
            return
        number = _number(event, "content_index")
        message = {**item.value, "type": "message", "role": "assistant", "content": [value]}
        final = self._parse(message, self._number_of(item))[0]
        if isinstance(final, Text):
            self._open_text(item, number, final.refusal).final = final

    def _annotation(self, event: dict[str, Any]) -> None:
        value = event.get("annotation")
        item = self._item_for(event, "message")
        part = item.parts.get(_number(event, "content_index"))
        if part is not None and type(value) is dict:
            part.citations.append(parse_citation(Fields(value, "$.annotation", UpstreamFault)))

    # Reasoning items

    def _summary_delta(self, event: dict[str, Any]) -> None:
        self._reasoning_delta(event, "summary", _number(event, "summary_index"))

    def _content_delta(self, event: dict[str, Any]) -> None:
        self._reasoning_delta(event, "content", _number(event, "content_index"))

    def _reasoning_delta(self, event: dict[str, Any], source: str, section: int) -> None:
        item = self._item_for(event, "reasoning")
        delta = event.get("delta")
        if item.kind != "reasoning" or item.done or type(delta) is not str or not delta:
            return
        item.source = item.source or source
        if item.source != source:
            return
        part = item.parts.get(0)
        if part is None:
            form = {"source": source, **_light_form(item.value)}
            part = item.parts[0] = self._open(Reasoning(extra=Extra(NAME, form=form)))
        if section > item.section:
            delta = SEPARATOR * (section - item.section) + delta
            item.section = section
        part.sent.append(delta)
        self._out.append(Delta(part.index, delta))

    # Calls

    def _open_call(self, item: _Item, value: dict[str, Any]) -> None:
        """Only with its final id and name; a call that does not tell them yet waits for its done item."""
        call_id, name = value.get("call_id"), value.get("name")
        if item.parts or type(call_id) is not str or type(name) is not str or not call_id or not name:
            return
        namespace = value.get("namespace")
        call = ToolCall(
            call_id,
            name,
            "",
            "custom" if item.kind == "custom_tool_call" else "function",
            namespace if type(namespace) is str else "",
            extra=Extra(NAME, form=_light_form(value)),
        )
        item.parts[0] = self._open(self._signed(call))

    def _call_delta(self, event: dict[str, Any]) -> None:
        self._start(event)
        item = self._items.get(self._position(event))
        delta = event.get("delta")
        if item is None or item.kind not in _CALLS or item.done or type(delta) is not str or not delta:
            return
        part = item.parts.get(0)
        if part is not None:
            part.sent.append(delta)
            self._out.append(Delta(part.index, delta))

    def _call_done(self, event: dict[str, Any]) -> None:
        self._start(event)
        item = self._items.get(self._position(event))
        text = event.get("arguments", event.get("input"))
        if item is not None and item.kind in _CALLS and not item.done and type(text) is str:
            part = item.parts.get(0)
            if part is not None:
                self._complete(part, text)

    def _signed(self, call: ToolCall) -> ToolCall:
        signature, self._waiting = self._waiting, None
        return call if signature is None else replace(call, signature=signature)

    # Done items

    def _item_done(self, event: dict[str, Any]) -> None:
        self._start(event)
        value = event.get("item")
        if type(value) is not dict:
            return
        position = self._position(event, value)
        item = self._items.get(position)
        if item is None:
            item = self._open_item(position, value)
        self._finish_item(item, position, value)

    def _finish_item(self, item: _Item, position: int, value: dict[str, Any]) -> None:
        if item.done:
            return
        item.done = True
        item.identity = _identity(value)
        if value.get("type") != item.kind and item.parts:
            value = {**value, "type": item.kind}
        finals = self._parse(value, position, item.source)
        if item.kind == "message":
            self._finish_message(item, finals)
            return
        for final in finals:
            self._finish_part(item, final)

    def _finish_message(self, item: _Item, finals: list[Part | Carried]) -> None:
        for number, final in enumerate(finals):
            if isinstance(final, Text):
                if final.extra is not None and final.extra.form.get("empty"):
                    continue
                part = item.parts.get(number)
                if part is None:
                    if not final.text:
                        continue
                    part = self._open_text(item, number, final.refusal)
                self._end_text(part, final)
            elif isinstance(final, Foreign | Media):
                self._whole(final)
        for part in item.parts.values():
            self._end_text(part, part.final if isinstance(part.final, Text) else None)

    def _finish_part(self, item: _Item, final: Part | Carried) -> None:
        part = item.parts.get(0)
        match final:
            case Carried() if part is None:
                self._carry(final)
            case Reasoning():
                if part is None:
                    part = self._open(
                        Reasoning("", final.signature if final.redacted else None, final.redacted)
                    )
                self._complete(part, final.text)
                self._out.append(PartEnd(part.index, final.signature, (), final.extra))
            case ToolCall():
                self._calls = True
                if part is None:
                    part = self._open(self._signed(replace(final, arguments="")))
                self._complete(part, final.arguments)
                self._out.append(PartEnd(part.index, None, (), final.extra))
            case Media() | Foreign() if part is None:
                self._whole(final)
            case _:
                if part is not None:
                    self._out.append(PartEnd(part.index))

    def _carry(self, carried: Carried) -> None:
        if carried.holder == "call":
            self._waiting = carried.signature
        elif self._held is not None:
            part, end = self._held
            self._held = (part, replace(end, signature=carried.signature))

    def _parse(self, value: dict[str, Any], position: int, source: str = "") -> list[Part | Carried]:
        path = f"$.output[{position}]"
        origin = self._context.origin(NAME, self._model)
        return parse_output_item(
            Fields(value, path, UpstreamFault), position, self._id, origin, self._context, source
        )

    # Parts

    def _open(self, part: Part) -> _Open:
        self._release()
        index = self._count
        self._count += 1
        self._out.append(PartStart(index, part))
        return _Open(index)

    def _whole(self, part: Part) -> None:
        opened = self._open(part)
        self._out.append(PartEnd(opened.index))

    def _complete(self, part: _Open, text: str, final: Text | None = None) -> None:
        """Emit what the deltas did not bring."""
        sent = "".join(part.sent)
        if part.index < 0 or len(text) <= len(sent) or not text.startswith(sent):
            return
        logprobs = final.logprobs if final is not None and not sent else ()
        part.sent = [text]
        self._out.append(Delta(part.index, text[len(sent) :], logprobs))

    def _release(self) -> None:
        if self._held is not None:
            self._out.append(self._held[1])
            self._held = None

    # The end

    def _finished(self, event: dict[str, Any]) -> None:
        self._start(event)
        response = event.get("response")
        body = response if type(response) is dict else {}
        output = body.get("output")
        if type(output) is list:
            self._read_final_output(output)
        for item in self._items.values():
            if not item.done:
                self._abandon(item)
        self._release()
        status = body.get("status")
        if type(status) is not str or status in ("in_progress", "queued"):
            status = str(event.get("type", "")).removeprefix("response.").replace("done", "completed")
        stop = parse_stop(status, body.get("incomplete_details"), self._calls, self._refused)
        tier = body.get("service_tier")
        usage = parse_usage(body.get("usage"))
        self._out.append(
            Finish(
                stop, usage, parse_tier(tier) if type(tier) is str else "", body_extra(body, usage is None)
            )
        )
        self._ended = True

    def _read_final_output(self, output: list[Any]) -> None:
        """Items that the stream announced and did not finish, or never announced."""
        seen = {part for item in self._items.values() for part in item.identity}
        for position, value in enumerate(output):
            if type(value) is not dict:
                continue
            item = self._items.get(position)
            if item is not None and item.kind == value.get("type"):
                self._finish_item(item, position, value)
            elif item is None and len(output) > len(self._items) and not seen & _identity(value):
                self._finish_item(self._open_item(position, value), position, value)

    def _abandon(self, item: _Item) -> None:
        """An item without its end: what came of it stands."""
        item.done = True
        self._calls = self._calls or (item.kind in _CALLS and bool(item.parts))
        for part in item.parts.values():
            if item.kind == "message":
                self._end_text(part, part.final if isinstance(part.final, Text) else None)
            else:
                self._out.append(PartEnd(part.index))

    def _failed(self, event: dict[str, Any]) -> None:
        error = parse_error(event)
        self._fail(error or ApiError("server", "the response failed"))

    def _fail(self, error: ApiError) -> None:
        self._release()
        self._out.append(Failure(error))
        self._ended = True


def _number(event: dict[str, Any], key: str) -> int:
    value = event.get(key)
    return value if type(value) is int else 0


def _identity(value: dict[str, Any]) -> set[str]:
    return {value[key] for key in ("id", "call_id") if type(value.get(key)) is str}


def _light_form(value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in ("id", "phase") if value.get(key) is not None}


_READERS = {
    "response.created": ResponsesReader._lifecycle,
    "response.in_progress": ResponsesReader._lifecycle,
    "response.queued": ResponsesReader._lifecycle,
    "response.output_item.added": ResponsesReader._item_added,
    "response.output_item.done": ResponsesReader._item_done,
    "response.content_part.added": ResponsesReader._part_added,
    "response.content_part.done": ResponsesReader._part_done,
    "response.output_text.delta": ResponsesReader._text_delta,
    "response.output_text.done": ResponsesReader._text_done,
    "response.refusal.delta": ResponsesReader._text_delta,
    "response.refusal.done": ResponsesReader._text_done,
    "response.output_text.annotation.added": ResponsesReader._annotation,
    "response.output_text_annotation.added": ResponsesReader._annotation,
    "response.reasoning_summary_text.delta": ResponsesReader._summary_delta,
    "response.reasoning_text.delta": ResponsesReader._content_delta,
    "response.function_call_arguments.delta": ResponsesReader._call_delta,
    "response.function_call_arguments.done": ResponsesReader._call_done,
    "response.custom_tool_call_input.delta": ResponsesReader._call_delta,
    "response.custom_tool_call_input.done": ResponsesReader._call_done,
    "response.completed": ResponsesReader._finished,
    "response.done": ResponsesReader._finished,
    "response.incomplete": ResponsesReader._finished,
    "response.cancelled": ResponsesReader._finished,
    "response.failed": ResponsesReader._failed,
    "error": ResponsesReader._failed,
}
"""What is done about an event. Closing events whose content the done item repeats are read past."""
for _quiet in (
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
    "response.reasoning_part.added",
    "response.reasoning_part.done",
):
    _READERS[_quiet] = ResponsesReader._lifecycle
