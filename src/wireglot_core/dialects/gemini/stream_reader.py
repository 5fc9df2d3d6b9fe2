"""Parses Gemini streams into events.

Every chunk is a whole response with more parts. Text of one kind stays one open part, unless the new piece is
signed: a signature belongs to exactly the part that carries it. The end is reported by `finishReason`, but
parts and usage may still follow, so Finish is held back until the end of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from wireglot_core.dialects.answer_reader import AnswerReader
from wireglot_core.dialects.arguments import arguments_text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import TRUNCATED
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini import citations, names
from wireglot_core.dialects.gemini.citations import Span, read_logprobs, read_spans, unreported_grounding
from wireglot_core.dialects.gemini.errors import parse_error, unsigned_error
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.outcome import FINISH_NUMBERS, UNSIGNED, read_stop, read_usage, usage_tier
from wireglot_core.dialects.gemini.partial_args import PartialCall
from wireglot_core.dialects.gemini.parts import PartParser, is_more_than_text, is_ours, plain_name
from wireglot_core.dialects.gemini.response import FIRST, NAMELESS, SOURCES, blocked_stop, parse_response
from wireglot_core.dialects.gemini.results import call_id
from wireglot_core.dialects.google_shared import ByteOffsets
from wireglot_core.dialects.iso_time import unix_seconds
from wireglot_core.dialects.repeated_chunks import Place, RepeatedChunks
from wireglot_core.dialects.usage_checks import joined_usage
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Media,
    Part,
    Reasoning,
    Text,
    TokenLogprob,
    ToolCall,
)
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.outcome import Candidate
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Finish,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    fold,
    unfold,
)
from wireglot_core.wire.json import BadJson, decode
from wireglot_core.wire.json_array import ArrayDecoder
from wireglot_core.wire.sse import Frame, SseDecoder

_USAGE: Final = "usageMetadata"
_TEXT: Final = {"text"}
_THOUGHT: Final = {"text", "thought"}


class GeminiChunks(RepeatedChunks):
    """Each chunk reports the whole usage so far: its reader needs the last one's counts."""

    __slots__ = ("_texts",)

    varying = re.compile(rb'"text"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"|"[a-z]*[tT]okenCount"[ \t]*:[ \t]*(\d+)')

    def __init__(self, most: int, texts: list[str]) -> None:
        """`texts`: list for the texts of an open part that is not a thought."""
        super().__init__(most)
        self._texts = texts

    def text_place(self, document: dict[str, Any]) -> Place | None:
        candidates = document.get("candidates")
        if type(candidates) is not list or len(candidates) != 1 or type(candidates[0]) is not dict:
            return None
        content = candidates[0].get("content")
        parts = content.get("parts") if type(content) is dict else None
        if type(parts) is not list or len(parts) != 1 or type(parts[0]) is not dict:
            return None
        part = parts[0]
        known = part.keys() == _TEXT or (part.keys() == _THOUGHT and part["thought"] is True)
        return (part, "text") if known and type(part["text"]) is str else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return _counts(document.get(_USAGE))

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return None if "thought" in holder else self._texts


def _counts(value: Any) -> Iterator[Place]:
    if type(value) is dict:
        for key, item in value.items():
            if type(item) is int:
                yield value, key
            else:
                yield from _counts(item)
    elif type(value) is list:
        for item in value:
            yield from _counts(item)


def _says(parts: Any) -> bool:
    """Whether there is more than an empty text, which often comes with the end."""
    return type(parts) is list and any(part != {"text": ""} for part in parts)


_OPEN_CALL = "a call begins before the last one has ended"
_LEFT_OUT = frozenset(
    {"content", "finishReason", "index", "groundingMetadata", "citationMetadata", "logprobsResult"}
)
_UNSTATED = ("", "FINISH_REASON_UNSPECIFIED")
_PIECES = frozenset({"willContinue", "will_continue", "partialArgs", "partial_args"})
"""Fields of a call that is sent in pieces."""
_TAKEN = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "createTime"})


class GeminiReader(AnswerReader):
    document_starts = b"{"  # an array is a stream here

    def __init__(self, context: Context) -> None:
        self._context = context
        self._array: ArrayDecoder | None = None  # for a stream without `alt=sse`: one growing JSON array
        self._texts: list[str] = []  # of the open text, for citations that count its bytes
        super().__init__(SseDecoder(context.max_frame), GeminiChunks(context.max_frame, self._texts))
        self._started = False
        self._parser: PartParser  # of the answer, once it has started
        self._parts = 0
        # A text that is signed takes no more; one with a tail is followed by a part that only signs.
        self._open: Literal["", "text", "thought", "signed", "tail"] = ""
        self._reported = 0  # bytes of the texts before it
        self._tail: Text | None = None
        self._partial: PartialCall | None = None
        self._finish: Any = None  # the last finishReason, unparsed
        self._usage: dict[str, Any] | None = None
        self._candidate: dict[str, Any] = {}
        self._others: dict[int, list[dict[str, Any]]] = {}  # pieces of further candidates
        self._rest: dict[str, Any] = {}
        self._form: dict[str, Any] = {}

    def _unwrap(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """The chunk inside an envelope, if this reader expects one."""
        return chunk

    def _sniff(self, opening: bytearray, data: bytes) -> bytes:
        data = super()._sniff(opening, data)
        if self._first == b"[":
            self._array = ArrayDecoder(self._context.max_frame)
            return data
        return data[data.index(self._first) :] if data else data

    def _read_stream(self, data: bytes, out: list[Event]) -> None:
        if self._array is None:
            super()._read_stream(data, out)
        else:
            for document in self._array.feed(data):
                self._frame(Frame("", document), out)

    def _take_usage(self) -> None:
        """Reads the usage of the last chunk that was not parsed in full."""
        last = self._repeated.last_reported()
        if last is not None and "usageMetadata" in last:
            self._chunk({"usageMetadata": last["usageMetadata"]}, [])

    def _read_end(self, out: list[Event]) -> None:
        if self._repeated.last:
            self._take_usage()
        array = self._array
        if array is None:
            is_whole = self._read_last_frame(out)
        elif array.fault is not None:
            raise array.fault  # as it would be if it had arrived in a separate chunk
        else:
            is_whole = array.complete
        if is_whole and not self._ended:
            self._finished(out)

    def _read_last_frame(self, out: list[Event]) -> bool:
        """Reads a frame without its blank line. Returns whether it was complete."""
        pending = self._sse.pending
        if not pending:
            return True
        try:
            for frame in self._sse.close():
                if frame.data:
                    self._frame(frame, out)
                    return True
        except BadJson:
            self._fail(TRUNCATED, out)  # it may be cut, not broken
        # A frame has begun unless the rest is a comment: "dat" and "data: " are incomplete frames.
        return not any(line and not line.startswith(b":") for line in pending.split(b"\n"))

    def _read_document(self, document: bytes, out: list[Event]) -> None:
        """Reads an answer, or an error, that came in one piece."""
        body = decode(document)
        error = parse_error(body)
        if error is not None:
            self._fail(error, out)
            return
        response = parse_response(self._unwrap(body), self._context)
        if (
            not response.content
            and response.stop.reason == "other"
            and not response.stop.raw
            and response.usage is None
        ):
            return  # an object without an answer
        out.extend(unfold(response))
        self._ended = True

    def _frame(self, frame: Frame, events: list[Event]) -> None:
        if self._repeated.last:
            self._take_usage()
        if self._ended or frame.data.strip() in (b"", b"[DONE]"):
            return
        chunk = decode(frame.data)
        if type(chunk) is dict:
            self._chunk(chunk, events)
        elif type(chunk) is list:  # errors come wrapped in a list of one
            for item in chunk:
                if not self._ended:
                    self._chunk(item, events)
        else:
            raise UpstreamFault("expected a chunk object")

    def _chunk(self, chunk: Any, events: list[Event]) -> None:
        if type(chunk) is not dict:
            raise UpstreamFault("expected a chunk object")
        if "error" in chunk and self._fails(chunk, events):
            return
        if "response" in chunk:
            chunk = self._unwrap(chunk)
            if "error" in chunk and self._fails(chunk, events):
                return
        if not self._started:
            self._start(chunk, events)
        for key, value in chunk.items():
            if key == "candidates":
                if type(value) is not list:
                    raise UpstreamFault("expected an array", "$.candidates")
                for position, candidate in enumerate(value):
                    if type(candidate) is not dict:
                        raise UpstreamFault("expected an object", f"$.candidates[{position}]")
                    index = candidate.get("index")
                    number = index if type(index) is int else position
                    if number:
                        self._others.setdefault(number, []).append(candidate)
                    else:
                        self._first_candidate(candidate, events)
            elif key == "usageMetadata":
                if type(value) is dict:
                    self._usage = joined_usage(self._usage or {}, value)
            elif key not in _TAKEN:
                self._keep(key, value, events)

    def _fails(self, chunk: dict[str, Any], events: list[Event]) -> bool:
        error = parse_error(chunk)
        if error is not None:
            self._fail(error, events)
        return error is not None

    def _start(self, chunk: dict[str, Any], events: list[Event]) -> None:
        fields = names.RESPONSE.read(chunk, "$", UpstreamFault)
        identifier, model = fields.text_or("responseId"), fields.text_or("modelVersion")
        usage = fields.value.get("usageMetadata")
        created = fields.value.get("createTime")
        if created is not None:
            self._form["createTime"] = created
        if not identifier:
            self._form[NAMELESS] = True
        self._parser = PartParser(self._context, UpstreamFault, self._context.origin(OWN, model), identifier)
        self._started = True
        early = read_usage(usage) if type(usage) is dict else None
        extra = Extra(OWN, {}, dict(self._form)) if self._form else None
        seconds = unix_seconds(created) if created is not None else 0
        events.append(Start(identifier, model, seconds, early, extra=extra))

    def _keep(self, key: str, value: Any, events: list[Event]) -> None:
        """Keeps a field next to the answer: a snake_case spelling, or something to return at the end."""
        name = names.RESPONSE.spellings.get(key)
        if name is None:
            if key != "error" or not value:  # without candidates an empty one would be an error
                self._rest[key] = value
        elif name in _TAKEN:
            self._chunk({name: value}, events)
        else:
            self._rest[name] = value

    def _first_candidate(self, candidate: dict[str, Any], events: list[Event]) -> None:
        candidate = names.CANDIDATE.camel(candidate)
        logprobs = read_logprobs(candidate["logprobsResult"]) if "logprobsResult" in candidate else ()
        content = candidate.get("content")
        if type(content) is dict:
            parts = content.get("parts")
            if parts is not None:
                if self._finish is not None and _says(parts):
                    self._flawed("content_after_end")
                for part in parts if type(parts) is list else [parts]:
                    self._part(part, events, logprobs)
                    logprobs = ()
        elif content is not None:
            raise UpstreamFault("expected an object", "$.candidates[0].content")
        if len(candidate) > 1 or content is None:
            stated = candidate.get("finishReason")
            if stated is not None and names.enum_name(stated, FINISH_NUMBERS) not in _UNSTATED:
                if self._finish is not None:
                    self._flawed("second_end")
                self._finish = stated
            for key, value in candidate.items():
                if key not in ("content", "finishReason", "index") and value is not None:
                    citations.add_to(self._candidate, key, value)

    def _part(self, part: Any, events: list[Event], logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        if type(part) is dict:
            text = part.get("text")
            if type(text) is str:
                if len(part) == 1:
                    self._prose("text", text, events, logprobs)
                    return
                if len(part) == 2 and part.get("thought") is True:
                    self._prose("thought", text, events, logprobs)
                    return
            else:
                call = part.get("functionCall", part.get("function_call"))
                whole = self._partial is None and type(call) is dict and _PIECES.isdisjoint(call)
                if call is not None and not whole and self._read_partial(part, events):
                    return
        self._whole_part(self._parser.parse(part, "$.candidates[0].content.parts"), events, logprobs)

    def _prose(
        self,
        kind: Literal["text", "thought"],
        text: str,
        events: list[Event],
        logprobs: tuple[TokenLogprob, ...],
    ) -> None:
        if self._open != kind:
            if not text and not logprobs and kind == "text":
                return
            self._close(events)
            events.append(PartStart(self._parts, Text("") if kind == "text" else Reasoning()))
            self._parts += 1
            self._open = kind
        if text or logprobs:
            events.append(Delta(self._parts - 1, text, logprobs))
            if kind == "text":
                self._texts.append(text)

    def _close(self, events: list[Event], citations: tuple[Citation, ...] = ()) -> None:
        if self._open:
            events.append(PartEnd(self._parts - 1, None, citations))
            self._open = ""
            self._reported += len("".join(self._texts).encode("utf-8", "replace"))
            self._texts.clear()
        if self._tail is not None:
            events += (PartStart(self._parts, self._tail), PartEnd(self._parts))
            self._parts += 1
            self._tail = None

    def _whole_part(self, part: Part, events: list[Event], logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        """Handles a part that nothing may be joined to: a call, a medium, anything signed."""
        if self._partial is not None and type(part) is ToolCall:
            raise UpstreamFault(_OPEN_CALL)
        if type(part) is Text and part.signature is None and not is_more_than_text(part.extra):
            self._prose("text", part.text, events, logprobs)
            return
        if type(part) is Reasoning and part.signature is None and not is_more_than_text(part.extra):
            self._prose("thought", part.text, events, logprobs)
            return
        if type(part) is Reasoning and self._open == "thought" and not part.text and is_ours(part.signature):
            # Not Gemini's order: a writer of Wireglot had sent the text before it knew the signature.
            events.append(PartEnd(self._parts - 1, part.signature))
            self._open = ""
            return
        if type(part) is Text and self._texts and not part.text and not logprobs and self._tail is None:
            # Gemini 3 ends with a part that only signs, and only then reports the sources of the text before
            # it.
            self._open, self._tail = "tail", part
            return
        self._close(events)
        index = self._parts
        self._parts += 1
        match part:
            case Text(text=text):
                # The signature is known from the start, and some clients need it before the text.
                events.append(PartStart(index, Text("", signature=part.signature, extra=part.extra)))
                if text or logprobs:
                    events.append(Delta(index, text, logprobs))
                if text:
                    self._open, self._texts[:] = "signed", [text]
                else:
                    events.append(PartEnd(index))
            case Reasoning(text=text):
                events.append(PartStart(index, Reasoning("", part.signature, extra=part.extra)))
                if text:
                    events.append(Delta(index, text))
                events.append(PartEnd(index))
            case ToolCall(arguments=arguments):
                events.append(
                    PartStart(
                        index, ToolCall(part.id, part.name, "", signature=part.signature, extra=part.extra)
                    )
                )
                events.append(Delta(index, arguments))
                events.append(PartEnd(index))
            case Media() | Foreign():
                events.append(PartStart(index, part))
                events.append(PartEnd(index))
            case _:
                raise AssertionError(f"{type(part).__name__} in an answer")

    def _read_partial(self, part: dict[str, Any], events: list[Event]) -> bool:
        """Reads the part if it is a piece of a call sent in pieces; returns whether it was."""
        outer = names.PART.read(part, "$.candidates[0].content.parts", UpstreamFault)
        call = names.FUNCTION_CALL.child(outer, "functionCall")
        goes_on = call.value.get("willContinue") is True
        pieces = call.value.get("partialArgs")
        name = call.text_or("name")
        if name and (goes_on or pieces):
            if self._partial is not None:
                raise UpstreamFault(_OPEN_CALL)
            signature, _ = self._parser.sign(outer)
            self._partial = PartialCall(plain_name(name), call_id(call), signature)
        elif name or self._partial is None:
            return False
        self._partial.add(pieces)
        if not goes_on:
            self._end_partial(events)
        return True

    def _end_partial(self, events: list[Event]) -> None:
        partial = self._partial
        if partial is None:
            return
        self._partial = None
        arguments = arguments_text(partial.arguments())
        parser = self._parser
        identifier = partial.id or parser.mint(partial.name, arguments)
        parser.calls += 1
        extra = None if partial.id else Extra(OWN, {}, {"id": "absent"})
        self._whole_part(
            ToolCall(identifier, partial.name, arguments, signature=partial.signature, extra=extra), events
        )

    def _finished(self, events: list[Event]) -> None:
        """The end of the bytes: the answer is complete or was refused; otherwise it was cut off."""
        blocked = blocked_stop(self._rest) if self._finish is None else None
        if blocked and not (self._started and blocked.reason == "refused" and not self._parts):
            return
        if self._partial is not None and names.enum_name(self._finish, FINISH_NUMBERS) != "MAX_TOKENS":
            self._fail(TRUNCATED, events)  # an incomplete call is not a call; at the limit it is left out
            return
        spans: list[Span] = read_spans(self._candidate) if self._candidate else []
        text = "".join(self._texts)
        said = bool(text or self._reported)
        if not self._parts and names.enum_name(self._finish, FINISH_NUMBERS) == UNSIGNED:
            self._fail(unsigned_error(self._candidate.get("finishMessage")), events)
            return
        offsets = ByteOffsets(text)
        self._close(events, tuple(span.on(offsets, self._reported) for span in spans) if text else ())
        form = dict(self._form)
        if blocked is None:
            message = self._candidate.pop("finishMessage", None)
            stop = read_stop(self._finish, self._parser.calls > 0, message, said=said)
        else:
            stop = blocked
            form["candidates"] = "absent"
        kept = dict(self._rest)
        for key, value in self._candidate.items():
            if key in _LEFT_OUT and (text or not spans or key not in SOURCES):
                form[key] = value
            else:
                kept[FIRST + key] = value
        for number in sorted(self._others):
            events.append(self._other(number, self._others[number]))
        if "groundingMetadata" in form:
            kept.update({FIRST + key: item for key, item in unreported_grounding(self._candidate).items()})
        usage = read_usage(self._usage) if self._usage is not None else None
        extra = Extra(OWN, kept, form) if kept or form else None
        events.append(Finish(stop, usage, usage_tier(self._usage or {}), extra))
        self._ended = True

    def _other(self, number: int, pieces: list[dict[str, Any]]) -> OtherAnswer:
        """A further candidate, parsed as if it were the only one. Minted ids are separate."""
        reader = GeminiReader(self._context)
        out: list[Event] = []
        reader._start({"responseId": f"{self._parser.response_id}#{number}"}, out)
        for candidate in pieces:
            reader._first_candidate(candidate, out)
        if reader._partial is not None and names.enum_name(reader._finish, FINISH_NUMBERS) != "MAX_TOKENS":
            reader._partial, reader._finish = None, "MALFORMED_FUNCTION_CALL"  # an incomplete call
        if reader._finish is None:
            reader._finish = "OTHER"  # it had no finish reason
        reader._finished(out)
        whole = fold(out)
        fields, form = own_fields(whole.extra, OWN), own_form(whole.extra, OWN)
        kept = {key.removeprefix(FIRST): item for key, item in fields.items()}
        extra = Extra(OWN, kept, {**form, "index": number})
        return OtherAnswer(Candidate(whole.content, whole.stop, extra))

    def _fail(self, error: ApiError, events: list[Event]) -> None:
        self._take_usage()
        if self._usage is not None and self._started:
            events.append(UsageReport(read_usage(self._usage)))
        super()._fail(error, events)
