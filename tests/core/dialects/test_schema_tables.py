"""Small schemas, each with one difficulty, as every target gets them: `schema_tables.json` has the projections, to
be read whenever they change (`python -m tests.core.dialects.test_schema_tables` writes them)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.core.dialects.schema_kit import CHANGING
from tests.tiers import rows
from wireglot_core.dialects.schema import project

NOTE = ("path", "keyword", "detail", "hint")
FILE = Path(__file__).parent / "schema_tables.json"


def _of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}

FORMATS = (
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "regex",
    "byte",
)

SCHEMAS: dict[str, Any] = {
    "all_of_types": _of(a={"allOf": [{"type": ["string", "integer"]}, {"type": ["number", "null"]}]}),
    "all_of_types_clash": _of(a={"allOf": [TEXT, NUMBER]}),
    "all_of_whole_numbers": _of(a={"allOf": [WHOLE, NUMBER]}, b={"allOf": [NUMBER, WHOLE]}),
    "all_of_values": _of(a={"allOf": [{"enum": ["x", "y", 1]}, {"enum": ["y", 1, "z"]}]}),
    "all_of_values_clash": _of(a={"allOf": [{"enum": ["x"]}, {"const": "y"}]}),
    "all_of_properties": {"allOf": [_of(a=TEXT, b=TEXT), _of(b={"minLength": 2}, c=NUMBER)]},
    "all_of_closed": {"allOf": [{**_of(a=TEXT), "additionalProperties": False}, _of(b=TEXT)]},
    "all_of_additional": {
        "type": "object",
        "allOf": [{"additionalProperties": TEXT}, {"additionalProperties": {"minLength": 1}}],
    },
    "all_of_additional_open": {
        "type": "object",
        "allOf": [{"additionalProperties": True}, {"additionalProperties": TEXT}],
    },
    "all_of_bounds": _of(
        a={"allOf": [{"minimum": 1, "maximum": 9, "type": "integer"}, {"minimum": 3, "maximum": 5}]},
        b={"allOf": [{"minLength": 1, "maxLength": 9, "type": "string"}, {"minLength": 3, "maxLength": 5}]},
        c={"allOf": [{"minItems": 1, "maxItems": 9, "type": "array"}, {"minItems": 3, "maxItems": 5}]},
        d={"allOf": [{"exclusiveMinimum": 1, "exclusiveMaximum": 9, "type": "integer"},
                     {"exclusiveMinimum": 3, "exclusiveMaximum": 5}]},
    ),
    "all_of_counts": _of(
        a={"type": "object", "allOf": [{"minProperties": 1, "maxProperties": 9}, {"minProperties": 2, "maxProperties": 4}]},
        b={"type": "array", "allOf": [{"minContains": 2, "maxContains": 9}, {"minContains": 3, "maxContains": 4}]},
    ),
    "all_of_steps": _of(
        a={"allOf": [{"multipleOf": 2, "type": "integer"}, {"multipleOf": 6}]},
        b={"allOf": [{"multipleOf": 4, "type": "integer"}, {"multipleOf": 6}]},
        c={"allOf": [{"multipleOf": 0.5, "type": "number"}, {"multipleOf": 2}]},
    ),
    "all_of_items": _of(a={"allOf": [{"type": "array", "items": TEXT}, {"items": {"minLength": 1}, "uniqueItems": True}]}),
    "all_of_unique": _of(a={"type": "array", "items": TEXT,
                           "allOf": [{"uniqueItems": False}, {"uniqueItems": True}]}),
    "all_of_descriptions": _of(a={"description": "outer", "allOf": [{**TEXT, "description": "inner"}]}),
    "all_of_titles": _of(a={"title": "outer", "allOf": [{**TEXT, "title": "inner"}]}),
    "all_of_not": _of(a={**TEXT, "allOf": [{"not": {"const": "x"}}, {"not": {"const": "y"}}]}),
    "all_of_patterns": _of(a={**TEXT, "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}),
    "all_of_conditions": {
        **_of(a=TEXT), "allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}},
                                 {"if": {"required": ["c"]}, "then": {"required": ["d"]}}]},
    "all_of_tuples": _of(a={"type": "array", "allOf": [{"prefixItems": [TEXT]}, {"items": NUMBER}]}),
    "all_of_dependent": {**_of(a=TEXT), "allOf": [
        {"dependentSchemas": {"a": _of(b=TEXT)}}, {"dependentSchemas": {"a": _of(c=TEXT), "d": {}}}]},
    "all_of_pattern_properties": {"type": "object", "allOf": [
        {"patternProperties": {"^x": TEXT}}, {"patternProperties": {"^x": {"minLength": 1}, "^y": NUMBER}}]},
    "all_of_property_names": {"type": "object", "allOf": [
        {"propertyNames": {"pattern": "^a"}}, {"propertyNames": {"maxLength": 3}}]},
    "all_of_contains": _of(a={"type": "array", "items": TEXT, "allOf": [
        {"contains": {"const": "x"}, "minContains": 1}, {"contains": {"const": "y"}, "maxContains": 2}]}),
    "const": _of(a={"const": "x"}, b={"const": 1}, c={"const": None}, d={"const": True}, e={"const": [1]}),
    "const_in_enum": _of(a={"const": "x", "enum": ["x", "y"]}, b={"const": "z", "enum": ["x", "y"]}),
    "one_of_exclusive": _of(a={"oneOf": [TEXT, NUMBER]}),
    "one_of_numbers": _of(a={"oneOf": [WHOLE, NUMBER]}),
    "one_of_overlapping": _of(a={"oneOf": [{"minLength": 1, **TEXT}, {"maxLength": 5, **TEXT}]}),
    "one_of_tagged": _of(a={"oneOf": [_of(kind={"const": "a"}, x=TEXT), _of(kind={"const": "b"}, y=TEXT)]}),
    "one_of_same_tag": _of(a={"oneOf": [_of(kind={"const": "a"}, x=TEXT), _of(kind={"const": "a"}, y=TEXT)]}),
    "one_of_values": _of(a={"oneOf": [{"const": "a", "description": "first"}, {"const": "b"}]}),
    "one_of_beside_any_of": _of(a={"oneOf": [TEXT, NUMBER], "anyOf": [TEXT, {"type": "boolean"}]}),
    "any_of_false": _of(a={"anyOf": [False, TEXT]}, b={"anyOf": [False]}, c={"anyOf": [TEXT, False, NUMBER]}),
    "any_of_one": _of(a={"anyOf": [{"minLength": 2}], **TEXT}),
    "any_of_beside": _of(a={"anyOf": [{"minLength": 2}, {"pattern": "x"}], **TEXT, "description": "d", "default": "e"}),
    "any_of_null": _of(a={"anyOf": [TEXT, {"type": "null"}], "default": None}),
    "idle_keywords": _of(a={**TEXT, "minimum": 3, "items": TEXT, "minLength": 1}),
    "idle_values": _of(a={"type": "string", "enum": ["x", 1]}, b={"type": ["string", "null"], "enum": ["x"]}, c={"type": "string", "enum": [1]}),
    "values_without_type": _of(a={"enum": [1, 1.5]}, b={"enum": ["x", 1, None]}, c={"enum": [True]}),
    "keywords_without_type": _of(a={"minLength": 1}, b={"items": TEXT}, c={"minLength": 1, "minimum": 3}, d={}, e=True),
    "closed_tuple": _of(a={"type": "array", "prefixItems": [TEXT, NUMBER], "items": False}),
    "open_tuple": _of(a={"type": "array", "prefixItems": [TEXT, NUMBER]}),
    "alike_tuple": _of(a={"type": "array", "prefixItems": [TEXT, TEXT], "items": TEXT}),
    "bounded_tuple": _of(a={"type": "array", "prefixItems": [TEXT, TEXT], "maxItems": 2}),
    "array_without_items": _of(a={"type": "array"}, b={"type": ["array", "null"]}),
    "required_unknown": {**_of(a=TEXT), "required": ["a", "b"]},
    "required_nothing": {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
    "false_property": {"type": "object", "properties": {"a": TEXT, "b": False}},
    "exclusive_bounds": _of(a={**WHOLE, "exclusiveMinimum": 1, "exclusiveMaximum": 9},
                            b={**NUMBER, "exclusiveMinimum": 1.5},
                            c={**WHOLE, "exclusiveMinimum": 1, "minimum": 5}),
    "enum_with_null": _of(a={"type": ["string", "null"], "enum": ["x", None], "description": "d"}),
    "enum_of_booleans": _of(a={"enum": [True, False]}, b={"enum": [None]}, c={"enum": [True, False, None]}),
    "enum_of_objects": _of(a={"enum": [{"x": 1}, {"x": 2}]}),
    "formats": _of(a={**TEXT, "format": "date-time"}, b={**TEXT, "format": "color"}, c={**WHOLE, "format": "int64"}),
    "every_format": _of(**{name.replace("-", "_"): {**TEXT, "format": name} for name in FORMATS}),
    "several_types": _of(a={"type": ["string", "integer"], "minLength": 1, "minimum": 2, "enum": ["x", 3]},
                         b={"type": ["string", "null"], "minLength": 1}),
    "open_objects": {"type": "object", "properties": {"a": _of(b=TEXT)}, "additionalProperties": True},
    "typed_additional": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": NUMBER},
    "optional": {"type": "object", "properties": {
        "a": TEXT, "b": {"type": ["string", "null"]}, "c": {"enum": ["x"]}, "d": {"anyOf": [TEXT, NUMBER]},
        "e": {"$ref": "#/$defs/E"}}, "$defs": {"E": {"type": "object", "properties": {"f": TEXT}}}},
    "lengths": _of(a={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3}, b={"type": "array", "items": TEXT, "minItems": 2},
                   c={**TEXT, "minLength": 1, "maxLength": 3}),
    "patterns": _of(a={**TEXT, "pattern": "^a+$"}, b={**TEXT, "pattern": "(?=a)"}, c={**TEXT, "pattern": "\\bword"},
                    d={**TEXT, "pattern": "(a)\\1"}),
    "numbers": _of(a={**NUMBER, "minimum": 1, "maximum": 2, "multipleOf": 0.5}),
    "recursive": {"type": "object", "properties": {"next": {"$ref": "#"}, "value": TEXT}, "required": ["value"]},
    "recursive_definition": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {
        "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}, "name": TEXT}, "required": ["name"]}}},
    "reference_beside": _of(a={"$ref": "#/$defs/A", "description": "here"}) | {"$defs": {"A": {**TEXT, "description": "there"}}},
    "reference_beside_more": {**_of(a={"$ref": "#/$defs/A", "properties": {"x": {"type": "array"}, "y": {"type": "array", "items": [TEXT]}}}),
                              "$defs": {"A": {"type": "object", "properties": {"z": TEXT}}}},
    "reference_missing": _of(a={"$ref": "#/$defs/Missing"}),
    "reference_elsewhere": _of(a={"$ref": "https://example.com/schema.json"}),
    "root_text": TEXT,
    "root_array": {"type": "array", "items": TEXT},
    "root_any_of": {"anyOf": [_of(a=TEXT), _of(b=TEXT)]},
    "root_enum": {"type": "object", "properties": {"a": TEXT}, "enum": [{"a": "x"}]},
    "root_true": True,
    "root_empty": {},
    "annotations": _of(a={**TEXT, "title": "T", "description": "D", "default": "x", "examples": ["y"], "deprecated": True,
                          "readOnly": True, "$comment": "c", "x-mine": 1}),
    "unevaluated": {**_of(a=TEXT), "unevaluatedProperties": False, "minProperties": 1, "maxProperties": 3},
    "conditional": {**_of(a=TEXT), "if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["b"]}, "else": {}},
    "not": _of(a={**TEXT, "not": {"const": "x"}}),
    "draft4": _of(a={**NUMBER, "minimum": 1, "exclusiveMinimum": True}) | {"definitions": {"A": TEXT}},
    "nullable": _of(a={**TEXT, "nullable": True}),
    "ordering": {**_of(a=TEXT, b=TEXT), "propertyOrdering": ["b", "a"]},
    "optional_null": {"type": "object", "properties": {
        "a": {"anyOf": [TEXT, NUMBER, {"type": "null"}]}, "b": {"type": "null"}, "c": {"type": "string", "enum": ["x", None]},
        "d": {"enum": ["x", None]}, "e": {"anyOf": [TEXT, {"type": ["number", "null"]}]}}},
    "root_nested_any_of": {"anyOf": [{"anyOf": [_of(a=TEXT), _of(b=NUMBER)]}, _of(c=TEXT)]},
    "root_any_of_named": {"type": "object", "oneOf": [
        {**_of(a=TEXT), "title": "A"}, {"properties": {"b": TEXT}}, {"required": ["c"]}, {}]},
    "root_any_of_with_text": {"type": "object", "anyOf": [_of(a=TEXT), TEXT, {"type": "null"}]},
    "root_any_of_shared": {"type": "object", "anyOf": [_of(a=TEXT, b=TEXT), _of(b=NUMBER, a=TEXT, c=TEXT), _of(a=TEXT, b=TEXT)]},
    "root_any_of_closed": {"type": "object", "anyOf": [
        {**_of(a=TEXT), "additionalProperties": False}, {**_of(b=TEXT), "additionalProperties": False}]},
    "root_any_of_half_closed": {"type": "object", "anyOf": [{**_of(a=TEXT), "additionalProperties": False}, _of(b=TEXT)]},
    "root_all_of_any_of": {"allOf": [{"anyOf": [_of(a=TEXT), _of(b=TEXT)]}, _of(c=TEXT)]},
    "root_types": {"type": ["object", "null"], "properties": {"a": TEXT}},
    "reference_names_alike": {**_of(a={"$ref": "#/$defs/A"}, b={"$ref": "#/definitions/A"}, c={"$ref": "#/definitions/A_2"}),
                              "$defs": {"A": TEXT}, "definitions": {"A": NUMBER, "A_2": WHOLE}},
    "reference_odd_names": {**_of(a={"$ref": "#/$defs/a~1b%20c~0"}, b={"$ref": "#/$defs/"}), "$defs": {"a/b c~": TEXT, "": NUMBER}},
    "reference_by_anchor": {**_of(a={"$ref": "#here"}), "$defs": {"A": {**TEXT, "$anchor": "here"}}},
    "reference_by_id": {"$id": "https://e.com/s", **_of(a={"$ref": "https://e.com/s#/$defs/A"}), "$defs": {"A": TEXT}},
    "reference_to_itself_by_id": {"$id": "https://e.com/s", "type": "object", "properties": {"a": {"$ref": "https://e.com/s"}}},
    "reference_into_a_list": _of(a={"anyOf": [TEXT, NUMBER]}, b={"$ref": "#/properties/a/anyOf/1"}, c={"$ref": "#/properties/a/anyOf/2"}),
    "reference_into_what_goes": {**_of(a={"$ref": "#/not/properties/x"}), "not": {"properties": {"x": TEXT}}},
    "reference_to_a_reference": {**_of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": TEXT}},
    "reference_to_true": {**_of(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/B"}), "$defs": {"A": True, "B": False}},
    "recursive_required": {**_of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {**_of(next={"$ref": "#/$defs/A"}, name=TEXT)}}},
    "recursive_through_two": {**_of(a={"$ref": "#/$defs/A"}), "$defs": {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
        "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "name": TEXT}}}},
    "recursive_beside": {"type": "object", "properties": {
        "a": {"$ref": "#/$defs/A", "description": "here", "title": "T"}, "b": {"$ref": "#/$defs/A", "minProperties": 1}},
        "$defs": {"A": {"type": "object", "properties": {"c": {"$ref": "#/$defs/A", "description": "there", "minProperties": 2}}}}},
    "recursive_any_of": {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}], "description": "d"}}},
    "old_tuples": _of(a={"type": "array", "items": [TEXT, NUMBER], "additionalItems": WHOLE},
                      b={"type": "array", "items": [TEXT], "additionalItems": False}, c={"type": "array", "items": TEXT, "additionalItems": False},
                      d={"type": "array", "items": []}),
    "old_bounds": _of(a={**NUMBER, "maximum": 5, "exclusiveMaximum": True}, b={**NUMBER, "minimum": 1, "exclusiveMinimum": False},
                      c={**NUMBER, "exclusiveMinimum": True}),
    "whole_bounds": _of(a={**WHOLE, "exclusiveMinimum": 7, "minimum": 5}, b={**WHOLE, "exclusiveMaximum": 3, "maximum": 9},
                        c={**WHOLE, "exclusiveMaximum": 1.5}, d={**NUMBER, "exclusiveMaximum": 3, "maximum": 2}),
    "nullable_forms": _of(a={"type": ["string", "null"], "nullable": True}, b={"enum": ["x"], "nullable": True}, c={**TEXT, "nullable": False},
                          d={"anyOf": [TEXT, NUMBER], "nullable": True}, e={"type": "string", "enum": ["x", None], "nullable": True}),
    "capitals": _of(a={"type": "STRING"}, b={"type": ["STRING", "NULL"]}, c={"type": ["Integer", "number"]}, d={"type": ["number"]}),
    "null_alone": _of(a={"type": "null"}, b={"anyOf": [{"type": "null"}, {"enum": [None]}]}, c={"const": None, "type": "string"}),
    "wrong_texts": _of(a={"type": "strin"}, b={"type": ["string", 7, "x"]}, c={**TEXT, "minLength": -1}, d={**TEXT, "maxLength": "5"},
                       e={**TEXT, "pattern": 7}, f={**TEXT, "format": 3}, g={**TEXT, "enum": []}, h={**TEXT, "minLength": 2.0},
                       i={**TEXT, "maxLength": 2.5}, j={**TEXT, "examples": "x"}, k={**TEXT, "minLength": True}, l={"type": 7}),
    "wrong_numbers": _of(a={**NUMBER, "multipleOf": 0}, b={**NUMBER, "minimum": True}, c={**NUMBER, "maximum": "9"}, d={**NUMBER, "multipleOf": -1}),
    "wrong_objects": _of(a={"type": "object", "properties": {"x": 7, "y": TEXT}, "required": ["y", 7, "y"]}, b={"type": "object", "properties": [1]},
                         c={"type": "object", "additionalProperties": 7}, d={"type": "object", "required": "y"}, e=7,
                         f={"type": "object", "dependentRequired": 7, "dependencies": [], "propertyOrdering": [7]}),
    "wrong_lists": _of(a={"type": "array", "items": 7}, b={"anyOf": [7]}, c={"anyOf": [TEXT, 7]}, d={"oneOf": {}}, e={"allOf": []},
                       f={"type": "array", "uniqueItems": "yes"}, g={"type": "array", "items": [7, TEXT]}),
    "says_nothing": _of(a={**TEXT, "minLength": 0, "deprecated": False, "readOnly": False, "writeOnly": False, "examples": []},
                        b={"type": "array", "items": {}, "minItems": 0, "uniqueItems": False, "unevaluatedItems": True, "contains": {}, "minContains": 1},
                        c={"type": "object", "minProperties": 0, "required": [], "patternProperties": {}, "propertyNames": TEXT,
                           "dependentRequired": {}, "dependentSchemas": {}, "dependencies": {}, "unevaluatedProperties": {}}),
    "says_much": _of(a={**TEXT, "contentEncoding": "base64", "contentMediaType": "text/plain", "contentSchema": {"type": "object"}, "writeOnly": True},
                     b={"type": "array", "items": TEXT, "maxItems": 9, "unevaluatedItems": False, "contains": TEXT, "minContains": 2, "maxContains": 3},
                     c={"type": "object", "patternProperties": {"^x": TEXT}, "propertyNames": {"maxLength": 2}, "minProperties": 1,
                        "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {}}, "dependencies": {"a": ["b"]}, "maxProperties": 4},
                     d={"$dynamicRef": "#x", "$recursiveRef": "#", "$vocabulary": {}, "$dynamicAnchor": "x"}),
    "ordering_unknown": {**_of(a=TEXT), "propertyOrdering": ["b", "a"], "title": "T"},
    "ordering_of_nothing": {**_of(a=TEXT), "propertyOrdering": ["b"]},
    "examples": _of(a={**TEXT, "examples": ["x"]}, b={**TEXT, "examples": ["x", "y"]}, c={**TEXT, "example": "x", "examples": ["y"]}),
    "enum_with_nothing": _of(a={"enum": ["", "x"]}, b={"enum": [""]}, c={"type": "string", "const": ""}),
    "enum_of_numbers": _of(a={"enum": [1, 2.5], "default": 1}, b={"enum": [1, "x"], "default": "x"}, c={"enum": [1, None], "type": ["integer", "null"]},
                           d={"enum": [1, True]}, e={"enum": [1, 1, 2]}),
    "enum_less_than_its_types": _of(a={"type": ["string", "integer"], "enum": ["x"]}, b={"type": ["string", "null"], "enum": [None]},
                                    c={"type": "number", "enum": [1, "x", 2.5]}),
    "enum_with_null_beside": _of(a={"enum": ["x", None], "anyOf": [{"minLength": 1}, {"maxLength": 9}], "title": "T"}),
    "any_of_in_any_of": _of(a={"anyOf": [{"anyOf": [TEXT, NUMBER]}, {"type": "boolean"}], "description": "d"}),
    "any_of_described": _of(a={"anyOf": [{**TEXT, "description": "one"}, NUMBER, {"type": "null"}], "description": "d", "examples": ["x"]}),
    "any_of_typed": _of(a={"type": ["string", "null"], "anyOf": [{"minLength": 1}, {"type": "null"}]}),
    "one_of_in_all_of": _of(a={"allOf": [{"oneOf": [TEXT, NUMBER]}, {"description": "d"}]}, b={"anyOf": [{"oneOf": [TEXT, WHOLE]}]}),
    "one_of_objects": _of(a={"oneOf": [_of(x=TEXT), _of(y=TEXT)]}, b={"oneOf": [_of(k={"enum": ["a", "b"]}), _of(k={"enum": ["b", "c"]})]},
                          c={"oneOf": [False, TEXT]}, d={"oneOf": [{"enum": [1]}, {"enum": [True]}]}),
    "several_types_described": _of(a={"type": ["string", "integer"], "description": "d", "title": "T"}, b={"type": ["object", "array"], "properties": {"x": TEXT}, "items": TEXT}),
    "several_types_with_values": _of(a={"type": ["string", "integer"], "enum": ["x", 1, True]}, b={"type": ["string", "boolean"], "enum": ["x"]}),
    "tuples_of_anything": _of(a={"type": "array", "prefixItems": [True, {}]}, b={"type": "array", "prefixItems": [TEXT], "items": True},
                              c={"type": "array", "prefixItems": [TEXT, TEXT], "items": False, "maxItems": 1}, d={"type": "array", "items": False}),
    "keywords_of_several_types": _of(a={"minimum": 1, "minLength": 1}, b={"items": TEXT, "minLength": 1}, c={"properties": {"x": TEXT}, "items": TEXT},
                                     d={"minimum": 1}, e={"required": ["x"], "minimum": 1}),
    "closed_twice": {"allOf": [{**_of(a=TEXT), "additionalProperties": False}, {**_of(a=TEXT), "additionalProperties": NUMBER}]},
    "all_of_false": _of(a={"allOf": [False, TEXT]}, b={"allOf": [True, TEXT]}, c={"anyOf": [True, TEXT]}),
    "all_of_orders": {"allOf": [{**_of(a=TEXT), "propertyOrdering": ["a"]}, {**_of(b=TEXT), "propertyOrdering": ["b", "a"]}]},
}  # fmt: skip


def projections(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for target in CHANGING:
        made = project(SCHEMAS[name], target)
        notes = [[getattr(note, name) for name in NOTE] for note in made.notes]
        found[target] = {"schema": made.schema, "notes": notes}
    return found


@cache
def _written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


@rows("name", list(SCHEMAS))
def test_a_schema_reaches_every_target_as_it_is_written_down(name: str) -> None:
    assert json.loads(json.dumps(projections(name))) == _written()[name]


def test_what_is_written_down_is_of_these_schemas() -> None:
    assert list(_written()) == list(SCHEMAS)


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(projections(name))}" for name in SCHEMAS]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
