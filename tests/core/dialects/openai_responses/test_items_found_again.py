"""Which item of a stream an event, a done item or the final output is about: ids first, places where there is
nothing else to go by."""

import pytest

from tests.core.dialects.openai_responses.test_stream_reader import (
    CREATED,
    added,
    arguments_delta,
    call,
    done,
    finished,
    message,
    text_delta,
)
from tests.core.dialects.openai_responses.wire import CONTEXT, answer_comes_back, read, sse
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.stream import fold


def folded(*events):
    return fold(read(sse(*events)))


def texts(*events):
    return [part.text for part in folded(*events).content if isinstance(part, Text)]


def calls(*events):
    return [(part.id, part.arguments) for part in folded(*events).content if isinstance(part, ToolCall)]


def other_call(arguments="", **more):
    return {**call(arguments, "c2", **more), "id": "fc_2", "name": "g"}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_text_that_streams_at_another_content_index_than_it_has_in_the_done_item_is_reported_once(number):
    """[X3] Bedrock's gpt-oss streams its text at content_index 1 and finishes the item with one part."""
    whole = message("Hello")
    assert texts(
        CREATED,
        added(0, message("") | {"content": []}),
        text_delta("Hel", number=number),
        text_delta("lo", number=number),
        finished(0, whole),
        done(whole),
    ) == ["Hello"]


def test_what_the_deltas_at_another_content_index_left_out_is_added_to_them():
    """[X3]"""
    assert texts(CREATED, text_delta("Hel", number=1), finished(0, message("Hello")), done()) == ["Hello"]


def test_two_texts_of_one_item_stay_two():
    """[X3] Only a text that continues the final one is that text."""
    both = message("") | {
        "content": [{"type": "output_text", "text": "one"}, {"type": "output_text", "text": "two"}]
    }
    assert texts(CREATED, text_delta("two", number=1), finished(0, both), done()) == ["two", "one"]
    assert texts(CREATED, text_delta("one"), text_delta("two", number=1), finished(0, both), done()) == [
        "one",
        "two",
    ]


def test_the_final_output_finishes_a_call_that_streamed_at_another_place():
    """[X22] The place in `output` need not be the `output_index`: a hidden item may have stood before."""
    assert calls(CREATED, added(1, call()), done(call('{"a":1}'))) == [("c1", '{"a":1}')]


def test_calls_in_another_order_keep_their_own_arguments():
    """[X22]"""
    assert calls(
        CREATED, added(0, call()), added(1, other_call()), done(other_call('{"b":2}'), call('{"a":1}'))
    ) == [("c1", '{"a":1}'), ("c2", '{"b":2}')]


def test_a_done_item_of_another_place_finishes_the_item_it_names():
    """[X22]"""
    assert calls(
        CREATED,
        added(0, call()),
        added(1, other_call()),
        finished(0, other_call('{"b":2}')),
        finished(1, call('{"a":1}')),
        done(),
    ) == [("c1", '{"a":1}'), ("c2", '{"b":2}')]


def test_a_call_that_only_the_final_output_has_is_not_lost_for_its_place():
    """[X22] Items of the stream that the final output leaves out move the others."""
    assert calls(
        CREATED,
        text_delta("Hi"),
        finished(0, message("Hi")),
        added(1, call()),
        finished(1, call('{"a":1}')),
        done(call('{"a":1}'), other_call('{"b":2}')),
    ) == [("c1", '{"a":1}'), ("c2", '{"b":2}')]


def test_items_that_all_claim_one_place_are_distinguished_by_their_ids():
    """[X22] Servers that print output_index 0 on everything."""
    events = (
        CREATED,
        added(0, message("") | {"content": []}),
        text_delta("Hi"),
        finished(0, message("Hi")),
        added(0, call()),
        arguments_delta('{"a":1}'),
        finished(0, call('{"a":1}')),
        added(0, other_call()),
        arguments_delta('{"b":2}') | {"item_id": "fc_2"},
        finished(0, other_call('{"b":2}')),
        done(message("Hi"), call('{"a":1}'), other_call('{"b":2}')),
    )
    assert texts(*events) == ["Hi"]
    assert calls(*events) == [("c1", '{"a":1}'), ("c2", '{"b":2}')]


def test_a_final_output_without_ids_repeats_nothing():
    """[X22] Where nothing but the kind can tell, the first of a kind is the first."""
    bare = {key: value for key, value in message("Hi").items() if key != "id"}
    assert texts(CREATED, text_delta("Hi", index=1), done(bare)) == ["Hi"]


@pytest.mark.parametrize("key", ["text", "refusal"])
def test_a_text_of_null_is_an_empty_one(key):
    """[X22] An answer is no error because one of its texts is null."""
    kind = "output_text" if key == "text" else "refusal"
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 5,
        "status": "completed",
        "model": "gpt",
        "output": [
            message("") | {"content": [{"type": kind, key: None, "annotations": []}]},
            call("{}", status="completed"),
        ],
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }
    response = answer_comes_back(body)
    assert [type(part) for part in response.content] == [Text, ToolCall]


def test_a_text_of_null_in_a_done_item_keeps_what_was_streamed():
    """[X22]"""
    hollow = message("") | {"content": [{"type": "output_text", "text": None}]}
    assert texts(CREATED, text_delta("Hi"), finished(0, hollow), done(hollow)) == ["Hi"]


@pytest.mark.parametrize("error", [{}, {"message": "", "code": None}, {"code": None, "message": None}])
def test_an_error_with_nothing_in_it_beside_an_output_is_none(error):
    """[X22]"""
    body = {"id": "resp_1", "status": "completed", "output": [message("Hi")], "error": error}
    assert DIALECT.parse_error(body) is None
    assert DIALECT.parse_response(body, CONTEXT).content
