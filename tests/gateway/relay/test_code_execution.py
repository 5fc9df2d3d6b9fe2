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
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Foreign, Text
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import encode

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
    more = "".join(
        provider(f"{each}-native", native, each, lines) for each in (*NATIVE, "gemini-interactions")
    )
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


CODE = "print(71)"
PARTS: list[dict[str, Any]] = [
    {"executableCode": {"language": "PYTHON", "code": CODE}, "thoughtSignature": "c2ln"},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "71"}},
]
STEPS: list[dict[str, Any]] = [
    {"type": "code_execution_call", "id": "c1", "arguments": {"code": CODE}, "signature": "c2ln"},
    {"type": "code_execution_result", "call_id": "c1", "result": "71"},
]


def _script(native: ScriptedUpstream, upstream: str, ran: list[dict[str, Any]], streamed: bool) -> None:
    """The upstream runs code, then says a word."""
    parts = [
        Foreign(upstream, next(iter(each)) if upstream == "gemini" else each["type"], each) for each in ran
    ]
    spoken, usage = dialect(upstream), Usage(input=1, output=1)
    response = Response("v1_1", "m1", (*parts, Text("71.")), Stop("end"), usage)
    if streamed:
        data = spoken.stream_writer(Context()).write(unfold(response))
        native.next(Behaviour(headers=(("content-type", "text/event-stream"),), pieces=(data,)))
    else:
        native.next(Behaviour(body=encode(spoken.render_response(response, Context()).value)))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_interactions_clients_see_code_that_gemini_ran(
    stage: HostedStage, native: ScriptedUpstream, streamed: bool
) -> None:
    native.reset()
    _script(native, "gemini", PARTS, streamed)
    client: Any = stage.gemini
    asked: dict[str, Any] = {
        "model": "gemini-native/m1",
        "tools": [{"type": "code_execution"}],
        "store": False,
    }
    if streamed:
        steps = []
        for event in client.interactions.create(**asked, input=ASKED, stream=True):
            if event.event_type == "step.start":
                steps.append(event.step.model_dump(exclude_none=True))
            elif event.event_type == "step.delta" and event.delta.type == "thought_signature":
                steps[-1]["signature"] = event.delta.signature
            elif event.event_type == "step.delta" and event.delta.type == "text":
                steps[-1]["content"] = [{"type": "text", "text": event.delta.text}]
            elif event.event_type == "step.delta":
                steps[-1].update(event.delta.model_dump(exclude_none=True))
    else:
        answer = client.interactions.create(**asked, input=ASKED)
        steps = [step.model_dump(exclude_none=True) for step in answer.steps]
    call, result = (step for step in steps if step["type"].startswith("code_execution"))
    assert call["arguments"] == {"code": CODE, "language": "python"}
    assert (result["call_id"], result["result"]) == (call["id"], "71")
    question = {"type": "user_input", "content": [{"type": "text", "text": ASKED}]}
    _script(native, "gemini", PARTS, streamed=False)
    client.interactions.create(**asked, input=[question, *steps, question])
    assert native.requests[-1].json["contents"][1]["parts"] == [*PARTS, {"text": "71."}]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_gemini_clients_see_code_that_ran_in_an_interaction(
    stage: HostedStage, native: ScriptedUpstream, streamed: bool
) -> None:
    native.reset()
    _script(native, "gemini-interactions", STEPS, streamed)
    tool = types.Tool(code_execution=types.ToolCodeExecution())
    config = types.GenerateContentConfig(tools=[tool])
    models: Any = stage.gemini.models
    asked: dict[str, Any] = {"model": "gemini-interactions-native/m1", "config": config}
    chunks = (
        list(models.generate_content_stream(**asked, contents=ASKED))
        if streamed
        else [models.generate_content(**asked, contents=ASKED)]
    )
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    assert [part.executable_code.code for part in parts if part.executable_code] == [CODE]
    assert [part.code_execution_result.output for part in parts if part.code_execution_result] == ["71"]
    question = types.Content(role="user", parts=[types.Part(text=ASKED)])
    turn = types.Content(role="model", parts=parts)
    _script(native, "gemini-interactions", STEPS, streamed=False)
    models.generate_content(**asked, contents=[question, turn, question])
    said = {"type": "model_output", "content": [{"type": "text", "text": "71."}]}
    assert native.requests[-1].json["input"][1:-1] == [*STEPS, said]
