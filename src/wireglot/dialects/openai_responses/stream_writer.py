"""The client's stream: every event in its order, with the same ids from the first to the last.

Items may be open side by side (parallel calls), each under its own `output_index`. The closing events of the
newest item are held until it is known what follows: neighbouring texts share one message item, and an item
the model was cut off in is `incomplete`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.dialects.fields import own_form
from wireglot.dialects.openai_responses.errors import error_object, failed_code
from wireglot.dialects.openai_responses.outcome import render_stop, render_usage
from wireglot.dialects.openai_responses.output import (
    ItemIds,
    carrier,
    declare_id,
    encrypted_content,
    message_fields,
    reasoning_id,
    response_id,
    same_message,
)
from wireglot.dialects.openai_responses.parts import render_logprobs
from wireglot.dialects.openai_responses.render_items import (
    no_arguments,
    render_call,
    render_foreign,
    render_reasoning,
)
from wireglot.dialects.openai_responses.response import (
    finish_body,
    open_message,
    render_body_tier,
    render_output_media,
    render_output_text,
    respell,
    shell,
)
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Extra, Foreign, Media, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot.ir.errors import ApiError
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.ir.outcome import Response, Stop, Usage
from wireglot.ir.request import Request
from wireglot.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    finish_part,
)
from wireglot.wire.json import encode

_TEXT_TAIL = b',"logprobs":[]}\n\n'
_TAIL = b"}\n\n"


class _Item:
    """An output item on its way; `value` is what the final response will hold."""

    __slots__ = ("done", "position", "text", "value")

    def __init__(self, position: int, value: dict[str, Any]) -> None:
        self.position = position
        self.value = value
        self.done = False
        self.text: Text | None = None  # message items: the last text in them


class _Open:
    """A part on its way. `before` and `after` frame a delta's sequence number; empty until it opens."""

    __slots__ = ("after", "before", "item", "logprobs", "number", "part", "path", "tail", "texts")

    def __init__(self, part: Part, path: str) -> None:
        self.part = part
        self.path = path
        self.texts: list[str] = []
        self.logprobs: list[Any] = []
        self.item: _Item | None = None
        self.number = 0
        self.before = b""
        self.after = b""
        self.tail = _TAIL


class ResponsesWriter:
    def __init__(self, context: Context, request: Request | None = None) -> None:
        self.losses: list[Loss] = []
        self._context = context
        self._request = request
        self._sequence = 0
        self._out: list[bytes] = []
        self._parts: dict[int, _Open] = {}
        self._items: list[_Item] = []
        self._announced: dict[str, _Item] = {}  # hosted items whose announcement was passed on
        self._newest: _Item | None = None  # complete, but its closing event is still held
        self._content: list[Part] = []
        self._start: Start | None = None
        self._shell: dict[str, Any] = {}
        self._ids = ItemIds("", context)
        self._usage: Usage | None = None
        self._ended = False

    def write(self, events: Iterable[Event]) -> bytes:
        out = self._out
        for event in events:
            if type(event) is Delta:
                part = self._parts[event.index]
                if part.before and not event.logprobs:
                    text = event.text
                    part.texts.append(text)
                    number = self._sequence
                    self._sequence = number + 1
                    out.append(b"%b%d%b%b%b" % (part.before, number, part.after, encode(text), part.tail))
                else:
                    self._first_delta(part, event)
            elif not self._ended:
                self._write_event(event)
        data = b"".join(out)
        out.clear()
        return data

    def _write_event(self, event: Event) -> None:
        match event:
            case Delta():
                raise AssertionError("deltas take the fast way")
            case PartStart():
                self._open(event)
            case PartEnd():
                self._close(self._parts.pop(event.index), event)
            case UsageReport():
                self._usage = event.usage
            case ForeignEvent():
                self._pass_on(event)
            case Start():
                self._begin(event)
            case Finish():
                self._finish(event)
            case Failure():
                self._fail(event.error)

    def _emit(self, kind: str, payload: dict[str, Any]) -> None:
        name = kind.encode()
        self._out.append(
            b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b\n\n'
            % (name, name, self._sequence, encode(payload)[1:])
        )
        self._sequence += 1

    # The frame

    def _begin(self, start: Start) -> None:
        self._start = start
        native = start.extra is not None and start.extra.dialect == NAME
        identifier = response_id(start.id, start.model, self._context, native)
        self._ids = ItemIds(identifier, self._context)
        self._usage = start.usage
        whole = Response(start.id, start.model, (), Stop("end"), created=start.created, extra=start.extra)
        self._shell = shell(whole, identifier, self._context, self._request)
        self._emit("response.created", {"response": self._shell})
        self._emit("response.in_progress", {"response": self._shell})

    def _finish(self, finish: Finish) -> None:
        assert self._start is not None
        status, why = render_stop(finish.stop, self._content, self.losses)
        self._release("incomplete" if status == "incomplete" else "completed")
        extra = finish.extra if finish.extra is not None else self._start.extra
        losses_of_extra(extra, NAME, "$", self.losses, "response.extra")
        body = dict(self._shell)
        form = own_form(extra, NAME)
        if "body" in form:
            body.update(form["body"])
        whole = Response(
            self._start.id, self._start.model, (), finish.stop, created=self._start.created, extra=extra
        )
        finish_body(body, whole, status, why, self._context)
        body["output"] = [item.value for item in self._items]
        usage = finish.usage if finish.usage is not None else self._usage
        body["usage"] = render_usage(usage, self.losses)
        render_body_tier(body, finish.service_tier or self._start.service_tier, form, self.losses)
        spelled = respell(body, extra)
        event = {"incomplete": "response.incomplete", "failed": "response.failed"}.get(
            status, "response.completed"
        )
        spelled.update(id=self._shell["id"], object="response", output=body["output"], status=status)
        self._emit(event, {"response": spelled})
        self._ended = True

    def _fail(self, error: ApiError) -> None:
        """An `error` event, then `response.failed`: some clients know only the one, some only the other."""
        self._release("incomplete")
        if not self._shell:
            identifier = response_id("", self._context.model, self._context, False)
            whole = Response("", self._context.model, (), Stop("other"))
            self._shell = shell(whole, identifier, self._context, self._request)
        envelope = error_object(error)
        flat = {"code": envelope["code"], "message": error.message, "param": envelope["param"]}
        self._emit("error", {**flat, "error": {"type": envelope["type"], **flat}})
        body = dict(self._shell)
        body["status"] = "failed"
        body["error"] = {"code": failed_code(error), "message": error.message}
        body["output"] = [item.value for item in self._items]
        if self._usage is not None:
            body["usage"] = render_usage(self._usage, [])
        self._emit("response.failed", {"response": body})
        self._ended = True

    def _pass_on(self, event: ForeignEvent) -> None:
        if event.dialect != NAME:
            self.losses.append(Loss("$", "foreign_event", "dropped", f"{event.type} of {event.dialect}"))
            return
        payload = {key: value for key, value in event.value.items() if key not in ("type", "sequence_number")}
        value = payload.get("item")
        if (
            event.type == "response.output_item.added"
            and type(value) is dict
            and type(value.get("id")) is str
        ):
            item = self._add(dict(value), announce=False)
            self._announced[value["id"]] = item
            self._emit(event.type, {**payload, "output_index": item.position})
            return
        item_id = payload.get("item_id")
        if type(item_id) is str and item_id in self._announced:
            payload["output_index"] = self._announced[item_id].position
        self._emit(event.type, payload)

    # Items

    def _add(self, value: dict[str, Any], announce: bool = True) -> _Item:
        item = _Item(len(self._items), value)
        self._items.append(item)
        if announce:
            self._emit("response.output_item.added", {"output_index": item.position, "item": value})
        return item

    def _done(self, item: _Item) -> None:
        item.done = True
        self._emit("response.output_item.done", {"output_index": item.position, "item": item.value})

    def _release(self, status: str = "completed") -> None:
        """Close the newest item: nothing can be added to it any more."""
        item, self._newest = self._newest, None
        if item is None:
            return
        if item.value.get("status") == "in_progress":
            item.value["status"] = status
        self._done(item)

    def _whole(self, value: dict[str, Any]) -> None:
        self._done(self._add(value))

    # Parts

    def _open(self, event: PartStart) -> None:
        part = event.part
        path = f"$.content[{event.index}]"
        opened = _Open(part, path)
        self._parts[event.index] = opened
        match part:
            case Text():
                if part.text:
                    self._first_delta(opened, Delta(event.index, part.text, part.logprobs))
                    opened.part = replace(part, text="", logprobs=())
            case Reasoning():
                self._release()
                value = {"type": "reasoning", "id": "", "summary": []}
                opened.item = _Item(-1, value)
            case ToolCall():
                self._release()
                self._open_call(opened, part)
            case Media() | Foreign():
                self._release()
            case ToolResult():
                self.losses.append(Loss(path, "content.position", "dropped", "a tool result in an answer"))

    def _first_delta(self, part: _Open, event: Delta) -> None:
        """A delta that opens its part, or that brings log probabilities."""
        if not event.text and not event.logprobs:
            return
        if not part.before:
            match part.part:
                case Text():
                    self._open_text(part, part.part)
                case Reasoning():
                    self._open_reasoning(part, part.part, None)
                case _:
                    return
        part.texts.append(event.text)
        part.logprobs += event.logprobs
        tail = part.tail
        if event.logprobs and tail is _TEXT_TAIL:
            tail = b',"logprobs":%b}\n\n' % encode(render_logprobs(event.logprobs))
        elif event.logprobs:
            part.logprobs.clear()
        number = self._sequence
        self._sequence += 1
        self._out.append(b"%b%d%b%b%b" % (part.before, number, part.after, encode(event.text), tail))

    def _frame(self, part: _Open, kind: str, place: dict[str, Any], tail: bytes = _TAIL) -> None:
        name = kind.encode()
        part.before = b'event: %b\ndata: {"type":"%b","sequence_number":' % (name, name)
        part.after = b',%b,"delta":' % encode(place)[1:-1]
        part.tail = tail

    def _place(self, part: _Open, key: str = "content_index") -> dict[str, Any]:
        assert part.item is not None
        place: dict[str, Any] = {"item_id": part.item.value["id"], "output_index": part.item.position}
        if key:
            place[key] = part.number
        return place

    def _open_text(self, part: _Open, text: Text) -> None:
        newest = self._newest
        if newest is not None and newest.text is not None and same_message(newest.text, text):
            self._newest = None
            part.item = newest
        else:
            self._release()
            native = own_form(text.extra, NAME).get("item", {}).get("id")
            identifier = self._ids.take("message", len(self._items), native)
            part.item = self._add(open_message(text, identifier))
        item = part.item
        item.text = text
        part.number = len(item.value["content"])
        if text.refusal:
            blank: dict[str, Any] = {"type": "refusal", "refusal": ""}
            kind, tail = "response.refusal.delta", _TAIL
        else:
            blank = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            kind, tail = "response.output_text.delta", _TEXT_TAIL
        item.value["content"] = [*item.value["content"], blank]
        self._emit("response.content_part.added", {**self._place(part), "part": blank})
        self._frame(part, kind, self._place(part), tail)

    def _open_reasoning(self, part: _Open, reasoning: Reasoning, end: PartEnd | None) -> None:
        """Announce the item; its summary part too, unless it ends without showing anything."""
        signature = (end.signature if end is not None else None) or reasoning.signature
        native = reasoning_id(reasoning, signature)
        identifier = self._ids.take("reasoning", len(self._items), native)
        part.item = self._add({"type": "reasoning", "id": identifier, "summary": []})
        if end is not None:
            return
        if own_form(reasoning.extra, NAME).get("source") == "content":
            blank = {"type": "reasoning_text", "text": ""}
            self._emit("response.content_part.added", {**self._place(part), "part": blank})
            self._frame(part, "response.reasoning_text.delta", self._place(part))
            return
        place = self._place(part, "summary_index")
        blank = {"type": "summary_text", "text": ""}
        self._emit("response.reasoning_summary_part.added", {**place, "part": blank})
        self._frame(part, "response.reasoning_summary_text.delta", place)

    def _open_call(self, part: _Open, call: ToolCall) -> None:
        if call.signature is not None:
            identifier = self._ids.take("reasoning", len(self._items))
            self._whole(carrier(call, call.signature, identifier, self._context))
        losses_of_extra(call.extra, NAME, part.path, self.losses)
        if call.cache is not None:
            self.losses.append(
                Loss(f"{part.path}.cache", "cache_marker", "dropped", "answers take no breakpoint")
            )
        kind = "custom_tool_call" if call.kind == "custom" else "function_call"
        native = own_form(call.extra, NAME).get("id")
        identifier = self._ids.take(kind, len(self._items), native)
        value = render_call(replace(call, arguments="", extra=Extra(NAME)), identifier, "in_progress")
        part.item = self._add(value)
        delta = "custom_tool_call_input" if call.kind == "custom" else "function_call_arguments"
        self._frame(part, f"response.{delta}.delta", self._place(part, ""))
        if call.arguments:
            self._first_delta(part, Delta(-1, call.arguments))
            part.part = replace(call, arguments="")

    # Closing parts

    def _close(self, part: _Open, end: PartEnd) -> None:
        whole = finish_part(part.part, "".join(part.texts), tuple(part.logprobs), end)
        match whole:
            case Text():
                self._close_text(part, whole, late=end.signature is not None)
            case ToolCall():
                self._close_call(part, whole, end)
            case Reasoning():
                self._close_reasoning(part, whole, end)
            case Media():
                self._close_media(part, whole)
            case Foreign():
                self._close_foreign(part, whole)
                return
            case ToolResult():
                return
        self._content.append(whole)

    def _close_text(self, part: _Open, text: Text, late: bool) -> None:
        if part.item is None:
            losses_of_extra(text.extra, NAME, part.path, self.losses)
            if text.signature is None:
                return
            self._open_text(part, text)
        item = part.item
        assert item is not None
        place = self._place(part)
        value = render_output_text(text, part.path, self.losses)
        if text.refusal:
            self._emit("response.refusal.done", {**place, "refusal": text.text})
        else:
            notes = value.setdefault("annotations", [])
            value.setdefault("logprobs", [])
            for number, note in enumerate(notes):
                self._emit(
                    "response.output_text.annotation.added",
                    {**place, "annotation_index": number, "annotation": note},
                )
            self._emit(
                "response.output_text.done", {**place, "text": text.text, "logprobs": value["logprobs"]}
            )
        self._emit("response.content_part.done", {**place, "part": value})
        item.value["content"][part.number] = value
        item.value.update(message_fields(text))
        if self._newest is not item:
            self._release()
        self._newest = item
        if text.signature is not None:
            self._release()
            identifier = self._ids.take("reasoning", len(self._items))
            self._whole(carrier(text, text.signature, identifier, self._context))

    def _close_call(self, part: _Open, call: ToolCall, end: PartEnd) -> None:
        item = part.item
        assert item is not None
        if not call.arguments and call.kind == "function":
            call = replace(call, arguments=no_arguments(call))
            self._first_delta(part, Delta(-1, call.arguments))
        if end.signature is not None:
            self.losses.append(
                Loss(f"{part.path}.signature", "reasoning.signature", "dropped", "it came behind its call")
            )
        place = self._place(part, "")
        value = render_call(call, item.value["id"], "in_progress")
        if call.kind == "custom":
            value.setdefault("input", call.arguments)
            self._emit("response.custom_tool_call_input.done", {**place, "input": value["input"]})
        else:
            value["arguments"] = call.arguments
            done = {**place, "name": call.name, "arguments": value["arguments"]}
            self._emit("response.function_call_arguments.done", done)
        value.update(id=item.value["id"], call_id=item.value["call_id"], status="in_progress")
        item.value = value
        self._release()
        self._newest = item

    def _close_reasoning(self, part: _Open, reasoning: Reasoning, end: PartEnd) -> None:
        losses_of_extra(reasoning.extra, NAME, part.path, self.losses)
        if not part.before:
            self._release()
            self._open_reasoning(part, reasoning, end)
        item = part.item
        assert item is not None
        shown = part.before != b""
        source: Literal["summary", "content"] = "content" if b"reasoning_text" in part.before else "summary"
        if shown and source == "summary":
            entry: dict[str, Any] = {"type": "summary_text", "text": reasoning.text}
            place = self._place(part, "summary_index")
            self._emit("response.reasoning_summary_text.done", {**place, "text": reasoning.text})
            self._emit("response.reasoning_summary_part.done", {**place, "part": entry})
        elif shown:
            entry = {"type": "reasoning_text", "text": reasoning.text}
            place = self._place(part)
            self._emit("response.reasoning_text.done", {**place, "text": reasoning.text})
            self._emit("response.content_part.done", {**place, "part": entry})
        signature = reasoning.signature
        if signature is not None and signature.id and signature.origin.dialect == NAME:
            declare_id(signature.id, item.value["id"], part.path, self.losses)
        encrypted = encrypted_content(reasoning, signature, self._context)
        value = render_reasoning(_as_streamed(reasoning, source), item.value["id"], encrypted)
        value.setdefault("summary", [])
        item.value = value
        self._done(item)

    def _close_media(self, part: _Open, media: Media) -> None:
        value = render_output_media(media, self._ids, len(self._items), part.path, self.losses)
        if value is not None:
            self._close_whole(value)
        if media.signature is not None:
            identifier = self._ids.take("reasoning", len(self._items))
            self._whole(carrier(media, media.signature, identifier, self._context))

    def _close_foreign(self, part: _Open, foreign: Foreign) -> None:
        value = render_foreign(foreign, part.path, self.losses)
        if value is not None:
            self._close_whole(value)

    def _close_whole(self, value: dict[str, Any]) -> None:
        """An item that is known at once; some were announced by an event that was passed on."""
        self._release()
        identifier = value.get("id")
        item = self._announced.pop(identifier, None) if type(identifier) is str else None
        if item is None:
            self._whole(value)
        else:
            item.value = value
            self._done(item)


def _as_streamed(reasoning: Reasoning, source: str) -> Reasoning:
    """All of a stream's reasoning went out as one part, so the item holds one."""
    extra = reasoning.extra
    if extra is None or extra.dialect != NAME:
        return reasoning
    form = {key: value for key, value in extra.form.items() if key not in ("shown", "other", "without")}
    fields = {
        key: value
        for key, value in extra.fields.items()
        if key not in ("summary", "content", "encrypted_content")
    }
    return replace(reasoning, extra=Extra(NAME, fields, {**form, "source": source}))
