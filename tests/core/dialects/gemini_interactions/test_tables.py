"""Tables of the Interactions API row by row: types of media, levels, echoes in answers, what has one continued."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini_interactions import DIALECT
from wireglot_core.dialects.gemini_interactions.outcome import parse_stop
from wireglot_core.dialects.gemini_interactions.render_steps import resumed, without_token
from wireglot_core.ir.content import Extra, Foreign, Media, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import HostedTool, McpServer, Request, Thinking, ToolChoice

OWN = "gemini-interactions"
CONTEXT = Context()
ASKED = Message("user", (Text("hi"),))


def sent(*parts: Part, role: Any = "user") -> tuple[list[dict[str, Any]], list[str]]:
    rendered = DIALECT.render_request(Request("m", (Message(role, parts),)), CONTEXT)
    return rendered.value["input"], [f"{loss.path} {loss.action}" for loss in rendered.losses]


@rows(
    ("kind", "url", "mime"),
    [
        *(("image", f"https://e.com/a.{suffix}", mime) for suffix, mime in (
            ("png", "image/png"), ("jpg", "image/jpeg"), ("JPEG", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp"),
            ("heic", "image/heic"), ("png?x=a.gif", "image/png"), ("pdf", "image/jpeg"), ("odd", "image/jpeg"),
        )),
        *(("document", f"https://e.com/a.{suffix}", mime) for suffix, mime in (
            ("pdf", "application/pdf"), ("csv", "text/csv"), ("png", "application/pdf"), ("odd", "application/pdf"),
        )),
        *(("audio", f"https://e.com/a.{suffix}", mime) for suffix, mime in (
            ("wav", "audio/wav"), ("mp3", "audio/mpeg"), ("mp4", "audio/wav"), ("csv", "audio/wav"),
        )),
        *(("video", f"https://e.com/a.{suffix}", mime) for suffix, mime in (
            ("mp4", "video/mp4"), ("mov", "video/mov"), ("webm", "video/webm"), ("wav", "video/mp4"),
        )),
    ],
)  # fmt: skip
def test_the_type_of_a_medium_is_guessed_by_its_address(kind: Any, url: str, mime: str) -> None:
    steps, losses = sent(Media(kind, url=url))
    assert steps == [{"type": "user_input", "content": [{"type": kind, "uri": url, "mime_type": mime}]}]
    assert losses == ["$.messages[0].content[0].mime invented"]
    assert sent(Media(kind, "a/b", url=url))[1] == []


@rows("level", ["minimal", "low", "medium", "high", "xhigh"])
def test_a_level_is_an_effort(level: Any) -> None:
    body = {"model": "m", "input": "hi", "generation_config": {"thinking_level": level}}
    assert DIALECT.parse_request(body, CONTEXT).thinking == Thinking(effort=level)
    rendered = DIALECT.render_request(Request("m", (ASKED,), thinking=Thinking(effort=level)), CONTEXT)
    assert (rendered.value["generation_config"], rendered.losses) == ({"thinking_level": level}, ())


@rows(
    ("status", "calls", "codes", "reason"),
    [
        ("completed", False, (), "end"),
        ("completed", True, (), "tool_calls"),
        ("requires_action", False, (), "tool_calls"),
        ("incomplete", True, (), "length"),
        ("budget_exceeded", False, (), "length"),
        ("requires_continuation", True, (), "paused"),
        ("failed", False, ("content_blocked",), "refused"),
        ("failed", False, ("x", "malformed_function_call", "content_blocked"), "malformed_call"),
        ("failed", False, ("x",), "other"),
        ("completed", False, ("content_blocked",), "end"),
        ("odd", True, (), "other"),
    ],
)
def test_what_a_status_means(status: str, calls: bool, codes: tuple[str, ...], reason: Any) -> None:
    errors = [7, *({"code": code} for code in codes)]
    assert parse_stop(status, calls, errors) == Stop(reason, status, OWN)


ECHOES = (
    "object", "created", "updated", "role", "agent", "agent_config", "background", "cached_content", "environment",
    "environment_id", "generation_config", "input", "labels", "previous_interaction_id", "response_format",
    "response_mime_type", "response_modalities", "safety_settings", "store", "stream", "system_instruction", "tools",
    "webhook_config",
)  # fmt: skip


def test_what_an_answer_repeats_of_its_request_is_no_loss_elsewhere() -> None:
    body: dict[str, Any] = {
        "id": "v1_1", "model": "m", "status": "completed", "steps": [], **dict.fromkeys(ECHOES, "x"), "object": "interaction",
        "x_new": 1, "usage": None,
    }  # fmt: skip
    answer = DIALECT.parse_response(body, CONTEXT)
    about = {**dict.fromkeys(ECHOES, "x"), "object": "interaction"}
    assert answer.extra == Extra(OWN, {"x_new": 1, "usage": None}, {"body": about})
    assert DIALECT.render_response(answer, CONTEXT).value == body
    bare = DIALECT.parse_response({"status": "completed"}, CONTEXT)
    assert bare.extra == Extra(OWN, {}, {"body": {}, "without": ["id", "object", "steps"]})
    assert DIALECT.render_response(bare, CONTEXT).value == {"status": "completed"}


def test_a_paused_answer_is_continued_by_its_token() -> None:
    paused = Response("r", "m", (), Stop("paused"), extra=Extra(OWN, {"continuation_token": "t"}))
    asks = resumed(paused)
    assert asks == Message("user", (Foreign(OWN, "continuation_token", {"continuation_token": "t"}),))
    for odd in (
        replace(paused, stop=Stop("end")), replace(paused, extra=None), replace(paused, extra=Extra("gemini", {"continuation_token": "t"})),
        *(replace(paused, extra=Extra(OWN, {"continuation_token": token})) for token in ("", 7)),
    ):  # fmt: skip
        assert resumed(odd) is None
    token = {"continuation_token": "t"}
    assert without_token((ASKED, asks)) == ((ASKED,), token)
    joined = Message("user", (*ASKED.content, *asks.content))
    assert without_token((joined,)) == ((ASKED,), token)
    for plain in ((), (ASKED,), (Message("user", ()),), (asks, ASKED)):
        assert without_token(plain) == (plain, {})
    for part in (Foreign("gemini", "continuation_token", {}), Foreign(OWN, "other", {})):
        assert without_token((Message("user", (part,)),))[1] == {}


@rows(
    ("call", "id"),
    [
        (ToolCall("c", "f", "{}"), "c"),
        (ToolCall("c", "f", "{}", extra=Extra(OWN, form={"id": "absent"})), "c"),
        (
            ToolCall(
                CONTEXT.lasting_id("call", "1", "f"), "f", "{}", extra=Extra(OWN, form={"id": "absent"})
            ),
            None,
        ),
        (ToolCall(CONTEXT.lasting_id("call", "1", "f"), "f", "{}"), CONTEXT.lasting_id("call", "1", "f")),
    ],
)
def test_the_id_of_a_call_is_left_out_only_where_it_was(call: ToolCall, id: str | None) -> None:
    (step,), losses = sent(call, role="assistant")
    expected = {"type": "function_call", "name": "f", "arguments": {}, **({"id": id} if id else {})}
    assert (step, losses) == (expected, [])


def test_the_name_of_a_result_is_that_of_its_call_unless_its_client_left_it_out() -> None:
    call = Message("assistant", (ToolCall("c", "f", "{}"),))
    named: list[Any] = []
    for result in (
        ToolResult("c", (Text("x"),)), ToolResult("c", (Text("x"),), name="g"), ToolResult("d", (Text("x"),)),
        ToolResult("c", (Text("x"),), extra=Extra(OWN, form={"result": "list"})),
    ):  # fmt: skip
        body = DIALECT.render_request(Request("m", (call, Message("user", (result,)))), CONTEXT).value
        named.append(body["input"][1].get("name"))
    assert named == ["f", "g", None, None]


@rows(
    ("server", "tool", "losses"),
    [
        (McpServer("s", "u"), {"type": "mcp_server", "name": "s", "url": "u"}, ["$.tools[0] emulated"]),
        (
            McpServer("s", "u", "k", ("a",), deferred=True),
            {
                "type": "mcp_server", "name": "s", "url": "u", "headers": {"Authorization": "Bearer k"},
                "allowed_tools": [{"mode": "auto", "tools": ["a"]}],
            },
            ["$.tools[0] emulated", "$.tools[0].deferred dropped"],
        ),
        (
            McpServer("s", "u", allowed=(), rest=("more",)),
            {"type": "mcp_server", "name": "s", "url": "u", "allowed_tools": [{"mode": "auto", "tools": []}]},
            ["$.tools[0] approximated"],
        ),
        (McpServer("s", "u", approval=True), None, ["$.tools[0] dropped"]),
        (None, None, ["$.tools[0] dropped"]),
    ],
)  # fmt: skip
def test_a_server_of_tools(server: McpServer | None, tool: Any, losses: list[str]) -> None:
    asked = Request("m", (ASKED,), (HostedTool("mcp", Foreign("x", "mcp", {}), server),))
    rendered = DIALECT.render_request(asked, CONTEXT)
    assert rendered.value.get("tools") == (None if tool is None else [tool])
    assert [f"{loss.path} {loss.action}" for loss in rendered.losses] == losses


@rows(
    ("declared", "server"),
    [
        ({}, McpServer("s", "u")),
        ({"headers": {}}, McpServer("s", "u")),
        ({"headers": {"Authorization": "Bearer k"}}, McpServer("s", "u", "k")),
        ({"headers": {"Authorization": "Basic k"}}, McpServer("s", "u", rest=("headers",))),
        ({"headers": {"Authorization": "Bearer k", "x": "y"}}, McpServer("s", "u", rest=("headers",))),
        ({"allowed_tools": ["a", 7, ""]}, McpServer("s", "u", allowed=("a",))),
        ({"allowed_tools": [{"tools": ["a"]}, {"mode": "auto", "tools": ["b", 7]}]}, McpServer("s", "u", allowed=("a", "b"))),
        ({"allowed_tools": []}, McpServer("s", "u")),
        ({"more": 1, "blank": None}, McpServer("s", "u", rest=("more",))),
    ],
)  # fmt: skip
def test_what_a_client_says_of_a_server(declared: dict[str, Any], server: McpServer) -> None:
    tool = {"type": "mcp_server", "name": "s", "url": "u", **declared}
    (read,) = DIALECT.parse_request({"model": "m", "input": "hi", "tools": [tool]}, CONTEXT).tools
    assert read == HostedTool("mcp", Foreign(OWN, "mcp_server", tool), server)


@rows(
    ("kind", "neutral"),
    [
        ("google_search", "web_search"), ("url_context", "web_fetch"), ("code_execution", "code_execution"),
        ("file_search", "file_search"), ("computer_use", "computer"), ("google_maps", "google_maps"),
    ],
)  # fmt: skip
def test_tools_of_google_by_their_neutral_kinds(kind: str, neutral: str) -> None:
    tool = {"type": kind, "exclude_domains": ["a"], "more": 1, "none": None}
    (read,) = DIALECT.parse_request({"model": "m", "input": "hi", "tools": [tool]}, CONTEXT).tools
    assert read == HostedTool(
        neutral, Foreign(OWN, kind, tool), options={"blocked_domains": ["a"]}, untold=("more",)
    )


@rows(
    ("given", "choice"),
    [
        ("auto", ToolChoice("auto")),
        ("validated", ToolChoice("auto", extra=Extra(OWN, {"mode": "validated"}))),
        ("any", ToolChoice("required")),
        ("none", ToolChoice("none")),
        (
            {"allowed_tools": {}},
            ToolChoice("auto", extra=Extra(OWN, form={"shape": "allowed_tools", "mode": ""})),
        ),
        (
            {"allowed_tools": {"mode": "validated", "tools": ["f"]}},
            ToolChoice("auto", ("f",), Extra(OWN, form={"shape": "allowed_tools", "mode": "validated"})),
        ),
    ],
)
def test_what_a_client_says_of_its_choice(given: Any, choice: ToolChoice) -> None:
    body = {"model": "m", "input": "hi", "generation_config": {"tool_choice": given}}
    assert DIALECT.parse_request(body, CONTEXT).tool_choice == choice


@rows(
    ("given", "path"),
    [
        ("some", "$.generation_config.tool_choice"),
        (7, "$.generation_config.tool_choice"),
        ({}, "$.generation_config.tool_choice.allowed_tools"),
        ({"allowed_tools": {"mode": "some"}}, "$.generation_config.tool_choice.allowed_tools.mode"),
        ({"allowed_tools": {"tools": [7]}}, "$.generation_config.tool_choice.allowed_tools.tools[0]"),
    ],
)
def test_a_wrong_choice_is_named(given: Any, path: str) -> None:
    body = {"model": "m", "input": "hi", "generation_config": {"tool_choice": given}}
    with pytest.raises(Exception, match="expected") as fault:
        DIALECT.parse_request(body, CONTEXT)
    assert getattr(fault.value, "path", "") == path
