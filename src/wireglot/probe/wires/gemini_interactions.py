"""Gemini's Interactions API: the probe's writer and reader, with the grammar of its streams."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.probe.question import (
    PICTURE,
    PICTURE_TYPE,
    THINKING_TOKENS,
    Called,
    Midway,
    Offer,
    ProbeCall,
    ProbeQuestion,
    ProbeResult,
    Results,
    Said,
    Turn,
    User,
)
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, ProbeUsage, Stop
from wireglot.probe.wires.google import GoogleWire
from wireglot.probe.wires.wire import ProbeReader, check_object
from wireglot_core.wire.json import decode, encode_text

_STOPS: Final[dict[str, Stop]] = {
    "completed": "end",
    "requires_action": "tool",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "other",
    "failed": "other",
    "cancelled": "other",
}
_BEGINNINGS: Final = ("in_progress", "queued")
_LEVELS: Final = ("low", "high")
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}
_PICTURE: Final = {"type": "image", "data": PICTURE, "mime_type": PICTURE_TYPE}
_DELTAS: Final = {
    "text": "model_output",
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}
"""The type of step that a delta belongs to."""


class InteractionsWire(GoogleWire):
    name = "gemini-interactions"
    turns = "input"
    settings = "generation_config"
    has_answer_ids = False  # those of an answer that is not stored may be empty

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]:
        settings: dict[str, Any] = {"max_output_tokens": question.most}
        if question.stop:
            settings["stop_sequences"] = list(question.stop)
        if question.named:
            settings["tool_choice"] = {"allowed_tools": {"mode": "any", "tools": [question.named]}}
        elif question.choice:
            settings["tool_choice"] = _CHOICES[question.choice]
        if question.thinking is not None:
            settings |= {"thinking_level": _LEVELS[question.thinking], "thinking_summaries": "auto"}
            settings["max_output_tokens"] = question.most + THINKING_TOKENS
        made: dict[str, Any] = {"model": model, "store": False}
        made["input"] = [step for turn in question.turns for step in _steps(turn)]
        if question.system:
            made["system_instruction"] = "\n".join(question.system)
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if question.schema is not None or question.json:
            made["response_format"] = {"type": "text", "mime_type": "application/json"}
            if question.schema is not None:
                made["response_format"]["schema"] = question.schema
        if question.stream:
            made["stream"] = True
        extra = dict(question.extra)
        settings |= extra.pop("generation_config", {})
        return {**made, "generation_config": settings, **extra}

    def error(self, document: Any, status: int) -> tuple[str, str]:
        error = At(document).get("error")
        return error.text("code", filled=True), error.text("message", filled=True)

    def read(self, document: Any) -> ProbeReply:
        at = At(document)
        at.is_("object", "interaction")
        reply = ProbeReply(id=_text(at, "id"), model=at.text("model", filled=True))
        steps = at.get("steps").each()
        for step in steps:
            _read_step(reply, step)
        finished(reply, at)
        reply.items = [step.object() for step in steps]
        reply.usage = counted(at.get("usage"))
        return reply

    def stream_reader(self, question: ProbeQuestion) -> ProbeReader:
        return _Reader()


def _text(at: At, name: str) -> str:
    """An optional text."""
    return at.text(name) if at.has(name) else ""


def _texts(holder: At, name: str) -> str:
    """The texts of a list of content."""
    parts = holder.get(name).each() if holder.has(name) else []
    return "".join(part.text("text") for part in parts if part.text("type", filled=True) == "text")


def _read_step(reply: ProbeReply, step: At) -> None:
    match step.text("type", filled=True):
        case "model_output":
            reply.texts.append(_texts(step, "content"))
        case "thought":
            reply.add_thought(_texts(step, "summary"), _text(step, "signature"))
        case "function_call":
            arguments = step.get("arguments").object()
            reply.add_call(
                step.text("id", filled=True), step.text("name", filled=True), encode_text(arguments)
            )


def finished(reply: ProbeReply, at: At) -> None:
    reply.stop_word = at.is_("status", *_STOPS)
    reply.stop = _STOPS[reply.stop_word]
    if reply.calls and reply.stop == "end":
        reply.stop = "tool"


def counted(usage: At) -> ProbeUsage:
    """Thoughts are counted besides the answer's tokens, input of hosted tools besides the prompt's."""
    thoughts = usage.maybe_number("total_thought_tokens")
    return ProbeUsage(
        input=usage.number("total_input_tokens") + (usage.maybe_number("total_tool_use_tokens") or 0),
        output=usage.number("total_output_tokens") + (thoughts or 0),
        cached=usage.maybe_number("total_cached_tokens"),
        reasoning=thoughts,
        total=usage.number("total_tokens"),
    )


def _steps(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case User():
            content = [*map(_said, turn.texts), *([_PICTURE] if turn.picture else [])]
            return [{"type": "user_input", "content": content}]
        case Said():
            return list(turn.items)
        case Called():
            text = [{"type": "model_output", "content": [_said(turn.text)]}] if turn.text else []
            return [*text, *map(_called, turn.calls)]
        case Results():
            return [_result(result) for result in turn.results]
        case Midway():
            return [{"type": "user_input", "content": [_said(turn.text)]}]


def _said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _called(call: ProbeCall) -> dict[str, Any]:
    arguments = decode(call.arguments.encode())
    return {"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments}


def _result(result: ProbeResult) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "function_result", "call_id": result.call.id, "name": result.call.name}
    listed = result.parts or result.picture
    made["result"] = [_said(result.text), *([_PICTURE] if result.picture else [])] if listed else result.text
    if result.error:
        made["is_error"] = True
    return made


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "function", "name": offer.name}
    if offer.description:
        made["description"] = offer.description
    if offer.schema is not None:
        made["parameters"] = offer.schema
    return made


class _Step(msgspec.Struct):
    """A step of a stream, joined from its deltas."""

    kind: str
    begun: dict[str, Any]
    texts: list[str] = []
    signature: str = ""
    pieces: list[str] = []
    """Of its arguments."""

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def whole(self) -> dict[str, Any]:
        match self.kind:
            case "model_output":
                return {**self.begun, "content": [_said(self.text)]}
            case "thought":
                summary = {"summary": [_said(self.text)]} if self.text else {}
                return {**self.begun, **summary, "signature": self.signature}
            case "function_call" if self.arguments:
                return {**self.begun, "arguments": decode(self.arguments.encode())}
        return self.begun


class _Reader(ProbeReader):
    def __init__(self) -> None:
        super().__init__()
        self.events = 0
        self.ends = 0
        self.done = 0
        self.steps: list[_Step] = []
        self.is_open = False

    def frame(self, frame: ProbeFrame, number: int) -> None:
        if not frame.data and not frame.event:
            return  # a comment
        if self.done:
            self.add("ending", f"frame {number}: data after [DONE]")
        if frame.data == "[DONE]":
            self.done += 1
            return
        document = self.document(frame, number)
        if document is None:
            return
        at = At(document, f"frame {number}")
        try:
            self._event(at, at.text("event_type", filled=True), frame.event)
        except Broken as broken:
            self.add("order" if self.events else "opening", str(broken))
        self.events += 1

    def _event(self, at: At, kind: str, name: str) -> None:
        if name and name != kind:
            self.add("frames", f"{at.path}: `event: {name}` of an event of the type {kind}")
        if not self.events and kind not in ("interaction.created", "error"):
            self.add("opening", f"{at.path}: the stream begins with {kind}")
        if self.ends:
            self.add("ending", f"{at.path}: {kind} after interaction.completed")
        match kind:
            case "interaction.created":
                self._created(at)
            case "interaction.status_update":
                self._identity(at, "interaction_id")
            case "step.start":
                self._start(at)
            case "step.delta":
                self._delta(at)
            case "step.stop":
                self._current(at)
                self.is_open = False
            case "interaction.completed":
                self._completed(at.get("interaction"))
            case "error":
                self.add("ending", f"{at.path}: an error: {at.value.get('error')}")

    def _created(self, at: At) -> None:
        if self.events:
            self.add("opening", f"{at.path}: a second interaction.created")
        interaction = at.get("interaction")
        self.reply.id, self.reply.model = _text(interaction, "id"), interaction.text("model", filled=True)
        interaction.is_("object", "interaction")
        interaction.is_("status", *_BEGINNINGS)

    def _identity(self, at: At, field: str) -> None:
        found = _text(at, field)
        if found != self.reply.id:
            self.add("identity", f"{at.path}: {field} was {self.reply.id!r} and now is {found!r}")

    def _start(self, at: At) -> None:
        if self.is_open:
            self.add("order", f"{at.path}: a step starts before step {len(self.steps) - 1} has stopped")
        index = at.number("index")
        if index != len(self.steps):
            self.add("indexes", f"{at.path}: a step with the index {index}, expected {len(self.steps)}")
        step = at.get("step")
        made = _Step(step.text("type", filled=True), dict(step.object()))
        self.steps.append(made)
        self.is_open = True
        match made.kind:
            case "model_output":
                self._said(made, _texts(step, "content"))
            case "thought":
                made.texts, made.signature = [_texts(step, "summary")], _text(step, "signature")
            case "function_call":
                self._begin_call(step)

    def _begin_call(self, step: At) -> None:
        """Some servers omit the arguments here."""
        try:
            step.text("id", filled=True)
            step.text("name", filled=True)
            if "arguments" in step.object():
                step.get("arguments").object()
        except Broken as broken:
            self.add("calls", str(broken))

    def _current(self, at: At) -> _Step | None:
        """The open step, which the event must belong to."""
        index = at.number("index")
        if not self.is_open:
            self.add("order", f"{at.path}: {at.value['event_type']} of step {index}, and no step is open")
            return None
        if index != len(self.steps) - 1:
            self.add("indexes", f"{at.path}: index {index}, and step {len(self.steps) - 1} is open")
        return self.steps[-1]

    def _delta(self, at: At) -> None:
        step, delta = self._current(at), at.get("delta")
        kind = delta.text("type", filled=True)
        if step is None or kind not in _DELTAS:
            return  # of media, annotations and hosted tools
        if step.kind != _DELTAS[kind]:
            self.add("order", f"{at.path}: a delta {kind} for a step of type {step.kind}")
            return
        match kind:
            case "text":
                self._said(step, delta.text("text"))
            case "thought_summary":
                if step.signature:
                    self.add("thoughts", f"{at.path}: a summary after the signature")
                step.texts.append(_text(delta.get("content"), "text"))
            case "thought_signature":
                if step.signature:
                    self.add("thoughts", f"{at.path}: a second signature of one step")
                step.signature = delta.text("signature")
            case "arguments_delta":
                step.pieces.append(delta.text("arguments"))

    def _said(self, step: _Step, text: str) -> None:
        step.texts.append(text)
        self.reply.texts.append(text)
        self.reply.pieces += bool(text)

    def _completed(self, interaction: At) -> None:
        self.ends += 1
        self._identity(interaction, "id")
        try:
            self.reply.usage = counted(interaction.get("usage"))
        except Broken as broken:
            self.add("usage", str(broken))
        try:
            finished(self.reply, interaction)
        except Broken as broken:
            self.add("ending", str(broken))

    def end(self) -> None:
        self.unless(not self.is_open, "order", f"step {len(self.steps) - 1} has no step.stop")
        self.unless(self.ends == 1, "ending", f"interaction.completed came {self.ends} times, expected once")
        self.unless(self.done == 1, "ending", f"`data: [DONE]` came {self.done} times, expected once")
        for number, step in enumerate(self.steps):
            if step.kind == "thought":
                self.reply.add_thought(step.text, step.signature)
            elif step.kind == "function_call":
                self._call(step, number)
        if self.reply.calls and self.reply.stop == "end":
            self.reply.stop = "tool"
        self.reply.items = [step.whole() for step in self.steps]

    def _call(self, step: _Step, number: int) -> None:
        begun = step.begun.get("arguments") or {}
        try:
            check_object(step.arguments, f"step {number}")
        except Broken as broken:
            self.add("calls", str(broken))
            step.pieces = []
        if begun and step.arguments:
            self.add(
                "calls", f"step {number}: arguments in step.start and in deltas: clients that join them fail"
            )
        arguments = step.arguments or encode_text(begun)
        self.reply.add_call(str(step.begun.get("id", "")), str(step.begun.get("name", "")), arguments)
