"""Requests: what each field means, and that every spelling comes back (groups A, F, G, H)."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.dialects.anthropic.support import CONTEXT, again, ask, parse
from tests.tiers import rows
from wireglot_core.cache.memory import Memory
from wireglot_core.ir.content import CacheMark, Citation, Foreign, Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import HostedTool, OutputFormat, Sampling, Thinking, Tool, ToolChoice
from wireglot_core.translate import translate_request
from wireglot_core.wire.json import encode


def parts(*blocks, role="user"):
    return parse(ask(messages=[{"role": role, "content": list(blocks)}])).messages[0].content


def test_the_reference_request_is_understood():
    """R-A-01..12: the TodoWrite sample with Kimi's model and ids."""
    schema = {
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string", "minLength": 1},
                        "status": {"enum": ["pending", "in_progress", "completed"]},
                    },
                    "required": ["content", "status"],
                },
            }
        },
        "required": ["todos"],
    }
    body = {
        "model": "kimi-k2-thinking-turbo",
        "max_tokens": 32000,
        "stream": True,
        "system": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
        "tools": [{"name": "TodoWrite", "description": "Keeps a list.", "input_schema": schema}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Plan it."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "TodoWrite_15", "name": "TodoWrite", "input": {"todos": []}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "TodoWrite_15", "content": "ok"}],
            },
        ],
    }
    request = parse(body)
    assert (request.model, request.max_tokens, request.stream) == ("kimi-k2-thinking-turbo", 32000, True)
    system, _, assistant, result = request.messages
    assert system.role == "system"
    assert system.content == (Text("One."), Text("Two."))
    assert assistant.content[1] == ToolCall("TodoWrite_15", "TodoWrite", '{"todos":[]}')
    assert result.content[0].call_id == "TodoWrite_15"
    assert request.tools == (Tool("TodoWrite", "Keeps a list.", schema),)
    assert again(body) == body


def test_the_string_shorthands_are_legal():
    """C32"""
    body = ask(
        system="Be brief.", messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}]
    )
    request = parse(body)
    assert [message.content for message in request.messages] == [
        (Text("Be brief."),),
        (Text("hi"),),
        (Text(""),),
    ]
    assert again(body) == body


@rows(
    "changes",
    [
        {"system": []},
        {"system": ""},
        {"system": None, "stop_sequences": None, "tools": [], "metadata": {}},
        {"metadata": {"user_id": "u", "x": 1}},
        {"metadata": {"user_id": None}},
        {"service_tier": "auto"},
        {"service_tier": "standard_only", "speed": "fast"},
        {"service_tier": "standard"},
        {"speed": "fast"},
        {"speed": "standard"},
        {"stop_sequences": []},
        {"stop_sequences": ["END"]},
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"cache_control": {"type": "ephemeral", "scope": "global", "ttl": "2h"}},
        {"container": {"id": "c", "skills": []}, "context_management": {"edits": []}, "x_new": [1]},
        {"temperature": 1.5, "top_p": 0.9, "top_k": 5},
        {"temperature": 0, "top_p": None},
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "between_tools"}},
        {"thinking": {"type": "adaptive", "display": "updates", "block_binding": {"a": 1}}},
        {"thinking": {"type": "later", "x": 1}},
        {"thinking": {}},
        {"output_config": {}},
        {"output_config": {"effort": "ultra", "task_budget": {"type": "tokens", "total": 9}}},
        {"output_config": {"effort": None, "format": None}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}, "x": 1}}},
        {"output_config": {"format": {"type": "later"}}},
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
        {"output_format": {"type": "later"}},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        {"tool_choice": {"type": "tool", "name": "f", "x": 1}},
        {"tool_choice": {"type": "none"}},
        {"tool_choice": {"type": "later", "name": "f"}},
        {"messages": [{"role": "user", "content": []}]},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"role": "system", "content": "first"}, {"role": "user", "content": "hi", "x": 1}]},
    ],
)
def test_every_spelling_of_a_setting_comes_back(changes):
    assert again(ask(**changes)) == ask(**changes)


@rows(
    "block",
    [
        {"type": "text", "text": ""},
        {"type": "text", "text": "a", "citations": []},
        {"type": "text", "text": "a", "citations": None, "cache_control": None},
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "5m"}, "x": {"y": 1}},
        {
            "type": "text",
            "text": "a",
            "citations": [{"type": "page_location", "cited_text": "b", "document_index": 0}],
        },
        {
            "type": "text",
            "text": "a",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": "https://example.com",
                    "title": None,
                    "cited_text": "b",
                    "encrypted_index": "E",
                }
            ],
        },
        {"type": "image", "source": {"type": "base64", "media_type": "image/heic", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png", "x": None}},
        {
            "type": "image",
            "source": {"type": "file", "file_id": "file_1", "x": 1},
            "transformations": {"a": "b"},
        },
        {"type": "image", "source": {"type": "later", "x": 1}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
            "title": "t",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "words"},
            "context": "c",
        },
        {
            "type": "document",
            "source": {"type": "content", "content": "words"},
            "citations": {"enabled": True},
        },
        {
            "type": "document",
            "source": {"type": "content", "content": [{"type": "text", "text": "a"}]},
            "title": None,
        },
        {"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {}}]}},
        {"type": "tool_result", "tool_use_id": "a"},
        {"type": "tool_result", "tool_use_id": "a", "content": ""},
        {"type": "tool_result", "tool_use_id": "a", "content": []},
        {"type": "tool_result", "tool_use_id": "a", "content": None, "is_error": False},
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "t"}],
            "is_error": True,
        },
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "tool_reference", "tool_name": "f"}],
        },
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        {"type": "tool_use", "id": "a", "name": "f", "input": None},
        {"type": "tool_use", "id": "a", "name": "f"},
        {
            "type": "tool_use",
            "id": "a",
            "name": "f",
            "input": {"n": 12345678901234567890, "f": 1.0},
            "caller": {"type": "direct"},
        },
        {"type": "tool_use", "id": "a", "name": "f", "input": {"_raw": "oops"}, "toolset_name": "computer"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"_raw": '{"a":1}', "_parse_error": "why"}},
        {"type": "redacted_thinking", "data": "opaque=="},
        {"type": "thinking", "thinking": "", "signature": "S"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "container_upload", "file_id": "f"},
        {"type": "later_than_us", "anything": [1, None]},
    ],
)
def test_every_block_comes_back(block):
    body = ask(messages=[{"role": "user", "content": [block]}])
    assert again(body) == body


@rows(
    "tool",
    [
        {"name": "f"},
        {"name": "f", "input_schema": {}},
        {"name": "f", "input_schema": {"type": "object"}, "description": ""},
        {"name": "f", "input_schema": None, "description": None},
        {
            "type": "custom",
            "name": "f",
            "input_schema": {"type": "object"},
            "strict": False,
            "defer_loading": False,
        },
        {
            "name": "f",
            "input_schema": {"type": "object"},
            "strict": True,
            "defer_loading": True,
            "input_examples": [{}],
        },
        {
            "type": "web_search_20260318",
            "name": "web_search",
            "max_uses": 3,
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "computer_toolset_20260801", "display_width_px": 1},
    ],
)
def test_every_tool_comes_back(tool):
    assert again(ask(tools=[tool])) == ask(tools=[tool])


def test_hosted_tools_have_shared_names():
    tools = [
        {"type": kind}
        for kind in (
            "web_search_20250305",
            "web_fetch_20260318",
            "code_execution_20260521",
            "advisor_20260301",
        )
    ]
    found = parse(
        ask(tools=[*tools, {"type": "tool_search_tool_bm25_20251119"}, {"type": "mcp_toolset"}])
    ).tools
    assert all(isinstance(tool, HostedTool) for tool in found)
    kinds = [tool.kind for tool in found if isinstance(tool, HostedTool)]
    assert kinds == [
        "web_search",
        "web_fetch",
        "code_execution",
        "advisor_20260301",
        "tool_search",
        "mcp",
    ]


def test_the_tool_choice_and_parallel_calls_stand_in_one_object():
    """R-DB-07"""
    request = parse(ask(tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True}))
    assert (request.tool_choice, request.parallel_tools) == (ToolChoice("required", ("f",)), False)
    assert parse(ask(tool_choice={"type": "any"})).tool_choice == ToolChoice("required")


def test_settings_have_their_neutral_names():
    request = parse(
        ask(
            thinking={"type": "enabled", "budget_tokens": 2048, "display": "omitted"},
            output_config={"effort": "max", "format": {"type": "json_schema", "schema": {"type": "object"}}},
            metadata={"user_id": "u"},
            service_tier="standard_only",
            cache_control={"type": "ephemeral"},
            temperature=0.5,
            stop_sequences=["END"],
        )
    )
    assert request.thinking == Thinking("on", "max", 2048, "omitted")
    assert request.output == OutputFormat("schema", {"type": "object"}, strict=True)
    assert (request.user, request.service_tier, request.stop) == ("u", "standard", ("END",))
    assert request.sampling == Sampling(temperature=0.5)
    assert request.cache == CacheMark()


def test_media_keep_their_bytes_as_text():
    image, document, link = parts(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "words"},
            "title": "t",
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    )
    assert image == Media("image", "image/png", data="AA==")
    assert document == Media("document", "text/plain", text="words", name="t")
    assert link == Media("image", url="https://example.com/a.png")


def test_a_document_of_text_blocks_reads_as_a_text():
    (document,) = parts(
        {
            "type": "document",
            "source": {
                "type": "content",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
        }
    )
    assert isinstance(document, Media)
    assert document.text == "a\nb"


def test_results_hold_text_media_and_what_only_this_dialect_has():
    """R-DB-14"""
    (result,) = parts(
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "is_error": True,
            "content": [
                {"type": "text", "text": "t"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                {"type": "search_result", "source": "s"},
            ],
        }
    )
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert [type(part) for part in result.content] == [Text, Media, Foreign]


def test_web_citations_are_shared_and_others_are_native():
    web = {
        "type": "web_search_result_location",
        "url": "u",
        "title": "t",
        "cited_text": "q",
        "encrypted_index": "E",
    }
    page = {"type": "page_location", "cited_text": "q", "document_index": 0}
    (text,) = parts({"type": "text", "text": "a", "citations": [web, page]}, role="assistant")
    assert isinstance(text, Text)
    first, second = text.citations
    assert (first.url, first.title, first.quote) == ("u", "t", "q")
    assert second == Citation(native=Foreign("anthropic", "page_location", page))


def test_system_text_in_the_middle_keeps_its_place():
    body = ask(
        messages=[
            {"role": "user", "content": "a"},
            {"role": "system", "content": "b"},
            {"role": "assistant", "content": "c"},
        ]
    )
    assert [message.role for message in parse(body).messages] == ["user", "system", "assistant"]
    assert again(body) == body


def test_arguments_we_wrapped_come_back_as_the_model_wrote_them():
    """C10"""
    (call,) = parts(
        {"type": "tool_use", "id": "a", "name": "f", "input": {"_raw": "{oops", "_parse_error": "why"}},
        role="assistant",
    )
    assert isinstance(call, ToolCall)
    assert call.arguments == "{oops"


def test_a_call_without_an_id_gets_the_same_one_every_time():
    """R-DB-01, C40"""
    body = ask(
        messages=[{"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}] * 2}]
    )
    one, two = parse(body).messages[0].content
    assert isinstance(one, ToolCall)
    assert isinstance(two, ToolCall)
    assert one.id != two.id
    assert parse(body).messages[0].content == (one, two)


@rows(
    ("changes", "path", "expected"),
    [
        ({"messages": {}}, "$.messages", "an array"),
        ({"messages": [1]}, "$.messages[0]", "an object"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "$.messages[0].role", "one of user"),
        ({"messages": [{"role": "user"}]}, "$.messages[0].content", "a string or an array"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "$.messages[0].content[0]", "an object"),
        (
            {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
            "$.messages[0].content[0].type",
            "a string",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]},
            "$.messages[0].content[0].text",
            "a string",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_use", "name": "f", "input": "x"}]}]},
            "$.messages[0].content[0].input",
            "an object",
        ),
        ({"max_tokens": -1}, "$.max_tokens", "at least 0"),
        ({"max_tokens": "9"}, "$.max_tokens", "an integer"),
        ({"stream": "yes"}, "$.stream", "a boolean"),
        ({"system": 1}, "$.system", "a string or an array"),
        ({"tools": [{"name": "f", "input_schema": True}]}, "$.tools[0].input_schema", "an object"),
        ({"stop_sequences": [1]}, "$.stop_sequences[0]", "a string"),
        ({"thinking": "on"}, "$.thinking", "an object"),
    ],
)
def test_what_makes_no_sense_is_named_by_its_path(changes, path, expected):
    with pytest.raises(ClientFault) as caught:
        parse(ask(**changes))
    assert caught.value.path == path
    assert expected in caught.value.message


def test_a_leading_system_message_of_ours_is_the_top_level_system():
    assert parse(ask(system="x")).messages[0] == Message(
        "system", (Text("x"),), extra=parse(ask(system="x")).messages[0].extra
    )


def test_a_toolset_that_came_before_is_of_the_server_that_this_request_names():
    """What was made of the same tools is remembered; where their server is stands elsewhere."""
    memory = Memory(1_000_000)
    tools = memory.decode(b'[{"type":"mcp_toolset","mcp_server_name":"a"}]')

    def read(url: str) -> object:
        servers = [{"type": "url", "name": "a", "url": url}]
        request = parse({**ask(), "mcp_servers": servers, "tools": tools}, replace(CONTEXT, memory=memory))
        (tool,) = request.tools
        assert isinstance(tool, HostedTool)
        assert tool.server is not None
        return tool.server.url

    assert read("https://one.example.org") == "https://one.example.org"
    assert read("https://two.example.org") == "https://two.example.org"


def test_tools_that_came_before_are_not_read_again():
    memory = Memory(1_000_000)
    tools = memory.decode(b'[{"name":"f","description":"d","input_schema":{"type":"object"}}]')
    context = replace(CONTEXT, memory=memory)
    first = parse({**ask(), "tools": tools}, context)
    assert parse({**ask(), "tools": tools}, context).tools is first.tools


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_a_note_to_anthropics_accounts_is_read_by_no_other_model(target: Any) -> None:
    """Claude Code's first system text is a header; to another model it would be an instruction."""
    note = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.326.566; cc_entrypoint=cli;"}
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [note, {"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": "hi"}],
    }
    sent = translate_request(body, source="anthropic", target=target)
    assert b"cc_version" not in encode(sent.value)
    assert b"Be brief." in encode(sent.value)
    (loss,) = [loss for loss in sent.losses if loss.path == "$.system[0]"]
    assert (loss.feature, loss.action, loss.grade) == ("metadata", "dropped", "harmless")
    assert translate_request(body, source="anthropic", target="anthropic").value == body
    alone = {**body, "system": [note]}
    assert b"cc_version" not in encode(translate_request(alone, source="anthropic", target=target).value)
    turns = [{"role": "user", "content": "hi"}]
    later = {"role": "system", "content": [note, {"type": "text", "text": "Be kind."}]}
    after = {
        **body,
        "system": [{"type": "text", "text": "Be brief."}, note],
        "messages": [*turns, later],
    }
    sent = translate_request(after, source="anthropic", target=target)
    assert b"cc_version" not in encode(sent.value)
    assert b"Be kind." in encode(sent.value)
    assert translate_request(after, source="anthropic", target="anthropic").value == after
    as_texts = {
        **body,
        "system": note["text"],
        "messages": [*turns, {"role": "system", "content": note["text"]}],
    }
    sent = translate_request(as_texts, source="anthropic", target=target)
    assert b"cc_version" not in encode(sent.value)
    assert translate_request(as_texts, source="anthropic", target="anthropic").value == as_texts
    with_more = {**body, "system": f"{note['text']}\nBe brief."}
    assert b"Be brief." in encode(translate_request(with_more, source="anthropic", target=target).value)
