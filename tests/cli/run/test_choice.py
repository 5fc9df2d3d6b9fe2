"""Which model `wireglot run` chooses, and of which provider."""

from pathlib import Path

import pytest

from wireglot.cli.run.asking import TryKey
from wireglot.cli.run.launch import AskKey, Chooser
from wireglot.cli.terminal import Unusable
from wireglot.cli.trust import NO_FILE, ConfigFile
from wireglot.gateway.pages.models import models
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

SHOWN = encode({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960}})
KIMI = {"MOONSHOT_API_KEY": "sk-kimi"}
ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant"}
OWN = "claude-sonnet-4-5"


def nobody(whose: str, variable: str, try_key: TryKey, reason: str = "") -> str:
    raise AssertionError(f"asked for {variable}")


def chooser(environ: dict[str, str], text: str = "", ask: AskKey = nobody) -> Chooser:
    file = ConfigFile(Path("wireglot.toml"), text.encode()) if text else NO_FILE
    return Chooser(file, environ, ask)


def test_the_clients_own_model_is_kept_where_a_provider_has_it() -> None:
    choice = chooser({**KIMI, **ANTHROPIC}).choose("", "anthropic", OWN)
    assert (choice.model, choice.remark) == ("", "")


def test_without_its_own_model_the_first_that_is_listed_is_chosen() -> None:
    choice = chooser(KIMI).choose("", "anthropic", OWN)
    assert choice.model == models(choice.settings, "anthropic")[0].id
    assert choice.model.startswith("kimi")
    assert set(choice.settings.providers) == {"kimi", "kimi-anthropic"}


def test_the_order_of_the_file_says_which_is_the_first() -> None:
    text = "[providers.deepseek]\n[providers.kimi]\n"
    choice = chooser({**KIMI, "DEEPSEEK_API_KEY": "sk-deep"}, text).choose("", "openai-chat", "")
    assert choice.model == models(choice.settings, "openai-chat")[0].id
    assert choice.model.startswith("deepseek")


def test_a_model_that_is_named_is_asked_of_its_provider_alone() -> None:
    choice = chooser({**KIMI, **ANTHROPIC}).choose("kimi/kimi-k3", "anthropic", OWN)
    assert choice.model == "kimi/kimi-k3"


def test_a_model_whose_key_is_missing_is_asked_for_and_never_replaced() -> None:
    asked: list[str] = []

    def ask(whose: str, variable: str, try_key: TryKey, reason: str = "") -> str:
        asked.append(variable)
        return "sk-given"

    choice = chooser(ANTHROPIC, ask=ask).choose("kimi/kimi-k3", "anthropic", OWN)
    assert choice.model == "kimi/kimi-k3"
    assert asked == ["MOONSHOT_API_KEY"]
    assert choice.environ["MOONSHOT_API_KEY"] == "sk-given"
    with pytest.raises(Unusable, match="set MOONSHOT_API_KEY"):
        chooser(ANTHROPIC, ask=lambda *asked, **more: "").choose("kimi/kimi-k3", "anthropic", OWN)


def test_a_rule_of_the_user_leads_to_its_provider_or_nowhere() -> None:
    text = f'[providers.kimi]\napi_key = "env:MOONSHOT_API_KEY"\n[providers.anthropic]\n[models]\n"{OWN}" = "kimi/kimi-k3"\n'
    asked: list[str] = []

    def ask(whose: str, variable: str, try_key: TryKey, reason: str = "") -> str:
        asked.append(variable)
        return "sk-given"

    choice = chooser(ANTHROPIC, text, ask).choose("", "anthropic", OWN)
    assert choice.model == ""
    assert asked == ["MOONSHOT_API_KEY"]
    assert "kimi" in choice.settings.providers


def test_a_provider_without_its_key_is_named_in_the_remark() -> None:
    text = '[providers.kimi]\napi_key = "env:MOONSHOT_API_KEY"\n[providers.anthropic]\n'
    choice = chooser(ANTHROPIC, text).choose("", "anthropic", OWN)
    assert choice.remark == "kimi is off: MOONSHOT_API_KEY is not set"


def test_the_demo_model_answers_only_where_no_key_is() -> None:
    choice = chooser({}).choose("", "anthropic", OWN)
    assert choice.model == "demo/demo"
    assert choice.remark
    named = chooser(KIMI).choose("demo/demo", "anthropic", OWN)
    assert (named.model, named.remark) == ("demo/demo", "")
    assert "demo" in named.settings.providers


def test_a_file_whose_providers_all_lack_their_keys_asks_for_the_first_of_them() -> None:
    text = '[providers]\ndiscover = false\n[providers.kimi]\napi_key = "env:MY_KEY"\n'
    asked: list[str] = []

    def ask(whose: str, variable: str, try_key: TryKey, reason: str = "") -> str:
        asked.append(variable)
        return "sk-given"

    choice = chooser(ANTHROPIC, text, ask).choose("", "openai-chat", "")
    assert asked == ["MY_KEY"]
    assert set(choice.settings.providers) == {"kimi"}


def test_a_client_is_offered_no_model_that_embeds() -> None:
    choice = chooser({}).choose("demo/demo", "openai-chat", "")
    listed = {model.id for model in models(choice.settings, "openai-chat") if "/" in model.id}
    assert listed - set(choice.names("openai-chat")) == {"demo/demo-embedding"}


def test_the_context_of_a_local_model_is_that_of_its_server() -> None:
    with ScriptedUpstream(decide=lambda _: Behaviour(body=SHOWN)) as upstream:
        text = f'[providers.ollama]\nbase_url = "{upstream.url}/v1"\n'
        text += f'base_urls = {{ anthropic = "{upstream.url}", ollama = "{upstream.url}" }}\n'
        choice = chooser({}, text).choose("ollama/qwen3", "anthropic", OWN)
        assert choice.context("anthropic") == 40960
        assert [(asked.method, asked.path) for asked in upstream.requests] == [("POST", "/api/show")]
    assert chooser(KIMI).choose("kimi/kimi-k3", "anthropic", OWN).context("anthropic") > 100_000
