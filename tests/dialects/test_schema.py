"""Schema projection, rule by rule."""

from typing import Any

import msgspec
import pytest

from wireglot.dialects.schema import Projected, SchemaNote, SchemaTarget, infer_type, object_root, project

CHANGING: tuple[SchemaTarget, ...] = (
    "gemini-json",
    "gemini-openapi",
    "openai-strict",
    "openai",
    "anthropic",
    "anthropic-strict",
    "moonshot",
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


# Every row: a target, what property `a` is, what it becomes, and the keywords noted.
# Under gemini-openapi the closing of the outer object is always noted and left out here.
RULES: list[tuple[str, SchemaTarget, Any, Any, set[str]]] = [
    ("const becomes an enum of one", "gemini-json", {"const": "x"}, {"type": "string", "enum": ["x"]}, set()),
    (
        "a limit without a place is told in the description, in fixed order",
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
        "an exclusive bound of a number is kept as the nearest bound and told",
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
        "an unknown keyword is dropped with a note and not told",
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
        "one boolean as a const is told",
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
        "an unknown format is told and a known one stays",
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
        "what the older message has no word for is told",
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
    (
        "limits without a place are told",
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
        "limits of numbers, lengths and counts are told",
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
        "simple patterns stay, hard ones are told",
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


@pytest.mark.parametrize(
    ("target", "given", "wanted", "noted"), [row[1:] for row in RULES], ids=[row[0] for row in RULES]
)
def test_rule(target: SchemaTarget, given: Any, wanted: Any, noted: set[str]) -> None:
    """R-DB-09, R-DB-10, R-DB-11, C17"""
    schema = of(given)
    if target == "gemini-openapi":
        del schema["additionalProperties"]
    projected = project(schema, target)
    assert inside(projected) == wanted
    assert keywords(projected) == noted


@pytest.mark.parametrize("target", CHANGING)
def test_an_enum_without_a_type_survives_to_every_target(target: SchemaTarget) -> None:
    """R-A-14, C17"""
    status = project(TODO_WRITE, target).schema["properties"]["todos"]["items"]["properties"]["status"]
    assert status["enum"] == ["pending", "in_progress", "completed"]
    if target not in ("openai", "anthropic"):
        assert status["type"].lower() == "string"


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_a_schema_that_is_fine_comes_back_equal_and_without_notes(target: SchemaTarget) -> None:
    for schema in (TODO_WRITE, MCP_SEARCH, TREE):
        assert project(schema, target) == Projected(schema, ())


def test_json_schema_is_the_identity() -> None:
    assert project(MCP_SEARCH, "json-schema").schema is MCP_SEARCH
    assert project(None, "json-schema") == Projected({})
    assert project(False, "json-schema") == Projected({"not": {}})


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
        SchemaNote("$.properties.order", "default", "not supported; kept as description text"),
    )


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


@pytest.mark.parametrize("target", CHANGING)
@pytest.mark.parametrize(
    "ref", ["#/$defs/gone", "https://example.org/s.json", "#anchor", "", "#/properties/a/type"]
)
def test_a_reference_to_nothing_is_noted_and_never_raises(target: SchemaTarget, ref: str) -> None:
    projected = project(of({"$ref": ref}), target)
    assert "$ref" in keywords(projected)
    assert "$ref" not in inside(projected)


@pytest.mark.parametrize("target", CHANGING)
@pytest.mark.parametrize(
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


@pytest.mark.parametrize("target", CHANGING)
@pytest.mark.parametrize(
    "schema", [None, True, {}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}]
)
def test_no_schema_is_an_object_without_properties(target: SchemaTarget, schema: Any) -> None:
    root = project(schema, target).schema
    assert root.get("type", "object").lower() == "object"
    assert not root.get("properties")


def test_no_schema_needs_no_notes_even_when_objects_must_be_closed() -> None:
    for target in ("openai-strict", "anthropic-strict"):
        assert project(None, target).notes == ()


@pytest.mark.parametrize("target", ["openai", "openai-strict", "anthropic", "anthropic-strict", "moonshot"])
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


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_a_reference_at_the_root_is_resolved_and_its_recursion_kept(target: SchemaTarget) -> None:
    projected = project({"$ref": "#/$defs/Node", "$defs": TREE["$defs"]}, target)
    assert projected.schema == TREE["$defs"]["Node"] | {"$defs": TREE["$defs"]}
    assert not projected.notes


@pytest.mark.parametrize("target", ["openai", "openai-strict", "anthropic", "anthropic-strict", "moonshot"])
def test_a_root_that_is_no_object_is_wrapped_with_a_note(target: SchemaTarget) -> None:
    projected = project({"type": "array", "items": {"type": "string"}}, target)
    assert projected.schema["properties"]["value"] == {"type": "array", "items": {"type": "string"}}
    assert keywords(projected) == {"type"}


def test_gemini_takes_any_root_for_structured_output() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert project(schema, "gemini-json") == Projected(schema)
    assert project(schema, "gemini-openapi") == Projected({"type": "ARRAY", "items": {"type": "STRING"}})


def test_object_root_leaves_objects_alone() -> None:
    assert object_root(TODO_WRITE) == (TODO_WRITE, False)
    assert object_root(None) == ({"type": "object", "properties": {}}, False)
    union = {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "object"}], "$defs": {"A": {"type": "object"}}}
    assert object_root(union) == ({"type": "object", **union}, False)


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


@pytest.mark.parametrize(
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


# ---------------------------------------------------------------- bounds


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize("target", CHANGING)
@pytest.mark.parametrize("depth", [70, 900, 20_000])
def test_any_depth_is_survived_and_noted(target: SchemaTarget, depth: int) -> None:
    projected = project(nested(depth), target)
    assert any("too deep" in note.detail for note in projected.notes)
    msgspec.json.encode(projected.schema)


@pytest.mark.parametrize("target", CHANGING)
def test_deep_unions_are_survived(target: SchemaTarget) -> None:
    for keyword in ("anyOf", "allOf", "oneOf", "not"):
        schema: dict[str, Any] = {"type": "object"}
        for _ in range(900):
            schema = {keyword: schema if keyword == "not" else [schema, {"type": "object"}]}
        project(schema, target)


@pytest.mark.parametrize("target", CHANGING)
def test_definitions_that_double_at_each_step_do_not_explode(target: SchemaTarget) -> None:
    definitions: dict[str, Any] = {"D0": {"type": "string"}}
    for at in range(1, 40):
        ref = {"$ref": f"#/$defs/D{at - 1}"}
        definitions[f"D{at}"] = {"type": "object", "properties": {"l": ref, "r": ref | {"description": "x"}}}
    projected = project(of({"$ref": "#/$defs/D39"}) | {"$defs": definitions}, target)
    assert len(msgspec.json.encode(projected.schema)) < 5_000_000


@pytest.mark.parametrize("target", CHANGING)
def test_definitions_that_all_refer_to_one_another_do_not_explode(target: SchemaTarget) -> None:
    names = [f"N{at}" for at in range(12)]
    everyone = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    project(
        of(everyone["N0"]) | {"$defs": {name: {"type": "object", "properties": everyone} for name in names}},
        target,
    )


@pytest.mark.parametrize("target", CHANGING)
def test_unions_that_nest_beside_properties_do_not_explode(target: SchemaTarget) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        schema = {
            "type": "object",
            "properties": {"a": schema},
            "anyOf": [{"minProperties": 1}, {"maxProperties": 2}],
        }
    project(schema, target)


@pytest.mark.parametrize("target", CHANGING)
def test_references_that_only_lead_to_each_other_end(target: SchemaTarget) -> None:
    loop = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}, "C": {"allOf": [{"$ref": "#/$defs/C"}]}}
    project(of({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/C"}]}) | {"$defs": loop}, target)
    project({"$ref": "#"}, target)


# ---------------------------------------------------------------- the cache


def test_the_same_schema_is_projected_once() -> None:
    first = project(MCP_SEARCH, "moonshot")
    assert project(msgspec.json.decode(msgspec.json.encode(MCP_SEARCH)), "moonshot") is first


def test_a_caller_who_changes_a_schema_later_does_not_change_the_cached_one() -> None:
    schema = of({"type": "string", "default": {"x": [1]}})
    before = msgspec.json.encode(project(schema, "anthropic").schema)
    twin = msgspec.json.decode(msgspec.json.encode(schema))
    schema["properties"]["a"]["default"]["x"].append(2)
    assert msgspec.json.encode(project(twin, "anthropic").schema) == before


def test_the_order_of_keywords_does_not_change_what_is_told() -> None:
    one = project(of({"type": "string", "minLength": 1, "maxLength": 2}), "gemini-json")
    two = project(of({"maxLength": 2, "minLength": 1, "type": "string"}), "gemini-json")
    assert one.schema == two.schema
