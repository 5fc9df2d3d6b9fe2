"""The root of a schema: an object where the target wants one."""

from typing import Any

from tests.core.dialects.schema_kit import CHANGING, TODO_WRITE, keywords
from tests.tiers import rows
from wireglot_core.dialects.schema import SchemaTarget, object_root, project

OBJECTS_ONLY: tuple[SchemaTarget, ...] = (
    "openai",
    "openai-strict",
    "anthropic",
    "anthropic-strict",
    "moonshot",
)


@rows("target", CHANGING)
@rows("schema", [None, True, {}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}])
def test_no_schema_is_an_object_without_properties(target: SchemaTarget, schema: Any) -> None:
    root = project(schema, target).schema
    assert root.get("type", "object").lower() == "object"
    assert not root.get("properties")


def test_no_schema_needs_no_notes_even_when_objects_must_be_closed() -> None:
    for target in ("openai-strict", "anthropic-strict"):
        assert project(None, target).notes == ()


@rows("target", OBJECTS_ONLY)
def test_a_union_at_the_root_is_merged_into_one_object(target: SchemaTarget) -> None:
    """R-DB-11"""
    schema = {
        "type": "object",
        "anyOf": [
            {
                "properties": {"name": {"type": "string"}, "url": {"type": "string"}},
                "required": ["name", "url"],
            },
            {
                "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
                "required": ["name", "text"],
            },
        ],
    }
    projected = project(schema, target)
    assert list(projected.schema["properties"]) == ["name", "url", "text"]
    assert projected.schema["type"] == "object"
    assert "anyOf" not in projected.schema
    assert projected.schema["description"] == "(anyOf: {name, url} | {name, text})"
    assert "anyOf" in keywords(projected)
    if target != "openai-strict":
        assert projected.schema["required"] == ["name"]


@rows("target", OBJECTS_ONLY)
def test_a_root_that_is_no_object_is_wrapped_with_a_note(target: SchemaTarget) -> None:
    projected = project({"type": "array", "items": {"type": "string"}}, target)
    assert projected.schema["properties"]["value"] == {"type": "array", "items": {"type": "string"}}
    assert keywords(projected) == {"type"}


def test_object_root_leaves_objects_alone() -> None:
    assert object_root(TODO_WRITE) == (TODO_WRITE, False)
    assert object_root(None) == ({"type": "object", "properties": {}}, False)
    union = {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "object"}], "$defs": {"A": {"type": "object"}}}
    assert object_root(union) == ({"type": "object", **union}, False)


STRING, OBJECT, NULL = {"type": "string"}, {"type": "object"}, {"type": "null"}


@rows(
    ("schema", "is_wrapped"),
    [
        (STRING, True),
        (NULL, True),
        ({"type": ["object", "null"]}, False),
        ({"type": ["string", "null"]}, True),
        ({"type": "OBJECT"}, False),
        ({"properties": {}}, False),
        ({"items": STRING}, True),
        ({"enum": ["a"]}, True),
        ({"description": "anything"}, False),
        ({"not": STRING}, False),
        *[
            ({union: branches}, is_wrapped)
            for union in ("anyOf", "oneOf")
            for branches, is_wrapped in (
                ([OBJECT, OBJECT], False),
                ([OBJECT, NULL], False),
                ([OBJECT, {}], False),
                ([STRING, NULL], True),
                ([STRING, {"type": "integer"}], True),
                ([OBJECT, STRING], True),
                ([{"anyOf": [STRING, NULL]}, NULL], True),
                ([{"$ref": "#/$defs/S"}], True),
                ([], False),
            )
        ],
        ({"allOf": [OBJECT, {}]}, False),
        ({"allOf": [{}, STRING]}, True),
        ({"allOf": [{}, {}]}, False),
        ({"allOf": [{}], "items": STRING}, True),
        ({"allOf": [{}, {"$ref": "#/$defs/S"}]}, True),
        ({"allOf": [{"$ref": "#/$defs/O"}, {}]}, False),
        ({"$ref": "#/$defs/S"}, True),
        ({"$ref": "#/$defs/O"}, False),
        ({"$ref": "#/$defs/gone"}, False),
        ({"$ref": "#/$defs/gone", "type": "string"}, True),
    ],
)
def test_a_root_is_wrapped_unless_it_may_be_an_object(schema: Any, is_wrapped: bool) -> None:
    given = {**schema, "$defs": {"S": STRING, "O": OBJECT}}
    root, was_wrapped = object_root(given)
    assert was_wrapped is is_wrapped
    assert root["type"] == given.get("type", "object") if not is_wrapped else "object"
    assert root.get("properties", {}).get("value") == (schema if is_wrapped else None)


def test_object_root_wraps_the_rest_and_keeps_references_valid() -> None:
    schema = {
        "type": "array",
        "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/A"}]},
        "$defs": {"A": {"type": "string"}},
    }
    wrapped, was_wrapped = object_root(schema)
    assert was_wrapped
    assert wrapped == {
        "type": "object",
        "properties": {
            "value": {
                "type": "array",
                "items": {"anyOf": [{"$ref": "#/properties/value"}, {"$ref": "#/$defs/A"}]},
            }
        },
        "required": ["value"],
        "additionalProperties": False,
        "$defs": {"A": {"type": "string"}},
    }


def test_definitions_keep_the_order_of_the_client() -> None:
    """Every process sends the same bytes for a schema: caches of providers depend on it."""
    for names in (("$defs", "definitions"), ("definitions", "$defs")):
        wrapped, _ = object_root({"type": "string", **{name: {"a": {}} for name in names}})
        assert [key for key in wrapped if key in names] == list(names)
