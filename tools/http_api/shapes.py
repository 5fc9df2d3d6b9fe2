"""Small parts of JSON schemas."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def text(about: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": about} if about else {}), **more}


def whole(about: str = "", **more: Any) -> Schema:
    return {"type": "integer", **({"description": about} if about else {}), **more}


def flag(about: str = "") -> Schema:
    return {"type": "boolean", **({"description": about} if about else {})}


def listed(of: Schema, about: str = "") -> Schema:
    return {"type": "array", "items": of, **({"description": about} if about else {})}


def nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def fields(properties: dict[str, Schema], *, optional: tuple[str, ...] = (), about: str = "") -> Schema:
    """An object that has all of its properties but for those that are optional."""
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": properties,
        **({"required": required} if required else {}),
    }
