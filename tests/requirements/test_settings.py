"""Groups Y, Z, AC, AH and AI: every setting reaches the upstream under its own name there, or a loss says why not."""

import pytest

import wireglot
from tests.requirements.wire import ASKS, asked, chat, gemini, responses
from tests.tiers import rows
from wireglot_core.dialects.registry import dialect_name

PLACES = {
    # What the caller means, and where each dialect has it; None: it has no word for it.
    "temperature": ("temperature", "temperature", "temperature", "generationConfig.temperature"),
    "top_p": ("top_p", "top_p", "top_p", "generationConfig.topP"),
    "top_k": ("top_k", None, None, "generationConfig.topK"),
    "max_tokens": (
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "generationConfig.maxOutputTokens",
    ),
    "stop": ("stop_sequences", "stop", None, "generationConfig.stopSequences"),
    "frequency_penalty": (None, "frequency_penalty", None, "generationConfig.frequencyPenalty"),
    "presence_penalty": (None, "presence_penalty", None, "generationConfig.presencePenalty"),
}
VALUES = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "max_tokens": 50,
    "stop": ["END"],
    "frequency_penalty": 0.1,
    "presence_penalty": 0.2,
}


def put(body: dict, place: str, value: object) -> dict:
    *outer, last = place.split(".")
    body = {**body}
    inner = body
    for name in outer:
        inner[name] = {**inner.get(name, {})}
        inner = inner[name]
    inner[last] = value
    return body


def found(body: dict, place: str) -> object:
    value: object = body
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


@rows(
    "setting",
    [
        "temperature",  # R-Y-07, R-Z-08, R-AC-11, R-AF-09
        "top_p",  # R-Y-08, R-Z-09, R-AC-12
        "top_k",  # R-Y-09
        "max_tokens",  # R-Y-10, R-Z-10, R-AC-14
        "stop",  # R-Y-11, R-AC-24, R-AH-07
        "frequency_penalty",  # R-Y-12, R-AC-15
        "presence_penalty",  # R-Y-13, R-AC-16
    ],
)
def test_a_setting_is_forwarded_or_its_loss_is_reported(setting):
    """R-AI-01, R-X-08, C38: from each dialect that has it to each."""
    for asker, here in zip(ASKS, PLACES[setting], strict=True):
        for upstream, there in zip(ASKS, PLACES[setting], strict=True):
            if here is None:
                continue
            body = put(ASKS[asker], here, VALUES[setting])
            out = wireglot.translate_request(
                body, source=dialect_name(asker), target=dialect_name(upstream), model="m"
            )
            lost = {loss.feature for loss in out.losses} & {f"sampling.{setting}", "stop_sequences"}
            if there is None:
                assert lost, (asker, upstream)
            else:
                assert not lost
                assert found(out.value, there) == VALUES[setting], (asker, upstream)


def test_nothing_is_injected_that_the_client_did_not_say():
    """R-Y-14, C37: the client's word stands, and silence stays silence."""
    assert asked(chat(temperature=0.0), "openai-chat", "gemini")["generationConfig"] == {"temperature": 0.0}
    assert "generationConfig" not in asked(chat(), "openai-chat", "gemini")


def test_what_a_model_fixes_is_dropped_aloud_and_refused_if_strict():
    """R-Y-14, C38: by the capabilities of the model, not for everyone."""
    body = chat(temperature=0.3)
    out = wireglot.translate_request(
        body, source="openai-chat", target="openai-chat", provider="kimi", model="kimi-k3"
    )
    assert "temperature" not in out.value
    assert [loss.feature for loss in out.losses] == ["sampling.temperature"]
    with pytest.raises(wireglot.StrictLoss):
        wireglot.translate_request(
            body, source="openai-chat", target="openai-chat", provider="kimi", model="kimi-k3", strict=True
        )


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_both_names_of_chats_limit_mean_the_limit(name):
    """R-AC-13, R-AC-14, R-AH-03"""
    assert asked(chat(**{name: 9}), "openai-chat", "anthropic")["max_tokens"] == 9


@pytest.mark.parametrize(
    ("stop", "sequences"), [("END", ["END"]), (["END", "STOP"], ["END", "STOP"])]
)  # R-AC-24
def test_stop_is_a_text_or_a_list(stop, sequences):
    """R-AH-07"""
    assert asked(chat(stop=stop), "openai-chat", "gemini")["generationConfig"]["stopSequences"] == sequences


def test_a_json_answer_can_be_asked_for():
    """R-AC-22, R-AH-08: an object, or by a schema, in each target's own field."""
    plain = chat(response_format={"type": "json_object"})
    assert asked(plain, "openai-chat", "gemini")["generationConfig"] == {
        "responseMimeType": "application/json"
    }
    assert asked(plain, "openai-chat", "openai-responses")["text"]["format"] == {"type": "json_object"}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    shaped = chat(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": schema, "strict": True},
        }
    )
    assert asked(shaped, "openai-chat", "gemini")["generationConfig"]["responseJsonSchema"]["required"] == [
        "a"
    ]
    assert asked(shaped, "openai-chat", "anthropic")["output_config"]["format"]["schema"] == schema
    flat = asked(shaped, "openai-chat", "openai-responses")["text"]["format"]
    assert (flat["type"], flat["name"], flat["schema"]) == ("json_schema", "n", schema)


@rows(
    ("setting", "value", "feature"),
    [
        ("n", 2, "candidates"),  # R-AC-18, R-AH-11
        ("logprobs", True, "logprobs"),  # R-AC-19, R-AH-12
        ("top_logprobs", 2, "logprobs"),  # R-AC-20
        ("logit_bias", {"1": 1}, "unknown_field"),  # R-AC-21
        ("seed", 7, "sampling.seed"),  # R-AC-23, R-AH-13
    ],
)
def test_a_rare_setting_of_chat_is_kept_by_chat_and_never_lost_in_silence(setting, value, feature):
    body = chat(**{setting: value})
    assert asked(body, "openai-chat", "openai-chat")[setting] == value
    out = wireglot.translate_request(body, source="openai-chat", target="anthropic")
    assert feature in {loss.feature for loss in out.losses}


def test_gemini_takes_number_seed_and_log_probabilities():
    """R-AC-18, R-AC-19, R-AC-20, R-AC-23, R-AH-11, R-AH-12, R-AH-13: where there is a field it is used."""
    config = asked(chat(n=2, logprobs=True, top_logprobs=3, seed=7), "openai-chat", "gemini")[
        "generationConfig"
    ]
    assert config == {"candidateCount": 2, "responseLogprobs": True, "logprobs": 3, "seed": 7}


@pytest.mark.parametrize("name", ["user", "safety_identifier"])
def test_the_end_user_is_named_where_the_target_can(name):
    """R-AC-17, R-Z-13"""
    assert asked(chat(**{name: "u"}), "openai-chat", "anthropic")["metadata"] == {"user_id": "u"}
    assert asked(responses(**{name: "u"}), "openai-responses", "anthropic")["metadata"] == {"user_id": "u"}


def test_effort_turns_the_targets_own_knob_and_leaves_the_model():
    """R-Z-16, R-AH-05, C27, R-DA-14"""
    body = responses(reasoning={"effort": "low"})
    gem = asked(body, "openai-responses", "gemini")
    assert gem["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "LOW"
    claude = asked(body, "openai-responses", "anthropic")
    assert (claude["model"], claude["output_config"]) == ("m", {"effort": "low"})
    assert asked(body, "openai-responses", "openai-chat")["reasoning_effort"] == "low"


@pytest.mark.parametrize("name", ["summary", "generate_summary"])
def test_a_summary_of_the_thinking_can_be_asked_for(name):
    """R-Z-17, C27: also under its old name."""
    body = responses(reasoning={"effort": "low", name: "auto"})
    config = asked(body, "openai-responses", "gemini")["generationConfig"]["thinkingConfig"]
    assert config["includeThoughts"] is True


def test_parallel_calls_can_be_switched_off():
    """R-Z-19, C24, R-DB-07"""
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
    body = responses(parallel_tool_calls=False, tools=tools)
    assert asked(body, "openai-responses", "openai-chat")["parallel_tool_calls"] is False
    assert asked(body, "openai-responses", "anthropic")["tool_choice"]["disable_parallel_tool_use"] is True
    out = wireglot.translate_request(body, source="openai-responses", target="gemini")
    assert "parallel_tools" in {loss.feature for loss in out.losses}


def test_both_spellings_of_geminis_fields_are_read():
    """R-AF-10..13"""
    camel = gemini(generationConfig={"topP": 0.9, "topK": 4, "maxOutputTokens": 9, "stopSequences": ["E"]})
    snake = gemini(
        generation_config={"top_p": 0.9, "top_k": 4, "max_output_tokens": 9, "stop_sequences": ["E"]}
    )
    assert asked(snake, "gemini", "anthropic", model="m") == asked(camel, "gemini", "anthropic", model="m")
