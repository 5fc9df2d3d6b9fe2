"""Schemas that are very deep, or grow as they are written out: survived, and never without a bound."""

from typing import Any

import msgspec
import pytest

from tests.core.dialects.schema_kit import CHANGING, of
from tests.tiers import rows
from wireglot_core.dialects.schema import SchemaTarget, project, walk


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@rows("target", CHANGING)
@rows("depth", [70, 900, 20_000])
def test_any_depth_is_survived_and_noted(target: SchemaTarget, depth: int) -> None:
    projected = project(nested(depth), target)
    assert any("too deep" in note.detail for note in projected.notes)
    msgspec.json.encode(projected.schema)


@rows("target", CHANGING)
def test_a_schema_has_so_many_nodes_and_no_more(
    target: SchemaTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root, and each schema in it; a reference that is written out adds what it leads to."""
    monkeypatch.setattr(walk, "MAX_NODES", 20)
    plain: tuple[dict[str, Any], int, str, dict[str, Any]] = {"type": "object"}, 19, "type", {}
    inlined = (
        {"$ref": "#/$defs/A", "description": "mine"},
        9,
        "recursive",
        {"$defs": {"A": {"type": "object"}}},
    )
    for inner, most, keyword, more in (plain, inlined) if target.startswith("gemini") else (plain,):
        for count in (most, most + 1):
            properties = {f"p{number}": inner for number in range(count)}
            notes = project({"type": "object", "properties": properties, **more}, target).notes
            assert any(note.keyword == keyword for note in notes) is (count > most), (inner, notes)


@rows("target", CHANGING)
def test_deep_unions_are_survived(target: SchemaTarget) -> None:
    for keyword in ("anyOf", "allOf", "oneOf", "not"):
        schema: dict[str, Any] = {"type": "object"}
        for _ in range(900):
            schema = {keyword: schema if keyword == "not" else [schema, {"type": "object"}]}
        project(schema, target)


@rows("target", CHANGING)
def test_definitions_that_double_at_each_step_do_not_explode(target: SchemaTarget) -> None:
    definitions: dict[str, Any] = {"D0": {"type": "string"}}
    for at in range(1, 40):
        ref = {"$ref": f"#/$defs/D{at - 1}"}
        definitions[f"D{at}"] = {"type": "object", "properties": {"l": ref, "r": ref | {"description": "x"}}}
    projected = project(of({"$ref": "#/$defs/D39"}) | {"$defs": definitions}, target)
    assert len(msgspec.json.encode(projected.schema)) < 5_000_000


@rows("target", CHANGING)
@rows("around", [{}, {"minProperties": 1}])
def test_a_long_chain_of_definitions_is_survived(target: SchemaTarget, around: dict[str, Any]) -> None:
    definitions: dict[str, Any] = {
        f"D{at}": of({"$ref": f"#/$defs/D{at + 1}", **around}) for at in range(400)
    }
    definitions["D400"] = {"type": "string"}
    project(of({"$ref": "#/$defs/D0"}) | {"$defs": definitions}, target)


@rows("target", CHANGING)
@rows(
    "shared",
    [{"description": "x" * 10_000}, {"enum": ["x" * 10_000]}, {"properties": {"x" * 10_000: True}}],
)
def test_a_large_definition_is_not_repeated_without_end(target: SchemaTarget, shared: dict[str, Any]) -> None:
    """Hundreds of references, and hundreds of branches beside it."""
    many = [{"$ref": "#/$defs/L", "minProperties": at} for at in range(300)]
    places: list[dict[str, Any]] = [
        {"properties": {f"p{at}": each for at, each in enumerate(many)}},
        {"properties": {"a": {"anyOf": many}}},
        {"properties": {"a": {**shared, "anyOf": [{"minProperties": at} for at in range(300)]}}},
    ]
    for place in places:
        schema = {"type": "object", **place, "$defs": {"L": shared}}
        projected = project(schema, target)
        growth = len(msgspec.json.encode(projected.schema)) / len(msgspec.json.encode(schema))
        assert growth < 3 * walk.MAX_WORK_FOR_EACH_BYTE
        if growth > 8:
            assert any("too large" in note.detail for note in projected.notes)


@rows("target", CHANGING)
def test_definitions_without_a_usable_name_get_a_number_each(target: SchemaTarget) -> None:
    names = [chr(0x4E00 + at) for at in range(50)]
    definitions = {name: of({"$ref": "#"}) for name in names}
    used = {f"p{at}": {"$ref": f"#/$defs/{name}"} for at, name in enumerate(names)}
    schema = project({"type": "object", "properties": used, "$defs": definitions}, target).schema
    if "$defs" in schema and names[0] not in schema["$defs"]:
        assert [*schema["$defs"]][:3] == ["_", "__2", "__3"]
        assert len(schema["$defs"]) in (50, 51)


@rows("target", CHANGING)
def test_definitions_that_all_refer_to_one_another_do_not_explode(target: SchemaTarget) -> None:
    names = [f"N{at}" for at in range(12)]
    everyone = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    project(
        of(everyone["N0"]) | {"$defs": {name: {"type": "object", "properties": everyone} for name in names}},
        target,
    )


@rows("target", CHANGING)
def test_unions_that_nest_beside_properties_do_not_explode(target: SchemaTarget) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        schema = {
            "type": "object",
            "properties": {"a": schema},
            "anyOf": [{"minProperties": 1}, {"maxProperties": 2}],
        }
    project(schema, target)
