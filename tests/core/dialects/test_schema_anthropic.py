"""Schemas for Anthropic, strict and not."""

from typing import Any

from tests.core.dialects.schema_kit import Rule, each, outcome
from wireglot_core.dialects.schema import SchemaTarget

RULES: list[Rule] = [
    (
        "unions below the root are left alone",
        "anthropic",
        {"oneOf": [{"type": "string"}, {"type": "number"}], "default": 1, "x-ui": 1},
        {"oneOf": [{"type": "string"}, {"type": "number"}], "default": 1, "x-ui": 1},
        set(),
    ),
    ("boolean schemas are left alone", "anthropic", True, True, set()),
    (
        "draft 4 bounds and old tuples are said in 2020-12",
        "anthropic",
        {
            "type": "array",
            "items": [{"type": "number", "minimum": 1, "exclusiveMinimum": True}],
            "additionalItems": False,
        },
        {"type": "array", "prefixItems": [{"type": "number", "exclusiveMinimum": 1}], "items": False},
        set(),
    ),
    (
        "limits of numbers, lengths and counts are reported",
        "anthropic-strict",
        {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 4},
        {
            "type": "array",
            "items": {"type": "integer", "description": "(minimum: 1)"},
            "minItems": 1,
            "description": "(maxItems: 4; minItems: 2)",
        },
        {"minimum", "minItems", "maxItems"},
    ),
    (
        "simple patterns stay, hard ones are reported",
        "anthropic-strict",
        {"anyOf": [{"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "(?=a)"}]},
        {
            "anyOf": [
                {"type": "string", "pattern": "^a+$"},
                {"type": "string", "description": "(pattern: (?=a))"},
            ]
        },
        {"pattern"},
    ),
]


@each(RULES)
def test_rule(target: SchemaTarget, given: Any, wanted: Any, noted: set[str]) -> None:
    """C17"""
    assert outcome(target, given) == (wanted, noted)
