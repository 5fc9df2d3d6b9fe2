"""Schema projection, whatever the target: what survives, what is garbage, what is remembered."""

from typing import Any

import msgspec
import pytest

from tests.core.dialects.schema_kit import CHANGING, MCP_SEARCH, TODO_WRITE, TREE, keywords, of
from tests.tiers import rows
from wireglot_core.dialects.schema import Projected, SchemaTarget, infer_type, project


@rows("target", CHANGING)
def test_an_enum_without_a_type_survives_to_every_target(target: SchemaTarget) -> None:
    """R-A-14, C17"""
    status = project(TODO_WRITE, target).schema["properties"]["todos"]["items"]["properties"]["status"]
    assert status["enum"] == ["pending", "in_progress", "completed"]
    if target not in ("openai", "anthropic"):
        assert status["type"].lower() == "string"


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_a_schema_that_is_fine_comes_back_equal_and_without_notes(target: SchemaTarget) -> None:
    for schema in (TODO_WRITE, MCP_SEARCH, TREE):
        assert project(schema, target) == Projected(schema, (), same=True)


def test_json_schema_is_the_identity() -> None:
    assert project(MCP_SEARCH, "json-schema").schema is MCP_SEARCH
    assert project(None, "json-schema") == Projected({})
    assert project(False, "json-schema") == Projected({"not": {}})


@rows("target", CHANGING)
@rows(
    "garbage",
    [
        {"properties": ["x"]},
        {"type": 5},
        {"type": ["string", 7]},
        {"anyOf": "x"},
        {"anyOf": [1, {"type": "string"}]},
        {"items": 3},
        {"required": "a"},
        {"enum": {}},
        {"minLength": "many"},
        {"minimum": True},
        {"description": ["x"]},
        {"$ref": 9},
    ],
    ids=str,
)
def test_garbage_is_dropped_with_a_note(target: SchemaTarget, garbage: dict[str, Any]) -> None:
    projected = project(of(garbage), target)
    assert next(iter(garbage)) in keywords(projected)
    assert any(note.path.startswith("$.properties.a") for note in projected.notes)


@rows(
    ("node", "kind"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer"),
        ({"type": ["integer", "string"]}, None),
        ({"enum": ["a", "b", None]}, "string"),
        ({"enum": [1, 2.5]}, "number"),
        ({"enum": ["a", 1]}, None),
        ({"const": True}, "boolean"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"minLength": 1}, "string"),
        ({"minimum": 1}, "number"),
        ({"anyOf": [{"type": "string"}, {"enum": ["x"]}, {"type": "null"}]}, "string"),
        ({"anyOf": [{"type": "string"}, {}]}, None),
        ({"allOf": [{}, {"type": "object"}]}, "object"),
        ({}, None),
        (True, None),
    ],
)
def test_the_type_a_schema_implies(node: Any, kind: str | None) -> None:
    assert infer_type(node) == kind


def test_the_same_schema_is_projected_once() -> None:
    first = project(MCP_SEARCH, "moonshot")
    assert project(msgspec.json.decode(msgspec.json.encode(MCP_SEARCH)), "moonshot") is first


def test_a_caller_who_changes_a_schema_later_does_not_change_the_cached_one() -> None:
    schema = of({"type": "string", "default": {"x": [1]}})
    before = msgspec.json.encode(project(schema, "anthropic").schema)
    twin = msgspec.json.decode(msgspec.json.encode(schema))
    schema["properties"]["a"]["default"]["x"].append(2)
    assert msgspec.json.encode(project(twin, "anthropic").schema) == before


def test_the_order_of_keywords_does_not_change_what_is_reported() -> None:
    one = project(of({"type": "string", "minLength": 1, "maxLength": 2}), "gemini-json")
    two = project(of({"maxLength": 2, "minLength": 1, "type": "string"}), "gemini-json")
    assert one.schema == two.schema
