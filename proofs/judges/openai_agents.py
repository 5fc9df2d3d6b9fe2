"""openai-agents' own tests of its runner, whose scripted model is put behind the gateway.

The tests say what the model answers (`ScriptedModel`). Here each of these answers is given to the server
that is the gateway's upstream, and the SDK's real model class gets it through the gateway, with the tools,
hand-offs and history of the run; the run continues with what arrives. Ids of items are the server's choice
and are restored. A case that fails without the gateway too says nothing about it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from proofs.judges import environments, pytest_run
from proofs.judges.pytest_run import Outcome
from proofs.judges.reasons import Reason
from proofs.judges.results import Verdict
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream

PACKAGES: Final = (
    "openai-agents[litellm]",
    *("pytest", "pytest-asyncio", "pytest-mock", "pytest-xdist", "inline-snapshot"),
)
FILES: Final = (
    *("tests/test_agent_runner.py", "tests/test_agent_runner_streamed.py", "tests/test_agent_runner_sync.py"),
    *("tests/test_agent_hooks.py", "tests/test_agent_llm_hooks.py", "tests/test_global_hooks.py"),
    *("tests/test_run_hooks.py", "tests/test_guardrails.py", "tests/test_tool_guardrails.py"),
    *("tests/test_max_turns.py", "tests/test_tool_use_behavior.py", "tests/test_tool_choice_reset.py"),
    *("tests/test_stream_events.py", "tests/test_cancel_streaming.py", "tests/test_soft_cancel.py"),
    *(
        "tests/test_handoff_tool.py",
        "tests/test_handoff_history_duplication.py",
        "tests/test_agent_as_tool.py",
    ),
    *("tests/test_call_model_input_filter.py", "tests/test_agent_prompt.py"),
)
PAIRS: Final = {"OpenAIResponsesModel": "openai-chat", "OpenAIChatCompletionsModel": "openai-responses"}
"""The SDK's model class, and the dialect of the upstream behind the gateway."""
_PLUGIN: Final = """
import copy, json, os, urllib.request
from dataclasses import replace
import pytest
from openai import AsyncOpenAI
from agents.models import openai_chatcompletions, openai_responses
from agents.models.interface import ModelTracing
from agents.testing.model import ScriptedModel

KIND = getattr(
    openai_responses if os.environ.get("KIND") == "OpenAIResponsesModel" else openai_chatcompletions,
    os.environ.get("KIND", "OpenAIChatCompletionsModel"),
)
ONLY_FUNCTIONS = openai_chatcompletions.OpenAIChatCompletionsModel
usual, fetch, stream = ScriptedModel._next_resolved_step, KIND.get_response, KIND.stream_response
used = []


def document(item):
    return item if isinstance(item, dict) else item.model_dump(exclude_none=True)


async def through_gateway(self, call):
    step = await usual(self, call)
    items = [document(item) for item in step.output]
    if step.error or step.stream_events or not items:
        return step
    if any(item.get("type") not in ("message", "function_call") for item in items):
        return step
    if KIND is ONLY_FUNCTIONS and any(type(tool).__name__ != "FunctionTool" for tool in call.tools):
        return step  # the SDK itself refuses other tools before a request
    data = json.dumps(items).encode()
    urllib.request.urlopen(urllib.request.Request(os.environ["UPSTREAM"] + "/script", data)).read()
    client = AsyncOpenAI(base_url=os.environ["GATEWAY"], api_key="x", max_retries=0)
    model = KIND(model="scripted", openai_client=client)
    arguments = (
        call.system_instructions, call.input, call.model_settings, call.tools, call.output_schema,
        call.handoffs, ModelTracing.DISABLED,
    )
    more = {"previous_response_id": None, "conversation_id": None, "prompt": None}
    used.append(call)
    if call.streamed:
        output = None
        async for event in stream(model, *arguments, **more):
            if event.type == "response.completed":
                output = event.response.output
    else:
        output = (await fetch(model, *arguments, **more)).output
    await client.close()
    assert len(output) == len(step.output), f"{output} instead of {step.output}"
    changed = []
    for before, after in zip(step.output, output):
        names = ("content", "role") if after.type == "message" else ("name", "arguments", "call_id")
        changed.append(before.model_copy(update={name: getattr(after, name) for name in names}))
    return replace(step, output=changed)


if "UPSTREAM" in os.environ:
    ScriptedModel._next_resolved_step = through_gateway


@pytest.fixture(autouse=True)
def count_calls():
    used.clear()
    yield
    if "UPSTREAM" in os.environ and not used:
        pytest.skip(
            "calls no model, or one whose answer is an error, events or an item that only OpenAI has, or"
            " with a tool that the SDK's Chat model does not take"
        )
"""
REASONS: Final = (
    Reason(
        "nothing of the conversation is in the request",
        "the history is kept at the server, under an id that the test made up",
        is_run=False,
    ),
    Reason(
        r"AssertionError: \[ResponseOutputMessage",
        "two messages in one answer: Chat has one message, with the text of both",
        is_run=False,
    ),
    Reason("refusal.*empty answer", "the server with the script writes no refusals", is_run=False),
    Reason("expected at least one (item|message)", "sends no input at all; refused"),
    Reason("Unhandled item type", "the SDK's own Chat model refuses an item before a request", is_run=False),
    Reason("role: expected a string", "sends a message without a role, which no API takes", is_run=False),
)


def judge() -> Verdict:
    interpreter = environments.python("openai-agents", *PACKAGES)
    folder = pytest_run.source(interpreter, "openai-agents")
    found = list[Outcome]()
    with tempfile.TemporaryDirectory() as temporary:
        (Path(temporary) / "through_gateway.py").write_text(_PLUGIN, encoding="utf-8")
        arguments = ("-p", "through_gateway", "-n", "0", "--inline-snapshot=disable", *FILES)
        alone = cache(
            partial(pytest_run.run, interpreter, folder, *arguments, environ={"PYTHONPATH": temporary})
        )
        for kind, dialect in PAIRS.items():
            with (
                ScriptedUpstream(decide=Script(dialect).decide) as upstream,
                LiveGateway.before(upstream, dialect) as gateway,
            ):
                environ = {
                    "PYTHONPATH": temporary,
                    "KIND": kind,
                    "UPSTREAM": upstream.url,
                    "GATEWAY": gateway.url + "/v1",
                }
                through = pytest_run.run(interpreter, folder, *arguments, environ=environ)
            found += [
                each._replace(name=f"{kind} {each.name}") for each in pytest_run.compared(through, alone)
            ]
    return pytest_run.verdict(
        "openai-agents",
        environments.version(interpreter, "openai-agents"),
        "the SDK's tests of its runner, streams, hooks, guardrails and hand-offs; Responses on a Chat "
        "upstream, Chat on a Responses one",
        found,
        REASONS,
    )


class Script:
    """What the upstream answers next, in its dialect."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._items = list[dict[str, Any]]()

    def decide(self, request: Recorded) -> Behaviour:
        if request.path == "/script":
            self._items = request.json
            return Behaviour(body=b"{}")
        make = chat if self._dialect == "openai-chat" else responses
        whole, events = make(self._items)
        if request.json.get("stream"):
            return Behaviour(pieces=tuple(events))
        return Behaviour(body=json.dumps(whole).encode())


def chat(items: list[dict[str, Any]]) -> tuple[dict[str, Any], Iterator[bytes]]:
    texts = [part.get("text", "") for item in items for part in item.get("content", ())]
    calls = [
        {
            "id": item["call_id"],
            "type": "function",
            "function": {"name": item["name"], "arguments": item["arguments"]},
        }
        for item in items
        if item["type"] == "function_call"
    ]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    if calls:
        message["tool_calls"] = calls
    end = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    head = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}
    choice = {"index": 0, "message": message, "finish_reason": end}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def events() -> Iterator[bytes]:
        delta = {
            **message,
            **({"tool_calls": [{"index": at, **call} for at, call in enumerate(calls)]} if calls else {}),
        }
        for change, reason in ((delta, None), ({}, end)):
            piece = {"index": 0, "delta": change, "finish_reason": reason}
            yield _event({**head, "object": "chat.completion.chunk", "choices": [piece]})
        yield _event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    return whole, events()


def responses(items: list[dict[str, Any]]) -> tuple[dict[str, Any], Iterator[bytes]]:
    head = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "scripted",
        "parallel_tool_calls": True,
    }
    usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    output = [{"status": "completed", **item} for item in items]
    whole = {
        **head,
        "status": "completed",
        "output": output,
        "usage": usage,
        "tools": [],
        "tool_choice": "auto",
    }

    def events() -> Iterator[bytes]:
        made: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
        ]
        for at, item in enumerate(output):
            where = {"output_index": at, "item_id": item.get("id", "")}
            if item["type"] == "function_call":
                made.append(
                    {
                        "type": "response.output_item.added",
                        "output_index": at,
                        "item": {**item, "arguments": ""},
                    }
                )
                made.append(
                    {"type": "response.function_call_arguments.delta", **where, "delta": item["arguments"]}
                )
                made.append(
                    {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}
                )
            else:
                made.append(
                    {
                        "type": "response.output_item.added",
                        "output_index": at,
                        "item": {**item, "content": []},
                    }
                )
                for index, part in enumerate(item["content"]):
                    place = {**where, "content_index": index}
                    made.append(
                        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
                    )
                    made.append(
                        {"type": "response.output_text.delta", **place, "delta": part.get("text", "")}
                    )
                    made.append({"type": "response.output_text.done", **place, "text": part.get("text", "")})
                    made.append({"type": "response.content_part.done", **place, "part": part})
            made.append({"type": "response.output_item.done", "output_index": at, "item": item})
        made.append({"type": "response.completed", "response": whole})
        for number, event in enumerate(made):
            yield b"event: %b\n" % event["type"].encode() + _event({**event, "sequence_number": number})

    return whole, events()


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"
