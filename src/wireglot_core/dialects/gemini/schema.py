"""Converts Google's Schema message (`parameters`, `responseSchema`) to the equivalent JSON Schema.

The other direction is not needed: `parametersJsonSchema` and `responseJsonSchema` take JSON Schema, and a
schema that came as a Schema message is sent back as that message (see `Tool.extra.form`).
"""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.gemini.names import Names

_SCHEMA = Names(
    "anyOf",
    "additionalProperties",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "propertyOrdering",
    "prefixItems",
)
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS = frozenset({"properties", "$defs", "definitions"})
_ONES = frozenset({"items", "additionalProperties", "not"})
_RENAMED = {"defs": "$defs", "ref": "$ref"}
_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


def json_schema(schema: Any) -> Any:
    """Converts to lower-case types, `nullable` to a type or branch, `defs`/`ref` to `$defs`/`$ref`, counts to
    numbers."""
    if type(schema) is not dict:
        return schema
    result: dict[str, Any] = {}
    nullable = False
    for written, value in schema.items():
        key = _SCHEMA.spellings.get(written) or str(written)
        if type(value) in (dict, str):
            key = _RENAMED.get(key, key)
        if key == "type":
            if type(value) is str and value.upper() == "TYPE_UNSPECIFIED":
                continue
            result[key] = _type(value)
        elif key == "nullable" and type(value) is bool:
            nullable = value
        elif key in _MAPS and type(value) is dict:
            result[key] = {name: json_schema(item) for name, item in value.items()}
        elif key in _LISTS and type(value) is list:
            result[key] = [json_schema(item) for item in value]
        elif key in _ONES:
            result[key] = json_schema(value)
        elif key in _COUNTS and type(value) is str and value.isdecimal():
            result[key] = int(value)
        else:
            result[key] = value
    return _with_null(result) if nullable else result


def _type(value: Any) -> Any:
    if type(value) is list:
        return [_type(item) for item in value]
    return value.lower() if type(value) is str and value.upper() in _TYPES else value


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if type(kind) is str and kind != "null":
        schema["type"] = [kind, "null"]
    elif type(schema.get("anyOf")) is list:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if type(schema.get("enum")) is list and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def is_trivial(schema: dict[str, Any] | None) -> bool:
    """Whether it is equivalent to "an object without arguments", which Gemini requires to be left out."""
    return not schema or schema == {"type": "object"} or schema == {"type": "object", "properties": {}}


def is_openapi(schema: dict[str, Any] | None) -> bool:
    """Whether a schema has types in capitals, like Google's own message: the older field accepts it."""
    kind = (schema or {}).get("type")
    return type(kind) is str and kind.isupper()
