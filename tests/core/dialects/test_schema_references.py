"""References in a schema: kept, inlined, cut where they never end, and never followed to nothing."""

import pytest

from tests.core.dialects.schema_kit import CHANGING, TREE, inside, keywords, of
from tests.tiers import rows
from wireglot_core.dialects.schema import SchemaTarget, project


def test_a_description_beside_a_reference_inlines_it_where_siblings_are_refused() -> None:
    schema = of({"$ref": "#/definitions/N", "description": "mine"}) | {
        "definitions": {"N": {"type": "string"}}
    }
    for target in ("gemini-json", "openai-strict", "anthropic-strict", "moonshot"):
        projected = project(schema, target)
        assert inside(projected) == {"type": "string", "description": "mine"}
        assert not projected.notes
        assert "$defs" not in projected.schema


def test_a_description_beside_a_recursive_reference_is_kept_by_an_any_of_of_one() -> None:
    schema = TREE | {"properties": {"tree": {"$ref": "#/$defs/Node", "description": "the root"}}}
    for target in ("gemini-json", "moonshot"):
        projected = project(schema, target)
        tree = projected.schema["properties"]["tree"]
        assert tree == {"description": "the root", "anyOf": [{"$ref": "#/$defs/Node"}]}
        assert not projected.notes


def test_two_parents_with_one_common_base_are_not_taken_for_recursion() -> None:
    schema = of({"allOf": [{"$ref": "#/$defs/L"}, {"$ref": "#/$defs/R"}]}) | {
        "$defs": {
            "Base": {"type": "object", "properties": {"id": {"type": "string"}}},
            "L": {"allOf": [{"$ref": "#/$defs/Base"}], "properties": {"l": {"type": "string"}}},
            "R": {"allOf": [{"$ref": "#/$defs/Base"}], "properties": {"r": {"type": "string"}}},
        }
    }
    projected = project(schema, "gemini-json")
    assert set(inside(projected)["properties"]) == {"id", "l", "r"}
    assert not projected.notes


@rows("target", CHANGING)
@rows("ref", ["#/$defs/gone", "https://example.org/s.json", "#anchor", "", "#/properties/a/type"])
def test_a_reference_to_nothing_is_noted_and_never_raises(target: SchemaTarget, ref: str) -> None:
    projected = project(of({"$ref": ref}), target)
    assert "$ref" in keywords(projected)
    assert "$ref" not in inside(projected)


@rows("target", CHANGING)
@rows("keyword", ["oneOf", "anyOf"])
def test_what_is_beside_a_reference_to_nothing_still_counts(target: SchemaTarget, keyword: str) -> None:
    """Which of the alternatives a value fits is known by the rest of them."""
    beside = [{"$ref": "#/gone", "type": "string"}, {"type": "integer"}]
    plain = [{"type": "string"}, {"type": "integer"}]
    with_it, without = (project(of({keyword: each}), target) for each in (beside, plain))
    assert inside(with_it) == inside(without)
    assert {note.path for note in with_it.notes} - {note.path for note in without.notes} <= {
        f"$.properties.a.{kept}[0]" for kept in ("oneOf", "anyOf")
    }


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_a_reference_at_the_root_is_resolved_and_its_recursion_kept(target: SchemaTarget) -> None:
    projected = project({"$ref": "#/$defs/Node", "$defs": TREE["$defs"]}, target)
    assert projected.schema == TREE["$defs"]["Node"] | {"$defs": TREE["$defs"]}
    assert not projected.notes


@rows("target", CHANGING)
def test_references_that_only_lead_to_each_other_end(target: SchemaTarget) -> None:
    loop = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}, "C": {"allOf": [{"$ref": "#/$defs/C"}]}}
    project(of({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/C"}]}) | {"$defs": loop}, target)
    project({"$ref": "#"}, target)
