"""Assembles the parts of a streamed answer from deltas."""

from __future__ import annotations

import base64
from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_chat.citations import parse_citation
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_chat.parts import parse_part, thinking_text
from wireglot_core.dialects.openai_chat.reasoning import (
    BETWEEN,
    CARRIER,
    DETAILS,
    FIELDS,
    call_signature,
    delta_signature,
    detail_template,
    details_data,
    details_text,
    is_opaque,
    is_separate,
    parse_states,
)
from wireglot_core.dialects.openai_chat.repeated_calls import is_repeated
from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Media,
    Origin,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
)
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.stream import Delta, Event, PartEnd, PartStart
from wireglot_core.wire.json import encode_text

_DELTA = frozenset({"role", "content", "refusal", "tool_calls", "function_call", "annotations", "images"}) | {
    *("audio", "obfuscation", *FIELDS, DETAILS, CARRIER)
}
_CALL = frozenset({"index", "id", "type", "function", "custom", CARRIER})
_FIRST = frozenset({"role", "content"})
_KINDS: dict[str, type[Text] | type[Reasoning]] = {"text": Text, "reasoning": Reasoning}
_LEGACY = -(1 << 40)  # index for the one `function_call`; GLM counts real calls from -1


class _Call:
    """An open call. It starts when its name is known, and its id or the first of its arguments."""

    __slots__ = (
        "custom", "extra", "form", "id", "index", "name", "ordinal", "said", "sent", "signature", "waiting",
    )  # fmt: skip

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.id = ""
        self.name = ""
        self.custom = False
        self.index = -1
        self.waiting: list[str] = []
        self.said: list[str] = []  # of its arguments, once it is open
        self.signature: Signature | None = None
        self.extra: dict[str, Any] = {}
        self.sent: dict[str, Any] = {}  # the part of extra already sent
        self.form: dict[str, Any] = {}


class Assembly:
    """Opens and closes parts as the kind of the deltas changes; calls stay open, because they interleave."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._origin = Origin(NAME)
        self._google = Origin("gemini")
        self._response_id = ""
        self.count = 0
        self.called = False
        self.refused = False
        self.unknown: dict[str, Any] = {}
        self._open = -1  # the part of prose or reasoning that is open
        self._kind = ""  # its kind: text, refusal, reasoning
        self._signature: Signature | None = None
        self._separate: set[str] = set()  # kinds whose next text begins with our own blank line
        self._citations: list[Citation] = []
        self._details: list[dict[str, Any]] = []
        self._sound: list[str] = []  # base64, split wherever a piece of audio ends
        self._sound_form: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._opened: dict[int, _Call] = {}  # by their part
        self._highest = _LEGACY  # of the indexes of calls so far
        self.is_in_order = True
        """Whether the index of each new call was higher than those before."""

    def begin(self, response_id: str, model: str) -> None:
        self._response_id = response_id
        self._origin = self._context.origin(NAME, model)
        self._google = Origin("gemini", self._origin.provider, self._origin.model, self._origin.account)

    # One delta

    def delta(self, delta: dict[str, Any], logprobs: tuple[TokenLogprob, ...], out: list[Event]) -> None:
        if len(delta) > 1 or "content" not in delta:
            self._reasoning(delta, out)
        content = delta.get("content")
        if type(content) is str:
            if self._separate and content:
                content = self._begun("text", content)
            if content or logprobs:
                if self._kind != "text":
                    self._switch("text", "", out)
                out.append(Delta(self._open, content, logprobs))
        elif content is not None:
            self._content(content, out)
        if len(delta) == 1 and content is not None:
            return
        refusal = delta.get("refusal")
        if type(refusal) is str and refusal:
            if self._kind != "refusal":
                self._switch("refusal", "", out)
            out.append(Delta(self._open, refusal, logprobs if content is None else ()))
        calls = delta.get("tool_calls")
        if type(calls) is list:
            for call in calls:
                if type(call) is dict:
                    self._call(call, out)
        legacy = delta.get("function_call")
        if type(legacy) is dict and not is_hollow(legacy):
            self._call({"index": _LEGACY, "function": legacy}, out)
        if delta.keys() - _FIRST:
            self._rest(delta, out)

    def _rest(self, delta: dict[str, Any], out: list[Event]) -> None:
        annotations = delta.get("annotations")
        if type(annotations) is list:
            self._citations += [parse_citation(_unnumbered(item)) for item in annotations]
            if self._kind != "text" and annotations:
                self._switch("text", "", out)
        taken: set[str] = set()
        signed: Signature | None = None
        google = delta_signature(delta, self._google) if CARRIER in delta else None
        if google is not None:
            if self._kind != "text":
                self._switch("text", "", out)
            self._signature = google
        for state in parse_states(delta, taken, self._context):
            match state.holder:
                case "redacted":
                    self._whole(Reasoning("", state.signature, redacted=True), out)
                case "reasoning" | "text":
                    if self._kind != state.holder:
                        self._switch(state.holder, "", out)
                    self._signature = state.signature
                    if is_separate(_KINDS[state.holder], state.signature):
                        self._separate.add(self._kind)
                    self._shut(out)  # it comes after its part: the next text is another one
                case "media":
                    signed = state.signature
                case "call" | "unsigned":
                    pass
        images = delta.get("images")
        if type(images) is list:
            for index, item in enumerate(images):
                image = parse_part(_unnumbered(item), f"$.delta.images[{index}]", UpstreamFault)
                if signed is not None and isinstance(image, Media):
                    image = replace(image, signature=signed)
                self._whole(image, out)
        audio = delta.get("audio")
        if type(audio) is dict and not is_hollow(audio):
            self._audio(audio, out)
        for key, item in delta.items():  # in the order of the wire: output must not depend on hashes
            if key not in _DELTA and item is not None and not is_hollow(item):
                self.unknown[f"message.{key}"] = item

    def _audio(self, audio: dict[str, Any], out: list[Event]) -> None:
        """Spoken answers: the transcript is the text; the sound is one part at the end."""
        transcript, data = audio.get("transcript"), audio.get("data")
        if type(transcript) is str and transcript:
            if self._kind != "text":
                self._switch("text", "audio", out)
            out.append(Delta(self._open, transcript))
        if type(data) is str and data:
            self._sound.append(data)
        self._sound_form.update(
            {key: item for key, item in audio.items() if key not in ("transcript", "data")}
        )

    # Prose and reasoning

    def _switch(self, kind: str, field: str, out: list[Event], detail: dict[str, Any] | None = None) -> None:
        self._shut(out)
        if kind == "reasoning":
            form: dict[str, Any] = {"field": field} if field and field != FIELDS[0] else {}
            if detail is not None:
                form["detail"] = detail
            extra = Extra(NAME, {}, form) if form else None
            out.append(PartStart(self.count, Reasoning(extra=extra)))
        else:
            self.refused = self.refused or kind == "refusal"
            extra = Extra(NAME, {}, {"field": field}) if field == "audio" else None
            out.append(PartStart(self.count, Text("", refusal=kind == "refusal", extra=extra)))
        self._kind = kind
        self._open = self.count
        self.count += 1

    def _begun(self, kind: str, text: str) -> str:
        """The first text after a part of this kind that a state has closed, without the blank line that
        separates the two for clients that show them as one."""
        if kind not in self._separate:
            return text
        self._separate.discard(kind)
        return text.removeprefix(BETWEEN)

    def _shut(self, out: list[Event]) -> None:
        """End the open part of prose or reasoning."""
        if self._open < 0:
            return
        citations: tuple[Citation, ...] = ()
        if self._kind == "text" and self._citations:
            citations = tuple(self._citations)
            self._citations = []
        signature = self._signature
        self._signature = None
        if self._kind == "reasoning" and signature is None:
            signature = self._seal_details()
        out.append(PartEnd(self._open, signature, citations))
        self._open = -1
        self._kind = ""

    def _seal_details(self) -> Signature | None:
        details, self._details = self._details, []
        return Signature(details_data(details), self._origin) if is_opaque(details) else None

    def _reasoning(self, delta: dict[str, Any], out: list[Event]) -> None:
        text, field = "", ""
        for name in FIELDS:
            value = delta.get(name)
            if type(value) is str and not text:
                text, field = value, name
        details = delta.get(DETAILS)
        if type(details) is list and details:
            self._detail(details)
            if not field:
                text, field = details_text([item for item in details if type(item) is dict]), "details"
            if not text and self._kind == "" and is_opaque(self._details):
                self._switch("reasoning", field, out)
        if self._separate and text:
            text = self._begun("reasoning", text)
        if text:
            if self._kind != "reasoning":
                reported = details[0] if type(details) is list and details else None
                self._switch(
                    "reasoning", field, out, detail_template(reported) if type(reported) is dict else None
                )
            out.append(Delta(self._open, text))

    def _detail(self, details: list[Any]) -> None:
        """Join the fragments of `reasoning_details`: entries of one index and type are one entry."""
        for item in details:
            if type(item) is not dict:
                continue
            last = self._details[-1] if self._details else None
            if last is None or type(item.get("index")) is not int or not _is_same_entry(last, item):
                self._details.append(dict(item))
                continue
            for key, value in item.items():
                before = last.get(key)
                if key in ("text", "summary", "data") and type(before) is str and type(value) is str:
                    last[key] = before + value
                elif value is not None or key not in last:
                    last[key] = value

    def _content(self, content: Any, out: list[Event]) -> None:
        """Mistral's lists: text and thinking chunks, and things like references."""
        for index, item in enumerate(content if type(content) is list else [content]):
            if type(item) is dict and item.get("type") == "thinking":
                text, kind = thinking_text(item.get("thinking")), "reasoning"
            elif type(item) is dict and item.get("type") == "text":
                text, kind = item.get("text"), "text"
            else:
                text, kind = item, "text"
            if type(text) is not str:
                self._whole(parse_part(item, f"$.delta.content[{index}]", UpstreamFault), out)
            elif text:
                if self._kind != kind:
                    self._switch(kind, "content", out)
                out.append(Delta(self._open, text))

    def _whole(self, part: Text | Media | Reasoning | Foreign, out: list[Event]) -> None:
        """Handles a part that arrives in one piece."""
        self._shut(out)
        if isinstance(part, Text) and part.text:
            out.append(PartStart(self.count, Text("", part.refusal, extra=part.extra)))
            out.append(Delta(self.count, part.text))
        else:
            out.append(PartStart(self.count, part))
        out.append(PartEnd(self.count))
        self.count += 1

    # Calls

    def _call(self, value: dict[str, Any], out: list[Event]) -> None:
        custom = value.get("type") == "custom" or ("custom" in value and not value.get("function"))
        inner = value.get("custom" if custom else "function")
        held: dict[str, Any] = inner if type(inner) is dict else {}
        identifier, name = value.get("id"), held.get("name")
        identifier = identifier if type(identifier) is str else "" if identifier is None else str(identifier)
        name = name if type(name) is str else ""
        call = self._find(value.get("index"), identifier, name)
        call.custom = call.custom or custom
        if not call.id and call.index < 0:
            self._name(call, identifier)
        if not call.name:
            call.name = name
        signature, native = call_signature(value, self._context, self._google)
        if signature is not None:
            call.signature = signature
            if native:
                call.form[CARRIER] = value[CARRIER]
        for key, item in value.items():
            if key not in _CALL and item is not None:
                call.extra[key] = item
        arguments = held.get("input" if custom else "arguments")
        if arguments is not None and type(arguments) is not str:
            arguments = encode_text(arguments)
        if call.index < 0:
            if arguments:
                call.waiting.append(arguments)
            if call.name and (call.id or call.waiting):
                self._open_call(call, out)
        elif arguments and not (call.said and is_repeated(call.said, arguments)):
            call.said.append(arguments)
            out.append(Delta(call.index, arguments))

    def arguments_of(self, index: int) -> list[str] | None:
        """The arguments so far of the call at this index of the answer; None if it is not a call."""
        call = self._opened.get(index)
        return call.said if call is not None else None

    def _find(self, index: Any, identifier: str, name: str) -> _Call:
        """The call a fragment belongs to; a new one if none of the known ones matches."""
        if type(index) is int:
            call = self._by_index.get(index)
            # Two calls under one index: the second has another id and a name.
            if call is None or (identifier and call.id and identifier != call.id and name):
                call = self._by_index[index] = self._new(index)
                if index <= self._highest and index != _LEGACY:
                    self.is_in_order = False
                self._highest = index
            return call
        if identifier:
            known = self._by_id.get(identifier)
            if known is not None:
                return known
        if self._calls and not identifier and not name:
            return self._calls[-1]
        return self._new(None)

    def _new(self, index: int | None) -> _Call:
        call = _Call(len(self._calls))
        if index == _LEGACY:
            call.form["legacy"] = True
        self._calls.append(call)
        return call

    def _name(self, call: _Call, identifier: str) -> None:
        call.id = identifier
        if identifier:
            self._by_id.setdefault(identifier, call)

    def _open_call(self, call: _Call, out: list[Event]) -> None:
        self._shut(out)
        self.called = True
        if not call.id:
            minted = self._response_id, str(call.ordinal), call.name
            self._name(call, self._context.new_id(self._context.call_prefix, *minted))
        call.index = self.count
        self._opened[call.index] = call
        self.count += 1
        extra = Extra(NAME, dict(call.extra), call.form) if call.extra or call.form else None
        part = ToolCall(call.id, call.name, "", signature=call.signature, extra=extra)
        out.append(PartStart(call.index, replace(part, kind="custom") if call.custom else part))
        call.sent = dict(call.extra)
        call.signature = None
        if call.waiting:
            text = "".join(call.waiting)
            out.append(Delta(call.index, text))
            call.said.append(text)
            call.waiting.clear()

    def close(self, out: list[Event]) -> None:
        """End everything that is open."""
        if self._citations and self._kind != "text":
            self._switch("text", "", out)
        self._shut(out)
        for call in self._calls:
            if call.index < 0 and (call.name or call.id or call.waiting):
                if not call.name:
                    raise UpstreamFault("expected the name of a tool", "$.delta.tool_calls")
                self._open_call(call, out)
        for call in self._calls:
            if call.index >= 0:
                extra = Extra(NAME, call.extra, call.form) if call.extra != call.sent else None
                out.append(PartEnd(call.index, call.signature, extra=extra))
        signature = self._seal_details()
        if signature is not None:
            self._whole(Reasoning("", signature), out)
        if self._sound:
            extra = Extra(NAME, {}, {"audio": self._sound_form})
            self._whole(Media("audio", "", _join_base64(self._sound), extra=extra), out)


def _join_base64(pieces: list[str]) -> str:
    if not any("=" in piece for piece in pieces[:-1]):
        return "".join(pieces)
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode()
    except ValueError:
        return "".join(pieces)


def _is_same_entry(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one.get("index") == other["index"] and one.get("type") == other.get("type"))


def _unnumbered(item: Any) -> Any:
    """List extensions have an `index` in streams, for the SDK's sake."""
    if type(item) is dict and type(item.get("index")) is int:
        return {key: value for key, value in item.items() if key != "index"}
    return item
