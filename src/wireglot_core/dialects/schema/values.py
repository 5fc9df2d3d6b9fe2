"""The values of schema projection, and helpers for JSON values."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

Node: TypeAlias = dict[str, Any]

SchemaTarget = Literal[
    "json-schema",
    "gemini-json",
    "gemini-openapi",
    "openai-strict",
    "openai",
    "anthropic",
    "anthropic-strict",
    "moonshot",
    "ollama",
]


class SchemaNote(msgspec.Struct, frozen=True):
    """One difference between the projected schema and the original."""

    path: str
    keyword: str
    detail: str
    hint: bool = False
    """Whether the keyword only narrows or describes values, and is kept as description text."""


class Projected(msgspec.Struct, frozen=True):
    """A schema in a target's form. Shared between callers through a cache: never mutate `schema`."""

    schema: Node
    notes: tuple[SchemaNote, ...] = ()
    same: bool = False
    """Whether the result is identical to the original."""


TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
# Every JSON value has one of these; "integer" is part of "number".
ANY_TYPES = ("string", "number", "boolean", "object", "array", "null")


def json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case dict():
            return "object"
        case _:
            return "array"


def has_type(value: Any, name: str) -> bool:
    kind = json_type(value)
    if kind == name:
        return True
    if name == "number":
        return kind == "integer"
    return name == "integer" and kind == "number" and value.is_integer()


def common_type(kinds: Sequence[str]) -> str | None:
    """The one type that includes all of `kinds`, if there is one."""
    unique = set(kinds)
    if unique == {"integer", "number"}:
        return "number"
    return unique.pop() if len(unique) == 1 else None


def json_text(value: Any) -> str:
    """Compact JSON; a value that cannot be encoded (too deep, wrong type) becomes three dots."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return "..."


def json_key(value: Any) -> Hashable:
    """Equal for equal JSON values only: unlike Python's equality, it distinguishes true from 1."""
    if isinstance(value, dict | list):
        return type(value), json_text(value)
    return (bool, value) if isinstance(value, bool) else value


def holds(values: Sequence[Any], value: Any) -> bool:
    key = json_key(value)
    return any(json_key(each) == key for each in values)


def distinct(values: Iterable[Any]) -> list[Any]:
    """The values, each once."""
    found: dict[Hashable, Any] = {}
    for each in values:
        found.setdefault(json_key(each), each)
    return list(found.values())


def type_names(node: Node) -> tuple[str, ...]:
    """The declared types, always as a tuple; empty when none is declared."""
    declared = node.get("type")
    if isinstance(declared, str):
        return (declared,)
    return tuple(declared) if isinstance(declared, list) else ()
