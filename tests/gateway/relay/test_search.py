"""A request that asks for nothing but a search of the web never gets made-up results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import ServerToolUseBlock, WebSearchToolResultBlock, WebSearchToolResultError
from google import genai
from google.genai import errors, types

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

ONCE = {"retry": "{retries = 0}", "breaker": "{consecutive = 1000000, minimum = 1000000}"}
SEARCH: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
ASKED = "Perform a web search for the query: height of the tower"
CLOCK: Any = {"name": "clock", "description": "Tells the time.", "input_schema": {"type": "object"}}


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[ScriptedUpstream, LiveGateway]]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat", **ONCE) as gateway:
        yield upstream, gateway


def claude(gateway: LiveGateway, **headers: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=gateway.url, api_key="wg", max_retries=0, default_headers=headers or None
    )


def search(gateway: LiveGateway, *, streamed: bool, **more: Any) -> anthropic.types.Message:
    asked: dict[str, Any] = {
        "model": "m1",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": ASKED}],
        "tools": [SEARCH],
        **more,
    }
    if not streamed:
        message: anthropic.types.Message = claude(gateway).messages.create(**asked)
        return message
    with claude(gateway).messages.stream(**asked) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "tool", "name": "web_search"}])
def test_an_anthropic_client_is_shown_a_search_that_failed(
    stage: tuple[ScriptedUpstream, LiveGateway], streamed: bool, choice: dict[str, str]
) -> None:
    """[L8] Claude Code shows `Web search error: unavailable`; nothing is asked of a model that cannot search."""
    upstream, gateway = stage
    before = len(upstream.requests)
    message = search(gateway, streamed=streamed, tool_choice=choice)
    call, result, text = message.content
    assert isinstance(call, ServerToolUseBlock)
    assert isinstance(result, WebSearchToolResultBlock)
    assert isinstance(result.content, WebSearchToolResultError)
    assert (call.name, call.input, result.tool_use_id) == ("web_search", {"query": ASKED}, call.id)
    assert result.content.error_code == "unavailable"
    assert text.type == "text"
    assert "mine cannot search the web" in text.text
    assert message.stop_reason == "end_turn"
    assert len(upstream.requests) == before


@pytest.mark.parametrize("streamed", [False, True])
def test_a_responses_client_is_shown_a_search_that_failed(
    stage: tuple[ScriptedUpstream, LiveGateway], streamed: bool
) -> None:
    """[L8] The same in its own items."""
    upstream, gateway = stage
    before = len(upstream.requests)
    gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)
    asked: dict[str, Any] = {"model": "m1", "input": ASKED, "tools": [{"type": "web_search"}], "store": False}
    if streamed:
        with gpt.responses.stream(**asked) as stream:
            response = stream.get_final_response()
    else:
        response = gpt.responses.create(**asked)
    call, message = response.output
    assert call.type == "web_search_call"
    assert (call.status, call.action.type) == ("failed", "search")
    assert message.type == "message"
    assert "cannot search the web" in response.output_text
    assert len(upstream.requests) == before


def test_clients_without_words_for_it_get_an_error(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    """[L8] Gemini CLI's search is such a request, and tells an error as one."""
    upstream, gateway = stage
    before = len(upstream.requests)
    options = types.HttpOptions(base_url=gateway.url)
    gemini = genai.Client(api_key="wg", http_options=options)
    tool = types.Tool(google_search=types.GoogleSearch())
    with pytest.raises(errors.ClientError, match="cannot search the web"):
        gemini.models.generate_content(
            model="m1", contents=ASKED, config=types.GenerateContentConfig(tools=[tool])
        )
    assert len(upstream.requests) == before


def test_among_other_tools_a_search_is_a_serious_loss(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    """[L8] The model still has something to do: the client is shown what it does not have."""
    upstream, gateway = stage
    raw = claude(gateway).messages.with_raw_response.create(
        model="m1",
        max_tokens=100,
        messages=[{"role": "user", "content": ASKED}],
        tools=[SEARCH, CLOCK],
    )
    assert "hosted_tool" in raw.headers["x-wireglot-losses"].partition(",")[0]
    assert "web_search" not in json.dumps(upstream.requests[-1].json.get("tools"))


def test_a_search_that_is_demanded_is_no_call_of_another_tool(
    stage: tuple[ScriptedUpstream, LiveGateway],
) -> None:
    """[L8] Whatever else is offered: the client wants results, and gets the error of a search."""
    upstream, gateway = stage
    before = len(upstream.requests)
    message = claude(gateway).messages.create(
        model="m1",
        max_tokens=100,
        messages=[{"role": "user", "content": ASKED}],
        tools=[SEARCH, CLOCK, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}],
        tool_choice={"type": "tool", "name": "web_search"},
    )
    assert [block.type for block in message.content][:2] == ["server_tool_use", "web_search_tool_result"]
    tools: Any = [{"type": "web_search"}, {"type": "function", "name": "clock", "parameters": {}}]
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)
    choice: Any = {"type": "web_search"}
    answer = client.responses.create(model="m1", input=ASKED, tools=tools, tool_choice=choice)
    assert answer.output[0].type == "web_search_call"
    assert len(upstream.requests) == before


def test_who_does_not_care_for_losses_is_answered_without_a_search(
    stage: tuple[ScriptedUpstream, LiveGateway],
) -> None:
    """[L8] An application that always offers a search may say that it can do without."""
    upstream, gateway = stage
    before = len(upstream.requests)
    message = claude(gateway, **{"x-wireglot-loss-policy": "silent"}).messages.create(
        model="m1", max_tokens=100, messages=[{"role": "user", "content": "Hello"}], tools=[SEARCH]
    )
    assert message.content[0].type == "text"
    assert len(upstream.requests) == before + 1


CHAIN = (
    '[providers.deaf]\ndialect = "openai-chat"\nbase_url = "{url}/v1"\napi_key = "upstream-key-0123456789"\n'
    '[providers.anthropic]\nbase_url = "{url}"\napi_key = "upstream-key-0123456789"\n'
    '[models]\n"*" = ["deaf/*", "anthropic/claude-opus-4-6"]\n'
)


def test_the_next_target_is_asked_where_it_can_search() -> None:
    """[L8] A chain is there for what the first of it cannot do."""
    with ScriptedUpstream() as upstream, LiveGateway(CHAIN.format(url=upstream.url)) as gateway:
        message = search(gateway, streamed=False)
        assert [request.path for request in upstream.requests] == ["/v1/messages"]
        assert upstream.requests[-1].json["tools"] == [SEARCH]
        assert message.content[0].type == "text"
