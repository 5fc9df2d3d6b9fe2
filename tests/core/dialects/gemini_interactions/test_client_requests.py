"""What a client of the Interactions API sends, in neutral terms, and what is wrong with it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import Holder
from wireglot_core.dialects.gemini_interactions import DIALECT
from wireglot_core.dialects.gemini_interactions.stored import STORED
from wireglot_core.dialects.gemini_interactions.surface import SURFACE, find
from wireglot_core.ir.content import (
    Citation,
    Foreign,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import HostedTool, McpServer, OutputFormat, Request, Thinking, Tool, ToolChoice
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline

OWN = "gemini-interactions"
CONTEXT = Context()


def read(**body: Any) -> Request:
    return DIALECT.parse_request({"model": "m", "input": "hi", **body}, CONTEXT)


def turns(*steps: dict[str, Any], context: Context = CONTEXT) -> list[Message]:
    return list(DIALECT.parse_request({"model": "m", "input": list(steps)}, context).messages)


USER = Message("user", (Text("hi"),))
TEXT = {"type": "text", "text": "hi"}


@rows(
    "given",
    [
        "hi",
        TEXT,
        [TEXT],
        [{"type": "user_input", "content": [TEXT]}],
        {"type": "user_input", "content": [TEXT]},
    ],
)
def test_an_input_in_each_of_its_forms_is_one_turn_of_the_user(given):
    (message,) = read(input=given).messages
    assert (message.role, message.content) == (USER.role, USER.content)


def test_the_instruction_stands_first():
    system, _ = read(system_instruction="Be brief.").messages
    assert system == Message("system", (Text("Be brief."),))


def test_each_step_is_a_message():
    found = turns(
        {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "why"}]},
        {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
        {"type": "function_result", "call_id": "c", "name": "f", "result": "18", "is_error": True},
        {"type": "model_output", "content": [TEXT, {"type": "image", "uri": "https://e.com/a.png"}]},
        {"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}},
    )
    assert [message.role for message in found] == ["assistant", "assistant", "user", "assistant", "assistant"]
    thought, call, result, said, search = (message.content for message in found)
    assert thought == (Reasoning("why", Signature("c2ln", Origin(OWN))),)
    assert call == (ToolCall("c", "f", '{"a":1}'),)
    assert isinstance(result[0], ToolResult)
    assert (result[0].call_id, result[0].name, result[0].is_error) == ("c", "f", True)
    assert result[0].content == (Text("18"),)
    assert said == (Text("hi"), Media("image", url="https://e.com/a.png"))
    assert isinstance(search[0], Foreign)
    assert (search[0].dialect, search[0].type) == (OWN, "google_search_call")


def test_a_result_among_the_content_of_a_turn_answers_its_call():
    """As Vercel's AI SDK sends it."""
    result = {"type": "function_result", "call_id": "c", "name": "f", "result": "said"}
    call = {"type": "function_call", "id": "c", "name": "f", "arguments": {}}
    _, message = turns(call, {"type": "user_input", "content": [result, TEXT]})
    answer, text = message.content
    assert isinstance(answer, ToolResult)
    assert (answer.call_id, answer.content) == ("c", (Text("said"),))
    assert isinstance(text, Text)
    with pytest.raises(ClientFault, match=re.escape("$.input[0].content[0].call_id")):
        turns({"type": "user_input", "content": [{"type": "function_result", "result": "said"}]})


def test_offsets_of_citations_are_bytes_on_the_wire():
    note = {"type": "url_citation", "url": "https://e.com", "title": "E", "start_index": 2, "end_index": 4}
    (message,) = turns(
        {"type": "model_output", "content": [{"type": "text", "text": "éé.", "annotations": [note]}]}
    )
    (text,) = message.content
    assert isinstance(text, Text)
    assert text.citations == (Citation("https://e.com", "E", start=1, end=2),)


@pytest.mark.parametrize("holder", ["call", "text"])
def test_a_signature_that_travelled_in_a_thought_returns_to_its_part(holder):
    signature = Signature("c2ln", Origin("gemini"))
    thought = {"type": "thought", "signature": CONTEXT.seal(signature, holder)}
    if holder == "call":
        (message,) = turns(thought, {"type": "function_call", "id": "c", "name": "f", "arguments": {}})
    else:
        (message,) = turns({"type": "model_output", "content": [TEXT]}, thought)
    part: Any = message.content[-1]
    assert part.signature == signature


def test_a_thought_that_another_provider_signed_is_opened():
    signature = Signature("c2ln", Origin("anthropic"))
    holders: tuple[tuple[Holder, bool], ...] = (("reasoning", False), ("redacted", True))
    for holder, redacted in holders:
        (message,) = turns({"type": "thought", "signature": CONTEXT.seal(signature, holder)})
        part: Any = message.content[0]
        assert (part.signature, part.redacted) == (signature, redacted)
    (unsigned,) = turns({"type": "thought", "signature": CONTEXT.seal(signature, "unsigned")})
    assert unsigned.content == (Reasoning(),)


@rows(
    ("config", "choice"),
    [
        ("auto", ToolChoice("auto")),
        ("any", ToolChoice("required")),
        ("none", ToolChoice("none")),
        ({"allowed_tools": {"mode": "any", "tools": ["f"]}}, ToolChoice("required", ("f",))),
        ({"allowed_tools": {"tools": ["f", "g"]}}, ToolChoice("auto", ("f", "g"))),
    ],
)
def test_choices(config, choice):
    found = read(generation_config={"tool_choice": config}).tool_choice
    assert found is not None
    assert (found.mode, found.only) == (choice.mode, choice.only)


def test_settings():
    config = {
        "max_output_tokens": 9,
        "stop_sequences": ["x"],
        "seed": 1,
        "temperature": 0.5,
        "top_p": 0.25,
        "thinking_level": "xhigh",
        "thinking_summaries": "none",
    }
    request = read(generation_config=config, labels={"a": "b"}, service_tier="flex", stream=True)
    assert (request.max_tokens, request.stop, request.stream) == (9, ("x",), True)
    assert (request.sampling.seed, request.sampling.temperature, request.sampling.top_p) == (1, 0.5, 0.25)
    assert request.thinking == Thinking(effort="xhigh", display="omitted")
    assert (request.metadata, request.service_tier) == ({"a": "b"}, "flex")


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@rows(
    ("fields", "output"),
    [
        (
            {"response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA}},
            OutputFormat("schema", SCHEMA),
        ),
        ({"response_format": [{"type": "text", "mime_type": "application/json"}]}, OutputFormat("json")),
        ({"response_format": {"type": "text"}}, OutputFormat("text")),
        ({"response_format": SCHEMA}, OutputFormat("schema", SCHEMA)),
        ({"response_mime_type": "application/json"}, OutputFormat("json")),
        ({"response_format": {"type": "image"}}, None),
        ({"response_format": [{"type": "text"}, {"type": "image"}]}, None),
    ],
)
def test_formats(fields, output):
    found = read(**fields).output
    if output is None:
        assert found is None
    else:
        assert found is not None
        assert (found.kind, found.schema) == (output.kind, output.schema)


def test_tools():
    function, search, server = read(
        tools=[
            {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA},
            {"type": "google_search"},
            {
                "type": "mcp_server",
                "name": "docs",
                "url": "https://e.com",
                "headers": {"Authorization": "Bearer k"},
            },
        ]
    ).tools
    assert function == Tool("f", "d", SCHEMA)
    assert isinstance(search, HostedTool)
    assert search.kind == "web_search"
    assert isinstance(server, HostedTool)
    assert server.server == McpServer("docs", "https://e.com", "k")


@rows(
    ("allowed", "names", "rest"),
    [
        ([{"mode": "auto", "tools": ["a"]}], ("a",), ()),
        ([{"tools": ["a"]}, {"tools": ["b"]}], ("a", "b"), ()),
        ([{"mode": "any", "tools": ["a"]}], ("a",), ("allowed_tools.mode",)),
        ([{"mode": "none", "tools": ["a"]}, {"tools": ["b"]}], ("b",), ("allowed_tools.mode",)),
    ],
)
def test_a_mode_beside_the_tools_of_a_server_is_reported(allowed, names, rest):
    """Other dialects list the tools of a server without saying whether one must be called."""
    declared = {"type": "mcp_server", "name": "d", "url": "https://e.com", "allowed_tools": allowed}
    (tool,) = read(tools=[declared]).tools
    assert isinstance(tool, HostedTool)
    assert tool.server == McpServer("d", "https://e.com", allowed=names, rest=rest)


@rows(
    ("body", "path"),
    [
        ({"input": None}, "$.input"),
        ({"input": 5}, "$.input"),
        ({"input": []}, "$.input"),
        ({"input": [TEXT, {"type": "user_input"}]}, "$.input[1]"),
        ({"input": [{"type": "user_input"}, TEXT]}, "$.input[1]"),
        ({"input": [{"content": []}]}, "$.input[0].type"),
        ({"input": [{"type": "user_input", "content": [{"type": "image"}]}]}, "$.input[0].content[0]"),
        ({"input": [{"type": "function_call", "id": "c", "arguments": {}}]}, "$.input[0].name"),
        (
            {"input": [{"type": "function_call", "id": "c", "name": "f", "arguments": 5}]},
            "$.input[0].arguments",
        ),
        ({"input": [{"type": "function_result", "result": "x"}]}, "$.input[0].call_id"),
        ({"input": [{"type": "function_result", "call_id": "c"}]}, "$.input[0].result"),
        ({"input": [{"type": "thought", "summary": "x"}]}, "$.input[0].summary"),
        ({"system_instruction": ["x"]}, "$.system_instruction"),
        ({"generation_config": {"tool_choice": "some"}}, "$.generation_config.tool_choice"),
        ({"generation_config": {"max_output_tokens": "x"}}, "$.generation_config.max_output_tokens"),
        ({"labels": {"a": 1}}, "$.labels.a"),
        ({"tools": [{"name": "f"}]}, "$.tools[0].type"),
    ],
)
def test_what_is_wrong_is_named(body, path):
    with pytest.raises(ClientFault) as fault:
        read(**body)
    assert fault.value.path == path


def test_a_request_that_goes_on_needs_no_input():
    assert read(input=None, previous_interaction_id="v1_a").messages == ()


# --- state


class Sent:
    """A body as far as anybody has looked at it."""

    def __init__(self, **body: Any) -> None:
        self.body = encode(body)
        self.outline = Outline(self.body)
        self._document = body

    def document(self) -> dict[str, Any]:
        return self._document


def test_what_a_request_says_of_state():
    options = STORED.options(Sent(previous_interaction_id="v1_a", background=True, store=True), "conv")
    assert (options.previous, options.holding, options.background, options.store) == ("v1_a", "", True, True)
    plain = STORED.options(Sent(), "conv")
    assert (plain.previous, plain.holding, plain.stateful) == ("", "conv", True)


@rows("field", ["store", "background", "previous_interaction_id"])
def test_state_of_another_type_is_refused(field):
    with pytest.raises(BadField, match=field):
        STORED.options(Sent(**{field: 5}), "")


def test_a_page_shows_the_input_before_the_answer():
    given = STORED.whole_items("hi", lambda prefix, number: "")
    assert given == [{"type": "user_input", "content": [TEXT]}]
    said = {"type": "model_output", "content": []}
    body = {"id": "v1_a", "steps": [said]}
    assert STORED.shown(body, given, {}) == {"id": "v1_a", "steps": [*given, said]}
    assert STORED.shown(body, given, {"include_input": "true"})["input"] == given
    assert STORED.deleted("v1_a") == {}


def test_events_are_numbered_by_their_ids():
    events = STORED.events
    event = events.event("interaction.created", 3, {"interaction": {}})
    assert (events.number(event), events.kind(event)) == (3, "interaction.created")
    assert events.last({"status": "failed", "steps": []}) == (
        "interaction.completed",
        {"interaction": {"status": "failed"}},
    )
    failed = STORED.ended({"id": "v1_a"}, "failed", "it broke")
    assert failed["errors"] == [{"code": "api_error", "message": "it broke"}]
    assert "errors" not in STORED.ended({"id": "v1_a"}, "cancelled", "it broke")


@rows(
    ("method", "tail", "found"),
    [
        ("POST", "", ("generate", "", ())),
        ("GET", "/v1_a", ("state", "responses.get", ("v1_a",))),
        ("DELETE", "/v1_a", ("state", "responses.delete", ("v1_a",))),
        ("POST", "/v1_a/cancel", ("state", "responses.cancel", ("v1_a",))),
        ("GET", "", None),
        ("PUT", "/v1_a", None),
    ],
)
def test_vertex_has_longer_paths(method, tail, found):
    match = find(method, f"/v1beta1/projects/p/locations/l/interactions{tail}")
    assert (match and (match.operation, match.verb, match.ids)) == found


def test_an_agent_is_routed_by_its_name():
    assert SURFACE.client.glance is not None
    assert SURFACE.client.glance(Sent(agent="deep-research", input="x")).model == "deep-research"
    assert SURFACE.client.glance(Sent(agent="deep-research", model="m", stream=True)).model == "m"
    with pytest.raises(BadField, match="agent"):
        SURFACE.client.glance(Sent(agent=5, input="x"))
    assert SURFACE.client.asked_output(Sent(generation_config={"max_output_tokens": 7})) == 7
