"""Tool calls as an agent sees them: with an id, a name, arguments it can use, and the native event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

import msgspec

from wireglot_core.dialects.arguments import PARSE_ERROR, RAW, arguments_object, is_wrapped
from wireglot_core.ir.content import Message, Part, ToolCall
from wireglot_core.ir.outcome import Response


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call. While it is `partial`, `arguments` is the beginning of the model's text."""

    id: str
    name: str
    arguments: str
    partial: bool = False
    kind: Literal["function", "custom"] = "function"
    namespace: str = ""

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as an object; invalid text is wrapped (`_parse_error`, `_raw`)."""
        return {"input": self.arguments} if self.kind == "custom" else arguments_object(self.arguments)

    @property
    def problem(self) -> str:
        """What is wrong with the arguments, to be reported to the model; empty if nothing is."""
        if self.kind == "custom":
            return ""
        value = self.input
        # An object that merely looks wrapped is the model's own: its `_raw` cannot be the text around it.
        return str(value[PARSE_ERROR]) if is_wrapped(value) and value[RAW] == self.arguments else ""

    @property
    def native(self) -> dict[str, Any]:
        """`{id, type: "function", function: {name, arguments}}`, the arguments as text, never empty."""
        if self.kind == "custom":
            return {"id": self.id, "type": "custom", "custom": {"name": self.name, "input": self.arguments}}
        function = {"name": self.name, "arguments": self.arguments or "{}"}
        return {"id": self.id, "type": "function", "function": function}


class HasCalls(Protocol):
    @property
    def calls(self) -> tuple[Call, ...]: ...


def call_of(part: ToolCall, *, partial: bool = False) -> Call:
    return Call(part.id, part.name, part.arguments, partial=partial, kind=part.kind, namespace=part.namespace)


def calls_in(parts: Iterable[Part]) -> tuple[Call, ...]:
    return tuple(call_of(part) for part in parts if type(part) is ToolCall)


def native_calls(source: HasCalls | Message | Response) -> list[dict[str, Any]]:
    """The finished calls of an answer as native tool-call events, in their order."""
    calls = calls_in(source.content) if isinstance(source, Message | Response) else source.calls
    return [call.native for call in calls if not call.partial]
