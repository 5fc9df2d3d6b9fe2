"""Where a client finds what was lost: in its own words, in its own document."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.json_path import PATH_LONGEST
from wireglot_core.dialects.places import RequestPlaces, answer_located
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message, Reasoning, Text, ToolCall
from wireglot_core.ir.loss import Action, Loss
from wireglot_core.translate import translate_response

CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            "reasoning_content": "r",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "b"}]},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}
    ],
    "n": 2,
    "max_tokens": 3,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "my-own": 1,
    "a.b": {"c": 1},
}
ANTHROPIC = {
    "model": "m",
    "max_tokens": 1,
    "system": [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}],
    "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "sig"}]},
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "metadata": {"user_id": "u"},
}
RESPONSES = {
    "model": "m",
    "instructions": "i",
    "previous_response_id": "resp_1",
    "input": [
        {"role": "user", "content": "a"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "b"}]},
    ],
    "tools": [
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "parameters": {}}]},
        {"type": "web_search"},
    ],
    "reasoning": {"effort": "high"},
    "text": {"verbosity": "low", "format": {"type": "json_object"}},
}
GEMINI = {
    "system_instruction": {"parts": [{"text": "s"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}, "thought_signature": "x"}]},
    ],
    "tools": [
        {"function_declarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]},
        {"googleSearch": {}},
    ],
    "generation_config": {"top_k": 4, "thinkingConfig": {"thinkingBudget": 5}},
}


def place(name: str, body: dict[str, Any], path: str, action: Action = "dropped") -> str:
    spoken = dialect(name)
    assert spoken.places is not None
    places = RequestPlaces(spoken.places, body, spoken.parse_request(body, Context()))
    (loss,) = places.located([Loss(path, "unknown_field", action)])
    return loss.path


@rows(
    ("name", "body", "neutral", "own"),
    [
        ("openai-chat", CHAT, "$.sampling.candidates", "$.n"),
        ("openai-chat", CHAT, "$.max_tokens", "$.max_tokens"),
        ("openai-chat", CHAT, "$.output.schema", "$.response_format.json_schema.schema"),
        ("openai-chat", CHAT, "$.output.schema.type", "$.response_format.json_schema.schema.type"),
        ("openai-chat", CHAT, "$.my-own", '$["my-own"]'),
        ("openai-chat", CHAT, "$.a.b.c", '$["a.b"].c'),
        ("openai-chat", CHAT, "$.messages[0].content[0]", "$.messages[0].content"),
        ("openai-chat", CHAT, "$.messages[1].content[0]", "$.messages[1].reasoning_content"),
        ("openai-chat", CHAT, "$.messages[1].content[1].cache", "$.messages[1].content[0].cache_control"),
        ("openai-chat", CHAT, "$.messages[1].content[2].arguments", "$.messages[1].tool_calls[0].function.arguments"),
        ("openai-chat", CHAT, "$.messages[2].content[0].call_id", "$.messages[2].tool_call_id"),
        ("openai-chat", CHAT, "$.messages[2].content[0].content[0]", "$.messages[2].content[0]"),
        ("openai-chat", CHAT, "$.tools[0].strict", "$.tools[0].function.strict"),
        ("openai-chat", CHAT, "$.tools[0].schema", "$.tools[0].function.parameters"),
        ("openai-chat", CHAT, "$.nothing.of.the.kind", "$"),
        ("anthropic", ANTHROPIC, "$.messages[0].content[1]", "$.system[1]"),
        ("anthropic", ANTHROPIC, "$.messages[1].content[0]", "$.messages[0].content"),
        ("anthropic", ANTHROPIC, "$.messages[2].content[0].signature", "$.messages[1].content[0].signature"),
        ("anthropic", ANTHROPIC, "$.tools[0].schema.type", "$.tools[0].input_schema.type"),
        ("anthropic", ANTHROPIC, "$.parallel_tools", "$.tool_choice.disable_parallel_tool_use"),
        ("anthropic", ANTHROPIC, "$.user", "$.metadata.user_id"),
        ("anthropic", ANTHROPIC, "$.messages", "$.messages"),
        ("openai-responses", RESPONSES, "$.messages[0].content[0]", "$.instructions"),
        ("openai-responses", RESPONSES, "$.messages[1].content[0]", "$.input[0].content"),
        ("openai-responses", RESPONSES, "$.messages[2].content[0].signature", "$.input[1].encrypted_content"),
        ("openai-responses", RESPONSES, "$.messages[4].content[0].content[0]", "$.input[3].output[0]"),
        ("openai-responses", RESPONSES, "$.tools[0].schema", "$.tools[0].tools[0].parameters"),
        ("openai-responses", RESPONSES, "$.tools[1]", "$.tools[1]"),
        ("openai-responses", RESPONSES, "$.thinking.effort", "$.reasoning.effort"),
        ("openai-responses", RESPONSES, "$.verbosity", "$.text.verbosity"),
        ("openai-responses", RESPONSES, "$.output", "$.text.format"),
        ("openai-responses", RESPONSES, "$.messages", "$.input"),
        ("gemini", GEMINI, "$.messages[0].content[0]", "$.system_instruction.parts[0]"),
        ("gemini", GEMINI, "$.messages[2].content[0].signature", "$.contents[1].parts[0].thought_signature"),
        ("gemini", GEMINI, "$.messages[2].content[0].id", "$.contents[1].parts[0].functionCall"),
        ("gemini", GEMINI, "$.tools[0].schema", "$.tools[0].function_declarations[0].parameters"),
        ("gemini", GEMINI, "$.tools[1]", "$.tools[1].googleSearch"),
        ("gemini", GEMINI, "$.sampling.top_k", "$.generation_config.top_k"),
        ("gemini", GEMINI, "$.thinking.budget", "$.generation_config.thinkingConfig.thinkingBudget"),
        ("code-assist", {"model": "m", "request": GEMINI}, "$.tools[1]", "$.request.tools[1].googleSearch"),
        ("code-assist", {"model": "m", "request": GEMINI}, "$.sampling.top_k", "$.request.generation_config.top_k"),
        ("code-assist", {"model": "m", "request": GEMINI}, "$.messages[1]", "$.request.contents[0]"),
        ("gemini-simple", {"model": "m", "input": "a", "topK": 3}, "$.sampling.top_k", "$.topK"),
        ("gemini-simple", {"model": "m", "input": "a"}, "$.messages[0].content[0]", "$.input"),
    ],
)  # fmt: skip
def test_a_neutral_place_is_reported_in_the_words_of_the_client(name, body, neutral, own):
    """[X25]"""
    assert place(name, body, neutral) == own


def test_what_was_invented_is_reported_where_it_would_stand():
    """[X25] There, or at the nearest thing that there is."""
    said = {"messages": [{"role": "user", "content": "a"}]}
    assert place("anthropic", said, "$.max_tokens", "invented") == "$.max_tokens"
    assert place("gemini", {"contents": "a"}, "$.max_tokens", "invented") == "$"
    config = {"contents": "a", "generationConfig": {}}
    assert place("gemini", config, "$.max_tokens", "invented") == "$.generationConfig.maxOutputTokens"
    assert place("gemini", config, "$.max_tokens", "dropped") == "$.generationConfig"


def test_a_path_ends_before_a_key_that_is_very_long():
    """[X25]"""
    key = "k" * PATH_LONGEST
    assert place("openai-chat", {**CHAT, key: 1}, f"$.{key}") == "$"


def test_things_in_one_place_are_reported_once():
    """[X25] A string of the client's may have been several parts."""
    spoken = dialect("openai-chat")
    assert spoken.places is not None
    places = RequestPlaces(spoken.places, CHAT, spoken.parse_request(CHAT, Context()))
    twice = [Loss(f"$.thinking.{name}", "thinking.mode", "dropped", "off") for name in ("mode", "extra")]
    assert [loss.path for loss in places.located(twice)] == ["$"]


# A request that is not asked as it came.


def moved(messages: tuple[Message, ...], path: str) -> str:
    spoken = dialect("openai-responses")
    assert spoken.places is not None
    request = spoken.parse_request(RESPONSES, Context())
    asked = replace(request, messages=messages)
    (loss,) = RequestPlaces(spoken.places, RESPONSES, request).located(
        [Loss(path, "image", "dropped")], asked
    )
    return loss.path


def test_turns_that_the_gateway_holds_are_reported_at_what_refers_to_them():
    """[X25] They are not in the client's body."""
    own = dialect("openai-responses").parse_request(RESPONSES, Context()).messages
    held = (Message("user", (Text("earlier"),)), Message("assistant", (Text("before"),)))
    assert moved((*held, *own), "$.messages[1].content[0]") == "$.previous_response_id"
    assert moved((*held, *own), "$.messages[3].content[0]") == "$.input[0].content"


def test_what_was_put_between_or_taken_away_moves_nothing():
    """[X25] Calls that were put back, thoughts that were left out, parts that were replaced."""
    spoken = dialect("openai-responses")
    assert spoken.places is not None
    request = spoken.parse_request(RESPONSES, Context())
    own = request.messages
    call = Message("assistant", (ToolCall("0", "g", "{}"),))
    places = RequestPlaces(spoken.places, RESPONSES, request)

    def at(messages: tuple[Message, ...], path: str) -> str:
        return places.located([Loss(path, "image", "dropped")], replace(request, messages=messages))[0].path

    assert at((*own[:2], call, *own[2:]), "$.messages[5].content[0]") == "$.input[3]"
    assert at((*own[:2], *own[3:]), "$.messages[2].content[0]") == "$.input[2]"
    signed = Message("assistant", (Reasoning("new"), *own[3].content))
    assert at((*own[:3], signed, own[4]), "$.messages[3].content[1]") == "$.input[2]"


# Answers.


def test_a_loss_of_an_answer_is_reported_where_the_client_has_it():
    """[X25]"""
    body = {
        "choices": [
            {
                "message": {"role": "assistant", "content": "a", "tool_calls": [{"id": "1"}, {"id": "2"}]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1},
    }
    content = (Text("a"), ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}"), Reasoning("gone"))
    chat = dialect("openai-chat").places

    def at(path: str) -> str:
        (loss,) = answer_located(chat, [Loss(path, "citations", "dropped")], body, content)
        assert loss.document == "response"
        return loss.path

    assert at("$.content[0].citations") == "$.choices[0].message.content"
    assert at("$.content[2].signature") == "$.choices[0].message.tool_calls[1]"
    assert at("$.content[3]") == "$.choices[0].message"
    assert at("$.stop.sequence") == "$.choices[0].finish_reason"
    assert at("$.usage.cache_write") == "$.usage"
    assert at("$.others[0].content[1]") == "$.choices"
    assert at("$") == "$"


@rows(
    ("name", "content", "stop"),
    [
        ("openai-chat", "$.choices[0].message", "$.choices[0].finish_reason"),
        ("anthropic", "$.content", "$.stop_reason"),
        ("openai-responses", "$.output", "$.incomplete_details"),
        ("gemini", "$.candidates[0].content.parts", "$.candidates[0].finishReason"),
        ("code-assist", "$.response.candidates[0].content.parts", "$.response.candidates[0].finishReason"),
    ],
)
def test_a_loss_of_a_stream_is_reported_where_its_client_puts_it_together(name, content, stop):
    """[X25]"""
    losses = [Loss("$.content[2].signature", "image", "dropped"), Loss("$.stop", "stop_reason", "dropped")]
    assert [loss.path for loss in answer_located(dialect(name).places, losses)] == [content, stop]


@pytest.mark.parametrize(
    ("name", "body", "places"),
    [
        ("anthropic", {"id": "1", "usage": {}}, ("$.id", "$", "$", "$.usage")),
        ("anthropic", {"id": "1", "error": {"type": "x"}}, ("$.id", "$.error", "$.error", "$.error")),
        (
            "code-assist",
            {"response": {"id": "1"}},
            ("$.response.id", "$.response", "$.response", "$.response"),
        ),
        ("gemini", {"response_id": "1"}, ("$", "$.response_id", "$", "$")),
    ],
)
def test_a_field_of_one_dialect_alone_is_reported_where_it_would_stand(name, body, places):
    """[X25] Or where the answer says that there is none."""
    paths = ["$.id", "$.responseId", "$.x-y", "$.usage"]
    losses = [Loss(path, "unknown_field", "dropped", "x") for path in paths]
    located = [answer_located(dialect(name).places, [loss], body)[0].path for loss in losses]
    assert tuple(located) == places


def test_a_dialect_that_does_not_say_has_the_neutral_places():
    """[X25]"""
    loss = Loss("$.content[0]", "image", "dropped")
    assert answer_located(None, [loss]) == (replace(loss, document="response"),)


def test_what_an_answer_lost_is_called_by_its_name():
    """[X25] Fields that the client's document has no place for are given one by one, not as one loss."""
    answer = {
        "id": "x",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}],
        "system_fingerprint": "fp",
        "provider": "somebody",
    }
    reported = translate_response(answer, source="openai-chat", target="anthropic").losses
    named = {loss.detail.partition(":")[0] for loss in reported if loss.feature == "response.extra"}
    assert named == {"system_fingerprint", "provider"}
