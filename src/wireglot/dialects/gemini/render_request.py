"""generateContent requests, IR -> wire."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.common_losses import FILLER, NO_MESSAGE, NO_SAFEGUARDS
from wireglot.dialects.fields import own_form
from wireglot.dialects.gemini.generation import render_generation
from wireglot.dialects.gemini.names import OWN, put_back, unfolded
from wireglot.dialects.gemini.parse_request import TIERS, bare_model, read_tier
from wireglot.dialects.gemini.render_parts import PartRenderer
from wireglot.dialects.gemini.tools import render_choice, render_tools
from wireglot.dialects.request_fields import MissingFields
from wireglot.dialects.turns import WrittenTurn, WrittenTurns
from wireglot.dialects.unknown_fields import merge
from wireglot.ir.content import Message, Part, Text, ToolCall, ToolResult
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.ir.request import Request
from wireglot.wire.memory import Memory, remembered, written

_TIERS = {neutral: tier for tier, neutral in TIERS.items()}
_MISSING = MissingFields(
    {
        "verbosity": "no such setting",
        "user": "end users are not named",
        "cache": "Gemini caches implicitly",
        "cache_key": "Gemini caches implicitly",
    }
)
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
    tools = _render_tools(request, form, out, context.memory)
    if tools or form.get("tools") == []:
        body["tools"] = tools[0] if form.get("tools_shape") == "single" and len(tools) == 1 else tools
    if request.tool_choice is not None:
        config = render_choice(request.tool_choice, request.tools, out)
        if config is not None:
            body["toolConfig"] = {"functionCallingConfig": config}
    generation = render_generation(request, out)
    if generation:
        body["generationConfig"] = generation
    _render_rest(request, body, form, out)
    extra = request.extra
    if extra is not None and extra.dialect == OWN:
        merge(body, unfolded(extra.fields))
    else:
        losses_of_extra(extra, OWN, "$", out)
    return Rendered(body, tuple(out))


def _render_tools(request: Request, form: dict[str, Any], out: list[Loss], memory: Memory | None) -> Any:
    layout = form.get("tools")
    if layout is not None or "tools_shape" in form:
        return render_tools(request.tools, layout, out)

    def make() -> tuple[list[dict[str, Any]], list[Loss]]:
        lost: list[Loss] = []
        return render_tools(request.tools, None, lost), lost

    rendered, lost = remembered(memory, request.tools, OWN, make)
    out += lost
    return written(memory, request.tools, (OWN, "tools"), rendered) if rendered else rendered


_Placed = tuple[Part, int, dict[str, Any]]
"""A part of a message, its place there, and what it is written as."""


class _Content:
    """One content being put together out of neighbouring messages of a role."""

    __slots__ = ("arranged", "kinds", "known", "message", "messages", "parts", "role")

    def __init__(self, role: str, message: Message) -> None:
        self.role = role
        self.message = message
        self.messages = 0
        self.kinds: set[type[Part]] = set()
        self.arranged = False
        """Its parts stand otherwise than in the message."""
        self.known: WrittenTurn | None = None
        """What was written of its first message before."""
        self.parts: list[tuple[Part, int, int, dict[str, Any]]] = []
        """Each with the numbers of its message and of its place there."""


def _render_messages(request: Request, renderer: PartRenderer) -> tuple[Any, list[Any]]:
    instruction: list[dict[str, Any]] = []
    leading: Message | None = None
    contents: list[_Content] = []
    turns: list[_Content] = []
    turn = WrittenTurns(request.messages, renderer.context, renderer.names, renderer.losses, OWN)
    make = partial(_turn_parts, renderer)
    for index, message in enumerate(request.messages):
        if message.role == "system" and not contents:
            leading = leading or message
            _declare_message(message, f"$.messages[{index}]", renderer)
            for _, _, rendered in _render_parts(message, f"$.messages[{index}]", renderer):
                instruction.append(rendered)
            continue
        role = "model" if message.role == "assistant" else "user"
        parts, known = turn.write(message, index, make, as_json=False)
        form = own_form(message.extra, OWN)
        empty = form.get("parts") in ("empty", "absent") and not message.content
        if not parts and not empty:
            continue  # Gemini refuses a content without parts; one of a Gemini client goes as it is
        if not contents or contents[-1].role != role or form.get("cut") or empty:
            contents.append(_Content(role, message))
            contents[-1].known = known
        contents[-1].messages += 1
        for part, position, rendered in parts:
            contents[-1].parts.append((part, index, position, rendered))
            contents[-1].kinds.add(type(part))
    native = request.extra is not None and request.extra.dialect == OWN
    for content in contents:
        if content.role == "user" and not (native and content.messages == 1):
            _results_first(content, turns, renderer.losses)
        turns.append(content)
    told = [_finish(content) if content.arranged else _finished(content, turn) for content in contents]
    if not told:
        renderer.losses.append(NO_MESSAGE)
        told.append({"role": "user", "parts": [{"text": FILLER}]})
    return _system(instruction, leading), told


def _declare_message(message: Message, path: str, renderer: PartRenderer) -> None:
    if message.extra is not None and message.extra.fields:
        losses_of_extra(message.extra, OWN, path, renderer.losses)
    if message.name:
        renderer.losses.append(Loss(f"{path}.name", "message.name", "dropped", "contents have no names"))


def _turn_parts(renderer: PartRenderer, message: Message, index: int) -> list[_Placed]:
    path = f"$.messages[{index}]"
    _declare_message(message, path, renderer)
    parts = _render_parts(message, path, renderer)
    return parts if message.role != "system" else _reminder(parts, path, renderer)


def _finished(content: _Content, turn: WrittenTurns) -> Any:
    """The content of one message, which may have been written before."""
    known = content.known if content.messages == 1 else None
    if known is None:
        return _finish(content)
    return known.whole[0] if known.whole else turn.finish(known, content.message, _finish(content))


def _render_parts(message: Message, path: str, renderer: PartRenderer) -> list[_Placed]:
    parts = []
    for position, part in enumerate(message.content):
        rendered = renderer.render(part, f"{path}.content[{position}]")
        if rendered is not None:
            parts.append((part, position, rendered))
    return parts


def _reminder(parts: list[_Placed], path: str, renderer: PartRenderer) -> list[_Placed]:
    """System text in the middle has no place of its own: it joins the user's turn, marked as what it is."""
    if parts:
        detail = "marked text in the user's turn"
        renderer.losses.append(Loss(path, "system.position", "approximated", detail))
    return [
        (part, place, {**rendered, "text": f"<system-reminder>\n{rendered['text']}\n</system-reminder>"})
        if type(part) is Text and "text" in rendered
        else (part, place, rendered)
        for part, place, rendered in parts
    ]


def _results_first(content: _Content, turns: list[_Content], out: list[Loss]) -> None:
    """All answers of a step stand first, in the order of the calls: Gemini counts them there."""
    if ToolResult not in content.kinds:
        return
    results = [item for item in content.parts if type(item[0]) is ToolResult]
    calls = [part.id for part, *_ in turns[-1].parts if type(part) is ToolCall] if turns else []
    order = {identifier: place for place, identifier in reversed(list(enumerate(calls)))}
    ordered = sorted(results, key=lambda item: order.get(getattr(item[0], "call_id", ""), len(order)))
    arranged = ordered + [item for item in content.parts if type(item[0]) is not ToolResult]
    for place, item in enumerate(arranged):
        if item is not content.parts[place]:
            content.arranged = True
            out.append(
                Loss(
                    f"$.messages[{item[1]}].content[{item[2]}]",
                    "content.position",
                    "approximated",
                    "results stand first, in the order of the calls",
                )
            )
            break
    content.parts = arranged


def _system(instruction: list[dict[str, Any]], leading: Message | None) -> Any:
    if leading is None or (not instruction and own_form(leading.extra, OWN).get("shape") != "instruction"):
        return None
    form = own_form(leading.extra, OWN)
    shape = form.get("shape")
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


def _finish(content: _Content) -> dict[str, Any]:
    extra = content.message.extra
    form = own_form(extra, OWN)
    parts = [rendered for *_, rendered in content.parts]
    finished: dict[str, Any] = {}
    role = content.role if content.message.role == "system" else form.get("role", content.role)
    if role != "absent":
        finished["role"] = role
    if parts or form.get("parts") != "absent":
        finished["parts"] = parts[0] if form.get("parts") == "single" and len(parts) == 1 else parts
    return finished if extra is None else put_back(finished, extra)


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
            out.append(Loss(f"$.metadata.{key}", "metadata", "dropped", "labels are short and lower-case"))
    if labels:
        body["labels"] = labels
    if request.parallel_tools is False:
        out.append(
            Loss("$.parallel_tools", "parallel_tools", "dropped", "parallel calls cannot be switched off")
        )
    _MISSING.declare(request, out)
    if request.safeguards:
        out.append(NO_SAFEGUARDS)
