"""Schemas for Moonshot, where everything has a type."""

from typing import Any

from tests.core.dialects.schema_kit import Rule, each, outcome
from wireglot_core.dialects.schema import SchemaTarget

RULES: list[Rule] = [
    (
        "an enum alone gets the type of its values",
        "moonshot",
        {"enum": ["pending", "done"]},
        {"type": "string", "enum": ["pending", "done"]},
        set(),
    ),
    ("a const of numbers is a typed enum", "moonshot", {"const": 3}, {"type": "integer", "enum": [3]}, set()),
    (
        "properties alone mean an object",
        "moonshot",
        {"properties": {"x": {"type": "string"}}},
        {"type": "object", "properties": {"x": {"type": "string"}}},
        set(),
    ),
    (
        "items alone mean an array",
        "moonshot",
        {"items": {"type": "string"}},
        {"type": "array", "items": {"type": "string"}},
        set(),
    ),
    (
        "anything at all is every type",
        "moonshot",
        {"description": "any"},
        {"type": ["string", "number", "boolean", "object", "array", "null"], "description": "any"},
        set(),
    ),
    (
        "the type stands in the branches of anyOf, not beside it",
        "moonshot",
        {
            "type": "object",
            "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
            "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
        },
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                    "required": [name],
                }
                for name in "xy"
            ]
        },
        set(),
    ),
    (
        "several types with keywords are split",
        "moonshot",
        {"type": ["array", "null"], "items": {"type": "string"}},
        {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        set(),
    ),
    (
        "a tuple is collapsed for Moonshot",
        "moonshot",
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}], "items": False},
        {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        set(),
    ),
]


@each(RULES)
def test_rule(target: SchemaTarget, given: Any, wanted: Any, noted: set[str]) -> None:
    """R-DB-10, C17"""
    assert outcome(target, given) == (wanted, noted)
