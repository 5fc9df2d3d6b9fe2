"""A forced tool where no choice of tools exists: its schema is the format of the answer, which becomes its call."""

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.stream import fold
from wireglot_core.testing.laws import read_stream
from wireglot_core.wire.json import decode, encode

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = [{"role": "user", "content": "Where?"}]


def _chat(choice: Any, *names: str) -> dict[str, Any]:
    tools = [
        {"type": "function", "function": {"name": name, "description": f"Do {name}.", "parameters": PLACE}}
        for name in names
    ]
    return {"model": "m", "messages": HELLO, "tools": tools, "tool_choice": choice}


NAMED = {"type": "function", "function": {"name": "final"}}
ASKS: dict[str, tuple[DialectName, dict[str, Any]]] = {
    "Chat, named": ("openai-chat", _chat(NAMED, "look", "final")),
    "Chat, the only one": ("openai-chat", _chat("required", "final")),
    "Anthropic": (
        "anthropic",
        {
            "model": "m",
            "max_tokens": 99,
            "messages": HELLO,
            "tools": [{"name": name, "input_schema": PLACE} for name in ("look", "final")],
            "tool_choice": {"type": "tool", "name": "final"},
        },
    ),
    "Responses": (
        "openai-responses",
        {
            "model": "m",
            "input": "Where?",
            "tools": [{"type": "function", "name": name, "parameters": PLACE} for name in ("look", "final")],
            "tool_choice": {"type": "function", "name": "final"},
        },
    ),
    "Gemini": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Where?"}]}],
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": n, "parametersJsonSchema": PLACE} for n in ("look", "final")
                    ]
                }
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["final"]}},
        },
    ),
}


def _lines(*texts: str, reason: str = "stop") -> bytes:
    lines = [
        {"model": "m", "message": {"role": "assistant", "content": text}, "done": False} for text in texts
    ]
    end = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
    return b"".join(
        encode(line) + b"\n" for line in [*lines, {**end, "prompt_eval_count": 3, "eval_count": 4}]
    )


@rows("which", ASKS)
def test_the_schema_of_the_tool_is_the_format_of_the_answer(which: str) -> None:
    source, asked = ASKS[which]
    sent = translate_request(asked, source=source, target="ollama", model="qwen3")
    assert sent.value["format"] == PLACE
    assert "tools" not in sent.value
    (words,) = (message["content"] for message in sent.value["messages"] if message["role"] == "system")
    assert "final" in words
    assert [(loss.action, loss.grade) for loss in sent.losses if loss.feature == "tool_choice"] == [
        ("emulated", "harmless")
    ]


@rows("which", ASKS)
def test_the_answer_is_its_call(which: str) -> None:
    source, asked = ASKS[which]
    body = {"model": "m", "message": {"role": "assistant", "content": ' {"city":"Husum"}'}, "done": True}
    whole = translate_response(
        {**body, "done_reason": "stop"}, source="ollama", target=source, request=asked, model="qwen3"
    )
    translator = StreamTranslator(source="ollama", target=source, request=asked, model="qwen3")
    data = translator.feed(_lines(" ", '{"ci', 'ty":"Husum"}')) + translator.close()
    codec = dialect(source)
    for answer in (
        codec.parse_response(whole.value, Context()),
        fold(read_stream(codec, [data])),
    ):
        (call,) = (part for part in answer.content if type(part) is ToolCall)
        assert (call.name, decode(call.arguments.encode())) == ("final", {"city": "Husum"})
        assert not [part for part in answer.content if type(part) is Text and part.text]
        assert answer.stop.reason == "tool_calls"


def test_an_answer_that_is_no_object_stays_a_text() -> None:
    source, asked = ASKS["Chat, named"]
    translator = StreamTranslator(source="ollama", target=source, request=asked, model="qwen3")
    data = translator.feed(_lines("\n", "Husum, ", "I think.")) + translator.close()
    answer = fold(read_stream(dialect(source), [data]))
    assert [part.text.strip() for part in answer.content if type(part) is Text] == ["Husum, I think."]
    assert answer.stop.reason == "end"


def test_a_call_cut_by_the_limit_is_left_out() -> None:
    source, asked = ASKS["Chat, named"]
    body = {"model": "m", "message": {"role": "assistant", "content": '{"city":"Hus'}, "done": True}
    whole = translate_response(
        {**body, "done_reason": "length"}, source="ollama", target=source, request=asked, model="qwen3"
    )
    (choice,) = whole.value["choices"]
    assert (choice["finish_reason"], choice["message"].get("tool_calls")) == ("length", None)


@pytest.mark.parametrize(
    "asked",
    [
        _chat("required", "look", "final"),
        _chat("auto", "final"),
        {**_chat(NAMED, "look", "final"), "response_format": {"type": "json_object"}},
    ],
)
def test_other_choices_leave_the_tools_declared(asked: dict[str, Any]) -> None:
    sent = translate_request(asked, source="openai-chat", target="ollama", model="qwen3")
    assert sent.value["tools"]
    assert sent.value.get("format") in (None, "json")
