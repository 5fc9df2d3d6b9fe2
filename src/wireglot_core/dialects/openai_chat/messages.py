"""Parses the messages of a request."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, describe
from wireglot_core.dialects.openai_chat.extras import NAME, keep, parse_message_cache
from wireglot_core.dialects.openai_chat.parts import parse_part
from wireglot_core.dialects.openai_chat.reasoning import (
    attach_states,
    parse_reasoning,
    parse_states,
    sign_text,
)
from wireglot_core.dialects.openai_chat.tools import (
    is_legacy,
    parse_call,
    parse_function_call,
    parse_tool,
    usual_call,
)
from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import MIDWAY, TOOLS_PART, AnyTool, Tool


def _is_function(tool: Any) -> bool:
    function = tool.get("function") if type(tool) is dict and tool.get("type") == "function" else None
    return type(function) is dict and type(function.get("name")) is str and function["name"] != ""


_ROLES = "one of system, developer, user, assistant, tool, function"
_USUAL = frozenset({"role", "content", "tool_calls"})
"""The fields that most messages of an assistant have, and no others."""
_GOOGLE = Origin("gemini")
_PREFILLS = ("partial", "prefix")  # Kimi; Mistral and DeepSeek


class _Mark(msgspec.Struct, frozen=True):
    """The state that a message changes for those after it."""

    calls: tuple[ToolCall, ...]
    prefill: str
    answered: str


class Conversation:
    """Parses message after message; keeps the calls so far, because results do not repeat them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.messages: list[Message] = []
        self._calls: dict[str, ToolCall] = {}
        self._open: dict[str, ToolCall] = {}  # calls without an answer so far
        self._ordinal = 0
        self._declarations = 0
        self.tools: list[AnyTool] = []
        """Tools that messages declare."""
        self._made: list[ToolCall] = []
        """The calls of the newest message."""
        self._answered = ""  # the call that it answers
        self._declared = 0  # how many declarations there were before it
        self._prefill = ""  # the prefill flag of the newest message; empty if it has none

    def finish(self) -> tuple[Message, ...]:
        if self._prefill:  # an assistant message at the end is a prefill: the flag adds nothing
            last = self.messages[-1]
            extra = last.extra
            assert extra is not None
            fields = {key: value for key, value in extra.fields.items() if key != self._prefill}
            form = {**extra.form, "prefill": self._prefill}
            self.messages[-1] = Message(last.role, last.content, last.name, Extra(NAME, fields, form))
        return tuple(self.messages)

    def read_message(self, item: Any, index: int) -> None:
        self._made, self._answered = [], ""
        self._declared = self._declarations
        self._prefill = ""
        if type(item) is dict and self._read_usual(item):
            return
        message = Fields(item, f"$.messages[{index}]")
        match item.get("role"):
            case "user":
                self._add("user", message, {})
            case "assistant":
                self._assistant(message)
            case "tool":
                self._tool(message)
            case "system":
                self._add("system", message, {})
            case "developer":
                self._add("system", message, {"role": "developer"})
            case "function":
                self._function(message)
            case _:
                raise message.wrong("role", _ROLES)

    def _read_usual(self, value: dict[str, Any]) -> bool:
        """Parse a message that is only a text or the text of a result, as most are."""
        role, text = value.get("role"), value.get("content")
        if type(text) is not str or not text:
            return False
        if len(value) == 2 and (role == "user" or role == "assistant" or role == "system"):
            self.messages.append(Message(role, (Text(text),)))
            return True
        if len(value) != 3 or role != "tool":
            return False
        identifier = value.get("tool_call_id")
        if type(identifier) is not str or not identifier:
            return False
        self._answer(identifier, (Text(text),))
        return True

    def state(self, item: Any) -> Hashable:
        match item.get("role") if type(item) is dict else None:
            case "user" | "system" | "developer":
                return ""
            case "assistant":  # a call without an id gets one from its number
                return self._ordinal
            case "tool" if type(identifier := item.get("tool_call_id")) is str and identifier:
                call = self._calls.get(identifier)
                return call.kind if call is not None else "function"
        return None

    def mark(self) -> _Mark | None:
        if self._declarations != self._declared:
            return None
        return _Mark(tuple(self._made), self._prefill, self._answered)

    def go_on(self, mark: _Mark) -> None:
        self._prefill = mark.prefill
        for call in mark.calls:
            self._ordinal += 1
            self._calls[call.id] = call
            self._open[call.id] = call
        if mark.answered:
            self._open.pop(mark.answered, None)

    def snapshot(self) -> Any:
        if self._declarations:
            return None
        return self._ordinal, self._prefill, dict(self._calls), dict(self._open)

    def restore(self, snapshot: Any) -> None:
        self._ordinal, self._prefill, calls, open_calls = snapshot
        self._calls, self._open = dict(calls), dict(open_calls)

    def _add(self, role: Any, message: Fields, form: dict[str, Any]) -> None:
        value = message.value
        taken = {"role"}
        content = self._content(message, taken, form)
        name = ""
        if len(value) > len(taken):
            if role == "system" and value.get("tools"):
                taken.add("tools")
                content.append(self._declaration(message))
            _mark_last(value, content, taken)
            name = self._name(message, taken)
        self.messages.append(Message(role, tuple(content), name, keep(value, taken, form)))

    def _declaration(self, message: Fields) -> Foreign:
        """Kimi: tools declared in the middle of a conversation. A value that is not a list of functions is
        kept unchanged: Kimi refuses it."""
        tools = message.value["tools"]
        if type(tools) is not list or not all(map(_is_function, tools)):
            return Foreign(NAME, TOOLS_PART, {"tools": tools})
        number = self._declarations
        self._declarations += 1
        for tool in map(parse_tool, message.objects("tools")):
            assert isinstance(tool, Tool)
            known = tool.extra if tool.extra is not None else Extra(NAME)
            placed = Extra(NAME, known.fields, {**known.form, MIDWAY: number})
            self.tools.append(msgspec.structs.replace(tool, extra=placed))
        return Foreign(NAME, TOOLS_PART, {MIDWAY: number})

    def _name(self, message: Fields, taken: set[str]) -> str:
        name = message.text_or("name")
        if name:
            taken.add("name")
        return name

    def _content(self, message: Fields, taken: set[str], form: dict[str, Any]) -> list[Part]:
        content = message.value.get("content")
        if type(content) is str:
            if not content:
                return []
            taken.add("content")
            return [Text(content)]
        if content is None:
            if "content" not in message.value:
                form["content"] = "absent"
            return []
        if type(content) is not list:
            raise message.wrong("content", "a string or an array")
        taken.add("content")
        form["content"] = "parts"
        path = f"{message.path}.content"
        return [parse_part(item, f"{path}[{index}]", message.fault) for index, item in enumerate(content)]

    def _assistant(self, message: Fields) -> None:
        value = message.value
        taken = {"role"}
        form: dict[str, Any] = {}
        parts = self._content(message, taken, form)
        name = ""
        is_usual = value.keys() <= _USUAL
        if not is_usual:
            self._add_beside(message, parts, taken)
        if value.get("tool_calls"):
            taken.add("tool_calls")
            for number, entry in enumerate(message.array("tool_calls")):
                call = usual_call(entry)
                if call is None:
                    fields = Fields(entry, f"{message.path}.tool_calls[{number}]")
                    call = parse_call(fields, self._mint, self._context, _GOOGLE)
                self._call(call, parts)
        if not is_usual:
            legacy = message.dict_or_none("function_call")
            if legacy:
                only = parse_function_call(legacy, self._mint)
                if only is not None:
                    taken.add("function_call")
                    self._call(only, parts)
            _mark_last(value, parts, taken)
            name = self._name(message, taken)
            self._prefill = next((key for key in _PREFILLS if value.get(key) is True), "")
        self.messages.append(Message("assistant", tuple(parts), name, keep(value, taken, form)))

    def _add_beside(self, message: Fields, parts: list[Part], taken: set[str]) -> None:
        """Adds an assistant's separate fields next to the content, before its calls."""
        value = message.value
        refusal = message.text_or("refusal")
        if refusal:
            taken.add("refusal")
            parts.append(Text(refusal, refusal=True))
        parts += self._images(message, taken)
        audio = value.get("audio")
        if type(audio) is dict and not all(map(is_hollow, audio.values())):  # else a server's empty schema
            taken.add("audio")
            parts.append(Foreign(NAME, "audio", audio))
        sign_text(value, parts, taken, _GOOGLE)
        states = parse_states(value, taken, self._context)
        reasoning = parse_reasoning(value, taken, Origin(NAME), answer=False)
        if reasoning is not None:
            parts.insert(0, reasoning)
        if states:
            attach_states(parts, states)

    def _images(self, message: Fields, taken: set[str]) -> list[Part]:
        """Pictures that the model made, as OpenRouter's clients send them back."""
        images = message.value.get("images")
        if type(images) is not list or not images:
            return []
        parts: list[Part] = []
        for number, item in enumerate(images):
            numbered = type(item) is dict and item.get("index") == number
            plain = {key: value for key, value in item.items() if key != "index"} if numbered else item
            part = parse_part(plain, f"{message.path}.images[{number}]", message.fault)
            if not isinstance(part, Media):
                return []
            fields, form = (part.extra.fields, part.extra.form) if part.extra is not None else ({}, {})
            extra = Extra(NAME, fields, {**form, "images": "numbered" if numbered else "plain"})
            parts.append(msgspec.structs.replace(part, extra=extra))
        taken.add("images")
        return parts

    def _mint(self, name: str) -> str:
        return self._context.lasting_id(self._context.call_prefix, str(self._ordinal), name)

    def _call(self, call: ToolCall, parts: list[Part]) -> None:
        self._ordinal += 1
        self._calls[call.id] = call
        self._open[call.id] = call
        self._made.append(call)
        parts.append(call)

    def _tool(self, message: Fields) -> None:
        value = message.value
        form: dict[str, Any] = {}
        taken = {"role"}
        identifier = message.text_or("tool_call_id")
        if identifier:
            taken.add("tool_call_id")
        else:
            name = message.text_or("name")
            identifier = self._next_open(name) or self._mint(name)
            form["id"] = "absent"
            if value.get("tool_call_id") == "":
                form["id"] = "blank"
                taken.add("tool_call_id")
        self._result(identifier, message, taken, form)

    def _function(self, message: Fields) -> None:
        name = message.text("name")
        identifier = self._next_open(name, legacy=True) or self._mint(name)
        self._result(identifier, message, {"role"}, {"legacy": True})

    def _next_open(self, name: str, legacy: bool = False) -> str:
        """The first call without a result, of that name if one is given."""
        for identifier, call in self._open.items():
            if (not name or call.name == name) and (not legacy or is_legacy(call.extra)):
                return identifier
        return ""

    def _result(self, identifier: str, message: Fields, taken: set[str], form: dict[str, Any]) -> None:
        value = message.value
        mark: CacheMark | None = None
        content = self._content(message, taken, form)
        for index, part in enumerate(content):
            if not isinstance(part, Text | Media | Foreign):
                problem = f"expected a text part, got {describe(value['content'][index])}"
                raise message.fault(problem, f"{message.path}.content[{index}]")
        if content and isinstance(last := content[-1], Text) and last.cache is not None:
            # Chat has cache markers on parts only: one on the last part is one after the whole result.
            mark = last.cache
            content[-1] = Text(last.text, last.refusal, extra=last.extra)
        if mark is None and "cache_control" in value:
            mark = parse_message_cache(value)
            if mark is not None:
                taken.add("cache_control")
        name = self._name(message, taken)
        self._answer(identifier, tuple(content), name, mark, keep(value, taken, form))

    def _answer(
        self,
        identifier: str,
        content: tuple[Any, ...],
        name: str = "",
        mark: CacheMark | None = None,
        extra: Extra | None = None,
    ) -> None:
        """The result of the call with this id."""
        self._open.pop(identifier, None)
        self._answered = identifier
        call = self._calls.get(identifier)
        kind = call.kind if call is not None else "function"
        self.messages.append(
            Message("user", (ToolResult(identifier, content, False, name, kind, cache=mark, extra=extra),))
        )


def _mark_last(message: dict[str, Any], parts: list[Part], taken: set[str]) -> None:
    """The marker of the message, on its last part."""
    if "cache_control" not in message or not parts:
        return
    last, mark = parts[-1], parse_message_cache(message)
    if mark is None or isinstance(last, Foreign | Reasoning) or last.cache is not None:
        return
    taken.add("cache_control")
    parts[-1] = msgspec.structs.replace(last, cache=mark)
