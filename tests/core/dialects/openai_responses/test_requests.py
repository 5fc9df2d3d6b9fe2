"""Requests: input in all its forms, settings, and what is said of a request of another dialect."""

import pytest

from tests.core.dialects.openai_responses.wire import CONTEXT, comes_back, losses, parse, render
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
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
from wireglot_core.ir.request import OutputFormat, Request, Sampling, Thinking
from wireglot_core.translate import translate_request

USER = Message("user", (Text("hi"),))


def items(*entries):
    return {"model": "m", "input": list(entries)}


def test_a_string_input_is_one_user_message():
    """R-Z-02"""
    request = comes_back({"model": "m", "input": "hi"})
    assert [message.role for message in request.messages] == ["user"]
    assert request.messages[0].content == (Text("hi"),)


def test_instructions_are_the_leading_system_message():
    """R-H-05, R-Z-03, C23"""
    request = comes_back({"model": "m", "instructions": "Be brief.", "input": "hi"})
    assert request.messages[0].role == "system"
    assert request.messages[0].content == (Text("Be brief."),)


def test_developer_and_system_messages_are_system_text_in_place():
    """R-H-06"""
    request = comes_back(
        items(
            {"role": "developer", "content": "A"},
            {"role": "user", "content": "hi"},
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "B"}]},
        )
    )
    assert [message.role for message in request.messages] == ["system", "user", "system"]


@rows(
    "item",
    [
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "user", "content": []},
        {"role": "assistant", "content": "hello", "phase": "commentary"},
        {"role": "assistant", "content": None},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "phase": "final_answer",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
                {"type": "output_text", "text": "b"},
                {"type": "refusal", "refusal": "no"},
                {"type": "output_hologram", "x": 1},
            ],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "x", "later": True}], "newer": {"a": 1}},
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
        {"type": "configuration_update", "reasoning": {"effort": "high"}},
        {"type": "compaction_trigger"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
        {"type": "something_of_next_year", "role": "user", "x": [1]},
        {"type": "image_generation_call", "id": "ig_1", "result": "aGk=", "status": "completed"},
        {"type": "image_generation_call", "id": "ig_1"},
    ],
)
def test_an_item_comes_back_as_it_was(item):
    comes_back(items(item))


@rows(
    "part",
    [
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "high"},
        {"type": "input_image", "image_url": "data:image/png;charset=x;base64,aGk="},
        {"type": "input_image", "image_url": "data:image/svg+xml,%3Csvg/%3E"},
        {"type": "input_image", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "input_image", "file_id": "file_1", "image_url": None, "detail": "auto"},
        {"type": "input_image"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_data": "data:audio/mpeg;base64,aGk=", "filename": "a.mp3"},
        {"type": "input_file", "file_data": "aGk=", "filename": "a.bin"},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_file", "file_id": "file_1", "filename": "x"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "ogg", "x": 1}},
        {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
        {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"ttl": "9h"}},
        {"type": "text", "text": "Chat's spelling"},
    ],
)
def test_a_content_part_comes_back_as_it_was(part):
    comes_back(items({"role": "user", "content": [part]}))


def test_media_parts_say_what_they_are():
    """R-Z-02"""
    request = parse(
        items(
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
                    {
                        "type": "input_file",
                        "file_data": "data:application/pdf;base64,aGk=",
                        "filename": "a.pdf",
                    },
                    {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
                ],
            }
        )
    )
    image, pdf, audio = request.messages[0].content
    assert isinstance(image, Media)
    assert (image.kind, image.mime, image.data, image.detail) == ("image", "image/png", "aGk=", "low")
    assert isinstance(pdf, Media)
    assert (pdf.kind, pdf.mime, pdf.name) == ("document", "application/pdf", "a.pdf")
    assert isinstance(audio, Media)
    assert (audio.kind, audio.mime) == ("audio", "audio/mpeg")


def test_a_file_without_a_name_gets_one_that_means_none():
    request = Request("m", (Message("user", (Media("document", "application/pdf", "aGk="),)),))
    body = render(request)
    assert body["input"][0]["content"][0]["filename"] == "unnamed.pdf"
    assert losses(request) == []
    back = parse(body).messages[0].content[0]
    assert isinstance(back, Media)
    assert back.name == ""


def test_calls_and_outputs_are_parts_of_their_turns():
    """R-Y-29"""
    request = comes_back(
        items(
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            {
                "type": "custom_tool_call",
                "call_id": "c2",
                "name": "apply_patch",
                "input": "*** Begin",
                "namespace": "n",
            },
            {"type": "function_call_output", "call_id": "c1", "output": "ok", "status": "completed"},
            {
                "type": "custom_tool_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "done"}, {"type": "input_image", "file_id": "f"}],
            },
        )
    )
    call, custom, result, freeform = (message.content[0] for message in request.messages)
    assert isinstance(call, ToolCall)
    assert (call.id, call.arguments, call.kind) == ("c1", '{"a": 1}', "function")
    assert isinstance(custom, ToolCall)
    assert (custom.kind, custom.arguments, custom.namespace) == ("custom", "*** Begin", "n")
    assert isinstance(result, ToolResult)
    assert isinstance(freeform, ToolResult)
    assert (freeform.kind, len(freeform.content)) == ("custom", 2)
    assert [message.role for message in request.messages] == ["assistant", "assistant", "user", "user"]


@rows(
    "item",
    [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
        {"type": "function_call", "call_id": "c", "name": "f"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "function_call", "id": "fc_1", "call_id": None, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "output": "x"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": "",
            "name": "f",
            "caller": {"type": "direct"},
        },
        {"type": "function_call_output", "call_id": "c", "output": []},
        {"type": "function_call_output", "call_id": "c", "output": None},
    ],
)
def test_odd_calls_and_outputs_come_back_as_they_were(item):
    comes_back(items(item))


def test_a_call_without_an_id_gets_the_same_one_each_time():
    """R-DB-01"""
    body = items({"type": "function_call", "name": "f", "arguments": "{}"})
    first, second = (parse(body).messages[0].content[0] for _ in range(2))
    assert first == second
    assert isinstance(first, ToolCall)
    assert first.id


def test_every_setting_comes_back():
    """R-Z-07 to R-Z-14, R-Z-18, R-Z-19"""
    request = comes_back(
        {
            "model": "m",
            "input": [],
            "stream": True,
            "stream_options": {"include_obfuscation": False},
            "store": False,
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "temperature": 0.5,
            "top_p": 1,
            "top_logprobs": 3,
            "max_output_tokens": 100,
            "parallel_tool_calls": False,
            "previous_response_id": "resp_1",
            "conversation": {"id": "conv_1"},
            "metadata": {"a": "b"},
            "safety_identifier": "u1",
            "user": "u2",
            "service_tier": "default",
            "prompt_cache_key": "k",
            "truncation": "disabled",
            "background": False,
            "text": {"format": {"type": "text"}, "verbosity": "low"},
            "reasoning": {"effort": "xhigh", "summary": "detailed", "context": "all_turns", "mode": "pro"},
            "timeout": 30,
        }
    )
    assert request.sampling == Sampling(temperature=0.5, top_p=1, logprobs=True, top_logprobs=3)
    assert (request.thinking.effort, request.thinking.display) == ("xhigh", "summary")
    assert (request.user, request.service_tier, request.cache_key) == ("u1", "standard", "k")
    assert (request.verbosity, request.max_tokens, request.parallel_tools) == ("low", 100, False)
    assert request.extra is not None
    assert set(request.extra.fields) == {"previous_response_id", "conversation", "user", "timeout"}


@rows(
    "body",
    [
        {"reasoning": {}},
        {"reasoning": None},
        {"reasoning": {"effort": "ludicrous"}},
        {"reasoning": {"effort": None, "generate_summary": "concise"}},
        {"text": {}},
        {"text": {"verbosity": None, "later": 1}},
        {"text": {"format": {"type": "json_object"}}},
        {
            "text": {
                "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": None}
            }
        },
        {"text": {"format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}},
        {"text": {"format": {"type": "grammar", "x": 1}}},
        {"metadata": {}},
        {"metadata": {"a": 1}},
        {"metadata": None},
        {"service_tier": "standard"},
        {"tools": []},
        {"tools": None, "tool_choice": None, "instructions": None},
        {"truncation": "auto", "background": True},
        {"prompt": {"id": "p"}},
    ],
)
def test_odd_settings_come_back_as_they_were(body):
    comes_back({"model": "m", "input": "hi", **body})


def test_a_prompt_template_needs_no_input():
    comes_back({"prompt": {"id": "pmpt_1", "variables": {"a": "b"}}})


@rows(
    ("body", "path", "expected"),
    [
        ({"model": "m"}, "$.input", "an array of items"),
        ({"model": "m", "input": 3}, "$.input", "a string or an array"),
        ({"model": "m", "input": [3]}, "$.input[0]", "an object"),
        ({"model": "m", "input": [{"role": "king", "content": "x"}]}, "$.input[0].role", "user, assistant"),
        ({"model": "m", "input": [{"role": "user"}]}, "$.input[0].content", "missing"),
        ({"model": "m", "input": [{}]}, "$.input[0].type", "missing"),
        (
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "$.input[0].content[0].text",
            "a string",
        ),
        ({"model": "m", "input": "x", "tools": [{"type": "function"}]}, "$.tools[0].name", "a string"),
        ({"model": "m", "input": "x", "stream": "yes"}, "$.stream", "a boolean"),
        ({"model": "m", "input": "x", "tool_choice": 1}, "$.tool_choice", "an object"),
    ],
)
def test_nonsense_is_refused_by_path(body, path, expected):
    with pytest.raises(ClientFault) as caught:
        parse(body)
    assert caught.value.path == path
    assert expected in caught.value.message


# From other dialects


def test_another_dialects_system_text_becomes_instructions():
    request = Request("m", (Message("system", (Text("Be brief."),)), USER))
    body = render(request)
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    ]
    assert losses(request) == []


def test_system_text_of_several_blocks_stays_several():
    """R-H-01: this target has room for them."""
    request = Request("m", (Message("system", (Text("A"), Text("B", cache=CacheMark("long")))), USER))
    body = render(request)
    assert "instructions" not in body
    assert body["input"][0]["role"] == "developer"
    assert body["input"][0]["content"][1]["prompt_cache_breakpoint"] == {"mode": "explicit", "ttl": "12h"}
    assert losses(request) == []


def test_a_stateless_request_asks_for_encrypted_reasoning():
    """R-DA-18"""
    for thinking in (Thinking(), Thinking(effort="low"), Thinking("on"), Thinking("off")):
        body = render(Request("m", (USER,), thinking=thinking))
        assert body["store"] is False
        assert body["include"] == ["reasoning.encrypted_content"]


def test_a_model_that_does_not_reason_is_not_asked_for_it():
    """It refuses the include."""
    for model, asked in (("gpt-4o", None), ("gpt-5.5", ["reasoning.encrypted_content"])):
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        for provider in (None, "openai", "azure"):
            reported = translate_request(
                body, source="openai-chat", target="openai-responses", provider=provider
            )
            assert reported.value.get("include") == asked


def test_an_item_of_another_account_goes_without_its_id():
    """Its reasoning is left out there, and OpenAI refuses the one without the other."""
    thought = Reasoning("", Signature("gAAAA", Origin(NAME, "openai", "", "theirs"), "rs_1"))
    call = ToolCall("c1", "f", "{}", extra=Extra(NAME, form={"id": "fc_1"}))
    messages = (
        USER,
        Message("assistant", (thought, call)),
        Message("user", (ToolResult("c1", (Text("1"),)),)),
    )
    request = Request("m", messages, extra=Extra(NAME, form={"store": False}))
    for account, id in (("theirs", "fc_1"), ("ours", None)):
        context = Context(provider="openai", account=account)
        items = DIALECT.render_request(request, context).value["input"]
        assert next(item for item in items if item["type"] == "function_call").get("id") == id


def test_user_text_is_input_and_assistant_text_is_output():
    body = render(Request("m", (USER, Message("assistant", (Text("hello"), Text("no", refusal=True))), USER)))
    assert [part["type"] for part in body["input"][1]["content"]] == ["output_text", "refusal"]
    assert body["input"][0]["content"][0]["type"] == "input_text"


def test_results_and_prose_of_one_turn_become_items_in_order():
    turn = Message("user", (ToolResult("c1", (Text("ok"),)), Text("and now?")))
    call = Message("assistant", (Text("let me see"), ToolCall("c1", "f", "")))
    body = render(Request("m", (USER, call, turn)))
    assert [item["type"] for item in body["input"]] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert body["input"][2]["arguments"] == "{}"
    assert "id" not in body["input"][2]


def test_a_failed_result_says_so_in_words():
    """R-DB-15"""
    call = Message("assistant", (ToolCall("c", "f", "{}"),))
    request = Request("m", (USER, call, Message("user", (ToolResult("c", (Text("boom"),), is_error=True),))))
    assert render(request)["input"][2]["output"] == "Error: boom"
    assert losses(request) == [("$.messages[2].content[0].is_error", "tool_result.error", "approximated")]


def test_images_and_files_stay_in_a_tool_output():
    """R-DB-14"""
    result = ToolResult(
        "c", (Text("see"), Media("image", "image/png", "aGk="), Media("video", "video/mp4", "aGk="))
    )
    request = Request(
        "m", (USER, Message("assistant", (ToolCall("c", "f", "{}"),)), Message("user", (result,)))
    )
    output = render(request)["input"][2]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    assert losses(request) == [("$.messages[2].content[0].content[2]", "tool_result.media", "dropped")]


def test_what_this_wire_cannot_say_is_declared():
    request = Request(
        "m",
        (
            Message(
                "user",
                (Text("hi"), Foreign("gemini", "executableCode", {}), Media("video", "video/mp4", "aGk=")),
                name="al",
            ),
        ),
        stop=("END",),
        sampling=Sampling(top_k=3, seed=1, frequency_penalty=0.1, presence_penalty=0.1, candidates=2),
        thinking=Thinking(mode="on", budget=2048, display="omitted"),
        service_tier="batch",
        cache=CacheMark(),
        extra=Extra("anthropic", {"fallbacks": "default", "blank": None}),
    )
    assert {feature for _, feature, _ in losses(request)} == {
        "message.name",
        "foreign_part",
        "video",
        "stop_sequences",
        "sampling.top_k",
        "sampling.seed",
        "sampling.frequency_penalty",
        "sampling.presence_penalty",
        "candidates",
        "thinking.mode",
        "thinking.budget",
        "thinking.display",
        "service_tier",
        "cache_marker",
        "unknown_field",
    }


def test_thinking_off_is_effort_none():
    request = Request("m", (USER,), thinking=Thinking(mode="off"))
    assert render(request)["reasoning"] == {"effort": "none"}
    assert losses(request) == []


def test_an_output_schema_gets_the_name_it_must_have():
    request = Request("m", (USER,), output=OutputFormat("schema", {"type": "object"}, strict=True))
    assert render(request)["text"] == {
        "format": {"type": "json_schema", "name": "response", "schema": {"type": "object"}, "strict": True}
    }


def test_an_empty_turn_of_another_dialect_stays_a_turn():
    """OpenAI takes one: a recorded request with `{"role": "user", "content": ""}` was answered."""
    body = render(Request("m", (USER, Message("assistant", (Text(""),)), USER)))
    assert [item["role"] for item in body["input"]] == ["user", "assistant", "user"]
    assert body["input"][1]["content"] == ""


def test_foreign_reasoning_is_not_sent():
    """R-DA-18: an item without encrypted content that the provider never stored is refused."""
    request = Request("m", (USER, Message("assistant", (Reasoning("hm"), Text("x"))), USER))
    assert [item["type"] for item in render(request)["input"]] == ["message"] * 3
    assert losses(request) == [("$.messages[1].content[0]", "reasoning.text", "dropped")]


def test_an_answer_goes_into_the_next_request_item_by_item():
    """Its parts remember the items they stood in: ids and phases return to OpenAI."""
    output = [
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "phase": "commentary",
         "content": [{"type": "output_text", "text": "a", "annotations": []}], "x_new": {"a": 1}},
        {"type": "message", "id": "msg_2", "status": "completed", "role": "assistant", "phase": "final_answer",
         "content": [{"type": "output_text", "text": "b", "annotations": []}]},
    ]  # fmt: skip
    answer = DIALECT.parse_response({"id": "resp_1", "output": output, "status": "completed"}, CONTEXT)
    body = render(
        Request("m", (USER, Message("assistant", answer.content), USER), extra=Extra("openai-responses"))
    )
    assert [item.get("phase") for item in body["input"]] == [None, "commentary", "final_answer", None]
    assert [item.get("id") for item in body["input"]] == [None, "msg_1", "msg_2", None]
    assert "item.x_new" not in str(body)


def test_reasoning_that_shows_nothing_and_proves_nothing_is_no_loss():
    shell = Reasoning(extra=Extra("gemini", form={"part": "empty"}))
    request = Request("m", (USER, Message("assistant", (shell, Text("x"))), USER))
    assert [item["type"] for item in render(request)["input"]] == ["message"] * 3
    assert losses(request) == []


def test_of_reasoning_that_shows_nothing_only_the_signature_is_lost():
    signed = Reasoning("", Signature("EqQB", Origin("anthropic")))
    request = Request("m", (USER, Message("assistant", (signed, Text("x"))), USER))
    assert losses(request) == [("$.messages[1].content[0].signature", "reasoning.signature", "dropped")]
    hidden = Request("m", (USER, Message("assistant", (Reasoning(redacted=True), Text("x"))), USER))
    assert losses(hidden) == [("$.messages[1].content[0]", "reasoning.redacted", "dropped")]


def test_one_answer_is_what_everyone_gives():
    assert losses(Request("m", (USER,), sampling=Sampling(candidates=1))) == []
    assert losses(Request("m", (USER,), sampling=Sampling(candidates=2))) == [
        ("$.sampling.candidates", "candidates", "dropped")
    ]


def test_a_conversation_that_openai_holds_can_be_recognised():
    """Anyone who sends it elsewhere must know that most of it is missing."""
    held = {"previous_response_id": "resp_0", "conversation": {"id": "conv_1"}, "prompt": {"id": "pmpt_1"}}
    for key, value in held.items():
        request = comes_back({"model": "m", "input": "Go on", key: value})
        assert request.extra is not None
        assert request.extra.fields == {key: value}
    for reference in ({"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}):
        (message,) = comes_back({"model": "m", "input": [reference]}).messages
        assert message.content == (Foreign("openai-responses", "item_reference", reference),)


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_cache_marker_behind_a_result_is_a_breakpoint_on_its_last_part(kind):
    """[X17] Outputs take breakpoints on their parts (openai 3.49): nothing of a marked result is lost."""
    call = Message("assistant", (ToolCall("call_1", "f", "{}", kind),))
    result = ToolResult("call_1", (Text("a"), Text("b")), kind=kind, cache=CacheMark("long"))
    request = Request("m", (USER, call, Message("user", (result,))))
    body = render(request)
    assert losses(request) == []
    assert body["input"][-1]["output"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
    ]
    back = comes_back(body).messages[-1].content[0]
    assert isinstance(back, ToolResult)
    assert back.cache == CacheMark("long")


def test_a_marked_result_without_content_tells_that_its_marker_is_lost():
    """[X17] There is no part to mark."""
    call = Message("assistant", (ToolCall("call_1", "f", "{}"),))
    result = ToolResult("call_1", (), cache=CacheMark())
    request = Request("m", (USER, call, Message("user", (result,))))
    assert losses(request) == [("$.messages[2].content[0].cache", "cache_marker", "dropped")]
