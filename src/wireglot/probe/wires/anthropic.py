"""Anthropic Messages as the probe writes it and reads whole answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from wireglot.probe.frames import Frame
from wireglot.probe.question import (
    PICTURE,
    PICTURE_TYPE,
    THINKING_TOKENS,
    Call,
    Called,
    Midway,
    Offer,
    Question,
    Result,
    Results,
    Said,
    Turn,
    User,
)
from wireglot.probe.reply import At, Reply, Thought
from wireglot.probe.wires.anthropic_stream import read_stream
from wireglot.probe.wires.anthropic_values import BLOCK_NULLS, MESSAGE_NULLS, STOPS, USAGE_NULLS, counted
from wireglot.wire.json import decode, encode_text

_OTHERS: Final = ("pause_turn", "refusal", "model_context_window_exceeded", "compaction")
_KINDS: Final[dict[int, tuple[str, ...]]] = {
    400: ("invalid_request_error",),
    401: ("authentication_error",),
    403: ("permission_error",),
    404: ("not_found_error",),
    413: ("request_too_large",),
    429: ("rate_limit_error",),
    529: ("overloaded_error",),
}
_THINKING: Final[tuple[dict[str, Any], ...]] = (
    {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
)
"""As models from 4.6 on want it, and as older ones and most clones do."""
_PICTURE: Final = {
    "type": "image",
    "source": {"type": "base64", "media_type": PICTURE_TYPE, "data": PICTURE},
}


class AnthropicWire:
    name: ClassVar[str] = "anthropic"
    key_header: ClassVar[tuple[str, str]] = ("x-api-key", "")
    thinking_ways: ClassVar[int] = len(_THINKING)
    state_is_signed: ClassVar[bool] = True
    image_results: ClassVar[bool] = True
    json_mode: ClassVar[bool] = False

    def body(self, model: str, question: Question) -> dict[str, Any]:
        made: dict[str, Any] = {"model": model, "max_tokens": question.most}
        made |= self._prompt(question)
        if question.stop:
            made["stop_sequences"] = list(question.stop)
        if question.schema is not None:
            made["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
        if question.thinking is not None:
            made |= _THINKING[question.thinking]
            made["max_tokens"] = question.most + THINKING_TOKENS
        if question.stream:
            made["stream"] = True
        return made | question.extra

    def count_body(self, model: str, question: Question) -> dict[str, Any] | None:
        return {"model": model, **self._prompt(question)}

    def count(self, document: Any) -> int:
        return At(document).number("input_tokens")

    def models(self, document: Any) -> list[str]:
        at = At(document)
        names = []
        for entry in at.get("data").each():
            entry.is_("type", "model")
            names.append(entry.text("id", filled=True))
            entry.text("display_name")
            entry.text("created_at")
        if type(at.get("has_more").value) is not bool:
            raise at.get("has_more").broken("true or false")
        return names

    def error(self, document: Any, status: int) -> tuple[str, str]:
        at = At(document)
        at.is_("type", "error")
        error = at.get("error")
        kind = error.text("type", filled=True)
        if status in _KINDS:
            error.is_("type", *_KINDS[status])
        return kind, error.text("message", filled=True)

    def read(self, document: Any) -> Reply:
        at = At(document)
        at.is_("type", "message")
        at.is_("role", "assistant")
        reply = Reply(id=at.text("id", filled=True), model=at.text("model", filled=True))
        reply.stop_word = at.is_("stop_reason", *STOPS, *_OTHERS)
        reply.stop = STOPS.get(reply.stop_word, "other")
        at.nullables(MESSAGE_NULLS, reply)
        sequence = at.nullable("stop_sequence", reply)
        reply.sequence = sequence.text() if sequence.value is not None else None
        blocks = at.get("content").each()
        for block in blocks:
            read_block(reply, block)
        reply.items = [{"role": "assistant", "content": [block.value for block in blocks]}]
        reply.usage = counted(at.get("usage"))
        at.get("usage").nullables(USAGE_NULLS, reply)
        return reply

    def read_stream(self, frames: Sequence[Frame], question: Question) -> Reply:
        return read_stream(frames)

    def _prompt(self, question: Question) -> dict[str, Any]:
        made: dict[str, Any] = {"messages": [_message(turn) for turn in question.turns]}
        if question.system:
            made["system"] = (
                [{"type": "text", "text": text} for text in question.system]
                if question.system_parts
                else "\n".join(question.system)
            )
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if (choice := _choice(question)) is not None:
            made["tool_choice"] = choice
        return made


def read_block(reply: Reply, block: At) -> None:
    kind = block.text("type", filled=True)
    block.nullables(BLOCK_NULLS.get(kind, ()), reply)
    match kind:
        case "text":
            reply.text += block.text("text")
        case "tool_use":
            arguments = block.get("input").object()
            call = Call(
                block.text("id", filled=True), block.text("name", filled=True), encode_text(arguments)
            )
            reply.calls = [*reply.calls, call]
        case "thinking":
            thought = Thought(block.text("thinking"), block.text("signature"))
            reply.thoughts = [*reply.thoughts, thought]
            reply.state += thought.state
        case "redacted_thinking":
            reply.thoughts = [*reply.thoughts, Thought("", block.text("data", filled=True))]
            reply.state += block.text("data")


def _message(turn: Turn) -> dict[str, Any]:
    match turn:
        case User():
            if len(turn.texts) == 1 and not turn.parts and not turn.picture:
                return {"role": "user", "content": turn.texts[0]}
            texts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in turn.texts]
            return {"role": "user", "content": [*([_PICTURE] if turn.picture else []), *texts]}
        case Said():
            return turn.items[0]
        case Called():
            said: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
            calls = [
                {
                    "type": "tool_use",
                    "id": call.id,
                    "name": call.name,
                    "input": decode(call.arguments.encode()),
                }
                for call in turn.calls
            ]
            return {"role": "assistant", "content": [*said, *calls]}
        case Results():
            return {"role": "user", "content": [_result(result) for result in turn.results]}
        case Midway():
            return {"role": "system", "content": turn.text}


def _result(result: Result) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call.id, "content": result.text}
    if result.parts or result.picture:
        pictures = [_PICTURE] if result.picture else []
        made["content"] = [{"type": "text", "text": result.text}, *pictures]
    if result.error:
        made["is_error"] = True
    return made


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"name": offer.name}
    if offer.description:
        made["description"] = offer.description
    made["input_schema"] = offer.schema or {"type": "object", "properties": {}}
    return made | ({"strict": True} if offer.strict else {})


def _choice(question: Question) -> dict[str, Any] | None:
    if question.named:
        choice: dict[str, Any] = {"type": "tool", "name": question.named}
    elif question.choice:
        choice = {"type": "any" if question.choice == "required" else question.choice}
    elif question.parallel is not None:
        choice = {"type": "auto"}
    else:
        return None
    if question.parallel is not None:
        choice["disable_parallel_tool_use"] = not question.parallel
    return choice
