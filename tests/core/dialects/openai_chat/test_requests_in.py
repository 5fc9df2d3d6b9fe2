"""Requests of Chat clients, read and given back."""

import copy

import pytest

from tests.core.dialects.openai_chat.support import CONTEXT, asked, parsed, sent
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.context import is_minted
from wireglot_core.dialects.envelope import seal
from wireglot_core.dialects.openai_chat import DIALECT
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.content import (
    CacheMark,
    Foreign,
    Media,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import Grammar, HostedTool, OutputFormat, Thinking, Tool, ToolChoice

USER = {"role": "user", "content": "Hello"}
FUNCTION = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a":  1}'}}
PNG = "iVBORw0KGgo="


def assert_comes_back(body):
    before = copy.deepcopy(body)
    rendered = DIALECT.render_request(parsed(body), CONTEXT)
    assert rendered.value == before
    assert rendered.losses == ()
    assert body == before, "the input was changed"


@rows(
    "message",
    [
        USER,
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "bob"},
        {"role": "user", "content": [], "x_new": {"a": [1, None]}},
        {"role": "user", "content": ["bare", {"type": "text", "text": ""}]},
        {
            "role": "system",
            "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}],
        },
        {"role": "developer", "content": "Be brief.", "name": None},
        {"role": "system", "tools": [FUNCTION]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [{**CALL, "index": 0, "x_new": 1}]},
        {"role": "assistant", "content": "", "tool_calls": [CALL], "refusal": None},
        {"role": "assistant", "content": None, "refusal": "No."},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "No."}],
        },
        {"role": "assistant", "content": "a", "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": "a", "reasoning_content": ""},
        {"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_content": "hm"},
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        },
        {
            "role": "assistant",
            "content": "a",
            "reasoning": None,
            "reasoning_details": [{"type": "x", "text": "hm"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}],
        },
        {"role": "assistant", "content": "Once", "partial": True},
        {"role": "assistant", "content": "Once", "prefix": True},
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "sunny"},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny", "name": "look"},
        {"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": [{"type": "image_url", "image_url": {"url": "u"}}],
        },
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "https://e.com/a", "detail": "low"}}],
        },
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
        },
        {"role": "user", "content": [{"type": "image_url", "image_url": f"data:image/png;x=y;base64,{PNG}"}]},
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}}],
        },
        {"role": "user", "content": [{"type": "input_audio", "input_audio": "UklG"}]},
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
        {
            "role": "user",
            "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}}],
        },
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "JVBE", "filename": "a.pdf"}}]},
        {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "ms://f1"}}]},
        {"role": "user", "content": [{"type": "x_hologram", "x_hologram": {"depth": 3}}]},
    ],
)
def test_a_message_comes_back_as_it_was(message):
    """R-AC-02 to R-AC-05"""
    assert_comes_back({"model": "m", "messages": [message]})


@rows(
    "settings",
    [
        {"max_tokens": 5},
        {"max_completion_tokens": 5, "max_tokens": 9},
        {"stop": "END"},
        {"stop": ["END", "STOP"]},
        {"stop": [], "tools": [], "metadata": {}, "user": "", "logit_bias": {"1": -100}},
        {
            "temperature": 0,
            "top_p": 1.0,
            "top_k": 40,
            "frequency_penalty": -1,
            "presence_penalty": 2,
            "seed": 7,
        },
        {"n": 1},
        {"n": 3, "logprobs": True, "top_logprobs": 2},
        {"reasoning_effort": "none"},
        {"reasoning_effort": "ultra"},
        {"thinking": {"type": "enabled", "keep": "all"}},
        {"thinking": {"type": "disabled"}},
        {"reasoning": {"effort": "high", "exclude": True, "x_new": 1}},
        {"reasoning": {"max_tokens": 2000, "enabled": True}},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object", "schema": {"type": "object"}}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": {}, "strict": True},
            }
        },
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}},
        {"response_format": {"type": "grammar", "grammar": "root"}},
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        {"stream": False, "store": None, "verbosity": "low", "service_tier": "default"},
        {"service_tier": "on_demand", "user": "u", "safety_identifier": "s"},
        {"prompt_cache_key": "k", "prompt_cache_options": {"mode": "implicit", "ttl": "30m"}},
        {"prompt_cache_options": {"mode": "explicit"}, "metadata": {"a": "b"}},
        {"web_search_options": {"search_context_size": "low"}},
        {"functions": [{"name": "look", "parameters": {}}], "function_call": {"name": "look"}},
        {"tools": [{**FUNCTION, "cache_control": {"type": "ephemeral"}}], "parallel_tool_calls": False},
        {"tools": [{"function": {"name": "look", "description": None, "x": 1}}]},
        {"tools": [{"type": "function", "name": "look", "parameters": {}}]},
        {"tools": [{"type": "builtin_function", "function": {"name": "$web_search"}}]},
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"tools": [FUNCTION], "tool_choice": "any"},
        {"tools": [FUNCTION], "tool_choice": {"type": "x_new", "names": []}},
        {"audio": {"voice": "alloy", "format": "wav"}, "modalities": ["text", "audio"]},
    ],
)
def test_settings_come_back_as_they_were(settings):
    """R-AC-11 to R-AC-24"""
    assert_comes_back({"model": "m", "messages": [USER], **settings})


def test_system_and_developer_are_both_system_text():
    """R-H-06"""
    request = asked({"role": "developer", "content": "a"}, {"role": "system", "content": "b"})
    assert [(message.role, message.content) for message in request.messages] == [
        ("system", (Text("a"),)),
        ("system", (Text("b"),)),
    ]


def test_an_empty_reasoning_content_is_a_thought_without_words():
    """R-DA-11"""
    request = asked({"role": "assistant", "content": None, "reasoning_content": "", "tool_calls": [CALL]})
    assert request.messages[0].content == (Reasoning(""), ToolCall("call_1", "look", '{"a":  1}'))


def test_opaque_reasoning_details_are_a_signature_of_this_dialect():
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    thought = (
        asked({"role": "assistant", "content": "a", "reasoning_details": details}).messages[0].content[0]
    )
    assert isinstance(thought, Reasoning)
    assert thought.text == "hm"
    assert thought.signature is not None
    assert thought.signature.origin == Origin("openai-chat")


def test_a_tool_message_is_a_result_in_a_user_turn():
    """R-AC-05, R-Y-29"""
    request = asked(
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    )
    assert request.messages[1].role == "user"
    assert request.messages[1].content == (ToolResult("call_1", (Text("sunny"),)),)


def test_a_result_knows_from_its_call_that_it_is_custom():
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** x"}}
    request = asked(
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    )
    assert request.messages[0].content == (ToolCall("c1", "patch", "*** x", "custom"),)
    assert request.messages[1].content == (ToolResult("c1", (Text("ok"),), kind="custom"),)


def test_a_result_without_id_answers_the_first_open_call():
    second = {**CALL, "id": "call_2"}
    request = asked(
        {"role": "assistant", "content": None, "tool_calls": [CALL, second]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        {"role": "tool", "content": "b"},
    )
    result = request.messages[2].content[0]
    assert isinstance(result, ToolResult)
    assert result.call_id == "call_2"


def test_the_deprecated_function_call_and_its_answer_belong_together():
    """The call has no id on the wire; the one made up is the same each time."""
    messages = (
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "sunny"},
    )
    call, result = (message.content[0] for message in asked(*messages).messages)
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert is_minted(call.id)
    assert result.call_id == call.id
    assert asked(*messages) == asked(*messages)


def test_a_gemini_signature_on_a_call_keeps_its_minter():
    """R-DA-04"""
    call = {**CALL, "extra_content": {"google": {"thought_signature": "sig"}}}
    request = asked({"role": "assistant", "content": None, "tool_calls": [call]})
    part = request.messages[0].content[0]
    assert isinstance(part, ToolCall)
    assert part.signature == Signature("sig", Origin("gemini"))
    assert sent(request)["messages"][0]["tool_calls"] == [call]


def test_a_sealed_state_gives_back_what_it_holds_and_is_not_sent_to_a_stranger():
    """R-DA-09"""
    signature = Signature("sig", Origin("anthropic", "anthropic", "claude"))
    carrier = {"wireglot": {"state": seal(signature, "reasoning", CONTEXT.secret)}}
    request = asked(
        {"role": "assistant", "content": "a", "reasoning_content": "hm", "extra_content": carrier}
    )
    assert request.messages[0].content == (Reasoning("hm", signature), Text("a"))
    assert sent(request)["messages"] == [{"role": "assistant", "content": "a", "reasoning_content": "hm"}]


def test_media_are_read_from_data_urls_addresses_and_ids():
    """R-AC-03"""
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://e.com/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
    content = asked({"role": "user", "content": parts}).messages[0].content
    assert content[:4] == (
        Media("image", "image/png", PNG, detail="high"),
        Media("image", url="https://e.com/a.png"),
        Media("audio", "audio/mpeg", "UklG"),
        Media("document", "application/pdf", "JVBE", name="a.pdf"),
    )
    assert isinstance(content[4], Media)
    assert content[4].file_id == "file-1"


def test_cache_marks_are_read_in_both_spellings():
    parts = [
        {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
        {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
    ]
    first, second = asked({"role": "user", "content": parts}).messages[0].content
    assert isinstance(first, Text)
    assert isinstance(second, Text)
    assert first.cache == CacheMark("long")
    assert second.cache is not None
    assert second.cache.ttl == "short"


def test_custom_tools_have_their_grammar_nested():
    shape = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}
    body = {"type": "custom", "custom": {"name": "patch", "description": "d", "format": shape}}
    (tool,) = asked(USER, tools=[body]).tools
    assert isinstance(tool, Tool)
    assert (tool.kind, tool.grammar) == ("custom", Grammar("lark", "start: x"))


@rows(
    ("value", "choice"),
    [
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "function": {"name": "a"}}, ToolChoice("required", ("a",))),
        ({"type": "custom", "custom": {"name": "a"}}, ToolChoice("required", ("a",))),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "a"}}]},
            },
            ToolChoice("auto", ("a",)),
        ),
    ],
)
def test_every_form_of_tool_choice_is_read(value, choice):
    """R-AC-09, R-DB-07"""
    read = asked(USER, tools=[FUNCTION], tool_choice=value).tool_choice
    assert read is not None
    assert (read.mode, read.only) == (choice.mode, choice.only)


def test_hosted_tools_keep_their_declaration():
    (tool,) = asked(USER, web_search_options={"search_context_size": "low"}).tools
    native = Foreign("openai-chat", "web_search_options", {"search_context_size": "low"})
    assert tool == HostedTool("web_search", native, options={"context_size": "low"})


def test_settings_reach_their_neutral_names():
    request = asked(
        USER,
        max_tokens=5,
        stop="END",
        n=2,
        reasoning_effort="high",
        response_format={"type": "json_object"},
        service_tier="default",
        safety_identifier="u",
        prompt_cache_key="k",
    )
    assert request.max_tokens == 5
    assert request.stop == ("END",)
    assert request.sampling.candidates == 2
    assert request.thinking == Thinking(effort="high")
    assert request.output == OutputFormat("json")
    assert (request.service_tier, request.user, request.cache_key) == ("standard", "u", "k")


def test_one_answer_is_the_default_and_not_a_wish():
    assert asked(USER, n=1).sampling.candidates is None


@rows(
    ("body", "path"),
    [
        ({"model": "m"}, "$.messages"),
        ({"model": "m", "messages": None}, "$.messages"),
        ({"model": "m", "messages": {}}, "$.messages"),
        ({"model": "m", "messages": ["x"]}, "$.messages[0]"),
        ({"model": "m", "messages": [{"content": "x"}]}, "$.messages[0].role"),
        ({"model": "m", "messages": [{"role": "robot"}]}, "$.messages[0].role"),
        ({"model": "m", "messages": [{"role": "user", "content": 5}]}, "$.messages[0].content"),
        ({"model": "m", "messages": [{"role": "user", "content": [5]}]}, "$.messages[0].content[0]"),
        (
            {"model": "m", "messages": [{"role": "user", "content": "?"}], "max_tokens": "many"},
            "$.max_tokens",
        ),
        ({"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": "yes"}, "$.stream"),
        (
            {
                "model": "m",
                "messages": [{"role": "user", "content": "?"}],
                "tools": [{"type": "function", "function": {}}],
            },
            "$.tools[0].function.name",
        ),
        ({"model": "m", "messages": [{"role": "user", "content": "?"}], "stop": ["a", 1]}, "$.stop[1]"),
        ({"model": 5, "messages": [{"role": "user", "content": "?"}]}, "$.model"),
    ],
)
def test_nonsense_is_the_clients_fault_and_says_where(body, path):
    with pytest.raises(ClientFault) as fault:
        parsed(body)
    assert fault.value.path == path


@pytest.mark.parametrize("numbered", [{}, {"index": 0}])
def test_pictures_of_an_answer_come_back_as_its_parts(numbered):
    """[X11] They stood beside the content, where nobody but this dialect would have missed them."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}, **numbered}
    body = {"model": "m", "messages": [USER, {"role": "assistant", "content": None, "images": [image]}, USER]}
    assert_comes_back(body)
    (part,) = parsed(body).messages[1].content
    assert isinstance(part, Media)
    assert (part.kind, part.data) == ("image", PNG)
    assert translate_request(body, source="openai-chat", target="gemini").value["contents"][1]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": PNG}}
    ]


def test_audio_of_which_nothing_is_reported_is_no_part():
    """[X11] Servers print their whole schema, and clients send it back."""
    hollow = {"id": "", "data": "", "expires_at": 0, "transcript": ""}
    body = {"model": "m", "messages": [USER, {"role": "assistant", "content": "Hi", "audio": hollow}, USER]}
    assert_comes_back(body)
    assert parsed(body).messages[1].content == (Text("Hi"),)


@rows(
    ("message", "kind"),
    [
        ({"role": "system", "content": "Be brief."}, Text),
        ({"role": "user", "content": "Hello"}, Text),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, Text),
        ({"role": "assistant", "content": "Hi"}, Text),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, ToolCall),
        ({"role": "tool", "tool_call_id": "call_1", "content": "ok"}, ToolResult),
    ],
)
def test_a_marker_of_a_message_stands_behind_its_last_part(message, kind):
    """[X17] Clients of routers mark whole messages; anyone who has a place for it gets the marker there."""
    before = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    body = {"model": "m", "messages": [*before, {**message, "cache_control": {"type": "ephemeral"}}]}
    assert_comes_back(body)
    part = parsed(body).messages[-1].content[-1]
    assert isinstance(part, kind)
    assert part.cache is not None


def test_a_marker_of_a_message_reaches_anthropic():
    """[X17] ... as the marker of its last block."""
    message = {"role": "user", "content": "Hello", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    crossed = translate_request(
        {"model": "m", "messages": [message], "max_tokens": 9}, source="openai-chat", target="anthropic"
    )
    assert crossed.value["messages"][0]["content"] == [
        {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    ]
    assert crossed.losses == ()


def test_an_effort_alone_inside_of_thinking_is_one():
    hello = {"role": "user", "content": "Hello"}
    assert asked(hello, thinking={"effort": "high"}).thinking.effort == "high"
    assert asked(hello, thinking={"effort": "of nobody"}).thinking.effort is None


def test_a_budget_inside_of_thinking_is_one_and_nothing_unknown():
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9000}
    body["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    assert parsed(body).thinking.budget == 2048
    out = translate_request(body, source="openai-chat", target="gemini", model="m")
    assert [loss for loss in out.losses if loss.feature == "unknown_field"] == []


def test_what_is_unknown_inside_of_a_sound_comes_back_in_it():
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav", "x_new": 1}}
    message = {"role": "user", "content": [sound]}
    assert sent(asked(message))["messages"] == [message]


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-responses", "openai-chat"])
def test_a_blank_id_of_a_call_says_nothing_and_is_no_loss(target: DialectName) -> None:
    """Some servers give calls no ids, and their clients send "" back: results are found by their order."""
    call = {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "", "content": "x"},
    ]
    body = {"model": "m", "max_tokens": 99, "messages": turns}
    crossed = translate_request(body, source="openai-chat", target=target)
    assert not [loss for loss in crossed.losses if loss.action != "invented"]
    if target == "openai-chat":
        assert crossed.value["messages"] == turns


def test_a_named_document_by_its_address_goes_back_as_one():
    """OpenRouter reads an address in file_data; only for others is it words."""
    part = {"type": "file", "file": {"file_data": "https://example.org/a.pdf", "filename": "a.pdf"}}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}]}
    rendered = DIALECT.render_request(DIALECT.parse_request(body, CONTEXT), CONTEXT)
    assert (rendered.value, rendered.losses) == (body, ())


def test_a_result_that_says_nothing_goes_back_without_a_content():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "assistant", "content": "x", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c"},
    ]
    body = {"model": "m", "messages": turns}
    rendered = DIALECT.render_request(DIALECT.parse_request(body, CONTEXT), CONTEXT)
    assert (rendered.value, rendered.losses) == (body, ())


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ('{"error": {}}', True),
        ('{"error": {}, "choices": []}', False),
        ('{"error": "x", "choices": []}', True),
    ],
)
def test_a_tap_takes_an_error_without_choices_for_the_end(said, ended):
    tap = DIALECT.surface.tap(1 << 20)
    tap.feed(f"data: {said}\n\n".encode())
    assert (tap.error is not None or tap.ended) is ended
