"""Parses an upstream's stream: bytes to events, the states of the response, and all ways it can end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from wireglot_core.dialects.answer_reader import LAST_BLANK_LINE, AnswerReader, json_or_text, named_event
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import broken
from wireglot_core.dialects.openai_responses.errors import event_error, parse_error
from wireglot_core.dialects.openai_responses.item_reader import ItemReader
from wireglot_core.dialects.openai_responses.outcome import parse_stop, parse_usage
from wireglot_core.dialects.openai_responses.output import SEAM
from wireglot_core.dialects.openai_responses.response import body_extra, created_of, parse_response
from wireglot_core.dialects.openai_responses.settings import parse_tier
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.repeated_chunks import Place, RepeatedChunks
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.stream import Event, Finish, ForeignEvent, Start, unfold
from wireglot_core.wire.sse import Frame, SseDecoder

_KINDS: Final = frozenset(
    {
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    }
)
_BESIDE: Final = {"obfuscation": str, "sequence_number": int}
"""Padding, and a number that no reader uses."""


class ResponsesChunks(RepeatedChunks):
    __slots__ = ("_items",)

    varying = re.compile(
        rb'"(?:delta|obfuscation)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"|"sequence_number"[ \t]*:[ \t]*(\d+)'
    )

    def __init__(self, most: int, items: ItemReader) -> None:
        super().__init__(most)
        self._items = items

    def text_place(self, document: dict[str, Any]) -> Place | None:
        kind = document.get("type")
        if type(kind) is not str or kind not in _KINDS or type(document.get("delta")) is not str:
            return None
        return document, "delta"

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return [(document, key) for key, kind in _BESIDE.items() if type(document.get(key)) is kind]

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return self._items.sent_of(index)

    def tells_again(self, said: list[str], text: str) -> bool:
        return text == SEAM  # in a thought it separates two pieces


_TEXT_DELTA = "response.output_text.delta"
_ADDED = "response.output_item.added"
_READERS: dict[str, Callable[[ItemReader, dict[str, Any]], None]] = {
    _TEXT_DELTA: ItemReader.text_delta,
    _ADDED: ItemReader.item_added,
    "response.output_item.done": ItemReader.item_done,
    "response.content_part.added": ItemReader.part_added,
    "response.content_part.done": ItemReader.part_done,
    "response.output_text.done": ItemReader.text_done,
    "response.output_text.annotation.added": ItemReader.annotation,
    "response.output_text_annotation.added": ItemReader.annotation,
    "response.refusal.delta": ItemReader.text_delta,
    "response.refusal.done": ItemReader.text_done,
    "response.reasoning_summary_text.delta": ItemReader.summary_delta,
    "response.reasoning_text.delta": ItemReader.content_delta,
    "response.function_call_arguments.delta": ItemReader.call_delta,
    "response.function_call_arguments.done": ItemReader.call_done,
    "response.custom_tool_call_input.delta": ItemReader.call_delta,
    "response.custom_tool_call_input.done": ItemReader.call_done,
    "response.shell_call_command.added": ItemReader.command,
    "response.shell_call_command.delta": ItemReader.command,
    "response.shell_call_command.done": ItemReader.command,
}
_CREATED = "response.created"
_LIFE = frozenset({_CREATED, "response.in_progress", "response.queued"})
_REPORTED_AGAIN = frozenset(
    {
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
    }
)
"""Events whose content is repeated in the done item."""
_LAST = frozenset({"response.completed", "response.incomplete", "response.done"})
_FAILED = frozenset({"response.failed", "response.cancelled", "error"})
_SILENT = frozenset({"ping", "keepalive", "response.keepalive", "response.heartbeat"})


class ResponsesReader(AnswerReader):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._items = ItemReader(context)
        repeated = ResponsesChunks(context.max_frame, self._items)
        super().__init__(SseDecoder(context.max_frame), repeated)
        self._early: list[ForeignEvent] = []  # events received before the response
        self._started = False
        self._number = -1  # of the last event that was processed
        self._highest = -1  # of the indices of items so far

    # Bytes

    def _read_stream(self, data: bytes, out: list[Event]) -> None:
        self._items.out = out
        super()._read_stream(data, out)

    def _frame(self, frame: Frame, out: list[Event]) -> None:
        event = named_event(frame)
        if type(event) is dict:
            self._read_event(event, frame.event)

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

    def _read_event(self, event: dict[str, Any], name: str) -> None:
        kind = event.get("type")
        if kind == _TEXT_DELTA and self._started:
            self._items.text_delta(event)
            return
        if type(kind) is not str:
            kind = "error" if event.get("error") else name
        number = event.get("sequence_number")
        if type(number) is int:
            if number <= self._number:
                self._flawed("number_not_growing")
            self._number = number
        if kind in _FAILED or name == "error":
            self._fail(event_error(event), self._items.out)
        elif kind in _SILENT or not kind:
            return
        elif kind in _READERS:
            self._start(event)
            if kind == _ADDED and type(index := event.get("output_index")) is int:
                if index <= self._highest:
                    self._flawed("index_not_growing")
                self._highest = index
            _READERS[kind](self._items, event)
        elif kind in _LAST:
            self._start(event)
            self._finish(event, kind)
        elif kind in _LIFE or kind in _REPORTED_AGAIN:
            if kind == _CREATED and self._started:
                if self._begins_another(event):
                    self._fail(broken("a second response begins inside the first"), self._items.out)
                    return
                self._flawed("second_start")
            self._start(event)
        else:
            foreign = ForeignEvent(NAME, kind, event)
            if self._started:
                self._items.out.append(foreign)
            else:
                self._early.append(foreign)

    def _start(self, event: dict[str, Any]) -> None:
        """Also called by the first other event, for a stream whose beginning is missing."""
        if self._started:
            return
        self._started = True
        body = _object(event, "response")
        items, identifier, model = self._items, body.get("id"), body.get("model")
        items.response = identifier if type(identifier) is str else ""
        items.model = model if type(model) is str else ""
        native = Extra(NAME, form={"native": True})
        items.out.append(Start(items.response, items.model, created_of(body), extra=native))
        items.out += self._early

    def _begins_another(self, event: dict[str, Any]) -> bool:
        first, identifier = self._items.response, _object(event, "response").get("id")
        return bool(first) and type(identifier) is str and identifier not in ("", first)

    def _finish(self, event: dict[str, Any], kind: str) -> None:
        body = _object(event, "response")
        items = self._items
        output = body.get("output")
        if type(output) is list:
            items.final_output(output)
        items.end()
        status = body.get("status")
        if type(status) is not str or status in ("in_progress", "queued"):
            status = "completed" if kind == "response.done" else kind.removeprefix("response.")
        stop = parse_stop(status, body.get("incomplete_details"), items.calls, items.refused)
        usage, tier = parse_usage(body.get("usage")), body.get("service_tier")
        tier = parse_tier(tier) if type(tier) is str else ""
        items.out.append(Finish(stop, usage, tier, body_extra(body, usage is None)))
        self._ended = True

    def _fail(self, error: ApiError, out: list[Event]) -> None:
        self._items.out = out
        self._items.release()
        super()._fail(error, out)


def _object(event: dict[str, Any], key: str) -> dict[str, Any]:
    value = event.get(key)
    return value if type(value) is dict else {}
