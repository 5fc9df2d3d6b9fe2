"""Whether a value fits a JSON schema, as far as the probe's own schemas go."""

from __future__ import annotations

from typing import Any, Final

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfit(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, path: str = "$") -> str:
    """What does not fit, and where; "" where it fits."""
    root = schema if root is None else root
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        return misfit(value, root["$defs"][name], root, path)
    if "anyOf" in schema:
        found = [misfit(value, each, root, path) for each in schema["anyOf"]]
        return "" if "" in found else f"{path}: fits none of the alternatives ({found[0]})"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path}: {value!r} is none of {schema['enum']!r}"
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))
    ):
        return f"{path}: expected {kind}, found {value!r}"
    if isinstance(value, dict):
        return _members(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            if found_in := misfit(each, schema["items"], root, f"{path}[{number}]"):
                return found_in
    return ""


def _members(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: str) -> str:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path}: {name} is missing"
    for name, each in value.items():
        if name in properties:
            if found := misfit(each, properties[name], root, f"{path}.{name}"):
                return found
        elif schema.get("additionalProperties") is False:
            return f"{path}: {name} is not allowed"
    return ""
