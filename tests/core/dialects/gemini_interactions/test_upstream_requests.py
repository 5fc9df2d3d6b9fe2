"""What is sent to an upstream that speaks Interactions."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    HostedChoice,
    HostedTool,
    McpServer,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.translate import translate_request

OWN = "gemini-interactions"
CODEC = dialect(OWN)
PLAIN = Context()
ASKED = Message("user", (Text("hi"),))
ASKED_STEP = {"type": "user_input", "content": [{"type": "text", "text": "hi"}]}


def sent(*messages: Message, context: Context = PLAIN, **more: Any) -> tuple[dict[str, Any], list[str]]:
    rendered = CODEC.render_request(Request("m", messages or (ASKED,), **more), context)
    return rendered.value, [f"{loss.path} {loss.feature} {loss.action}" for loss in rendered.losses]


def steps_of(*parts: Part, role: Any = "assistant", context: Context = PLAIN) -> tuple[list[Any], list[str]]:
    body, losses = sent(Message(role, parts), context=context)
    return body["input"], losses


def test_a_request_of_another_dialect_is_not_stored_at_google():
    body, losses = sent(stream=True)
    assert body == {"model": "m", "input": [ASKED_STEP], "stream": True, "store": False}
    assert losses == []


def test_a_client_of_the_dialect_decides_about_storage_itself():
    for given in ({}, {"store": True}, {"store": False}, {"store": True, "background": False}):
        body = {"model": "m", "input": "hi", **given}
        assert CODEC.render_request(CODEC.parse_request(body, Context()), Context()).value == body


# Signatures


def signed(data: str = "U0lH", **origin: str) -> Signature:
    return Signature(data, Origin(**{"dialect": OWN, **origin}))


def test_a_thought_goes_back_to_the_one_who_signed_it():
    steps, losses = steps_of(Reasoning("hm", signed()), ToolCall("c1", "f", '{"a":1}'))
    assert steps == [
        {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "U0lH"},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
    ]
    assert losses == []


@rows(
    ("thought", "losses"),
    [
        (Reasoning("hm"), ["reasoning.text dropped"]),
        (Reasoning("hm", extra=Extra(OWN, {}, {"signature": ""})), ["reasoning.text dropped"]),
        (Reasoning(""), []),
        (
            Reasoning("hm", signed(dialect="gemini")),
            ["reasoning.signature dropped", "reasoning.text dropped"],
        ),
        (Reasoning("hm", signed(model="other")), ["reasoning.signature dropped", "reasoning.text dropped"]),
        (Reasoning("", signed(dialect="anthropic"), redacted=True), ["reasoning.redacted dropped"]),
    ],
)
def test_no_other_thought_is_sent(thought, losses):
    steps, found = steps_of(thought, Text("so"), context=Context(model="gemini-3.5-flash"))
    assert [step["type"] for step in steps] == ["model_output"]
    assert [loss.partition(" ")[2] for loss in found] == losses


def test_a_signature_on_a_part_is_in_a_thought_before_it():
    """generateContent signs the call itself. A client that keeps signatures there sends this one back so."""
    steps, losses = steps_of(
        Text("so", signature=signed("QQ==")), ToolCall("c1", "f", "{}", signature=signed("Qg=="))
    )
    assert [step.get("signature", step["type"]) for step in steps] == [
        "QQ==",
        "model_output",
        "Qg==",
        "function_call",
    ]
    assert losses == []


def test_the_signature_of_another_surface_of_google_is_not_sent():
    steps, losses = steps_of(ToolCall("c1", "f", "{}", signature=signed(dialect="gemini")))
    assert [step["type"] for step in steps] == ["function_call"]
    assert losses == ["$.messages[0].content[0].signature reasoning.signature dropped"]


# Turns


def test_system_texts_before_all_others_are_one_string():
    body, losses = sent(
        Message("system", (Text("Be brief."), Text("Be kind."))), Message("system", (Text("Now."),)), ASKED
    )
    assert body["system_instruction"] == "Be brief.\n\nBe kind.\n\nNow."
    assert losses == [
        "$.messages[0].content[1] system.position approximated",
        "$.messages[1].content[0] system.position approximated",
    ]


def test_a_system_text_on_the_way_is_a_marked_text_of_the_user():
    body, losses = sent(ASKED, Message("system", (Text("Hurry."),)))
    text = "<system-reminder>\nHurry.\n</system-reminder>"
    assert body["input"][1] == {"type": "user_input", "content": [{"type": "text", "text": text}]}
    assert losses == ["$.messages[1] system.position approximated"]


def test_results_come_before_what_the_user_says():
    body, losses = sent(
        ASKED,
        Message("assistant", (ToolCall("c1", "f", "{}"), ToolCall("c2", "g", ""))),
        Message(
            "user", (Text("go on"), ToolResult("c1", (Text("1"),)), ToolResult("c2", (Text("2"),), True))
        ),
    )
    assert body["input"][1:] == [
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {}},
        {"type": "function_call", "id": "c2", "name": "g", "arguments": {}},
        {
            "type": "function_result",
            "call_id": "c1",
            "name": "f",
            "result": [{"type": "text", "text": "1"}],
        },
        {
            "type": "function_result",
            "call_id": "c2",
            "name": "g",
            "result": [{"type": "text", "text": "2"}],
            "is_error": True,
        },
        {"type": "user_input", "content": [{"type": "text", "text": "go on"}]},
    ]
    assert losses == ["$.messages[2].content[1] content.position approximated"]


def test_there_is_always_something_to_answer():
    body, losses = sent(Message("system", (Text("Be brief."),)))
    assert body["input"] == [{"type": "user_input", "content": [{"type": "text", "text": "Continue."}]}]
    assert losses == ["$.messages content.position invented"]


def test_a_call_without_an_id_gets_one():
    steps, losses = steps_of(ToolCall("", "f", "{}"))
    assert steps[0]["id"].startswith("call_")
    assert losses == ["$.messages[0].content[0].id tool_call.id invented"]


@rows(
    ("part", "content", "losses"),
    [
        (
            Media("image", "image/png", data="QQ=="),
            {"type": "image", "data": "QQ==", "mime_type": "image/png"},
            [],
        ),
        (
            Media("document", url="https://x.example/a.pdf"),
            {"type": "document", "uri": "https://x.example/a.pdf", "mime_type": "application/pdf"},
            ["$.messages[0].content[0].mime document invented"],
        ),
        (
            Media("video", url="https://x.example/a?b=c.txt"),
            {"type": "video", "uri": "https://x.example/a?b=c.txt", "mime_type": "video/mp4"},
            ["$.messages[0].content[0].mime video invented"],
        ),
        (
            Media("image", "image/png", data="QQ==", detail="original", cache=CacheMark()),
            {"type": "image", "data": "QQ==", "mime_type": "image/png", "resolution": "ultra_high"},
            ["$.messages[0].content[0].cache cache_marker dropped"],
        ),
        (
            Media("document", "text/plain", text="inside", name="a.txt"),
            {"type": "text", "text": "a.txt\n\ninside"},
            ["$.messages[0].content[0] document approximated"],
        ),
    ],
)
def test_media_are_data_or_an_address(part, content, losses):
    steps, found = steps_of(part, role="user")
    assert steps == [{"type": "user_input", "content": [content]}]
    assert found == losses


def test_a_citation_counts_bytes():
    cited = Citation("https://x.example/", "X", start=8, end=14)
    steps, losses = steps_of(Text("Grüezi: Zürich!", citations=(cited,)))
    (content,) = steps[0]["content"]
    assert content["annotations"] == [
        {"type": "url_citation", "url": "https://x.example/", "title": "X", "start_index": 9, "end_index": 16}
    ]
    assert losses == []


# Settings


def config(**more: Any) -> tuple[Any, list[str]]:
    body, losses = sent(**more)
    return body.get("generation_config"), losses


@rows(
    ("thinking", "expected", "losses"),
    [
        (Thinking(effort="xhigh"), {"thinking_level": "xhigh"}, []),
        (
            Thinking(effort="max"),
            {"thinking_level": "xhigh"},
            ["$.thinking.effort thinking.effort approximated"],
        ),
        (
            Thinking(effort="none"),
            {"thinking_level": "minimal"},
            ["$.thinking.mode thinking.mode approximated"],
        ),
        (
            Thinking("on", "low", 4096, "summary"),
            {"thinking_level": "low", "thinking_summaries": "auto"},
            ["$.thinking.mode thinking.mode emulated", "$.thinking.budget thinking.budget dropped"],
        ),
        (Thinking(display="omitted"), {"thinking_summaries": "none"}, []),
        (Thinking("auto"), None, ["$.thinking.mode thinking.mode dropped"]),
    ],
)
def test_thinking_is_a_level(thinking, expected, losses):
    assert config(thinking=thinking) == (expected, losses)


def test_sampling_that_has_no_field_is_reported():
    given = Sampling(temperature=0.5, top_p=0.9, top_k=5, seed=7, frequency_penalty=1, candidates=2)
    found, losses = config(sampling=given, max_tokens=9, stop=("END",))
    assert found == {
        "max_output_tokens": 9,
        "stop_sequences": ["END"],
        "seed": 7,
        "temperature": 0.5,
        "top_p": 0.9,
    }
    assert sorted(loss.split()[1] for loss in losses) == [
        "candidates",
        "sampling.frequency_penalty",
        "sampling.top_k",
    ]


@rows(
    ("choice", "expected", "losses"),
    [
        (ToolChoice("auto"), "auto", []),
        (ToolChoice("required"), "any", []),
        (ToolChoice("none"), "none", []),
        (ToolChoice("required", ("f",)), {"allowed_tools": {"mode": "any", "tools": ["f"]}}, []),
        (ToolChoice("auto", ("f",)), {"allowed_tools": {"mode": "validated", "tools": ["f"]}}, []),
        (
            ToolChoice("required", hosted=(HostedChoice("web_search"),)),
            "none",
            ["$.tool_choice tool_choice approximated"],
        ),
        (
            ToolChoice("auto", ("f",), hosted=(HostedChoice("web_search"),)),
            {"allowed_tools": {"mode": "validated", "tools": ["f"]}},
            ["$.tool_choice tool_choice approximated"],
        ),
    ],
)
def test_a_choice_is_a_mode_or_some_functions(choice, expected, losses):
    found, reported = config(tools=(Tool("f"),), tool_choice=choice)
    assert (found["tool_choice"], reported) == (expected, losses)


@rows(
    ("output", "expected", "losses"),
    [
        (OutputFormat("text"), None, []),
        (OutputFormat("json"), {"type": "text", "mime_type": "application/json"}, []),
        (
            OutputFormat("schema", {"type": "object"}, "person", strict=True),
            {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}},
            ["$.output.strict output_format.strict dropped", "$.output.name output_format approximated"],
        ),
    ],
)
def test_an_output_format_is_one_of_text(output, expected, losses):
    body, found = sent(output=output)
    assert (body.get("response_format"), found) == (expected, losses)


def hosted(kind: str, **more: Any) -> HostedTool:
    return HostedTool(kind, Foreign("anthropic", f"{kind}_20260101", {"type": f"{kind}_20260101"}), **more)


def test_tools_that_google_runs_have_googles_names():
    server = McpServer("docs", "https://mcp.example/", "t0ken", allowed=("read",))
    body, losses = sent(
        tools=(
            Tool("f", "does f", {"type": "object"}, strict=True),
            hosted("web_search", options={"max_uses": 3}),
            hosted("web_fetch"),
            hosted("code_execution"),
            hosted("mcp", server=server),
            hosted("computer"),
        )
    )
    assert body["tools"] == [
        {"type": "function", "name": "f", "description": "does f", "parameters": {"type": "object"}},
        {"type": "google_search"},
        {"type": "url_context"},
        {"type": "code_execution"},
        {
            "type": "mcp_server",
            "name": "docs",
            "url": "https://mcp.example/",
            "headers": {"Authorization": "Bearer t0ken"},
            "allowed_tools": [{"mode": "auto", "tools": ["read"]}],
        },
    ]
    assert losses == [
        "$.tools[0].strict tool.strict dropped",
        "$.tools[1] hosted_tool approximated",
        "$.tools[1].max_uses hosted_tool approximated",
        "$.tools[2] hosted_tool approximated",
        "$.tools[3] hosted_tool approximated",
        "$.tools[4] hosted_tool emulated",
        "$.tools[5] hosted_tool dropped",
    ]


# Limits of the catalog


def fitted(model: str, **more: Any) -> tuple[dict[str, Any], set[str]]:
    body = {"model": "x", "messages": [{"role": "user", "content": "hi"}], **more}
    done = translate_request(
        body, source="openai-chat", target="gemini-interactions", model=model, provider="gemini"
    )
    return done.value, {loss.feature for loss in done.losses}


def test_gemini_3_has_no_temperature_here_and_older_models_do():
    for model, kept in (
        ("gemini-3.5-flash", False),
        ("gemini-4-hydrogen", False),
        ("gemini-2.5-flash", True),
    ):
        body, losses = fitted(model, temperature=0.3, top_p=0.5)
        assert ("temperature" in body.get("generation_config", {})) is kept
        assert ({"sampling.temperature", "sampling.top_p"} <= losses) is not kept


def test_schemas_have_the_keywords_that_google_honours():
    parameters = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 2},
            "b": {"type": "array", "items": {}, "maxItems": 3},
        },
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    body, losses = fitted("gemini-3.5-flash", tools=[tool])
    (declared,) = body["tools"]
    properties = declared["parameters"]["properties"]
    assert "minLength" not in properties["a"]
    assert properties["b"]["maxItems"] == 3
    assert "tool.schema.hint" in losses


def test_calls_keep_their_ids_for_models_that_pair_by_place_elsewhere():
    call = {"id": "call_7", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_7", "content": "1"},
    ]
    body, _ = fitted("gemini-2.5-flash", messages=messages)
    assert [step.get("id", step.get("call_id")) for step in body["input"][1:]] == ["call_7", "call_7"]


@rows("more", [{}, {"model": None}], ids=["absent", "null"])
def test_an_agent_takes_the_place_of_a_model(more):
    """Also where a request is written again: its route names the agent."""
    asked = CODEC.parse_request({"agent": "research", "input": "hi", **more}, Context())
    body = CODEC.render_request(replace(asked, model="deep-research-1"), Context()).value
    assert body == {"agent": "deep-research-1", "input": "hi", **more}
