"""Pieces of imports that no file of the fixtures has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.import_.kit import ccr, litellm
from tests.tiers import rows
from wireglot.cli.doctor import provider_checks
from wireglot.cli.import_.endpoints import Secrets
from wireglot.cli.import_.litellm_entries import _foundry
from wireglot.cli.import_.source import NotCarried, SourceNode, UnreadableSource


@rows(
    ("model", "base", "fields", "wish"),
    [
        (
            "claude-x",
            "https://mine.services.ai.azure.com/x",
            {"catalog": "azure-anthropic", "variables": {"resource": "mine"}},
            "azure-mine-claude",
        ),
        (
            "Claude-x",
            "https://other.example/x",
            {"catalog": "azure-anthropic", "base_url": "https://other.example/anthropic"},
            None,
        ),
        (
            "gpt-x",
            "https://mine.services.ai.azure.com/x",
            {"catalog": "azure", "base_url": "https://mine.services.ai.azure.com/openai/v1"},
            "azure-mine",
        ),
    ],
)
def test_models_on_microsoft_foundry(model: str, base: str, fields: Any, wish: str | None) -> None:
    node = SourceNode(base, "api_base", 1)
    for name in ("api_base", "base_url"):
        address = _foundry({"env": ["AZURE_AI_API_KEY"]}, model, {name: node}, Secrets({}))
        assert (address.model, address.fields, address.used) == (model, fields, [node])
        assert address.variables == ("AZURE_AI_API_KEY",)
        assert address.wish == wish or wish is None
    with pytest.raises(NotCarried, match="needs an api_base"):
        _foundry({"env": []}, model, {}, Secrets({}))


def test_a_key_in_clear_text_gets_no_name_that_the_file_uses_itself() -> None:
    text = """{Providers: [
        {name: "openai", api_base_url: "https://api.openai.com/v1/chat/completions", api_key: "sk-clear-text-1",
         models: ["m"]},
        {name: "other", api_base_url: "https://o.example/v1/chat/completions", api_key: "$OPENAI_API_KEY",
         models: ["m"]},
    ], Router: {default: "openai,m"}}"""
    found = ccr(text)
    assert "sk-clear-text-1" in found.draft.secrets.literal.values()
    assert "OPENAI_API_KEY" not in found.draft.secrets.literal
    assert "OPENAI_API_KEY" in found.draft.secrets.needed


@rows("name", ["litellm_settings", "general_settings", "router_settings", "environment_variables"])
def test_a_section_must_be_a_table(name: str) -> None:
    with pytest.raises(UnreadableSource, match=name):
        litellm(f"model_list:\n  - model_name: a\n    litellm_params: {{model: openai/a}}\n{name}: [1]\n")


def test_files_that_configure_clients() -> None:
    assert provider_checks._SETTINGS == {
        "aider": (".aider.conf.yml", ".env"),
        "claude": (".claude/settings.json", ".claude/settings.local.json"),
        "cline": (".cline/data/settings/providers.json",),
        "codex": (".codex/config.toml",),
        "continue": (".continue/config.yaml",),
        "copilot": (),
        "droid": (".factory/settings.json",),
        "gemini": (".gemini/settings.json", ".gemini/.env"),
        "goose": (".config/goose/config.yaml",),
        "hermes": (".hermes/config.yaml", ".hermes/.env"),
        "kimi": (".kimi/config.toml", ".kimi-code/config.toml"),
        "llm": (".config/io.datasette.llm/extra-openai-models.yaml",),
        "openclaw": (".openclaw/openclaw.json",),
        "opencode": (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
        "pi": (".pi/agent/models.json",),
        "qwen": (".qwen/settings.json", ".qwen/.env"),
    }
