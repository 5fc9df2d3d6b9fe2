"""generateContent requests: every spelling in, one spelling out."""

import pytest

import wireglot_core
from tests.core.dialects.gemini.requests import HELLO, asked, comes_back, features, parse, render
from tests.tiers import rows
from wireglot_core.ir.content import (
    Extra,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import (
    Request,
)


def test_snake_case_is_read_and_camel_case_is_written():
    """R-AF-10..13: Proto-JSON: both spellings of every field."""
    body = {
        "contents": [
            {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "AAAA"}}]}
        ],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "generation_config": {
            "max_output_tokens": 5,
            "top_p": 0.5,
            "thinking_config": {"include_thoughts": True, "thinking_budget": 0},
        },
        "tools": [
            {
                "function_declarations": [
                    {
                        "name": "f",
                        "description": "",
                        "parameters_json_schema": {"type": "object", "properties": {"a": {}}},
                    }
                ]
            },
            {"google_search": {}},
        ],
        "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["f"]}},
        "safety_settings": [{"category": "X", "threshold": "OFF"}],
        "cached_content": "cachedContents/1",
    }
    assert render(parse(body)).value == {
        "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {
            "topP": 0.5,
            "maxOutputTokens": 5,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 0},
        },
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "description": "",
                        "parametersJsonSchema": {"type": "object", "properties": {"a": {}}},
                    }
                ]
            },
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "any", "allowedFunctionNames": ["f"]}},
        "safetySettings": [{"category": "X", "threshold": "OFF"}],
        "cachedContent": "cachedContents/1",
    }


def test_a_field_of_the_users_own_keeps_its_underscores():
    call = {"functionCall": {"id": "1", "name": "f", "args": {"max_items": 1}}}
    comes_back({"contents": [{"role": "model", "parts": [call]}]})


@rows(
    "contents",
    [
        "Hello",
        ["Hello"],
        {"role": "user", "parts": [{"text": "Hello"}]},
        [{"parts": [{"text": "Hello"}]}],
        [{"role": "USER", "parts": {"text": "Hello"}}],
        [{"role": "user", "parts": ["Hello"]}],
        [{"role": "user", "parts": "Hello"}],
    ],
)
def test_contents_may_be_written_in_short(contents):
    assert parse({"contents": contents}).messages[0].content == (Text("Hello"),)


@rows(
    "contents",
    [
        {"role": "user", "parts": [{"text": "Hello"}]},
        [{"parts": [{"text": "Hello"}]}],
        [{"role": "user", "parts": {"text": "Hello"}}],
        [{"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}],
        [{"role": "user", "parts": [{"text": "one"}]}, {"role": "user", "parts": [{"text": "two"}]}],
    ],
)
def test_a_legal_shorthand_comes_back_as_it_was(contents):
    comes_back({"contents": contents})


def test_the_model_in_the_body_is_read_without_its_prefix():
    request = parse(asked(model="models/gemini-3-pro"))
    assert request.model == "gemini-3-pro"
    assert render(request).value["model"] == "models/gemini-3-pro"


def test_another_models_name_never_stays_in_the_body():
    from msgspec.structs import replace

    request = replace(parse(asked(model="models/gemini-3-pro")), model="gemini-2.5-flash")
    assert "model" not in render(request).value


def test_model_and_stream_belong_to_the_path():
    body = render(Request("gemini-3-pro", HELLO, stream=True)).value
    assert body == asked()


def test_unknown_fields_come_back_and_are_declared_by_others():
    body = asked(modelArmorConfig={"promptTemplateName": "x"}, x_future=[1], store=False)
    comes_back(body)
    assert parse(body).extra == Extra(
        "gemini", {"modelArmorConfig": {"promptTemplateName": "x"}, "x_future": [1], "store": False}
    )
    foreign = Request("m", HELLO, extra=Extra("anthropic", {"container": "c"}))
    assert features(render(foreign)) == [("$.container", "unknown_field", "dropped")]


def test_nulls_come_back():
    comes_back({**asked(generationConfig=None, tools=None), "systemInstruction": None})
    comes_back(asked(generationConfig={"temperature": None, "stopSequences": []}))


def test_integers_may_be_strings():
    request = parse(asked(generationConfig={"maxOutputTokens": "100", "seed": "-3"}))
    assert (request.max_tokens, request.sampling.seed) == (100, -3)


@rows(
    ("body", "path", "expected"),
    [
        ({}, "$.contents", "an array of contents"),
        ({"contents": 5}, "$.contents", "an array of contents"),
        (asked(generationConfig={"temperature": "hot"}), "$.generationConfig.temperature", "a number"),
        (
            asked(tools=[{"functionDeclarations": [{"description": "x"}]}]),
            "$.tools[0].functionDeclarations[0].name",
            "a string",
        ),
        (
            {"contents": [{"parts": [{"functionCall": {"args": {}}}]}]},
            "$.contents[0].parts[0].functionCall.name",
            "a function name",
        ),
        (
            {"contents": [{"parts": [{"functionCall": {"name": "f", "args": []}}]}]},
            "$.contents[0].parts[0].functionCall.args",
            "an object",
        ),
        (
            asked(toolConfig={"functionCallingConfig": {"mode": "SOMETIMES"}}),
            "$.toolConfig.functionCallingConfig.mode",
            "AUTO, ANY",
        ),
    ],
)
def test_a_wrong_document_is_refused_with_path_and_expectation(body, path, expected):
    with pytest.raises(ClientFault) as fault:
        parse(body)
    assert fault.value.path == path
    assert expected in fault.value.message


def test_each_block_of_system_text_is_its_own_part():
    """R-H-01, R-C-05, C5: an instruction has parts, nothing is flattened and nothing is added."""
    messages = (Message("system", (Text("One."), Text("Two."))), *HELLO)
    rendered = render(Request("m", messages))
    assert rendered.value["systemInstruction"] == {"parts": [{"text": "One."}, {"text": "Two."}]}
    assert rendered.losses == ()


@pytest.mark.parametrize(
    "instruction",
    [
        {"parts": [{"text": "x"}]},
        {"role": "user", "parts": [{"text": "x"}, {"text": "y"}]},
        {"parts": {"text": "x"}},
        {"text": "x"},
    ],
)
def test_an_instruction_comes_back_as_it_was(instruction):
    """C6: the role is optional, and kept."""
    comes_back(asked(systemInstruction=instruction))


def test_an_instruction_may_be_a_string():
    assert parse(asked(systemInstruction="x")).messages[0] == Message("system", (Text("x"),))


def test_system_text_in_the_middle_joins_the_users_turn_and_says_so():
    messages = (
        *HELLO,
        Message("assistant", (Text("Hi."),)),
        Message("system", (Text("Be kind."),)),
        Message("user", (Text("Why?"),)),
    )
    rendered = render(Request("m", messages))
    assert rendered.value["contents"][2] == {
        "role": "user",
        "parts": [{"text": "<system-reminder>\nBe kind.\n</system-reminder>"}, {"text": "Why?"}],
    }
    assert features(rendered) == [("$.messages[2]", "system.position", "approximated")]


@rows(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "AA-_"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAA"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "AAAA", "displayName": "a.pdf"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 2}},
        {"fileData": {"fileUri": "gs://bucket/a.png"}},
        {
            "inlineData": {"mimeType": "image/png", "data": "AAAA"},
            "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"},
        },
        {
            "inlineData": {"mimeType": "image/png", "data": "AAAA", "x": 1},
            "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW", "numTokens": 9},
        },
        {"text": "x", "partMetadata": {"k": "v"}},
        {"text": ""},
    ],
)
def test_a_part_comes_back(part):
    comes_back({"contents": [{"role": "user", "parts": [part]}]})


def test_url_safe_base64_is_standard_inside():
    (media,) = (
        parse({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "-_A"}}]}]})
        .messages[0]
        .content
    )
    assert isinstance(media, Media)
    assert media.data == "+/A="


def test_the_kind_of_a_medium_follows_its_type():
    mimes = ["image/heic", "audio/wav", "video/mp4", "application/pdf", "text/plain"]
    parts = [{"inlineData": {"mimeType": mime, "data": "AAAA"}} for mime in mimes]
    media = parse({"contents": [{"parts": parts}]}).messages[0].content
    assert [part.kind for part in media if isinstance(part, Media)] == [
        "image",
        "audio",
        "video",
        "document",
        "document",
    ]


def test_a_guessed_type_is_declared():
    rendered = render(
        Request("m", (Message("user", (Media("image", url="https://example.com/a.png?x=1"),)),))
    )
    assert rendered.value["contents"][0]["parts"] == [
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.png?x=1"}}
    ]
    assert features(rendered) == [("$.messages[0].content[0].mime", "image", "invented")]


def test_a_file_of_another_provider_is_a_declared_loss():
    rendered = render(Request("m", (Message("user", (Media("document", file_id="file_1"), Text("x"))),)))
    assert rendered.value["contents"] == [{"role": "user", "parts": [{"text": "x"}]}]
    assert features(rendered) == [("$.messages[0].content[0]", "file_reference", "dropped")]


def test_empty_parts_never_leave_and_empty_turns_stay_turns():
    """R-U-06, PAINS A25: `fit` replaces those that Google refuses."""
    messages = (
        Message("user", (Text(""), Text("x"))),
        Message("assistant", (Text(""),)),
        Message("user", ()),
    )
    assert render(Request("m", messages)).value["contents"] == [
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": []},
        {"role": "user", "parts": []},
    ]


def test_the_default_modality_says_nothing_and_comes_back():
    for modalities in (["TEXT"], ["text"], "TEXT"):
        body = asked(generationConfig={"responseModalities": modalities, "temperature": 1})
        comes_back(body)
        assert not any(parse(body).extra.fields.values())
    assert parse(asked(generationConfig={"responseModalities": ["AUDIO"]})).extra.fields == {
        "generationConfig.responseModalities": ["AUDIO"]
    }


def test_an_unknown_generation_field_is_declared_by_its_own_path():
    body = asked(generationConfig={"mediaResolution": "LOW", "speechConfig": {"a": {"b": 1}}, "seed": None})
    comes_back(body)
    assert parse(body).extra.fields == {
        "generationConfig.mediaResolution": "LOW",
        "generationConfig.speechConfig": {"a": {"b": 1}},
        "generationConfig.seed": None,
    }
    comes_back(asked(generationConfig={}))


@pytest.mark.parametrize("arguments", ['{"a": ', "[]", "12"])
def test_arguments_that_had_to_be_wrapped_are_declared(arguments):
    call = ToolCall("call_1", "f", arguments)
    request = Request("m", (*HELLO, Message("assistant", (call,))))
    rendered = render(request)
    assert rendered.value["contents"][1]["parts"][0]["functionCall"]["args"]["_raw"] == arguments
    assert ("$.messages[1].content[0].arguments", "tool_call.arguments", "emulated") in features(rendered)


@pytest.mark.parametrize("arguments", ["", "{}", ' {"a": 1}', '{"_raw": "x"}'])
def test_an_object_of_arguments_needs_no_declaration(arguments):
    request = Request("m", (*HELLO, Message("assistant", (ToolCall("call_1", "f", arguments),))))
    assert features(render(request)) == []


def test_reasoning_that_shows_nothing_and_proves_nothing_is_no_loss():
    shell = Reasoning(extra=Extra("openai-responses", form={"id": "rs_1"}))
    request = Request("m", (*HELLO, Message("assistant", (shell, Text("Hi")))))
    rendered = render(request)
    assert rendered.losses == ()
    assert rendered.value["contents"][1]["parts"] == [{"text": "Hi"}]


def test_of_reasoning_that_shows_nothing_only_the_signature_is_lost():
    sealed = Reasoning("", Signature("gAAA", Origin("openai-responses"), "rs_1"))
    request = Request("m", (*HELLO, Message("assistant", (sealed, Text("Hi")))))
    assert features(render(request)) == [
        ("$.messages[1].content[0].signature", "reasoning.signature", "dropped")
    ]


def test_a_content_without_parts_keeps_its_place():
    """gemini-2.5 answers so when the limit cut it before its first word, and SDKs put it into the history."""
    comes_back({**asked(), "contents": [*asked()["contents"], {"role": "model"}, *asked()["contents"]]})


def test_an_instruction_that_is_a_bare_part_is_read_and_comes_back():
    body = {
        "systemInstruction": {"text": "Be brief."},
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
    }
    out = wireglot_core.translate_request(body, source="gemini", target="openai-chat", model="m")
    assert out.value["messages"][0] == {"role": "system", "content": "Be brief."}
    assert out.losses == ()
    again = wireglot_core.translate_request(body, source="gemini", target="gemini", model="m").value
    assert again["systemInstruction"] == body["systemInstruction"]


@pytest.mark.parametrize(("data", "standard"), [("ab_c", "ab/c"), ("ab-c", "ab+c"), ("ab-_", "ab+/")])
def test_data_in_the_alphabet_of_addresses_reach_others_in_the_standard_one(data, standard):
    part = {"inlineData": {"mimeType": "image/png", "data": data}}
    body = {"contents": [{"role": "user", "parts": [part]}]}
    out = wireglot_core.translate_request(body, source="gemini", target="openai-chat", model="m")
    (sent,) = out.value["messages"][0]["content"]
    assert sent["image_url"]["url"] == f"data:image/png;base64,{standard}"
