"""Events, as chunks for a client.

What openai-python demands (it accumulates whatever it gets): the role first and once; id, type and name of a
call once; `index` on every entry of a list; a custom call as one whole entry; nothing behind the usage but
`[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from wireglot.dialects.base import Context
from wireglot.dialects.fields import own_fields, own_form
from wireglot.dialects.openai_chat.errors import render_error
from wireglot.dialects.openai_chat.outcome import render_logprobs, render_stop, render_tier, render_usage
from wireglot.dialects.openai_chat.parts import NAME, lose_cache, media_part, render_citation
from wireglot.dialects.openai_chat.reasoning import (
    CARRIER,
    DETAILS,
    FIELDS,
    call_carrier,
    carrier_of,
    holder_of,
    opaque_details,
    state_field,
)
from wireglot.dialects.openai_chat.response import MALFORMED, response_id
from wireglot.dialects.openai_chat.tools import is_legacy
from wireglot.ir.content import Extra, Foreign, Media, Part, Reasoning, Signature, Text, ToolCall, ToolResult
from wireglot.ir.errors import ApiError
from wireglot.ir.loss import Loss, is_blank, losses_of_extra
from wireglot.ir.outcome import Usage
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
)
from wireglot.wire.json import encode
from wireglot.wire.sse import frame

_DONE = b"data: [DONE]\n\n"


class _Sink:
    """An open part: the bytes before and behind each of its fragments."""

    __slots__ = ("after", "before", "held", "kind", "length", "number", "part")

    def __init__(self, part: Part, kind: str) -> None:
        self.part = part
        self.kind = kind  # text, refusal, reasoning, call, custom, whole
        self.before = b""
        self.after = b""
        self.length = 0  # characters written
        self.number = -1  # of a call
        self.held: list[str] = []  # the input of a custom call


class ChatWriter:
    def __init__(self, context: Context, request: Request | None = None) -> None:
        self.losses: list[Loss] = []
        self._context = context
        self._wants_usage = request is None or _asks_usage(request)
        self._head = b""  # everything of a chunk up to its delta
        self._tail = b""  # and behind it
        self._envelope: dict[str, Any] = {}
        self._sinks: dict[int, _Sink] = {}
        self._index = -1  # the part of the last fragment, and its sink
        self._sink: _Sink | None = None
        self._prose = (
            -1
        )  # the part a reader takes for the open one: prose and reasoning have no marks of their own
        self._prose_kind = ""
        self._latest = -1  # the last part of which anything is out
        self._text_length = 0
        self._calls = 0
        self._states = 0
        self._citations = 0
        self._images = 0
        self._refusal = False
        self._usage: Usage | None = None
        self._start_extra: Extra | None = None
        self._ended = False

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                sink = self._sink
                if event.index == self._index and sink is not None and not event.logprobs:
                    text = event.text
                    if text:
                        sink.length += len(text)
                        out += (sink.before, encode(text), sink.after)
                else:
                    self._delta(event, out)
            elif not self._ended:
                self._event(event, out)
        return b"".join(out)

    def _event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case PartStart():
                self._open(event.index, event.part, out)
            case PartEnd():
                self._close(event, out)
            case Delta():
                raise AssertionError("deltas are written before")
            case Start():
                self._start(event, out)
            case UsageReport():
                self._usage = event.usage
            case ForeignEvent():
                self._foreign(event, out)
            case Finish():
                self._finish(event, out)
            case Failure():
                self._fail(event.error, out)
            case _:
                assert_never(event)

    # Chunks

    def _start(self, event: Start, out: list[bytes]) -> None:
        extra = event.extra
        losses_of_extra(extra, NAME, "$", self.losses, "response.extra")
        self._start_extra = extra
        native = bool(own_form(extra, NAME).get("native"))
        self._envelope = {
            "id": response_id(event.id, native, self._context, event.model, str(event.created)),
            "object": "chat.completion.chunk",
            "created": event.created or self._context.now,
            "model": event.model,
        }
        self._usage = event.usage
        usage = b',"usage":null' if self._wants_usage else b""
        head = encode(self._envelope)[:-1]
        self._head = b'data: %b,"choices":[{"index":0,"delta":' % head
        self._tail = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % usage
        top = {key: value for key, value in own_fields(extra, NAME).items() if "." not in key}
        if event.service_tier:
            tier = render_tier(event.service_tier, native, "$.service_tier", self.losses)
            if tier is not None:
                top["service_tier"] = tier
        self._chunk({"role": "assistant", "content": ""}, out, top=top)

    def _chunk(
        self,
        delta: dict[str, Any],
        out: list[bytes],
        *,
        finish: str | None = None,
        logprobs: Any = None,
        choice: dict[str, Any] | None = None,
        top: dict[str, Any] | None = None,
    ) -> None:
        only = {**(choice or {}), "index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        chunk = {**self._envelope, "choices": [only]}
        if self._wants_usage:
            chunk["usage"] = None
        for key, value in (top or {}).items():
            chunk.setdefault(key, value)
        out.append(frame(encode(chunk)))

    # Parts

    def _open(self, index: int, part: Part, out: list[bytes]) -> None:
        path = f"$.content[{index}]"
        losses_of_extra(getattr(part, "extra", None), NAME, path, self.losses)
        match part:
            case Text():
                lose_cache(part.cache, path, self.losses)
                self._lose_own(part.extra, path)
                self._speak(index, part, "refusal" if part.refusal else "text", part.text, out)
            case Reasoning():
                self._lose_own(part.extra, path)
                self._speak(index, part, "reasoning", part.text, out)
            case ToolCall():
                self._call(index, part, path, out)
            case Media():
                self._sinks[index] = _Sink(part, "whole")
                self._latest = max(self._latest, index)
                self._media(part, path, out)
            case Foreign():
                self._sinks[index] = _Sink(part, "whole")
                if part.dialect == NAME:
                    self._chunk({"content": [part.value]}, out)
                    self._prose = -1
                else:
                    self.losses.append(
                        Loss(path, "foreign_part", "dropped", f"{part.dialect} only: {part.type}")
                    )
            case ToolResult():
                self._sinks[index] = _Sink(part, "whole")
                self.losses.append(Loss(path, "content.position", "dropped", "no results in an answer"))
            case _:
                assert_never(part)

    def _lose_own(self, extra: Extra | None, path: str) -> None:
        for key, value in own_fields(extra, NAME).items():
            if not is_blank(value):
                self.losses.append(Loss(f"{path}.{key}", "unknown_field", "dropped", "no place in a delta"))

    def _speak(self, index: int, part: Text | Reasoning, kind: str, text: str, out: list[bytes]) -> None:
        sink = self._sinks[index] = _Sink(part, kind)
        field = {"text": "content", "refusal": "refusal"}.get(kind, FIELDS[0])
        if kind == "reasoning":
            spelled = own_form(part.extra, NAME).get("field")
            field = spelled if spelled in FIELDS else field
        sink.before = b'%b{"%b":' % (self._head, field.encode())
        sink.after = b"}" + self._tail
        if text:
            self._delta(Delta(index, text), out)

    def _call(self, index: int, part: ToolCall, path: str, out: list[bytes]) -> None:
        if part.namespace:
            self.losses.append(
                Loss(f"{path}.namespace", "tool.namespace", "dropped", "Chat has no namespaces")
            )
        lose_cache(part.cache, path, self.losses)
        if part.kind == "custom":
            sink = self._sinks[index] = _Sink(part, "custom")
            sink.held.append(part.arguments)
            return
        sink = self._sinks[index] = _Sink(part, "call")
        self._prose = -1
        self._latest = max(self._latest, index)
        if is_legacy(part.extra):
            self._calls += 1
            self._chunk({"function_call": {"name": part.name, "arguments": part.arguments}}, out)
            sink.before = self._head + b'{"function_call":{"arguments":'
            sink.after = b"}}" + self._tail
            return
        sink.number = self._calls
        self._calls += 1
        self._entry(sink, part, {"name": part.name, "arguments": part.arguments}, out)
        sink.before = b'%b{"tool_calls":[{"index":%d,"function":{"arguments":' % (self._head, sink.number)
        sink.after = b"}}]}" + self._tail

    def _entry(self, sink: _Sink, part: ToolCall, body: dict[str, Any], out: list[bytes]) -> None:
        entry: dict[str, Any] = {"index": sink.number, "id": part.id, "type": part.kind, part.kind: body}
        carrier = call_carrier(part, self._context.secret)
        if carrier is not None:
            entry[CARRIER] = carrier
        for key, value in own_fields(part.extra, NAME).items():
            if "." not in key:
                entry.setdefault(key, value)
        self._chunk({"tool_calls": [entry]}, out)

    def _media(self, part: Media, path: str, out: list[bytes]) -> None:
        losses = self.losses
        if part.kind == "audio" and part.data is not None:
            if part.mime:
                losses.append(Loss(f"{path}.mime", "audio", "dropped", "answers do not tell the format"))
            native = own_form(part.extra, NAME).get("audio", {})
            identifier = self._context.new_id("audio", part.data[:64])
            self._chunk({"audio": {"id": identifier, **native, "data": part.data}}, out)
        elif part.kind != "image":
            losses.append(Loss(path, part.kind, "dropped", "no place in an answer"))
            return
        else:
            unsigned = Media(
                part.kind, part.mime, part.data, part.text, part.url, part.file_id, part.name, part.detail
            )
            entry = media_part(unsigned, path, losses)
            assert entry is not None, "an image can always be said"
            entry["index"] = self._images
            self._images += 1
            self._chunk({"images": [entry], **self._state(part, part.signature)}, out)
        self._prose = -1

    # Fragments

    def _delta(self, event: Delta, out: list[bytes]) -> None:
        """A fragment of another part than the last one, or with logprobs."""
        if self._ended:
            return
        index = event.index
        sink = self._sinks[index]
        if sink.kind == "custom":
            sink.held.append(event.text)
            return
        if sink.kind == "whole" or not (event.text or event.logprobs):
            return
        if sink.kind != "call":
            self._turn(index, sink, out)
        self._index, self._sink = index, sink
        sink.length += len(event.text)
        if event.logprobs and sink.kind in ("text", "refusal"):
            field = "content" if sink.kind == "text" else "refusal"
            told = {"content": None, "refusal": None, field: render_logprobs(event.logprobs)}
            self._chunk({field: event.text}, out, logprobs=told)
        elif event.text:
            out += (sink.before, encode(event.text), sink.after)

    def _turn(self, index: int, sink: _Sink, out: list[bytes]) -> None:
        """Prose turns to another part: see whether a reader will notice."""
        if self._prose == index:
            return
        if sink.length:
            why = "it was interrupted by another part"
            self.losses.append(Loss(f"$.content[{index}]", "content.position", "approximated", why))
        elif self._prose >= 0 and self._prose_kind == sink.kind:
            why = "it continues the part before it"
            self.losses.append(Loss(f"$.content[{index}]", "content.position", "approximated", why))
            if sink.kind == "reasoning":
                out += (sink.before, b'"\\n\\n"', sink.after)
        self._prose, self._prose_kind = index, sink.kind
        self._latest = max(self._latest, index)
        self._refusal = self._refusal or sink.kind == "refusal"

    def _close(self, event: PartEnd, out: list[bytes]) -> None:
        sink = self._sinks.pop(event.index)
        if self._index == event.index:
            self._index, self._sink = -1, None
        path = f"$.content[{event.index}]"
        losses_of_extra(event.extra, NAME, path, self.losses)
        part = sink.part
        match sink.kind:
            case "call":
                self._close_call(sink, event, out)
            case "custom":
                assert isinstance(part, ToolCall)
                sink.number = self._calls
                self._calls += 1
                self._prose = -1
                if event.index < self._latest:
                    why = "custom calls are sent when complete"
                    self.losses.append(Loss(path, "content.position", "approximated", why))
                self._latest = max(self._latest, event.index)
                signature = event.signature or part.signature
                whole = ToolCall(part.id, part.name, "", "custom", signature=signature, extra=part.extra)
                self._entry(sink, whole, {"name": part.name, "input": "".join(sink.held)}, out)
            case "text" | "refusal" | "reasoning":
                assert isinstance(part, Text | Reasoning)
                signature = event.signature or part.signature
                self._sign(event.index, sink, signature, out)
                citations = event.citations
                if isinstance(part, Text) and (part.citations or citations):
                    self._cite(part.citations + citations, event.index, sink, path, out)
                if sink.kind == "text":
                    self._text_length += sink.length
                elif sink.kind == "reasoning" and not sink.length and signature is None:
                    self.losses.append(
                        Loss(path, "reasoning.text", "dropped", "an empty one cannot be told from none")
                    )

    def _close_call(self, sink: _Sink, event: PartEnd, out: list[bytes]) -> None:
        part = sink.part
        assert isinstance(part, ToolCall)
        entry: dict[str, Any] = {"index": sink.number}
        if event.signature is not None and event.signature != part.signature:
            late = ToolCall(part.id, part.name, "", signature=event.signature, extra=event.extra)
            entry[CARRIER] = call_carrier(late, self._context.secret)
        known = own_fields(part.extra, NAME)
        for key, value in own_fields(event.extra, NAME).items():
            if "." not in key and key not in known:
                entry[key] = value
        if len(entry) > 1 and sink.number >= 0:
            self._chunk({"tool_calls": [entry]}, out)

    def _sign(self, index: int, sink: _Sink, signature: Signature | None, out: list[bytes]) -> None:
        if signature is None:
            return
        if isinstance(sink.part, Reasoning) and sink.part.redacted:
            self._prose = -1
        else:
            self._turn(index, sink, out)
        details = opaque_details(signature) if isinstance(sink.part, Reasoning) else None
        if details is not None:
            numbered = [
                {**item, "index": item["index"] if type(item.get("index")) is int else number}
                for number, item in enumerate(details)
                if type(item) is dict
            ]
            self._chunk({FIELDS[0]: "", DETAILS: numbered}, out)
        else:
            self._chunk(self._state(sink.part, signature), out)

    def _state(self, part: Part, signature: Signature | None) -> dict[str, Any]:
        if signature is None:
            return {}
        field = state_field(signature, holder_of(part), self._states, self._context.secret)
        self._states += 1
        return {CARRIER: carrier_of(field)}

    def _cite(self, citations: tuple[Any, ...], index: int, sink: _Sink, path: str, out: list[bytes]) -> None:
        shift = self._text_length
        entries = []
        for number, citation in enumerate(citations):
            entry = render_citation(citation, shift, f"{path}.citations[{number}]", self.losses)
            if entry is not None:
                entries.append({**entry, "index": self._citations})
                self._citations += 1
        if not entries:
            return
        if shift:
            why = "they count from the start of the answer"
            self.losses.append(Loss(f"{path}.citations", "citations", "approximated", why))
        if sink.length:
            self._turn(index, sink, out)
        self._chunk({"annotations": entries}, out)

    # Ends

    def _foreign(self, event: ForeignEvent, out: list[bytes]) -> None:
        if event.dialect != NAME:
            self.losses.append(Loss("$", "foreign_event", "dropped", f"{event.dialect} only: {event.type}"))
        elif event.type == "choice":
            out.append(frame(encode({**self._envelope, **event.value})))
        else:
            out.append(frame(encode(event.value), event.type.encode("utf-8", "replace")))

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        stop = event.stop
        if stop.reason == "malformed_call" and stop.dialect != NAME:
            self._fail(MALFORMED, out)
            return
        self._ended = True
        extra = event.extra
        told = self._start_extra.fields if self._start_extra is not None else {}
        if extra is not None and extra.dialect != NAME:
            fresh = {key: value for key, value in extra.fields.items() if key not in told}
            losses_of_extra(Extra(extra.dialect, fresh), NAME, "$", self.losses, "response.extra")
        delta: dict[str, Any] = {}
        choice: dict[str, Any] = {}
        top: dict[str, Any] = {}
        for key, value in own_fields(extra if extra is not None else self._start_extra, NAME).items():
            level, dot, tail = key.partition(".")
            if level == "message" and dot:
                delta[tail] = value
            elif level == "choice" and dot:
                choice[tail] = value
            elif key not in told or told[key] != value:
                top[key] = value
        if event.service_tier:
            native = stop.dialect == NAME
            tier = render_tier(event.service_tier, native, "$.service_tier", [])
            if tier is not None:
                top["service_tier"] = tier
        finish = render_stop(stop, self._calls > 0, self._refusal, self.losses)
        self._chunk(delta, out, finish=finish, choice=choice, top=top)
        usage = event.usage if event.usage is not None else self._usage
        if self._wants_usage and usage is not None:
            chunk = {**self._envelope, "choices": [], "usage": render_usage(usage, self.losses)}
            out.append(frame(encode(chunk)))
        out.append(_DONE)

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        """One error and no `[DONE]`. openai-python looks for a top-level `error` and for nothing else."""
        self._ended = True
        body = render_error(error)
        if not body.get("error"):
            body = render_error(ApiError(error.kind, error.message, code=error.code, param=error.param))
        out.append(frame(encode(body)))


def _asks_usage(request: Request) -> bool:
    options = own_form(request.extra, NAME).get("stream_options")
    return type(options) is dict and bool(options.get("include_usage"))
