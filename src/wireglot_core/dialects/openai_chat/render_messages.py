"""Renders the conversation as Chat messages: one per tool result, directly after the calls they answer."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, assert_never

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import RESULTS_FIRST
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_chat.extras import (
    NAME,
    is_of_message,
    put_back,
    put_cache,
    put_message_cache,
)
from wireglot_core.dialects.openai_chat.lost_fields import LOST, NOT_MARKED
from wireglot_core.dialects.openai_chat.parts import (
    foreign_part,
    is_plain,
    is_text,
    joined_texts,
    media_part,
    text_part,
    thinking_part,
)
from wireglot_core.dialects.openai_chat.reasoning import (
    BETWEEN,
    CARRIER,
    google_carrier,
    is_googles,
    lose_signature,
    opaque_details,
    put_reasoning,
)
from wireglot_core.dialects.openai_chat.tools import (
    call_body,
    is_legacy,
    plain_call,
    render_call,
    render_tool,
)
from wireglot_core.dialects.openai_shared import BREAKPOINT, breakpoint_value
from wireglot_core.dialects.turns import TurnWriter, write_turns
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import MIDWAY, AnyTool, Request, Tool


def render_result(
    part: ToolResult,
    path: str,
    calls: dict[str, ToolCall],
    native: bool,
    losses: list[Loss],
    *,
    joined: bool = False,
) -> tuple[dict[str, Any], list[Any]]:
    """The message, and the parts only a user message can show. `calls`: those so far, by id; `native`: the
    conversation came in this dialect."""
    LOST.of(part, path, losses)
    form = own_form(part.extra, NAME)
    call = calls.get(part.call_id)
    out: dict[str, Any] = {"role": "tool"}
    if form.get("legacy") and (call is None or is_legacy(call.extra)):
        out["role"] = "function"
    elif "id" not in form:
        out["tool_call_id"] = part.call_id
    elif form["id"] == "blank":
        out["tool_call_id"] = ""
    _put_name(out, part, call, native, path=path, losses=losses)
    entries, moved, plain = _entries(part, path, losses)
    if part.is_error:
        entries = _as_error(entries)
    if is_of_message(part.cache):
        put_message_cache(out, part.cache)
    elif part.cache is not None:
        if entries and type(entries[-1]) is dict and "text" in entries[-1]:
            if BREAKPOINT in entries[-1] or "cache_control" in entries[-1]:
                marked = [n for n, item in enumerate(part.content) if type(item) is Text and item.cache]
                place, detail = f"{path}.content[{marked[-1]}].cache", "one with that of its result"
                losses.append(Loss(place, "cache_marker", "approximated", detail))
            put_cache(entries[-1], part.cache, path, losses)
            plain = False
        else:
            losses.append(NOT_MARKED.at(f"{path}.cache"))
    if not plain and not (joined and all(map(is_text, entries))):
        out["content"] = entries
    else:
        content = joined_texts(entries)
        if content or (form.get("content") != "absent" and "content" not in own_fields(part.extra, NAME)):
            out["content"] = content
    put_back(out, part.extra)
    return out, moved


def _plain_words(role: str, text: Text) -> list[Any] | None:
    """The message for one text."""
    if not text.text or not text.is_plain(NAME, marked=True):
        return None
    mark = text.cache
    if mark is None:
        return [{"role": role, "content": text.text}]
    if mark.extra is None:
        part = {"type": "text", "text": text.text, BREAKPOINT: breakpoint_value(mark.ttl)}
        return [{"role": role, "content": [part]}]
    return None


def _plain_text(part: ToolResult, call: ToolCall | None, native: bool) -> str | None:
    """The text of a result that has nothing else, as nearly all do."""
    extra = part.extra
    if call is None or call.kind != part.kind or (part.name and (native or part.name != call.name)):
        return None
    if part.is_error or part.cache is not None:
        return None
    if extra is not None and (extra.dialect == NAME or extra.fields):
        return None
    texts = part.plain_texts(NAME)
    return BETWEEN.join(texts) if texts is not None else None


def _put_name(
    out: dict[str, Any], part: ToolResult, call: ToolCall | None, native: bool, path: str, losses: list[Loss]
) -> None:
    own = part.extra is not None and part.extra.dialect == NAME
    if part.name and (own or native):
        out["name"] = part.name
    elif part.name and (call is None or call.name != part.name):
        losses.append(Loss(f"{path}.name", "tool_result.name", "dropped", "the id identifies the call"))
    if part.kind != ("function" if call is None else call.kind):
        losses.append(Loss(path, "tool.custom", "approximated", "results do not state their kind"))


def _entries(part: ToolResult, path: str, losses: list[Loss]) -> tuple[list[Any], list[Any], bool]:
    """The content of the tool message, the content that needs a user message, and whether the former fits in
    a string."""
    listed = own_form(part.extra, NAME).get("content") == "parts"
    entries: list[Any] = []
    moved: list[Any] = []
    plain = not listed
    for index, item in enumerate(part.content):
        place = f"{path}.content[{index}]"
        match item:
            case Text():
                if not item.text and not listed:
                    continue
                LOST.of(item, place, losses)
                entries.append(text_part(item, place, losses))
                plain = plain and is_plain(item) and not item.refusal
            case Media():
                if listed:  # some servers do read images here
                    entries.append(media_part(item, place, losses))
                else:
                    _move(item, part.call_id, place, entries, moved=moved, losses=losses)
            case Foreign():
                own = foreign_part(item, place, losses)
                if own is not None:
                    entries.append(own)
                    plain = False
            case _:
                assert_never(item)
    return [entry for entry in entries if entry is not None], moved, plain


def _move(
    item: Media, call_id: str, path: str, entries: list[Any], moved: list[Any], losses: list[Loss]
) -> None:
    """Results are text only: other content is shown in a user message after all results of the step."""
    bent: list[Loss] = []
    seen = media_part(item, path, bent)
    if seen is None:
        losses.append(Loss(path, "tool_result.media", "dropped", f"Chat cannot show this {item.kind}"))
        return
    losses.append(Loss(path, "tool_result.media", "approximated", "moved into a user message"))
    losses += bent
    if not moved:
        moved.append({"type": "text", "text": f"Attached to the result of {call_id}:"})
    moved.append(seen)
    entries.append({"type": "text", "text": f"[{item.kind}: see next message]"})


def _as_error(entries: list[Any]) -> list[Any]:
    if entries and type(entries[0]) is dict and "text" in entries[0]:
        return [{**entries[0], "text": f"Error: {entries[0]['text']}"}, *entries[1:]]
    return [{"type": "text", "text": "Error: the tool failed"}, *entries]


Placed = tuple[str, Part]
"""A part with its path."""

_THOUGHT, _SAID, _CALLED = range(3)
"""The order of the parts of an assistant's message."""


def render_messages(request: Request, native: bool, context: Context, losses: list[Loss]) -> list[Any]:
    joined = frozenset(own_form(request.extra, NAME).get("joined", ()))
    writer = _Messages(request.tools, native, context, losses, joined)
    messages = request.messages
    opening = 0
    while opening < len(messages) and messages[opening].role == "system":
        opening += 1
    out: list[Any] = []
    for index in range(opening):
        out += writer.write_message(messages[index], index)
    return out + write_turns(writer, messages, opening, context, NAME, native, joined)


class _Messages(TurnWriter):
    """`native`: the conversation came in this dialect; `joined`: the roles whose texts must be one string."""

    def __init__(
        self,
        tools: tuple[AnyTool, ...],
        native: bool,
        context: Context,
        losses: list[Loss],
        joined: frozenset[str],
    ) -> None:
        self._tools = tools
        self._native = native
        self._context = context
        self._joined = joined
        self._out: list[Any] = []
        self.losses = losses
        self.calls: dict[str, ToolCall] = {}

    def state(self, message: Message) -> Hashable:
        return None if message.role == "system" else 0  # which may declare tools, and these are the request's

    def turn_end(self, messages: tuple[Message, ...], start: int) -> int:
        """The index after the neighbours that form one turn. Messages that this dialect divided stay
        divided."""
        end = start + 1
        if self._native:
            return end
        first = messages[start]
        while (
            end < len(messages)
            and first.role == messages[end].role != "system"
            and first.name == messages[end].name
            and first.extra == messages[end].extra
        ):
            end += 1
        return end

    def write_message(self, message: Message, index: int) -> list[Any]:
        return self._plain(message) or self._written([(f"$.messages[{index}]", message)])

    def _plain(self, message: Message) -> list[Any] | None:
        """The items of an ordinary message, with nothing that Chat cannot express; None: it needs the full
        conversion."""
        content, extra = message.content, message.extra
        if not content or message.name:
            return None
        if extra is not None and (extra.dialect == NAME or extra.fields):
            return None
        if len(content) == 1 and type(text := content[0]) is Text:
            return _plain_words(message.role, text)
        if message.role == "assistant":
            return self._plain_answer(content)
        return self._plain_results(content) if message.role == "user" else None

    def _plain_answer(self, content: tuple[Part, ...]) -> list[Any] | None:
        """An answer of calls, with at most one text before them."""
        said: str | None = None
        made: list[ToolCall] = []
        for part in content:
            if type(part) is ToolCall and part.is_plain():
                made.append(part)
            elif type(part) is Text and said is None and not made and part.text and part.is_plain(NAME):
                said = part.text
            else:
                return None
        for call in made:
            self.calls[call.id] = call
        # The content of a call alone is null.
        return [{"role": "assistant", "content": said, "tool_calls": [plain_call(call) for call in made]}]

    def _plain_results(self, content: tuple[Part, ...]) -> list[Any] | None:
        """Results only."""
        calls, items = self.calls, []
        for part in content:
            if type(part) is not ToolResult:
                return None
            text = _plain_text(part, calls.get(part.call_id), self._native)
            if text is None:
                return None
            items.append({"role": "tool", "tool_call_id": part.call_id, "content": text})
        return items

    def write_turn(self, messages: tuple[Message, ...], start: int, end: int) -> list[Any]:
        return self._written([(f"$.messages[{index}]", messages[index]) for index in range(start, end)])

    def _written(self, run: list[tuple[str, Message]]) -> list[Any]:
        self._out = []
        first = run[0][1]
        for path, message in run:
            LOST.of(message, path, self.losses)
        if first.role == "user":
            self._users(run)
        elif first.role == "assistant":
            placed = _placed(*run[0])
            for path, message in run[1:]:
                placed += _placed(path, message)
            self._assistant(first, placed)
        else:
            for path, message in run:
                self._system(path, message)
        return self._out

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
                    self.losses.append(Loss(place, part.kind, "dropped", "system messages are text only"))
                case Reasoning() | ToolCall() | ToolResult():
                    self._misplaced(place, part, "system")
                case _:
                    assert_never(part)
        self._finish(out, message, entries)

    def _declared(self, value: dict[str, Any]) -> Any:
        """The tools declared in this message: rendered from the request's current tools, or as they were
        received."""
        if MIDWAY not in value:
            return value["tools"]
        number = value[MIDWAY]
        return [
            render_tool(tool, f"$.tools[{index}]", self.losses)[1]
            for index, tool in enumerate(self._tools)
            if isinstance(tool, Tool) and own_form(tool.extra, NAME).get(MIDWAY) == number
        ]

    def _users(self, run: list[tuple[str, Message]]) -> None:
        """Writes all results of the step, then content that results cannot contain, then everything else from
        the user."""
        others: list[tuple[Message, list[Placed]]] = []
        moved: list[Any] = []
        spoken = False
        for path, message in run:
            rest: list[Placed] = []
            for position, part in enumerate(message.content):
                if type(part) is ToolResult and not spoken:
                    text = _plain_text(part, self.calls.get(part.call_id), self._native)
                    if text is not None:
                        self._out.append({"role": "tool", "tool_call_id": part.call_id, "content": text})
                        continue
                place = f"{path}.content[{position}]"
                if type(part) is not ToolResult:
                    rest.append((place, part))
                    spoken = spoken or not _is_empty(part)
                    continue
                if spoken:
                    self.losses.append(RESULTS_FIRST.at(place))
                answer, shown = render_result(
                    part, place, self.calls, self._native, self.losses, joined="tool" in self._joined
                )
                self._out.append(answer)
                moved += shown
            if rest or message.name or not message.content:
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
                self.losses.append(
                    Loss(f"{run[0][0]}.name", "message.name", "dropped", "results have no author")
                )

    def _misplaced(self, path: str, part: Part, role: str) -> None:
        feature: Any = "reasoning.text" if isinstance(part, Reasoning) else "content.position"
        self.losses.append(Loss(path, feature, "dropped", f"no {type(part).__name__} in a {role} message"))

    def _finish(self, out: dict[str, Any], message: Message, entries: list[Placed]) -> None:
        """Content, name and unknown fields of a system or user message; left out if nothing of it can be sent
        and it was no empty turn."""
        parts = self._content(entries, message)
        known = own_fields(message.extra, NAME)
        form = own_form(message.extra, NAME)
        if parts is not None:
            out["content"] = parts
        elif "content" not in known and form.get("content") != "absent":
            if not message.is_empty:
                return
            out["content"] = ""
        if message.name:
            out["name"] = message.name
        self._mark(out, entries)
        put_back(out, message.extra)
        self._out.append(out)

    def _mark(self, out: dict[str, Any], entries: list[Placed]) -> None:
        """Puts back the marker of the whole message, whichever part holds it now."""
        for _, part in entries:
            mark = getattr(part, "cache", None)
            if mark is not None:
                put_message_cache(out, mark)

    def _content(self, entries: list[Placed], message: Message) -> str | list[Any] | None:
        """A string if that is sufficient, else a list; None for no content."""
        listed = own_form(message.extra, NAME).get("content") == "parts"
        if not listed:
            entries = [entry for entry in entries if not _is_empty(entry[1])]
            if not entries:
                return None
            path, text = entries[0]
            if len(entries) == 1 and type(text) is Text:
                if text.is_plain(NAME):
                    return text.text
                if is_plain(text) and not text.refusal:
                    LOST.of(text, path, self.losses)
                    return text.text
        parts = [part for entry in entries if (part := self._part(*entry)) is not None]
        if message.role in self._joined and all(map(is_text, parts)):
            return joined_texts(parts) if parts else None
        return parts if parts or listed else None

    def _part(self, path: str, part: Part) -> Any:
        match part:
            case Text():
                LOST.of(part, path, self.losses)
                if not part.text and part.signature is not None:  # it only carried its signature
                    return None
                return text_part(part, path, self.losses)
            case Media():
                return media_part(part, path, self.losses)
            case Foreign():
                return foreign_part(part, path, self.losses)
            case Reasoning():  # Mistral's, inside the content
                return thinking_part(part)
            case ToolCall() | ToolResult():
                raise AssertionError("calls and results are no content")
            case _:
                assert_never(part)

    # Assistant

    def _assistant(self, message: Message, placed: list[Placed]) -> None:
        extra = message.extra
        form = own_form(extra, NAME) if extra is not None else {}
        listed = form.get("content") == "parts"
        out: dict[str, Any] = {"role": "assistant"}
        thoughts: list[Reasoning] = []
        details: list[Any] = []
        entries: list[Placed] = []
        calls: list[dict[str, Any]] = []
        rank = _THOUGHT
        for path, part in placed:
            match part:
                case ToolCall():
                    rank = _CALLED
                    self._call(part, path, out, calls)
                case Text():
                    if not listed and _is_empty(part):
                        continue
                    rank = self._ranked(_SAID, rank, path)
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
                        LOST.of(part, path, self.losses)
                        if part.cache is not None and not is_of_message(part.cache):
                            self.losses.append(NOT_MARKED.at(f"{path}.cache"))
                    else:
                        entries.append((path, part))
                case Reasoning() if own_form(part.extra, NAME).get("field") == "content":
                    entries.append((path, part))
                case Reasoning():
                    if rank > _THOUGHT or (thoughts and not part.redacted):
                        self._moved(path)
                    self._reasoning(part, path, thoughts, details)
                case Foreign() if part.dialect == NAME:
                    rank = self._ranked(_SAID, rank, path)
                    if part.type == "audio":
                        out["audio"] = part.value
                    else:
                        entries.append((path, part))
                case Foreign():
                    entries.append((path, part))
                case Media() if own_form(part.extra, NAME).get("images"):
                    self._image(part, path, out)
                case Media():
                    detail = "assistant messages hold no media"
                    self.losses.append(Loss(path, part.kind, "dropped", detail))
                case ToolResult():
                    rank = self._ranked(_SAID, rank, path)
                    self._misplaced(path, part, "assistant")
                case _:
                    assert_never(part)
        content = self._content(entries, message)
        if content is not None:
            out["content"] = content
        elif "content" not in own_fields(extra, NAME) and form.get("content") != "absent":
            # The content of a call alone is null; an answer of only reasoning still needs a string.
            if not calls and out.keys().isdisjoint(("refusal", "audio", "images", "function_call")):
                if not thoughts and not details and not all(_is_empty(part) for _, part in placed):
                    return
                out["content"] = ""
            else:
                out["content"] = None
        if thoughts or details:
            put_reasoning(out, thoughts, details)
        if calls:
            out["tool_calls"] = calls
        if message.name:
            out["name"] = message.name
        self._mark(out, placed)
        if extra is not None:
            if "prefill" in form:
                out[form["prefill"]] = True
            put_back(out, extra)
        self._out.append(out)

    def _image(self, part: Media, path: str, out: dict[str, Any]) -> None:
        """An image that came in this dialect, in the field next to the content."""
        entry = media_part(part, path, self.losses)
        if entry is not None:
            images = out.setdefault("images", [])
            if own_form(part.extra, NAME)["images"] == "numbered":
                entry["index"] = len(images)
            images.append(entry)

    def _ranked(self, own: int, rank: int, path: str) -> int:
        """A message in this dialect is reasoning, then text, then calls. Parts in another order are moved,
        and the move is reported as a loss."""
        if own < rank:
            self._moved(path)
        return max(rank, own)

    def _moved(self, path: str) -> None:
        self.losses.append(Loss(path, "content.position", "approximated", "moved within the message"))

    def _reasoning(self, part: Reasoning, path: str, thoughts: list[Reasoning], details: list[Any]) -> None:
        LOST.of(part, path, self.losses)
        signature = part.signature
        if signature is not None:
            own = opaque_details(signature) if self._context.may_replay(signature, NAME) else None
            if own is not None:
                details += own
            elif not part.redacted:
                lose_signature(path, self.losses)
        if part.redacted:
            self.losses.append(Loss(path, "reasoning.redacted", "dropped", "another provider's"))
        else:
            thoughts.append(part)

    def _call(self, part: ToolCall, path: str, out: dict[str, Any], calls: list[dict[str, Any]]) -> None:
        self.calls[part.id] = part
        if part.is_plain():
            calls.append(plain_call(part))
            return
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
                lose_signature(path, self.losses)
        calls.append(render_call(part, carrier, path, self.losses))


def _has_refusal(entries: list[Placed]) -> bool:
    return any(isinstance(part, Text) and part.refusal for _, part in entries)


def _placed(path: str, message: Message) -> list[Placed]:
    return [(f"{path}.content[{index}]", part) for index, part in enumerate(message.content)]


def _is_empty(part: Part) -> bool:
    return type(part) is Text and not part.text and part.signature is None


def _is_last_text(part: Text, placed: list[Placed]) -> bool:
    return (
        not own_form(part.extra, NAME).get("part")
        and [p for _, p in placed if isinstance(p, Text)][-1] is part
    )
