"""The rare turns of Gemini's wire, each with what must hold there."""

import json
from typing import Any

import pytest

from tests.core.dialects.gemini.requests import CONTEXT, asked, comes_back, features, parse, render
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.dialects.gemini.assist import ASSIST
from wireglot_core.dialects.gemini.names import count, enum_name
from wireglot_core.dialects.gemini.partial_args import PartialCall
from wireglot_core.dialects.gemini.schema import json_schema
from wireglot_core.dialects.gemini.surface import find
from wireglot_core.ir.content import (
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
from wireglot_core.ir.errors import ApiError, ClientFault, UpstreamFault
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request, ToolChoice
from wireglot_core.ir.stream import Delta, Finish, PartEnd, PartStart, Start, fold, unfold
from wireglot_core.wire.sse import FrameTooLarge


def chunk(*parts: Any, finish: str = "", **more: Any) -> dict[str, Any]:
    candidate = {
        "content": {"parts": list(parts), "role": "model"},
        **({"finishReason": finish} if finish else {}),
    }
    return {"candidates": [candidate], **more}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in chunks)


def events_of(*chunks: Any) -> list[Any]:
    reader = DIALECT.stream_reader(CONTEXT)
    return [*reader.read(sse(*chunks)), *reader.end()]


def written(events: Any, context: Context = CONTEXT) -> tuple[list[Any], list[Any]]:
    writer = DIALECT.stream_writer(context)
    data = writer.write(events).decode()
    chunks = (
        json.loads(data)
        if context.framing == "json-array"
        else [json.loads(line[6:]) for line in data.split("\n") if line.startswith("data: ")]
    )
    return chunks, [(loss.path, loss.feature, loss.action) for loss in writer.losses]


# Arguments in pieces


@rows(
    ("pieces", "args"),
    [
        ([{"jsonPath": "$.a", "numberValue": 2.0}], {"a": 2}),
        ([{"jsonPath": "$.a", "numberValue": 2.5}], {"a": 2.5}),
        ([{"jsonPath": "$.a", "numberValue": 9007199254740992.0}], {"a": 9007199254740992.0}),
        ([{"jsonPath": "$.a", "boolValue": False}], {"a": False}),
        ([{"jsonPath": "$.a", "nullValue": "NULL_VALUE"}], {"a": None}),
        ([{"jsonPath": "a", "stringValue": "x"}], {"a": "x"}),
        ([{"jsonPath": "$", "stringValue": "x"}, {"jsonPath": "", "stringValue": "y"}], {}),
        ([{"jsonPath": '$["a b"].c', "stringValue": "x"}], {"a b": {"c": "x"}}),
        ([{"jsonPath": r"$['it\'s']", "stringValue": "x"}], {"it's": "x"}),
        ([{"jsonPath": "$.a[2]", "stringValue": "x"}], {"a": [None, None, "x"]}),
        ([{"jsonPath": "$.a[0][1]", "numberValue": 1}], {"a": [[None, 1]]}),
        (
            [{"jsonPath": "$.a[0].b", "numberValue": 1}, {"jsonPath": "$.a[0].c", "numberValue": 2}],
            {"a": [{"b": 1, "c": 2}]},
        ),
        (
            [
                {"jsonPath": "$.a", "stringValue": "x", "willContinue": True},
                {"jsonPath": "$.b", "stringValue": "y"},
                {"jsonPath": "$.a", "stringValue": "z"},
            ],
            {"a": "z", "b": "y"},
        ),
    ],
)
def test_pieces_of_arguments_are_put_where_their_paths_say(pieces, args):
    call = PartialCall("f", "", None)
    call.add(pieces)
    assert call.arguments() == args
    assert [type(value) for value in call.arguments().values()] == [type(value) for value in args.values()]


@pytest.mark.parametrize(
    "pieces",
    [
        [{"jsonPath": "$.a b["}],
        [{"jsonPath": "$.a[1000]", "stringValue": "x"}],
        [{"jsonPath": "$.a" + "[30]" * 20, "stringValue": "x"}],
        [{"jsonPath": "$.a[60]", "boolValue": True}, {"jsonPath": "$.b[60]", "boolValue": True}],
        [{"jsonPath": "$.a" + "[0]" * 200, "stringValue": "x"}],
        [{"jsonPath": "$" + ".a" * 200, "stringValue": "x"}],
        [{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$[0]", "stringValue": "y"}],
    ],
)
def test_a_path_that_makes_no_sense_is_the_upstreams_fault(pieces):
    with pytest.raises(UpstreamFault) as refused:
        PartialCall("f", "", None).add(pieces)
    assert refused.value.path == "$.partialArgs.jsonPath"


def test_places_may_be_left_empty_as_far_as_the_input_is_long():
    call = PartialCall("f", "", None)
    call.add([{"jsonPath": "$.a[64]", "stringValue": "x"}, {"jsonPath": f"$.{'b' * 500}[500]"}])
    assert [len(each) for each in call.arguments().values()] == [65, 501]
    call.add([{"jsonPath": f"$.c[{at}]", "numberValue": at} for at in range(5000)])
    assert call.arguments()["c"] == [*range(5000)]


def test_a_string_grows_past_a_piece_without_a_path():
    call = PartialCall("f", "", None)
    for text in ("x", "y", "z"):
        call.add([{"jsonPath": "$.a", "stringValue": text, "willContinue": True}, {"stringValue": "?"}])
    assert call.arguments() == {"a": "xyz"}


# Numbers, enums, times


@rows(
    ("value", "counted"),
    [(3, 3), (-3, 0), (3.0, 3), (-3.0, 0), (3.5, 0), ("3", 3), ("x", 0), ("9" * 19, 0), (True, 0), (None, 0)],
)
def test_a_count_is_a_sensible_number_or_nothing(value, counted):
    assert count(value) == counted


@rows(("value", "name"), [("any", "ANY"), (0, "A"), (1, "B"), (2, "2"), (-1, "-1"), (None, ""), (True, "")])
def test_an_enum_is_a_name_in_any_case_or_a_number(value, name):
    assert enum_name(value, ("A", "B")) == name


# Requests


def test_an_id_may_be_a_number_and_pairs_with_its_text():
    call = {"functionCall": {"id": 7, "name": "f", "args": {}}}
    answer = {"functionResponse": {"id": "7", "name": "f", "response": {"output": "x"}}}
    messages = parse(
        {"contents": [{"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]}
    ).messages
    one, other = messages[0].content[0], messages[1].content[0]
    assert isinstance(one, ToolCall)
    assert isinstance(other, ToolResult)
    assert one.id == other.call_id == "7"


@rows(
    ("contents", "path"),
    [
        ([{"role": "user", "parts": 7}], "$.contents[0].parts"),
        (
            [{"role": "model", "parts": [{"functionCall": {"args": {}}}]}],
            "$.contents[0].parts[0].functionCall.name",
        ),
        ([7], "$.contents[0]"),
        ([], "$.contents"),
        (None, "$.contents"),
    ],
)
def test_a_wrong_content_is_refused_at_its_place(contents, path):
    with pytest.raises(ClientFault) as refused:
        parse({"contents": contents})
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (asked(systemInstruction=[]), "$.systemInstruction"),
        (asked(labels={"a": 7}), "$.labels.a"),
        (asked(generationConfig={"seed": "x1"}), "$.generationConfig.seed"),
        (
            asked(toolConfig={"functionCallingConfig": {"mode": "SOMETIMES"}}),
            "$.toolConfig.functionCallingConfig.mode",
        ),
    ],
)
def test_a_wrong_setting_is_refused_at_its_place(body, path):
    with pytest.raises(ClientFault) as refused:
        parse(body)
    assert refused.value.path == path


@rows(
    "config",
    [
        {"mode": "AUTO", "allowedFunctionNames": ["a"]},
        {"mode": "VALIDATED", "allowedFunctionNames": ["a"]},
        {"allowedFunctionNames": ["a"]},
        {"mode": "MODE_UNSPECIFIED"},
        {"mode": 2},
        {},
    ],
)
def test_any_way_to_narrow_a_choice_comes_back(config):
    comes_back(asked(toolConfig={"functionCallingConfig": config}))


def test_names_of_a_choice_that_allows_nothing_are_declared():
    request = Request("m", parse(asked()).messages, tool_choice=ToolChoice("none", ("a",)))
    rendered = render(request)
    assert rendered.value["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert features(rendered) == [("$.tool_choice.only", "tool_choice", "dropped")]


def test_an_envelope_of_ours_without_state_is_no_signature():
    """A client gives back what stood for unsigned reasoning: nobody's state."""
    from wireglot_core.dialects.envelope import seal

    text = seal(Signature("", Origin("")), "unsigned", CONTEXT.secret)
    body = {"contents": [{"role": "model", "parts": [{"text": "x", "thoughtSignature": text}]}]}
    part = parse(body).messages[0].content[0]
    assert isinstance(part, Text)
    assert part.signature is None


@pytest.mark.parametrize("kind", [Text, Reasoning])
def test_pieces_of_another_providers_signed_prose_are_one_again(kind):
    """In one content, and across the contents that Google's SDK makes of chunks."""
    signature = Signature("s", Origin("anthropic"))
    answer = Response("r", "m", (kind("One two.", signature=signature),), Stop("end"))
    sealed = DIALECT.render_response(answer, CONTEXT).value["candidates"][0]["content"]["parts"][0]
    thought = {"thought": True} if kind is Reasoning else {}
    pieces = [{"text": "One ", **thought}, {"text": "two.", **thought}, {**sealed, "text": ""}]
    other = {"text": "Before.", **({} if thought else {"thought": True})}
    whole = {"contents": [{"role": "model", "parts": [other, *pieces]}]}
    apart = {"contents": [{"role": "model", "parts": [part]} for part in (other, *pieces)]}
    tail = {
        "contents": [{"role": "model", "parts": [other, *pieces[:2]]}, {"role": "model", "parts": pieces[2:]}]
    }
    for body in (whole, apart, tail):
        parts = [part for message in parse(body).messages for part in message.content]
        assert [getattr(part, "text", "") for part in parts] == ["Before.", "One two."]
        assert getattr(parts[-1], "signature", None) == signature


def test_a_schema_that_is_none_is_left_alone():
    assert json_schema(True) is True
    assert json_schema({"items": True, "anyOf": 7, "properties": 7}) == {
        "items": True,
        "anyOf": 7,
        "properties": 7,
    }
    assert json_schema({"minItems": "many", "nullable": "yes", "type": "Custom"}) == {
        "minItems": "many",
        "nullable": "yes",
        "type": "Custom",
    }


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ('{"a":1}', {"a": 1}),
        ("no json", {"output": "no json"}),
        ("[1]", {"output": "[1]"}),
    ],
)
def test_an_object_that_is_no_longer_one_is_an_output(result, response):
    """The text of a result may be changed on the way: by a plugin, or cut."""
    from msgspec.structs import replace

    body = {
        "contents": [
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1, "b": 2}}}]}
        ]
    }
    request = parse(body)
    message = request.messages[0]
    changed = replace(message, content=(replace(message.content[0], content=(Text(result),)),))
    sent = render(replace(request, messages=(changed,))).value
    assert sent["contents"][0]["parts"][0]["functionResponse"]["response"] == response


def test_media_of_a_kind_that_their_type_denies_say_so():
    for media, lost in (
        (
            Media("image", "application/pdf", "AAAA"),
            ("$.messages[0].content[0].kind", "image", "approximated"),
        ),
        (Media("video", "", "AAAA"), ("$.messages[0].content[0].mime", "video", "invented")),
    ):
        assert features(render(Request("m", (Message("user", (media,)),)))) == [lost]


@rows(
    ("kind", "url", "mime"),
    [
        ("image", "https://x/a.PNG?b=c.gif", "image/png"),
        ("image", "https://x/a.jpg", "image/jpeg"),
        ("image", "https://x/a.jpeg", "image/jpeg"),
        ("image", "https://x/a.gif", "image/gif"),
        ("image", "https://x/a.webp", "image/webp"),
        ("image", "https://x/a.heic", "image/heic"),
        ("image", "https://x/a.pdf", "image/jpeg"),
        ("document", "https://x/a.pdf", "application/pdf"),
        ("document", "https://x/a.txt", "text/plain"),
        ("document", "https://x/a.md", "text/markdown"),
        ("document", "https://x/a.html", "text/html"),
        ("document", "https://x/a.csv", "text/csv"),
        ("document", "https://x/a", "application/pdf"),
        ("audio", "https://x/a.wav", "audio/wav"),
        ("audio", "https://x/a.mp3", "audio/mpeg"),
        ("audio", "https://x/a", "audio/wav"),
        ("video", "https://x/a.mp4", "video/mp4"),
        ("video", "https://x/a.mov", "video/quicktime"),
        ("video", "https://x/a.webm", "video/webm"),
        ("video", "https://x/a", "video/mp4"),
    ],
)
def test_a_type_that_was_not_stated_is_guessed_by_its_address(kind, url, mime):
    sent = render(Request("m", (Message("user", (Media(kind, url=url),)),))).value
    assert sent["contents"][0]["parts"] == [{"fileData": {"mimeType": mime, "fileUri": url}}]


def test_data_without_its_padding_comes_back_without_it():
    body = {
        "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "-_8"}}]}]
    }
    comes_back(body)
    (part,) = parse(body).messages[0].content
    assert isinstance(part, Media)
    assert part.data == "+/8="


# Streams


def test_what_follows_the_prose_ends_it():
    """Each kind of part behind text, and the text behind it is a part of its own."""
    answer = fold(
        events_of(
            chunk({"text": "a"}, {"text": "b"}),
            chunk({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
            chunk({"text": "c"}, {"executableCode": {"code": "1"}}, {"text": "d"}),
            chunk({"text": "t", "thought": True}, {"text": "e", "partMetadata": {"n": 1}}),
            chunk({"text": "", "thought": True, "thoughtSignature": "U0lH"}, {"text": "f"}),
            chunk(finish="STOP"),
        )
    )
    shown = [(type(part).__name__, getattr(part, "text", "")) for part in answer.content]
    assert shown == [
        ("Text", "ab"),
        ("Media", None),
        ("Text", "c"),
        ("Foreign", ""),
        ("Text", "d"),
        ("Reasoning", "t"),
        ("Text", "e"),
        ("Reasoning", ""),
        ("Text", "f"),
    ]


@rows(
    "body",
    [
        {"candidates": 7},
        {"candidates": [7]},
        {"candidates": [{"content": 7}]},
        [7],
        7,
    ],
)
def test_a_chunk_that_is_none_fails_the_stream(body):
    assert type(events_of(body)[-1]).__name__ == "Failure"


def test_a_candidate_without_parts_or_with_one_is_read():
    single = {"candidates": [{"content": {"parts": {"text": "a"}, "role": "model"}}]}
    empty = {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}
    assert fold(events_of(single, empty)).content == (Text("a"),)


def test_an_unspecified_reason_is_none():
    unsaid = chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED")
    assert type(events_of(unsaid)[-1]).__name__ == "Failure"
    assert fold(events_of(unsaid, chunk(finish="STOP"), unsaid)).stop.raw == "STOP"


def test_each_further_answer_has_the_number_and_the_ids_of_its_own():
    call = {"functionCall": {"name": "f", "args": {}}}
    answer = fold(
        events_of(
            {
                "candidates": [
                    {"content": {"parts": [call]}, "index": 0},
                    {"content": {"parts": [call]}},
                    {"content": {"parts": [call]}, "index": 2},
                ],
                "responseId": "r",
            },
            {
                "candidates": [
                    {"content": {"parts": [{"text": "x"}]}, "index": 2, "finishReason": "MAX_TOKENS"}
                ]
            },
            chunk(finish="STOP"),
        )
    )
    one, two = answer.others
    assert (one.stop.raw, two.stop.raw) == ("OTHER", "MAX_TOKENS")
    ids = [getattr(part, "id", "") for each in (answer, one, two) for part in each.content[:1]]
    assert len(set(ids)) == 3
    assert [each.extra.form["index"] for each in (one, two) if each.extra] == [1, 2]


def test_a_document_that_is_no_answer_is_no_answer():
    reader = DIALECT.stream_reader(CONTEXT)
    events = [*reader.read(b'{"hello":1}'), *reader.end()]
    assert [type(event).__name__ for event in events] == ["Failure"]


def test_an_answer_that_grows_without_bound_is_given_up(monkeypatch):
    from wireglot_core.dialects.gemini import tap

    monkeypatch.setattr(tap, "MAX_DOCUMENT_BYTES", 10)
    one = tap.StreamDocuments(1000)
    assert one.feed(b'{"a":1234}') == []
    with pytest.raises(FrameTooLarge):
        one.feed(b"x")


def test_line_ends_inside_a_text_are_escaped():
    """google-genai splits text, not bytes, and takes these for line ends."""
    text = "a\u2028b\u2029c\u0085d"
    data = DIALECT.stream_writer(CONTEXT).write(list(unfold(Response("r", "m", (Text(text),), Stop("end")))))
    assert b"a\\u2028b\\u2029c\\u0085d" in data
    assert not {"\u2028", "\u2029", "\u0085"} & set(data.decode())


def test_a_text_that_waits_for_its_turn_leaves_whole_and_in_order():
    for context in (CONTEXT, Context(framing="json-array")):
        chunks, lost = written(
            [
                Start("r", "m"),
                PartStart(0, ToolCall("c", "f", "")),
                PartStart(1, Text("")),
                Delta(1, "a"),
                Delta(1, "b"),
                Delta(0, "{}"),
                PartEnd(0),
                Delta(1, "c"),
                PartEnd(1),
                Finish(Stop("tool_calls")),
            ],
            context,
        )
        parts = [chunk["candidates"][0]["content"]["parts"][0] for chunk in chunks]
        assert parts[0]["functionCall"]["name"] == "f"
        assert [part.get("text") for part in parts[1:]] == ["ab", "c", ""]
        assert lost == []


@pytest.mark.parametrize("side", ["media", "foreign"])
def test_what_an_answer_holds_beside_prose_leaves_or_is_declared(side):
    part = Media("image", "image/png", "AAAA") if side == "media" else Foreign("anthropic", "x", {})
    chunks, lost = written(list(unfold(Response("r", "m", (part,), Stop("end")))))
    assert len(chunks) == (2 if side == "media" else 1)
    assert lost == ([] if side == "media" else [("$.content[0]", "foreign_part", "dropped")])


# Over HTTP


@rows(
    ("path", "model"),
    [
        ("/v1beta/models/m:generateContent", "m"),
        ("/v1/models/m:generateContent", "m"),
        ("/v1alpha/models/m:generateContent", "m"),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/m:generateContent", "m"),
        ("/v1beta/org/m:generateContent", "org/m"),
        ("/v1beta/models/org/m:1:generateContent", "org/m:1"),
    ],
)
def test_the_model_is_named_in_the_path(path, model):
    match = find("POST", path)
    assert match is not None
    assert (match.operation, match.model, match.stream) == ("generate", model, False)
    assert find("GET", path) is None
    assert find("POST", path.replace("generateContent", "guess")) is None
    assert find("POST", "/v2" + path) is None


def test_a_tier_of_ours_is_one_that_a_client_need_not_choose_or_pay_for():
    """Gemini CLI asks: is there one, is it mine already, must I bring a project?"""
    loaded = ASSIST.answer("loadCodeAssist", {}, ())
    assert loaded is not None
    assert loaded["allowedTiers"] == [loaded["currentTier"]]
    tier = loaded["currentTier"]
    assert (tier["id"], tier["name"]) == ("standard-tier", "Wireglot")
    assert (tier["isDefault"], tier["hasOnboardedPreviously"]) == (True, True)
    assert tier["userDefinedCloudaicompanionProject"] is False
    assert loaded["gcpManaged"] is False


@pytest.mark.parametrize("name", ["generateContentRequest", "generate_content_request"])
def test_a_count_of_a_request_inside_a_field_is_refused_at_its_place(name):
    counts = DIALECT.surface.counts
    assert counts is not None
    inner = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    assert counts.parse_request({name: inner}, CONTEXT).messages == parse(inner).messages
    for wrong, path in ((7, f"$.{name}"), ({"contents": []}, f"$.{name}.contents")):
        with pytest.raises(ClientFault) as refused:
            counts.parse_request({name: wrong}, CONTEXT)
        assert refused.value.path == path


@pytest.mark.parametrize(
    ("status", "code", "name"),
    [(500, 500, "INTERNAL"), (502, 502, "UNAVAILABLE"), (503, 503, "UNAVAILABLE"), (504, 500, "INTERNAL")],
)
def test_a_server_that_is_not_reached_is_distinguished_from_one_that_broke(status, code, name):
    """Google's clients try the one again and not the other."""
    error = DIALECT.render_error(ApiError("server", "x", status), CONTEXT).value["error"]
    assert (error["code"], error["status"]) == (code, name)


def test_a_schema_in_snake_case_is_the_same_schema():
    camel: dict[str, Any] = {
        "minItems": "1",
        "maxItems": "2",
        "minLength": "3",
        "maxLength": "4",
        "minProperties": "5",
    }
    camel |= {"maxProperties": "6", "anyOf": [{"type": "STRING"}], "additionalProperties": {"type": "STRING"}}
    camel |= {"prefixItems": [{"type": "STRING"}], "propertyOrdering": ["a"]}
    snake = {
        "".join("_" + c.lower() if c.isupper() else c for c in key): value for key, value in camel.items()
    }
    assert json_schema(snake) == json_schema(camel)
    assert json_schema(camel)["minItems"] == 1
