"""The catalog: every file loads, its limits exist, and models meet the right ones."""

import re
import tomllib
from importlib.resources import files
from typing import get_args
from urllib.parse import urlsplit

import msgspec
import pytest
from anthropic.types.model import Model as ClaudeModel
from openai.types import EmbeddingModel
from openai.types.shared import AllModels, ChatModel

from tests.tiers import rows
from wireglot_core.dialects.registry import NAMES, surface
from wireglot_core.providers.endpoints import NoEndpoint, Operation, endpoint, variables_of
from wireglot_core.providers.limits import BASE, Limits
from wireglot_core.providers.list_price import price_list
from wireglot_core.providers.spec import Source, UnknownProvider, limits_for, names, provider, provider_for


@rows("name", names())
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


@rows(
    ("dialect", "model", "expected"),
    [
        ("openai-chat", "kimi-k3", "kimi"),
        ("anthropic", "kimi-k3", "kimi"),
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


REQUIRED = [
    "anthropic",
    "openai",
    "gemini",
    "vertex",
    "vertex-anthropic",
    "azure",
    "azure-deployments",
    "azure-anthropic",
    "bedrock",
    "bedrock-openai",
    "kimi",
    "kimi-cn",
    "kimi-anthropic",
    "kimi-anthropic-cn",
    "kimi-coding",
    "deepseek",
    "openrouter",
    "groq",
    "xai",
    "mistral",
    "qwen",
    "zai",
    "minimax",
    "together",
    "fireworks",
    "ollama",
    "vllm",
    "llama-cpp",
    "code-assist",
    "demo",
]


def entries():
    return [(name, entry) for name in names() for entry in provider(name).models]


def test_the_catalog_names_everyone_promised() -> None:
    """C36"""
    assert set(REQUIRED) <= set(names())


@rows("name", names())
def test_every_url_of_a_file_is_one_that_may_be_called(name: str) -> None:
    spec = provider(name)
    for dialect in spec.dialects:
        for operation in ("generate", "stream", *(("count",) if dialect in spec.counts else ())):
            variables = dict.fromkeys(variables_of(spec), "x")
            url = urlsplit(endpoint(spec, dialect, operation, "m", variables))
            if name == "demo":
                assert url.scheme == "demo"
                continue
            local = url.hostname == "127.0.0.1"
            assert url.scheme == ("http" if local else "https")
            assert url.hostname
            assert "{" not in url.geturl()
            assert "/v1/v1" not in url.path
            assert local == (spec.auth == "none")


@rows("name", names())
def test_the_fields_of_a_file_fit_together(name: str) -> None:
    spec = provider(name)
    for spoken in (spec.base_urls, spec.dialect_limits, spec.counts, spec.forms):
        assert set(spoken) <= set(spec.dialects)
    assert bool(spec.api_key_env) == (spec.auth != "none")
    assert set(spec.variables) | set(spec.regional) <= set(variables_of(spec))
    assert all(rule["by"] in spec.variables and rule["*"] for rule in spec.regional.values())
    assert not spec.vendor or spec.vendor in names()
    for dialect, form in spec.forms.items():
        upstream = surface(dialect).upstream
        assert upstream is not None
        assert not form.framing or form.framing in upstream.framings
        assert {"generate", "stream"} <= set(form.paths)
    assert all(set(entry.dialects) <= set(spec.dialects) for entry in spec.models)
    known = set(Limits.__struct_fields__)
    for limits in (spec.limits, *spec.dialect_limits.values(), *(entry.limits for entry in spec.models)):
        assert set(limits) <= known
    for variable in spec.api_key_env:
        assert re.fullmatch(r"[A-Z][A-Z0-9_]+", variable)


def test_no_key_of_the_environment_reaches_the_hosts_of_two_companies() -> None:
    """A key turns on every provider that names its variable."""
    hosts: dict[str, set[str]] = {}
    for name in names():
        spec = provider(name)
        for variable in spec.api_key_env:
            for url in (spec.base_url, *spec.base_urls.values()):
                hosts.setdefault(variable, set()).add(urlsplit(url).hostname or "")
    assert [variable for variable, reached in hosts.items() if len(reached) > 1] == []


def test_every_entry_is_reached_and_says_one_thing() -> None:
    for name, entry in entries():
        assert entry.match.strip() == entry.match != ""
        assert entry.context >= entry.output >= 0 or not entry.context
        if entry.is_name:
            assert provider(name).model(entry.match) is entry, (name, entry.match)
    for name in names():
        matches = [entry.match for entry in provider(name).models]
        assert len(matches) == len(set(matches)), name


def test_every_successor_is_known_and_in_service() -> None:
    """C14"""
    for name, entry in entries():
        if entry.successor:
            assert entry.retired, (name, entry.match)
            successor = provider(name).model(entry.successor)
            assert successor is not None, (name, entry.successor)
            assert successor.is_name, (name, entry.successor)
            assert not successor.retired, (name, entry.successor)


def test_names_of_the_sdks_are_current_ones() -> None:
    """The vendor's own SDK is the judge of a name."""
    claude = {*get_args(get_args(ClaudeModel)[0])}
    listed = {entry.match for entry in provider("anthropic").models if entry.is_name and not entry.retired}
    assert listed <= claude
    assert claude - listed == {"claude-mythos-preview"}
    gpt = {*get_args(ChatModel), *get_args(get_args(AllModels)[-1])}
    listed = {entry.match for entry in provider("openai").models if entry.is_name and not entry.embeds}
    assert listed - gpt == {"gpt-5.4-pro"}  # OpenAI serves and prices it; the SDK names its neighbours only
    embedding = {entry.match for entry in provider("openai").models if entry.embeds}
    assert embedding == {*get_args(EmbeddingModel)}


def test_a_model_that_embeds_says_so_and_no_other_does() -> None:
    embedding = {f"{name}/{entry.match}": entry for name, entry in entries() if entry.embeds}
    assert embedding.keys() >= {
        "openai/text-embedding-3-large",
        "gemini/gemini-embedding-001",
        "demo/demo-embedding",
    }
    for name, entry in embedding.items():
        spec = provider(name.partition("/")[0])
        assert entry.is_name, name
        assert entry.dimensions > 0, name
        assert not entry.answers, name
        assert all(surface(spoken).embeddings is not None for spoken in entry.dialects or spec.dialects), name
    assert not any(entry.dimensions for _, entry in entries() if not entry.embeds)


@rows(
    ("dialect", "model", "expected"),
    [
        ("openai-chat", "gpt-6-sol", "openai"),
        ("openai-chat", "deepseek-flash", "deepseek"),
        ("openai-chat", "mistral-large-latest", "mistral"),
        ("openai-chat", "qwen3-max", "qwen"),
        ("openai-chat", "glm-5.3", "zai"),
        ("anthropic", "MiniMax-M3", "minimax"),
        ("openai-responses", "grok-4.7", "xai"),
        ("openai-chat", "openai/gpt-oss-120b", "groq"),
        ("openai-chat", "zai-org/GLM-5.3", "together"),
        ("openai-chat", "accounts/fireworks/models/glm-5p3", "fireworks"),
        ("openai-chat", "x-ai/grok-4.7", "openrouter"),
        ("anthropic", "demo-anthropic", "demo"),
    ],
)
def test_a_name_belongs_to_its_vendor_or_to_the_reseller_it_is_spelled_for(
    dialect: str, model: str, expected: str
) -> None:
    spec = provider_for(dialect, model)
    assert spec is not None
    assert spec.name == expected


def test_an_entry_for_plain_names_does_not_swallow_the_names_of_resellers() -> None:
    assert not provider("deepseek").knows("deepseek-ai/DeepSeek-V4-Pro")
    assert provider("together").knows("deepseek-ai/DeepSeek-V4-Pro")
    assert provider("anthropic").knows("anthropic/claude-sonnet-4.5")
    assert not provider("openrouter").knows("claude-sonnet-4-5")


def test_a_dialect_has_limits_of_its_own() -> None:
    assert limits_for("openai-chat", "deepseek-flash", "deepseek").output_formats == ("json",)
    assert limits_for("anthropic", "deepseek-flash", "deepseek").output_formats == ()


def stated(name: str) -> set[str]:
    """The limits that a file states, in any of its tables."""
    spec = provider(name)
    tables = [spec.limits, *spec.dialect_limits.values()]
    for entry in spec.models:
        tables += [entry.limits, *entry.dialect_limits.values()]
    return {limit for table in tables for limit in table}


@rows("name", names())
def test_every_limit_names_its_source_and_date(name: str) -> None:
    """[X15] A limit belongs to an endpoint, and anyone who doubts it can look it up: none without a source and
    its date, and no source for what the file does not say."""
    reported = {limit for source in provider(name).sources for limit in source.limits}
    assert stated(name) - reported == set()
    assert reported - stated(name) == set()


def test_a_source_without_a_date_is_refused() -> None:
    """[X15] The catalog's own reader refuses it, and an address that is none."""
    for source in (
        {"url": "https://example.com", "status": "read", "limits": []},
        {"url": "https://example.com", "status": "read", "date": "lately", "limits": []},
        {"url": "https://example.com", "date": "2026-11-15", "limits": []},
        {"url": "by heart", "status": "named", "date": "2026-11-15", "limits": []},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(source, Source)


@rows(
    ("name", "dialect", "model"),
    [
        ("bedrock", "anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("bedrock", "anthropic", "global.anthropic.claude-opus-4-7"),
        ("vertex-anthropic", "anthropic", "claude-opus-4-7@20260401"),
        ("azure-anthropic", "anthropic", "claude-opus-4-7"),
        ("azure", "openai-chat", "gpt-5.4"),
        ("azure-deployments", "openai-chat", "o3"),
    ],
)
def test_a_model_is_its_vendors_wherever_it_is_served(name: str, dialect: str, model: str) -> None:
    vendor = provider(name).vendor
    there, here = limits_for(dialect, model, vendor), limits_for(dialect, model, name)
    for limit in ("thinking", "sampling", "prefill", "efforts", "system_midway", "budget_min"):
        assert getattr(here, limit) == getattr(there, limit), limit


@rows(
    ("name", "dialect", "operation", "model", "expected"),
    [
        (
            "bedrock",
            "anthropic",
            "stream",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/"
            "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream",
        ),
        (
            "bedrock",
            "anthropic",
            "generate",
            "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a",
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/"
            "arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fa/invoke",
        ),
        (
            "vertex-anthropic",
            "anthropic",
            "generate",
            "claude-sonnet-4-5@20250929",
            "https://h/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict",
        ),
        (
            "azure-deployments",
            "openai-chat",
            "generate",
            "my-gpt",
            "https://r.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "openai-responses",
            "generate",
            "my-gpt",
            "https://r.openai.azure.com/openai/v1/responses",
        ),
    ],
)
def test_a_host_has_the_paths_of_its_own_form(
    name: str, dialect: str, operation: Operation, model: str, expected: str
) -> None:
    variables = {
        "region": "eu-west-1",
        "host": "h",
        "project": "p",
        "location": "l",
        "resource": "r",
        "api_version": "2024-10-21",
    }
    assert endpoint(provider(name), dialect, operation, model, variables) == expected


def test_what_a_host_has_no_path_for_is_not_there() -> None:
    with pytest.raises(NoEndpoint):
        endpoint(provider("bedrock"), "anthropic", "models", variables={"region": "r"})
    with pytest.raises(NoEndpoint):
        endpoint(provider("bedrock"), "anthropic", "generate", "../x", {"region": "r"})


def test_a_context_window_is_stated_once() -> None:
    """By the generated list, or by hand where that has none."""
    twice = []
    for name in names():
        text = (files("wireglot_core.providers") / "catalog" / f"{name}.toml").read_text(encoding="utf-8")
        stated = {entry["match"] for entry in tomllib.loads(text).get("models", ()) if "context" in entry}
        twice += [f"{name}/{model}" for model in stated & price_list().contexts.get(name, {}).keys()]
    assert twice == []


@rows(
    ("name", "model", "context", "most", "output"),
    [
        ("anthropic", "claude-opus-4-6", 1_000_000, 1_000_000, 128_000),
        ("anthropic", "claude-opus-4-7", 1_000_000, 1_000_000, 128_000),
        ("anthropic", "claude-opus-4-8", 1_000_000, 1_000_000, 128_000),
        ("anthropic", "claude-sonnet-4-6", 1_000_000, 1_000_000, 128_000),
        ("anthropic", "claude-sonnet-4-5", 200_000, 200_000, 64_000),
        ("openai", "gpt-5", 400_000, 272_000, 128_000),
        ("openai", "gpt-5-mini", 400_000, 272_000, 128_000),
        ("openai", "gpt-5.1", 400_000, 272_000, 128_000),
        ("openai", "gpt-5.4-pro", 1_050_000, 922_000, 128_000),
        ("openai", "gpt-5.6-sol", 1_050_000, 922_000, 128_000),
        ("openai", "gpt-6-astra", 1_050_000, 922_000, 128_000),
        ("kimi", "kimi-k3.1-pro", 1_048_576, 1_048_576, 0),
        ("gemini", "gemini-4-hydrogen", 1_048_576, 1_048_576, 65_536),
        ("gemini", "gemini-flash-latest", 1_000_000, 1_000_000, 0),
        ("qwen", "qwen3.8-flash", 991_000, 991_000, 128_000),
        ("mistral", "mistral-large-4-0", 1_048_576, 1_048_576, 0),
    ],
)
def test_how_much_a_model_reads_and_writes(
    name: str, model: str, context: int, most: int, output: int
) -> None:
    entry = provider(name).model(model)
    assert entry is not None
    assert entry.is_name
    assert (entry.context, entry.input_limit, entry.output) == (context, most, output)


def test_a_request_fits_into_the_window_with_its_answer() -> None:
    """Where a limit of its own is stated for the request."""
    for name in names():
        for entry in provider(name).models:
            assert not entry.input or entry.input + entry.output <= entry.context, entry.match


def test_the_names_of_the_catalog_are_those_of_its_files_in_order() -> None:
    listed = [entry.name.partition(".") for entry in (files("wireglot_core.providers") / "catalog").iterdir()]
    assert list(names()) == sorted(name for name, _, ending in listed if ending == "toml")


def test_a_context_that_nobody_knows_is_none_and_no_small_one() -> None:
    contexts = {(name, entry.match): entry.context for name in names() for entry in provider(name).models}
    unknown = [size for size in contexts.values() if size < 1000]
    assert unknown
    assert set(unknown) == {0}
