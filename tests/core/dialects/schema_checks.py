"""What each target takes, checked without the code under test."""

import json
from typing import Any

from wireglot_core.dialects.schema import Projected, SchemaTarget


def words(text: str) -> set[str]:
    return set(text.split())


ALLOWED: dict[str, set[str]] = {
    "gemini-json": words(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum "
        "maximum anyOf oneOf properties additionalProperties required propertyOrdering"
    ),
    "gemini-openapi": words(
        "type format title description nullable enum items minItems maxItems properties required minProperties "
        "maxProperties minLength maxLength pattern minimum maximum anyOf default example propertyOrdering"
    ),
    "openai-strict": words(
        "$defs $ref type title description enum anyOf items minItems maxItems properties required format pattern "
        "additionalProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
    ),
    "anthropic-strict": words(
        "$defs $ref type title description enum const anyOf items minItems properties required format pattern default "
        "additionalProperties"
    ),
    "moonshot": words(
        "$defs $ref type title description enum anyOf items minItems maxItems properties required format pattern default "
        "additionalProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength "
        "minProperties maxProperties uniqueItems examples"
    ),
    "ollama": words("type description enum anyOf items properties required"),
}


def nodes(schema: Any, path: str = "$"):
    """Every schema in an output, with its path; everything found in a schema's place must be a schema."""
    assert isinstance(schema, dict), f"{path} is not an object: {schema!r}"
    yield path, schema
    for key, value in schema.items():
        if key in ("items", "not", "if", "then", "else") or (
            key == "additionalProperties" and not isinstance(value, bool)
        ):
            yield from nodes(value, f"{path}.{key}")
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            assert value, f"{path}.{key} is empty"
            for at, each in enumerate(value):
                yield from nodes(each, f"{path}.{key}[{at}]")
        elif key in ("properties", "$defs", "definitions", "patternProperties"):
            for name, each in value.items():
                yield from nodes(each, f"{path}.{key}.{name}")


def check_references(root: dict[str, Any]) -> None:
    for path, node in nodes(root):
        if "$ref" in node:
            assert set(node) == {"$ref"}, f"{path}: siblings of $ref"
            kind, name = node["$ref"].rsplit("/", 1)
            assert kind == "#/$defs", f"{path}: {node['$ref']}"
            assert name in root["$defs"], f"{path}: {node['$ref']}"
        if path != "$":
            assert "$defs" not in node


def check_gemini_json(root: dict[str, Any]) -> None:
    check_references(root)
    for path, node in nodes(root):
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        for value in node.get("enum", []):
            assert isinstance(value, str | int | float), path
            assert not isinstance(value, bool), path


def check_gemini_openapi(root: dict[str, Any]) -> None:
    for path, node in nodes(root):
        if "anyOf" in node:
            assert set(node) <= {"anyOf"}, f"{path}: {set(node)} beside anyOf"
            continue
        assert node["type"] in ("STRING", "INTEGER", "NUMBER", "BOOLEAN", "OBJECT", "ARRAY"), path
        assert ("items" in node) == (node["type"] == "ARRAY"), path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        if "enum" in node:
            assert node["type"] == "STRING", path
            assert node["enum"], path
            assert all(isinstance(value, str) and value for value in node["enum"]), path
        assert node.get("format", "enum") in ("enum", "date-time", "int32", "int64", "float", "double"), path


def is_object(node: dict[str, Any]) -> bool:
    return "object" in ([node["type"]] if isinstance(node.get("type"), str) else node.get("type", []))


def check_openai_strict(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert "anyOf" not in root
    check_references(root)
    for path, node in nodes(root):
        assert node.keys() & {"type", "anyOf", "$ref"}, path
        if is_object(node):
            assert node["additionalProperties"] is False, path
            assert sorted(node["required"]) == sorted(node["properties"]), path


def check_anthropic_strict(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert "anyOf" not in root
    check_references(root)
    for path, node in nodes(root):
        assert not is_object(node) or node["additionalProperties"] is False, path
        assert node.get("minItems", 0) <= 1, path


def check_moonshot(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert "anyOf" not in root
    check_references(root)
    for path, node in nodes(root):
        if "$ref" in node:
            continue
        if "anyOf" in node:
            assert set(node) <= {"anyOf", "title", "description"}, path
        elif isinstance(node.get("type"), list):
            assert set(node) <= {"type", "title", "description"} | ({"$defs"} if path == "$" else set()), path
        elif not path.endswith(".additionalProperties"):
            assert isinstance(node["type"], str), path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        assert len({isinstance(value, str) for value in node.get("enum", [])}) <= 1, path


def check_plain_root(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert isinstance(root["properties"], dict)
    assert not root.keys() & {"anyOf", "oneOf", "allOf"}


def check_openai(root: dict[str, Any]) -> None:
    check_plain_root(root)
    for path, node in nodes(root):
        kinds = [node["type"]] if isinstance(node.get("type"), str) else node.get("type", [])
        assert "array" not in kinds or "items" in node, path


CHECKS = {
    "json-schema": lambda root: None,
    "gemini-json": check_gemini_json,
    "gemini-openapi": check_gemini_openapi,
    "openai-strict": check_openai_strict,
    "openai": check_openai,
    "anthropic": check_plain_root,
    "anthropic-strict": check_anthropic_strict,
    "moonshot": check_moonshot,
    "ollama": check_plain_root,
}


def check(projected: Projected, target: SchemaTarget) -> None:
    root = projected.schema
    json.dumps(root)
    if target in ALLOWED:
        for path, node in nodes(root):
            assert set(node) <= ALLOWED[target], f"{path}: {set(node) - ALLOWED[target]}"
    CHECKS[target](root)
