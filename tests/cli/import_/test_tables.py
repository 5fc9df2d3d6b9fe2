"""Addresses, placeholders and patterns that imports know."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.import_.kit import ccr, litellm
from tests.tiers import rows
from wireglot.cli.import_ import ccr as ccr_import
from wireglot.cli.import_ import importing
from wireglot.cli.import_.draft import Draft, is_model_name, key, value
from wireglot.cli.import_.endpoints import (
    NoAddress,
    ProviderPlace,
    Secrets,
    based,
    is_secret_header,
    key_name,
    label,
    place_of,
)
from wireglot.cli.import_.litellm_entries import word
from wireglot.cli.import_.source import NotKnownHere, SourceNode
from wireglot_core.providers import spec

PLACEHOLDERS = [
    "none", "null", "na", "n/a", "empty", "dummy", "fake", "fake-key", "fake_key", "my-fake-key", "test", "no-key",
    "not-needed", "not-required", "anything", "ollama", "lm-studio", "lmstudio", "vllm", "x", "xxx", "key", "token",
    "-", "sk-none", "sk-dummy", "sk-fake", "sk-no-key-required", "placeholder",
]  # fmt: skip


def test_words_for_no_key_are_written_out_and_everything_else_is_a_variable() -> None:
    secrets = Secrets({})
    assert [secrets.hidden(each, "A_KEY") for each in PLACEHOLDERS] == PLACEHOLDERS
    assert secrets.hidden("Not-Needed", "A_KEY") == "Not-Needed"
    assert (secrets.needed, secrets.literal) == ({}, {})
    assert [secrets.hidden(f"{each}s", "A_KEY") for each in ("a", "b", "a")] == [
        "env:A_KEY", "env:A_KEY_2", "env:A_KEY"
    ]  # fmt: skip
    assert secrets.hidden("c", "9 lives/key!") == "env:K_9_LIVES_KEY"
    assert secrets.hidden("d", "é") == "env:KEY"
    assert secrets.hidden("e", "x" * 61) == f"env:{'X' * 60}"
    assert secrets.describe("none") == "api_key: a placeholder, not a secret"
    assert secrets.describe("env:A_KEY") == "set A_KEY to its value"
    assert secrets.describe("env:OTHER") == "api_key: env:OTHER"


@rows(
    ("url", "dialect", "base"),
    [
        *((f"http://h{end}", "anthropic", "http://h") for end in ("", "/", "/v1", "/v1/", "/v1/messages", "/messages//")),
        *((f"http://h/v1{end}", "openai-chat", "http://h/v1") for end in ("", "/", "/chat", "/chat/completions//")),
        *((f"http://h/v1{end}", "openai-responses", "http://h/v1") for end in ("", "//", "/responses", "/responses/")),
        *((f"http://h/v1beta{end}", "gemini", "http://h/v1beta") for end in ("", "/", "/models", "/models/")),
        ("HTTPS://h.example:444/x", "openai-chat", "HTTPS://h.example:444/x"),
    ],
)  # fmt: skip
def test_the_base_url_of_an_endpoint(url: str, dialect: str, base: str) -> None:
    assert based(url, dialect) == base


@rows(
    ("url", "said"),
    [
        *((url, "its address does not begin with http:// or https:// and a host")
          for url in ("", "h", "ftp://h", "http://", "http://h:x", "http://h$", "https://{x}/y")),
        *((url, "its address has spaces, control characters or '..' in it")
          for url in ("http://h/../x", "http://h/a b", "http://h/\u200bx")),
        ("http://u@h/x", "its address holds a user name or password"),
        ("http://h/x?y", "its address has a query"),
        ("http://h/x#y", "its address has a query"),
        *((f"http://h/{end}", "its address is not an endpoint of the dialect openai-chat")
          for end in ("v1/responses", "v1/messages", "v1/models", "v1internal:countTokens", "v1internal")),
    ],
)  # fmt: skip
def test_what_is_no_address_of_an_endpoint(url: str, said: str) -> None:
    with pytest.raises(NoAddress) as refused:
        based(url, "openai-chat")
    assert str(refused.value) == said


@rows(
    ("base", "name"),
    [
        ("http://127.0.0.1:80/v1", "local-80"),
        ("http://localhost", "local"),
        ("http://10.0.0.1:81", "local-81"),
        ("http://[::1]:82", "local-82"),
        *((f"https://{word}.acme.{end}", "acme") for word in ("api", "www") for end in ("com", "ai", "io", "net", "org")),
        ("https://llm.eu.acme.example", "llm-eu"),
        ("https://api.ai", "provider"),
    ],
)  # fmt: skip
def test_a_short_name_for_a_server(base: str, name: str) -> None:
    assert label(base) == name


@rows(
    ("url", "dialect", "named", "catalog", "base"),
    [
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "openai-chat", "", "qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        ("https://open.bigmodel.cn/api/paas/v4", "openai-chat", "", "zai", "https://open.bigmodel.cn/api/paas/v4"),
        ("https://api.minimaxi.com/v1", "openai-chat", "", "minimax", "https://api.minimaxi.com/v1"),
        ("https://api.minimax.chat/v1", "openai-chat", "", "minimax", "https://api.minimax.chat/v1"),
        ("https://API.OpenAI.com/v1", "openai-chat", "", "openai", ""),
        ("https://api.openai.com", "openai-chat", "", "openai", ""),
        ("https://api.openai.com/other/v1", "openai-chat", "", "openai", "https://api.openai.com/other/v1"),
        ("https://api.openai.com/v1", "openai-responses", "", "openai", ""),
        ("https://api.openai.com:444/v1", "openai-chat", "", "", "https://api.openai.com:444/v1"),
        ("http://localhost:11434/v1", "openai-chat", "ollama", "ollama", ""),
        ("http://localhost:11434/v1", "openai-chat", "", "", "http://localhost:11434/v1"),
        ("http://10.1.1.1:1/v1", "openai-chat", "vllm", "vllm", "http://10.1.1.1:1/v1"),
        ("http://10.1.1.1:1/v1", "openai-chat", "openai", "", "http://10.1.1.1:1/v1"),
    ],
)  # fmt: skip
def test_which_entry_of_the_catalog_an_address_is(
    url: str, dialect: str, named: str, catalog: str, base: str
) -> None:
    assert place_of(url, dialect, named) == ProviderPlace(dialect, catalog, base)


def test_what_a_table_of_providers_says_of_a_place() -> None:
    assert ProviderPlace("openai-chat", "openai").fields() == {"catalog": "openai"}
    url = "https://h.example/v1"
    spoken = ProviderPlace("openai-chat", "", url).fields()
    assert spoken == {"dialect": "openai-chat", "base_url": url}
    first, *others = spec.provider("openai").dialects
    assert ProviderPlace(first, "openai", url).fields() == {"catalog": "openai", "base_url": url}
    for other in others:
        assert ProviderPlace(other, "openai", url).fields() == {
            "catalog": "openai", "dialect": other, "base_url": url
        }  # fmt: skip


def test_the_variable_of_a_key() -> None:
    assert key_name("x", "openai") == "OPENAI_API_KEY"
    assert key_name("my llm") == "MY_LLM_API_KEY"
    assert key_name("openai") == "MY_OPENAI_API_KEY"
    assert key_name("near", "ollama") == "NEAR_API_KEY"


@rows(
    ("name", "text", "secret"),
    [
        *((f"x-{part}", "v", True) for part in ("Auth", "key", "token", "secret", "cookie", "password", "signature")),
        ("x-team", "v", False),
        ("x-team", "sk-0123456789abcdefghij", True),
    ],
)  # fmt: skip
def test_which_headers_hold_a_secret(name: str, text: str, secret: bool) -> None:
    assert is_secret_header(name, text) is secret


@rows("text", ["a b", "/x", "-x", "ü", "a/b", "a?b"])
def test_what_is_no_word_of_an_address(text: str) -> None:
    with pytest.raises(NotKnownHere, match="characters that are invalid in an address"):
        word(SourceNode(text, "a", 1), Secrets({}))


def test_words_of_an_address() -> None:
    for given, found in (("eu-west-1", "eu-west-1"), ("a.b_c:d9", "a.b_c:d9"), (2024, "2024")):
        assert word(SourceNode(given, "a", 1), Secrets({})) == found
    assert word(SourceNode("os.environ/ REGION", "a", 1), Secrets({})) == "env:REGION"


@rows(
    ("params", "model", "fields"),
    [
        ("model: bedrock/converse_like/anthropic.claude-x, aws_region_name: us-gov-west-1", "anthropic.claude-x",
         {"catalog": "bedrock", "variables": {"region": "us-gov-west-1"}, "login": "aws"}),
        ("model: bedrock/openai/us-east-1/arn:aws:x", "arn:aws:x",
         {"catalog": "bedrock", "variables": {"region": "us-east-1"}, "login": "aws"}),
        ("model: bedrock/not-a-region/mistral.x", "not-a-region/mistral.x",
         {"catalog": "bedrock-openai", "variables": {"region": "env:AWS_REGION"}, "login": "aws"}),
        ("model: bedrock/mistral.x, api_base: https://vpce.example/", "mistral.x",
         {"catalog": "bedrock-openai", "base_url": "https://vpce.example/openai/v1",
          "login": {"kind": "aws", "region": "env:AWS_REGION"}}),
        *((f"model: azure/{route}/d, api_base: https://acme.openai.azure.com, api_version: {version}, api_key: none", "d",
           {"catalog": "azure", "variables": {"resource": "acme"}, "api_key": "none"})
          for route, version in (("responses", "v1"), ("o_series", "preview"), ("gpt5_series", "latest"))),
        ("model: azure/d, api_base: https://llm.acme.example/openai/deployments, api_key: none", "d",
         {"catalog": "azure-deployments", "variables": {"api_version": "2025-02-01-preview"},
          "base_url": "https://llm.acme.example/openai", "api_key": "none"}),
        ("model: azure/d, api_base: https://acme.openai.azure.com, tenant_id: t, client_id: c, client_secret: os.environ/S", "d",
         {"catalog": "azure-deployments", "variables": {"resource": "acme", "api_version": "2025-02-01-preview"},
          "login": {"kind": "entra", "tenant": "t", "client": "c", "secret": "env:S"}}),
        ("model: vertex_ai/gemini-x, vertex_ai_project: p, vertex_ai_location: l", "gemini-x",
         {"catalog": "vertex", "project": "p", "location": "l"}),
    ],
)  # fmt: skip
def test_models_of_clouds(params: str, model: str, fields: dict[str, Any]) -> None:
    found = litellm(f"model_list: [{{model_name: m, litellm_params: {{{params}}}}}]")
    assert not found.report.warnings
    (provider,) = found.draft.providers.values()
    assert provider.fields == fields
    assert found.draft.rules["m"][0].targets == (f"{provider.name}/{model}",)


@rows(
    ("params", "said"),
    [
        ("model: vertex_ai/llama-3", "only Gemini and Claude models of Vertex are supported"),
        ("model: vertex_ai/gemini-x, vertex_credentials: '{\"type\": 1}'", "the key of its service account is in the file itself"),
        ("model: vertex_ai/gemini-x, vertex_credentials: {type: x}", "the key of its service account is in the file itself"),
        ("model: azure/d", "an Azure model needs an api_base"),
        ("model: openai_like/d", "a model of openai_like/ needs an api_base"),
    ],
)  # fmt: skip
def test_models_of_clouds_that_are_not_carried_over(params: str, said: str) -> None:
    found = litellm(f"model_list: [{{model_name: m, litellm_params: {{{params}}}}}]")
    assert found.report.warnings[0].startswith(f"line 1: model m is not carried over: {said}")


def test_variables_and_proxies_of_claude_code_router() -> None:
    def provider(key: str, **more: str) -> Any:
        lines = "".join(f'{name}: "{text}",' for name, text in more.items())
        listed = f'{{name: "p", api_base_url: "https://h.example/v1", api_key: "{key}", models: ["m"]}}'
        return (
            ccr(f"{{{lines} Providers: [{listed}]}}", {"B_1": "http://b.example:1"})
            .draft.providers["p"]
            .fields
        )

    assert provider("${a.b}")["api_key"] == "env:a.b"
    assert provider("$A_1")["api_key"] == "env:A_1"
    assert "proxy" not in provider("$A_1", PROXY_URL="http://h.example/x")
    for name in ("HTTPS_PROXY", "https_proxy", "httpsProxy", "PROXY_URL"):
        assert provider("$A_1", **{name: "http://p.example:1"})["proxy"] == "http://p.example:1"
        assert provider("$A_1", **{name: "$UNSET"})["proxy"] == "env:UNSET"
        assert provider("$A_1", **{name: "$B_1"})["proxy"] == "env:B_1"
        assert provider("$A_1", **{name: "http://u:p@h.example:1"})["proxy"] == "env:PROXY_URL"
    assert ccr_import._PROXIES == ("HTTPS_PROXY", "https_proxy", "httpsProxy", "PROXY_URL")


def test_where_vertex_is_asked_follows_the_environment() -> None:
    text = """{Providers: [{name: "v", api_base_url: "x", api_key: "k", models: [],
        transformer: {use: ["vertex-claude"]}}]}"""
    for known, location in (({}, "us-east5"), ({"GOOGLE_CLOUD_LOCATION": "x"}, "env:GOOGLE_CLOUD_LOCATION")):
        assert ccr(text, known).draft.providers["v"].fields == {
            "catalog": "vertex-anthropic", "project": "env:GOOGLE_CLOUD_PROJECT", "location": location
        }  # fmt: skip


@rows(
    ("wish", "entry", "name"),
    [
        ("openai", "openai", "openai"),
        ("openai", "", "my-openai"),
        ("discover", "", "my-discover"),
        ("demo", "", "my-demo"),
        ("-.my llm/2._", "", "my-llm-2"),
        ("///", "", "provider"),
    ],
)
def test_names_of_providers(wish: str, entry: str, name: str) -> None:
    draft = Draft(Secrets({}))
    fields: dict[str, Any] = {"catalog": entry} if entry else {}
    assert draft.provider(fields, wish).name == name
    assert draft.provider(fields, wish).name == name, "the same fields are the same provider"
    assert draft.provider({**fields, "x": 1}, wish).name == f"{name}-2"


def test_names_of_models_and_values_of_toml() -> None:
    assert [is_model_name(name) for name in ("a", "x" * 256, "", "a b", "a\n", "x" * 257)] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    values = (True, False, 'a\x7f\u2028"', 3, 2.0, 2.5, 1e-7, {"a b": [1, "x"], "c-d_9": False})
    assert [value(each) for each in values] == [
        "true", "false", '"a\\u007f\u2028\\""', "3", "2", "2.5", "1e-07", '{ "a b" = [1, "x"], c-d_9 = false }',
    ]  # fmt: skip
    assert [key(name) for name in ("a-b_9", "a.b", "")] == ["a-b_9", '"a.b"', '""']


def test_keys_that_can_be_kept() -> None:
    names = [f"A{'_' * 63}", f"A{'_' * 64}", "a", "9A", "_A9"]
    assert [importing._KEEPABLE_NAME.fullmatch(name) is not None for name in names] == [
        True,
        False,
        False,
        False,
        True,
    ]
    keys = ["!~", "a b", "", "ü", "\x7f"]
    assert [importing._KEEPABLE.fullmatch(each) is not None for each in keys] == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_what_is_not_carried_over_is_warned_of_by_its_line_and_its_name() -> None:
    models = litellm(
        "model_list:\n- {litellm_params: {model: openai/o}}\n- {model_name: a b, litellm_params: {model: x}}"
    )
    name = "a name with spaces, control characters or more than 256 characters is not supported"
    assert models.report.warnings == [
        "line 2: model ? is not carried over: it has no model_name",
        f"line 3: model a b is not carried over: {name}",
    ]
    providers = ccr(
        '{Providers: [\n{api_key: "k"},\n{name: "p", api_base_url: "x"}], Router: {default: "p"}}'
    )
    assert providers.report.warnings == [
        "line 2: provider ? is not carried over: it has no name; claude-code-router ignores it too",
        "line 3: provider p is not carried over: it has no api_key; claude-code-router ignores it too",
        "line 3: Router.default is not carried over: expected provider,model",
    ]
