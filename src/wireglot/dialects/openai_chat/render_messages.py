"""The conversation, as Chat messages: one per tool result, directly behind the calls they answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.dialects.fields import own_fields, own_form
from wireglot.dialects.openai_chat.extras import NAME, put_back, put_message_cache
from wireglot.dialects.openai_chat.parts import (
    foreign_part,
    is_plain,
    is_text,
    joined_texts,
    lose_of_text,
    media_part,
    text_part,
    thinking_part,
)
from wireglot.dialects.openai_chat.reasoning import (
    CARRIER,
    google_carrier,
    is_googles,
    lose_signature,
    opaque_details,
    put_reasoning,
)
from wireglot.dialects.openai_chat.render_plain import plain_turn
from wireglot.dialects.openai_chat.render_results import render_result
from wireglot.dialects.openai_chat.tools import call_body, is_legacy, render_call, render_tool
from wireglot.dialects.turns import WrittenTurns, count_opening
from wireglot.ir.content import (
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.ir.request import MIDWAY, Request, Tool

Placed = tuple[str, Part]
"""A part with its path."""


def render_messages(request: Request, native: bool, context: Context, losses: list[Loss]) -> list[Any]:
    joined = frozenset(own_form(request.extra, NAME).get("joined", ()))
    return _Renderer(request, native, context, losses, joined).run(request.messages)


class _Renderer:
    def __init__(
        self, request: Request, native: bool, context: Context, losses: list[Loss], joined: frozenset[str]
    ) -> None:
        self._joined = joined
        self._tools = request.tools
        self._native = native
        self._context = context
        self._losses = losses
        self._out: list[Any] = []
        self._calls: dict[str, ToolCall] = {}
        self._written = WrittenTurns(request.messages, context, self._calls, losses, NAME, native, joined)

    def run(self, messages: tuple[Message, ...]) -> list[Any]:
        behind = 0
        opening = count_opening(messages)
        settles = True
        while behind < len(messages):
            if behind == opening:
                together = self._written.together(messages, opening, len(self._out))
                if together is not None and not self._goes_on(messages, together.behind):
                    behind = self._written.take(together, self._out)
            elif settles and behind > opening:
                self._written.settle(behind, self._out)
            start, behind = behind, self._end_of_turn(messages, behind)
            is_system = messages[start].role == "system"
            if is_system and start > opening:
                settles = False  # it may show tools, which are the request's
            if behind > start + 1:
                self._turn(messages, start, behind)
            elif is_system:
                self._out += self._one(messages[start], start)
            else:
                self._out += self._written.write(messages[start], start, self._one)[0]
        return self._out

    def _one(self, message: Message, index: int) -> list[Any]:
        """What a message by itself is written as."""
        if not self._native:
            plain = plain_turn(message, self._calls, self._joined)
            if plain is not None:
                return plain
        count = len(self._out)
        self._run([(f"$.messages[{index}]", message)])
        items = self._out[count:]
        del self._out[count:]
        return items

    def _turn(self, messages: tuple[Message, ...], start: int, behind: int) -> None:
        self._run([(f"$.messages[{index}]", messages[index]) for index in range(start, behind)])

    def _run(self, run: list[tuple[str, Message]]) -> None:
        role = run[0][1].role
        for path, message in run:
            losses_of_extra(message.extra, NAME, path, self._losses)
        if role == "user":
            self._users(run)
        elif role == "assistant":
            first = run[0][1]
            placed = [entry for path, message in run for entry in _placed(path, message)]
            self._assistant(first, placed)
        else:
            for path, message in run:
                self._system(path, message)

    def _end_of_turn(self, messages: tuple[Message, ...], start: int) -> int:
        """Behind the neighbours that mean one turn. Messages that this dialect cut stay as they were cut."""
        end = start + 1
        role = messages[start].role
        while end < len(messages) and messages[end].role == role and self._goes_on(messages, end):
            end += 1
        return end

    def _goes_on(self, messages: tuple[Message, ...], end: int) -> bool:
        """Whether the turn that reaches this message has it too."""
        return not self._native and _is_one_turn(messages[end - 1], messages[end])

    # System and user

    def _system(self, path: str, message: Message) -> None:
        form = own_form(message.extra, NAME)
        out: dict[str, Any] = {"role": form.get("role", "system")}
        entries: list[Placed] = []
        for place, part in _placed(path, message):
            match part:
                case Foreign(dialect=dialect, type="system.tools") if dialect == NAME:
                    out["tools"] = self._declared(part.value)
                case Text() | Foreign():
                    entries.append((place, part))
                case Media():
                    self._losses.append(Loss(place, part.kind, "dropped", "system messages are text only"))
                case Reasoning() | ToolCall() | ToolResult():
                    self._misplaced(place, part, "system")
                case _:
                    assert_never(part)
        self._finish(out, message, entries)

    def _declared(self, value: dict[str, Any]) -> Any:
        """The tools that stand in this message: as they are in the request by now, or as they came."""
        if MIDWAY not in value:
            return value["tools"]
        number = value[MIDWAY]
        return [
            render_tool(tool, f"$.tools[{index}]", self._losses)[1]
            for index, tool in enumerate(self._tools)
            if isinstance(tool, Tool) and own_form(tool.extra, NAME).get(MIDWAY) == number
        ]

    def _users(self, run: list[tuple[str, Message]]) -> None:
        """All results of the step, what they could not hold, then everything else the user said."""
        others: list[tuple[Message, list[Placed]]] = []
        moved: list[Any] = []
        spoken = False
        for path, message in run:
            rest: list[Placed] = []
            for place, part in _placed(path, message):
                if not isinstance(part, ToolResult):
                    rest.append((place, part))
                    spoken = spoken or not _is_empty(part)
                    continue
                if spoken:
                    self._losses.append(Loss(place, "content.position", "approximated", "results come first"))
                answer, shown = render_result(
                    part, place, self._calls, self._native, self._losses, joined="tool" in self._joined
                )
                self._out.append(answer)
                moved += shown
            others.append((message, rest))
        if moved:
            self._out.append({"role": "user", "content": moved})
        for message, rest in others:
            kept: list[Placed] = []
            for place, part in rest:
                if isinstance(part, Reasoning | ToolCall):
                    self._misplaced(place, part, "user")
                else:
                    kept.append((place, part))
            if kept or len(rest) == len(message.content):
                self._finish({"role": "user"}, message, kept)
            elif message.name:
                self._losses.append(
                    Loss(f"{run[0][0]}.name", "message.name", "dropped", "results have no author")
                )

    def _misplaced(self, path: str, part: Part, role: str) -> None:
        feature: Any = "reasoning.text" if isinstance(part, Reasoning) else "content.position"
        self._losses.append(Loss(path, feature, "dropped", f"no {type(part).__name__} in a {role} message"))

    def _finish(self, out: dict[str, Any], message: Message, entries: list[Placed]) -> None:
        """Content, name and unknown fields of a system or user message; nothing if it says nothing."""
        parts = self._content(entries, message)
        known = own_fields(message.extra, NAME)
        form = own_form(message.extra, NAME)
        if parts is not None:
            out["content"] = parts
        elif "content" not in known and form.get("content") != "absent":
            return
        if message.name:
            out["name"] = message.name
        self._mark(out, entries)
        put_back(out, message.extra)
        self._out.append(out)

    def _mark(self, out: dict[str, Any], entries: list[Placed]) -> None:
        """The marker that came with the whole message, wherever the part that holds it stands by now."""
        for _, part in entries:
            if not isinstance(part, Foreign | Reasoning) and part.cache is not None:
                put_message_cache(out, part.cache)

    def _content(self, entries: list[Placed], message: Message) -> str | list[Any] | None:
        """A string where that says it all, else a list; None for nothing."""
        listed = own_form(message.extra, NAME).get("content") == "parts"
        if not listed:
            entries = [entry for entry in entries if not _is_empty(entry[1])]
            if (
                len(entries) == 1
                and isinstance(text := entries[0][1], Text)
                and is_plain(text)
                and not text.refusal
            ):
                lose_of_text(text, entries[0][0], self._losses)
                return text.text
        parts = [part for entry in entries if (part := self._part(*entry)) is not None]
        if message.role in self._joined and all(map(is_text, parts)):
            return joined_texts(parts) if parts else None
        return parts if parts or listed else None

    def _part(self, path: str, part: Part) -> Any:
        match part:
            case Text():
                lose_of_text(part, path, self._losses)
                if not part.text and part.signature is not None:  # it was there for its signature
                    return None
                return text_part(part, path, self._losses)
            case Media():
                return media_part(part, path, self._losses)
            case Foreign():
                return foreign_part(part, path, self._losses)
            case Reasoning():  # Mistral's, inside the content
                return thinking_part(part)
            case ToolCall() | ToolResult():
                raise AssertionError("calls and results are no content")
            case _:
                assert_never(part)

    # Assistant

    def _assistant(self, message: Message, placed: list[Placed]) -> None:
        losses = self._losses
        form = own_form(message.extra, NAME)
        listed = form.get("content") == "parts"
        out: dict[str, Any] = {"role": "assistant"}
        thoughts: list[Reasoning] = []
        details: list[Any] = []
        entries: list[Placed] = []
        calls: list[dict[str, Any]] = []
        rank = 0
        for path, part in placed:
            if _is_empty(part) and not listed:
                continue
            rank = self._check_order(part, rank, path, bool(thoughts))
            match part:
                case Text():
                    signature = part.signature
                    if signature is not None and is_googles(part, signature, self._context):
                        out[CARRIER] = google_carrier(part, signature)
                        part = replace(part, signature=None)
                    if (
                        part.refusal
                        and not listed
                        and not _has_refusal(entries)
                        and _is_last_text(part, placed)
                    ):
                        out["refusal"] = part.text
                        lose_of_text(part, path, self._losses)
                    else:
                        entries.append((path, part))
                case ToolCall():
                    self._call(part, path, out, calls)
                case Reasoning():
                    if own_form(part.extra, NAME).get("field") == "content":
                        entries.append((path, part))
                    else:
                        self._reasoning(part, path, thoughts, details)
                case Foreign(dialect=dialect, type="audio") if dialect == NAME:
                    out["audio"] = part.value
                case Foreign():
                    entries.append((path, part))
                case Media() if own_form(part.extra, NAME).get("images"):
                    self._image(part, path, out)
                case Media():
                    losses.append(Loss(path, part.kind, "dropped", "assistant messages hold no media"))
                case ToolResult():
                    self._misplaced(path, part, "assistant")
                case _:
                    assert_never(part)
        content = self._content(entries, message)
        known = own_fields(message.extra, NAME)
        if content is not None:
            out["content"] = content
        elif "content" not in known and form.get("content") != "absent":
            # A call alone has null; an answer of nothing but reasoning still needs a string.
            if not calls and out.keys().isdisjoint(("refusal", "audio", "images", "function_call")):
                if not thoughts and not details:
                    return
                out["content"] = ""
            else:
                out["content"] = None
        put_reasoning(out, thoughts, details)
        if calls:
            out["tool_calls"] = calls
        if message.name:
            out["name"] = message.name
        self._mark(out, placed)
        if "prefill" in form:
            out[form["prefill"]] = True
        put_back(out, message.extra)
        self._out.append(out)

    def _image(self, part: Media, path: str, out: dict[str, Any]) -> None:
        """One that came in this dialect, in the field beside the content."""
        entry = media_part(part, path, self._losses)
        if entry is not None:
            images = out.setdefault("images", [])
            if own_form(part.extra, NAME)["images"] == "numbered":
                entry["index"] = len(images)
            images.append(entry)

    def _check_order(self, part: Part, rank: int, path: str, thought: bool) -> int:
        """A message here is reasoning, then text, then calls. What stands otherwise is moved, and said."""
        own = 0 if isinstance(part, Reasoning) else 2 if isinstance(part, ToolCall) else 1
        second = isinstance(part, Reasoning) and thought and not part.redacted
        if isinstance(part, Foreign | Media) and not (isinstance(part, Foreign) and part.dialect == NAME):
            return rank
        if isinstance(part, Reasoning) and own_form(part.extra, NAME).get("field") == "content":
            return rank
        if own < rank or second:
            self._losses.append(Loss(path, "content.position", "approximated", "moved within the message"))
        return max(rank, own)

    def _reasoning(self, part: Reasoning, path: str, thoughts: list[Reasoning], details: list[Any]) -> None:
        losses_of_extra(part.extra, NAME, path, self._losses)
        signature = part.signature
        if signature is not None:
            own = opaque_details(signature) if self._context.may_replay(signature, NAME) else None
            if own is not None:
                details += own
            elif not part.redacted:
                lose_signature(path, self._losses)
        if part.redacted:
            self._losses.append(Loss(path, "reasoning.redacted", "dropped", "another provider's"))
        else:
            thoughts.append(part)

    def _call(self, part: ToolCall, path: str, out: dict[str, Any], calls: list[dict[str, Any]]) -> None:
        self._calls[part.id] = part
        if is_legacy(part.extra) and "function_call" not in out:
            out["function_call"] = call_body(part)
            put_back(out, part.extra)
            return
        carrier = None
        signature = part.signature
        if signature is not None:
            if is_googles(part, signature, self._context):
                carrier = google_carrier(part, signature)
            else:
                lose_signature(path, self._losses)
        calls.append(render_call(part, carrier, path, self._losses))


def _has_refusal(entries: list[Placed]) -> bool:
    return any(isinstance(part, Text) and part.refusal for _, part in entries)


def _placed(path: str, message: Message) -> Iterator[Placed]:
    for index, part in enumerate(message.content):
        yield f"{path}.content[{index}]", part


def _is_one_turn(one: Message, other: Message) -> bool:
    return one.role == other.role != "system" and one.name == other.name and one.extra == other.extra


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text) and not part.text and part.signature is None


def _is_last_text(part: Text, placed: list[Placed]) -> bool:
    return (
        not own_form(part.extra, NAME).get("part")
        and [p for _, p in placed if isinstance(p, Text)][-1] is part
    )
