"""Tools under another name or shape upstream, answers in a wrapper, and the way back.

Everything here is rebuilt from the tools of the request at hand: no state, and the same request always gets
the same names. Toward the upstream: `Disguise`. Back toward the client: `Aliases`, kept by the plan.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from wireglot_core.dialects.arguments import arguments_object
from wireglot_core.dialects.schema import WRAPPED_IN
from wireglot_core.ir.content import Part, Text, ToolCall
from wireglot_core.ir.outcome import Candidate
from wireglot_core.ir.request import AnyTool, Tool
from wireglot_core.ir.stream import Delta, Event, OtherAnswer, PartEnd, PartStart
from wireglot_core.wire.json import BadJson, decode, encode_text

INPUT = "input"
"""The one argument of an emulated freeform tool."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


def legal_name(name: str, longest: int) -> str:
    """A name that every target accepts: readable, deterministic, and distinguished from others by its
    hash."""
    stem = _ILLEGAL.sub("_", name)
    if not stem or not (stem[0].isalpha() or stem[0] == "_"):
        stem = f"t_{stem}"
    mark = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{stem[: min(longest, 64) - 9]}_{mark}"


class Aliases(msgspec.Struct, frozen=True):
    """`names`: upstream name -> (namespace, client's name), where they differ. `custom`: upstream names of
    freeform tools that are sent as functions with one string parameter."""

    names: dict[str, tuple[str, str]] = {}
    custom: frozenset[str] = frozenset()
    unwraps: bool = False
    """The answer's text was requested as `{"value": ...}`, because its schema has no object at its root."""
    bare: bool = False
    """The client reads a string without the quotes that JSON puts around it."""

    def __bool__(self) -> bool:
        return bool(self.names) or bool(self.custom) or self.restores_text

    @property
    def restores_text(self) -> bool:
        return self.unwraps or self.bare

    @property
    def functions(self) -> dict[str, tuple[str, str]]:
        """The functions that are another tool, or a freeform one, to the client: upstream name -> (namespace,
        client's name)."""
        return {**{name: ("", name) for name in self.custom}, **self.names}

    def joined(self, others: Aliases) -> Aliases:
        """The aliases of both; if both have a name, those of this one win."""
        if not others:
            return self
        return Aliases(
            {**others.names, **self.names},
            self.custom | others.custom,
            self.unwraps or others.unwraps,
            self.bare or others.bare,
        )

    def with_freeform(self, tools: tuple[AnyTool, ...]) -> Aliases:
        """For an upstream of which it is not known whether it takes freeform tools: if it answers with a
        function of that name, it does not."""
        functions = {tool.name for tool in tools if type(tool) is Tool and tool.kind == "function"}
        freeform = {tool.name for tool in tools if type(tool) is Tool and tool.kind == "custom"} - functions
        if freeform <= self.custom:
            return self
        return msgspec.structs.replace(self, custom=self.custom | freeform)

    def restore(self, part: Part) -> Part:
        """A whole part with the names of the client's request."""
        if type(part) is Text and self.restores_text:
            return msgspec.structs.replace(part, text=self.restore_text(part.text))
        if type(part) is not ToolCall:
            return part
        namespace, name = self.names.get(part.name, (part.namespace, part.name))
        if part.kind == "function" and part.name in self.custom:
            return msgspec.structs.replace(
                part, name=name, namespace=namespace, kind="custom", arguments=freeform_input(part.arguments)
            )
        if name == part.name and namespace == part.namespace:
            return part
        return msgspec.structs.replace(part, name=name, namespace=namespace)

    def restore_text(self, text: str) -> str:
        """The whole text of an answer in the format that the client requested."""
        if self.unwraps:
            text = unwrapped(text)
        return unquoted(text) if self.bare else text

    def restore_answer(self, answer: Candidate) -> Candidate:
        """The same for a further answer."""
        return msgspec.structs.replace(answer, content=tuple(map(self.restore, answer.content)))


NO_ALIASES: Final = Aliases()


def freeform_input(arguments: str) -> str:
    """The text that the model passed to an emulated freeform tool; arguments of another shape are returned
    unchanged."""
    value = arguments_object(arguments).get(INPUT)
    return value if type(value) is str else arguments


def freeform_arguments(text: str) -> str:
    return encode_text({INPUT: text})


def unwrapped(text: str) -> str:
    """The value inside the wrapper, byte for byte; text that is not such a wrapper is returned unchanged."""
    try:
        members = _members(text)
    except (ValueError, RecursionError):
        return text
    return bytes(members[WRAPPED_IN]).decode() if members.keys() == {WRAPPED_IN} else text


def unquoted(text: str) -> str:
    """The string in a JSON text; any other text is returned unchanged."""
    try:
        value = decode(text.encode())
    except (BadJson, UnicodeEncodeError):
        return text
    return value if type(value) is str else text


class EventRestorer:
    """Restores calls and wrapped answers in a stream. Arguments of an emulated freeform call and a wrapped
    answer are held back until their end: half a JSON string cannot be unwrapped."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases
        self.waiting: dict[int, list[str]] = {}
        self.wrapped: set[int] = set()

    def events(self, events: Iterable[Event]) -> list[Event]:
        restored: list[Event] = []
        for event in events:
            if type(event) is Delta:
                held = self.waiting.get(event.index)
                if held is None:
                    restored.append(event)
                else:
                    held.append(event.text)
            elif type(event) is PartStart and type(event.part) is ToolCall:
                restored.append(self._start(event, event.part))
            elif type(event) is PartStart and type(event.part) is Text and self.aliases.restores_text:
                self.waiting[event.index] = [event.part.text]
                self.wrapped.add(event.index)
                restored.append(PartStart(event.index, msgspec.structs.replace(event.part, text="")))
            elif type(event) is PartEnd and event.index in self.waiting:
                collected = "".join(self.waiting.pop(event.index))
                restore = self.aliases.restore_text if event.index in self.wrapped else freeform_input
                text = restore(collected)
                if text and not event.cut:
                    restored.append(Delta(event.index, text))
                restored.append(event)
            elif type(event) is OtherAnswer:
                restored.append(OtherAnswer(self.aliases.restore_answer(event.answer)))
            else:
                restored.append(event)
        return restored

    def _start(self, event: PartStart, call: ToolCall) -> PartStart:
        if call.kind == "function" and call.name in self.aliases.custom:
            self.waiting[event.index] = [call.arguments]
            restored = self.aliases.restore(msgspec.structs.replace(call, arguments=""))
            return PartStart(event.index, restored)
        return PartStart(event.index, self.aliases.restore(call))
