"""Parses streamed output items: converts their deltas and done events to events of the IR.

A done item is authoritative: whatever the deltas did not contain is emitted when it arrives. Which item an
event is about is determined by `open_items`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.openai_responses.client_calls import CLIENT_CALLS, is_client_call
from wireglot_core.dialects.openai_responses.items import Carried, light_form, phase_of
from wireglot_core.dialects.openai_responses.open_items import OpenItem, OpenItems, OpenPart
from wireglot_core.dialects.openai_responses.output import (
    SEAM,
    joined,
    pieces,
    spoken,
)
from wireglot_core.dialects.openai_responses.parts import parse_citation, parse_logprobs
from wireglot_core.dialects.openai_responses.response import parse_output_item
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Extra, Foreign, Media, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.stream import Delta, Event, ForeignEvent, PartEnd, PartStart

_CALLS = frozenset({"function_call", "custom_tool_call"})
_STREAMED = _CALLS | {"message", "reasoning"}


class ItemReader:
    """Adds events to `out`, which its owner sets, like `response` and `model`."""

    def __init__(self, context: Context) -> None:
        self.out: list[Event] = []
        self.response = ""
        self.model = ""
        self.calls = False
        self.refused = False
        self._context = context
        self._items = OpenItems()
        self._parts: dict[int, OpenPart] = {}  # by their index
        self._count = 0
        self._held: PartEnd | None = None  # end of a part whose signature may still follow
        self._waiting: Signature | None = None  # a signature that precedes its call
        self._hot: OpenPart | None = None  # the newest text, and where its deltas belong
        self._hot_place: tuple[int, int] = (-1, -1)

    def text_delta(self, event: dict[str, Any]) -> None:
        hot = self._hot
        delta = event.get("delta")
        if (
            hot is not None
            and hot.index >= 0
            and type(delta) is str
            and (event.get("output_index"), event.get("content_index")) == self._hot_place
        ):
            logprobs = event.get("logprobs")
            if delta and not logprobs:
                hot.sent.append(delta)
                self.out.append(Delta(hot.index, delta))
                return
        item = self._item_for(event, "message")
        if item.kind != "message" or item.done or type(delta) is not str or not delta:
            return
        refusal = event.get("type") == "response.refusal.delta"
        part = self._open_text(item, _number(event, "content_index"), refusal)
        if part.index >= 0:
            part.sent.append(delta)
            self.out.append(Delta(part.index, delta, parse_logprobs(event.get("logprobs"))))

    def sent_of(self, index: int) -> list[str] | None:
        """The text sent so far of the part with this index; None if it is not open."""
        part = self._parts.get(index)
        return part.sent if part is not None else None

    # Items

    def item_added(self, event: dict[str, Any]) -> None:
        value = event.get("item")
        if type(value) is not dict:
            return
        item = self._items.add(event, value)
        if item is None:
            return
        if item.position != event.get("output_index"):
            self._hot = None  # this place is used for another text, too: only ids distinguish them
        if item.kind in _CALLS:
            self._open_call(item, value)
        elif item.kind in CLIENT_CALLS and is_client_call(value):
            return  # its arguments are known when it is done
        elif item.kind not in _STREAMED:
            self.out.append(ForeignEvent(NAME, "response.output_item.added", event))

    def item_done(self, event: dict[str, Any]) -> None:
        value = event.get("item")
        if type(value) is dict:
            self._finish_item(self._items.finished(event, value), value)

    def final_output(self, output: list[Any]) -> None:
        """Handles items that the stream announced and did not finish, or never announced."""
        for item, value in self._items.pair(output):
            self._finish_item(item, value)

    def end(self) -> None:
        """Closes items without an end event: what has arrived of them is kept."""
        for item in self._items:
            if item.done:
                continue
            item.done = True
            self.calls = self.calls or (item.kind in _CALLS and bool(item.parts))
            for part in item.parts.values():
                if item.kind == "message":
                    self._end_text(part, part.final)
                else:
                    self.out.append(PartEnd(part.index))
        self.release()

    def release(self) -> None:
        if self._held is not None:
            self.out.append(self._held)
            self._held = None

    def _item_for(self, event: dict[str, Any], kind: str) -> OpenItem:
        """The item an event is about, opened if it was never announced."""
        return self._items.about(event) or self._items.announce(event, kind)

    def _finish_item(self, item: OpenItem, value: dict[str, Any]) -> None:
        if item.done:
            return
        item.done = True
        self._items.name(item, value)
        if value.get("type") != item.kind and item.parts:
            value = {**value, "type": item.kind}
        finals = self._parse(value, item.position, item.source)
        if item.kind == "message":
            self._finish_message(item, finals)
            return
        for final in finals:
            self._finish_part(item, final)

    def _finish_part(self, item: OpenItem, final: Part | Carried) -> None:
        part = item.parts.get(0)
        match final:
            case Carried() if part is None:
                self._carry(final)
            case Reasoning():
                if part is None:
                    signature = final.signature if final.redacted else None
                    part = self._open(Reasoning("", signature, final.redacted, final.extra))
                self._complete_reasoning(part, final)
                self.out.append(PartEnd(part.index, final.signature, (), final.extra))
            case ToolCall():
                self.calls = True
                if part is None:
                    part = self._open(self._signed(replace(final, arguments="")))
                self._complete(part, final.arguments)
                self.out.append(PartEnd(part.index, None, (), final.extra))
            case Media() | Foreign() if part is None:
                self._whole(final)
            case _:
                if part is not None:
                    self.out.append(PartEnd(part.index))

    def _parse(self, value: dict[str, Any], position: int, source: str = "") -> list[Part | Carried]:
        fields = Fields(value, f"$.output[{position}]", UpstreamFault)
        origin = self._context.origin(NAME, self.model)
        return parse_output_item(
            fields, position, self.response, origin, context=self._context, source=source
        )

    # Message items

    def part_added(self, event: dict[str, Any]) -> None:
        part = event.get("part")
        kind = part.get("type") if type(part) is dict else None
        if kind in ("output_text", "refusal", "text"):
            item = self._item_for(event, "message")
            if item.kind == "message" and not item.done:
                self._open_text(item, _number(event, "content_index"), kind == "refusal")

    def text_done(self, event: dict[str, Any]) -> None:
        item = self._item_for(event, "message")
        refusal = event.get("type") == "response.refusal.done"
        text = event.get("refusal" if refusal else "text")
        if item.kind == "message" and not item.done and type(text) is str and text:
            self._complete(self._open_text(item, _number(event, "content_index"), refusal), text)

    def part_done(self, event: dict[str, Any]) -> None:
        value = event.get("part")
        item = self._item_for(event, "message")
        if type(value) is not dict or item.kind != "message" or item.done:
            return
        message = {**item.read_again, "type": "message", "role": "assistant", "content": [value]}
        final = self._parse(message, item.position)[0]
        if isinstance(final, Text):
            text = self._open_text(item, _number(event, "content_index"), final.refusal)
            text.final = final
            item.ending.append(text)

    def annotation(self, event: dict[str, Any]) -> None:
        value = event.get("annotation")
        part = self._item_for(event, "message").parts.get(_number(event, "content_index"))
        if part is not None and type(value) is dict:
            part.citations.append(parse_citation(Fields(value, "$.annotation", UpstreamFault)))

    def _open_text(self, item: OpenItem, number: int, refusal: bool) -> OpenPart:
        part = item.parts.get(number)
        if part is not None:
            return part
        for other in item.ending:
            self._end_text(other, other.final)
        item.ending.clear()
        self.refused = self.refused or refusal
        form = {"item": {"number": item.position, **light_form(item.value)}}
        phase = None if item.parts else phase_of(item.value, self._context.origin(NAME, self.model))
        text = Text("", refusal=refusal, signature=phase, extra=Extra(NAME, form=form))
        late = not item.parts and phase is None
        part = self._begin(item, number, text)
        part.late_phase = late
        if not refusal:
            self._hot, self._hot_place = part, (item.position, number)
        return part

    def _finish_message(self, item: OpenItem, finals: list[Part | Carried]) -> None:
        for number, final in enumerate(finals):
            if isinstance(final, Foreign | Media):
                self._whole(final)
            elif isinstance(final, Text) and not (final.extra is not None and "empty" in final.extra.form):
                part = item.streamed(number, final)
                if part is None and final.text:
                    part = self._open_text(item, number, final.refusal)
                if part is not None:
                    self._end_text(part, final)
        for part in item.parts.values():
            self._end_text(part, part.final)

    def _end_text(self, part: OpenPart, final: Text | None) -> None:
        if part.index < 0:
            return
        citations, phase, extra = tuple(part.citations), None, None
        if final is not None:
            self._complete(part, final.text, final)
            citations, extra = final.citations or citations, final.extra
            phase = final.signature if part.late_phase else None
        self.release()
        self._held = PartEnd(part.index, phase, citations, extra)
        self._parts.pop(part.index, None)
        part.index = -1

    # Reasoning items

    def summary_delta(self, event: dict[str, Any]) -> None:
        self._reasoning_delta(event, "summary", _number(event, "summary_index"))

    def content_delta(self, event: dict[str, Any]) -> None:
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
            form = {"source": source, **light_form(item.value)}
            part = self._begin(item, 0, Reasoning(extra=Extra(NAME, form=form)))
        if section > item.section:
            if part.sent:
                self._say(part, SEAM)
            item.section = section
        for piece in spoken(delta):
            self._say(part, piece)

    def _complete_reasoning(self, part: OpenPart, final: Reasoning) -> None:
        shown = own_form(final.extra, NAME).get("shown")
        if final.text == joined(shown):
            for piece in pieces(shown, part.said()):
                self._say(part, piece)
        else:
            self._complete(part, final.text)

    def _say(self, part: OpenPart, text: str) -> None:
        part.sent.append(text)
        self.out.append(Delta(part.index, text))

    def _carry(self, carried: Carried) -> None:
        if carried.holder == "call":
            self._waiting = carried.signature
        elif self._held is not None:
            self._held = replace(self._held, signature=carried.signature)

    # Calls

    def call_delta(self, event: dict[str, Any]) -> None:
        item = self._items.about(event)
        delta = event.get("delta")
        if item is None or item.kind not in _CALLS or item.done or type(delta) is not str or not delta:
            return
        part = item.parts.get(0)
        if part is not None:
            self._say(part, delta)

    def command(self, event: dict[str, Any]) -> None:
        """A piece of a shell's command: the done item of a client's shell repeats it."""
        item = self._items.about(event)
        if item is None or not is_client_call(item.value):
            self.out.append(ForeignEvent(NAME, str(event.get("type")), event))

    def call_done(self, event: dict[str, Any]) -> None:
        item = self._items.about(event)
        text = event.get("arguments", event.get("input"))
        if item is not None and item.kind in _CALLS and not item.done and type(text) is str:
            part = item.parts.get(0)
            if part is not None:
                self._complete(part, text)

    def _open_call(self, item: OpenItem, value: dict[str, Any]) -> None:
        """Opens a call only with its final id and name; a call that lacks them waits for its done item."""
        call_id, name, namespace = value.get("call_id"), value.get("name"), value.get("namespace")
        if type(call_id) is not str or type(name) is not str or not call_id or not name:
            return
        call = ToolCall(
            call_id,
            name,
            "",
            "custom" if item.kind == "custom_tool_call" else "function",
            namespace if type(namespace) is str else "",
            extra=Extra(NAME, form=light_form(value)),
        )
        self._begin(item, 0, self._signed(call))

    def _signed(self, call: ToolCall) -> ToolCall:
        signature, self._waiting = self._waiting, None
        return call if signature is None else replace(call, signature=signature)

    # Parts

    def _begin(self, item: OpenItem, number: int, part: Part) -> OpenPart:
        opened = item.parts[number] = self._open(part)
        self._parts[opened.index] = opened
        return opened

    def _open(self, part: Part) -> OpenPart:
        self.release()
        index = self._count
        self._count += 1
        self.out.append(PartStart(index, part))
        return OpenPart(index)

    def _whole(self, part: Part) -> None:
        end = PartEnd(self._open(part).index)
        if type(part) is Media:
            self._held = end
        else:
            self.out.append(end)

    def _complete(self, part: OpenPart, text: str, final: Text | None = None) -> None:
        """Emit the text that the deltas did not contain. Text that contradicts them cannot be taken back."""
        if part.index < 0:
            return
        sent = part.said()
        if len(text) <= len(sent) or not text.startswith(sent):
            return
        logprobs = final.logprobs if final is not None and not sent else ()
        part.sent[:] = [text]
        self.out.append(Delta(part.index, text[len(sent) :], logprobs))


def _number(event: dict[str, Any], key: str) -> int:
    value = event.get(key)
    return value if type(value) is int else 0
