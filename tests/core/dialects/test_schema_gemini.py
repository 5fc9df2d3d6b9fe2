"""Schemas for Gemini: raw JSON Schema, and the older message that knows less of it."""

from typing import Any

from tests.core.dialects.schema_kit import MCP_SEARCH, TREE, Rule, each, outcome
from wireglot_core.dialects.schema import Projected, SchemaNote, SchemaTarget, project

RULES: list[Rule] = [
    ("const becomes an enum of one", "gemini-json", {"const": "x"}, {"type": "string", "enum": ["x"]}, set()),
    (
        "a limit without a place is reported in the description, in fixed order",
        "gemini-json",
        {"type": "string", "pattern": "^a+$", "minLength": 3, "description": "Name."},
        {"type": "string", "description": "Name. (minLength: 3; pattern: ^a+$)"},
        {"minLength", "pattern"},
    ),
    (
        "type arrays stay with raw JSON Schema",
        "gemini-json",
        {"type": ["string", "null"]},
        {"type": ["string", "null"]},
        set(),
    ),
    ("true is an empty schema", "gemini-json", True, {}, set()),
    (
        "an exclusive bound of an integer is an inclusive one",
        "gemini-json",
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        {"type": "integer", "minimum": 1, "maximum": 9},
        set(),
    ),
    (
        "an exclusive bound of a number is kept as the nearest bound and reported",
        "gemini-json",
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "minimum": 0, "description": "(exclusiveMinimum: 0)"},
        {"exclusiveMinimum"},
    ),
    (
        "oneOf with branches that exclude each other is anyOf without a note",
        "gemini-json",
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        set(),
    ),
    (
        "oneOf with branches that overlap is anyOf with a note",
        "gemini-json",
        {"oneOf": [{"type": "number"}, {"type": "integer"}]},
        {"anyOf": [{"type": "number"}, {"type": "integer"}]},
        {"oneOf"},
    ),
    (
        "allOf is merged",
        "gemini-json",
        {
            "allOf": [
                {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
                {"properties": {"y": {"type": "integer"}}, "required": ["y"]},
            ]
        },
        {
            "type": "object",
            "properties": {"x": {"type": "string"}, "y": {"type": "integer"}},
            "required": ["x", "y"],
        },
        set(),
    ),
    (
        "allOf keeps the tighter of two bounds",
        "gemini-json",
        {"type": "integer", "allOf": [{"minimum": 1, "maximum": 9}, {"minimum": 3}]},
        {"type": "integer", "minimum": 3, "maximum": 9},
        set(),
    ),
    (
        "an enum with null is split off where null is no enum value",
        "gemini-json",
        {"enum": ["x", None]},
        {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]},
        set(),
    ),
    (
        "a closed tuple is closed by its length",
        "gemini-json",
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 1},
        set(),
    ),
    (
        "an unknown keyword is dropped with a note and not reported",
        "gemini-json",
        {"type": "string", "x-ui": {"a": 1}},
        {"type": "string"},
        {"x-ui"},
    ),
    (
        "required names that are not declared are dropped",
        "gemini-json",
        {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x", "y"]},
        {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        {"required"},
    ),
    (
        "a type with null becomes nullable",
        "gemini-openapi",
        {"type": ["string", "null"]},
        {"type": "STRING", "nullable": True},
        set(),
    ),
    (
        "several types become branches, each with its own keywords",
        "gemini-openapi",
        {"type": ["string", "array"], "minLength": 2, "items": {"type": "integer"}},
        {"anyOf": [{"type": "STRING", "minLength": 2}, {"type": "ARRAY", "items": {"type": "INTEGER"}}]},
        set(),
    ),
    (
        "an optional by anyOf becomes nullable",
        "gemini-openapi",
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "How many"},
        {"type": "INTEGER", "nullable": True, "description": "How many"},
        set(),
    ),
    (
        "anyOf stands alone, with the description in its branches",
        "gemini-openapi",
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "description": "D"},
        {
            "anyOf": [
                {"type": "INTEGER", "description": "D", "nullable": True},
                {"type": "STRING", "description": "D", "nullable": True},
            ]
        },
        set(),
    ),
    (
        "numbers of an enum become strings, the default with them",
        "gemini-openapi",
        {"type": "integer", "enum": [1, 2], "default": 2},
        {"type": "STRING", "enum": ["1", "2"], "default": "2"},
        {"enum"},
    ),
    (
        "both booleans as an enum are just a boolean",
        "gemini-openapi",
        {"enum": [True, False]},
        {"type": "BOOLEAN"},
        set(),
    ),
    (
        "one boolean as a const is reported",
        "gemini-openapi",
        {"const": True},
        {"type": "BOOLEAN", "description": "(enum: [true])"},
        {"enum"},
    ),
    (
        "an array without items gets items",
        "gemini-openapi",
        {"type": "array"},
        {"type": "ARRAY", "items": {"type": "STRING"}},
        {"type"},
    ),
    (
        "a tuple is collapsed",
        "gemini-openapi",
        {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        {"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}},
        {"prefixItems"},
    ),
    (
        "an unknown format is reported and a known one stays",
        "gemini-openapi",
        {
            "type": "object",
            "properties": {
                "u": {"type": "string", "format": "uri"},
                "t": {"type": "string", "format": "date-time"},
            },
        },
        {
            "type": "OBJECT",
            "properties": {
                "u": {"type": "STRING", "description": "(format: uri)"},
                "t": {"type": "STRING", "format": "date-time"},
            },
        },
        {"format"},
    ),
    (
        "what the older message has no word for is reported",
        "gemini-openapi",
        {
            "type": "array",
            "items": {"type": "number", "multipleOf": 0.5},
            "uniqueItems": True,
            "contains": {"const": 1},
        },
        {
            "type": "ARRAY",
            "items": {"type": "NUMBER", "description": "(multipleOf: 0.5)"},
            "description": '(contains: {"const":1}; uniqueItems: true)',
        },
        {"uniqueItems", "multipleOf", "contains"},
    ),
    (
        "keywords that cannot matter to the type are left out in silence",
        "gemini-openapi",
        {"type": "string", "properties": {}, "minimum": 3},
        {"type": "STRING"},
        set(),
    ),
    (
        "the message's own spelling is understood and kept",
        "gemini-openapi",
        {"type": "STRING", "nullable": True, "minLength": "3"},
        {"type": "STRING", "nullable": True, "minLength": 3},
        set(),
    ),
]


@each(RULES)
def test_rule(target: SchemaTarget, given: Any, wanted: Any, noted: set[str]) -> None:
    """R-DB-09, C17"""
    assert outcome(target, given) == (wanted, noted)


def test_an_mcp_schema_reaches_the_older_gemini_message_without_references() -> None:
    projected = project(MCP_SEARCH, "gemini-openapi")
    properties = projected.schema["properties"]
    assert properties["order"] == {
        "type": "STRING",
        "title": "Order",
        "enum": ["asc", "desc"],
        "nullable": True,
        "default": None,
    }
    assert properties["limit"] == {"type": "INTEGER", "minimum": 1, "maximum": 100}
    by_name, by_date = properties["filter"]["anyOf"]
    assert by_name["properties"]["kind"] == {"type": "STRING", "enum": ["name"]}
    assert by_date["properties"]["since"]["format"] == "date-time"
    assert not projected.notes


def test_an_mcp_schema_keeps_its_definitions_where_gemini_knows_them() -> None:
    projected = project(MCP_SEARCH, "gemini-json")
    assert set(projected.schema["$defs"]) == {"Order", "ByName", "ByDate"}
    assert projected.schema["properties"]["filter"]["anyOf"][0] == {"$ref": "#/$defs/ByName"}
    assert projected.notes == (
        SchemaNote("$.properties.order", "default", "not supported; kept as description text", hint=True),
    )


def test_recursion_is_cut_with_a_note_where_there_are_no_references() -> None:
    projected = project(TREE, "gemini-openapi")
    node = projected.schema["properties"]["tree"]
    assert node["properties"]["children"]["items"] == {"type": "OBJECT", "description": "(recursive: Node)"}
    assert [note.path for note in projected.notes] == ["$.properties.tree.properties.children.items"]


def test_recursion_through_a_required_property_is_made_optional_for_gemini() -> None:
    schema = TREE | {"$defs": {"Node": TREE["$defs"]["Node"] | {"required": ["name", "children"]}}}
    projected = project(schema, "gemini-json")
    assert projected.schema["required"] == ["tree"]
    assert projected.schema["$defs"]["Node"]["required"] == ["name"]
    assert [note.path for note in projected.notes] == ["$.$defs.Node.properties.children"]


def test_gemini_takes_any_root_for_structured_output() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert project(schema, "gemini-json") == Projected(schema, same=True)
    assert project(schema, "gemini-openapi") == Projected({"type": "ARRAY", "items": {"type": "STRING"}})
