"""Parses a server's stream into events: lines with pieces of the message, the last of which is `done`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot_core.dialects.answer_reader import LAST_BLANK_LINE, AnswerReader, json_or_text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import broken
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.iso_time import unix_seconds
from wireglot_core.dialects.ollama.answer import CHAT, AnswerShape
from wireglot_core.dialects.ollama.calls import parse_call
from wireglot_core.dialects.ollama.errors import parse_error
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.dialects.ollama.framing import AsEvents
from wireglot_core.dialects.ollama.media import parse_media
from wireglot_core.dialects.ollama.outcome import METRICS, parse_logprobs, parse_stop, parse_usage
from wireglot_core.dialects.repeated_chunks import Place, RepeatedChunks
from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.content import Extra, Media, Part, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import Frame, SseDecoder

_TOP: Final = frozenset({"model", "created_at", "done", "done_reason", "logprobs", "error", *METRICS})
_MESSAGE: Final = frozenset({"role", "thinking", "images", "tool_calls"})


class LineChunks(RepeatedChunks):
    """Lines that differ only in their text and their time."""

    __slots__ = ("_answer",)

    varying = re.compile(rb'"(?:content|response|thinking|created_at)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"')

    def __init__(self, most: int, shape: AnswerShape) -> None:
        super().__init__(most)
        self._answer = shape

    def text_place(self, document: dict[str, Any]) -> Place | None:
        shape = self._answer
        message = document.get(shape.holder) if shape.holder else document
        if type(message) is not dict or document.get("done") is not False or document.get("logprobs"):
            return None
        if document.get("error") or message.get("tool_calls") or message.get("images"):
            return None
        spoken = [key for key in (shape.text, "thinking") if message.get(key)]
        return (message, spoken[0]) if len(spoken) == 1 and type(message[spoken[0]]) is str else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return [(document, "created_at")] if type(document.get("created_at")) is str else []


class OllamaReader(AnswerReader):
    document_starts = b"[<"  # an object is the first line

    def __init__(self, context: Context, shape: AnswerShape = CHAT) -> None:
        super().__init__(SseDecoder(context.max_frame), LineChunks(context.max_frame, shape))
        self._context = context
        self._shape = shape
        self._events = AsEvents(context.max_frame)
        self._known = _TOP | {shape.holder} if shape.holder else _TOP | _MESSAGE | {shape.text}
        self._started = False
        self._parts = 0
        self._calls = 0
        self._open: type[Part] | None = None
        """The kind of the open text, which is the last part."""
        self._form: dict[str, Any] = {"native": True}
        self._fields: dict[str, Any] = {}
        self._reported: dict[str, Any] = {}
        """The fields that Start has reported."""

    def _read_stream(self, data: bytes, out: list[Event]) -> None:
        super()._read_stream(self._events.feed(data), out)

    def _read_end(self, out: list[Event]) -> None:
        super()._read_stream(self._events.close() + LAST_BLANK_LINE, out)

    def _read_document(self, document: bytes, out: list[Event]) -> None:
        """Reads a response that is not a stream: a page, or a proxy's list."""
        self._fail(parse_error(json_or_text(document), 0) or broken("no stream"), out)

    def _frame(self, frame: Frame, out: list[Event]) -> None:
        data = frame.data.strip()
        if not data or data == b"[DONE]":
            return
        chunk = decode(data)
        if type(chunk) is not dict:
            self._fail(broken("expected an object"), out)
            return
        error = parse_error(chunk, 0)
        if error is not None:
            self._fail(error, out)
        else:
            self._chunk(Fields(chunk, "$", UpstreamFault), out)

    def _chunk(self, chunk: Fields, out: list[Event]) -> None:
        value, shape = chunk.value, self._shape
        message = chunk.object_or_none(shape.holder) if shape.holder else chunk
        self._note(value, self._known, "")
        if message is not None and message is not chunk:
            self._note(message.value, _MESSAGE | {shape.text}, f"{shape.holder}.")
        if not self._started:
            self._start(chunk, out)
        if message is not None:
            self._message(message, value.get("logprobs"), out)
        if value.get("done") is True:
            self._finish(value, out)

    def _note(self, value: dict[str, Any], known: frozenset[str], level: str) -> None:
        if value.keys() <= known:
            return
        for key, item in value.items():
            if key not in known and item is not None and not is_hollow(item):
                self._fields[level + key] = item

    def _start(self, chunk: Fields, out: list[Event]) -> None:
        self._started = True
        created = chunk.value.get("created_at")
        self._form["created_at"] = created
        self._reported = dict(self._fields)
        extra = Extra(NAME, self._reported, self._form)
        out.append(Start("", chunk.text_or("model"), unix_seconds(created), extra=extra))

    def _message(self, message: Fields, logprobs: Any, out: list[Event]) -> None:
        text, thinking = message.text_or(self._shape.text), message.text_or("thinking")
        calls = message.array_or_empty("tool_calls")
        if thinking:
            self._say(Reasoning, thinking, (), out)
        scored: tuple[TokenLogprob, ...] = ()
        if logprobs is not None and (text or not (thinking or calls)):
            scored = parse_logprobs(logprobs) or ()
        if text or scored:
            self._say(Text, text, scored, out)
        for image in message.texts("images"):
            self._whole(parse_media(image), out)
        if calls:
            for call in message.objects("tool_calls"):
                self._whole(parse_call(call, self._mint), out)
                self._calls += 1

    def _say(
        self,
        kind: type[Text] | type[Reasoning],
        text: str,
        logprobs: tuple[TokenLogprob, ...],
        out: list[Event],
    ) -> None:
        if self._open is not kind:
            self._close(out)
            out.append(PartStart(self._parts, Text("") if kind is Text else Reasoning()))
            self._parts += 1
            self._open = kind
        out.append(Delta(self._parts - 1, text, logprobs))

    def _whole(self, part: ToolCall | Media, out: list[Event]) -> None:
        """Handles a part that comes in one piece."""
        self._close(out)
        index = self._parts
        self._parts += 1
        if isinstance(part, ToolCall):
            out.append(PartStart(index, ToolCall(part.id, part.name, "", extra=part.extra)))
            if part.arguments:
                out.append(Delta(index, part.arguments))
        else:
            out.append(PartStart(index, part))
        out.append(PartEnd(index))

    def _close(self, out: list[Event]) -> None:
        if self._open is not None:
            out.append(PartEnd(self._parts - 1))
            self._open = None

    def _mint(self, name: str) -> str:
        return self._context.new_id(self._context.call_prefix, str(self._calls), name)

    def _finish(self, value: dict[str, Any], out: list[Event]) -> None:
        self._ended = True
        self._close(out)
        stop = parse_stop(value.get("done_reason"), self._calls > 0)
        extra = None if self._fields == self._reported else Extra(NAME, self._fields, self._form)
        out.append(Finish(stop, parse_usage(value), extra=extra))
