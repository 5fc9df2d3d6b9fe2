"""Parses and renders messages. A message has one text, one thought, pictures and calls; a tool result is a
message.

What does not fit into one message goes into several of the same role: so does Ollama with the lists of texts
and pictures of OpenAI's clients (`openai.FromChatRequest`, read 2026-08-21), and its templates join them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, assert_never

import msgspec

from wireglot_core.dialects.common_losses import OPAQUE_REASONING, media_note
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, own_form, text_in
from wireglot_core.dialects.ollama.calls import parse_call, render_call
from wireglot_core.dialects.ollama.extras import NAME, keep, put_back
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.dialects.ollama.media import parse_images, render_media
from wireglot_core.dialects.turns import TurnWriter
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss, left_out, losses_of_extra

_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


class _Mark(msgspec.Struct, frozen=True):
    """The state that a message changes for those after it."""

    calls: tuple[ToolCall, ...]
    answered: str
    is_question: bool


class MessageParser:
    """Implements `TurnReader`. Results name the tool or the call that they answer, or neither: they are
    paired with the calls before them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.messages: list[Message] = []
        self._open: dict[str, tuple[int, ToolCall]] = {}
        """Calls without a result so far, by id, each with the number of its turn."""
        self._turn = 0
        """Number of user messages so far."""
        self._asked = False
        """Whether the newest message is a user message."""
        self._ordinal = 0
        self._made: list[ToolCall] = []
        """The calls of the newest message."""
        self._answered = ""
        """The call that the newest message answers."""

    def read_message(self, item: Any, index: int) -> None:
        self._made, self._answered, self._asked = [], "", False
        message = Fields(item, f"$.messages[{index}]")
        role = message.text("role").lower()
        if role == "tool":
            self._result(message)
        elif role in _ROLES:
            self._add(_ROLES[role], message)
        else:
            raise message.wrong("role", "one of system, user, assistant, tool")

    def state(self, item: Any) -> Hashable:
        role = item.get("role") if type(item) is dict else None
        if role == "assistant":
            return self._ordinal  # a call without an id gets one by its number
        return "" if role in ("user", "system") else None

    def mark(self) -> _Mark:
        return _Mark(tuple(self._made), self._answered, self._asked)

    def go_on(self, mark: _Mark) -> None:
        for call in mark.calls:
            self._ordinal += 1
            self._open[call.id] = self._turn, call
        self._open.pop(mark.answered, None)
        self._turn += mark.is_question

    def snapshot(self) -> Any:
        return self._ordinal, self._turn, dict(self._open)

    def restore(self, snapshot: Any) -> None:
        self._ordinal, self._turn, still_open = snapshot
        self._open = dict(still_open)

    def _add(self, role: Role, message: Fields) -> None:
        value = message.value
        if role == "user":
            self._turn += 1
            self._asked = True
        text = value.get("content")
        if len(value) == 2 and type(text) is str and text and value["role"] == role:
            self.messages.append(Message(role, (Text(text),)))  # as most are
            return
        taken = {"role"}
        form: dict[str, Any] = {} if value["role"] == role else {"role": value["role"]}
        parts: list[Part] = []
        if role == "assistant" and (thinking := message.text_or("thinking")):
            taken.add("thinking")
            parts.append(Reasoning(thinking))
        parts += _content(message, taken)
        for call in message.objects("tool_calls"):
            taken.add("tool_calls")
            parts.append(self._call(parse_call(call, self._mint)))
        extra = keep(value, taken, form, always=("content",))
        self.messages.append(Message(role, tuple(parts), extra=extra))

    def _call(self, call: ToolCall) -> ToolCall:
        self._ordinal += 1
        self._open[call.id] = self._turn, call
        self._made.append(call)
        return call

    def _mint(self, name: str) -> str:
        return self._context.lasting_id(self._context.call_prefix, str(self._ordinal), name)

    def _result(self, message: Fields) -> None:
        value = message.value
        taken = {"role"}
        form: dict[str, Any] = {} if value["role"] == "tool" else {"role": value["role"]}
        name, identifier = message.text_or("tool_name"), message.text_or("tool_call_id")
        if name:
            taken.add("tool_name")
        if identifier:
            taken.add("tool_call_id")
        else:
            # `name` is the field of older clients.
            identifier = self._next_open(name or text_in(value.get("name"))) or self._mint(name)
            form["id"] = "absent"
        content: tuple[ResultPart, ...] = tuple(_content(message, taken))
        self._open.pop(identifier, None)
        self._answered = identifier
        extra = keep(value, taken, form, always=("content",))
        self.messages.append(Message("user", (ToolResult(identifier, content, name=name, extra=extra),)))

    def _next_open(self, name: str) -> str:
        """The first call without a result in the newest turn that has one, of that name if one is given."""
        newest, found = -1, ""
        for identifier, (turn, call) in self._open.items():
            if turn > newest and (not name or call.name == name):
                newest, found = turn, identifier
        return found


def _content(message: Fields, taken: set[str]) -> list[Text | Media]:
    """The text of a message, followed by its pictures."""
    parts: list[Text | Media] = []
    if text := message.text_or("content"):
        taken.add("content")
        parts.append(Text(text))
    if images := parse_images(message):
        taken.add("images")
        parts += images
    return parts


# Out

_THOUGHT, _SAID, _SHOWN, _CALLED = range(4)
"""The order of the parts of a message."""
_BETWEEN: Final = "\n"
"""Between the texts of a tool result."""


class MessageRenderer(TurnWriter):
    """Implements `TurnWriter`. `native`: the conversation came in this dialect."""

    def __init__(self, native: bool, losses: list[Loss]) -> None:
        self._native = native
        self.losses = losses
        self.calls: dict[str, ToolCall] = {}
        self._out: list[dict[str, Any]] = []
        self._role = ""
        self._rank = _CALLED
        self._current: dict[str, Any] = {}

    def write_message(self, message: Message, index: int) -> list[Any]:
        path = f"$.messages[{index}]"
        self._out, self._current, self._rank = [], {}, _CALLED
        form = own_form(message.extra, NAME)
        self._role = form.get("role", message.role)
        LOST.of(message, path, self.losses)
        for position, part in enumerate(message.content):
            self._part(part, f"{path}.content[{position}]", message.role)
        own = message.extra is not None and message.extra.dialect == NAME
        if own or message.is_empty or (self._native and not message.content):
            if not self._out:
                self._out.append({"role": self._role, "content": ""})
            put_back(self._out[0], message.extra)
        return self._out

    def _part(self, part: Part, path: str, role: Role) -> None:
        match part:
            case Text():
                LOST.of(part, path, self.losses)
                if part.text:
                    self._place(_SAID)["content"] = part.text
            case ToolCall():
                self._call(part, path, role)
            case ToolResult():
                self._result(part, path, role)
            case Reasoning():
                self._reasoning(part, path, role)
            case Media():
                data = render_media(part, path, self.losses)
                if data is not None:
                    self._place(_SHOWN).setdefault("images", []).append(data)
                elif role == "user":
                    self._place(_SAID)["content"] = media_note(part.kind)
            case Foreign():
                self.losses.append(left_out(part, path))
            case _:
                assert_never(part)

    def _place(self, rank: int) -> dict[str, Any]:
        """The message for a part of this rank: the current one, unless that already has later parts."""
        if rank < self._rank or (rank == self._rank and rank < _SHOWN) or not self._current:
            self._current = {"role": self._role, "content": ""}
            self._out.append(self._current)
        self._rank = rank
        return self._current

    def _reasoning(self, part: Reasoning, path: str, role: Role) -> None:
        losses = self.losses
        if part.redacted or role != "assistant":
            losses_of_extra(part.extra, NAME, path, losses)
            if part.redacted:
                losses.append(OPAQUE_REASONING.at(path))
            else:
                losses.append(Loss(path, "reasoning.text", "dropped", f"no reasoning in a {role} message"))
            return
        LOST.of(part, path, losses)
        if part.text:
            self._place(_THOUGHT)["thinking"] = part.text

    def _call(self, part: ToolCall, path: str, role: Role) -> None:
        if role != "assistant":
            detail = f"no calls in a {role} message"
            self.losses.append(Loss(path, "content.position", "dropped", detail))
            return
        self.calls[part.id] = part
        self._place(_CALLED).setdefault("tool_calls", []).append(render_call(part, path, self.losses))

    def _result(self, part: ToolResult, path: str, role: Role) -> None:
        if role != "user":
            detail = f"no results in a {role} message"
            self.losses.append(Loss(path, "content.position", "dropped", detail))
            return
        form = own_form(part.extra, NAME)
        LOST.of(part, path, self.losses)
        call = self.calls.get(part.call_id)
        texts: list[str] = []
        images: list[str] = []
        for index, item in enumerate(part.content):
            self._result_part(item, f"{path}.content[{index}]", texts, images)
        if part.is_error:
            texts[:1] = [f"Error: {texts[0]}" if texts else "Error: the tool failed"]
        out: dict[str, Any] = {"role": form.get("role", "tool"), "content": _BETWEEN.join(texts)}
        name = part.name or ("" if self._native or call is None else call.name)
        if name:
            out["tool_name"] = name
        if form.get("id") != "absent":
            out["tool_call_id"] = part.call_id
        if images:
            out["images"] = images
        self._out.append(put_back(out, part.extra))
        self._current, self._rank = {}, _CALLED

    def _result_part(self, item: ResultPart, path: str, texts: list[str], images: list[str]) -> None:
        match item:
            case Text():
                LOST.of(item, path, self.losses)
                if item.text:
                    if images:
                        self.losses.append(
                            Loss(path, "content.position", "approximated", "texts come before pictures")
                        )
                    texts.append(item.text)
            case Media():
                data = render_media(item, path, self.losses)
                if data is not None:
                    images.append(data)
                else:
                    texts.append(media_note(item.kind))
            case Foreign():
                self.losses.append(left_out(item, path))
            case _:
                assert_never(item)
