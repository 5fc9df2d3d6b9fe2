"""Makes one node well-formed: drops invalid values with a note, converts older drafts and OpenAPI
spellings."""

import math
from collections.abc import Callable
from typing import Any, Final

from .keywords import (
    COUNT_KEYWORDS,
    FLAG_KEYWORDS,
    LIST_KEYWORDS,
    MAP_KEYWORDS,
    NUMBER_KEYWORDS,
    SCHEMA_KEYWORDS,
    STRING_KEYWORDS,
)
from .place import Place
from .values import TYPES, Node, distinct, holds, type_names

BAD: Final = object()


def _a_schema(value: Any) -> Any:
    return value if isinstance(value, dict | bool) else BAD


def _items(value: Any) -> Any:
    return _schemas(value) if isinstance(value, list) and value else _a_schema(value)


def _schemas(value: Any) -> Any:
    if not isinstance(value, list):
        return BAD
    return [each for each in value if isinstance(each, dict | bool)] or BAD


def _schema_map(value: Any) -> Any:
    if not isinstance(value, dict):
        return BAD
    return {str(name): each for name, each in value.items() if isinstance(each, dict | bool)}


def _count(value: Any) -> Any:
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)  # Gemini's Schema message spells int64 as a string
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else BAD


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return BAD
    return value if isinstance(value, int) or math.isfinite(value) else BAD


def _bound(value: Any) -> Any:
    return value if isinstance(value, bool) else _number(value)  # draft 4 had booleans here


def _step(value: Any) -> Any:
    value = _number(value)
    return value if value is not BAD and value > 0 else BAD


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else BAD


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else BAD


def _type(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower() if value.lower() in TYPES else BAD
    if not isinstance(value, list):
        return BAD
    names = [name.lower() for name in value if isinstance(name, str) and name.lower() in TYPES]
    unique = list(dict.fromkeys(names))
    if "number" in unique and "integer" in unique:
        unique.remove("integer")
    return unique[0] if len(unique) == 1 else unique or BAD


def _names(value: Any) -> Any:
    if not isinstance(value, list):
        return BAD
    return list(dict.fromkeys(name for name in value if isinstance(name, str)))


def _values(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        return BAD
    return distinct(value)


_SHAPES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(SCHEMA_KEYWORDS, _a_schema),
    **dict.fromkeys(LIST_KEYWORDS, _schemas),
    **dict.fromkeys(MAP_KEYWORDS, _schema_map),
    **dict.fromkeys(COUNT_KEYWORDS, _count),
    **dict.fromkeys(NUMBER_KEYWORDS, _number),
    **dict.fromkeys(STRING_KEYWORDS, _text),
    **dict.fromkeys(FLAG_KEYWORDS, _flag),
    "items": _items,
    "exclusiveMinimum": _bound,
    "exclusiveMaximum": _bound,
    "multipleOf": _step,
    "type": _type,
    "required": _names,
    "propertyOrdering": _names,
    "enum": _values,
    "examples": lambda value: value if isinstance(value, list) else BAD,
    "dependentRequired": lambda value: value if isinstance(value, dict) else BAD,
    "dependencies": lambda value: value if isinstance(value, dict) else BAD,
}


def tidy(raw: Node, place: Place) -> Node:
    """A copy of `raw` whose known keywords have valid values."""
    node: Node = {}
    for key, value in raw.items():
        shape = _SHAPES.get(key)
        clean = shape(value) if shape else value
        if clean is BAD:
            place.note(key, "not a valid value for this keyword; dropped")
            continue
        if _lost_members(value, clean, key):
            place.note(key, "holds members that are not valid there; dropped them")
        node[key] = clean
    for modernise in (_old_bounds, _old_tuples, _nullable):
        modernise(node)
    return node


def _lost_members(value: Any, clean: Any, key: str) -> bool:
    if key in MAP_KEYWORDS or (key in LIST_KEYWORDS | {"items"} and isinstance(value, list)):
        return len(clean) != len(value)
    if key == "required" or key == "propertyOrdering":
        return any(not isinstance(name, str) for name in value)
    if key == "type" and isinstance(value, list):
        return any(not isinstance(name, str) or name.lower() not in TYPES for name in value)
    return False


def _old_bounds(node: Node) -> None:
    """Draft 4: `exclusiveMinimum: true` next to `minimum`."""
    for key, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(key), bool):
            exclusive = node.pop(key)
            if exclusive and plain in node:
                node[key] = node.pop(plain)


def _old_tuples(node: Node) -> None:
    """Before 2020-12: `items: [..]` with `additionalItems`."""
    if isinstance(node.get("items"), list):
        rest = node.pop("additionalItems", None)
        node.setdefault("prefixItems", node.pop("items"))
        if rest is not None:
            node["items"] = rest
    node.pop("additionalItems", None)  # without a tuple it has no effect


def _nullable(node: Node) -> None:
    """Converts `nullable` of OpenAPI 3.0 and Gemini's Schema message."""
    if not node.pop("nullable", False):
        return
    kinds = type_names(node)
    if kinds and "null" not in kinds:
        node["type"] = [*kinds, "null"]
    if "enum" in node and not holds(node["enum"], None):
        node["enum"] = [*node["enum"], None]
    if not kinds and "anyOf" in node:
        node["anyOf"] = [*node["anyOf"], {"type": "null"}]
