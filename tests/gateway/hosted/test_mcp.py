"""Tools of MCP servers, called by the gateway where the provider does not connect to servers."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.gateway.hosted.hosted_kit import DIALECTS, HostedStage
from tests.gateway.hosted.mcp_kit import ToolServer
from tests.gateway.hosted.rounds_kit import Script
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.hosted import mcp_connection
from wireglot.gateway.hosted.mcp import MAX_APPROVED
from wireglot.gateway.hosted.runner import MAX_RESULT_CHARACTERS
from wireglot.gateway.settings import McpSettings
from wireglot.testing.scripted_upstream import Recorded
from wireglot.web.server_hosts import ServerHosts
from wireglot_core.wire.json import encode, encode_text

BETA = ["mcp-client-2025-11-20"]
TOKEN = "a-very-secret-token"
SCRIPT = Script()
SUNNY = "Tomorrow it is sunny in Oslo."
FORECAST = ("weather__forecast", {"city": "Oslo"})
ALL = ["forecast", "alarm", "broken", "picture", "huge", "wait", "die"]


@pytest.fixture(scope="module")
def server() -> Iterator[ToolServer]:
    with ToolServer() as server:
        yield server


@pytest.fixture(scope="module")
def running(server: ToolServer) -> Iterator[HostedStage]:
    more = (
        f'[mcp]\nhosts = ["mcp.example.com"]\nprivate_hosts = ["{server.host}", "127.0.0.1:9"]\n'
        "timeout = 5\nmax_result = 400000\nmax_tools = 10\n"
    )
    with HostedStage(more, decide=SCRIPT.decide) as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage, server: ToolServer) -> HostedStage:
    SCRIPT.rounds = []
    server.reset()
    return running.reset()


both = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def _ask_claude(stage: HostedStage, url: str, streamed: bool = False, **more: Any) -> Any:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "weather", **more.pop("toolset", {})}
    server = {"type": "url", "name": "weather", "url": url, **more.pop("server", {})}
    asked: dict[str, Any] = {
        "model": "openai-chat-up/m1",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
        "mcp_servers": [server],
        "tools": [toolset],
        "betas": BETA,
        **more,
    }
    if not streamed:
        return stage.claude.beta.messages.create(**asked)
    with stage.claude.beta.messages.stream(**asked) as stream:
        return stream.get_final_message()


def _ask_responses(stage: HostedStage, url: str, streamed: bool = False, **more: Any) -> Any:
    tool = {
        "type": "mcp",
        "server_label": "weather",
        "server_url": url,
        "require_approval": "never",
        **more.pop("tool", {}),
    }
    asked = {
        "model": "openai-chat-up/m1",
        "input": "What is the weather in Oslo?",
        "tools": [tool],
        "store": False,
        **more,
    }
    if not streamed:
        return stage.gpt.responses.create(**asked)
    with stage.gpt.responses.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        assert kinds.count("response.created") == 1
        response = stream.get_final_response()
        response.__dict__["kinds"] = kinds
        return response


def _sent(request: Recorded) -> list[str]:
    names = []
    for tool in request.json.get("tools", ()):
        for each in tool.get("functionDeclarations", (tool,)):
            names.append(each.get("name") or each["function"]["name"])
    return names


def _directive() -> str:
    name, arguments = FORECAST
    return f"[[demo:tool {name} {encode_text(arguments)}]] What is the weather in Oslo?"


@pytest.mark.sampled("upstream")
@both
@pytest.mark.parametrize("upstream", DIALECTS)
def test_claude_sees_calls_and_results(
    stage: HostedStage, server: ToolServer, upstream: str, streamed: bool
) -> None:
    asked = [{"role": "user", "content": _directive()}]
    message = _ask_claude(stage, server.url, streamed, model=f"{upstream}-up/m1", messages=asked)
    call, result = (block for block in message.content if block.type != "text")
    assert (call.type, call.server_name, call.name) == ("mcp_tool_use", "weather", "forecast")
    assert call.input == {"city": "Oslo"}
    assert (result.type, result.tool_use_id, result.is_error) == ("mcp_tool_result", call.id, False)
    assert [block.text for block in result.content] == [SUNNY]
    assert message.stop_reason == "end_turn"
    assert server.calls == [("forecast", {"city": "Oslo"})]
    first, second = stage.upstream.requests
    assert _sent(first) == _sent(second) == [f"weather__{name}" for name in ALL]
    assert SUNNY in encode_text(second.json)


@both
@pytest.mark.parametrize("upstream", DIALECTS)
def test_responses_lists_tools_and_shows_calls(
    stage: HostedStage, server: ToolServer, upstream: str, streamed: bool
) -> None:
    response = _ask_responses(stage, server.url, streamed, model=f"{upstream}-up/m1", input=_directive())
    listing, call = (item for item in response.output if item.type != "message")
    assert response.output[0] is listing
    assert (listing.type, listing.server_label) == ("mcp_list_tools", "weather")
    assert [tool.name for tool in listing.tools] == ALL
    assert listing.tools[0].input_schema["required"] == ["city"]
    assert (call.type, call.status, call.name, call.server_label) == (
        "mcp_call",
        "completed",
        "forecast",
        "weather",
    )
    assert (call.arguments, call.output, call.error) == ('{"city":"Oslo"}', SUNNY, None)
    assert response.status == "completed"
    if streamed:
        assert [kind for kind in response.kinds if "mcp" in kind] == [
            "response.mcp_list_tools.in_progress",
            "response.mcp_list_tools.completed",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
        ]
    assert server.calls == [("forecast", {"city": "Oslo"})]


@both
def test_calls_of_an_earlier_turn_come_back_as_calls(
    stage: HostedStage, server: ToolServer, streamed: bool
) -> None:
    SCRIPT.rounds = [[FORECAST], "Sunny.", "You are welcome."]
    asked = {"role": "user", "content": f"Weather? {streamed}"}
    first = _ask_claude(stage, server.url, streamed, messages=[asked])
    spoken = {"role": "assistant", "content": [block.to_dict() for block in first.content]}
    thanks = {"role": "user", "content": "Thanks."}
    second = _ask_claude(stage, server.url, streamed, messages=[asked, spoken, thanks])
    assert second.content[0].text == "You are welcome."
    messages = stage.upstream.requests[-1].json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "weather__forecast"
    assert messages[2]["content"] == SUNNY


@both
def test_items_of_an_earlier_turn_come_back_as_calls(
    stage: HostedStage, server: ToolServer, streamed: bool
) -> None:
    SCRIPT.rounds = [[FORECAST], "Sunny.", "You are welcome."]
    asked = {"role": "user", "content": f"Weather, please? {streamed}"}
    first = _ask_responses(stage, server.url, streamed, input=[asked])
    items = [item.to_dict() for item in first.output]
    thanks = {"role": "user", "content": "Thanks."}
    second = _ask_responses(stage, server.url, streamed, input=[asked, *items, thanks])
    assert [item.type for item in second.output] == ["message"]  # the tools are listed already
    messages = stage.upstream.requests[-1].json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "weather__forecast"


@pytest.mark.parametrize(
    ("toolset", "server_fields", "offered"),
    [
        ({"default_config": {"enabled": False}, "configs": {"alarm": {"enabled": True}}}, {}, ["alarm"]),
        ({"configs": {"alarm": {"enabled": False}}}, {}, [name for name in ALL if name != "alarm"]),
        ({}, {"tool_configuration": {"allowed_tools": ["forecast"]}}, ["forecast"]),
    ],
    ids=["enabled", "disabled", "allowed"],
)
def test_claude_offers_the_tools_that_are_allowed(
    stage: HostedStage, server: ToolServer, toolset: Any, server_fields: Any, offered: list[str]
) -> None:
    SCRIPT.rounds = ["Hello."]
    _ask_claude(stage, server.url, toolset=toolset, server=server_fields)
    assert _sent(stage.upstream.requests[0]) == [f"weather__{name}" for name in offered]


@pytest.mark.parametrize(
    ("allowed", "offered"),
    [
        (["alarm"], ["alarm"]),
        ({"tool_names": ["forecast", "alarm"], "read_only": True}, ["forecast"]),
        ({"read_only": True}, ["forecast"]),
        (None, ALL),
    ],
)
def test_responses_offers_the_tools_that_are_allowed(
    stage: HostedStage, server: ToolServer, allowed: Any, offered: list[str]
) -> None:
    SCRIPT.rounds = ["Hello."]
    response = _ask_responses(stage, server.url, tool={"allowed_tools": allowed})
    assert [tool.name for tool in response.output[0].tools] == offered
    assert _sent(stage.upstream.requests[0]) == [f"weather__{name}" for name in offered]


def test_a_provider_that_cannot_limit_the_tools_connects_only_where_all_are_allowed(
    stage: HostedStage, server: ToolServer
) -> None:
    """Gemini takes a server, and no names of its tools."""
    model = "native-gemini/m1"
    _ask_responses(stage, server.url, model=model)
    assert stage.upstream.requests[0].json["tools"][0]["mcpServers"][0]["name"] == "weather"
    for tool in ({"allowed_tools": ["alarm"]}, {"allowed_tools": {"read_only": True}}):
        stage.upstream.requests.clear()
        _ask_responses(stage, server.url, tool=tool, model=model)
        names = {"alarm", "forecast"} & {
            name.partition("__")[2] for name in _sent(stage.upstream.requests[0])
        }
        assert names == {"alarm" if tool["allowed_tools"] == ["alarm"] else "forecast"}


@both
def test_a_call_waits_for_approval(stage: HostedStage, server: ToolServer, streamed: bool) -> None:
    SCRIPT.rounds = [[FORECAST], "It is sunny."]
    asked = {"role": "user", "content": f"Is it sunny? {streamed}"}
    always = {"require_approval": "always"}
    first = _ask_responses(stage, server.url, streamed, input=[asked], tool=always)
    listing, request = first.output
    assert listing.type == "mcp_list_tools"
    assert (request.type, request.name, request.server_label) == (
        "mcp_approval_request",
        "forecast",
        "weather",
    )
    assert request.arguments == '{"city":"Oslo"}'
    assert first.status == "completed"
    assert not server.calls
    answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    items = [item.to_dict() for item in first.output]
    second = _ask_responses(stage, server.url, streamed, input=[asked, *items, answer], tool=always)
    call, message = second.output
    assert (call.type, call.approval_request_id, call.output) == ("mcp_call", request.id, SUNNY)
    assert message.content[0].text == "It is sunny."
    assert server.calls == [("forecast", {"city": "Oslo"})]
    messages = stage.upstream.requests[-1].json["messages"]
    assert [each["role"] for each in messages] == ["user", "assistant", "tool"]
    assert messages[2]["content"] == SUNNY
    SCRIPT.rounds = ["You are welcome."]
    more = [item.to_dict() for item in second.output]
    history = [asked, *items, answer, *more, {"role": "user", "content": "Thanks."}]
    _ask_responses(stage, server.url, streamed, input=history, tool=always)
    roles = [each["role"] for each in stage.upstream.requests[-1].json["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert len(server.calls) == 1


def test_a_call_that_is_denied_is_not_made(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = [[FORECAST], "Then not."]
    asked = {"role": "user", "content": "May I know the weather?"}
    always = {"require_approval": "always"}
    first = _ask_responses(stage, server.url, input=[asked], tool=always)
    answer = {
        "type": "mcp_approval_response",
        "approval_request_id": first.output[1].id,
        "approve": False,
        "reason": "Look out of the window.",
    }
    items = [item.to_dict() for item in first.output]
    second = _ask_responses(stage, server.url, input=[asked, *items, answer], tool=always)
    assert [item.type for item in second.output] == ["message"]
    assert not server.calls
    given = stage.upstream.requests[-1].json["messages"][-1]
    assert given["role"] == "tool"
    assert "did not approve" in given["content"]
    assert "Look out of the window." in given["content"]


def test_an_approval_for_a_tool_that_is_not_offered_calls_nothing(
    stage: HostedStage, server: ToolServer
) -> None:
    SCRIPT.rounds = ["Well."]
    tool = {"require_approval": "always", "allowed_tools": ["forecast"]}
    request = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "alarm",
        "server_label": "weather",
        "arguments": '{"text":"x"}',
    }
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    response = _ask_responses(stage, server.url, input=[request, answer], tool=tool)
    call = next(item for item in response.output if item.type == "mcp_call")
    assert call.status == "failed"
    assert "has no tool alarm" in call.error.message
    assert not server.calls


@pytest.mark.parametrize(
    ("stated", "pending"),
    [
        ({"never": {"tool_names": ["forecast"]}}, False),
        ({"always": {"tool_names": ["forecast"]}}, True),
        ({"never": {"read_only": True}}, False),
        ({"never": {"tool_names": ["alarm"]}}, True),
        (None, True),
    ],
)
def test_approval_may_depend_on_the_tool(
    stage: HostedStage, server: ToolServer, stated: Any, pending: bool
) -> None:
    SCRIPT.rounds = [[FORECAST], "Sunny."]
    response = _ask_responses(stage, server.url, tool={"require_approval": stated})
    kinds = [item.type for item in response.output]
    assert ("mcp_approval_request" in kinds) is pending
    assert bool(server.calls) is not pending


def test_servers_with_tools_of_the_same_name_are_kept_apart(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = [[("b__forecast", {"city": "Rome"})], "Done."]
    tools = [
        {
            "type": "mcp",
            "server_label": label,
            "server_url": server.url,
            "require_approval": "never",
            "allowed_tools": ["forecast"],
        }
        for label in ("a", "b")
    ]
    response = _ask_responses(stage, server.url, tools=tools)
    assert _sent(stage.upstream.requests[0]) == ["a__forecast", "b__forecast"]
    call = next(item for item in response.output if item.type == "mcp_call")
    assert (call.server_label, call.output) == ("b", "Tomorrow it is sunny in Rome.")


def test_a_result_calls_nothing_that_was_not_offered(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = [[("weather__alarm", {"text": "fire"})]]
    message = _ask_claude(stage, server.url, server={"tool_configuration": {"allowed_tools": ["forecast"]}})
    assert message.content[-1].type == "tool_use"  # the client's to refuse: the gateway runs nothing
    assert not server.calls


@both
def test_a_tool_that_fails_is_an_error_for_the_model(
    stage: HostedStage, server: ToolServer, streamed: bool
) -> None:
    SCRIPT.rounds = [[("weather__broken", {"secret": TOKEN})], "It failed."]
    message = _ask_claude(stage, server.url, streamed, server={"authorization_token": TOKEN})
    _, result, text = message.content
    assert result.is_error
    assert "no such thing" in result.content[0].text
    assert TOKEN not in result.content[0].text
    assert text.text == "It failed."
    assert TOKEN not in stage.upstream.requests[1].body.decode().rpartition('"role":"tool"')[2]
    SCRIPT.rounds = [[("weather__broken", {"secret": TOKEN})], "It failed."]
    response = _ask_responses(stage, server.url, streamed, tool={"authorization": TOKEN})
    call = next(item for item in response.output if item.type == "mcp_call")
    assert (call.status, call.error.type) == ("failed", "mcp_tool_execution_error")
    if streamed:
        assert "response.mcp_call.failed" in response.kinds


def test_tokens_and_headers_reach_the_server(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = ["Hello.", "Hello."]
    _ask_claude(stage, server.url, server={"authorization_token": TOKEN})
    assert set(server.authorization) == {f"Bearer {TOKEN}"}
    server.reset()
    _ask_responses(stage, server.url, tool={"authorization": TOKEN, "headers": {"X-Team": "blue"}})
    assert set(server.authorization) == {f"Bearer {TOKEN}"}
    assert set(server.extra) == {"blue"}
    assert all(TOKEN not in request.body.decode() for request in stage.upstream.requests)


@both
@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("https://evil.example.org/mcp", "mcp_host_not_allowed", "not in the configuration"),
        ("http://mcp.example.com/mcp", "mcp_host_not_allowed", "only https://"),
        ("https://user:pw@mcp.example.com/mcp", "mcp_host_not_allowed", "not an http"),
        ("http://169.254.169.254/mcp", "mcp_host_not_allowed", "not in the configuration"),
        ("http://127.0.0.1:9/mcp", "mcp_server_failed", "no connection"),
    ],
    ids=["unlisted", "plain", "password", "metadata", "down"],
)
def test_a_server_that_cannot_be_used_is_an_error(
    stage: HostedStage, url: str, code: str, said: str, streamed: bool
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=said):
        _ask_claude(stage, url, streamed, server={"authorization_token": TOKEN})
    with pytest.raises(openai.BadRequestError, match=said) as problem:
        _ask_responses(stage, url, streamed, tool={"authorization": TOKEN})
    assert problem.value.code == code
    assert TOKEN not in str(problem.value)
    assert not stage.upstream.requests


@both
def test_no_answer_shows_or_stores_what_is_for_the_server(
    stage: HostedStage, server: ToolServer, streamed: bool
) -> None:
    SCRIPT.rounds = [[FORECAST], SUNNY]
    tool = {"authorization": TOKEN, "headers": {"X-Team": "team-of-the-north"}}
    answer = _ask_responses(stage, server.url, streamed, tool=tool, store=True)
    assert (f"Bearer {TOKEN}", "team-of-the-north") == (server.authorization[-1], server.extra[-1])
    kept: Any = stage.gpt.responses.retrieve(answer.id)
    for shown in (answer, kept):
        assert shown.tools[0].server_label == "weather"
        assert (shown.tools[0].authorization, shown.tools[0].headers) == (None, None)


@pytest.mark.parametrize(
    ("value", "said", "shown"),
    [
        ("Bearer hidden-value", "see hidden-value", "see ***"),
        ("hidden-value", "see hidden-value", "see ***"),
        ("sunny", "it is sunny", "it is sunny"),
    ],
)
def test_a_result_hides_secrets_of_headers_and_no_common_words(
    stage: HostedStage, server: ToolServer, value: str, said: str, shown: str
) -> None:
    SCRIPT.rounds = [[("weather__alarm", {"text": said})], SUNNY]
    answer = _ask_responses(stage, server.url, tool={"headers": {"X-Team": value}})
    assert next(item.output for item in answer.output if item.type == "mcp_call") == f"Alarm: {shown}"


def test_a_token_that_is_refused_is_not_shown(stage: HostedStage, server: ToolServer) -> None:
    with pytest.raises(openai.BadRequestError, match="status 401") as problem:
        _ask_responses(stage, server.url, tool={"authorization": "wrong-token"})
    assert "wrong-token" not in str(problem.value)


@both
def test_a_result_beyond_the_limit_is_an_error(
    stage: HostedStage, server: ToolServer, streamed: bool
) -> None:
    SCRIPT.rounds = [[("weather__huge", {"size": 1_000_000})], "Too much."]
    message = _ask_claude(stage, server.url, streamed)
    _, result, text = message.content
    assert result.is_error
    assert "more than 400000 bytes" in result.content[0].text
    assert text.text == "Too much."


def test_a_long_result_is_cut(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = [[("weather__huge", {"size": 80_000})], [("weather__huge", {"size": 120_000})], "Long."]
    message = _ask_claude(stage, server.url)
    whole, cut = [block.content[0].text for block in message.content if block.type == "mcp_tool_result"]
    assert whole == "x" * 80_000
    assert cut == "x" * MAX_RESULT_CHARACTERS + "\n[the rest is cut off]"


def test_a_call_that_takes_too_long_is_an_error(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = [[("weather__wait", {})], "Never mind."]
    message = _ask_claude(stage, server.url)
    _, result, text = message.content
    assert result.is_error
    assert "within 5 seconds" in result.content[0].text
    assert text.text == "Never mind."


def test_connections_are_closed_at_the_end_and_when_the_client_leaves(
    stage: HostedStage, server: ToolServer
) -> None:
    SCRIPT.rounds = ["Hello."]
    _ask_claude(stage, server.url)
    wait_until(lambda: server.open_requests == 0)
    SCRIPT.rounds = [[("weather__wait", {})], "Never mind."]
    impatient = stage.claude.with_options(timeout=1.0)
    with pytest.raises(anthropic.APITimeoutError):
        impatient.beta.messages.create(
            model="openai-chat-up/m1",
            max_tokens=100,
            messages=[{"role": "user", "content": "Wait."}],
            mcp_servers=[{"type": "url", "name": "weather", "url": server.url}],
            tools=[{"type": "mcp_toolset", "mcp_server_name": "weather"}],
            betas=BETA,
        )
    server.gate.set()
    wait_until(lambda: server.open_requests == 0)


def test_a_server_that_dies_is_an_error_for_the_model(stage: HostedStage) -> None:
    SCRIPT.rounds = [[("weather__die", {})], "It is gone."]
    with ToolServer() as dying:
        more = f'[mcp]\nprivate_hosts = ["{dying.host}"]\ntimeout = 5\n'
        with HostedStage(more, decide=SCRIPT.decide) as other:
            message = _ask_claude(other, dying.url)
    _, result, text = message.content
    assert result.is_error
    assert text.text == "It is gone."


def test_without_the_table_no_server_is_connected_to(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = ["Hello."]
    with HostedStage(decide=SCRIPT.decide) as other:
        _ask_claude(other, server.url)
        assert "tools" not in other.upstream.requests[0].json
    assert not server.authorization


REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


@pytest.mark.parametrize(
    ("toolset", "loaded"),
    [
        ({"default_config": {"defer_loading": True}}, []),
        (
            {"default_config": {"defer_loading": True}, "configs": {"alarm": {"defer_loading": False}}},
            ["alarm"],
        ),
        ({"configs": {"alarm": {"defer_loading": True}}}, [name for name in ALL if name != "alarm"]),
    ],
)
def test_deferred_tools_of_a_server_are_offered_once_they_are_found(
    stage: HostedStage, server: ToolServer, toolset: dict[str, Any], loaded: list[str]
) -> None:
    SCRIPT.rounds = [[("tool_search_tool_regex", {"pattern": "forecast|alarm"})], [FORECAST], "Sunny."]
    declared = {"type": "mcp_toolset", "mcp_server_name": "weather", **toolset}
    message = _ask_claude(stage, server.url, tools=[REGEX, declared])
    first, second, third = map(_sent, stage.upstream.requests)
    assert first == ["tool_search_tool_regex", *(f"weather__{name}" for name in loaded)]
    found = {*loaded, "forecast", "alarm"}
    assert (
        second == third == ["tool_search_tool_regex", *(f"weather__{name}" for name in ALL if name in found)]
    )
    assert [block.type for block in message.content] == [
        "server_tool_use", "tool_search_tool_result", "mcp_tool_use", "mcp_tool_result", "text",
    ]  # fmt: skip
    assert message.content[3].content[0].text == SUNNY


def test_deferred_tools_that_were_found_are_offered_in_later_turns_of_claude(
    stage: HostedStage, server: ToolServer
) -> None:
    SCRIPT.rounds = [[("tool_search_tool_regex", {"pattern": "forecast"})], [FORECAST], "Sunny.", "Hello."]
    declared = {
        "type": "mcp_toolset",
        "mcp_server_name": "weather",
        "default_config": {"defer_loading": True},
    }
    question = {"role": "user", "content": "What is the weather in Oslo?"}
    message = _ask_claude(stage, server.url, tools=[REGEX, declared])
    answer = [block.model_dump(exclude_none=True) for block in message.content]
    turns = [question, {"role": "assistant", "content": answer}, question]
    _ask_claude(stage, server.url, tools=[REGEX, declared], messages=turns)
    assert _sent(stage.upstream.requests[3]) == ["tool_search_tool_regex", "weather__forecast"]


def test_deferred_tools_that_were_found_are_offered_in_later_turns_of_responses(
    stage: HostedStage, server: ToolServer
) -> None:
    SCRIPT.rounds = [[("tool_search", {"query": "forecast"})], [FORECAST], "Sunny.", "Hello."]
    declared = {
        "type": "mcp",
        "server_label": "weather",
        "server_url": server.url,
        "require_approval": "never",
        "defer_loading": True,
    }
    tools = [{"type": "tool_search"}, declared]
    question = {"role": "user", "content": "What is the weather in Oslo?"}
    response = _ask_responses(stage, server.url, tools=tools)
    answer = [item.model_dump(exclude_none=True) for item in response.output]
    _ask_responses(stage, server.url, tools=tools, input=[question, *answer, question])
    assert _sent(stage.upstream.requests[3]) == ["tool_search", "weather__forecast"]


def test_deferred_tools_that_nothing_searches_for_are_offered(stage: HostedStage, server: ToolServer) -> None:
    SCRIPT.rounds = ["Hello."]
    _ask_claude(stage, server.url, toolset={"default_config": {"defer_loading": True}})
    assert _sent(stage.upstream.requests[0]) == [f"weather__{name}" for name in ALL]


def test_a_model_sees_the_pictures_of_a_result(stage: HostedStage, server: ToolServer) -> None:
    """The client's dialect has no place for them: it is told that there is one."""
    asked = [{"role": "user", "content": "[[demo:tool weather__picture {}]] Show it."}]
    message = _ask_claude(stage, server.url, model="anthropic-up/m1", messages=asked)
    result = next(block for block in message.content if block.type == "mcp_tool_result")
    assert result.content[0].text == "[an image: image/png]"
    sent = stage.upstream.requests[1].json["messages"][-1]["content"][0]["content"]
    assert [block["type"] for block in sent] == ["text", "image"]
    assert sent[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}


@pytest.mark.parametrize("labels", [("weather",), ("weather", "climate")], ids=["one server", "two servers"])
def test_a_request_approves_a_limited_number_of_calls(
    stage: HostedStage, server: ToolServer, labels: tuple[str, ...]
) -> None:
    items: list[Any] = [{"role": "user", "content": "?"}]
    for number in range(MAX_APPROVED + 1):
        asked = {
            "type": "mcp_approval_request",
            "id": f"mcpr_{number}",
            "name": "forecast",
            "arguments": encode_text({"city": f"{number}"}),
            "server_label": labels[number % len(labels)],
        }
        items.append(asked)
    for number in range(MAX_APPROVED + 1):
        answer = {"type": "mcp_approval_response", "approval_request_id": f"mcpr_{number}", "approve": True}
        items.append(answer)
    SCRIPT.rounds = ["Done."]
    declared = {"type": "mcp", "server_url": server.url, "require_approval": "always"}
    tools = [{**declared, "server_label": label} for label in labels]
    response = _ask_responses(stage, server.url, tools=tools, input=items)
    calls = [item for item in response.output if item.type == "mcp_call"]
    assert sorted(call.status for call in calls) == ["completed"] * MAX_APPROVED + ["failed"]
    assert len(server.calls) == MAX_APPROVED


def test_a_client_is_kept_alive_while_the_gateway_connects(server: ToolServer, stage: HostedStage) -> None:
    more = f'[mcp]\nprivate_hosts = ["{server.host}"]\n[limits]\nping = 0.02\n'
    with HostedStage(more, decide=SCRIPT.decide) as other:
        SCRIPT.rounds = ["Hello."]
        server.is_slow = True
        asked: Any = {
            "model": "openai-chat-up/m1",
            "max_tokens": 10,
            "messages": [{"role": "user", "content": "?"}],
            "mcp_servers": [{"type": "url", "name": "weather", "url": server.url}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": "weather"}],
            "stream": True,
        }
        connection = http.client.HTTPConnection("127.0.0.1", other.gateway.port, timeout=DEADLINE_SECONDS)
        connection.request("POST", "/v1/messages", encode(asked), {"content-type": "application/json"})
        response = connection.getresponse()
        have = b""
        while b"event: ping" not in have:
            have += response.read1(65536)
        assert b"message_start" not in have
        server.gate.set()
        have += response.read()
        connection.close()
        assert have.count(b"event: message_start") == have.count(b"event: message_stop") == 1


def test_calls_at_the_same_time_fail_each_for_its_own_reason() -> None:
    async def failed() -> dict[str, str]:
        hosts = ServerHosts((), ("127.0.0.1:9",))
        transport = mcp_connection._GuardedTransport(hosts, McpSettings())
        urls = {"one": "http://127.0.0.1:9/mcp", "two": "https://elsewhere.example/mcp"}

        async def call(name: str) -> None:
            message = {"method": "tools/call", "params": {"name": name, "arguments": {"a": 1}}}
            with pytest.raises(httpx2.ConnectError):
                await transport.handle_async_request(httpx2.Request("POST", urls[name], json=message))

        await asyncio.gather(*map(call, urls))
        found = {name: transport.problems[mcp_connection._about_call(name, {"a": 1})] for name in urls}
        await transport.aclose()
        return found

    problems = asyncio.run(failed())
    assert "no connection" in problems["one"]
    assert "no connection" not in problems["two"]
    assert problems["two"]
