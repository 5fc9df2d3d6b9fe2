"""Tokens are counted of the tools that a request would be sent with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import provider
from tests.gateway.hosted.hosted_kit import HostedStage
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
CLOCK = {"name": "clock", "description": "Tells the time.", "input_schema": {"type": "object"}}
LATER = {**CLOCK, "name": "later", "defer_loading": True}
TURNS = [{"role": "user", "content": "How high is the tower?"}]


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage() as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def counted_tools(stage: HostedStage, model: str, tools: list[Any]) -> list[str]:
    """The names of the tools that an upstream counts."""
    messages: Any = TURNS
    stage.claude.messages.count_tokens(model=model, messages=messages, tools=tools)
    (asked,) = [request for request in stage.upstream.requests if "count" in request.path]
    return [tool["name"] for tool in asked.json.get("tools", ())]


def test_a_function_is_counted_in_place_of_a_hosted_tool(stage: HostedStage) -> None:
    assert counted_tools(stage, "anthropic-up/m1", [CLOCK, SEARCH]) == ["clock", "web_search"]
    (asked,) = [request.json for request in stage.upstream.requests]
    assert "query" in asked["tools"][1]["input_schema"]["properties"]
    assert not stage.web.queries


def test_tools_that_are_not_loaded_are_not_counted(stage: HostedStage) -> None:
    names = counted_tools(stage, "anthropic-up/m1", [CLOCK, REGEX, LATER])
    assert names == ["clock", "tool_search_tool_regex"]


def test_a_provider_that_runs_the_tool_counts_it(stage: HostedStage) -> None:
    assert counted_tools(stage, "native/m1", [CLOCK, SEARCH]) == ["clock", "web_search"]
    (asked,) = [request.json for request in stage.upstream.requests]
    assert asked["tools"][1] == SEARCH


def test_without_a_backend_the_tool_is_not_counted() -> None:
    with ScriptedUpstream() as upstream:
        lines = "limits = { hosted_tools = false }\n"
        with LiveGateway(provider("up", upstream, "anthropic", lines)) as gateway:
            stage = HostedStage()
            stage.upstream, stage.gateway = upstream, gateway
            assert counted_tools(stage, "up/m1", [CLOCK, SEARCH]) == ["clock"]
