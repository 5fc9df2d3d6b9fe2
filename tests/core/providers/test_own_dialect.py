"""In a provider's own dialect its clients are passed on as they are, unless it documents a refusal."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.core.providers.own_dialect_asks import claude_code, codex, opencode
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, dialect_name
from wireglot_core.providers.limits import BASE
from wireglot_core.providers.spec import limits_of, names, provider
from wireglot_core.translate import Plan, plan

_PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}

CLIENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "anthropic": claude_code,
    "openai-chat": opencode,
    "openai-responses": codex,
}

CALL_IDS = {
    "kimi": "functions.read:0",
    "kimi-cn": "functions.read:0",
    "kimi-coding": "functions.read:0",
    "mistral": "aB3dE6gH9",
}
"""Providers whose ids have a form of their own: a client sends back what it was given."""

RESELLERS = {
    "openrouter": (
        "anthropic/claude-sonnet-4.5",
        "anthropic/claude-opus-5",
        "openai/gpt-5.2",
        "z-ai/glm-5.3",
    ),
    "ollama": ("gpt-oss:20b",),
    "vllm": ("Qwen/Qwen3-32B",),
    "llama-cpp": ("some-model",),
    "azure": ("gpt-5.2",),
    "azure-deployments": ("gpt-5.2",),
    "azure-anthropic": ("claude-sonnet-4-5",),
    "bedrock": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0",),
    "bedrock-openai": ("openai.gpt-oss-120b-1:0",),
    "vertex-anthropic": ("claude-sonnet-4-5",),
}
"""Models of those whose files name none."""

REFUSALS: dict[tuple[str, str, str], tuple[str, set[str]]] = {
    ("groq", "openai-chat", "*"): ("a message with reasoning_content is a 400", {"reasoning.text"}),
    ("groq", "openai-responses", "*"): ("no reasoning of earlier turns is read", {"reasoning.signature"}),
    ("groq", "openai-responses", "llama-*"): (
        "an effort is a 400 for models that do not reason",
        {"reasoning.signature", "thinking.effort", "thinking.display"},
    ),
    ("groq", "openai-responses", "qwen/*"): (
        "the efforts are none and default",
        {"reasoning.signature", "thinking.effort", "thinking.display"},
    ),
    ("mistral", "openai-chat", "*"): ("reasoning_content is an unknown field: a 422", {"reasoning.text"}),
    ("mistral", "openai-chat", "magistral-*"): ("as before, but thinking is a chunk of the content", set()),
    ("mistral", "openai-chat", "mistral-large-4*"): (
        "as before, but thinking is a chunk of the content",
        set(),
    ),
    ("mistral", "openai-chat", "mistral-medium-3.5"): (
        "as before, but thinking is a chunk of the content",
        set(),
    ),
    ("ollama", "openai-chat", "*"): ("reasoning is read from the field of that name only", set()),
    ("kimi", "openai-responses", "kimi-k2.*"): (
        "K2 thinks or does not, in its own measure",
        {"thinking.effort", "thinking.display"},
    ),
    ("kimi-cn", "openai-responses", "kimi-k2.*"): (
        "K2 thinks or does not, in its own measure",
        {"thinking.effort", "thinking.display"},
    ),
    ("kimi", "anthropic", "kimi-k2.6"): ("the temperature is 0.6 without thinking, else 1", set()),
    ("kimi-cn", "anthropic", "kimi-k2.6"): ("the temperature is 0.6 without thinking, else 1", set()),
    ("kimi-anthropic", "anthropic", "kimi-k2.6"): ("the temperature is 0.6 without thinking, else 1", set()),
    ("kimi-anthropic-cn", "anthropic", "kimi-k2.6"): (
        "the temperature is 0.6 without thinking, else 1",
        set(),
    ),
    ("xai", "openai-responses", "grok-4.20-*"): (
        "its name says whether it reasons, an effort is a 400",
        {"thinking.effort", "thinking.display"},
    ),
}
"""What is documented as refused: (provider, dialect, models) -> why, and what a usual request loses to it,
which is nothing where only a default is left out."""


def spoken() -> Iterator[tuple[str, str, str]]:
    """Every provider that requests are fitted for, in each dialect, with each model it names."""
    for name in names():
        spec = provider(name)
        if spec.home:
            continue  # nothing is fitted at a dialect's own vendor
        listed = [entry for entry in spec.models if entry.is_name and not entry.retired]
        models = RESELLERS.get(name) or tuple(entry.match for entry in listed)
        assert models, name
        for model in models:
            entry = spec.model(model)
            for spoken_here in (entry.dialects if entry is not None else ()) or spec.dialects:
                if (
                    spoken_here in CLIENTS
                    and limits_of(spec, spoken_here, model, own=True) != BASE[spoken_here]
                ):
                    yield name, spoken_here, model


def asked(name: str, speaks: str, model: str, **changes: Any) -> tuple[Plan, bool]:
    """The plan for a usual request, and whether it is the request itself."""
    ids = {"call_id": CALL_IDS[name]} if name in CALL_IDS and speaks != "anthropic" else {}
    body = {"model": model, **CLIENTS[speaks](**ids), **changes}
    request = dialect(speaks).parse_request(body, Context())
    limits = limits_of(provider(name), speaks, model, own=True)
    made = plan(request, source=speaks, target=speaks, model=model, provider=name, limits=limits)
    return made, made.upstream == request and not made.aliases


def refused(name: str, speaks: str, model: str) -> set[str] | None:
    fitting = [
        lost
        for (who, how, models), (_, lost) in REFUSALS.items()
        if (who, how) == (name, speaks) and fnmatchcase(model, models)
    ]
    return fitting[-1] if fitting else None


@rows(("name", "speaks", "model"), list(spoken()))
def test_a_usual_request_in_the_providers_own_dialect_passes_as_it_is(
    name: str, speaks: str, model: str
) -> None:
    made, same = asked(name, speaks, model)
    lost = refused(name, speaks, model)
    assert {loss.feature for loss in made.losses} == (lost or set())
    assert same is (lost is None)


def test_every_documented_refusal_is_one_of_a_provider_of_the_catalog() -> None:
    met = {(name, speaks) for name, speaks, _ in spoken()}
    assert {(name, speaks) for name, speaks, _ in REFUSALS} <= met


@rows(("name", "speaks", "model"), [row for row in spoken() if row[1] == "openai-chat"])
def test_settings_at_their_defaults_are_never_a_loss(name: str, speaks: str, model: str) -> None:
    changes = {"temperature": 1, "n": 1, "frequency_penalty": 0, "presence_penalty": 0, "logprobs": False}
    made, _ = asked(name, speaks, model, **changes)
    assert {loss.feature for loss in made.losses} == (refused(name, speaks, model) or set())


@rows(("name", "speaks", "model"), [row for row in spoken() if row[1] == "openai-chat"])
def test_an_address_of_a_picture_that_stays_in_its_place_is_no_loss(
    name: str, speaks: str, model: str
) -> None:
    made, same = asked(name, speaks, model, messages=[{"role": "user", "content": [_PICTURE]}])
    assert (made.losses, same) == ((), True)


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "hm",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "Z0FB", "format": "openai-responses-v1", "index": 1},
]


@pytest.mark.parametrize("name", ["openrouter", "minimax", "together", "vllm"])
def test_reasoning_details_go_back_unmodified(name: str) -> None:
    call = {"id": "toolu_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    turn = {"role": "assistant", "content": "", "reasoning": "hm", "reasoning_details": DETAILS}
    messages = [
        {"role": "user", "content": "hi"},
        {**turn, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "x"},
    ]
    made, same = asked(name, "openai-chat", "some/model", messages=messages)
    assert (made.losses, same) == ((), True)
    rendered = dialect("openai-chat").render_request(made.upstream, made.context)
    assert rendered.value["messages"][1]["reasoning_details"] == DETAILS
    assert rendered.losses == ()


def test_cache_marks_of_a_chat_client_reach_those_that_read_them() -> None:
    marked = [{"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}]
    for name, model in (("openrouter", "anthropic/claude-sonnet-4.5"), ("qwen", "qwen3-max")):
        made, same = asked(name, "openai-chat", model, messages=[{"role": "user", "content": marked}])
        assert (made.losses, same) == ((), True)


def test_an_address_of_a_gemini_client_is_no_loss_at_gemini() -> None:
    picture = {"fileData": {"fileUri": "https://example.com/a.png", "mimeType": "image/png"}}
    body = {"contents": [{"role": "user", "parts": [picture]}]}
    for source, lost in (("gemini", set()), ("openai-chat", {"image"})):
        asks = body if source == "gemini" else {"messages": [{"role": "user", "content": [_PICTURE]}]}
        out = translate_request(
            asks, source=dialect_name(source), target="gemini", provider="gemini", model="gemini-3.5-flash"
        )
        assert {loss.feature for loss in out.losses} == lost
