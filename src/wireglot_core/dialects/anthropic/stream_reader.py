"""Parses the upstream's event stream into events.

Hosts that speak this dialect leave things out and send things twice: no message_start, no stop of a block,
usage only at the end, a block given whole and then again as deltas. The reader accepts all of that; only an
end without a stop reason, invalid JSON and an `error` event produce a Failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot_core.dialects.answer_reader import LAST_BLANK_LINE, AnswerReader, json_or_text, named_event
from wireglot_core.dialects.anthropic.errors import parse_error
from wireglot_core.dialects.anthropic.names import NAME, keep
from wireglot_core.dialects.anthropic.open_blocks import (
    OpenBlock,
    OpenCall,
    OpenForeign,
    OpenRedacted,
    OpenText,
    OpenThinking,
    Parts,
    foreign_delta,
)
from wireglot_core.dialects.anthropic.outcome import (
    REASONS,
    merge_usage,
    parse_stop,
    parse_usage,
    tier_of_usage,
)
from wireglot_core.dialects.anthropic.parts import call_extra, toolset_of
from wireglot_core.dialects.anthropic.reasoning import parse_redacted
from wireglot_core.dialects.anthropic.response import KNOWN, parse_response
from wireglot_core.dialects.anthropic.safeguards import RESULTS, parse_results
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import broken
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.repeated_chunks import Place, RepeatedChunks
from wireglot_core.ir.content import Extra, Text, ToolCall
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.outcome import Stop
from wireglot_core.ir.stream import Delta, Event, Finish, ForeignEvent, PartEnd, Start, UsageReport, unfold
from wireglot_core.wire.json import BadJson, decode, encode_text
from wireglot_core.wire.sse import Frame, SseDecoder

_TEXTS: Final = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class MessageChunks(RepeatedChunks):
    """The reader does not collect the pieces of a block that are passed on immediately."""

    __slots__ = ()

    varying = re.compile(rb'"(?:text|thinking|partial_json)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"')

    def text_place(self, document: dict[str, Any]) -> Place | None:
        delta = document.get("delta")
        if document.get("type") != "content_block_delta" or type(delta) is not dict:
            return None
        kind = delta.get("type")
        key = _TEXTS.get(kind) if type(kind) is str else None
        return (delta, key) if key is not None and type(delta.get(key)) is str else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return ()


_TEXT = frozenset({"type", "text", "citations"})
_THINKING = frozenset({"type", "thinking", "signature"})
_DELTA = frozenset({"stop_reason", "stop_sequence", "stop_details"})
_MESSAGE_DELTA = frozenset({"type", "delta", "usage"})
_CUT_OFF = frozenset({"length", "context_full", "refused"})
_MESSAGE_STOP = frozenset({"type"})


class MessageReader(AnswerReader):
    __slots__ = (
        "_bare",
        "_blocks",
        "_details",
        "_events",
        "_extra",
        "_form",
        "_highest",
        "_message",
        "_parts",
        "_preset",
        "_reason",
        "_sequence",
        "_started",
        "_stopped",
        "_tier",
        "_usage",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(SseDecoder(context.max_frame), MessageChunks(context.max_frame))
        self._parts = Parts(context)
        self._blocks: dict[Any, OpenBlock] = {}  # by wire index, in order of their start
        self._highest = -1  # of the indices of blocks so far
        self._bare: OpenCall | None = None  # a call that has ended without arguments
        self._preset: list[Any] = []  # blocks of message_start, until their contents are known
        self._usage: dict[str, Any] | None = None
        self._tier = ""
        self._extra: dict[str, Any] = {}
        self._form: dict[str, Any] = {}
        self._reason: Any = None
        self._sequence: Any = None
        self._details: dict[str, Any] = {}
        self._started = False
        self._message = ""  # the id that message_start reported
        self._stopped = False  # message_delta has reported the stop reason
        self._events = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._error,
            "ping": self._ping,
        }

    def _frame(self, frame: Frame, out: list[Event]) -> None:
        event = named_event(frame)
        if type(event) is not dict:
            return
        kind = event.get("type")
        if kind == "content_block_delta":
            # The most frequent case: one more piece of an open text.
            index, delta = event.get("index"), event.get("delta")
            block = self._blocks.get(index) if type(index) is int else None
            if type(block) is OpenText and type(delta) is dict and delta.get("type") == "text_delta":
                text = delta.get("text")
                if type(text) is str and text:
                    out.append(Delta(block.index, text))
                return
        self._take(kind if type(kind) is str else frame.event, event, out)

    def _read_end(self, out: list[Event]) -> None:
        self._read_stream(LAST_BLANK_LINE, out)
        if self._stopped and not self._ended:
            self._message_stop({}, out)

    def _read_document(self, document: bytes, out: list[Event]) -> None:
        """Reads a response that is not a stream: an error, a whole answer, or a list of events."""
        body = json_or_text(document)
        error = parse_error(body)
        if error is not None:
            self._fail(error, out)
        elif type(body) is list and all(type(item) is dict for item in body):
            for event in body:
                if not self._ended:
                    self._take(str(event.get("type")), event, out)
            if self._stopped and not self._ended:
                self._message_stop({}, out)
        elif type(body) is dict and body.get("type") == "message":
            response = parse_response(body, self._parts.context)
            self._ended = True
            out.extend(unfold(response))

    def _take(self, kind: str, event: dict[str, Any], out: list[Event]) -> None:
        known = self._events.get(kind)
        if known is not None:
            known(event, out)
        elif not kind and type(event.get("error")) in (dict, str):
            self._error(event, out)
        else:
            self._start(event, out)
            out.append(ForeignEvent(NAME, kind, event))

    def _start(self, event: dict[str, Any], out: list[Event]) -> None:
        """Begins the answer. Some hosts send no message_start; everything else requires one before it."""
        if self._started:
            return
        self._started = True
        message = event.get("message")
        if type(message) is not dict:
            message = {}
        parts = self._parts
        context, identifier, model = parts.context, message.get("id"), message.get("model")
        if type(identifier) is not str or not identifier:
            identifier = context.new_id("msg", str(context.now), encode_text(event))
        if type(model) is not str or not model:
            model = context.model
        parts.origin = context.origin(NAME, model)
        parts.response_id = identifier
        usage = parse_usage(self._usage) if self._usage is not None else None
        extra = Extra(NAME, dict(self._extra), dict(self._form))
        out.append(Start(identifier, model, usage=usage, service_tier=self._tier, extra=extra))

    def _message_start(self, event: dict[str, Any], out: list[Event]) -> None:
        message = event.get("message")
        if type(message) is not dict:
            message = {}
        identifier = message.get("id")
        if type(identifier) is str and identifier:
            if self._message and identifier != self._message:
                # Both count their blocks from 0: calls of one would be mixed with the other's.
                self._fail(broken("a second message begins inside the first"), out)
                return
            self._message = identifier
        self._take_usage(message.get("usage"))
        self._take_stop(message)
        self._extra.update({key: value for key, value in message.items() if key not in KNOWN})
        if self._started:
            self._flawed("second_start")
            return
        self._start(event, out)
        if type(message.get("content")) is list:
            self._preset = message["content"]

    def _block_start(self, event: dict[str, Any], out: list[Event]) -> None:
        index = _index(event.get("index"))
        value = event.get("content_block")
        if type(index) is int:
            if index <= self._highest:
                self._flawed("index_not_growing")
            self._highest = index
        if self._stopped:
            self._flawed("content_after_end")
        self._start(event, out)
        self._end_bare(out)
        if self._preset:
            preset, self._preset = self._preset, []
            if type(index) is int and index >= len(preset):
                self._show_preset(preset, out)
        if index in self._blocks:  # its stop got lost
            self._blocks.pop(index).stop(out)
        if type(value) is not dict:
            raise UpstreamFault("expected an object", "$.content_block")
        self._blocks[index] = self._open(Fields(value, "$.content_block", UpstreamFault), out)

    def _open(self, fields: Fields, out: list[Event]) -> OpenBlock:
        parts = self._parts
        match fields.value.get("type"):
            case "text":
                citations = _TEXT if not fields.value.get("citations") else _TEXT - {"citations"}
                extra = fields.rest(citations, NAME)
                part = Text("", signature=parts.claim("text"), extra=extra)
                return OpenText(part, fields.text_or("text"), parts, out)
            case "thinking":
                said = fields.text_or_none("signature")
                extra = keep(fields.value, _THINKING)
                if extra is not None and not (extra.fields.keys() - _THINKING):
                    extra = None
                return OpenThinking(extra, fields.text_or("thinking"), said, parts, out)
            case "tool_use":
                return self._open_call(fields, out)
            case "redacted_thinking":
                return OpenRedacted(parse_redacted(fields, parts.context, parts.origin), parts, out)
            case _:
                return OpenForeign(fields.value, parts)

    def _open_call(self, fields: Fields, out: list[Event]) -> OpenCall:
        given = fields.value.get("input")
        if type(given) is str:
            try:
                given = decode(given)
            except BadJson:
                given = None
        extra = call_extra(fields)
        if extra is not None:  # the form of the input at the start does not describe the whole input
            form = {key: value for key, value in extra.form.items() if key != "input"}
            kept = {key: value for key, value in extra.fields.items() if key != "input"}
            extra = Extra(NAME, kept, form) if kept or form else None
        parts, name = self._parts, fields.text_or("name")
        if not name:
            raise fields.wrong("name", "the name of a tool")
        parts.calls += 1
        identifier = fields.text_or("id") or parts.context.new_id(
            parts.context.call_prefix, parts.response_id, str(parts.calls), name
        )
        call = ToolCall(
            identifier,
            name,
            "",
            namespace=toolset_of(fields),
            signature=parts.claim("call"),
            extra=extra,
        )
        start = given if isinstance(given, dict | list) and given else None
        return OpenCall(call, start, self._parts, out)

    def _show_preset(self, preset: list[Any], out: list[Event]) -> None:
        for value in preset:
            if type(value) is not dict:
                continue  # a malformed block
            block = self._open(Fields(value, "$.message.content", UpstreamFault), out)
            block.stop(out)

    def _block_delta(self, event: dict[str, Any], out: list[Event]) -> None:
        index, delta = _index(event.get("index")), event.get("delta")
        if type(delta) is not dict:
            return
        self._start(event, out)
        block = self._blocks.get(index)
        if block is None:
            self._flawed("piece_without_part")
            block = self._open_silent(index, delta, out)
            if block is None:
                out.append(ForeignEvent(NAME, "content_block_delta", event))
                return
        if not block.delta(delta, out):
            out.append(foreign_delta(getattr(block, "index", -1), delta))

    def _open_silent(self, index: Any, delta: dict[str, Any], out: list[Event]) -> OpenBlock | None:
        """Opens the block of a delta without a start: the delta's kind determines the block's, except for
        calls."""
        said = delta.get("type")
        kind = "text" if said == "text_delta" else "thinking" if said == "thinking_delta" else None
        if kind is None:
            return None
        self._blocks[index] = block = self._open(Fields({"type": kind}, "$", UpstreamFault), out)
        return block

    def _block_stop(self, event: dict[str, Any], out: list[Event]) -> None:
        block = self._blocks.pop(_index(event.get("index")), None)
        if type(block) is OpenCall and block.is_bare:
            self._end_bare(out)  # of several that were open at once, the last is held
            self._bare = block
        elif block is not None:
            block.stop(out)

    def _end_bare(self, out: list[Event]) -> None:
        """Ends a held call without arguments as such, unless the answer was cut off before they began."""
        bare, self._bare = self._bare, None
        if bare is not None and REASONS.get(self._reason) in _CUT_OFF:
            out.append(PartEnd(bare.index))
        elif bare is not None:
            bare.stop(out)

    def _message_delta(self, event: dict[str, Any], out: list[Event]) -> None:
        self._take_usage(event.get("usage"))
        delta = event.get("delta")
        self._start(event, out)
        if type(delta) is dict:
            self._take_stop(delta)
            if type(delta.get("stop_reason")) is str:
                if self._stopped:
                    self._flawed("second_end")
                self._stopped = True
            if self._stopped:
                self._end_bare(out)
            self._keep_beside(delta, _DELTA)
        self._keep_beside(event, _MESSAGE_DELTA)
        if not self._stopped and self._usage is not None:
            out.append(UsageReport(parse_usage(self._usage)))

    def _keep_beside(self, value: dict[str, Any], known: frozenset[str]) -> None:
        for key, item in value.items():
            if key not in known and (item is not None or key not in self._extra):
                self._extra[key] = item

    def _message_stop(self, event: dict[str, Any], out: list[Event]) -> None:
        beside = {key: value for key, value in event.items() if key not in _MESSAGE_STOP}
        if beside:
            self._form["message_stop"] = beside  # the cloud's own measurements, not the model's answer
        self._start(event, out)
        self._finish(out)

    def _finish(self, out: list[Event]) -> None:
        if self._preset:
            self._show_preset(self._preset, out)
        self._end_bare(out)
        for index in list(self._blocks):
            self._block_stop({"index": index}, out)
            self._end_bare(out)
        self._ended = True
        calls = self._parts.calls > 0
        stop = parse_stop(self._reason, self._sequence, self._details, calls)
        if stop.reason == "tool_calls" and stop.raw != "tool_use":
            # Clients of this dialect stop at end_turn, so a host's wrong stop reason is not passed on.
            stop = Stop("tool_calls", "tool_use", NAME, stop.sequence, stop.extra)
        usage = parse_usage(self._usage) if self._usage is not None else None
        results = parse_results(self._extra[RESULTS]) if RESULTS in self._extra else ()
        if results:
            del self._extra[RESULTS]
        out.append(Finish(stop, usage, self._tier, Extra(NAME, self._extra, self._form), results))

    def _error(self, event: dict[str, Any], out: list[Event]) -> None:
        self._fail(parse_error(event) or ApiError("server", "the upstream reported an error"), out)

    def _ping(self, event: dict[str, Any], out: list[Event]) -> None:
        pass

    def _take_usage(self, usage: Any) -> None:
        if type(usage) is dict:
            self._usage = merge_usage(self._usage or {}, usage)
            self._tier = tier_of_usage(usage) or self._tier

    def _take_stop(self, value: dict[str, Any]) -> None:
        if type(value.get("stop_reason")) is str:
            self._reason = value["stop_reason"]
        if type(value.get("stop_sequence")) is str:
            self._sequence = value["stop_sequence"]
        if "stop_details" in value and (value["stop_details"] is not None or not self._details):
            self._details = {"stop_details": value["stop_details"]}


def _index(value: Any) -> Any:
    """A wire index as a key; an index of any other type counts as a separate block."""
    return value if type(value) in (int, str) else None
