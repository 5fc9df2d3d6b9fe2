"""Schemas for OpenAI, strict and not."""

from typing import Any

from tests.core.dialects.schema_kit import Rule, each, of, outcome
from wireglot_core.dialects.schema import SchemaTarget

RULES: list[Rule] = [
    (
        "limits without a place are reported",
        "openai-strict",
        {"type": "string", "minLength": 3, "default": "abc"},
        {"type": "string", "description": "(default: abc; minLength: 3)"},
        {"minLength", "default"},
    ),
    (
        "an object is closed",
        "openai-strict",
        {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        of({"type": "string"})
        | {"properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": False},
        {"additionalProperties"},
    ),
    (
        "an optional property may be null instead",
        "openai-strict",
        {
            "type": "object",
            "properties": {"x": {"enum": ["a"]}, "y": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "x": {"type": ["string", "null"], "enum": ["a", None]},
                "y": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            },
            "required": ["x", "y"],
            "additionalProperties": False,
        },
        {"required"},
    ),
    ("true is an empty schema for OpenAI", "openai", True, {}, set()),
    ("false is a schema that nothing fits", "openai", False, {"not": {}}, set()),
    (
        "an array gets items that allow anything",
        "openai",
        {"type": "array"},
        {"type": "array", "items": {}},
        set(),
    ),
    (
        "what is valid is left alone",
        "openai",
        {"type": "string", "minLength": 1, "x-ui": 1, "default": "x"},
        {"type": "string", "minLength": 1, "x-ui": 1, "default": "x"},
        set(),
    ),
]


@each(RULES)
def test_rule(target: SchemaTarget, given: Any, wanted: Any, noted: set[str]) -> None:
    """R-DB-11, C17"""
    assert outcome(target, given) == (wanted, noted)
