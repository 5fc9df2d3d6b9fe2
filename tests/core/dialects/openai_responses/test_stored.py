"""Stored responses, conversations and compactions: what a request says of them, and the items they are made of."""

import pytest
from msgspec.structs import replace

from tests.core.dialects.test_surfaces import Read
from tests.tiers import rows
from wireglot_core.cache.memory import Memory
from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.dialects.openai_responses.compaction import COMPACTION
from wireglot_core.dialects.openai_responses.stored import ITEMS, STORED
from wireglot_core.dialects.openai_responses.surface import failed_search
from wireglot_core.ir.content import (
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
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.request import Request
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline

CONTEXT = Context(now=1760000000)
OWN = "openai-responses"


def parsed(**body):
    return DIALECT.parse_request({"model": "m", "input": "Hi", **body}, CONTEXT)


def read(**body):
    return Read({"model": "m", "input": "Hi", **body})


def new_id(prefix, number):
    return f"{prefix}_{number}"


# What a request says


@rows(
    ("body", "said"),
    [
        ({}, (None, "", "conv", False, False)),
        ({"store": True}, (True, "", "conv", False, False)),
        ({"store": False, "background": True}, (False, "", "conv", True, False)),
        ({"previous_response_id": "resp_1"}, (None, "resp_1", "", False, False)),
        ({"conversation": "conv"}, (None, "", "conv", False, False)),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, (None, "", "conv", False, True)),
        ({"input": [{"id": "msg_1"}]}, (None, "", "conv", False, True)),
        ({"input": [{"role": "user", "content": "item_reference"}]}, (None, "", "conv", False, False)),
        ({"input": "item_reference"}, (None, "", "conv", False, False)),
        ({"metadata": {"id": "x"}}, (None, "", "conv", False, False)),
    ],
)
def test_what_a_request_says_of_state_is_read_from_its_outline(body, said):
    options = STORED.options(read(**body), "conv")
    assert (
        options.store,
        options.previous,
        options.holding,
        options.background,
        options.refers,
    ) == said


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ({"store": "yes"}, "$.store", "invalid_type"),
        ({"previous_response_id": 7}, "$.previous_response_id", "invalid_type"),
        (
            {"previous_response_id": "resp_1", "conversation": "c"},
            "$.previous_response_id",
            "mutually_exclusive_parameters",
        ),
    ],
)
def test_a_wrong_word_about_state_is_refused_at_its_place(body, path, code):
    with pytest.raises(BadField) as refused:
        STORED.options(read(**body), "")
    assert (refused.value.path, refused.value.code) == (path, code)


@rows(
    ("item", "is_one"),
    [
        ({"type": "item_reference", "id": "x"}, True),
        ({"id": "x"}, True),
        ({"id": "x", "role": "user"}, False),
        ({"role": "user"}, False),
        ({"type": "message", "id": "x"}, False),
        ("x", False),
    ],
)
def test_a_reference_may_leave_its_type_out(item, is_one):
    assert STORED.is_reference(item) is is_one


def test_what_the_gateway_keeps_is_taken_out_of_a_request():
    request = parsed(
        previous_response_id="resp_1", conversation="c", store=True, background=True, truncation="auto"
    )
    left = DIALECT.render_request(STORED.without_state(request), CONTEXT).value
    assert not left.keys() & {"previous_response_id", "conversation", "store", "background"}
    assert left["truncation"] == "auto"
    bare = STORED.without_state(replace(request, extra=None))
    assert bare.extra == Extra(OWN)


@rows(
    ("body", "include", "hidden"),
    [
        ({}, ["reasoning.encrypted_content"], True),
        ({"reasoning": {"effort": "low"}}, ["reasoning.encrypted_content"], True),
        ({"include": None}, ["reasoning.encrypted_content"], True),
        ({"include": ["a"]}, ["a", "reasoning.encrypted_content"], True),
        ({"include": [{"odd": []}]}, [{"odd": []}, "reasoning.encrypted_content"], True),
        ({"include": ["reasoning.encrypted_content", "a"]}, ["reasoning.encrypted_content", "a"], False),
    ],
)
def test_a_request_that_we_store_is_not_stored_upstream_and_asks_for_its_reasoning(body, include, hidden):
    request = STORED.reported(parsed(store=True, **body), {"id": "resp_ours", "store": True})
    sent = DIALECT.render_request(request, CONTEXT).value
    assert sent["store"] is False
    assert sent["include"] == include
    assert STORED.hides_state(request) is hidden
    assert not STORED.hides_state(parsed(store=False, **body))


def test_a_model_that_does_not_reason_is_not_asked_for_reasoning():
    request = STORED.reported(parsed(store=True), {"id": "resp_ours", "store": True})
    assert "include" not in DIALECT.render_request(request, replace(CONTEXT, reasons=False)).value


@pytest.mark.parametrize("encrypted", ["gAAAA", None])
def test_items_have_their_ids_only_behind_the_reasoning_they_were_made_with(encrypted):
    """OpenAI: "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item"."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    if encrypted is not None:
        thought["encrypted_content"] = encrypted
    text = [{"type": "output_text", "text": "Let me see.", "annotations": []}]
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": text}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    later = {"type": "message", "id": "msg_2", "role": "assistant", "content": text}
    request = parsed(input=[thought, said, call, result, later])
    ours = DIALECT.render_request(STORED.reported(request, {"id": "resp_ours"}), CONTEXT)
    kept = ["rs_1", "msg_1", "fc_1", None, None] if encrypted is not None else [None] * 4
    assert [item.get("id") for item in ours.value["input"]] == kept
    lost = [] if encrypted is not None else ["reasoning.signature"]
    assert [loss.feature for loss in ours.losses] == lost
    # Who stores upstream has the items there, by their ids.
    theirs = DIALECT.render_request(request, CONTEXT).value["input"]
    assert [item.get("id") for item in theirs] == ["rs_1", "msg_1", "fc_1", None, "msg_2"]


def test_instructions_are_distinguished_from_other_messages():
    made = STORED.instructions("Be brief.")
    assert (made.role, made.content) == ("system", (Text("Be brief."),))
    assert STORED.is_instructions(made)
    assert not STORED.is_instructions(Message("system", (Text("Be brief."),)))
    assert not STORED.is_instructions(replace(made, extra=Extra("gemini", form={"instructions": True})))
    assert not STORED.is_instructions(replace(made, extra=Extra(OWN)))
    request = Request("m", (made, Message("user", (Text("Hi"),))), extra=Extra(OWN))
    assert DIALECT.render_request(request, CONTEXT).value["instructions"] == "Be brief."


# Items


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        (
            "Hi",
            [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Hi"}],
                    "id": "msg_0",
                    "status": "completed",
                }
            ],
        ),
        (
            [{"role": "assistant", "content": "Ho", "id": "msg_a", "status": "incomplete"}],
            [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Ho", "annotations": []}],
                    "id": "msg_a",
                    "status": "incomplete",
                }
            ],
        ),
        (7, []),
        (None, []),
    ],
)
def test_an_item_has_an_id_a_type_a_status_and_parts(given, whole):
    assert STORED.whole_items(given, new_id) == whole


@rows(
    ("kind", "prefix", "status"),
    [
        ("message", "msg", "completed"),
        ("reasoning", "rs", None),
        ("function_call", "fc", "completed"),
        ("function_call_output", "fco", "completed"),
        ("custom_tool_call", "ctc", "completed"),
        ("custom_tool_call_output", "ctco", "completed"),
        ("image_generation_call", "ig", None),
        ("compaction", "cmp", None),
        ("web_search_call", "item", None),
    ],
)
def test_each_kind_of_item_has_its_own_ids(kind, prefix, status):
    (whole,) = STORED.whole_items([{"type": kind, "content": [], "id": None}], new_id)
    assert (whole["id"], whole.get("status"), whole["content"]) == (f"{prefix}_0", status, [])


def test_a_turn_is_cut_into_the_items_that_it_becomes():
    call, custom = ToolCall("c", "f", "{}"), ToolCall("d", "g", "x", "custom")
    picture = Media("image", "image/png", "AAAA")
    turn = Message("assistant", (Reasoning("r"), Text("a"), Text("b"), call, custom, picture, Text("c")))
    assert list(ITEMS.cut(turn)) == [
        ("rs", (Reasoning("r"),)),
        ("msg", (Text("a"), Text("b"))),
        ("fc", (call,)),
        ("ctc", (custom,)),
        ("ig", (picture,)),
        ("msg", (Text("c"),)),
    ]
    one, other = ToolResult("c"), ToolResult("d", kind="custom")
    asked = Message("user", (one, other, Text("a"), picture))
    assert list(ITEMS.cut(asked)) == [("fco", (one,)), ("ctco", (other,)), ("msg", (Text("a"), picture))]


@rows(
    ("role", "part", "shown"),
    [
        (
            "user",
            Text("Hi"),
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        ),
        (
            "system",
            Text("Hi"),
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Hi"}]},
        ),
        (
            "assistant",
            Text("Ho", signature=Signature("s", Origin("gemini"))),
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Ho", "annotations": [], "logprobs": []}],
            },
        ),
        (
            "assistant",
            ToolCall("c", "f", "{}", signature=Signature("s", Origin("gemini"))),
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        ),
        (
            "user",
            ToolResult("c", (Text("x"),)),
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ),
    ],
)
def test_a_turn_of_any_client_is_shown_as_an_item(role, part, shown):
    item = ITEMS.render_item(Message(role, (part,), extra=Extra("gemini", {"x": 1})), "id_1", CONTEXT)
    assert item == {**shown, "id": "id_1", "status": "completed"}


def test_reasoning_is_shown_as_itself_and_what_cannot_be_said_as_an_empty_message():
    thought = ITEMS.render_item(Message("assistant", (Reasoning("why"),)), "rs_1", CONTEXT)
    assert thought == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "why"}],
    }
    for role in ("assistant", "user"):
        alien = Message(role, (Foreign("gemini", "executableCode", {}),))
        shown = ITEMS.render_item(alien, "msg_1", CONTEXT)
        assert shown == {"type": "message", "role": role, "content": [], "id": "msg_1", "status": "completed"}


def test_items_are_read_as_a_request_of_theirs():
    request = ITEMS.parse_items([{"role": "user", "content": "Hi"}], CONTEXT)
    assert [message.content for message in request.messages] == [(Text("Hi"),)]
    assert request.model == ""


def test_nothing_of_what_we_make_ourselves_is_stored_upstream():
    request = Request("m", (Message("user", (Text("Hi"),)),), extra=STORED.unstored)
    assert DIALECT.render_request(request, CONTEXT).value["store"] is False
    assert STORED.fields == {"previous_response_id", "conversation", "background", "store"}


# Compaction


@rows(
    ("items", "is_asked"),
    [
        ([{"role": "user", "content": "x"}, {"type": "compaction_trigger"}], True),
        ([{"role": "user", "content": "compaction_trigger"}], False),
        (["compaction_trigger"], False),
        ("compaction_trigger", False),
        ("x", False),
    ],
)
def test_a_trigger_in_the_input_asks_for_a_compaction(items, is_asked):
    assert COMPACTION.is_asked(read(input=items)) is is_asked


def test_a_compaction_is_an_item_that_carries_sealed_text():
    item = COMPACTION.render_item("cmp_1", "sealed")
    assert item == {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    part = Foreign(OWN, "compaction", item)
    assert COMPACTION.kind == "compaction"
    assert COMPACTION.is_item(part)
    assert COMPACTION.sealed_text(part) == "sealed"
    for other in (
        Foreign("gemini", "compaction", item),
        Foreign(OWN, "web_search_call", item),
        Text("compaction"),
    ):
        assert not COMPACTION.is_item(other)
    assert COMPACTION.sealed_text(Foreign(OWN, "compaction", {"encrypted_content": 7})) == ""
    assert COMPACTION.sealed_text(Text("x")) == ""


def test_what_a_compaction_keeps_has_ids_and_parts():
    several = [
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": [{"type": "input_text", "text": "Ho"}]},
    ]
    for given, texts in (("Hi", ["Hi"]), (several, ["Hi", "Ho"])):
        kept = COMPACTION.render_kept(list(parsed(input=given).messages), lambda: "msg_1", CONTEXT)
        assert kept == [
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            }
            for text in texts
        ]


def test_the_answer_to_a_compaction_has_its_output_and_its_usage():
    answer = COMPACTION.render_answer("resp_1", [{"type": "compaction"}], None, CONTEXT)
    assert answer == {
        "id": "resp_1",
        "object": "response.compaction",
        "created_at": 1760000000,
        "output": [{"type": "compaction"}],
        "usage": {
            "input_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 0,
        },
    }
    assert COMPACTION.render_answer("resp_1", [], {"input_tokens": 3}, CONTEXT)["usage"] == {
        "input_tokens": 3
    }
    assert COMPACTION.put_in({"id": "a", "output": [1, 2]}, {"type": "x"}) == {
        "id": "a",
        "output": [{"type": "x"}],
    }


def test_the_words_of_an_answer_are_those_of_its_messages():
    said = [
        {"type": "output_text", "text": "a"},
        {"type": "refusal", "refusal": "b"},
        {"type": "output_text"},
    ]
    answer = {
        "output": [
            {"type": "reasoning", "content": said},
            {"type": "message", "content": said},
            {"type": "message"},
        ]
    }
    assert list(COMPACTION.texts(answer)) == ["a", ""]
    assert list(COMPACTION.texts({})) == []


# Over HTTP


def test_a_search_that_failed_is_a_call_and_a_word():
    call, word = failed_search(parsed(input="trams in Bern"), "no key", CONTEXT)
    assert isinstance(call, Foreign)
    assert (call.dialect, call.type) == (OWN, "web_search_call")
    action = {"type": "search", "query": "trams in Bern", "queries": ["trams in Bern"]}
    assert call.value == {
        "type": "web_search_call",
        "id": CONTEXT.new_id("ws", "trams in Bern"),
        "status": "failed",
        "action": action,
    }
    assert word == Text("The web was not searched: no key.")


@rows(
    ("message", "code", "is_one"),
    [
        ("The encrypted content could not be verified.", "", True),
        ("Encrypted_content is\ninvalid", "", True),
        ("no", "invalid_encrypted_content", True),
        ("code invalid_encrypted_content", "", True),
        ("Item 'fc_1' was provided without its required 'reasoning' item", "", True),
        ("Item 'rs_1' was provided without its required following item", "", True),
        ("Item with id 'rs_1' not found.", "", True),
        ("Item with id 'rs_1' was not found.", "", True),
        ("Item 'msg_1' was not found.", "", False),
        ("The model is overloaded.", "server_error", False),
    ],
)
def test_a_refusal_of_old_state_is_distinguished_from_other_errors(message, code, is_one):
    is_refusal = DIALECT.surface.reasoning.is_refusal
    assert is_refusal is not None
    assert is_refusal(ApiError("invalid_request", message, 400, code=code)) is is_one


def test_only_reasoning_that_is_shown_whole_is_of_use_unsigned():
    takes = DIALECT.surface.reasoning.takes_unsigned
    assert takes is not None
    assert takes(Reasoning("x", extra=Extra(OWN, form={"source": "content"})))
    assert not takes(Reasoning("x", extra=Extra(OWN, form={"source": "summary"})))
    assert not takes(Reasoning("x", extra=Extra("gemini", form={"source": "content"})))


def test_an_item_without_its_state_has_no_id():
    without = DIALECT.surface.reasoning.without_state
    assert without is not None
    given = Extra(OWN, {"a": 1}, {"id": "fc_1", "status": "x", "item": {"id": "msg_1", "number": 0}})
    assert without(given) == Extra(OWN, {"a": 1}, {"status": "x", "item": {"number": 0}})
    untouched = Extra(OWN, {}, {"status": "x", "item": {"number": 0}})
    assert without(untouched) is untouched


def test_items_of_a_message_that_is_remembered_are_objects_too() -> None:
    """A request of it may be written as JSON that is copied; an item that is stored or shown may not."""
    memory = Memory(1_000_000)
    context = Context(memory=memory)
    body = encode({"model": "m", "input": [{"role": "user", "content": "x" * 2000}]})
    document = memory.document(Outline(body), turns="input")
    (message,) = DIALECT.parse_request(document, context).messages
    assert memory.is_known(message)
    kept = COMPACTION.render_kept([message], lambda: "i", context)
    for rendered in (ITEMS.render_item(message, "i", context), *kept):
        assert rendered["id"] == "i"
        assert rendered["content"] == [{"type": "input_text", "text": "x" * 2000}]
