"""Sampling, stops, limits and formats toward an endpoint."""

import msgspec

from tests.providers.asks import assistant, features, fitted, request, user
from wireglot.ir.content import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot.ir.request import (
    OutputFormat,
    Sampling,
    Tool,
)
from wireglot.providers.limits import Limits


def test_limits_that_refuse_nothing_change_nothing() -> None:
    wanted = request(
        Message("system", (Text("s"),)),
        user(Text("hi")),
        assistant(Reasoning("hm"), ToolCall("a", "f", "{}")),
        user(ToolResult("a", (Text("ok"),))),
        tools=(Tool("f", schema={"type": "object"}),),
        sampling=Sampling(temperature=2, seed=7),
    )
    outcome = fitted(wanted, Limits())
    assert outcome.request == wanted
    assert outcome.losses == ()
    assert not outcome.aliases


def test_sampling_a_model_fixes_is_dropped_aloud() -> None:
    """C38, PAINS 24"""
    wanted = request(sampling=Sampling(temperature=0.3, seed=1, logprobs=True, top_logprobs=3))
    outcome = fitted(wanted, Limits(sampling=("seed",)))
    assert outcome.request.sampling == Sampling(seed=1)
    assert sorted(feature for feature, _ in features(outcome)) == ["logprobs", "sampling.temperature"]


def test_a_temperature_above_the_range_is_lowered() -> None:
    outcome = fitted(request(sampling=Sampling(temperature=1.5)), Limits(temperature_max=1))
    assert outcome.request.sampling.temperature == 1
    assert features(outcome) == [("sampling.temperature", "approximated")]


def test_surplus_stop_sequences_are_declared() -> None:
    outcome = fitted(request(stop=("a", "b", "c" * 40)), Limits(stop_max=2, stop_bytes=32))
    assert outcome.request.stop == ("a", "b")
    assert features(outcome) == [("stop_sequences", "approximated")]


def test_max_tokens_is_invented_only_where_the_dialect_demands_it() -> None:
    """C15"""
    assert fitted(request(), Limits()).request.max_tokens is None
    outcome = fitted(request(), Limits(max_tokens_default=32_000))
    assert outcome.request.max_tokens == 32_000
    assert features(outcome) == [("max_tokens", "invented")]
    assert fitted(request(max_tokens=9000), Limits(max_tokens=8192)).request.max_tokens == 8192


def test_a_format_that_cannot_be_enforced_is_asked_for() -> None:
    """PAINS 21"""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    outcome = fitted(request(output=OutputFormat("schema", schema)), Limits(output_formats=("json",)))
    assert outcome.request.output == OutputFormat("json")
    told = outcome.request.messages[0]
    assert told.role == "system"
    assert '"properties"' in msgspec.json.encode(told).decode().replace("\\", "")
    assert features(outcome) == [("output_format", "approximated")]


def test_an_array_answer_is_wrapped_where_the_root_must_be_an_object() -> None:
    wanted = request(output=OutputFormat("schema", {"type": "array", "items": {"type": "string"}}))
    outcome = fitted(wanted, Limits(output_schema="openai"))
    assert outcome.request.output is not None
    assert outcome.request.output.schema is not None
    assert outcome.request.output.schema["type"] == "object"
    assert ("output_format.schema", "approximated") in features(outcome)


def test_settings_a_provider_does_not_know_are_not_sent() -> None:
    outcome = fitted(
        request(verbosity="low", service_tier="flex", cache_key="k"), Limits(settings=("cache_key",))
    )
    assert (outcome.request.verbosity, outcome.request.service_tier, outcome.request.cache_key) == (
        "",
        "",
        "k",
    )
    assert features(outcome) == [("verbosity", "dropped"), ("service_tier", "dropped")]
