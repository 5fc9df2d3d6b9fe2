"""How to generate: sampling, thinking, formats, tiers."""

import pytest

from tests.core.dialects.gemini.requests import HELLO, asked, comes_back, features, parse, render
from tests.tiers import rows
from wireglot_core.ir.content import (
    CacheMark,
)
from wireglot_core.ir.request import (
    OutputFormat,
    Request,
    Sampling,
    Thinking,
)


def test_every_sampling_parameter_has_its_place_and_nothing_is_injected():
    """C37, R-S-06"""
    config = {
        "temperature": 0.7,
        "topP": 0.9,
        "topK": 40,
        "candidateCount": 2,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "seed": 1,
        "presencePenalty": 0.1,
        "frequencyPenalty": -0.1,
        "responseLogprobs": True,
        "logprobs": 3,
        "responseModalities": ["TEXT", "IMAGE"],
        "speechConfig": {"languageCode": "de"},
    }
    request = parse(asked(generationConfig=config))
    assert request.sampling == Sampling(0.7, 0.9, 40, -0.1, 0.1, 1, 2, True, 3)
    assert (request.max_tokens, request.stop) == (100, ("END",))
    comes_back(asked(generationConfig=config))
    assert "generationConfig" not in render(Request("m", HELLO)).value


@rows(
    ("config", "thinking"),
    [
        ({"thinkingBudget": 0}, Thinking(mode="off")),
        ({"thinkingBudget": -1}, Thinking(mode="auto")),
        (
            {"thinkingBudget": 512, "includeThoughts": True},
            Thinking(mode="on", budget=512, display="summary"),
        ),
        ({"thinkingLevel": "HIGH"}, Thinking(effort="high")),
        ({"includeThoughts": False}, Thinking(display="omitted")),
    ],
)
def test_thinking_both_ways(config, thinking):
    """R-DA-14"""
    body = asked(generationConfig={"thinkingConfig": config})
    assert parse(body).thinking == thinking
    rendered = render(Request("m", HELLO, thinking=thinking))
    assert rendered.value == body
    assert rendered.losses == ()


@rows(
    "config",
    [
        {"thinkingLevel": "low"},
        {"thinkingLevel": "EXTREME"},
        {},
        {"thinkingBudget": 5, "thinkingLevel": "LOW"},
        {"x": 1},
    ],
)
def test_a_thinking_config_comes_back(config):
    comes_back(asked(generationConfig={"thinkingConfig": config}))


@pytest.mark.parametrize(
    ("thinking", "config", "lost"),
    [
        (Thinking(effort="max"), {"thinkingLevel": "XHIGH"}, ["thinking.effort"]),
        (Thinking(effort="none"), {"thinkingBudget": 0}, []),
        (Thinking("auto", "high"), {"thinkingLevel": "HIGH"}, ["thinking.mode"]),
        (Thinking("on", "low", 2048), {"thinkingLevel": "LOW"}, ["thinking.mode", "thinking.budget"]),
    ],
)
def test_a_level_and_a_budget_are_never_sent_together(thinking, config, lost):
    rendered = render(Request("m", HELLO, thinking=thinking))
    assert rendered.value["generationConfig"] == {"thinkingConfig": config}
    assert [loss.feature for loss in rendered.losses] == lost


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@rows(
    ("config", "kind"),
    [
        ({"responseMimeType": "application/json"}, "json"),
        ({"responseMimeType": "text/plain"}, "text"),
        ({"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}, "schema"),
        (
            {
                "responseMimeType": "application/json",
                "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            },
            "schema",
        ),
        (
            {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a", "b"]}},
            "schema",
        ),
        ({"responseJsonSchema": SCHEMA}, "schema"),
        ({"responseFormat": [{"text": {"mimeType": "application/json", "schema": SCHEMA}}]}, "schema"),
        ({"responseFormat": [{"text": {"mimeType": "text/plain"}}]}, "text"),
    ],
)
def test_an_output_format_both_ways(config, kind):
    """PAINS A21"""
    body = asked(generationConfig=config)
    output = parse(body).output
    assert output is not None
    assert output.kind == kind
    comes_back(body)


def test_only_an_enumeration_as_text_is_answered_without_quotes():
    schema = {"type": "STRING", "enum": ["a", "b"]}
    for mime, bare in (("text/x.enum", True), ("application/json", False)):
        output = parse(asked(generationConfig={"responseMimeType": mime, "responseSchema": schema})).output
        assert output is not None
        assert output.bare is bare


def test_a_schema_of_another_dialect_is_sent_as_json_schema():
    rendered = render(Request("m", HELLO, output=OutputFormat("schema", SCHEMA, "answer")))
    assert rendered.value["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }
    assert [loss.path for loss in rendered.losses] == ["$.output.name"]


@pytest.mark.parametrize(
    "config", [{"responseFormat": [{"image": {"aspectRatio": "1:1"}}]}, {"responseFormat": {"text": {}}}]
)
def test_an_output_format_of_another_medium_is_kept_whole(config):
    body = asked(generationConfig=config)
    assert parse(body).output is None
    comes_back(body)


def test_labels_are_metadata_if_they_are_labels():
    comes_back(asked(labels={"team": "a", "Odd Key": "Ü"}))
    rendered = render(Request("m", HELLO, metadata={"trace": "t-1", "user_id": "A B"}))
    assert rendered.value["labels"] == {"trace": "t-1"}
    assert features(rendered) == [("$.metadata.user_id", "metadata", "dropped")]


@rows("tier", ["flex", "standard", "priority", "PRIORITY", "unspecified", "galactic"])
def test_a_service_tier_comes_back(tier):
    comes_back(asked(serviceTier=tier))


def test_what_gemini_has_no_word_for_is_declared():
    """PAINS A24"""
    request = Request(
        "m",
        HELLO,
        parallel_tools=False,
        verbosity="low",
        user="u",
        service_tier="batch",
        cache=CacheMark(),
        cache_key="k",
    )
    assert [loss.feature for loss in render(request).losses] == [
        "service_tier",
        "parallel_tools",
        "verbosity",
        "user",
        "cache_marker",
        "cache_key",
    ]
