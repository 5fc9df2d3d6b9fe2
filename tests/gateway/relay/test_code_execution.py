"""Code execution runs where the provider has it and is refused elsewhere, in every client's dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors, types

from tests.gateway.faults.faults_kit import provider
from tests.gateway.hosted.hosted_kit import DIALECTS, HostedStage
from wireglot.testing.scripted_upstream import ScriptedUpstream

NATIVE = {
    "anthropic": "code_execution",
    "openai-responses": "code_interpreter",
    "gemini": "codeExecution",
}
"""Upstreams that run code: what they are sent."""
REFUSED = "cannot execute code"
ASKED = "Compute the 20th prime."


@pytest.fixture(scope="module")
def native() -> Iterator[ScriptedUpstream]:
    """Runs the tools of its vendor."""
    with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def stage(native: ScriptedUpstream) -> Iterator[HostedStage]:
    """Each dialect twice: `NAME-up` runs no tools, `NAME-native` does."""
    lines = "limits = { hosted_tools = true }\nretry = { retries = 0 }\n"
    more = "".join(provider(f"{each}-native", native, each, lines) for each in NATIVE)
    with HostedStage(more) as stage:
        yield stage


def _ask_claude(stage: HostedStage, model: str, streamed: bool) -> None:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": ASKED}],
        "tools": [{"type": "code_execution_20250825", "name": "code_execution"}],
    }
    if streamed:
        with stage.claude.messages.stream(**asked) as stream:
            stream.get_final_message()
    else:
        stage.claude.messages.create(**asked)


def _ask_responses(stage: HostedStage, model: str, streamed: bool) -> None:
    tool = {"type": "code_interpreter", "container": {"type": "auto"}}
    asked: dict[str, Any] = {"model": model, "input": ASKED, "tools": [tool], "store": False}
    if streamed:
        with stage.gpt.responses.stream(**asked) as stream:
            stream.get_final_response()
    else:
        stage.gpt.responses.create(**asked)


def _ask_chat(stage: HostedStage, model: str, streamed: bool) -> None:
    tool = {"type": "code_interpreter"}
    asked: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": ASKED}],
        "extra_body": {"tools": [tool]},
    }
    if streamed:
        with stage.gpt.chat.completions.stream(**asked) as stream:
            stream.get_final_completion()
    else:
        stage.gpt.chat.completions.create(**asked)


def _ask_gemini(stage: HostedStage, model: str, streamed: bool) -> None:
    tool = types.Tool(code_execution=types.ToolCodeExecution())
    config = types.GenerateContentConfig(tools=[tool])
    if streamed:
        list(stage.gemini.models.generate_content_stream(model=model, contents=ASKED, config=config))
    else:
        stage.gemini.models.generate_content(model=model, contents=ASKED, config=config)


CLIENTS: dict[str, tuple[Callable[[HostedStage, str, bool], None], type[Exception]]] = {
    "anthropic": (_ask_claude, anthropic.BadRequestError),
    "openai-chat": (_ask_chat, openai.BadRequestError),
    "openai-responses": (_ask_responses, openai.BadRequestError),
    "gemini": (_ask_gemini, errors.ClientError),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_provider_that_runs_no_code_is_not_asked(stage: HostedStage, client: str, streamed: bool) -> None:
    """But for Chat Completions, which has no such tool: what it does not know passes through unchanged."""
    ask, problem = CLIENTS[client]
    for upstream in DIALECTS:
        if upstream == client == "openai-chat":
            continue
        stage.reset()
        with pytest.raises(problem, match=f"{upstream}-up {REFUSED}"):
            ask(stage, f"{upstream}-up/m1", streamed)
        assert not stage.upstream.requests


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_provider_that_runs_code_is_sent_its_own_tool(
    stage: HostedStage, native: ScriptedUpstream, client: str, streamed: bool
) -> None:
    for upstream, sent in NATIVE.items():
        native.reset()
        CLIENTS[client][0](stage, f"{upstream}-native/m1", streamed)
        (request,) = native.requests
        assert sent.encode() in request.body


def test_a_request_that_forbids_tools_is_answered(stage: HostedStage) -> None:
    stage.reset()
    message = stage.claude.messages.create(
        model="openai-chat-up/m1",
        max_tokens=100,
        messages=[{"role": "user", "content": ASKED}],
        tools=[{"type": "code_execution_20250825", "name": "code_execution"}],
        tool_choice={"type": "none"},
    )
    assert message.stop_reason == "end_turn"
    assert len(stage.upstream.requests) == 1
