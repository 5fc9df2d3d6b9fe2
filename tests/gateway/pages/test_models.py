"""Model lists, as the vendors' own SDKs read them."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types as gemini_types

from tests.tiers import rows
from wireglot.gateway.config import load
from wireglot.gateway.entry.callers import check_permitted
from wireglot.gateway.errors import RequestError
from wireglot.gateway.pages import models
from wireglot.gateway.settings import ClientKey, Provider, Rule, Settings
from wireglot.gateway.targets.routing import route
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.registry import surface
from wireglot_core.ir.errors import ClientFault
from wireglot_core.providers.spec import ModelSpec, ProviderSpec

ALPHA = ProviderSpec(
    name="alpha",
    title="Alpha",
    dialects=("anthropic",),
    base_url="http://alpha.test",
    models=(
        ModelSpec(match="claude-*"),
        ModelSpec(match="claude-old", retired=True),
        ModelSpec(match="claude-new", title="Claude New", context=1_000_000, output=64_000),
        ModelSpec(match="claude-budget", limits={"thinking": "budget", "media": ["image"]}),
        ModelSpec(
            match="claude-plain", limits={"thinking": "none", "max_tokens": 4096, "output_formats": []}
        ),
        ModelSpec(match="shared"),
    ),
)
BETA = ProviderSpec(
    name="beta",
    title="Beta",
    dialects=("openai-chat", "gemini"),
    base_url="http://beta.test/v1",
    limits={"hosted_tools": False, "thinking_off": False},
    models=(
        ModelSpec(match="shared"),
        ModelSpec(match="team/large", title="Large", dialects=("openai-chat",)),
        ModelSpec(match="effortful", limits={"thinking": "effort", "efforts": ["low", "high"]}),
    ),
)
SETTINGS = Settings(
    providers={"alpha": Provider("alpha", ALPHA), "beta": Provider("beta", BETA)},
    rules=(
        Rule("fast", ("beta/effortful", "alpha/claude-new")),
        Rule("gone", ("nowhere/x",)),
        Rule("claude-b*", ("beta/b*",)),
        Rule("fast", ("alpha/claude-new",), effort=("high",)),
        Rule("gpt-*", ("alpha/claude-new",)),
    ),
)
MODELS = models.models(SETTINGS, "anthropic")
BY_ID = {model.id: model for model in MODELS}


def _leads(name: str) -> tuple[str, str]:
    """The provider that a request for this name goes to, and the model that it is asked for."""
    target = route(SETTINGS, name, "anthropic")[0]
    return target.provider.name, target.model


def _reported(model: ListedModel) -> dict[str, Any]:
    return surface("anthropic").models.render_model(model)


def test_rules_come_first_then_each_provider_by_bare_and_qualified_name():
    assert [model.id for model in MODELS] == [
        "fast",
        "claude-new",
        "alpha/claude-new",
        "claude-budget",
        "alpha/claude-budget",
        "claude-plain",
        "alpha/claude-plain",
        "shared",
        "alpha/shared",
        "beta/shared",
        "team/large",
        "beta/team/large",
        "effortful",
        "beta/effortful",
    ]


def test_every_name_is_reported_with_the_route_it_takes():
    assert _leads("fast") == (BY_ID["fast"].provider, "effortful") == ("beta", "effortful")
    assert _leads("shared") == (BY_ID["shared"].provider, "shared") == ("alpha", "shared")
    assert _leads("claude-budget") == (BY_ID["claude-budget"].provider, "budget") == ("beta", "budget")
    assert BY_ID["beta/team/large"].dialects == ("openai-chat",)


def test_retired_models_and_names_that_lead_nowhere_are_not_listed():
    assert "claude-old" not in BY_ID
    assert "alpha/claude-old" not in BY_ID
    assert "gone" not in BY_ID


def test_a_name_that_a_pattern_catches_can_be_described_without_being_listed():
    found = models.listed(SETTINGS, "gpt-anything", "anthropic")
    assert found is not None
    assert (found.id, found.provider) == ("gpt-anything", "alpha")
    assert _leads("gpt-anything") == ("alpha", "claude-new")
    assert models.listed(SETTINGS, "nobody-knows-this", "anthropic") is None


def test_a_key_sees_what_it_may_ask_for():
    key = ClientKey("k", "00", models=("beta/*", "fast"))
    assert [model.id for model in models.permitted(MODELS, key)] == [
        "fast",
        "beta/shared",
        "beta/team/large",
        "beta/effortful",
    ]
    assert models.permitted(MODELS, ClientKey("k", "00")) == MODELS
    assert models.permitted(MODELS, None) == MODELS


def test_a_key_is_refused_what_it_may_not_ask_for():
    key = ClientKey("k", "00", models=("beta/*", "m[12]?"))
    for name in ("beta/x", "m[12]?"):
        check_permitted(key, name)
    for name in ("alpha/x", "xbeta/x", "m1x", ""):
        with pytest.raises(RequestError) as fault:
            check_permitted(key, name)
        assert fault.value.error.status == 403
    check_permitted(None, "anything")
    check_permitted(ClientKey("k", "00"), "anything")


def _answer(dialect: str, prefix: str) -> httpx2.MockTransport:
    """A server that answers nothing but model lists."""

    def reply(request: httpx2.Request) -> httpx2.Response:
        path = unquote(request.url.raw_path.decode().partition("?")[0])
        assert path.startswith(prefix), path
        rest = path.removeprefix(prefix).removeprefix("/")
        if not rest:
            return httpx2.Response(
                200, json=models.render_list(surface(dialect), MODELS, request.url.query.decode())
            )
        found = models.find(MODELS, rest)
        if found is None:
            return httpx2.Response(404, json={"error": {}})
        return httpx2.Response(200, json=surface(dialect).models.render_model(found))

    return httpx2.MockTransport(reply)


@pytest.fixture(name="claude")
def _claude():
    transport = _answer("anthropic", "/v1/models")
    return anthropic.Anthropic(
        api_key="x", base_url="http://gateway.test", http_client=httpx2.Client(transport=transport)
    )


@pytest.fixture(name="gpt")
def _gpt():
    transport = _answer("openai-chat", "/v1/models")
    return openai.OpenAI(
        api_key="x", base_url="http://gateway.test/v1", http_client=httpx2.Client(transport=transport)
    )


@pytest.fixture(name="gemini")
def _gemini():
    client = httpx2.Client(transport=_answer("gemini", "/v1/models"))
    options = gemini_types.HttpOptions(base_url="http://gateway.test", httpx_client=client)
    return genai.Client(api_key="x", http_options=options)


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_anthropics_sdk_pages_through_the_whole_list(claude, limit):
    assert [model.id for model in claude.models.list(limit=limit)] == [model.id for model in MODELS]


def test_anthropics_sdk_pages_backwards(claude):
    page = claude.models.list(limit=3, before_id="claude-plain")
    assert [model.id for model in page.data] == ["alpha/claude-new", "claude-budget", "alpha/claude-budget"]
    assert page.has_more
    before = page.get_next_page()
    assert [model.id for model in before.data] == ["fast", "claude-new"]
    assert not before.has_more


def test_anthropics_list_holds_twenty_unless_configured_otherwise():
    many = tuple(ListedModel(f"m{n}", "p") for n in range(30))
    page = models.render_list(surface("anthropic"), many)
    assert (len(page["data"]), page["has_more"], page["first_id"], page["last_id"]) == (20, True, "m0", "m19")
    assert len(models.render_list(surface("anthropic"), many, "limit=9999999999999")["data"]) == 30
    empty = models.render_list(surface("anthropic"), ())
    assert empty == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_anthropics_sdk_reads_figures_and_capabilities(claude):
    model = claude.models.retrieve("alpha/claude-new")
    assert model.id == "alpha/claude-new"
    assert model.display_name == "Claude New (alpha)"
    assert (model.max_input_tokens, model.max_tokens, model.lifecycle) == (1_000_000, 64_000, "active")
    assert model.created_at.year == 1970
    assert model.capabilities.thinking.types.adaptive.supported
    assert model.capabilities.effort.xhigh.supported
    assert model.capabilities.pdf_input.supported
    assert not model.capabilities.batch.supported


def test_capabilities_follow_the_limits():
    budget = _reported(BY_ID["alpha/claude-budget"])["capabilities"]
    assert budget["thinking"]["types"]["enabled"] == {"supported": True}
    assert budget["thinking"]["types"]["adaptive"] == {"supported": False}
    assert budget["effort"]["supported"] is False
    assert (budget["image_input"]["supported"], budget["pdf_input"]["supported"]) == (True, False)
    plain = _reported(BY_ID["alpha/claude-plain"])
    assert plain["max_tokens"] == 4096
    assert plain["capabilities"]["thinking"]["supported"] is False
    assert plain["capabilities"]["structured_outputs"]["supported"] is False
    other = _reported(BY_ID["beta/effortful"])["capabilities"]
    assert other["thinking"]["types"]["adaptive"]["supported"]
    assert not other["thinking"]["types"]["disabled"]["supported"]
    assert [level for level in ("low", "medium", "high", "max") if other["effort"][level]["supported"]] == [
        "low",
        "high",
    ]
    assert not other["server_tools"]["supported"]
    assert not other["context_management"]["supported"]


def test_openais_sdk_reads_the_list_and_one_model_with_slashes(gpt):
    assert [model.id for model in gpt.models.list()] == [model.id for model in MODELS]
    model = gpt.models.retrieve("beta/team/large")
    assert (model.id, model.object, model.created, model.owned_by) == ("beta/team/large", "model", 0, "beta")


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_googles_sdk_pages_through_the_whole_list(gemini, size):
    found = [model.name for model in gemini.models.list(config={"page_size": size})]
    assert found == [f"models/{model.id}" for model in MODELS]


def test_googles_sdk_reads_figures_and_thinking(gemini):
    model = gemini.models.get(model="alpha/claude-new")
    assert (model.name, model.display_name) == ("models/alpha/claude-new", "Claude New (alpha)")
    assert (model.input_token_limit, model.output_token_limit) == (1_000_000, 64_000)
    assert model.supported_actions == ["generateContent", "countTokens"]
    assert gemini.models.get(model="models/claude-plain").thinking is False
    assert gemini.models.get(model="fast").input_token_limit is None


def test_an_unknown_model_is_none():
    assert models.find(MODELS, "no-such-model") is None
    assert models.find(MODELS, "models/no-such-model") is None
    assert models.find(MODELS, "") is None
    found = models.find(MODELS, "models/fast")
    assert found is not None
    assert found.id == "fast"


@rows(
    ("dialect", "query", "name"),
    [
        ("anthropic", "limit=abc", "limit"),
        ("anthropic", "limit=0", "limit"),
        ("anthropic", "limit=-1", "limit"),
        ("anthropic", "after_id=nobody", "after_id"),
        ("anthropic", "before_id=nobody", "before_id"),
        ("gemini", "pageSize=x", "pageSize"),
        ("gemini", "pageToken=nobody", "pageToken"),
    ],
)
def test_a_page_that_cannot_be_given_is_the_clients_fault(dialect, query, name):
    with pytest.raises(ClientFault) as fault:
        models.render_list(surface(dialect), MODELS, query)
    assert fault.value.path == name


@pytest.mark.parametrize(
    ("stated", "listed"), [("none", ""), ("effort", "effort"), ("budget", "budget"), ("adaptive", "adaptive")]
)
def test_a_model_is_listed_with_the_way_in_which_it_thinks(stated: str, listed: str) -> None:
    table = {
        "dialect": "openai-chat",
        "base_url": "https://h.example/v1",
        "models": ["m"],
        "limits": {"thinking": stated},
    }
    settings = load(None, environ={}, overrides={"providers": {"mine": table}}, create_secret=False)
    model = models.listed(settings, "mine/m", "openai-chat")
    assert model is not None
    assert model.thinking == listed
