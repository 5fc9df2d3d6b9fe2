"""OpenAI Responses as the probe writes it and reads whole answers."""

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
from wireglot.probe.reply import At, Reply
from wireglot.probe.wires.openai_values import openai_error, openai_models
from wireglot.probe.wires.responses_object import read_response
from wireglot.probe.wires.responses_stream import read_stream

_EFFORTS: Final = ("low", "high")
_PICTURE: Final = {
    "type": "input_image",
    "detail": "auto",
    "image_url": f"data:{PICTURE_TYPE};base64,{PICTURE}",
}


class ResponsesWire:
    name: ClassVar[str] = "openai-responses"
    key_header: ClassVar[tuple[str, str]] = ("authorization", "Bearer ")
    thinking_ways: ClassVar[int] = len(_EFFORTS)
    state_is_signed: ClassVar[bool] = True
    image_results: ClassVar[bool] = True
    json_mode: ClassVar[bool] = True

    def body(self, model: str, question: Question) -> dict[str, Any]:
        made: dict[str, Any] = {"model": model, "store": False, **self._prompt(question)}
        made["max_output_tokens"] = max(16, question.most)
        if question.schema is not None:
            form = {"type": "json_schema", "name": "answer", "schema": question.schema, "strict": True}
            made["text"] = {"format": form}
        elif question.json:
            made["text"] = {"format": {"type": "json_object"}}
        if question.thinking is not None:
            made["reasoning"] = {"effort": _EFFORTS[question.thinking], "summary": "auto"}
            made["include"] = ["reasoning.encrypted_content"]
            made["max_output_tokens"] = question.most + THINKING_TOKENS
        if question.stream:
            made["stream"] = True
        return made | question.extra

    def count_body(self, model: str, question: Question) -> dict[str, Any] | None:
        return {"model": model, **self._prompt(question)}

    def count(self, document: Any) -> int:
        At(document).is_("object", "response.input_tokens")
        return At(document).number("input_tokens")

    def models(self, document: Any) -> list[str]:
        return openai_models(document)

    def error(self, document: Any, status: int) -> tuple[str, str]:
        return openai_error(document)

    def read(self, document: Any) -> Reply:
        return read_response(At(document))

    def read_stream(self, frames: Sequence[Frame], question: Question) -> Reply:
        return read_stream(frames)

    def _prompt(self, question: Question) -> dict[str, Any]:
        made: dict[str, Any] = {}
        first = question.turns[0]
        if len(question.turns) == 1 and isinstance(first, User) and not (first.parts or first.picture):
            made["input"] = first.texts[0] if len(first.texts) == 1 else _turn(first)
        else:
            made["input"] = [item for turn in question.turns for item in _turn(turn)]
        if question.system and question.system_parts:
            texts = [{"type": "input_text", "text": text} for text in question.system]
            system = {"type": "message", "role": "system", "content": texts}
            items = made["input"]
            if isinstance(items, str):
                items = _turn(first)
            made["input"] = [system, *items]
        elif question.system:
            made["instructions"] = "\n".join(question.system)
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if question.named:
            made["tool_choice"] = {"type": "function", "name": question.named}
        elif question.choice:
            made["tool_choice"] = question.choice
        if question.parallel is not None:
            made["parallel_tool_calls"] = question.parallel
        return made


def _turn(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case User():
            if len(turn.texts) == 1 and not turn.parts and not turn.picture:
                return [{"role": "user", "content": turn.texts[0]}]
            texts: list[dict[str, Any]] = [{"type": "input_text", "text": text} for text in turn.texts]
            content = [*texts, *([_PICTURE] if turn.picture else [])]
            return [{"type": "message", "role": "user", "content": content}]
        case Said():
            return list(turn.items)
        case Called():
            said = [{"role": "assistant", "content": turn.text}] if turn.text else []
            return [*said, *map(_called, turn.calls)]
        case Results():
            return [_result(result) for result in turn.results]
        case Midway():
            return [{"role": turn.role, "content": turn.text}]


def _called(call: Call) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _result(result: Result) -> dict[str, Any]:
    output: Any = result.text
    if result.parts or result.picture:
        pictures = [_PICTURE] if result.picture else []
        output = [{"type": "input_text", "text": result.text}, *pictures]
    return {"type": "function_call_output", "call_id": result.call.id, "output": output}


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "function", "name": offer.name, "strict": offer.strict}
    if offer.description:
        made["description"] = offer.description
    made["parameters"] = offer.schema if offer.schema is not None else None
    return made
