"""generateContent requests: every spelling in, one spelling out."""

import pytest

from wireglot.dialects.base import Context
from wireglot.dialects.gemini import DIALECT
from wireglot.ir.content import (
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
)
from wireglot.ir.errors import ClientFault
from wireglot.ir.request import (
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

CONTEXT = Context()
HELLO = (Message("user", (Text("Hello"),)),)


def parse(body):
    return DIALECT.parse_request(body, CONTEXT)


def render(request):
    return DIALECT.render_request(request, CONTEXT)


def comes_back(body):
    rendered = render(parse(body))
    assert rendered.losses == ()
    assert rendered.value == body


def asked(**settings):
    return {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], **settings}


def features(rendered):
    return [(loss.path, loss.feature, loss.action) for loss in rendered.losses]


# Spelling


def test_snake_case_is_read_and_camel_case_is_written():
    """Proto-JSON: both spellings of every field."""
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


# System


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


# Tools


def test_a_schema_message_is_read_as_the_json_schema_it_means_and_comes_back():
    parameters = {
        "type": "OBJECT",
        "properties": {
            "when": {"type": "STRING", "nullable": True, "enum": ["now", "later"]},
            "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"},
        },
        "required": ["tags"],
    }
    body = asked(
        tools=[{"functionDeclarations": [{"name": "f", "description": "d", "parameters": parameters}]}]
    )
    (tool,) = parse(body).tools
    assert isinstance(tool, Tool)
    assert tool.schema == {
        "type": "object",
        "properties": {
            "when": {"type": ["string", "null"], "enum": ["now", "later", None]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        },
        "required": ["tags"],
    }
    comes_back(body)


def test_json_schema_is_sent_in_the_field_that_takes_it():
    """R-D-01, R-A-13, PAINS A14: no keyword is lost on the way to Gemini."""
    schema = {
        "type": "object",
        "properties": {"status": {"enum": ["a", "b"]}},
        "$defs": {"x": {"const": 1}},
        "required": ["status"],
    }
    body = render(Request("m", HELLO, (Tool("TodoWrite", "Writes.", schema),))).value
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "TodoWrite", "description": "Writes.", "parametersJsonSchema": schema}
            ]
        }
    ]


@pytest.mark.parametrize("schema", [None, {}, {"type": "object", "properties": {}}])
def test_a_function_without_arguments_states_no_parameters(schema):
    """R-DB-09: empty object parameters are omitted."""
    body = render(Request("m", HELLO, (Tool("f", "d", schema),))).value
    assert body["tools"] == [{"functionDeclarations": [{"name": "f", "description": "d"}]}]


def test_no_tools_means_no_tools_field():
    """C18"""
    assert "tools" not in render(Request("m", HELLO)).value


@pytest.mark.parametrize(
    "tools",
    [
        [
            {"functionDeclarations": [{"name": "f", "description": "d"}]},
            {"functionDeclarations": [{"name": "g"}]},
        ],
        [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}}],
        [{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}, {"urlContext": {}}],
        [{"functionDeclarations": [{"name": "f", "behavior": "BLOCKING", "response": {"type": "STRING"}}]}],
        [{"functionDeclarations": [{"name": "f"}], "codeExecution": None}],
        [{"x_future_tool": {"a": 1}}],
        [{"functionDeclarations": []}],
        [],
    ],
)
def test_the_grouping_of_tools_comes_back(tools):
    comes_back(asked(tools=tools))


def test_googles_hosted_tools_have_their_shared_names():
    tools = parse(
        asked(tools=[{"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}, {"googleMaps": {}}])
    ).tools
    assert [tool.kind for tool in tools if isinstance(tool, HostedTool)] == [
        "web_search",
        "code_execution",
        "web_fetch",
        "googleMaps",
    ]


def test_another_providers_hosted_tool_becomes_googles_own_or_is_dropped_but_never_a_function():
    """R-DB-17"""
    search = HostedTool(
        "web_search", Foreign("anthropic", "web_search_20250305", {"type": "web_search_20250305"})
    )
    files = HostedTool("file_search", Foreign("openai-responses", "file_search", {"type": "file_search"}))
    rendered = render(Request("m", HELLO, (search, files)))
    assert rendered.value["tools"] == [{"googleSearch": {}}]
    assert features(rendered) == [
        ("$.tools[0]", "hosted_tool", "approximated"),
        ("$.tools[1]", "hosted_tool", "dropped"),
    ]


def test_what_a_function_cannot_say_here_is_declared():
    tool = Tool("f", None, None, strict=True, namespace="ns", deferred=True, cache=CacheMark("short"))
    rendered = render(Request("m", HELLO, (tool, Tool("p", kind="custom"))))
    assert [loss.feature for loss in rendered.losses] == [
        "tool.strict",
        "tool.namespace",
        "tool.deferred",
        "cache_marker",
        "tool.custom",
    ]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("required", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice("auto", ("f", "g")), {"mode": "VALIDATED", "allowedFunctionNames": ["f", "g"]}),
    ],
)
def test_the_tool_choice_matrix(choice, config):
    """C3, R-DB-07, PAINS A28"""
    rendered = render(Request("m", HELLO, (Tool("f"), Tool("g")), choice))
    assert rendered.value["toolConfig"] == {"functionCallingConfig": config}
    assert rendered.losses == ()
    again = parse(asked(toolConfig={"functionCallingConfig": config})).tool_choice
    assert again is not None
    assert (again.mode, again.only) == (choice.mode, choice.only)


@pytest.mark.parametrize(
    "config",
    [
        {"functionCallingConfig": {"mode": "VALIDATED"}},
        {
            "functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True},
            "includeServerSideToolInvocations": True,
        },
        {"functionCallingConfig": {"mode": "NONE", "allowedFunctionNames": ["f"]}},
        {"functionCallingConfig": {"allowedFunctionNames": ["f"]}},
        {"functionCallingConfig": {"mode": "any"}},
        {"functionCallingConfig": {}},
        {"retrievalConfig": {"languageCode": "de"}},
        {},
    ],
)
def test_a_tool_config_comes_back(config):
    comes_back(asked(toolConfig=config))


def test_no_forced_mode_is_ever_made_up():
    """C3, R-S-05"""
    assert "toolConfig" not in render(Request("m", HELLO, (Tool("f"),))).value


# Generation


def test_every_sampling_parameter_has_its_place_and_nothing_is_injected():
    """C37, R-S-06"""
    config = {
        "temperature": 0.7,
        "topP": 0.9,
        "topK": 40,
        "candidateCount": 2,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "seed": 1,
        "presencePenalty": 0.1,
        "frequencyPenalty": -0.1,
        "responseLogprobs": True,
        "logprobs": 3,
        "responseModalities": ["TEXT", "IMAGE"],
        "speechConfig": {"languageCode": "de"},
    }
    request = parse(asked(generationConfig=config))
    assert request.sampling == Sampling(0.7, 0.9, 40, -0.1, 0.1, 1, 2, True, 3)
    assert (request.max_tokens, request.stop) == (100, ("END",))
    comes_back(asked(generationConfig=config))
    assert "generationConfig" not in render(Request("m", HELLO)).value


@pytest.mark.parametrize(
    ("config", "thinking"),
    [
        ({"thinkingBudget": 0}, Thinking(mode="off")),
        ({"thinkingBudget": -1}, Thinking(mode="auto")),
        (
            {"thinkingBudget": 512, "includeThoughts": True},
            Thinking(mode="on", budget=512, display="summary"),
        ),
        ({"thinkingLevel": "HIGH"}, Thinking(effort="high")),
        ({"includeThoughts": False}, Thinking(display="omitted")),
    ],
)
def test_thinking_both_ways(config, thinking):
    """R-DA-14"""
    body = asked(generationConfig={"thinkingConfig": config})
    assert parse(body).thinking == thinking
    rendered = render(Request("m", HELLO, thinking=thinking))
    assert rendered.value == body
    assert rendered.losses == ()


@pytest.mark.parametrize(
    "config",
    [
        {"thinkingLevel": "low"},
        {"thinkingLevel": "EXTREME"},
        {},
        {"thinkingBudget": 5, "thinkingLevel": "LOW"},
        {"x": 1},
    ],
)
def test_a_thinking_config_comes_back(config):
    comes_back(asked(generationConfig={"thinkingConfig": config}))


@pytest.mark.parametrize(
    ("thinking", "config", "lost"),
    [
        (Thinking(effort="max"), {"thinkingLevel": "HIGH"}, ["thinking.effort"]),
        (Thinking(effort="none"), {"thinkingBudget": 0}, []),
        (Thinking("auto", "high"), {"thinkingLevel": "HIGH"}, ["thinking.mode"]),
        (Thinking("on", "low", 2048), {"thinkingLevel": "LOW"}, ["thinking.mode", "thinking.budget"]),
    ],
)
def test_a_level_and_a_budget_are_never_sent_together(thinking, config, lost):
    rendered = render(Request("m", HELLO, thinking=thinking))
    assert rendered.value["generationConfig"] == {"thinkingConfig": config}
    assert [loss.feature for loss in rendered.losses] == lost


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"responseMimeType": "application/json"}, "json"),
        ({"responseMimeType": "text/plain"}, "text"),
        ({"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}, "schema"),
        (
            {
                "responseMimeType": "application/json",
                "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            },
            "schema",
        ),
        (
            {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a", "b"]}},
            "schema",
        ),
        ({"responseJsonSchema": SCHEMA}, "schema"),
        ({"responseFormat": [{"text": {"mimeType": "application/json", "schema": SCHEMA}}]}, "schema"),
        ({"responseFormat": [{"text": {"mimeType": "text/plain"}}]}, "text"),
    ],
)
def test_an_output_format_both_ways(config, kind):
    """PAINS A21"""
    body = asked(generationConfig=config)
    output = parse(body).output
    assert output is not None
    assert output.kind == kind
    comes_back(body)


def test_a_schema_of_another_dialect_is_sent_as_json_schema():
    rendered = render(Request("m", HELLO, output=OutputFormat("schema", SCHEMA, "answer")))
    assert rendered.value["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }
    assert rendered.losses == ()


@pytest.mark.parametrize(
    "config", [{"responseFormat": [{"image": {"aspectRatio": "1:1"}}]}, {"responseFormat": {"text": {}}}]
)
def test_an_output_format_of_another_medium_is_kept_whole(config):
    body = asked(generationConfig=config)
    assert parse(body).output is None
    comes_back(body)


def test_labels_are_metadata_if_they_are_labels():
    comes_back(asked(labels={"team": "a", "Odd Key": "Ü"}))
    rendered = render(Request("m", HELLO, metadata={"trace": "t-1", "user_id": "A B"}))
    assert rendered.value["labels"] == {"trace": "t-1"}
    assert features(rendered) == [("$.metadata.user_id", "metadata", "dropped")]


@pytest.mark.parametrize("tier", ["flex", "standard", "priority", "PRIORITY", "unspecified", "galactic"])
def test_a_service_tier_comes_back(tier):
    comes_back(asked(serviceTier=tier))


def test_what_gemini_has_no_word_for_is_declared():
    """PAINS A24"""
    request = Request(
        "m",
        HELLO,
        parallel_tools=False,
        verbosity="low",
        user="u",
        service_tier="batch",
        cache=CacheMark(),
        cache_key="k",
    )
    assert [loss.feature for loss in render(request).losses] == [
        "service_tier",
        "parallel_tools",
        "verbosity",
        "user",
        "cache_marker",
        "cache_key",
    ]


# Media


@pytest.mark.parametrize(
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


def test_empty_parts_and_messages_never_leave():
    """R-U-06, PAINS A25"""
    messages = (
        Message("user", (Text(""), Text("x"))),
        Message("assistant", (Text(""),)),
        Message("user", ()),
    )
    assert render(Request("m", messages)).value["contents"] == [{"role": "user", "parts": [{"text": "x"}]}]


# What is no loss, and what is one


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
