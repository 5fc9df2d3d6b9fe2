"""Schemas that several tests project, and how the tests of one target's rules are written."""

from typing import Any

import pytest

from wireglot_core.dialects.schema import Projected, SchemaTarget, project

CHANGING: tuple[SchemaTarget, ...] = (
    "gemini-json",
    "gemini-openapi",
    "openai-strict",
    "openai",
    "anthropic",
    "anthropic-strict",
    "moonshot",
    "ollama",
)

TODO_WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string"},
                },
                "required": ["content", "status", "activeForm"],
            },
        }
    },
    "required": ["todos"],
}

# As a typical MCP server writes it: pydantic definitions, an optional enum, a discriminated union, a record.
MCP_SEARCH: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$defs": {
        "Order": {"enum": ["asc", "desc"], "title": "Order", "type": "string"},
        "ByName": {
            "properties": {"kind": {"const": "name", "type": "string"}, "name": {"type": "string"}},
            "required": ["kind", "name"],
            "title": "ByName",
            "type": "object",
        },
        "ByDate": {
            "properties": {
                "kind": {"const": "date", "type": "string"},
                "since": {"type": "string", "format": "date-time"},
            },
            "required": ["kind", "since"],
            "title": "ByDate",
            "type": "object",
        },
    },
    "properties": {
        "filter": {"oneOf": [{"$ref": "#/$defs/ByName"}, {"$ref": "#/$defs/ByDate"}], "title": "Filter"},
        "order": {"anyOf": [{"$ref": "#/$defs/Order"}, {"type": "null"}], "default": None},
        "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100},
    },
    "required": ["filter"],
    "type": "object",
}

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Node"}},
    "required": ["tree"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
        }
    },
}


def of(schema: Any) -> dict[str, Any]:
    """An object with the one property `a`."""
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


def inside(projected: Projected) -> Any:
    return projected.schema["properties"]["a"]


def keywords(projected: Projected) -> set[str]:
    return {note.keyword for note in projected.notes}


Rule = tuple[str, SchemaTarget, Any, Any, set[str]]
"""What the rule says, a target, what property `a` is, what it becomes, and the keywords noted."""


def each(rules: list[Rule]) -> pytest.MarkDecorator:
    names = [rule[0] for rule in rules]
    return pytest.mark.parametrize(
        ("target", "given", "wanted", "noted"), [rule[1:] for rule in rules], ids=names
    )


def outcome(target: SchemaTarget, given: Any) -> tuple[Any, set[str]]:
    """What property `a` becomes, and the keywords noted."""
    schema = of(given)
    if target == "gemini-openapi":
        del schema["additionalProperties"]  # closing an object cannot be said there, and is always noted
    projected = project(schema, target)
    return inside(projected), keywords(projected)
