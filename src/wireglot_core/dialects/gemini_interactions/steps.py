"""Parses the steps of a request and renders those of an answer.

A step of a request is one message. Reasoning state of other providers travels to clients and back in the
signature of a thought: its own, or that of a thought without a summary before or after the part that was
signed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.arguments import arguments_text, declare_arguments, read_arguments
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PLACEHOLDERS, Holder
from wireglot_core.dialects.fields import Fields, describe, own_fields, own_form
from wireglot_core.dialects.gemini_interactions.content import is_content, parse_content, render_content
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import (
    FUNCTION_CALL,
    FUNCTION_RESULT,
    HOLLOW_STEP,
    JOINED,
    MODEL_OUTPUT,
    OWN,
    THOUGHT,
    UNKNOWN,
    USER_INPUT,
    put_back,
    step_fields,
)
from wireglot_core.dialects.google_shared import NO_OPAQUE_STATE
from wireglot_core.ir.content import (
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss, left_out
from wireglot_core.wire.json import encode_text

_TURN: Final = frozenset({"type", "content"})
_THOUGHT: Final = frozenset({"type", "summary", "signature"})
_CALL: Final = frozenset({"type", "id", "name", "arguments"})
_RESULT: Final = frozenset({"type", "call_id", "result", "name", "is_error"})


class CarriedSignature(msgspec.Struct, frozen=True):
    """A thought without content: it only returned the signature of a neighbouring part."""

    signature: Signature
    holder: Holder


class StepReader:
    """Parses the steps of a request in order. `waiting`: a signature that precedes its call."""

    def __init__(self, context: Context) -> None:
        self.messages: list[Message] = []
        self._context = context
        self._calls = 0
        self._waiting: Signature | None = None

    # The cache of turns

    def state(self, item: Any) -> Hashable:
        return self._calls if self._waiting is None and not _is_bare_thought(item) else None

    def mark(self) -> int | None:
        return self._calls if self._waiting is None else None

    def go_on(self, mark: int) -> None:
        self._calls = mark

    snapshot, restore = mark, go_on

    def read_message(self, item: Any, index: int) -> None:
        step = Fields(item, f"$.input[{index}]")
        if is_content(item):
            raise step.fault("expected a step: content and steps cannot be mixed", step.path)
        kind = step.text("type")
        match kind:
            case "user_input" | "model_output":
                self._waiting = None
                role: Role = "user" if kind == USER_INPUT else "assistant"
                self.messages.append(parse_turn(step, role))
            case "thought":
                thought = parse_thought(step, self._context)
                if type(thought) is Reasoning:
                    self._add(thought)
                elif type(thought) is CarriedSignature:
                    self._carry(thought)
            case "function_call":
                signature, self._waiting = self._waiting, None
                self._calls += 1
                self._add(parse_call(step, self._context, str(self._calls), signature))
            case "function_result":
                self._waiting = None
                self.messages.append(Message("user", (parse_result(step),)))
            case _:
                self._add(Foreign(OWN, kind, step.value))

    def _add(self, part: Part) -> None:
        self.messages.append(Message("assistant", (part,)))

    def _carry(self, carried: CarriedSignature) -> None:
        """A call's signature comes before it; a text's comes after it, since in a stream it is known last."""
        if carried.holder == "call":
            self._waiting = carried.signature
            return
        message = self.messages[-1] if self.messages else None
        if message is None or message.role != "assistant" or not message.content:
            return
        last = message.content[-1]
        if isinstance(last, Text | Media):
            signed = replace(last, signature=carried.signature)
            self.messages[-1] = replace(message, content=(*message.content[:-1], signed))


def _is_bare_thought(item: Any) -> bool:
    return type(item) is dict and item.get("type") == THOUGHT and not item.get("summary")


def parse_turn(step: Fields, role: Role) -> Message:
    """`user_input` or `model_output`."""
    given = step.value.get("content")
    form: dict[str, Any] = {}
    parts: tuple[Part, ...] = ()
    if type(given) is str:  # no SDK writes it, but hand-written clients do
        form["content"] = "string"
        parts = (Text(given),)
    elif given is None:
        form["content"] = "absent"
    else:
        parts = tuple(
            _parse_entry(Fields(item, f"{step.path}.content[{index}]", step.fault))
            for index, item in enumerate(step.array("content"))
        )
        if not parts:
            form["content"] = "empty"
        if any(type(part) is Foreign for part in parts):
            form["turn"] = True  # it is content rather than a step
    return Message(role, parts, extra=UNKNOWN.keep(step.value, _TURN, form))


def _parse_entry(entry: Fields) -> Part:
    """Vercel's AI SDK sends the results of calls as content of `user_input`."""
    return parse_result(entry) if entry.value.get("type") == FUNCTION_RESULT else parse_content(entry)


def parse_thought(
    step: Fields, context: Context, origin: Origin | None = None
) -> Reasoning | CarriedSignature | None:
    """A thought. `origin` None: sent by a client, whose envelopes are opened; else the one that signed it."""
    stated = step.text_or_none("signature")
    form: dict[str, Any] = {} if stated or stated is None else {"signature": stated}
    text, fields = _parse_summary(step, form)
    signature: Signature | None = None
    redacted = False
    if stated and origin is not None:
        signature = Signature(stated, origin)
    elif stated and stated in PLACEHOLDERS:
        form["signature"] = stated
    elif stated:
        sealed = context.unseal(stated)
        if sealed is None:
            signature = Signature(stated, Origin(OWN))
        elif sealed.holder in ("call", "text", "media"):
            return CarriedSignature(sealed.signature, sealed.holder)
        elif sealed.holder != "unsigned":
            signature, redacted = sealed.signature, sealed.holder == "redacted"
    rest = UNKNOWN.keep(step.value, _THOUGHT, form)
    if fields:
        rest = Extra(OWN, {**(rest.fields if rest is not None else {}), **fields}, form)
    return Reasoning(text, signature, redacted, rest)


def _parse_summary(step: Fields, form: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text of a summary, and the field to keep if it contains more than texts."""
    given = step.value.get("summary")
    if given is None:
        return "", {}
    entries = step.array("summary")
    texts: list[str] = []
    fields: dict[str, Any] = {}
    for index, item in enumerate(entries):
        entry = Fields(item, f"{step.path}.summary[{index}]", step.fault)
        if entry.value.get("type") == "text":
            texts.append(entry.text("text"))
        else:
            fields["summary"] = given
    text = "".join(texts)
    if not fields and (not given or given != summary_of(text)):
        form["summary"] = given
    return text, fields


def summary_of(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def parse_call(
    step: Fields, context: Context, ordinal: str = "", signature: Signature | None = None
) -> ToolCall:
    name = step.text("name")
    if not name:
        raise step.wrong("name", "the name of a function")
    form: dict[str, Any] = {}
    given = step.value.get("arguments")
    if given is None:
        form["arguments"] = "absent"
    elif type(given) is str:
        form["arguments"] = "string"
    elif type(given) is not dict:
        raise step.wrong("arguments", "an object")
    identifier = step.text_or("id")
    if not identifier:
        form["id"] = "absent"
        identifier = context.lasting_id(context.call_prefix, ordinal, name)
    if type(given) is dict:
        arguments = arguments_text(given)
    else:
        arguments = given if type(given) is str else "{}"
    extra = UNKNOWN.keep(step.value, _CALL, form)
    return ToolCall(identifier, name, arguments, signature=signature, extra=extra)


def parse_result(step: Fields) -> ToolResult:
    """`function_result`, whose result is a string, an object or a list of content."""
    form: dict[str, Any] = {}
    given = step.value.get("result")
    content: tuple[ResultPart, ...] = ()
    if type(given) is str:
        form["result"] = "string"
        content = (Text(given),)
    elif type(given) is list and all(map(is_content, given)):
        form["result"] = "list"
        content = tuple(
            parse_content(Fields(item, f"{step.path}.result[{index}]", step.fault))
            for index, item in enumerate(given)
        )
    elif given is None:
        if "result" not in step.value:
            raise step.wrong("result", "a string, an object or an array of content")
        form["result"] = "null"
    elif type(given) in (dict, list):
        form["result"] = "value"
        content = (Text(encode_text(given)),)
    else:
        detail = f"expected a string, an object or an array of content, got {describe(given)}"
        raise step.fault(detail, f"{step.path}.result")
    is_error = step.boolean("is_error")
    if is_error is False:
        form["is_error"] = False
    return ToolResult(
        step.text("call_id"),
        content,
        is_error is True,
        step.text_or("name"),
        extra=UNKNOWN.keep(step.value, _RESULT, form, blanks=("name",)),
    )


# --- steps of an answer


def signature_for_client(signature: Signature, holder: Holder, context: Context) -> str:
    """The value for a client to echo: the signature itself if Google minted it, else an envelope."""
    if signature.origin.dialect == OWN and not signature.id and holder == "reasoning":
        return signature.data
    return context.seal(signature, holder)


def carrier(part: Text | Media | ToolCall, signature: Signature, context: Context) -> dict[str, Any]:
    """A thought without content that carries the signature of its neighbour."""
    holder: Holder = "call" if type(part) is ToolCall else "text" if type(part) is Text else "media"
    return {"type": THOUGHT, "signature": context.seal(signature, holder)}


def render_thought(part: Reasoning, path: str, context: Context, losses: list[Loss]) -> dict[str, Any]:
    LOST.of(part, path, losses)
    fields, form = own_fields(part.extra, OWN), own_form(part.extra, OWN)
    step: dict[str, Any] = {"type": THOUGHT}
    stated = fields.get("summary", form.get("summary"))
    if type(stated) is list and _texts(stated) == part.text:
        step["summary"] = stated
    elif part.text:
        step["summary"] = summary_of(part.text)
    if part.redacted and part.signature is None:
        losses.append(NO_OPAQUE_STATE.at(path))
    if part.signature is not None:
        holder: Holder = "redacted" if part.redacted else "reasoning"
        step["signature"] = signature_for_client(part.signature, holder, context)
    elif "signature" in form:
        step["signature"] = form["signature"]
    return put_back(step, part.extra)


def _texts(summary: list[Any]) -> str:
    return "".join(item["text"] for item in summary if type(item) is dict and type(item.get("text")) is str)


def render_call(part: ToolCall, path: str, losses: list[Loss]) -> dict[str, Any]:
    """`function_call` with its whole arguments."""
    step = begin_call(part, path, losses)
    form = own_form(part.extra, OWN)
    if part.kind == "custom":
        step["arguments"] = {"input": part.arguments}
    elif form.get("arguments") == "string":
        step["arguments"] = part.arguments
    elif form.get("arguments") == "absent" and part.arguments in ("", "{}"):
        del step["arguments"]
    else:
        step["arguments"], read = read_arguments(part.arguments)
        declare_arguments(read, path, losses)
    return put_back(step, part.extra)


def begin_call(part: ToolCall, path: str, losses: list[Loss]) -> dict[str, Any]:
    """The step as announced in a stream: the arguments follow in pieces."""
    LOST.of(part, path, losses)
    step: dict[str, Any] = {"type": FUNCTION_CALL, "id": part.id, "name": part.name, "arguments": {}}
    if own_form(part.extra, OWN).get("id") == "absent":
        del step["id"]
    return step


class AnswerSteps:
    """The steps of an answer, part by part."""

    def __init__(self, context: Context, losses: list[Loss]) -> None:
        self.steps: list[dict[str, Any]] = []
        self._context = context
        self._losses = losses

    def add(self, part: Part, path: str) -> None:
        match part:
            case Text() | Media():
                content = render_content(part, path, self._losses)
                if content is not None:
                    self._output(part, content)
            case Reasoning():
                self.steps.append(render_thought(part, path, self._context, self._losses))
            case ToolCall():
                if part.signature is not None:
                    self.steps.append(carrier(part, part.signature, self._context))
                self.steps.append(render_call(part, path, self._losses))
            case Foreign() if part.dialect == OWN:
                self.steps.append(part.value)
            case Foreign():
                self._losses.append(left_out(part, path))
            case ToolResult():
                raise AssertionError("a result in an answer")

    def _output(self, part: Text | Media, content: dict[str, Any]) -> None:
        form = own_form(part.extra, OWN)
        last = self.steps[-1] if self.steps else {}
        if form.get(JOINED) and last.get("type") == MODEL_OUTPUT and type(last.get("content")) is list:
            last["content"].append(content)
        else:
            step: dict[str, Any] = {"type": MODEL_OUTPUT, "content": [content]}
            hollow = form.get(HOLLOW_STEP)
            if hollow is not None and type(part) is Text and not part.text:
                step["content"] = []
                if hollow == "absent":
                    del step["content"]
            self.steps.append({**step, **step_fields(part.extra)})
        if part.signature is not None:
            self.steps.append(carrier(part, part.signature, self._context))
