"""Small parts that all dialects share: fields, paths, arguments, counts, lists of models."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects import json_path, usage_checks
from wireglot_core.dialects.arguments import (
    arguments_text,
    is_json,
    is_wrapped,
    read_arguments,
    repaired_object,
    with_repaired_calls,
)
from wireglot_core.dialects.fields import Fields, describe, object_in, own_fields, own_form, text_in
from wireglot_core.dialects.listed_model import ListedModel, page_size, position, read_list
from wireglot_core.dialects.paths import Paths
from wireglot_core.dialects.registry import surfaces
from wireglot_core.dialects.schema.merge import merge
from wireglot_core.dialects.turns import JoinedTurn, WrittenTurn, _WriterCache
from wireglot_core.dialects.usage_checks import (
    UsageFields,
    joined_usage,
    losses_of_usage,
    split_output,
    uncounted,
)
from wireglot_core.ir.content import Extra, Message, Text, ToolCall
from wireglot_core.ir.errors import ClientFault, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.json import decode, encode


def test_what_a_wrong_value_is() -> None:
    values: list[Any] = [None, {}, [], "", True, 1, 1.5, b""]
    found = [describe(value) for value in values]
    assert found == [
        "null",
        "an object",
        "an array",
        "a string",
        "a boolean",
        "an integer",
        "a number",
        "bytes",
    ]
    assert (text_in("x"), text_in(1), object_in({"a": 1}), object_in([])) == ("x", "", {"a": 1}, {})


ONE_OF_EACH = {
    "t": "x",
    "i": 4,
    "f": 4.0,
    "h": 1.5,
    "b": True,
    "o": {"a": 1},
    "l": [1],
    "s": ["x"],
    "n": None,
}


@rows(
    ("method", "key", "value"),
    [
        ("text", "t", "x"),
        ("text_or_none", "t", "x"),
        ("text_or_none", "n", None),
        ("text_or_none", "missing", None),
        ("text_or", "t", "x"),
        ("text_or", "n", ""),
        ("integer", "i", 4),
        ("integer", "f", 4),
        ("integer", "n", None),
        ("number", "i", 4),
        ("number", "h", 1.5),
        ("number", "missing", None),
        ("boolean", "b", True),
        ("boolean", "n", None),
        ("dict_or_none", "o", {"a": 1}),
        ("dict_or_none", "n", None),
        ("array", "l", [1]),
        ("array_or_empty", "l", [1]),
        ("array_or_empty", "n", []),
        ("texts", "s", ("x",)),
        ("texts", "missing", ()),
    ],
)
def test_fields_are_taken_by_their_type(method: str, key: str, value: Any) -> None:
    assert getattr(Fields(ONE_OF_EACH), method)(key) == value


@rows(
    ("method", "key", "message", "path"),
    [
        ("text", "i", "expected a string, got an integer", "$.x.i"),
        ("text", "missing", "expected a string, but the field is missing", "$.x.missing"),
        ("text", "n", "expected a string, got null", "$.x.n"),
        ("text_or_none", "i", "expected a string, got an integer", "$.x.i"),
        ("text_or", "i", "expected a string, got an integer", "$.x.i"),
        ("integer", "h", "expected an integer, got a number", "$.x.h"),
        ("integer", "b", "expected an integer, got a boolean", "$.x.b"),
        ("number", "b", "expected a number, got a boolean", "$.x.b"),
        ("boolean", "i", "expected a boolean, got an integer", "$.x.i"),
        ("object", "l", "expected an object, got an array", "$.x.l"),
        ("object_or_none", "l", "expected an object, got an array", "$.x.l"),
        ("dict_or_none", "l", "expected an object, got an array", "$.x.l"),
        ("array", "o", "expected an array, got an object", "$.x.o"),
        ("array_or_empty", "o", "expected an array, got an object", "$.x.o"),
        ("texts", "l", "expected a string, got an integer", "$.x.l[0]"),
    ],
)
def test_a_field_of_the_wrong_type_is_the_fault_of_its_sender(
    method: str, key: str, message: str, path: str
) -> None:
    with pytest.raises(UpstreamFault) as fault:
        getattr(Fields(ONE_OF_EACH, "$.x", UpstreamFault), method)(key)
    assert (fault.value.message, fault.value.path) == (message, path)
    with pytest.raises(ClientFault, match="expected an object, got an array"):
        Fields([])


def test_objects_inside_know_their_place() -> None:
    fields = Fields({"o": {"a": 1}, "l": [{"b": 2}, 7]})
    assert fields.object("o").path == "$.o"
    assert fields.object_or_none("missing") is None
    objects = fields.objects("l")
    assert next(objects).path == "$.l[0]"
    with pytest.raises(ClientFault) as fault:
        next(objects)
    assert fault.value.path == "$.l[1]"


def test_what_nobody_took_is_kept() -> None:
    known = frozenset({"a", "n"})
    assert Fields({"a": 1}).rest(known, "d") is None
    assert Fields({"a": 1, "x": 2}).rest(known, "d") == Extra("d", {"x": 2})
    assert Fields({"a": 1, "n": None}).rest(known, "d") == Extra("d", {"n": None})
    assert Fields({"a": 1}).rest(known, "d", {"f": 1}) == Extra("d", {}, {"f": 1})
    extra = Extra("d", {"x": 2}, {"f": 1})
    assert (own_fields(extra, "d"), own_form(extra, "d")) == ({"x": 2}, {"f": 1})
    assert (own_fields(extra, "e"), own_form(extra, "e"), own_fields(None, "d"), own_form(None, "d")) == (
        {},
        {},
        {},
        {},
    )


# Paths.

DOCUMENT = {"a": {"b.c": [1, {"d": 2}], "b": {"x": 1}}, "snake_case": 1, "odd key": {"e": 1}, "one": {"f": 1}}


@rows(
    ("path", "way", "rest"),
    [
        ("$", "$", ""),
        ("$.a.b.c[1].d", '$.a["b.c"][1].d', ""),
        ("$.a.b.c[2].d", '$.a["b.c"]', "[2].d"),
        ("$.a.b.x", "$.a.b.x", ""),
        ("$.a.b.y", "$.a.b", ".y"),
        ("$.nothing", "$", ".nothing"),
        ('$["odd key"].e', '$["odd key"].e', ""),
        ("$.one[0].f", "$.one.f", ""),
        ("$.one[1].f", "$.one", "[1].f"),
        ("$.snakeCase", "$", ".snakeCase"),
        ("$.a.b.c.x", '$.a["b.c"]', ".x"),
        ("$.snake_case.x", "$.snake_case", ".x"),
    ],
)
def test_how_far_a_path_leads(path: str, way: str, rest: str) -> None:
    assert json_path.resolved(DOCUMENT, path) == (way, rest)


def test_paths_in_other_spellings() -> None:
    assert json_path.resolved(DOCUMENT, "$.snakeCase", snake=True) == ("$.snake_case", "")
    assert json_path.snake_case("maxOutputTokens") == "max_output_tokens"
    assert [json_path.joined("$.a", rest) for rest in ("", "[0]", "b")] == ["$.a", "$.a[0]", "$.a.b"]
    assert json_path.written("_a1") == "._a1"
    assert json_path.written("1a") == '["1a"]'


def test_a_path_has_at_most_512_characters() -> None:
    key = "k" * 509
    assert json_path.resolved({key: {"a": {}}}, f"$.{key}.a") == (f"$.{key}", ".a")
    key = "k" * 508
    assert json_path.resolved({key: {"a": {}}}, f"$.{key}.a") == (f"$.{key}.a", "")


def test_the_nearest_of_several_paths() -> None:
    assert json_path.nearest(DOCUMENT, ["$.no", "$.a.b.x", "$.one"]) == "$.a.b.x"
    assert json_path.nearest(DOCUMENT, ["$.one.no", "$.a.b.no", "$.a.no"]) == "$.a.b"
    assert json_path.nearest(DOCUMENT, ["$.one.no", "$.a.no"]) == "$.one"
    assert json_path.nearest(DOCUMENT, ["$.no"]) == "$"


# Arguments.


@rows(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2, ] }', {"a": [1, 2]}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('{"a":\x0b 1}', {"a": 1}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": 1}]\n', {"a": 1}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": 1}{}', {"a": 1}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('{"a": 1}{"b": 1}', None),
        ('{"a": 1', None),
        ('{"a": 1] }', None),
        ("[1]", None),
        ("{,}", None),
        ("[,]", None),
        ('{"a": 1,,}', None),
        ("text", None),
        ("", None),
        ('  {"a": 1,}', {"a": 1}),
        ('{"a": "b\\"}", }', {"a": 'b"}'}),
    ],
)
def test_what_arguments_were_meant_to_say(text: str, value: Any) -> None:
    assert repaired_object(text) == value


@rows(
    ("text", "value", "form"),
    [
        ("", {}, ""),
        (" \n", {}, ""),
        ("null", {}, ""),
        ('{"a": 1}', {"a": 1}, ""),
        ('{"a": 1,}', {"a": 1}, "repaired"),
        ("7", {"_parse_error": "invalid tool arguments JSON: not an object", "_raw": "7"}, "wrapped"),
        ('{"_raw": "x", "_parse_error": "y"}', {"_raw": "x", "_parse_error": "y"}, "wrapped"),
        ('{"_raw": 7, "_parse_error": "y"}', {"_raw": 7, "_parse_error": "y"}, ""),
    ],
)
def test_arguments_as_an_object(text: str, value: Any, form: str) -> None:
    assert read_arguments(text) == (value, form)


def test_text_that_is_no_object_is_wrapped_and_comes_back() -> None:
    value, form = read_arguments("nonsense")
    assert (form, value["_raw"], is_wrapped(value)) == ("wrapped", "nonsense", True)
    assert value["_parse_error"].startswith("invalid tool arguments JSON: ")
    assert (arguments_text(value), arguments_text({"a": 1})) == ("nonsense", '{"a":1}')
    assert (is_json("{}"), is_json("{"), is_json("[" * 5000)) == (True, False, False)


def test_calls_are_repaired_where_the_meaning_is_clear() -> None:
    good, bad, hopeless = (ToolCall("c", "f", text) for text in ('{"a":1}', '{"a":1,}', "no"))
    custom = ToolCall("c", "f", '{"a":1,}', kind="custom")
    losses: list[Any] = []
    content = (Text("x"), good, hopeless, custom)
    assert with_repaired_calls(content, "$.content", losses) is content
    fixed = with_repaired_calls((good, bad), "$.content", losses)
    assert [part.arguments for part in fixed if isinstance(part, ToolCall)] == ['{"a":1}', '{"a":1}']
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$.content[1].arguments", "tool_call.arguments", "approximated")
    ]


# Counts.

COUNTS = UsageFields(
    (("input", "in"), ("output", "out")),
    (("details", (("cached", "hit"),)),),
    lambda numbers: ["odd sum"] if numbers.get("cached", 0) > numbers.get("input", 0) else [],
    again=("total", "details.more"),
)


@rows(
    ("form", "problems"),
    [
        ({"in": 3, "out": 2, "details": {"hit": 3}}, ()),
        ({"in": 3, "details": {"hit": 4}}, ("odd sum",)),
        ({"in": -1}, ("negative_count",)),
        ({"in": 1.5}, ("count_not_whole",)),
        ({"in": True}, ("count_not_whole",)),
        ({"in": "x"}, ("count_not_whole",)),
        ({"in": "7", "details": {"hit": 7.0}}, ()),
        ({"in": 10**12}, ()),
        ({"in": 10**12 + 1}, ("count_absurd",)),
        ({"details": {"hit": -1}, "in": -1}, ("negative_count",)),
        ({"details": 7, "in": None}, ()),
        ({}, ()),
    ],
)
def test_counts_that_do_not_add_up(form: dict[str, Any], problems: tuple[str, ...]) -> None:
    assert COUNTS.problems(Extra("d", {}, form)) == problems


def test_which_counts_are_counted() -> None:
    assert COUNTS.counted == {"in": None, "out": None, "details": frozenset({"hit", "more"}), "total": None}
    raw = {
        "in": 1,
        "total": 1,
        "new": 2,
        "zero": 0,
        "empty": {"a": 0},
        "details": {"hit": 1, "odd": 3, "none": 0},
    }
    assert uncounted(raw, COUNTS.counted) == {"new": 2, "details.odd": 3}
    assert uncounted({"in": {"x": 1}}, COUNTS.counted) == {}


@rows(
    ("reported", "reasoning", "beside", "output"),
    [(10, 4, False, 6), (10, 4, True, 10), (4, 10, False, 4), (4, 4, False, 0), (4, 0, False, 4)],
)
def test_what_was_written_beside_the_reasoning(
    reported: int, reasoning: int, beside: bool, output: int
) -> None:
    assert split_output(reported, reasoning, beside=beside) == output


def test_counts_of_another_dialect_below_zero_are_lost() -> None:
    losses: list[Any] = []
    raw = Extra("them", {}, {"a": -1, "b": 0, "c": -0.5, "d": "x"})
    losses_of_usage(None, "us", "$.usage", losses)
    losses_of_usage(raw, "them", "$.usage", losses)
    assert losses == []
    losses_of_usage(raw, "us", "$.usage", losses)
    assert [(loss.path, loss.action) for loss in losses] == [
        ("$.usage.a", "dropped"),
        ("$.usage.c", "dropped"),
    ]


# Lists of models.


@rows(
    ("text", "size"),
    [("", 20), ("5", 5), ("1000", 1000), ("1001", 1000), ("9" * 30, 1000), ("0", None), ("x", None), ("-1", None), ("²", None)],
)  # fmt: skip
def test_the_size_of_a_page(text: str, size: int | None) -> None:
    query = {"limit": ["7", text]} if text else {}
    if size is None:
        with pytest.raises(ClientFault, match="expected a whole number from 1 to 1000"):
            page_size(query, "limit", 20)
    else:
        assert page_size(query, "limit", 20) == size
    assert page_size({"limit": ["0"]}, "limit", 20, zero_is_usual=True) == 20


def test_where_a_cursor_stands() -> None:
    listing = [ListedModel("a", "p"), ListedModel("b", "p", thinking="on")]
    assert position(listing, "b", "after") == 1
    assert [model.thinks for model in listing] == [False, True]
    with pytest.raises(ClientFault, match="expected the id of a listed model"):
        position(listing, "c", "after")


@rows(
    ("document", "ids"),
    [
        ({"data": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}, ["a", "b"]),
        ({"models": [{"name": "models/a"}]}, ["a"]),
        ([{"id": "a"}], ["a"]),
        ({"data": [7, {}, {"id": ""}, {"id": 7}]}, []),
        ({"data": "x"}, []),
        ("x", []),
        ({"data": [{"id": str(number)} for number in range(9)]}, ["0", "1", "2", "3", "4"]),
        ({"data": [{"id": "x" * 257}, {"id": "y" * 256}]}, ["y" * 256]),
    ],
)
def test_models_that_a_server_lists(document: Any, ids: list[str]) -> None:
    assert [model.id for model in read_list(document, 5)] == ids


# Paths of dialects.


@rows(
    ("path", "name"),
    [
        ("/v1beta/openai/nothing", "openai-chat"),
        ("/v1beta/nothing", "gemini"),
        ("/v1/messages/nothing", "anthropic"),
        ("/v1/responses/x/y/z", "openai-responses"),
        ("/v1internal:nothing", "code-assist"),
    ],
)
def test_an_unknown_path_is_answered_in_the_dialect_of_its_longest_prefix(path: str, name: str) -> None:
    for known in (surfaces(), tuple(reversed(surfaces()))):
        speaker = Paths(known).speaker(path, (), lambda _: "")
        assert speaker is not None
        assert speaker.name == name


# Turns.


@rows("loses", [True, False])
def test_what_is_made_of_a_turn_is_remembered_unless_something_was_lost(loses: bool) -> None:
    """A loss depends on the place of the turn: it is reported each time."""
    writer: Any = SimpleNamespace(losses=[])
    grown: list[Any] = []
    memory: Any = SimpleNamespace(grow=lambda *what: grown.append(what))
    known = WrittenTurn(("key",), (), (), (), (), None)
    made: list[JoinedTurn] = []

    def make(turn: JoinedTurn) -> Any:
        made.append(turn)
        writer.losses += [Loss("$.x", "metadata", "dropped")] * loses
        return {"role": turn.role}

    turn = JoinedTurn("user", Message("user", ()), _WriterCache(memory, writer, 1), known)
    for _ in range(2):
        assert decode(encode(turn.finished(make))) == {"role": "user"}
    assert (len(made), len(writer.losses)) == ((2, 2) if loses else (1, 0))
    assert [(message, key) for message, key, _ in grown] == ([] if loses else [(turn.message, ("key",))])


# Schemas.


@rows("group", [("if", "then", "else"), ("contains", "minContains", "maxContains"), ("prefixItems", "items")])
def test_keywords_that_mean_something_together_are_not_mixed_with_others(group: tuple[str, ...]) -> None:
    told: list[str] = []
    place: Any = SimpleNamespace(
        tell=lambda keyword, value, why: told.append(keyword), spend=lambda units: None, same=operator.eq
    )
    first = group[0]
    for key in group:
        for inner, outer in ((first, key), (key, first)):
            told.clear()
            merged = merge({inner: {"type": "string"}}, {outer: {"type": "object"}, "title": "t"}, place)
            assert merged == {inner: {"type": "string"}, "title": "t"}
            assert told == [outer]
        both = {first: {"type": "string"}, key: {"type": "string"}}
        told.clear()
        assert merge(both, both, place) == both
        assert not told


# Usage.


def test_reports_of_usage_are_joined_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_checks, "MAX_USAGE_VALUES", 4)
    assert joined_usage({"a": 1, "b": {"c": 2}}, {"a": 3}) == {"a": 3, "b": {"c": 2}}
    assert joined_usage({"a": 1, "b": {"c": 2, "d": 3, "e": 4}, "f": 5}, {"g": 6}) == {"a": 1, "g": 6}
    assert joined_usage({"a": [1, 2, 3, 4]}, {"a": 1}) == {"a": 1}
    assert joined_usage({}, {str(at): at for at in range(9)}) == {str(at): at for at in range(9)}
