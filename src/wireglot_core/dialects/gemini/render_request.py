"""Renders generateContent requests."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, ClassVar

from wireglot_core.dialects.common_losses import FILLER, NO_MESSAGE
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini.generation import render_generation
from wireglot_core.dialects.gemini.lost_fields import LOST
from wireglot_core.dialects.gemini.names import OWN, put_back, unfolded
from wireglot_core.dialects.gemini.parse_request import TIERS, bare_model, read_tier
from wireglot_core.dialects.gemini.render_parts import PartRenderer
from wireglot_core.dialects.gemini.tools import render_choice, render_tools
from wireglot_core.dialects.google_shared import LABELS_ONLY, MARKED_TEXT
from wireglot_core.dialects.turns import JoinedTurn, JoiningWriter, join_turns
from wireglot_core.dialects.unknown_fields import merge
from wireglot_core.ir.content import APART, Message, Part, Role, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

_TIERS = {neutral: tier for tier, neutral in TIERS.items()}
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    renderer = PartRenderer(context, "upstream")
    out = renderer.losses
    form = own_form(request.extra, OWN)
    body: dict[str, Any] = {}
    model = form.get("model")
    if model is not None and bare_model(model) == request.model:
        body["model"] = model
    system, contents = _render_messages(request, renderer)
    single = form.get("contents") == "single" and len(contents) == 1
    body["contents"] = contents[0] if single else contents
    if system is not None:
        body["systemInstruction"] = system
    tools = _render_tools(request, form, out, context)
    if tools or form.get("tools") == []:
        body["tools"] = tools[0] if form.get("tools_shape") == "single" and len(tools) == 1 else tools
    if request.tool_choice is not None:
        config = render_choice(request.tool_choice, request.tools, out)
        if config is not None:
            body["toolConfig"] = {"functionCallingConfig": config}
    generation = render_generation(request, form, out)
    if generation:
        body["generationConfig"] = generation
    _render_rest(request, body, form, out)
    LOST.of(request, "$", out)
    merge(body, unfolded(own_fields(request.extra, OWN)))
    return Rendered(body, tuple(out))


def _render_tools(request: Request, form: dict[str, Any], out: list[Loss], context: Context) -> Any:
    tools, layout = request.tools, form.get("tools")
    if layout is not None or "tools_shape" in form:
        return render_tools(tools, layout, out)
    rendered = context.rendered_once(tools, OWN, lambda lost: render_tools(tools, None, lost), out)
    return context.as_json(tools, (OWN, "tools"), rendered) if rendered else rendered


_Placed = tuple[Part, int, dict[str, Any]]
"""A part of a message, its index there, and its rendered form."""


class _Contents(JoiningWriter):
    """Neighbours of one role become one content. System texts before all of them are the instruction."""

    roles: ClassVar[dict[Role, str]] = {"system": "user", "user": "user", "assistant": "model"}

    def __init__(self, renderer: PartRenderer) -> None:
        self._renderer = renderer
        self.losses, self.calls = renderer.losses, renderer.names
        self.instruction: list[dict[str, Any]] = []
        self.leading: Message | None = None
        """The first system text."""

    def state(self, message: Message) -> Hashable:
        return None if message.role == "system" and not self.turns else 0

    def write_message(self, message: Message, index: int) -> list[_Placed]:
        path = f"$.messages[{index}]"
        LOST.of(message, path, self.losses)
        parts: list[_Placed] = []
        rendered: dict[str, Any] | None
        for position, part in enumerate(message.content):
            rendered = self._renderer.render(part, f"{path}.content[{position}]")
            if rendered is not None:
                parts.append((part, position, rendered))
        if message.role != "system":
            return parts
        if not self.turns:
            self.leading = self.leading or message
            for *_, rendered in parts:
                self.instruction.append(rendered)
            return []
        return self._reminder(parts, path)

    def _reminder(self, parts: list[_Placed], path: str) -> list[_Placed]:
        """Gemini has no system text in the middle of a conversation: it is added to the user's turn, in
        tags."""
        if parts:
            self.losses.append(MARKED_TEXT.at(path))
        return [
            (part, place, {**rendered, "text": f"<system-reminder>\n{rendered['text']}\n</system-reminder>"})
            if type(part) is Text and "text" in rendered
            else (part, place, rendered)
            for part, place, rendered in parts
        ]

    def is_turn(self, message: Message) -> bool:
        """A turn without words stays one, as does a content without parts from a Gemini client."""
        return message.is_empty or self._is_own(message)

    def _is_own(self, message: Message) -> bool:
        return (
            not message.content
            and (message.role != "system" or bool(self.turns))
            and own_form(message.extra, OWN).get("parts") in ("empty", "absent")
        )

    def begins_turn(self, message: Message) -> bool:
        return bool(own_form(message.extra, OWN).get(APART)) or self._is_own(message)


def _render_messages(request: Request, renderer: PartRenderer) -> tuple[Any, list[Any]]:
    writer = _Contents(renderer)
    native = request.extra is not None and request.extra.dialect == OWN
    contents: list[Any] = []
    before: JoinedTurn | None = None
    for turn in join_turns(writer, request.messages, 0, renderer.context, OWN):
        is_moved = False
        if turn.role == "user" and not (native and turn.is_one):
            is_moved = _results_first(turn, before, renderer.losses)
        contents.append(_content(turn) if is_moved else turn.finished(_content))
        before = turn
    if not contents:
        renderer.losses.append(NO_MESSAGE)
        contents.append({"role": "user", "parts": [{"text": FILLER}]})
    return _system(writer.instruction, writer.leading), contents


def _results_first(turn: JoinedTurn, before: JoinedTurn | None, out: list[Loss]) -> bool:
    """Moves all results of a step to the front, in the order of the calls: Gemini counts them there. Returns
    whether anything had to be moved."""
    answered = [placed[0].call_id for _, placed in turn.pieces if type(placed[0]) is ToolResult]
    if not answered:
        return False
    calls = [placed[0].id for _, placed in before.pieces if type(placed[0]) is ToolCall] if before else []
    if answered == calls and len(answered) == len(turn.pieces) == len(set(calls)):
        return False  # the case of nearly all
    results: list[tuple[int, _Placed]] = []
    others: list[tuple[int, _Placed]] = []
    for piece in turn.pieces:
        (results if type(piece[1][0]) is ToolResult else others).append(piece)
    order = {identifier: place for place, identifier in reversed(list(enumerate(calls)))}
    ordered = sorted(results, key=lambda piece: order.get(getattr(piece[1][0], "call_id", ""), len(order)))
    arranged = ordered + others
    moved = [new for new, old in zip(arranged, turn.pieces, strict=True) if new is not old]
    if moved:
        index, (_, position, _) = moved[0]
        detail = "results come first, in the order of the calls"
        path = f"$.messages[{index}].content[{position}]"
        out.append(Loss(path, "content.position", "approximated", detail))
    turn.pieces = arranged
    return bool(moved)


def _content(turn: JoinedTurn) -> dict[str, Any]:
    extra = turn.message.extra
    parts = [rendered for _, (*_, rendered) in turn.pieces]
    if extra is None:
        return {"role": turn.role, "parts": parts}
    form = own_form(extra, OWN)
    content: dict[str, Any] = {}
    role = turn.role if turn.message.role == "system" else form.get("role", turn.role)
    if role != "absent":
        content["role"] = role
    if parts or form.get("parts") != "absent":
        content["parts"] = parts[0] if form.get("parts") == "single" and len(parts) == 1 else parts
    return put_back(content, extra)


def _system(instruction: list[dict[str, Any]], leading: Message | None) -> Any:
    if leading is None or leading.extra is None:
        return {"parts": instruction} if instruction else None
    form = own_form(leading.extra, OWN)
    shape = form.get("shape")
    if not instruction and shape != "instruction":
        return None
    if shape == "part" and len(instruction) == 1:
        return instruction[0]
    content: dict[str, Any] = {}
    if "role" in form:
        content["role"] = form["role"]
    if instruction:
        content["parts"] = (
            instruction[0] if form.get("parts") == "single" and len(instruction) == 1 else instruction
        )
    return put_back(content, leading.extra)


def _render_rest(request: Request, body: dict[str, Any], form: dict[str, Any], out: list[Loss]) -> None:
    stated = form.get("serviceTier")
    if stated is not None and read_tier(stated) == request.service_tier:
        body["serviceTier"] = stated
    elif request.service_tier in _TIERS:
        body["serviceTier"] = _TIERS[request.service_tier]
    elif request.service_tier:
        out.append(
            Loss("$.service_tier", "service_tier", "dropped", f"no tier is called {request.service_tier}")
        )
    native = request.extra is not None and request.extra.dialect == OWN
    labels = {}
    for key, value in request.metadata.items():
        if native or (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            labels[key] = value
        else:
            out.append(LABELS_ONLY.at(f"$.metadata.{key}"))
    if labels:
        body["labels"] = labels
