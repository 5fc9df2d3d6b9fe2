"""Renders a request toward an upstream that speaks Interactions."""

from __future__ import annotations

import re
from typing import Any, Final, assert_never

from wireglot_core.dialects.common_losses import (
    EFFORT_AS_OFF,
    FILLER,
    LEVEL_ALONE,
    NO_MESSAGE,
    NO_SCHEMA,
    RESULTS_FIRST,
)
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import (
    EFFORTS,
    LEVELS,
    MODEL_OUTPUT,
    OWN,
    SUMMARIES,
    TIERS,
    USER_INPUT,
    put_back,
)
from wireglot_core.dialects.gemini_interactions.render_steps import (
    CONTINUATION,
    content_of,
    render_called,
    render_replayed_thought,
    render_result,
    render_signing_thought,
    without_token,
)
from wireglot_core.dialects.gemini_interactions.render_tools import render_choice, render_tools
from wireglot_core.dialects.gemini_interactions.response import REPORTED
from wireglot_core.dialects.gemini_interactions.settings import (
    GENERATION,
    GENERATION_FIELDS,
    JSON_TYPE,
    PLAIN_TYPE,
)
from wireglot_core.dialects.google_shared import LABELS_ONLY, MARKED_TEXT, ON_BY_DEFAULT, highest_level
from wireglot_core.dialects.turns import TurnWriter, write_turns
from wireglot_core.dialects.unknown_fields import WITHOUT, merge
from wireglot_core.ir.content import Foreign, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss, feature_of, left_out
from wireglot_core.ir.request import OutputFormat, Request, Thinking

_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    form = own_form(request.extra, OWN)
    native = request.extra is not None and request.extra.dialect == OWN
    body: dict[str, Any] = {}
    if request.model or not native:
        body[_named(request, form)] = request.model
    _Input(request, context, losses, native).write(body, form)
    tools = _render_tools(request, context, losses)
    if tools or form.get("tools") == []:
        body["tools"] = tools
    config = _render_generation(request, losses)
    if config or form.get(GENERATION) == "empty":
        body[GENERATION] = config
    if request.output is not None and (native or request.output != OutputFormat("text")):
        body.update(_render_output(request.output, losses))
    if request.stream is not None:
        body["stream"] = request.stream
    _render_rest(request, body, native, losses)
    _render_storage(body, form, native)
    LOST.of(request, "$", losses)
    merge(body, _nested(own_fields(request.extra, OWN)))
    return Rendered(body, tuple(losses))


def _named(request: Request, form: dict[str, Any]) -> str:
    """The field for the model's name: `agent`, if the client named an agent instead."""
    fields = own_fields(request.extra, OWN)
    names_model = "model" not in form.get(WITHOUT, ()) and fields.get("model", "") is not None
    return "agent" if fields.get("agent") and not names_model else "model"


def _nested(fields: dict[str, Any]) -> dict[str, Any]:
    """Unknown fields of a request, those of its generation config nested again."""
    prefix = f"{GENERATION}."
    out = {key: item for key, item in fields.items() if not key.startswith(prefix)}
    inside = {key.removeprefix(prefix): item for key, item in fields.items() if key.startswith(prefix)}
    return {**out, GENERATION: inside} if inside else out


def _render_storage(body: dict[str, Any], form: dict[str, Any], native: bool) -> None:
    """Google stores an interaction unless `store` is false. Only clients of this dialect can request that: a
    request from another dialect, or one stored by the gateway, is not stored there."""
    if not native:
        body["store"] = False
        return
    for key in ("store", "background"):
        if key in form:
            body[key] = form[key]


def _render_tools(request: Request, context: Context, losses: list[Loss]) -> Any:
    tools = request.tools
    rendered = context.rendered_once(tools, OWN, lambda lost: render_tools(tools, lost), losses)
    return context.as_json(tools, (OWN, "tools"), rendered) if rendered else rendered


# --- settings


def _render_generation(request: Request, losses: list[Loss]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    GENERATION_FIELDS.write(request, config)
    LOST.of_fields(request.sampling, "$.sampling", losses)
    config.update(_render_thinking(request.thinking, losses))
    if request.tool_choice is not None:
        choice = render_choice(request.tool_choice, request.tools, losses)
        if choice is not None:
            config["tool_choice"] = choice
    return config


def _render_thinking(thinking: Thinking, losses: list[Loss]) -> dict[str, Any]:
    """Only a level can be expressed: there are no budgets, and thinking cannot be switched off."""
    path = "$.thinking"
    config: dict[str, Any] = {}
    mode, effort = thinking.mode, thinking.effort
    if mode == "off" or effort == "none":
        config["thinking_level"] = LEVELS["none"]
        detail = "thinking cannot be switched off: minimal is the lowest level"
        losses.append(Loss(f"{path}.mode", "thinking.mode", "approximated", detail))
        if effort not in (None, "none"):
            losses.append(EFFORT_AS_OFF.at(f"{path}.effort"))
    elif effort is not None:
        level = config["thinking_level"] = LEVELS[effort]
        if EFFORTS[level] != effort:
            losses.append(highest_level(level, path))
        if mode is not None:
            losses.append(LEVEL_ALONE.at(f"{path}.mode"))
    elif mode is not None:
        losses.append(ON_BY_DEFAULT.at(f"{path}.mode"))
    LOST.of(thinking, path, losses)
    if thinking.display is not None:
        config["thinking_summaries"] = SUMMARIES[thinking.display]
    return put_back(config, thinking.extra)


def _render_output(output: OutputFormat, losses: list[Loss]) -> dict[str, Any]:
    path = "$.output"
    LOST.of(output, path, losses)
    form = own_form(output.extra, OWN)
    if output.kind == "schema" and output.schema is None:
        losses.append(NO_SCHEMA.at(f"{path}.schema"))
    body: dict[str, Any] = {}
    if "response_mime_type" in form:
        body["response_mime_type"] = form["response_mime_type"]
    match form.get("shape"):
        case "absent":
            return body
        case "schema" if output.schema is not None:
            return {**body, "response_format": output.schema}
        case shape:
            entry = _format(output, form)
            return {**body, "response_format": [entry] if shape == "list" else entry}


def _format(output: OutputFormat, form: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "text"}
    stated = form.get("mime_type")
    if stated == "null":
        entry["mime_type"] = None
    elif stated is not None and stated != "absent":
        entry["mime_type"] = stated
    elif stated is None:
        entry["mime_type"] = PLAIN_TYPE if output.kind == "text" else JSON_TYPE
    if output.schema is not None:
        entry["schema"] = output.schema
    elif form.get("schema") == "null":
        entry["schema"] = None
    return entry


def _render_rest(request: Request, body: dict[str, Any], native: bool, losses: list[Loss]) -> None:
    tier = request.service_tier
    if tier and (native or tier in TIERS):
        body["service_tier"] = tier
    elif tier:
        losses.append(Loss("$.service_tier", "service_tier", "dropped", f"no tier is called {tier}"))
    labels = {}
    for key, value in request.metadata.items():
        if native or (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            labels[key] = value
        else:
            losses.append(LABELS_ONLY.at(f"$.metadata.{key}"))
    if labels or own_form(request.extra, OWN).get("labels") == "empty":
        body["labels"] = labels


# --- the conversation


class _Input(TurnWriter):
    """Renders messages as steps. System texts before all others are the instruction, which is one string."""

    def __init__(self, request: Request, context: Context, losses: list[Loss], native: bool) -> None:
        self._messages = request.messages
        self._extra = request.extra
        self._context = context
        self._native = native
        self.losses = losses
        self.calls: dict[str, str] = {}
        """The function name of each call."""

    def write(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        messages, token = without_token(self._messages)
        body.update(token)
        if self._continues_stored(form):
            messages = _without_answer(messages)
        start = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
        shape = form.get("input")
        only = messages[start] if len(messages) == start + 1 else None
        if shape in ("string", "content", "contents") and only is not None and only.role == "user":
            contents = self._contents(only, start)
            is_text = len(contents) == 1 and contents[0].keys() == {"type", "text"}
            if shape == "string" and is_text:
                body["input"] = contents[0]["text"]
            else:
                body["input"] = contents[0] if shape == "content" and len(contents) == 1 else contents
        else:
            steps = write_turns(self, messages, start, self._context, OWN, self._native)
            if not steps and not (self._native and shape == "absent"):
                self.losses.append(NO_MESSAGE)
                steps.append({"type": USER_INPUT, "content": [{"type": "text", "text": FILLER}]})
            if steps:
                body["input"] = steps[0] if shape == "step" and len(steps) == 1 else steps
        if start:
            instruction = self._instruction(messages[:start])
            if instruction is not None:
                body["system_instruction"] = instruction

    def _continues_stored(self, form: dict[str, Any]) -> bool:
        """Whether a token is sent together with the history of an interaction that the gateway has stored."""
        has_history = "previous_interaction_id" in form.get(REPORTED, {})
        return has_history and bool(own_fields(self._extra, OWN).get(CONTINUATION))

    def _instruction(self, messages: tuple[Message, ...]) -> str | None:
        texts: list[str] = []
        for index, message in enumerate(messages):
            LOST.of(message, f"$.messages[{index}]", self.losses)
            for number, part in enumerate(message.content):
                path = f"$.messages[{index}].content[{number}]"
                if type(part) is not Text:
                    detail = "an instruction is a text"
                    feature = part.kind if type(part) is Media else "foreign_part"
                    lost = Loss(path, feature, "dropped", detail)
                    self.losses.append(left_out(part, path) if type(part) is Foreign else lost)
                    continue
                content_of(part, path, self.losses)  # for its losses
                if part.citations:
                    self.losses.append(Loss(f"{path}.citations", "citations", "dropped", "only answers cite"))
                if part.signature is not None:
                    detail = "instructions are not signed"
                    self.losses.append(
                        Loss(f"{path}.signature", feature_of(part.signature), "dropped", detail)
                    )
                if texts and part.text:
                    detail = "one string: the texts are joined"
                    self.losses.append(Loss(path, "system.position", "approximated", detail))
                if part.text or self._native:
                    texts.append(part.text)
        return "\n\n".join(texts) if texts else None

    def write_message(self, message: Message, index: int) -> list[Any]:
        path = f"$.messages[{index}]"
        LOST.of(message, path, self.losses)
        if message.role == "system":
            return self._reminder(message, path)
        kind = MODEL_OUTPUT if message.role == "assistant" else USER_INPUT
        steps: list[dict[str, Any]] = []
        contents: list[dict[str, Any]] = []
        for number, part in self._in_order(message, path):
            place = f"{path}.content[{number}]"
            match part:
                case Text() | Media():
                    signing = render_signing_thought(part, self._context, place, self.losses)
                    if signing is not None:
                        _flush(steps, kind, contents)
                        steps.append(signing)
                    if type(part) is Text and not part.text and not self._is_kept(part, message):
                        continue
                    content = content_of(part, place, self.losses)
                    if content is not None:
                        contents.append(content)
                case Foreign() if _is_content(part, message):
                    contents.append(part.value)
                case _:
                    step = self._step(part, place, steps, kind, contents)
                    if step is not None:
                        steps.append(step)
        _flush(steps, kind, contents)
        if not steps and message.is_empty:
            steps.append({"type": kind, "content": []})
        return self._shaped(message, steps, kind)

    def _is_kept(self, part: Text, message: Message) -> bool:
        """Empty texts are refused; one from a client of this dialect is sent unchanged."""
        return self._native or (part.extra is not None and part.extra.dialect == OWN)

    def _in_order(self, message: Message, path: str) -> list[tuple[int, Part]]:
        """Moves results to the front, as they answer the calls before them."""
        parts = list(enumerate(message.content))
        if self._native or message.role != "user" or len(parts) < 2:
            return parts
        results = [entry for entry in parts if type(entry[1]) is ToolResult]
        arranged = results + [entry for entry in parts if type(entry[1]) is not ToolResult]
        moved = next((new for new, old in zip(arranged, parts, strict=True) if new is not old), None)
        if moved is not None:
            place = f"{path}.content[{moved[0]}]"
            self.losses.append(RESULTS_FIRST.at(place))
        return arranged

    def _step(
        self,
        part: Reasoning | ToolCall | ToolResult | Foreign,
        path: str,
        steps: list[dict[str, Any]],
        kind: str,
        contents: list[dict[str, Any]],
    ) -> dict[str, Any] | None:
        _flush(steps, kind, contents)
        match part:
            case ToolCall():
                signing = render_signing_thought(part, self._context, path, self.losses)
                if signing is not None:
                    steps.append(signing)
                step = render_called(part, self._context, path, self.losses)
                self.calls[part.id] = part.name
                return step
            case ToolResult():
                return render_result(part, self.calls.get(part.call_id, ""), path, self.losses)
            case Reasoning():
                return render_replayed_thought(part, self._context, path, self.losses)
            case Foreign():
                return content_of(part, path, self.losses)
            case _ as never:
                assert_never(never)

    def _reminder(self, message: Message, path: str) -> list[dict[str, Any]]:
        """The API has no system text in the middle of a conversation: it is sent as the user's, in tags."""
        contents = []
        for number, part in enumerate(message.content):
            place = f"{path}.content[{number}]"
            if type(part) is Text:
                render_signing_thought(part, self._context, place, self.losses)
            if type(part) is not Text and type(part) is not Media and type(part) is not Foreign:
                self.losses.append(Loss(place, "foreign_part", "dropped", "no text"))
                continue
            content = content_of(part, place, self.losses)
            if content is None or content.get("text") == "":
                continue
            if type(part) is Text:
                content = {**content, "text": f"<system-reminder>\n{part.text}\n</system-reminder>"}
            contents.append(content)
        if not contents:
            return []
        self.losses.append(MARKED_TEXT.at(path))
        return [{"type": USER_INPUT, "content": contents}]

    def _contents(self, message: Message, index: int) -> list[dict[str, Any]]:
        """The contents of one user turn, without a surrounding step."""
        path = f"$.messages[{index}]"
        LOST.of(message, path, self.losses)
        contents = []
        for number, part in enumerate(message.content):
            assert type(part) is Text or type(part) is Media or type(part) is Foreign
            content = content_of(part, f"{path}.content[{number}]", self.losses)
            if content is not None:
                contents.append(content)
        return contents

    def _shaped(self, message: Message, steps: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
        """Adds the fields that a client of this dialect set on the step itself."""
        extra = message.extra
        if extra is None or extra.dialect != OWN:
            return steps
        shape = extra.form.get("content")
        if not steps:
            steps = [{"type": kind, "content": []}]
        if shape == "absent" and steps[0].get("content") == []:
            del steps[0]["content"]
        elif len(steps) == 1 and shape == "string":
            contents = steps[0].get("content")
            if type(contents) is list and len(contents) == 1 and contents[0].keys() == {"type", "text"}:
                steps[0]["content"] = contents[0]["text"]
        put_back(steps[-1], extra)
        return steps


def _without_answer(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Removes the answer at the end: the token of an interaction that Google does not store is sent with the
    input that it answers."""
    end = len(messages)
    while end and messages[end - 1].role == "assistant":
        end -= 1
    return messages[:end]


def _flush(steps: list[dict[str, Any]], kind: str, contents: list[dict[str, Any]]) -> None:
    if contents:
        steps.append({"type": kind, "content": list(contents)})
        contents.clear()


def _is_content(part: Foreign, message: Message) -> bool:
    """Whether the part is content rather than a step: then it was in a turn with others, or is its only
    part."""
    return part.dialect == OWN and own_form(message.extra, OWN).get("turn") is True
