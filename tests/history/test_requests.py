"""The next request: Code Assist's envelope and Gemini's body, settings, tools, and a change of provider."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wireglot.history
from tests.history.support import (
    DIALECTS,
    FIXTURES,
    MODELS,
    READ,
    assert_presentable,
    gemini_chunk,
    heard,
    stream,
)
from tests.tiers import rows
from wireglot.history import History, Media, Thinking, Tool, ToolChoice
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import Sampling
from wireglot_core.providers.endpoints import endpoint
from wireglot_core.providers.spec import provider
from wireglot_core.testing.strategies import samples

PROJECT = Extra("gemini", form={"code_assist": {"envelope": {"project": "my-project"}}})
TODO_SCHEMA = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"type": "string", "enum": ["open", "done"]},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["todos"],
}


def conversation() -> History:
    history = History()
    history.system("Be terse.")
    history.user("Read a.txt")
    history.assistant(
        heard(
            "gemini", stream(gemini_chunk({"functionCall": {"name": "read_file", "args": {"path": "a.txt"}}}))
        )
    )
    history.result(history.pending[0], "contents of a")
    return history


def test_code_assist_gets_its_envelope_with_everything_inside_the_request():
    """R-S-01 (C50), R-S-02, R-S-04, R-S-07"""
    body = (
        conversation()
        .request("code-assist", model="gemini-3-pro", tools=[READ], tool_choice="auto", extra=PROJECT)
        .value
    )
    assert body.keys() == {"model", "project", "request"}
    assert (body["model"], body["project"]) == ("gemini-3-pro", "my-project")
    assert body["request"].keys() == {"contents", "systemInstruction", "tools", "toolConfig"}
    assert [content["role"] for content in body["request"]["contents"]] == ["user", "model", "user"]


@pytest.mark.parametrize("dialect", ["gemini", "code-assist"])
def test_the_system_text_is_the_instruction_without_a_role(dialect):
    """R-S-03 (C6: the role is optional and left out), C5: parts only, no metadata."""
    body = conversation().request(dialect, model="gemini-3-pro").value
    assert body.get("request", body)["systemInstruction"] == {"parts": [{"text": "Be terse."}]}


def test_no_function_calling_mode_and_no_sampling_is_made_up():
    """R-S-05 (C3: AUTO or nothing; ANY only if required), R-S-06 (C37: nothing is injected)"""
    history = conversation()
    body = history.request("code-assist", model="gemini-3-pro", tools=[READ]).value["request"]
    assert "toolConfig" not in body
    assert "generationConfig" not in body
    modes = {
        choice: history.request("gemini", model="gemini-3-pro", tools=[READ], tool_choice=choice).value[
            "toolConfig"
        ]
        for choice in ("auto", "none", "required")
    }
    assert [mode["functionCallingConfig"]["mode"] for mode in modes.values()] == ["AUTO", "NONE", "ANY"]
    named = history.request(
        "gemini", model="gemini-3-pro", tools=[READ], tool_choice=ToolChoice("required", ("read_file",))
    )
    assert named.value["toolConfig"]["functionCallingConfig"] == {
        "mode": "ANY",
        "allowedFunctionNames": ["read_file"],
    }
    warm = history.request("gemini", model="gemini-3-pro", sampling=Sampling(temperature=0.2), max_tokens=50)
    assert warm.value["generationConfig"] == {"temperature": 0.2, "maxOutputTokens": 50}


@rows(
    "tool",
    [
        READ,
        Tool("read_file", "Read a file.", READ["function"]["parameters"]),
        {"name": "read_file", "description": "Read a file.", "input_schema": READ["function"]["parameters"]},
        {"type": "function", **READ["function"]},
        {"functionDeclarations": [{
            "name": "read_file", "description": "Read a file.",
            "parametersJsonSchema": READ["function"]["parameters"],
        }]},
    ],
    ids=["openai-chat", "neutral", "anthropic", "openai-responses", "gemini"],
)  # fmt: skip
def test_tools_of_any_form_become_declarations(tool):
    """R-S-04, R-S-08"""
    body = conversation().request("gemini", model="gemini-3-pro", tools=[tool]).value
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "read_file",
                    "description": "Read a file.",
                    "parametersJsonSchema": READ["function"]["parameters"],
                }
            ]
        }
    ]


def test_a_nested_schema_reaches_the_model_as_it_was_defined():
    """R-D-01"""
    tool = {"name": "TodoWrite", "description": "Plan.", "input_schema": TODO_SCHEMA}
    for dialect, find in (
        ("anthropic", lambda body: body["tools"][0]["input_schema"]),
        ("openai-chat", lambda body: body["tools"][0]["function"]["parameters"]),
        ("gemini", lambda body: body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]),
    ):
        assert find(conversation().request(dialect, model=MODELS[dialect], tools=[tool]).value) == TODO_SCHEMA


def test_something_that_is_no_tool_is_refused_by_its_place():
    with pytest.raises(ClientFault, match=r"\$\.tools\[1\]"):
        conversation().request("gemini", model="gemini-3-pro", tools=[READ, {"name": "x"}])


def test_without_tools_none_are_declared():
    """R-S-09: native calling is on exactly when tools are given; there is no other style."""
    body = conversation().request("gemini", model="gemini-3-pro").value
    assert "tools" not in body
    assert "toolConfig" not in body


def test_gemini_streams_over_sse_and_code_assist_takes_a_bearer_token():
    """R-S-10, R-S-11 (C49: your own token)"""
    spec = provider("code-assist")
    assert endpoint(spec, "code-assist", "stream").endswith("/v1internal:streamGenerateContent?alt=sse")
    google = endpoint(provider("gemini"), "gemini", "stream", "gemini-3-pro")
    assert google.endswith("/models/gemini-3-pro:streamGenerateContent?alt=sse")
    assert spec.auth == "bearer"


def test_the_history_does_no_io_and_knows_no_wire_format():
    """R-S-12: provider, format, parsing of calls and history are apart."""
    script = "import sys, wireglot.history; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        "socket",
        "ssl",
        "asyncio",
        "http.client",
        "urllib.request",
        "subprocess",
        "wireglot.gateway",
    } & {*loaded}
    for path in Path(wireglot.history.__file__).parent.glob("*.py"):
        imported = {
            node.module or ""
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        formats = ("anthropic", "openai_chat", "openai_responses", "gemini")
        assert not [
            name
            for name in imported
            if name.startswith(tuple(f"wireglot_core.dialects.{f}" for f in formats))
        ]


# Another provider in the middle.


@rows("first", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@rows("second", DIALECTS)
def test_the_provider_may_change_in_the_middle_of_a_tool_call(first, second):
    """R-E-04, R-D-03: the answer of one, the result to another."""
    (case,) = [
        path
        for path in sorted((FIXTURES / first / "streams").iterdir())
        if path.name in ("thinking_and_tools.sse", "tools.sse", "reasoning_and_tools.sse")
    ][:1]
    history = History()
    history.user("What now?")
    history.assistant(heard(first, case.read_bytes(), first, MODELS[first]))
    calls = history.pending
    assert calls
    for call in calls:
        history.result(call, f"result of {call.name}")
    asked = history.request(second, model=MODELS[second], max_tokens=99)
    assert_presentable(second, asked.value)
    for call in calls:
        assert f"result of {call.name}" in str(asked.value)


def test_signatures_go_back_to_their_minter_and_to_nobody_else():
    """C9, R-U-01"""
    history = History()
    history.user("Weather?")
    data = (FIXTURES / "anthropic" / "streams" / "thinking_and_tools.sse").read_bytes()
    history.assistant(heard("anthropic", data, "anthropic", "claude-opus-5"))
    for call in history.pending:
        history.result(call, "sunny")
    home = history.request("anthropic", model="claude-opus-5", provider="anthropic", max_tokens=99)
    assert home.value["messages"][1]["content"][0]["type"] == "thinking"
    signature = home.value["messages"][1]["content"][0]["signature"]
    assert [loss for loss in home.losses if loss.feature.startswith("reasoning")] == []
    away = history.request("gemini", model="gemini-3-pro", provider="gemini")
    assert signature not in str(away.value)
    assert [loss.path for loss in away.losses if loss.feature == "reasoning.text"] == [
        "$.messages[1].content[0]"
    ]
    again = History.load(history.save()).request(
        "anthropic", model="claude-opus-5", provider="anthropic", max_tokens=99
    )
    assert again.value == home.value


def test_settings_and_media_reach_the_request():
    history = History()
    history.user("What is this?", Media("image", "image/png", samples.PNG))
    asked = history.request(
        "anthropic",
        model="claude-opus-5",
        max_tokens=99,
        stream=True,
        thinking=Thinking(mode="auto", effort="low"),
    )
    assert asked.value["stream"] is True
    assert asked.value["thinking"] == {"type": "adaptive"}
    assert [block["type"] for block in asked.value["messages"][0]["content"]] == ["text", "image"]
    assert asked.losses == ()
