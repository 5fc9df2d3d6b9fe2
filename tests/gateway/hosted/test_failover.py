"""A route whose first target runs a hosted tool itself, and whose fallback does not: the gateway runs it there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.hosted.hosted_kit import NATIVE, TOWER, HostedStage, chat_answer, chat_calls
from tests.gateway.hosted.test_paused_turns import PAUSED, said
from tests.gateway.state.usage_kit import usage
from tests.waiting import wait_until
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.wire.json import encode_text

SEARCH: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
ROUTES = "[models]\n" + "".join(f'"{name}-first" = ["{name}/m1", "openai-chat-up/m1"]\n' for name in NATIVE)
ROUTES += '"to-anthropic" = ["native/m1", "anthropic-up/m1"]\n'
ROUTES += '"both-search" = ["native/m1", "native-gemini/m1"]\n'
EITHER = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage(ROUTES) as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def fail_first(stage: HostedStage, streamed: bool) -> None:
    """The target that searches fails, the one that does not calls a function."""
    stage.upstream.next(
        Behaviour(error=500),
        chat_calls(("web_search", {"query": "tower"}), stream=streamed),
        chat_answer({"content": "324 metres."}, stream=streamed),
    )


def ask_claude(stage: HostedStage, model: str, streamed: bool, **more: Any) -> Any:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "How high?"}],
        "tools": [SEARCH],
        **more,
    }
    if not streamed:
        return stage.claude.messages.create(**asked)
    with stage.claude.messages.stream(**asked) as stream:
        return stream.get_final_message()


def ask_responses(stage: HostedStage, model: str, streamed: bool = False) -> Any:
    asked: dict[str, Any] = {
        "model": model,
        "input": "How high?",
        "tools": [{"type": "web_search"}],
        "store": False,
    }
    if not streamed:
        return stage.gpt.responses.create(**asked)
    with stage.gpt.responses.stream(**asked) as stream:
        return stream.get_final_response()


@EITHER
@pytest.mark.parametrize("first", NATIVE)
def test_the_fallback_is_offered_a_function(stage: HostedStage, first: str, streamed: bool) -> None:
    fail_first(stage, streamed)
    message = ask_claude(stage, f"{first}-first", streamed)
    assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result", "text"]
    assert message.content[2].text == "324 metres."
    assert message.usage.server_tool_use.web_search_requests == 1
    native, offered, answered = [request.json for request in stage.upstream.requests]
    assert encode_text(native) != encode_text(offered)
    assert [tool["function"]["name"] for tool in offered["tools"]] == ["web_search"]
    assert TOWER.text in encode_text(answered["messages"])


@EITHER
@pytest.mark.parametrize("first", NATIVE)
def test_clients_of_other_dialects_get_it_too(stage: HostedStage, first: str, streamed: bool) -> None:
    fail_first(stage, streamed)
    response = ask_responses(stage, f"{first}-first", streamed)
    assert [item.type for item in response.output] == ["web_search_call", "message"]
    assert response.output_text == "324 metres."
    assert response.tool_usage.web_search.num_requests == 1


@EITHER
def test_the_fallback_may_lack_more_than_the_first_target(stage: HostedStage, streamed: bool) -> None:
    """The gateway searches for tools at both, and the web at the fallback alone."""
    regex = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    deferred = {"name": "mine", "input_schema": {"type": "object"}, "defer_loading": True}
    fail_first(stage, streamed)
    message = ask_claude(stage, "native-gemini-first", streamed, tools=[SEARCH, regex, deferred])
    assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result", "text"]
    native, *offered = [request.json for request in stage.upstream.requests]
    assert {"googleSearch": {}} in native["tools"]
    names = [[tool["function"]["name"] for tool in request["tools"]] for request in offered]
    assert names == [["web_search", "tool_search_tool_regex"]] * 2


def test_a_target_that_answers_is_not_replaced(stage: HostedStage) -> None:
    ask_claude(stage, "native-first", False)
    (asked,) = [request.json for request in stage.upstream.requests]
    assert asked["tools"] == [SEARCH]


CALL: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_01",
    "name": "web_search",
    "input": {"query": "old"},
}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_01",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://example.com/old",
            "title": "Old",
            "encrypted_content": "EqgfCioI",
            "page_age": None,
        }
    ],
}
TURNS: list[Any] = [
    {"role": "user", "content": "How high?"},
    {"role": "assistant", "content": [CALL, FOUND, {"type": "text", "text": "High."}]},
    {"role": "user", "content": "How high exactly?"},
]


def test_the_fallback_reads_what_the_vendor_has_found(stage: HostedStage) -> None:
    """Blocks of the vendor's own search are a call and its result for the fallback."""
    fail_first(stage, False)
    ask_claude(stage, "native-first", False, messages=TURNS)
    native, offered, _ = [request.json for request in stage.upstream.requests]
    assert native["messages"][1]["content"][0]["id"] == "srvtoolu_01"
    assert [each["role"] for each in offered["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert "https://example.com/old" in offered["messages"][2]["content"]


@pytest.mark.parametrize(
    ("route", "tools"), [("native-first", []), ("both-search", []), ("both-search", [SEARCH])]
)
def test_a_fallback_that_needs_no_function_reads_it_too(
    stage: HostedStage, route: str, tools: list[Any]
) -> None:
    """The request declares no search any more, or the fallback of another vendor runs its own."""
    stage.upstream.next(Behaviour(error=500))
    ask_claude(stage, route, False, messages=TURNS, tools=tools)
    _, fallen_back = [request.json for request in stage.upstream.requests]
    assert "https://example.com/old" in encode_text(fallen_back)


def test_the_answer_is_counted_once(stage: HostedStage) -> None:
    before = counted(stage)
    fail_first(stage, False)
    ask_claude(stage, "native-first", False)
    after = counted(stage)
    assert {name: after[name] - before.get(name, 0) for name in after} == {
        "generate": 1,
        "tool_round": 1,
        "web_search": 1,
    }


def counted(stage: HostedStage) -> dict[str, int]:
    return {row["operation"]: row["requests"] for row in usage(stage.gateway, "group_by=operation")["data"]}


@EITHER
def test_an_answer_that_paused_is_continued_by_no_other_vendor(stage: HostedStage, streamed: bool) -> None:
    """The client gets the error of the vendor that failed, which it can retry."""
    stage.upstream.next(said(PAUSED, "pause_turn", stream=streamed), Behaviour(error=500))
    with pytest.raises(openai.APIError) as failed:
        ask_responses(stage, "native-first", streamed)
    assert "native" in failed.value.message
    assert "cannot search the web" not in failed.value.message
    assert len(stage.upstream.requests) == 2


def test_where_the_fallback_fails_too_the_client_gets_its_error(stage: HostedStage) -> None:
    stage.upstream.next(Behaviour(error=500), Behaviour(error=503))
    with pytest.raises(anthropic.InternalServerError):
        ask_claude(stage, "native-first", False)
    assert len(stage.upstream.requests) == 2


def test_a_request_of_an_earlier_configuration_decides_nothing_for_the_next() -> None:
    """The provider runs no searches when the request begins, and does when it falls back there."""
    gate = threading.Event()
    with HostedStage(ROUTES) as stage, ThreadPoolExecutor() as pool:
        stage.upstream.next(Behaviour(error=500, gate=gate))
        first = pool.submit(ask_responses, stage, "to-anthropic")
        wait_until(lambda: len(stage.upstream.requests) == 1)
        toml = (stage.gateway.folder / "wireglot.toml").read_text()
        before, name, after = toml.partition("[providers.anthropic-up]")
        stage.gateway.reconfigure(
            before + name + after.replace("hosted_tools = false", "hosted_tools = true", 1)
        )
        stage.gateway.wait_log(event="reloaded")
        ask_responses(stage, "native/m1")
        gate.set()
        first.result()
        ask_responses(stage, "anthropic-up/m1")
        assert stage.upstream.requests[-1].json["tools"] == [SEARCH]
