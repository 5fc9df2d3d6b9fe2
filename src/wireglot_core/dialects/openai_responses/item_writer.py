"""Writes output items: each is announced, streamed and closed under one id and one index.

Items may be open side by side (parallel calls). The closing event of the newest one is held until it is known
what follows: neighbouring texts share one message item, and an item the model was cut off in is `incomplete`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import CUT_CALL
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_responses.client_calls import (
    begun,
    is_client_run,
    item_of_client_tool,
    reported,
)
from wireglot_core.dialects.openai_responses.lost_fields import LOST, LOST_IN_ANSWERS, NO_RESULTS_IN_ANSWERS
from wireglot_core.dialects.openai_responses.output import (
    SEAM,
    ItemIds,
    carrier,
    declare_id,
    encrypted_content,
    joined,
    message_fields,
    message_form,
    phase_said,
    pieces,
    reasoning_id,
    same_message,
    texts_of,
)
from wireglot_core.dialects.openai_responses.render_items import (
    no_arguments,
    render_call,
    render_foreign,
    render_reasoning,
)
from wireglot_core.dialects.openai_responses.response import (
    open_message,
    render_output_media,
    render_output_text,
)
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_shared import render_logprobs
from wireglot_core.ir.content import (
    Extra,
    Foreign,
    Media,
    Part,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.request import Tool
from wireglot_core.ir.stream import Delta, ForeignEvent, GrowingText, PartEnd, PartStart, finish_part
from wireglot_core.wire.json import encode

TAIL = b"}\n\n"
_TEXT_TAIL = b',"logprobs":[]}\n\n'


class Item:
    """An open output item; `value` is what the final response will contain."""

    __slots__ = ("done", "position", "text", "value")

    def __init__(self, position: int, value: dict[str, Any]) -> None:
        self.position = position
        self.value = value
        self.done = False
        self.text: Text | None = None  # message items: the last text in them


class OpenPart:
    """An open part. `before` and `after` surround a delta's sequence number; empty until it opens."""

    __slots__ = (
        "after", "before", "item", "logprobs", "number", "part", "path", "sections", "source", "tail",
        "text",
    )  # fmt: skip

    def __init__(self, part: Part, path: str) -> None:
        self.part = part
        self.path = path
        self.text = GrowingText()
        self.logprobs: list[Any] = []
        self.item: Item | None = None
        self.number = 0
        self.before = b""
        self.after = b""
        self.tail = TAIL
        self.source = ""  # reasoning: the list of the item that shows it
        self.sections: list[str] = []  # reasoning: the complete entries of that list


# The list of the item -> type of its entries, key of their number, names of the events about an entry.
_SPOKEN = {
    "summary": ("summary_text", "summary_index", "reasoning_summary_part", "reasoning_summary_text"),
    "content": ("reasoning_text", "content_index", "content_part", "reasoning_text"),
}


class ItemWriter:
    """Collects bytes in `out`. `items`: the output so far; `parts`: the open ones, `content`: the complete
    ones."""

    def __init__(self, context: Context, own_tools: Mapping[str, Tool]) -> None:
        """`own_tools`: the client's tools whose calls have their own item types, by name."""
        self.losses: list[Loss] = []
        self.out: list[bytes] = []
        self.sequence = context.first_event
        self.items: list[Item] = []
        self.ids = ItemIds("", context)
        self.hides_state = False
        """Whether reasoning items are shown without their state."""
        self._context = context
        self._newest: Item | None = None  # complete, but its closing event is still held
        self._own_tools = own_tools
        self.parts: dict[int, OpenPart] = {}
        self.content: list[Part] = []
        self._announced: dict[str, Item] = {}  # hosted items whose start was passed on

    def pass_on(self, event: ForeignEvent) -> None:
        """Writes an event of this dialect that does not belong to the answer."""
        payload = {key: value for key, value in event.value.items() if key not in ("type", "sequence_number")}
        value = payload.get("item")
        if (
            event.type == "response.output_item.added"
            and type(value) is dict
            and type(value.get("id")) is str
        ):
            self.release()  # a message before it may still be open
            item = self._add(dict(value), announce=False)
            self._announced[value["id"]] = item
            self.emit(event.type, {**payload, "output_index": item.position})
            return
        item_id = payload.get("item_id")
        if type(item_id) is str and item_id in self._announced:
            payload["output_index"] = self._announced[item_id].position
        self.emit(event.type, payload)

    # Parts

    def open(self, event: PartStart) -> None:
        part = event.part
        path = f"$.content[{event.index}]"
        opened = OpenPart(part, path)
        self.parts[event.index] = opened
        match part:
            case Text():
                if part.text:
                    self.first_delta(opened, Delta(event.index, part.text, part.logprobs))
                    opened.part = replace(part, text="", logprobs=())
            case ToolCall():
                self.release()
                if is_client_run(part, self._own_tools):
                    opened.text.add(part.arguments)  # such an item is announced when it is complete
                    opened.part = replace(part, arguments="")
                else:
                    self._open_call(opened, part)
            case Reasoning():
                self.release()
                if part.text and not part.redacted:
                    self.first_delta(opened, Delta(event.index, part.text))
                    opened.part = replace(part, text="")
            case Media() | Foreign():
                self.release()
            case ToolResult():
                self.losses.append(NO_RESULTS_IN_ANSWERS.at(path))

    def first_delta(self, part: OpenPart, event: Delta) -> None:
        """Writes a delta that opens its part, or that has log probabilities."""
        if not event.text and not event.logprobs:
            return
        if not part.before:
            match part.part:
                case Text():
                    self._open_text(part, part.part)
                case Reasoning():
                    self._open_reasoning(part, part.part, None)
                    shown = own_form(part.part.extra, NAME).get("shown")
                    if event.text == joined(shown):  # an answer that came whole: its parts one by one
                        for piece in pieces(shown):
                            if piece != SEAM or not self.next_section(part):
                                self._say(part, piece)
                        return
                case ToolCall():
                    part.text.add(event.text)
                    return
                case _:
                    return
        self._say(part, event.text, event.logprobs)

    def _say(self, part: OpenPart, text: str, logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        part.text.add(text)
        part.logprobs += logprobs
        tail = part.tail
        if logprobs and tail is _TEXT_TAIL:
            tail = b',"logprobs":%b}\n\n' % encode(render_logprobs(logprobs))
        elif logprobs and type(part.part) is not Text:
            part.logprobs.clear()  # a refusal has none either; reported at its end
        number = self.sequence
        self.sequence += 1
        self.out.append(b"%b%d%b%b%b" % (part.before, number, part.after, encode(text), tail))

    def _open_text(self, part: OpenPart, text: Text) -> None:
        newest = self._newest
        if newest is not None and newest.text is not None and same_message(newest.text, text):
            self._newest = None
            part.item = newest
        else:
            self.release()
            native = message_form(text).get("id")
            identifier = self.ids.take("message", len(self.items), native)
            part.item = self._add(open_message(text, identifier))
        item = part.item
        item.text = text
        part.number = len(item.value["content"])
        if text.refusal:
            blank: dict[str, Any] = {"type": "refusal", "refusal": ""}
            kind, tail = "response.refusal.delta", TAIL
        else:
            blank = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            kind, tail = "response.output_text.delta", _TEXT_TAIL
        item.value["content"] = [*item.value["content"], blank]
        self.emit("response.content_part.added", {**self._place(part), "part": blank})
        self._frame(part, kind, self._place(part), tail)

    def _open_call(self, part: OpenPart, call: ToolCall) -> None:
        if call.signature is not None:
            self._carry(call, call.signature)
        LOST_IN_ANSWERS.of(call, part.path, self.losses)
        kind = "custom_tool_call" if call.kind == "custom" else "function_call"
        native = own_form(call.extra, NAME).get("id")
        identifier = self.ids.take(kind, len(self.items), native)
        value = render_call(replace(call, arguments="", extra=Extra(NAME)), identifier, "in_progress")
        value["input" if call.kind == "custom" else "arguments"] = ""  # clients append to it
        part.item = self._add(value)
        delta = "custom_tool_call_input" if call.kind == "custom" else "function_call_arguments"
        self._frame(part, f"response.{delta}.delta", self._place(part, ""))
        if call.arguments:
            self.first_delta(part, Delta(-1, call.arguments))
            part.part = replace(call, arguments="")

    def _carry(self, part: ToolCall | Text | Media, signature: Signature) -> None:
        """Writes an item for the state of a part that has no field for it."""
        identifier = self.ids.take("reasoning", len(self.items))
        self._whole(carrier(part, signature, identifier, self._context))

    def cut(self) -> None:
        """Ends an answer that breaks off: the open parts are written to their items as far as they came."""
        self.release("incomplete")
        for part in self.parts.values():
            item, text = part.item, str(part.text)
            if item is None:
                continue
            match part.part:
                case Text():
                    content = list(item.value["content"])
                    key = "refusal" if part.part.refusal else "text"
                    content[part.number] = {**content[part.number], key: text}
                    item.value["content"] = content
                case ToolCall():
                    item.value["input" if part.part.kind == "custom" else "arguments"] = text
                case Reasoning():
                    item.value.update(self._reasoning_so_far(part))
            if item.value.get("status") == "in_progress":
                item.value["status"] = "incomplete"

    # Closing parts

    def close(self, end: PartEnd) -> None:
        part = self.parts.pop(end.index)
        if end.cut:
            self._leave_out(part)
            return
        whole = finish_part(part.part, str(part.text), tuple(part.logprobs), end)
        match whole:
            case Text():
                self._close_text(part, whole)
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
        self.content.append(whole)

    def _leave_out(self, part: OpenPart) -> None:
        """Ends an incomplete call like the vendor: the item is done and incomplete, with the partial
        arguments."""
        self.losses.append(CUT_CALL.at(part.path))
        item = part.item
        if item is not None:
            self.release()
            item.value.update(arguments=str(part.text), status="incomplete")
            self._done(item)

    def _close_text(self, part: OpenPart, text: Text) -> None:
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
            self.emit("response.refusal.done", {**place, "refusal": text.text})
        else:
            notes = value.setdefault("annotations", [])
            value.setdefault("logprobs", [])
            for number, note in enumerate(notes):
                self.emit(
                    "response.output_text.annotation.added",
                    {**place, "annotation_index": number, "annotation": note},
                )
            self.emit(
                "response.output_text.done", {**place, "text": text.text, "logprobs": value["logprobs"]}
            )
        self.emit("response.content_part.done", {**place, "part": value})
        item.value["content"][part.number] = value
        item.value.update(message_fields(text))
        if self._newest is not item:
            self.release()
        self._newest = item
        if text.signature is not None and phase_said(text) is None:
            self.release()
            self._carry(text, text.signature)

    def _close_call(self, part: OpenPart, call: ToolCall, end: PartEnd) -> None:
        item = part.item
        if item is None:
            if self._close_client_call(part, call):
                return
            self._open_call(part, replace(call, arguments=""))
            self.first_delta(part, Delta(-1, call.arguments))
            item = part.item
            assert item is not None
        elif end.extra is not None and part.part != replace(call, arguments=""):
            losses_of_extra(end.extra, NAME, part.path, self.losses)
        if not call.arguments and call.kind == "function":
            call = replace(call, arguments=no_arguments(call))
            self.first_delta(part, Delta(-1, call.arguments))
        if end.signature is not None:
            self.losses.append(
                Loss(f"{part.path}.signature", "reasoning.signature", "dropped", "it came after its call")
            )
        place = self._place(part, "")
        value = render_call(call, item.value["id"], "in_progress")
        if call.kind == "custom":
            value.setdefault("input", call.arguments)
            self.emit("response.custom_tool_call_input.done", {**place, "input": value["input"]})
        else:
            value["arguments"] = call.arguments
            done = {**place, "name": call.name, "arguments": value["arguments"]}
            self.emit("response.function_call_arguments.done", done)
        value.update(id=item.value["id"], call_id=item.value["call_id"], status="in_progress")
        item.value = value
        self.release()
        self._newest = item

    def _close_client_call(self, part: OpenPart, call: ToolCall) -> bool:
        """Writes a complete call of a tool that the client runs. False: it lacks required arguments."""
        position = len(self.items) + (call.signature is not None)  # its state goes before it
        value = item_of_client_tool(call, self.ids, position, self._own_tools)
        if value is None:
            return False
        losses_of_extra(call.extra, NAME, part.path, self.losses)
        self.release()
        if call.signature is not None:
            self._carry(call, call.signature)
        item = self._add(begun(value))
        for kind, payload in reported(value, item.position):
            self.emit(kind, payload)
        item.value = value
        self._done(item)
        return True

    def _close_media(self, part: OpenPart, media: Media) -> None:
        value = render_output_media(media, self.ids, len(self.items), part.path, self.losses)
        if value is not None:
            self._close_whole(value)
        if media.signature is not None:
            self._carry(media, media.signature)

    def _close_foreign(self, part: OpenPart, foreign: Foreign) -> None:
        value = render_foreign(foreign, part.path, self.losses)
        if value is not None:
            self._close_whole(value)

    def _close_whole(self, value: dict[str, Any]) -> None:
        """Writes an item that is complete at once; some were announced by an event that was passed on."""
        self.release()
        identifier = value.get("id")
        item = self._announced.pop(identifier, None) if type(identifier) is str else None
        if item is None:
            self._whole(value)
        else:
            item.value = value
            self._done(item)

    # Reasoning items, each of their parts in a separate frame

    def next_section(self, part: OpenPart) -> bool:
        """Handles a delta that may be the boundary of two parts. Only this dialect's reader distinguishes
        them from text."""
        if not part.source or not own_form(getattr(part.part, "extra", None), NAME):
            return False
        self._close_section(part)
        part.text.add(SEAM)
        part.number += 1
        self._open_section(part)
        return True

    def _open_reasoning(self, part: OpenPart, reasoning: Reasoning, end: PartEnd | None) -> None:
        """Announces the item; its first part too, unless it ends without showing anything."""
        signature = (end.signature if end is not None else None) or reasoning.signature
        native = reasoning_id(reasoning, signature)
        identifier = self.ids.take("reasoning", len(self.items), native)
        part.item = self._add({"type": "reasoning", "id": identifier, "summary": []})
        if end is None:
            part.source = (
                "content" if own_form(reasoning.extra, NAME).get("source") == "content" else "summary"
            )
            self._open_section(part)

    def _open_section(self, part: OpenPart) -> None:
        kind, key, entry, text = _SPOKEN[part.source]
        place = self._place(part, key)
        self.emit(f"response.{entry}.added", {**place, "part": {"type": kind, "text": ""}})
        self._frame(part, f"response.{text}.delta", place)

    def _close_section(self, part: OpenPart) -> None:
        kind, key, entry, text = _SPOKEN[part.source]
        place, said = self._place(part, key), _section(part)
        part.sections.append(said)
        self.emit(f"response.{text}.done", {**place, "text": said})
        self.emit(f"response.{entry}.done", {**place, "part": {"type": kind, "text": said}})

    def _close_reasoning(self, part: OpenPart, reasoning: Reasoning, end: PartEnd) -> None:
        LOST.of(reasoning, part.path, self.losses)
        if not part.before:
            self.release()
            self._open_reasoning(part, reasoning, end)
        item = part.item
        assert item is not None
        if part.source:
            self._close_section(part)
        signature = reasoning.signature
        if signature is not None and signature.id and signature.origin.dialect == NAME:
            declare_id(signature.id, item.value["id"], part.path, self.losses)
        encrypted = encrypted_content(reasoning, signature, self._context, hidden=self.hides_state)
        value = render_reasoning(_as_streamed(reasoning, part), item.value["id"], encrypted)
        value.setdefault("summary", [])
        item.value = value
        self._done(item)

    def _reasoning_so_far(self, part: OpenPart) -> dict[str, Any]:
        return {part.source: _entries(part, [*part.sections, _section(part)])}

    # Common to all items: numbers, ids, announcement and end

    def emit(self, kind: str, payload: dict[str, Any]) -> None:
        # An event that is passed on keeps its provider's name, whatever it is.
        name = kind if kind.isprintable() else " ".join(kind.split())
        data = encode({"type": kind, "sequence_number": self.sequence, **payload})
        self.out.append(b"event: %b\ndata: %b\n\n" % (name.encode(), data))
        self.sequence += 1

    def release(self, status: str = "completed") -> None:
        """Close the newest item: nothing can be added to it any more."""
        item, self._newest = self._newest, None
        if item is None:
            return
        if item.value.get("status") == "in_progress":
            item.value["status"] = status
        self._done(item)

    def _add(self, value: dict[str, Any], announce: bool = True) -> Item:
        item = Item(len(self.items), value)
        self.items.append(item)
        if announce:
            self.emit("response.output_item.added", {"output_index": item.position, "item": value})
        return item

    def _done(self, item: Item) -> None:
        item.done = True
        self.emit("response.output_item.done", {"output_index": item.position, "item": item.value})

    def _whole(self, value: dict[str, Any]) -> None:
        self._done(self._add(value))

    def _frame(self, part: OpenPart, kind: str, place: dict[str, Any], tail: bytes = TAIL) -> None:
        name = kind.encode()
        part.before = b'event: %b\ndata: {"type":"%b","sequence_number":' % (name, name)
        part.after = b',%b,"delta":' % encode(place)[1:-1]
        part.tail = tail

    def _place(self, part: OpenPart, key: str = "content_index") -> dict[str, Any]:
        assert part.item is not None
        place: dict[str, Any] = {"item_id": part.item.value["id"], "output_index": part.item.position}
        if key:
            place[key] = part.number
        return place


def _section(part: OpenPart) -> str:
    """The text of the part now open: everything after the complete ones and their separators."""
    return str(part.text)[sum(len(said) + len(SEAM) for said in part.sections) :]


def _entries(part: OpenPart, texts: list[str]) -> list[dict[str, Any]]:
    return [{"type": _SPOKEN[part.source][0], "text": text} for text in texts]


def _as_streamed(reasoning: Reasoning, part: OpenPart) -> Reasoning:
    """The reasoning with the entries that were sent; the source's own entries if they are equal."""
    extra = reasoning.extra
    if extra is None or extra.dialect != NAME:
        return reasoning
    form = {key: value for key, value in extra.form.items() if key not in ("shown", "other", "without")}
    shown = extra.form.get("shown")
    if part.source:
        reported = (
            type(shown) is list and len(shown) == len(part.sections) and texts_of(shown) == part.sections
        )
        form |= {"source": part.source, "shown": shown if reported else _entries(part, part.sections)}
    else:
        form["source"] = "summary"
    fields = {
        key: value
        for key, value in extra.fields.items()
        if key not in ("summary", "content", "encrypted_content") or type(value) is list
    }
    return replace(reasoning, extra=Extra(NAME, fields, form))
