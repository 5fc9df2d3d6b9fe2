"""Writes the parts of an answer as fragments in chunks."""

from __future__ import annotations

from typing import Any, assert_never

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import CUT_CALL, NO_RESULTS_IN_ANSWERS
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import Sealed
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_chat.citations import render_citation
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_chat.lost_fields import LOST, LOST_IN_ANSWERS, UNSTATED_FORMAT
from wireglot_core.dialects.openai_chat.parts import media_part
from wireglot_core.dialects.openai_chat.reasoning import (
    BETWEEN,
    CARRIER,
    DETAILS,
    FIELDS,
    call_carrier,
    carrier_of,
    detail_template,
    holder_of,
    is_separate,
    opaque_details,
    state_field,
    text_key,
)
from wireglot_core.dialects.openai_chat.tools import is_legacy
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
from wireglot_core.ir.loss import Feature, Loss, is_blank, losses_of_extra
from wireglot_core.ir.stream import Delta, PartEnd
from wireglot_core.wire.json import encode, encode_text
from wireglot_core.wire.sse import frame


class Chunks:
    """The chunks of one stream: all constant parts of them are encoded once."""

    def __init__(self, envelope: dict[str, Any], with_usage: bool) -> None:
        self.envelope = envelope
        self._with_usage = with_usage
        usage = b',"usage":null' if with_usage else b""
        # The bytes before and after a delta.
        self.head = b'data: %b,"choices":[{"index":0,"delta":' % encode(envelope)[:-1]
        self.tail = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % usage

    def chunk(
        self,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        logprobs: Any = None,
        choice: dict[str, Any] | None = None,
        top: dict[str, Any] | None = None,
    ) -> bytes:
        """A whole chunk; unknown fields of the choice and of the chunk never replace known ones."""
        only = {**(choice or {}), "index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        chunk = {**self.envelope, "choices": [only]}
        if self._with_usage:
            chunk["usage"] = None
        for key, value in (top or {}).items():
            chunk.setdefault(key, value)
        return frame(encode(chunk))

    def plain(self, fields: dict[str, Any]) -> bytes:
        """A chunk with other choices than the current one."""
        return frame(encode({**self.envelope, **fields}))


class _Sink:
    """An open part: the bytes before and after each of its fragments."""

    __slots__ = ("after", "before", "detail", "field", "held", "kind", "length", "number", "part")

    def __init__(self, part: Part, kind: str) -> None:
        self.part = part
        self.kind = kind  # text, refusal, reasoning, call, custom, whole
        self.before = b""
        self.after = b""
        self.length = 0  # characters written
        self.number = -1  # of a call
        self.field = ""  # of prose
        self.detail: dict[str, Any] | None = None  # the entry of `reasoning_details` that has the same text
        self.held: list[str] = []  # the input of a custom call, the text of a detail


class PartWriter:
    """Writes parts between Start and Finish. `index` and `sink` are those of the last fragment: the stream
    writer writes further fragments of the same part itself."""

    def __init__(
        self, context: Context, chunks: Chunks, losses: list[Loss], custom: frozenset[str] | None
    ) -> None:
        """`custom`: the names of the custom tools the client declared; None: the stream is this dialect's
        own."""
        self._custom = custom
        self._context = context
        self._chunks = chunks
        self._losses = losses
        self._sinks: dict[int, _Sink] = {}
        self.index = -1
        self.sink: _Sink | None = None
        self.calls = 0
        self.refusal = False
        # The part a reader takes for the open one: prose and reasoning have no delimiters.
        self._prose = -1
        self._latest = -1  # the last part of which anything was written
        self.closed: dict[int, Part] = {}  # ended parts, without their texts
        self._separate: set[str] = set()  # kinds whose next text begins with a blank line
        self._text_length = 0
        self._states = 0
        self._citations = 0
        self._images = 0

    def open(self, index: int, part: Part, out: list[bytes]) -> None:
        path = f"$.content[{index}]"
        match part:
            case Text():
                LOST_IN_ANSWERS.of(part, path, self._losses)
                self._lose_own(part.extra, path)
                self._speak(index, part, "refusal" if part.refusal else "text", part.text, out, part.logprobs)
            case Reasoning():
                LOST.of(part, path, self._losses)
                self._lose_own(part.extra, path)
                self._speak(index, part, "reasoning", part.text, out)
            case ToolCall():
                LOST_IN_ANSWERS.of(part, path, self._losses)
                self._call(index, part, out)
            case Media():
                self._sinks[index] = _Sink(part, "whole")
                self._latest = max(self._latest, index)
                LOST_IN_ANSWERS.of(part, path, self._losses)
                self._media(part, path, out)
                self.closed[index] = Media(part.kind, data=part.data and "...")
            case Foreign():
                self._sinks[index] = _Sink(part, "whole")
                if part.dialect == NAME:
                    out.append(self._chunks.chunk({"content": [part.value]}))
                    self._prose = -1
                else:
                    self._losses.append(
                        Loss(path, "foreign_part", "dropped", f"{part.dialect} only: {part.type}")
                    )
            case ToolResult():
                self._sinks[index] = _Sink(part, "whole")
                self._losses.append(NO_RESULTS_IN_ANSWERS.at(path))
            case _:
                assert_never(part)

    def _lose_own(self, extra: Extra | None, path: str) -> None:
        for key, value in own_fields(extra, NAME).items():
            if not is_blank(value):
                self._losses.append(
                    Loss(f"{path}.{key}", "unknown_field", "dropped", "no field for it in a delta")
                )

    def _speak(
        self,
        index: int,
        part: Text | Reasoning,
        kind: str,
        text: str,
        out: list[bytes],
        logprobs: tuple[TokenLogprob, ...] = (),
    ) -> None:
        sink = self._sinks[index] = _Sink(part, kind)
        field = {"text": "content", "refusal": "refusal"}.get(kind, FIELDS[0])
        if kind == "reasoning":
            form = own_form(part.extra, NAME)
            spelled = form.get("field")
            field = spelled if spelled in FIELDS else field
            detail = form.get("detail")
            sink.detail = detail if type(detail) is dict else None
        sink.field = field
        sink.before = b'%b{"%b":' % (self._chunks.head, field.encode())
        sink.after = b"}" + self._chunks.tail
        if text:
            self.delta(Delta(index, text, logprobs), out)

    def _call(self, index: int, part: ToolCall, out: list[bytes]) -> None:
        if part.kind == "custom":
            sink = self._sinks[index] = _Sink(part, "custom")
            sink.held.append(part.arguments)
            return
        sink = self._sinks[index] = _Sink(part, "call")
        self._prose = -1
        self._latest = max(self._latest, index)
        if is_legacy(part.extra):
            self.calls += 1
            out.append(
                self._chunks.chunk({"function_call": {"name": part.name, "arguments": part.arguments}})
            )
            sink.before = self._chunks.head + b'{"function_call":{"arguments":'
            sink.after = b"}}" + self._chunks.tail
            sink.length = len(part.arguments)
            return
        sink.number = self.calls
        self.calls += 1
        self._entry(sink, part, {"name": part.name, "arguments": part.arguments}, out)
        sink.before = b'%b{"tool_calls":[{"index":%d,"function":{"arguments":' % (
            self._chunks.head,
            sink.number,
        )
        sink.after = b"}}]}" + self._chunks.tail
        sink.length = len(part.arguments)

    def _entry(self, sink: _Sink, part: ToolCall, body: dict[str, Any], out: list[bytes]) -> None:
        entry: dict[str, Any] = {"index": sink.number, "id": part.id, "type": part.kind, part.kind: body}
        carrier = call_carrier(part, self._context)
        if carrier is not None:
            entry[CARRIER] = carrier
        for key, value in own_fields(part.extra, NAME).items():
            if "." not in key:
                entry.setdefault(key, value)
        out.append(self._chunks.chunk({"tool_calls": [entry]}))

    def _media(self, part: Media, path: str, out: list[bytes]) -> None:
        losses = self._losses
        if part.kind == "audio" and part.data is not None:
            if part.mime:
                losses.append(UNSTATED_FORMAT.at(f"{path}.mime"))
            known = own_form(part.extra, NAME).get("audio", {})
            native = {key: item for key, item in known.items() if key != "transcript"}  # sent as text
            identifier = self._context.new_id("audio", part.data[:64])
            out.append(self._chunks.chunk({"audio": {"id": identifier, **native, "data": part.data}}))
        elif part.kind != "image":
            losses.append(Loss(path, part.kind, "dropped", "no field for it in an answer"))
            return
        else:
            unsigned = Media(
                part.kind,
                part.mime,
                part.data,
                text=part.text,
                url=part.url,
                file_id=part.file_id,
                name=part.name,
                detail=part.detail,
            )
            entry = media_part(unsigned, path, losses)
            assert entry is not None, "an image can always be said"
            entry["index"] = self._images
            self._images += 1
            out.append(self._chunks.chunk({"images": [entry], **self._state(part, part.signature)}))
        self._prose = -1

    # Fragments

    def delta(self, event: Delta, out: list[bytes]) -> None:
        """Writes a fragment of another part than the last one, or one with logprobs."""
        index = event.index
        sink = self._sinks[index]
        if sink.kind == "custom":
            sink.held.append(event.text)
            return
        if sink.kind == "whole" or not (event.text or event.logprobs):
            return
        if sink.kind != "call":
            self._turn(index, sink)
            if event.text and not sink.length and sink.kind in self._separate:
                self._separate.discard(sink.kind)
                self._text_length += len(BETWEEN) if sink.kind == "text" else 0
                out += (sink.before, encode(BETWEEN), sink.after)
        sink.length += len(event.text)
        if sink.detail is not None:
            self._detailed(sink, event.text, out)
            return
        self.index, self.sink = index, sink
        if event.logprobs and sink.kind in ("text", "refusal"):
            field = "content" if sink.kind == "text" else "refusal"
            reported = {"content": None, "refusal": None, field: render_logprobs(event.logprobs)}
            out.append(self._chunks.chunk({field: event.text}, logprobs=reported))
        elif event.text:
            out += (sink.before, encode(event.text), sink.after)

    def _turn(self, index: int, sink: _Sink) -> None:
        """Switches prose to another part, and checks whether a reader will notice."""
        if self._prose == index:
            return
        if sink.length:
            why = "it was interrupted by another part"
            self._losses.append(Loss(f"$.content[{index}]", "content.position", "approximated", why))
        self._prose = index
        self._latest = max(self._latest, index)
        self.refusal = self.refusal or sink.kind == "refusal"

    def close(self, event: PartEnd, out: list[bytes]) -> None:
        sink = self._sinks.pop(event.index)
        if self.index == event.index:
            self.index, self.sink = -1, None
        path = f"$.content[{event.index}]"
        part = sink.part
        lose_late(event.extra, getattr(part, "extra", None), path, self._losses)
        match sink.kind:
            case "call":
                self._close_call(sink, event, out)
            case "custom":
                assert isinstance(part, ToolCall)
                sink.number = self.calls
                self.calls += 1
                self._prose = -1
                if event.index < self._latest:
                    why = "custom calls are sent when complete"
                    self._losses.append(Loss(path, "content.position", "approximated", why))
                self._latest = max(self._latest, event.index)
                signature = event.signature or part.signature
                self._custom_call(sink, replace(part, signature=signature), path, out)
                self.closed[event.index] = ToolCall(part.id, part.name, "")
            case "text" | "refusal" | "reasoning":
                assert isinstance(part, Text | Reasoning)
                signature = event.signature or part.signature
                citations = event.citations
                if isinstance(part, Text) and (part.citations or citations):
                    self._cite(part.citations + citations, event.index, sink, path, out)
                self._sign(event.index, sink, signature, out)
                if sink.kind == "text":
                    self._text_length += sink.length
                if sink.length and self._custom is not None and is_separate(type(part), signature):
                    self._separate.add(sink.kind)
                self.closed[event.index] = replace(part, text="x" * bool(sink.length), signature=signature)

    def _custom_call(self, sink: _Sink, part: ToolCall, path: str, out: list[bytes]) -> None:
        """Writes one whole entry. openai-python's stream helper fails on any custom call, so only a client
        that declared the tool as custom (and so reads raw chunks) gets it as one."""
        text = "".join(sink.held)
        if self._custom is None or part.name in self._custom:
            self._entry(sink, part, {"name": part.name, "input": text}, out)
            return
        why = "the SDK's stream helper cannot read custom calls: sent as a function of one string"
        self._losses.append(Loss(path, "tool.custom", "emulated", why))
        arguments = encode_text({"input": text})
        self._entry(sink, replace(part, kind="function"), {"name": part.name, "arguments": arguments}, out)

    def _close_call(self, sink: _Sink, event: PartEnd, out: list[bytes]) -> None:
        part = sink.part
        assert isinstance(part, ToolCall)
        self.closed[event.index] = ToolCall(part.id, part.name, "")
        if event.cut:
            self._losses.append(CUT_CALL.at(f"$.content[{event.index}]"))
        elif not sink.length:  # clients decode the concatenated text: no arguments must still be an object
            out += (sink.before, b'"{}"', sink.after)
        entry: dict[str, Any] = {"index": sink.number}
        if event.signature is not None and event.signature != part.signature:
            late = ToolCall(part.id, part.name, "", signature=event.signature, extra=event.extra)
            entry[CARRIER] = call_carrier(late, self._context)
        known = own_fields(part.extra, NAME)
        for key, value in own_fields(event.extra, NAME).items():
            if "." not in key and key not in known:
                entry[key] = value
        if len(entry) > 1 and sink.number >= 0:
            out.append(self._chunks.chunk({"tool_calls": [entry]}))

    def _sign(self, index: int, sink: _Sink, signature: Signature | None, out: list[bytes]) -> None:
        if signature is None:
            return
        if isinstance(sink.part, Reasoning) and sink.part.redacted:
            self._prose = -1
        else:
            self._turn(index, sink)
        details = opaque_details(signature) if isinstance(sink.part, Reasoning) else None
        if details is not None:
            details = self._unreported(index, sink, details)
            numbered = [
                {**item, "index": item["index"] if type(item.get("index")) is int else number}
                for number, item in enumerate(details)
                if type(item) is dict
            ]
            if numbered:
                out.append(self._chunks.chunk({FIELDS[0]: "", DETAILS: numbered}))
        else:
            out.append(self._chunks.chunk(self._state(sink.part, signature, sink.length)))

    def _detailed(self, sink: _Sink, text: str, out: list[bytes]) -> None:
        """Writes a fragment in both fields, like OpenRouter: its clients read one or the other."""
        assert sink.detail is not None
        sink.held.append(text)
        entry = {**sink.detail, text_key(sink.detail): text}
        entry.setdefault("index", 0)
        out.append(self._chunks.chunk({sink.field: text, DETAILS: [entry]}))

    def _unreported(self, index: int, sink: _Sink, details: list[Any]) -> list[Any]:
        """The entries without the text already sent in fragments."""
        if sink.detail is None or not sink.held:
            return details
        key, text = text_key(sink.detail), "".join(sink.held)
        for number, entry in enumerate(details):
            if type(entry) is dict and entry.get(key) == text and detail_template(entry) == sink.detail:
                left = {name: item for name, item in entry.items() if name != key}
                return [*details[:number], *([left] if left != sink.detail else []), *details[number + 1 :]]
        why = "the details arrive in other pieces"
        self._losses.append(Loss(f"$.content[{index}].signature", "reasoning.signature", "approximated", why))
        return details

    def _state(self, part: Part, signature: Signature | None, letters: int = -1) -> dict[str, Any]:
        if signature is None:
            return {}
        state = Sealed(signature, holder_of(part), letters)
        field = state_field(state, self._states, self._context)
        self._states += 1
        return {CARRIER: carrier_of(field)}

    def _cite(self, citations: tuple[Any, ...], index: int, sink: _Sink, path: str, out: list[bytes]) -> None:
        shift = self._text_length
        entries = []
        for number, citation in enumerate(citations):
            place = f"{path}.citations[{number}]"
            entry = render_citation(citation, shift, sink.length, place, self._losses)
            if entry is not None:
                entries.append({**entry, "index": self._citations})
                self._citations += 1
        if not entries:
            return
        if shift:
            why = "offsets count from the start of the answer"
            self._losses.append(Loss(f"{path}.citations", "citations", "approximated", why))
        if sink.length:
            self._turn(index, sink)
        out.append(self._chunks.chunk({"annotations": entries}))


def lose_late(
    late: Extra | None, early: Extra | None, path: str, losses: list[Loss], feature: Feature = "unknown_field"
) -> None:
    """Report what is known only at the end, after the start was sent."""
    if late is not None and late.dialect != NAME:
        reported = early.fields if early is not None else {}
        fresh = {key: value for key, value in late.fields.items() if key not in reported}
        losses_of_extra(Extra(late.dialect, fresh), NAME, path, losses, feature)
