"""Open blocks of an upstream stream: each converts its start, deltas and stop into events.

A block whose part is known at its start opens that part at once. Two kinds wait: thinking, until it has a
text (an envelope for the following part never does), and a block of an unknown kind, which becomes one whole
part.
"""

from __future__ import annotations

from typing import Any, Protocol

from wireglot_core.dialects.anthropic.citations import parse_citation
from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.anthropic.parts import call_text
from wireglot_core.dialects.anthropic.reasoning import open_signature, unsigned_mark
from wireglot_core.dialects.arguments import PARSE_ERROR
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import Sealed
from wireglot_core.dialects.fields import Fields
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.stream import Delta, Event, ForeignEvent, PartEnd, PartStart
from wireglot_core.wire.json import BadJson, decode, encode_text

Input = dict[str, Any] | list[Any]
"""The input of a block's start: an object, or what some hosts write there."""

_WRAPPED = f'{{"{PARSE_ERROR}"'


class Parts:
    """State shared by the blocks of one stream: the next index, the state held for the next part, the
    calls."""

    __slots__ = ("calls", "context", "held", "next", "origin", "response_id")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.origin: Origin = context.origin(NAME)
        self.response_id = ""
        self.next = 0
        self.calls = 0
        self.held: Sealed | None = None

    def start(self, part: Part, out: list[Event]) -> int:
        index = self.next
        self.next += 1
        out.append(PartStart(index, part))
        return index

    def claim(self, holder: str) -> Signature | None:
        """The state that was sent before the part that starts now, if it belongs to it."""
        held, self.held = self.held, None
        return held.signature if held is not None and held.holder == holder else None


class OpenBlock(Protocol):
    def delta(self, delta: dict[str, Any], out: list[Event]) -> bool:
        """Process a delta; False if this kind of block has no such delta."""
        ...

    def stop(self, out: list[Event]) -> None: ...


class OpenText:
    __slots__ = ("_citations", "index")

    def __init__(self, part: Text, text: str, parts: Parts, out: list[Event]) -> None:
        self._citations: list[Citation] = []
        self.index = parts.start(part, out)
        if text:
            out.append(Delta(self.index, text))

    def delta(self, delta: dict[str, Any], out: list[Event]) -> bool:
        match delta.get("type"):
            case "text_delta":
                if type(text := delta.get("text")) is str and text:
                    out.append(Delta(self.index, text))
            case "citations_delta" if type(delta.get("citation")) is dict:
                self._citations.append(parse_citation(Fields(delta["citation"], "$", UpstreamFault)))
            case _:
                return False
        return True

    def stop(self, out: list[Event]) -> None:
        out.append(PartEnd(self.index, citations=tuple(self._citations)))


class OpenThinking:
    __slots__ = ("_extra", "_parts", "_signature", "_spelling", "index")

    def __init__(
        self, extra: Extra | None, text: str, signature: str | None, parts: Parts, out: list[Event]
    ) -> None:
        self._parts = parts
        self._extra = extra
        self._signature = signature or ""
        self._spelling = "absent" if signature is None else "empty"
        self.index = -1
        if text:
            self._show(text, out)

    def _show(self, text: str, out: list[Event]) -> None:
        if self.index < 0:
            self._parts.held = None
            self.index = self._parts.start(Reasoning(extra=self._extra), out)
        if text:
            out.append(Delta(self.index, text))

    def delta(self, delta: dict[str, Any], out: list[Event]) -> bool:
        match delta.get("type"):
            case "thinking_delta":
                if type(text := delta.get("thinking")) is str and text:
                    self._show(text, out)
                if delta.get("estimated_tokens"):
                    # The progress of hidden thinking, for a progress bar: not used for counting.
                    self._show("", out)
                    out.append(foreign_delta(self.index, {**delta, "thinking": ""}))
            case "signature_delta":
                if type(signature := delta.get("signature")) is str:
                    self._signature = signature  # always complete; a second one replaces the first
            case _:
                return False
        return True

    def stop(self, out: list[Event]) -> None:
        if not self._signature:
            self._show("", out)
            fields = self._extra.fields if self._extra is not None else {}
            out.append(PartEnd(self.index, extra=unsigned_mark(fields, self._spelling)))
            return
        sealed = open_signature(self._signature, self._parts.context, self._parts.origin)
        if self.index < 0 and sealed.holder in ("call", "text", "media"):
            self._parts.held = sealed
            return
        self._show("", out)
        out.append(PartEnd(self.index, sealed.signature if sealed.holder == "reasoning" else None))


class OpenCall:
    """A `tool_use` block. A start without input streams its deltas through; one with input is a defect of
    some hosts, and which of the two texts is valid is decided when the block stops."""

    __slots__ = ("_given", "_pieces", "_through", "index")

    def __init__(self, call: ToolCall, given: Input | None, parts: Parts, out: list[Event]) -> None:
        self._given = given
        self._pieces: list[str] = []  # held back
        self._through = False  # whether deltas are passed on immediately
        self.index = parts.start(call, out)

    @property
    def is_bare(self) -> bool:
        """Whether none of its arguments have arrived."""
        return self._given is None and not self._pieces and not self._through

    def delta(self, delta: dict[str, Any], out: list[Event]) -> bool:
        if delta.get("type") != "input_json_delta":
            return False
        if type(text := delta.get("partial_json")) is str and text:
            if self._through:
                out.append(Delta(self.index, text))
                return True
            self._pieces.append(text)
            if self._given is None:
                held = "".join(self._pieces)
                if not (held.startswith(_WRAPPED) or _WRAPPED.startswith(held)):
                    self._through = True
                    self._pieces.clear()
                    out.append(Delta(self.index, held))
        return True

    def stop(self, out: list[Event]) -> None:
        arguments = choose_arguments(self._given, "".join(self._pieces))
        if arguments.startswith(_WRAPPED) and (value := _object(arguments)) is not None:
            arguments = call_text(value)  # a gateway like this one had to wrap the model's text
        if not arguments and not self._through:
            arguments = "{}"  # a call without arguments is an empty object in this dialect
        if arguments:
            out.append(Delta(self.index, arguments))
        out.append(PartEnd(self.index))


def choose_arguments(given: Input | None, streamed: str) -> str:
    """The arguments of a call whose start gave an input and whose deltas gave text.

    The deltas, if they are an object; the start continued by the deltas, if that is one; the start, if there
    are no deltas; else the streamed text, unchanged.
    """
    if given is None:
        return streamed
    start = call_text(given) if isinstance(given, dict) else encode_text(given)
    if not streamed.strip():
        return start
    whole = _object(streamed)
    if whole is not None:
        return streamed if whole else start  # an empty object next to a full one is a placeholder
    continued = start[:-1] + streamed
    return continued if start.endswith("}") and _object(continued) is not None else streamed


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = decode(text)
    except BadJson:
        return None
    return value if type(value) is dict else None


class OpenRedacted:
    __slots__ = ("index",)

    def __init__(self, part: Reasoning, parts: Parts, out: list[Event]) -> None:
        parts.held = None
        self.index = parts.start(part, out)

    def delta(self, delta: dict[str, Any], out: list[Event]) -> bool:
        return False

    def stop(self, out: list[Event]) -> None:
        out.append(PartEnd(self.index))


class OpenForeign:
    """A block of an unknown kind: its deltas are merged into its start, as the vendor's SDK does."""

    __slots__ = ("_json", "_parts", "_value")

    def __init__(self, value: dict[str, Any], parts: Parts) -> None:
        self._value = dict(value)
        self._json: list[str] = []
        self._parts = parts

    def delta(self, delta: dict[str, Any], out: list[Event]) -> bool:
        match delta.get("type"):
            case "input_json_delta" if type(delta.get("partial_json")) is str:
                self._json.append(delta["partial_json"])
            case "citations_delta" if "citation" in delta:
                cited = self._value.get("citations")
                self._value["citations"] = [*(cited if type(cited) is list else []), delta["citation"]]
            case _:
                for key, value in delta.items():
                    if key != "type":
                        old = self._value.get(key)
                        both = type(old) is str and type(value) is str
                        self._value[key] = f"{old}{value}" if both else value
        return True

    def stop(self, out: list[Event]) -> None:
        given = self._value.get("input")
        streamed = "".join(self._json)
        if streamed.strip():
            text = choose_arguments(given if type(given) is dict and given else None, streamed)
            chosen = _object(text)
            self._value["input"] = chosen if chosen is not None else text
        self._parts.held = None
        kind = self._value.get("type")
        index = self._parts.start(Foreign(NAME, kind if type(kind) is str else "", self._value), out)
        out.append(PartEnd(index))


def foreign_delta(index: int, delta: dict[str, Any]) -> ForeignEvent:
    """A delta without a place in an open part, under the index of that part."""
    return ForeignEvent(
        NAME, "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    )
