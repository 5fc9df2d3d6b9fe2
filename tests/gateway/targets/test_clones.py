"""Endpoints that speak another vendor's dialect: what is only known of the vendor is left out toward them."""

from typing import Any

import pytest

from tests.core.providers.own_dialect_asks import claude_code
from tests.gateway.kit import catalogued, own, settings
from tests.tiers import rows
from wireglot.gateway.settings import Provider
from wireglot.gateway.targets.routing import Target, route
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.registry import dialect
from wireglot_core.providers.spec import limits_for, provider_for
from wireglot_core.translate import plan, translate_request

RICH: dict[str, Any] = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {
            "type": "message",
            "role": "developer",
            "content": [
                {"type": "input_text", "text": "First."},
                {"type": "input_text", "text": "Second.", "prompt_cache_breakpoint": {"mode": "explicit"}},
            ],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    ],
    "tools": [
        {
            "type": "custom",
            "name": "patch",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
        },
        {
            "type": "function",
            "name": "f",
            "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
            "strict": True,
        },
    ],
    "max_output_tokens": 500,
    "text": {"verbosity": "low"},
    "safety_identifier": "user-1",
    "metadata": {"team": "a"},
    "service_tier": "flex",
    "prompt_cache_key": "k",
}


def sent(body: dict[str, Any], source: str, to: Provider, model: str = "some-model") -> Rendered[Any]:
    """What the gateway would send there, and what it would declare."""
    target: Target = route(settings(to), f"{to.name}/{model}", source)[0]
    request = dialect(source).parse_request(body, Context())
    made = plan(
        request,
        source=source,
        target=target.dialect,
        model=model,
        provider=to.name,
        limits=target.limits,
        context=Context(),
    )
    rendered = dialect(target.dialect).render_request(made.upstream, made.context)
    return Rendered(rendered.value, made.losses + made.retraced(rendered.losses))


def features(out: Rendered[Any]) -> set[str]:
    return {loss.feature for loss in out.losses}


def test_an_unlisted_chat_server_gets_nothing_that_only_openai_is_known_to_take() -> None:
    """[L11] No cache breakpoints, grammar tools, safety identifier, verbosity, tiers; each a declared loss."""
    out = sent(RICH, "openai-responses", own("mine", "openai-chat"))
    assert set(out.value) == {"model", "messages", "tools", "max_tokens", "user"}
    assert out.value["max_tokens"] == 500
    assert out.value["user"] == "user-1"
    assert [message["role"] for message in out.value["messages"]] == ["system", "system", "user"]
    assert all(type(message["content"]) is str for message in out.value["messages"])
    assert [tool["type"] for tool in out.value["tools"]] == ["function", "function"]
    assert all("strict" not in tool["function"] for tool in out.value["tools"])
    assert features(out) == {
        "cache_marker",
        "cache_key",
        "metadata",
        "service_tier",
        "tool.custom",
        "tool.strict",
        "verbosity",
    }


def test_openai_itself_gets_all_of_it() -> None:
    """[L11] OpenAI's own features are for OpenAI."""
    out = sent(RICH, "openai-responses", catalogued("openai", "k"), "gpt-5.6-sol")
    assert out.value == {**RICH, "model": "gpt-5.6-sol"}
    out = translate_request(
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
        source="anthropic",
        target="openai-chat",
        provider="openai",
        model="gpt-5.2",
    )
    assert out.value["max_completion_tokens"] == 9


def test_an_unlisted_responses_server_gets_the_common_ground() -> None:
    """[L11] `store: false` and `include` stay: they keep the conversation here, and its reasoning whole."""
    body = {**claude_code(), "output_config": {"effort": "high"}, "stream": False}
    out = sent(body, "anthropic", own("mine", "openai-responses"))
    assert {"safety_identifier", "prompt_cache_key", "metadata"}.isdisjoint(out.value)
    assert (out.value["store"], out.value["include"]) == (False, ["reasoning.encrypted_content"])
    assert "prompt_cache_breakpoint" not in str(out.value)


def test_an_unlisted_messages_server_gets_what_all_of_them_read() -> None:
    """[L11] Budgets for thinking and markers for caches are common; `strict` and efforts are Claude's."""
    body = {**RICH, "max_output_tokens": 30_000, "reasoning": {"effort": "high"}}
    out = sent(body, "openai-responses", own("mine", "anthropic"))
    assert "output_config" not in out.value
    assert out.value["thinking"]["type"] == "enabled"
    assert "strict" not in str(out.value["tools"])
    assert "cache_control" in str(out.value["system"])
    assert "tool.strict" in features(out)


def test_a_claude_behind_an_unlisted_server_is_still_a_claude() -> None:
    """[L11] A closed model is its vendor's wherever it is served."""
    body = {**RICH, "reasoning": {"effort": "high"}}
    out = sent(body, "openai-responses", own("mine", "anthropic"), "claude-opus-5")
    assert out.value["output_config"] == {"effort": "high"}


def test_a_reasoning_model_behind_an_unlisted_server_is_asked_as_openai_demands() -> None:
    """[L11] OpenAI's reasoning models refuse `max_tokens` behind every proxy; the rest stays careful."""
    out = sent(RICH, "openai-responses", own("mine", "openai-chat"), "gpt-5.2")
    assert out.value["max_completion_tokens"] == 500
    assert {"verbosity", "safety_identifier", "prompt_cache_key"}.isdisjoint(out.value)


def test_a_client_of_an_unlisted_servers_own_dialect_passes_as_it_is() -> None:
    """[L11] Care is for what we translate: who speaks the dialect knows the server."""
    chat = {
        "model": "some-model",
        "messages": [{"role": "developer", "content": [{"type": "text", "text": "hi"}]}],
        "verbosity": "low",
        "safety_identifier": "u",
        "max_completion_tokens": 5,
    }
    target = route(settings(own("mine", "openai-chat")), "mine/some-model", "openai-chat")[0]
    assert target.plain
    out = sent(chat, "openai-chat", own("mine", "openai-chat"))
    assert (out.value, out.losses) == (chat, ())


def test_what_a_configuration_says_of_a_server_widens_the_careful_default() -> None:
    """[L11] `limits` of the configuration name what the server takes beyond."""
    to = own("mine", "openai-chat", limits={"text_parts": ["system"], "settings": ["cache_key"]})
    out = sent(RICH, "openai-responses", to)
    assert out.value["prompt_cache_key"] == "k"
    assert out.value["messages"][1]["content"] == [
        {"type": "text", "text": "First."},
        {"type": "text", "text": "Second."},
    ]


# Several blocks

BLOCKS: dict[str, Any] = {
    "max_tokens": 100,
    "system": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "c"},
                {"type": "text", "text": "d"},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "e"}, {"type": "text", "text": "f"}],
                }
            ],
        },
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
}

CHAT_PROVIDERS = [
    ("groq", "openai/gpt-oss-120b", {"system", "assistant", "tool"}),
    ("deepseek", "deepseek-flash", {"system", "user", "assistant", "tool"}),
    ("kimi", "kimi-k3", {"system", "user", "assistant", "tool"}),
    ("vllm", "some-model", {"system", "user", "assistant", "tool"}),
    ("together", "zai-org/GLM-5.3", {"system", "user", "assistant", "tool"}),
    ("mistral", "mistral-large-latest", set[str]()),
    ("openai", "gpt-5.2", set[str]()),
]


def contents(value: dict[str, Any]) -> dict[str, Any]:
    return {message["role"]: message.get("content") for message in value["messages"]}


@rows(("name", "model", "joined"), CHAT_PROVIDERS)
def test_blocks_are_joined_by_a_blank_line_where_lists_are_not_known_to_be_taken(
    name: str, model: str, joined: set[str]
) -> None:
    """[L12] R-H-02, by provider and role: nothing of the text is lost, so nothing is declared."""
    out = translate_request(BLOCKS, source="anthropic", target="openai-chat", provider=name, model=model)
    texts = {
        "system": ("One.", "Two."),
        "user": ("a", "b"),
        "assistant": ("c", "d"),
        "tool": ("e", "f"),
    }
    for role, content in contents(out.value).items():
        if role in joined or role == "tool":  # a result has always been one string
            assert content == "\n\n".join(texts[role])
        else:
            assert content == [{"type": "text", "text": text} for text in texts[role]]
    assert not {"content.position", "content.empty", "system.position"} & features(out)


def test_claude_codes_system_blocks_are_one_string_for_groq() -> None:
    """[L12] Claude Code always has several, with markers that Groq has no place for."""
    out = translate_request(
        {"model": "x", **claude_code()},
        source="anthropic",
        target="openai-chat",
        provider="groq",
        model="openai/gpt-oss-120b",
    )
    assert out.value["messages"][0] == {
        "role": "system",
        "content": "You are a command line agent.\n\nThe working directory is /src.",
    }


def test_marked_blocks_stay_apart_where_markers_are_read() -> None:
    """[L12] Who has a place for a marker takes the list that it stands in."""
    body = {"model": "x", **claude_code()}
    for name, model in (("openrouter", "z-ai/glm-5.3"), ("qwen", "qwen3-max")):
        out = translate_request(body, source="anthropic", target="openai-chat", provider=name, model=model)
        assert [part["cache_control"] for part in out.value["messages"][0]["content"]] == [
            {"type": "ephemeral"},
            {"type": "ephemeral"},
        ]


def test_a_picture_keeps_its_list() -> None:
    """[L12] Only texts can be joined: a list with a picture stays one."""
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    content = [{"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}]
    body = {"model": "x", "max_tokens": 5, "messages": [{"role": "user", "content": content}]}
    out = translate_request(body, source="anthropic", target="openai-chat", provider="vllm", model="m")
    assert [part["type"] for part in out.value["messages"][0]["content"]] == ["text", "image_url", "text"]


@pytest.mark.parametrize(("name", "model"), [("groq", "openai/gpt-oss-120b"), ("deepseek", "deepseek-flash")])
def test_a_chat_clients_own_lists_are_joined_where_they_are_refused(name: str, model: str) -> None:
    """[L12] Groq and DeepSeek answer 400 to lists, no matter who wrote them."""
    body = {
        "model": model,
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "One."}]},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
            {"role": "user", "content": "b"},
        ],
    }
    out = translate_request(body, source="openai-chat", target="openai-chat", provider=name, model=model)
    assert [message["content"] for message in out.value["messages"]] == ["One.", "a", "c\n\nd", "b"]
    assert out.losses == ()


# Limits belong to the endpoint

KIMI_ELSEWHERE = [
    ("openrouter", "moonshotai/kimi-k2.6"),
    ("openrouter", "moonshotai/kimi-k3"),
    ("groq", "moonshotai/kimi-k2-instruct-0905"),
    ("together", "moonshotai/Kimi-K2.6"),
    ("fireworks", "accounts/fireworks/models/kimi-k2p6"),
    ("vllm", "kimi-k2.6"),
]

FORCED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "temperature": 0.3,
    "top_p": 0.5,
}


def choice_and_temperature(value: dict[str, Any]) -> tuple[Any, Any, Any]:
    return value.get("tool_choice"), value.get("temperature"), value.get("top_p")


@rows(("name", "model"), KIMI_ELSEWHERE)
@rows("renamed", [False, True])
def test_moonshots_limits_are_not_those_of_other_hosts(name: str, model: str, renamed: bool) -> None:
    """[X15] Open weights at another host take what that host takes: a temperature, a forced choice."""
    listed = catalogued(name, "k")
    to = listed if not renamed else Provider("house", listed.spec, listed.credentials)
    out = sent(FORCED, "openai-chat", to, model)
    assert choice_and_temperature(out.value) == choice_and_temperature(FORCED)
    assert not {"tool_choice", "sampling.temperature", "sampling.top_p"} & features(out)


@rows("model", ["kimi-k2.6", "moonshotai/kimi-k3", "deepseek-v4-pro", "glm-5.3", "gpt-oss-120b"])
@rows("source", ["anthropic", "openai-chat"])
def test_an_unlisted_servers_open_weights_have_no_limits_of_their_vendors_api(
    model: str, source: str
) -> None:
    """[X15] A server of the user's own with a model that a vendor serves too is not that vendor."""
    asks = {
        "openai-chat": FORCED,
        "anthropic": {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "tool", "name": "f"},
            "temperature": 0.3,
            "top_p": 0.5,
        },
    }
    out = sent(asks[source], source, own("mine", "openai-chat"), model)
    assert choice_and_temperature(out.value) == choice_and_temperature(FORCED)


def test_a_resellers_name_for_a_model_says_nothing_of_its_vendors_api() -> None:
    """[X15] Without a provider, `moonshotai/kimi-k2.6` is not guessed to be at Moonshot."""
    for model in ("moonshotai/kimi-k2.6", "qwen/qwen3-max", "z-ai/glm-5.3", "someone/kimi-k3"):
        known = provider_for("openai-chat", model)
        assert known is None or known.name in ("openrouter", "together", "groq"), model
    assert provider_for("openai-responses", "openai/gpt-oss-120b") != provider_for(
        "openai-responses", "gpt-5.2"
    )
    assert "temperature" in limits_for("openai-chat", "moonshotai/kimi-k2.6").sampling
