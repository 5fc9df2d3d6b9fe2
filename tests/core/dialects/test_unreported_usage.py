"""What an account of tokens says beside its counts is reported as missing, wherever it goes."""

import pytest

from tests.tiers import rows
from wireglot_core import translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.content import Text
from wireglot_core.ir.outcome import Response, Stop

ACCOUNTS = [
    (
        "anthropic",
        "usage",
        {"input_tokens": 3, "output_tokens": 2},
        {"server_tool_use": {"web_search_requests": 1}},
    ),
    ("anthropic", "usage", {"input_tokens": 3, "output_tokens": 2}, {"inference_geo": "eu"}),
    ("openai-chat", "usage", {"prompt_tokens": 3, "completion_tokens": 2}, {"cost": 0.000003}),
    ("openai-chat", "usage", {"prompt_tokens": 3, "completion_tokens": 2}, {"completion_time": 0.5}),
    ("openai-responses", "usage", {"input_tokens": 3, "output_tokens": 2}, {"cost_in_usd_ticks": 7}),
    (
        "gemini",
        "usageMetadata",
        {"promptTokenCount": 3, "candidatesTokenCount": 2},
        {
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 1},
                {"modality": "AUDIO", "tokenCount": 2},
            ]
        },
    ),
    (
        "gemini",
        "usageMetadata",
        {"promptTokenCount": 3, "candidatesTokenCount": 2},
        {"trafficType": "PROVISIONED_THROUGHPUT"},
    ),
]
NOTHING_NEW = [
    ("anthropic", "usage", {"input_tokens": 3}, {"inference_geo": "not_available", "cache_creation": {}}),
    ("openai-chat", "usage", {"prompt_tokens": 3}, {"prompt_tokens_details": {"text_tokens": 3, "audio_tokens": 0}}),
    ("gemini", "usageMetadata", {"promptTokenCount": 3}, {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}]}),
    ("gemini", "usageMetadata", {"promptTokenCount": 3}, {"trafficType": "ON_DEMAND"}),
]  # fmt: skip


def losses(source: DialectName, key: str, usage: dict, target: DialectName) -> list[str]:
    said = Response("id_1", "m", (Text("Hi"),), Stop("end"))
    body = {**dialect(source).render_response(said, Context()).value, key: usage}
    rendered = translate_response(body, source=source, target=target)
    return [loss.detail for loss in rendered.losses if loss.feature == "usage.detail"]


@rows("target", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@rows(("source", "key", "counts", "more"), ACCOUNTS)
def test_what_is_no_count_is_declared(source, key, counts, more, target):
    """[X11] Cost, times, searches, modalities: carried in the own dialect, declared in every other."""
    expected = [] if source == target else [f"{name}: {source} only" for name in more]
    assert losses(source, key, counts | more, target) == expected


@pytest.mark.parametrize(("source", "key", "counts", "more"), NOTHING_NEW)
def test_what_says_a_count_again_is_no_loss(source, key, counts, more):
    """[X11] A warning on every answer is a warning nobody reads."""
    for target in {"anthropic", "openai-chat", "openai-responses", "gemini"} - {source}:
        assert losses(source, key, counts | more, dialect_name(target)) == []


@pytest.mark.parametrize("target", ["anthropic", "openai-responses", "gemini"])
def test_counts_of_the_same_name_are_distinguished(target):
    """[X11] Audio of the question and of the answer are two accounts: neither loss stands for the other."""
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 10,
        "prompt_tokens_details": {"audio_tokens": 2},
        "completion_tokens_details": {"audio_tokens": 4},
    }
    assert losses("openai-chat", "usage", usage, target) == [
        "prompt_tokens_details.audio_tokens: openai-chat only",
        "completion_tokens_details.audio_tokens: openai-chat only",
    ]


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize(
    ("source", "key", "counts"), {name: (name, key, counts) for name, key, counts, _ in ACCOUNTS}.values()
)
def test_a_count_below_zero_is_declared(source, key, counts, target):
    """[X11] As OpenAI once sent one: it is read as none, and no other dialect gets it in silence."""
    name = next(reversed(counts))
    reported = [detail.rpartition(": ")[2] for detail in losses(source, key, counts | {name: -9}, target)]
    assert reported == ([] if source == target else ["a count below zero is read as none"])
