"""What Kimi's own Chat API has beyond OpenAI's: tools declared on the way, its `thinking`, its prefill."""

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.context import Rendered
from wireglot_core.dialects.registry import DialectName

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
NEWS: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_news", "parameters": {"type": "object", "properties": {}}},
}
ASKED = {"role": "user", "content": "What is the weather in Rome?"}

ELSEWHERE = [
    ("anthropic", "anthropic", "claude-sonnet-4-5"),
    ("openai-responses", "openai", "gpt-5.2"),
    ("openai-chat", "groq", "openai/gpt-oss-120b"),
    ("gemini", "gemini", "gemini-3.5-flash"),
]


def to_kimi(
    body: dict[str, Any], model: str = "kimi-k3", source: DialectName = "openai-chat"
) -> Rendered[Any]:
    return translate_request(body, source=source, target="openai-chat", provider="kimi", model=model)


def features(out: Rendered[Any]) -> set[str]:
    return {loss.feature for loss in out.losses}


def tool_names(value: dict[str, Any]) -> list[str]:
    names = []
    for tool in value.get("tools", []):
        for entry in tool.get("functionDeclarations", [tool]):
            names.append(entry.get("function", entry)["name"])
    return names


# Tools declared on the way


def test_tools_declared_on_the_way_stay_in_their_message() -> None:
    """[K1] A system message that declares tools reaches K3 as it is, and may be the only place of tools."""
    body = {
        "model": "kimi-k3",
        "messages": [
            ASKED,
            {"role": "assistant", "content": "Which one?"},
            {"role": "system", "content": "", "tools": [WEATHER]},
            {"role": "user", "content": "Rome, Italy."},
        ],
        "tool_choice": "required",
    }
    out = to_kimi(body)
    assert (out.value, out.losses) == (body, ())


def test_they_stand_beside_the_tools_of_the_request() -> None:
    """[K1] Declared in two messages and in `tools`: each stays where it was declared."""
    body = {
        "model": "kimi-k3",
        "messages": [
            {"role": "system", "content": "", "tools": [WEATHER]},
            {"role": "system", "tools": [{**NEWS, "function": {**NEWS["function"], "name": "get_time"}}]},
            ASKED,
        ],
        "tools": [NEWS],
    }
    out = to_kimi(body)
    assert (out.value, out.losses) == (body, ())


@pytest.mark.parametrize(("target", "provider", "model"), ELSEWHERE)
def test_they_join_the_tools_of_the_one_that_declares_them_in_one_place(
    target: DialectName, provider: str, model: str
) -> None:
    """[K1] Other dialects and endpoints get them in `tools`; at the start of a conversation nothing bends."""
    messages = [{"role": "system", "content": "", "tools": [WEATHER]}, ASKED]
    body = {"model": "kimi-k3", "messages": messages, "tools": [NEWS], "tool_choice": "required"}
    out = translate_request(body, source="openai-chat", target=target, provider=provider, model=model)
    assert tool_names(out.value) == ["get_news", "get_weather"]
    assert features(out) <= {"max_tokens"}
    assert "system.tools" not in str(out)


@pytest.mark.parametrize(("target", "provider", "model"), ELSEWHERE)
def test_a_declaration_that_moves_to_the_front_is_declared(
    target: DialectName, provider: str, model: str
) -> None:
    """[K1] Anyone who reads all tools first is informed of a tool earlier than the client did."""
    messages = [ASKED, {"role": "system", "content": "", "tools": [WEATHER]}, ASKED]
    body = {"model": "kimi-k3", "messages": messages}
    out = translate_request(body, source="openai-chat", target=target, provider=provider, model=model)
    assert tool_names(out.value) == ["get_weather"]
    reported = [loss for loss in out.losses if loss.feature == "tool.position"]
    assert [(loss.path, loss.action) for loss in reported] == [("$.messages[1].tools", "approximated")]


def test_a_declaration_nobody_can_read_is_left_to_kimi() -> None:
    """[K1] What is no function arrives as it is: Kimi says what is wrong with it."""
    for tools in ([None], [{"type": "nonsense"}], [{"type": "function"}], {"type": "function"}):
        body = {"model": "kimi-k3", "messages": [{"role": "system", "content": "", "tools": tools}, ASKED]}
        assert to_kimi(body).value == body


# Thinking


@rows(
    "thinking",
    [
        {"type": "enabled", "keep": "all", "effort": "high"},
        {"type": "enabled", "keep": "all"},
        {"type": "enabled"},
        {"type": "disabled"},
        {"type": "disabled", "keep": "none", "effort": "high"},
        {"keep": "all"},
        {"effort": "low"},
    ],
)
def test_kimis_own_thinking_reaches_k3_as_it_is(thinking: dict[str, Any]) -> None:
    """[K2] `thinking: {type, keep, effort}` of a Kimi client is K3's to read: nothing is left out of it."""
    body = {"model": "kimi-k3", "messages": [ASKED], "thinking": thinking}
    out = to_kimi(body)
    assert (out.value, out.losses) == (body, ())


def test_both_of_kimis_efforts_reach_it() -> None:
    """[K2] An effort inside and one beside: which one counts is Kimi's to say."""
    body = {
        "model": "kimi-k3",
        "messages": [ASKED],
        "thinking": {"type": "enabled", "effort": "low"},
        "reasoning_effort": "max",
    }
    assert to_kimi(body).value == body


@pytest.mark.parametrize(
    ("target", "provider", "model", "read"),
    [
        ("anthropic", "anthropic", "claude-opus-5", lambda value: value["output_config"]["effort"]),
        ("openai-responses", "openai", "gpt-5.2", lambda value: value["reasoning"]["effort"]),
        ("openai-chat", "groq", "openai/gpt-oss-120b", lambda value: value["reasoning_effort"]),
    ],
)
def test_the_effort_inside_of_thinking_is_an_effort_elsewhere(
    target: DialectName, provider: str, model: str, read: Any
) -> None:
    """[K2] `thinking.effort` crosses as what it means."""
    body = {"model": "kimi-k3", "messages": [ASKED], "thinking": {"type": "enabled", "effort": "low"}}
    out = translate_request(body, source="openai-chat", target=target, provider=provider, model=model)
    assert read(out.value) == "low"


def test_thinking_cannot_be_switched_off_in_other_words() -> None:
    """[K9] K3 always reasons (Moonshot's page on reasoning effort): another dialect's `off` is its least
    effort, and said so. Kimi's own `disabled` is sent, since the endpoint takes it."""
    body = {"model": "x", "max_tokens": 9, "messages": [ASKED], "thinking": {"type": "disabled"}}
    out = to_kimi(body, source="anthropic")
    assert out.value["reasoning_effort"] == "low"
    assert ("thinking.mode", "approximated") in {(loss.feature, loss.action) for loss in out.losses}


def test_k2_code_cannot_stop_thinking() -> None:
    """[K2] K2.7 Code takes `enabled` only and refuses `disabled`: left out, and said so."""
    thinks = {"model": "kimi-k2.7-code", "messages": [ASKED], "thinking": {"type": "enabled"}}
    assert to_kimi(thinks, "kimi-k2.7-code").losses == ()
    out = to_kimi({**thinks, "thinking": {"type": "disabled"}}, "kimi-k2.7-code")
    assert "thinking" not in out.value
    assert features(out) == {"thinking.mode"}


# Tools


@pytest.mark.parametrize(("model", "kept"), [("kimi-k3", True), ("kimi-k2.6", False)])
def test_strict_is_k3s(model: str, kept: bool) -> None:
    """[K3] K3 enforces the schema of a strict tool; K2 does not, and the client is informed."""
    tool = {"type": "function", "function": {**WEATHER["function"], "strict": True}}
    out = to_kimi({"model": model, "messages": [ASKED], "tools": [tool]}, model)
    assert ("strict" in out.value["tools"][0]["function"]) is kept
    assert features(out) == (set() if kept else {"tool.strict"})


@pytest.mark.parametrize("model", ["kimi-k3", "kimi-k2.6"])
def test_an_enum_of_booleans_is_kept(model: str) -> None:
    """[K3] Moonshot's schema checker takes enums of booleans, with and without null."""
    properties = {
        "only": {"type": "boolean", "enum": [True]},
        "both": {"type": "boolean", "enum": [True, False]},
    }
    schema = {"type": "object", "properties": properties}
    tool = {"type": "function", "function": {"name": "t", "parameters": schema}}
    out = to_kimi({"model": model, "messages": [ASKED], "tools": [tool]}, model)
    assert out.value["tools"][0]["function"]["parameters"]["properties"] == properties
    assert out.losses == ()


# Prefill


@pytest.mark.parametrize(("source", "limit"), [("anthropic", {"max_tokens": 9}), ("gemini", {})])
def test_a_prefill_is_reported_as_one(source: DialectName, limit: dict[str, Any]) -> None:
    """[K6] Kimi continues an assistant message that is marked `partial`, and no other."""
    if source == "gemini":
        turns = [("user", "Count."), ("model", "One, two,")]
        body: dict[str, Any] = {
            "contents": [{"role": role, "parts": [{"text": text}]} for role, text in turns]
        }
    else:
        body = {"messages": [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "One,"}]}
    out = to_kimi({"model": "x", **limit, **body}, source=source)
    assert out.value["messages"][-1]["partial"] is True
    assert "prefill" not in features(out)


def test_a_prefill_of_another_chat_server_is_spelled_as_kimis() -> None:
    """[K6] Mistral's and DeepSeek's `prefix` is Kimi's `partial`."""
    body = {"messages": [ASKED, {"role": "assistant", "content": "Sunny", "prefix": True}]}
    assert to_kimi(body).value["messages"][-1] == {"role": "assistant", "content": "Sunny", "partial": True}


def test_a_prefill_beside_json_mode_is_a_loss() -> None:
    """[K6] Moonshot's page on partial mode: not together with `json_object`."""
    body = {
        "messages": [ASKED, {"role": "assistant", "content": "{", "partial": True}],
        "response_format": {"type": "json_object"},
    }
    out = to_kimi(body)
    assert out.value["messages"][-1] == {"role": "user", "content": out.value["messages"][-1]["content"]}
    assert features(out) == {"prefill"}


def test_an_answer_at_the_end_of_a_chat_clients_history_is_left_alone() -> None:
    """[K6] Without a mark it is no prefill in Kimi's own dialect."""
    body = {"model": "kimi-k3", "messages": [ASKED, {"role": "assistant", "content": "Sunny."}]}
    assert to_kimi(body).value == body


# Empty values


@pytest.mark.parametrize("model", ["kimi-k3", "kimi-k2.6"])
def test_empty_ids_and_empty_lists_of_tools_are_never_sent(model: str) -> None:
    """[K7] A call and its result that came with empty ids get one; `tools: []` is left out."""
    call = {"id": "", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    body = {
        "messages": [
            ASKED,
            {"role": "assistant", "content": "Let me see.", "reasoning_content": "hm", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "", "content": "Sunny."},
        ],
        "tools": [],
    }
    out = to_kimi(body, model)
    assert "tools" not in out.value
    _, asked, answered = out.value["messages"]
    assert asked["tool_calls"][0]["id"]
    assert answered["tool_call_id"] == asked["tool_calls"][0]["id"]


def test_ids_that_are_missing_are_made() -> None:
    """[K7] The same for ids that are not there at all."""
    call = {"type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    turn = {"role": "assistant", "reasoning_content": "hm", "tool_calls": [call]}
    out = to_kimi({"messages": [ASKED, turn, {"role": "tool", "content": "Sunny."}]})
    _, asked, answered = out.value["messages"]
    assert answered["tool_call_id"] == asked["tool_calls"][0]["id"] != ""


@rows(
    ("form", "model", "said", "sent"),
    [
        ("openai-chat", "kimi-k3", {"thinkingBudget": 2048}, {"reasoning_effort": "low"}),
        ("openai-chat", "kimi-k3", {"thinkingBudget": 0}, {"reasoning_effort": "low"}),
        ("anthropic", "kimi-k3", {"thinkingBudget": 2048}, {"output_config": {"effort": "low"}}),
        ("openai-chat", "kimi-k2.7-code", {"thinkingBudget": 0}, {}),
        ("anthropic", "kimi-k2.7-code", {"thinkingBudget": 0}, {}),
        ("openai-chat", "kimi-k2.6", {"thinkingBudget": 0}, {"thinking": {"type": "disabled"}}),
        ("anthropic", "kimi-k2.6", {"thinkingBudget": 2048}, {"thinking": {"type": "enabled"}}),
    ],
)
def test_each_model_gets_the_thinking_setting_that_it_takes(
    form: DialectName, model: str, said: dict[str, Any], sent: dict[str, Any]
) -> None:
    """[D] R-DA-17: K3 no `thinking`, K2.7 nothing but what holds anyway, K2.6 a switch."""
    body = {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "generationConfig": {"thinkingConfig": said},
    }
    out = translate_request(body, source="gemini", target=form, model=model, provider="kimi")
    reported = {
        key: out.value[key] for key in ("thinking", "reasoning_effort", "output_config") if key in out.value
    }
    assert reported == sent


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
def test_results_that_name_no_call_answer_those_before_them(dialect: DialectName) -> None:
    """[K7] In order, whatever dialect left the ids empty: a result that is there is never called lost."""
    if dialect == "anthropic":
        uses: list[Any] = [
            {"type": "tool_use", "id": "", "name": name, "input": {}} for name in ("one", "two")
        ]
        results = [{"type": "tool_result", "tool_use_id": "", "content": word} for word in ("1", "2")]
        turns = [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
        body: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [ASKED, *turns]}
    else:
        calls = [
            {"type": "function_call", "call_id": "", "name": name, "arguments": "{}"}
            for name in ("one", "two")
        ]
        outputs = [{"type": "function_call_output", "call_id": "", "output": word} for word in ("1", "2")]
        body = {"model": "m", "input": [{"type": "message", **ASKED}, *calls, *outputs]}
    out = translate_request(body, source=dialect, target="openai-chat", provider="kimi", model="kimi-k3")
    _, asked, *answered = out.value["messages"]
    ids = [call["id"] for call in asked["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(each["tool_call_id"], each["content"]) for each in answered] == [(ids[0], "1"), (ids[1], "2")]
    assert all(loss.grade == "harmless" for loss in out.losses)
