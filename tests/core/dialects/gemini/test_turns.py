"""Calls, results and how turns are grouped."""

import pytest

from tests.tiers import rows
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.ir.content import Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request

CONTEXT = Context()
HELLO = {"role": "user", "parts": [{"text": "Hello"}]}


def parse(*contents):
    return DIALECT.parse_request({"contents": list(contents)}, CONTEXT)


def render(*messages):
    return DIALECT.render_request(Request("m", messages), CONTEXT)


def comes_back(*contents):
    rendered = DIALECT.render_request(parse(*contents), CONTEXT)
    assert rendered.losses == ()
    assert rendered.value["contents"] == list(contents)


def called(*calls):
    return {"role": "model", "parts": [{"functionCall": call} for call in calls]}


def answered(*answers):
    return {"role": "user", "parts": [{"functionResponse": answer} for answer in answers]}


def results(request):
    return [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]


def calls(request):
    return [part for message in request.messages for part in message.content if isinstance(part, ToolCall)]


# Ids


def test_results_without_ids_answer_the_calls_of_their_name_in_order():
    """R-E-03, R-E-05, C46: the request's own history is the map."""
    request = parse(
        HELLO,
        called({"name": "f", "args": {"n": 1}}, {"name": "g", "args": {}}, {"name": "f", "args": {"n": 2}}),
        answered(
            {"name": "g", "response": {"output": "G"}},
            {"name": "f", "response": {"output": "1"}},
            {"name": "f", "response": {"output": "2"}},
        ),
    )
    first, second, third = calls(request)
    assert [result.call_id for result in results(request)] == [second.id, first.id, third.id]
    assert len({first.id, second.id, third.id}) == 3


def test_made_up_ids_are_stable_and_never_sent_to_google():
    """R-DB-01, C4, C7: never a synthetic id on the wire."""
    contents = (
        HELLO,
        called({"name": "f", "args": {}}),
        answered({"name": "f", "response": {"output": "x"}}),
    )
    assert parse(*contents) == parse(*contents)
    assert is_minted(calls(parse(*contents))[0].id)
    comes_back(*contents)


def test_the_providers_own_ids_are_echoed():
    """R-V-02, C7"""
    comes_back(
        HELLO,
        called({"id": "abc", "name": "f", "args": {}}),
        answered({"id": "abc", "name": "f", "response": {"output": "x"}}),
    )


@pytest.mark.parametrize(("call", "answer"), [({"id": "abc"}, {}), ({}, {"id": "abc"})])
def test_an_id_on_one_side_only_still_pairs_and_comes_back(call, answer):
    contents = (
        HELLO,
        called({**call, "name": "f", "args": {}}),
        answered({**answer, "name": "f", "response": {"output": "x"}}),
    )
    request = parse(*contents)
    assert results(request)[0].call_id == calls(request)[0].id
    comes_back(*contents)


def test_an_unanswered_call_of_an_older_turn_is_not_answered_later():
    request = parse(
        called({"name": "f", "args": {"old": True}}),
        HELLO,
        called({"name": "f", "args": {}}),
        answered({"name": "f", "response": {"output": "x"}}),
    )
    assert results(request)[0].call_id == calls(request)[1].id


def test_numeric_ids_are_read():
    """R-DB-16"""
    assert calls(parse(called({"id": 7, "name": "f"})))[0].id == "7"


# Arguments


def test_missing_arguments_are_an_empty_object():
    """R-T-07"""
    assert calls(parse(called({"name": "f"})))[0].arguments == "{}"
    comes_back(called({"name": "f"}))


def test_broken_arguments_are_wrapped_and_come_back_as_the_text_they_were():
    """C10, R-T-09"""
    rendered = render(Message("assistant", (ToolCall("call_1", "f", '{"a": '),)))
    args = rendered.value["contents"][0]["parts"][0]["functionCall"]["args"]
    assert args["_raw"] == '{"a": '
    again = DIALECT.parse_request(rendered.value, CONTEXT)
    assert calls(again)[0].arguments == '{"a": '


def test_large_numbers_in_arguments_do_not_change():
    comes_back(called({"name": "f", "args": {"n": 123456789012345678901234567890, "f": 1.0}}))


def test_googles_own_namespace_is_taken_off_a_name_and_put_back():
    """R-DB-13"""
    assert calls(parse(called({"name": "default_api.search"})))[0].name == "search"
    assert calls(parse(called({"name": "default_api:search"})))[0].name == "search"
    comes_back(called({"name": "default_api.search", "args": {}}))


# Results


@rows(
    ("response", "text", "is_error"),
    [
        ({"output": "done"}, "done", False),
        ({"error": "boom"}, "boom", True),
        ({"output": {"a": 1}}, '{"a":1}', False),
        ({"output": 5}, "5", False),
        ({"output": None}, "null", False),
        ({"error": {"code": 1}}, '{"code":1}', True),
        ({"temperature": 20, "unit": "C"}, '{"temperature":20,"unit":"C"}', False),
        ({"result": "x"}, '{"result":"x"}', False),
        ({}, "{}", False),
        ({"output": ""}, "", False),
    ],
)
def test_a_response_object_is_read_as_what_it_says_and_comes_back(response, text, is_error):
    """C8, R-V-04, R-DB-15"""
    contents = (HELLO, called({"name": "f", "args": {}}), answered({"name": "f", "response": response}))
    result = results(parse(*contents))[0]
    assert result.content == ((Text(text),) if text else ())
    assert result.is_error is is_error
    comes_back(*contents)


def test_a_result_of_another_dialect_is_output_or_error_text():
    """R-V-01, R-V-04: text items joined with a newline; C8: an error is an error."""
    call = Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")))
    rendered = render(
        call,
        Message(
            "user",
            (ToolResult("a", (Text("one"), Text("two"))), ToolResult("b", (Text('{"x":1}'),), is_error=True)),
        ),
    )
    assert rendered.value["contents"][1]["parts"] == [
        {"functionResponse": {"id": "a", "name": "f", "response": {"output": "one\ntwo"}}},
        {"functionResponse": {"id": "b", "name": "g", "response": {"error": '{"x":1}'}}},
    ]
    assert rendered.losses == ()


def test_an_image_in_a_result_stays_an_image():
    """C8, R-V-05, R-DB-14, PAINS A19"""
    call = Message("assistant", (ToolCall("a", "f", "{}"),))
    rendered = render(
        call, Message("user", (ToolResult("a", (Text("see"), Media("image", "image/png", "AAAA"))),))
    )
    assert rendered.value["contents"][1]["parts"] == [
        {
            "functionResponse": {
                "id": "a",
                "name": "f",
                "response": {"output": "see"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
            }
        }
    ]
    assert rendered.losses == ()


@rows(
    "answer",
    [
        {
            "name": "f",
            "response": {"output": "x"},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
        },
        {"name": "f", "response": {"output": "x"}, "parts": []},
        {"name": "f", "response": {"output": "x"}, "willContinue": False, "scheduling": "SILENT"},
        {"name": "f"},
        {"name": "f", "response": {"output": "x"}, "parts": [{"x_future": 1}]},
    ],
)
def test_a_function_response_comes_back(answer):
    comes_back(HELLO, called({"name": "f", "args": {}}), answered(answer))


def test_a_result_no_call_is_known_for_has_a_made_up_name_and_says_so():
    rendered = render(Message("user", (ToolResult("x", (Text("y"),)),)))
    assert [loss.feature for loss in rendered.losses] == ["tool_result.name"]


# Grouping


def test_neighbours_of_one_role_become_one_content():
    rendered = render(
        Message("user", (Text("a"),)), Message("user", (Text("b"),)), Message("assistant", (Text("c"),))
    )
    assert rendered.value["contents"] == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}]},
    ]


def test_all_results_of_a_step_stand_first_in_the_order_of_the_calls():
    """R-DB-04, PAINS A15"""
    rendered = render(
        Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))),
        Message("user", (ToolResult("b", (Text("B"),)),)),
        Message("user", (Text("and?"), ToolResult("a", (Text("A"),)))),
    )
    parts = rendered.value["contents"][1]["parts"]
    assert [part.get("functionResponse", part).get("name", "text") for part in parts] == ["f", "g", "text"]
    assert [loss.feature for loss in rendered.losses] == ["content.position"]


def test_a_gemini_clients_own_order_is_left_alone():
    comes_back(
        HELLO,
        called({"name": "f", "args": {}}),
        {
            "role": "user",
            "parts": [{"text": "hm"}, {"functionResponse": {"name": "f", "response": {"output": "x"}}}],
        },
    )


def test_the_input_is_never_changed():
    from copy import deepcopy

    body = {
        "contents": [HELLO, called({"name": "f", "args": {"a": [1]}})],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    }
    before = deepcopy(body)
    rendered = DIALECT.render_request(DIALECT.parse_request(body, CONTEXT), CONTEXT)
    rendered.value["contents"].clear()
    assert body == before


@pytest.mark.parametrize("empty", [{"role": "model"}, {"role": "model", "parts": []}])
def test_a_gemini_clients_own_empty_turn_is_left_alone(empty):
    """Google takes it, and dropping it would run two turns of the user together."""
    comes_back(HELLO, empty, {"role": "user", "parts": [{"text": "Go on."}]})
