"""Limits of what is looked at, compared and reported: exactly so much, and one more is too much."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.dialects.schema_kit import inside, keywords, of
from tests.core.dialects.test_schema_size import nested
from tests.tiers import rows
from wireglot_core.dialects.faults import bare_message, page_message, stated_message
from wireglot_core.dialects.schema import infer_type, object_root, project, refs
from wireglot_core.dialects.schema.project import _CACHED_BYTES, _from_cache
from wireglot_core.wire.json import encode


@rows(("count", "is_noted"), [(32, False), (33, True)])
def test_so_many_branches_are_compared_with_one_another(count: int, is_noted: bool) -> None:
    schema = of({"oneOf": [{"const": number} for number in range(count)]})
    assert ("oneOf" in keywords(project(schema, "gemini-json"))) is is_noted


@rows(("depth", "is_noted"), [(64, False), (65, True), (66, True)])
def test_schemas_are_followed_to_this_depth(depth: int, is_noted: bool) -> None:
    """The innermost has no schemas in it: it may be one deeper."""
    notes = project(nested(depth + 1), "gemini-json").notes
    assert any("too deep" in note.detail for note in notes) is is_noted


@rows(("count", "is_wrapped"), [(15, True), (16, True), (17, False)])
def test_so_many_references_are_followed_to_the_kind_of_a_root(count: int, is_wrapped: bool) -> None:
    chain: dict[str, Any] = {f"D{at}": {"$ref": f"#/$defs/D{at + 1}"} for at in range(1, count)}
    chain[f"D{count}"] = {"type": "string"}
    assert object_root({"$ref": "#/$defs/D1", "$defs": chain})[1] is is_wrapped


def any_of(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"anyOf": [schema]}
    return schema


def test_a_type_is_looked_for_so_deep_inside_of_unions() -> None:
    assert [infer_type(any_of(depth)) for depth in (0, 7, 8)] == ["string", "string", None]
    assert [object_root(any_of(depth))[1] for depth in (7, 8)] == [True, False]
    assert [infer_type({"allOf": [any_of(depth)]}) for depth in (6, 7)] == ["string", None]


def test_so_many_schemas_are_searched_for_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refs, "_MAX_FOLLOWED", 4)
    found = []
    for count in (3, 4):
        definition = {"type": "object", "properties": {f"p{at}": {} for at in range(count)}}
        schema = {"$defs": {"A": definition}, "properties": {"a": {"$ref": "#/$defs/A"}}}
        found.append(refs.Refs(schema).any_cyclic)
    assert found == [False, True], "too many: any may be in a cycle"


def test_a_large_schema_is_not_kept() -> None:
    def kept(length: int) -> bool:
        schema = {"type": "object", "description": ""}
        schema["description"] = "x" * (length - len(encode(schema)))
        assert len(encode(schema)) == length
        before = _from_cache.cache_info().hits
        assert project(schema, "openai") == project(schema, "openai")
        return _from_cache.cache_info().hits > before

    assert [kept(_CACHED_BYTES), kept(_CACHED_BYTES + 1)] == [True, False]


def test_equal_values_are_kept_once_and_numbers_read_where_they_are_short() -> None:
    values = [str(number) for number in range(511)]
    assert inside(project(of({"enum": [*values, "0", "510", "0"]}), "gemini-json"))["enum"] == values
    for digits, is_read in ((18, True), (19, False)):
        made = inside(project(of({"type": "string", "maxLength": "1" * digits}), "gemini-openapi"))
        assert ("maxLength" in made) is is_read
    found = refs.Refs({"anyOf": [{}] * 2, "$ref": "#"})
    assert [found.find(f"#/anyOf/{place}") is not None for place in ("1", "00001", "000001", "2", "-1")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_so_much_of_an_error_is_reported() -> None:
    begin = "the upstream answered with a web page: "
    assert page_message("<title>" + "x" * 201 + "</title>") == begin + "x" * 200
    assert page_message("<html>" + " " * (19_994 - 1) + "ab") == begin + "a"
    assert page_message("<title>" + "x" * 400 + "</title><h1>no") == begin + "x" * 200
    assert page_message("<html><title>" + "<" * 401 + "</title><h1>yes</h1>") == begin + "yes"
    assert bare_message("x" * 4097, 500) == "x" * 4096
    assert bare_message(["x" * 4097], 500) == '["' + "x" * 4094
    assert stated_message({"detail": {"x": "y" * 4097}}) == '{"x":"' + "y" * 4090
