"""The catalog: every file loads, its limits exist, and models meet the right ones."""

import pytest

from wireglot.dialects.registry import NAMES
from wireglot.providers.limits import BASE, Limits
from wireglot.providers.spec import UnknownProvider, limits_for, names, provider, provider_for


@pytest.mark.parametrize("name", names())
def test_every_file_loads_and_names_known_dialects_and_limits(name: str) -> None:
    spec = provider(name)
    assert spec.name == name
    assert spec.dialects
    assert set(spec.dialects) <= set(NAMES)
    for dialect in spec.dialects:
        for entry in spec.models:
            example = entry.match.replace("*", "x").replace("[", "").replace("]", "")
            assert isinstance(limits_for(dialect, example, name), Limits)
        assert isinstance(limits_for(dialect, "", name), Limits)


def test_every_dialect_has_its_base_limits() -> None:
    assert set(BASE) == set(NAMES)


def test_an_unknown_provider_names_the_known_ones() -> None:
    with pytest.raises(UnknownProvider, match="kimi"):
        provider("nobody")


@pytest.mark.parametrize(
    ("dialect", "model", "expected"),
    [
        ("openai-chat", "kimi-k3", "kimi"),
        ("anthropic", "kimi-k3", "kimi-anthropic"),
        ("anthropic", "claude-opus-5", "anthropic"),
        ("gemini", "gemini-2.5-pro", "gemini"),
        ("openai-responses", "gpt-6", "openai"),
    ],
)
def test_a_bare_model_name_finds_its_provider(dialect: str, model: str, expected: str) -> None:
    spec = provider_for(dialect, model)
    assert spec is not None
    assert spec.name == expected


def test_old_gemini_takes_budgets_and_new_takes_levels() -> None:
    """R-DA-07: what is new is not listed; what is old is."""
    assert limits_for("gemini", "gemini-2.5-flash").thinking == "budget"
    assert limits_for("gemini", "gemini-2.5-flash").call_signatures is False
    assert limits_for("gemini", "gemini-9-pro").thinking == "level"
    assert limits_for("gemini", "gemini-9-pro").call_signatures is True


def test_claude_families_differ_as_documented() -> None:
    """R-DA-16"""
    assert limits_for("anthropic", "claude-sonnet-4-5").thinking == "budget"
    assert limits_for("anthropic", "claude-opus-4-6").thinking == "adaptive"
    assert limits_for("anthropic", "claude-opus-4-7").sampling == ()
    assert "required" not in limits_for("anthropic", "claude-opus-5-5").tool_choices
    assert "required" in limits_for("anthropic", "claude-opus-5").tool_choices


def test_kimi_rules() -> None:
    """R-DA-17, C14"""
    k3 = limits_for("openai-chat", "kimi-k3", "kimi")
    assert k3.thinking == "effort"
    assert k3.efforts == ("low", "high", "max")
    assert k3.sampling == ()
    assert limits_for("openai-chat", "kimi-k2.6", "kimi").thinking == "toggle"
    assert limits_for("openai-chat", "kimi-k2.7-code", "kimi").thinking == "fixed"
    retired = provider("kimi").model("kimi-k2-0905-preview")
    assert retired is not None
    assert retired.retired
    assert retired.successor == "kimi-k3"


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_a_dressed_up_name_is_the_same_model(name: str) -> None:
    limits = limits_for("anthropic", name)
    assert limits.thinking == "budget"
    assert limits.prefill
    assert "temperature" in limits.sampling
