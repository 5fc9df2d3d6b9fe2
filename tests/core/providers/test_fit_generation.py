"""Sampling, stops, limits and formats toward an endpoint."""

from hashlib import sha256
from typing import Any, Literal

import msgspec
import pytest

from tests.core.providers.asks import assistant, features, fitted, request, user
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.content import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    UNNAMED_FORMAT,
    OutputFormat,
    Sampling,
    Tool,
)
from wireglot_core.ir.stop_sequences import MAX_SEQUENCES
from wireglot_core.ir.stream import Delta, Event, PartEnd, PartStart
from wireglot_core.providers.aliases import Aliases, EventRestorer
from wireglot_core.providers.emulation import Emulation
from wireglot_core.providers.limits import Limits


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
    assert sorted(loss.path for loss in outcome.losses) == [
        "$.sampling.logprobs",
        "$.sampling.temperature",
        "$.sampling.top_logprobs",
    ]
    assert {action for _, action in features(outcome)} == {"dropped"}


def test_a_number_of_alternatives_is_dropped_aloud_without_its_switch() -> None:
    limits = Limits(sampling=("seed",))
    outcome = fitted(request(sampling=Sampling(top_logprobs=3)), limits)
    assert outcome.request.sampling == Sampling()
    assert [(loss.path, loss.feature) for loss in outcome.losses] == [("$.sampling.top_logprobs", "logprobs")]
    none = fitted(request(sampling=Sampling(top_logprobs=0)), limits)
    assert (none.request.sampling, none.losses) == (Sampling(), ())


def test_a_temperature_above_the_range_is_lowered() -> None:
    outcome = fitted(request(sampling=Sampling(temperature=1.5)), Limits(temperature_max=1))
    assert outcome.request.sampling.temperature == 1
    assert features(outcome) == [("sampling.temperature", "approximated")]


def test_surplus_stop_sequences_are_declared() -> None:
    asked, limits = request(stop=("a", "b", "c" * 40)), Limits(stop_max=2, stop_bytes=32)
    outcome = fitted(asked, limits, emulates=False)
    assert outcome.request.stop == ("a", "b")
    assert outcome.emulation is None
    assert features(outcome) == [("stop_sequences", "approximated")]
    outcome = fitted(asked, limits)
    assert outcome.request.stop == ("a", "b")
    assert outcome.emulation == Emulation(stops=("c" * 40,))
    assert features(outcome) == [("stop_sequences", "emulated")]


def test_stop_sequences_beyond_what_is_searched_for_are_declared() -> None:
    many = tuple(f"stop {number:04}" for number in range(5000))
    outcome = fitted(request(stop=many), Limits(stop_max=4))
    assert outcome.request.stop == many[:4]
    assert outcome.emulation == Emulation(stops=many[4 : 4 + MAX_SEQUENCES])
    assert features(outcome) == [("stop_sequences", "dropped"), ("stop_sequences", "emulated")]
    too_long = fitted(request(stop=("x" * 200_000,)), Limits(stop_sequences=False))
    assert features(too_long) == [("stop_sequences", "dropped")]
    assert not too_long.emulation


def test_an_endpoint_without_stop_sequences_is_sent_none() -> None:
    asked, limits = request(stop=("a", "b")), Limits(stop_sequences=False)
    outcome = fitted(asked, limits)
    assert outcome.request.stop == ()
    assert outcome.emulation == Emulation(stops=("a", "b"))
    assert features(outcome) == [("stop_sequences", "emulated")]
    assert fitted(asked, limits, emulates=False).request.stop == ("a", "b"), "its renderer reports it"


def test_a_sequence_is_cut_in_all_answers_of_an_upstream_that_gives_several() -> None:
    asked = request(stop=("a", "b"), sampling=Sampling(candidates=2))
    assert fitted(asked, Limits(stop_max=1)).emulation == Emulation(stops=("b",), several=True)


def test_max_tokens_is_invented_only_where_the_dialect_demands_it() -> None:
    """R-DD-13, C15"""
    assert fitted(request(), Limits()).request.max_tokens is None
    outcome = fitted(request(), Limits(max_tokens_default=32_000))
    assert outcome.request.max_tokens == 32_000
    assert features(outcome) == [("max_tokens", "invented")]
    assert fitted(request(max_tokens=9000), Limits(max_tokens=8192)).request.max_tokens == 8192


def test_a_limit_below_the_endpoints_minimum_is_raised_for_clients_of_another_dialect() -> None:
    """Claude Code asks for one token to see whether it may; OpenAI Responses refuses less than 16."""
    outcome = fitted(request(max_tokens=1), Limits(max_tokens_min=16))
    assert outcome.request.max_tokens == 16
    assert features(outcome) == [("max_tokens", "approximated")]
    assert fitted(request(max_tokens=16), Limits(max_tokens_min=16)).losses == ()
    assert fitted(request(), Limits(max_tokens_min=16)).request.max_tokens is None
    own = fitted(request(max_tokens=1), Limits(max_tokens_min=16), foreign=False)
    assert own.request.max_tokens == 1


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_a_long_user_id_of_claude_code_is_sent_as_its_hash(target: DialectName) -> None:
    """OpenAI takes 64 characters; Claude Code's `metadata.user_id` is a JSON object of 150 and more."""
    wanted = '{"device_id":"%s","account_uuid":"","session_id":"00000000-0000-4000-8000-000000000000"}' % (
        "0" * 64
    )
    body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
    sent = translate_request({**body, "metadata": {"user_id": wanted}}, source="anthropic", target=target)
    assert sent.value["safety_identifier"] == sha256(wanted.encode()).hexdigest()
    assert ("$.metadata.user_id", "user", "approximated") in [
        (loss.path, loss.feature, loss.action) for loss in sent.losses
    ]
    short = translate_request({**body, "metadata": {"user_id": "u" * 64}}, source="anthropic", target=target)
    assert short.value["safety_identifier"] == "u" * 64


def test_a_long_user_id_in_the_endpoints_own_dialect_stays() -> None:
    own = fitted(request(user="u" * 65), Limits(user_max=64), foreign=False)
    assert (own.request.user, own.losses) == ("u" * 65, ())


def test_a_schema_format_without_a_schema_is_asked_for_where_only_schemas_are_enforced() -> None:
    """Anthropic has no format but a schema, and refuses one that names none."""
    wanted = OutputFormat("schema", None, description="A city.")
    outcome = fitted(request(output=wanted), Limits(output_formats=("schema",)))
    assert outcome.request.output is None
    told = "Answer with one JSON object, and nothing else.\n\nA city."
    assert outcome.request.messages[0] == Message("system", (Text(told),))
    assert features(outcome) == [("output_format", "approximated")]


def test_a_format_that_cannot_be_enforced_is_asked_for() -> None:
    """PAINS 21"""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    limits = Limits(output_formats=("json",))
    outcome = fitted(request(output=OutputFormat("schema", schema)), limits, emulates=False)
    assert outcome.request.output == OutputFormat("json")
    reported = outcome.request.messages[0]
    assert reported.role == "system"
    assert '"properties"' in msgspec.json.encode(reported).decode().replace("\\", "")
    assert features(outcome) == [("output_format", "approximated")]


@pytest.mark.parametrize("formats", [("json",), ()])
def test_a_format_that_is_asked_for_in_words_keeps_its_description_and_reports_its_name(
    formats: tuple[Literal["json", "schema"], ...],
) -> None:
    wanted = OutputFormat("schema", {"type": "object"}, "CityLocation", "Where a city lies.")
    outcome = fitted(request(output=wanted), Limits(output_formats=formats), emulates=False)
    assert outcome.request.output == (OutputFormat("json") if formats else None)
    assert "Where a city lies." in str(outcome.request.messages[0])
    assert [(loss.path, loss.action) for loss in outcome.losses] == [
        ("$.output", "approximated"),
        ("$.output.name", "approximated"),
    ]
    unnamed = msgspec.structs.replace(wanted, name=UNNAMED_FORMAT)
    limits = Limits(output_formats=formats)
    assert len(fitted(request(output=unnamed), limits, emulates=False).losses) == 1


def test_an_array_answer_is_wrapped_where_the_root_must_be_an_object() -> None:
    wanted = request(output=OutputFormat("schema", {"type": "array", "items": {"type": "string"}}))
    outcome = fitted(wanted, Limits(output_schema="openai"))
    assert outcome.request.output is not None
    assert outcome.request.output.schema is not None
    assert outcome.request.output.schema["type"] == "object"
    assert ("output_format.schema", "emulated") in features(outcome)


def test_a_wrapped_answer_is_unwrapped_whole_and_in_a_stream_in_its_own_letters() -> None:
    """mapping: what was asked for as {"value": ...} reaches the client as it asked for it."""
    aliases = Aliases(unwraps=True)
    answer = '{"value": [1.0, "a\\u00e9", 12345678901234567890]}'
    value = '[1.0, "a\\u00e9", 12345678901234567890]'
    assert aliases.restore(Text(answer)) == Text(value)
    restorer = EventRestorer(aliases)
    events: list[Event] = [PartStart(0, Text(""))]
    events += [Delta(0, answer[at : at + 5]) for at in range(0, len(answer), 5)]
    restored = restorer.events([*events, PartEnd(0)])
    assert restored == [PartStart(0, Text("")), Delta(0, value), PartEnd(0)]


def test_a_word_of_an_enumeration_loses_the_quotes_of_json_whole_and_in_a_stream() -> None:
    """Gemini's `text/x.enum`: the client reads the value itself, the upstream was asked for JSON."""
    wanted = OutputFormat("schema", {"type": "string", "enum": ["Brass", "\u00e9"]}, bare=True)
    wrapped = fitted(request(output=wanted), Limits(output_schema="openai")).aliases
    assert wrapped.restore(Text('{"value": "\\u00e9"}')) == Text("\u00e9")
    plain = fitted(request(output=wanted), Limits(output_schema="json-schema")).aliases
    assert plain.restore(Text('"Brass"')) == Text("Brass")
    for text in ("Brass", '"Bra', "12", '["Brass"]', ""):
        assert plain.restore(Text(text)) == Text(text)
    events: list[Event] = [PartStart(0, Text('"Br')), Delta(0, 'ass"'), PartEnd(0)]
    restored = EventRestorer(plain).events(events)
    assert restored == [PartStart(0, Text("")), Delta(0, "Brass"), PartEnd(0)]


def test_an_answer_that_is_no_wrapper_stays_as_it_is() -> None:
    aliases = Aliases(unwraps=True)
    for text in ("I cannot do that.", '{"value": 1, "more": 2}', '{"value": [1', "[1]", ""):
        assert aliases.restore(Text(text)) == Text(text)


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


@rows(
    ("source", "body"),
    [
        ("anthropic", {"max_tokens": 77}),
        ("openai-responses", {"max_output_tokens": 77, "input": "hi", "messages": None}),
        ("openai-chat", {"max_completion_tokens": 77}),
        ("openai-chat", {"max_completion_tokens": 77, "max_tokens": 5}),
        ("openai-chat", {"max_tokens": 77}),
    ],
)
@rows("provider", ["mistral", "deepseek", "zai", "ollama", "together", "qwen", "llama-cpp"])
def test_the_output_limit_has_the_name_that_the_provider_reads(
    source: DialectName, body: dict[str, Any], provider: str
) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
    asked = {name: value for name, value in asked.items() if value is not None}
    out = translate_request(asked, source=source, target="openai-chat", provider=provider, model="m")
    assert out.value["max_tokens"] == 77
    assert "max_completion_tokens" not in out.value
    assert out.losses == ()


def test_another_dialects_fields_are_declared_though_the_limit_is_renamed() -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "inference_geo": "c"}
    out = translate_request(asked, source="anthropic", target="openai-chat", provider="mistral", model="m")
    assert [(loss.path, loss.feature) for loss in out.losses] == [("$.inference_geo", "unknown_field")]


def test_who_takes_both_names_of_the_limit_gets_the_clients() -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        asked = {"messages": [{"role": "user", "content": "hi"}], name: 9}
        out = translate_request(
            asked, source="openai-chat", target="openai-chat", provider="kimi", model="kimi-k3"
        )
        assert out.value[name] == 9


def test_mistral_is_given_its_seed() -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "seed": 7, "store": False}
    out = translate_request(asked, source="openai-chat", target="openai-chat", provider="mistral", model="m")
    assert out.value["random_seed"] == 7
    assert "seed" not in out.value
    assert out.value["store"] is False
    assert out.losses == ()


def test_a_fixed_value_stays_and_a_default_is_left_out_without_a_loss() -> None:
    limits = Limits(sampling=(), fixed={"temperature": 1, "top_p": 0.95})
    said = Sampling(temperature=1, top_p=0.95)
    assert fitted(request(sampling=said), limits).request.sampling == said
    unsaid = fitted(request(sampling=Sampling(frequency_penalty=0, logprobs=False, candidates=1)), limits)
    assert (unsaid.request.sampling, unsaid.losses) == (Sampling(), ())
    other = fitted(request(sampling=Sampling(temperature=0.3, top_p=1)), limits)
    assert other.request.sampling == Sampling()
    assert features(other) == [("sampling.temperature", "dropped"), ("sampling.top_p", "dropped")]


@pytest.mark.parametrize(
    ("provider", "role"), [("deepseek", "system"), ("kimi", "system"), ("groq", "developer")]
)
def test_the_developer_is_the_system_where_only_that_is_known(provider: str, role: str) -> None:
    messages = [
        {"role": "developer", "content": "be brief", "x_new": 1},
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]
    out = translate_request(
        {"messages": messages}, source="openai-chat", target="openai-chat", provider=provider, model="m"
    )
    assert [message["role"] for message in out.value["messages"]] == [role, role, "user"]
    assert out.value["messages"][0]["x_new"] == 1
    assert out.losses == ()
