"""Projects a schema to a target's form, with a cache."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from .root import is_dangling, object_root
from .targets import RULES
from .values import Node, Projected, SchemaNote, SchemaTarget, json_text
from .walk import Rules, Walk

_CACHED_SCHEMAS = 1024  # an agent sends the same few dozen tools every turn
_CACHED_BYTES = 64 * 1024  # larger schemas are projected again each time


def project(schema: dict[str, Any] | bool | None, target: SchemaTarget) -> Projected:
    """The schema in `target`'s form. The result is shared between callers: never mutate it.

    None means no schema. No notes: the projected schema is equivalent to the given one. If the target
    requires an object at the root, any other root is wrapped, with a note; call `object_root` first to know.
    """
    if target == "json-schema":
        return Projected(_as_schema(schema), same=isinstance(schema, dict))
    try:
        key = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError):
        return _projected(schema, RULES[target])
    return _from_cache(target, key) if len(key) <= _CACHED_BYTES else _from_bytes(target, key)


def _as_schema(schema: dict[str, Any] | bool | None) -> Node:
    if isinstance(schema, dict):
        return schema
    return {"not": {}} if schema is False else {}


def _from_bytes(target: SchemaTarget, key: bytes) -> Projected:
    # Decoded again, so that the cached value shares nothing with the caller's own objects.
    return _projected(msgspec.json.decode(key), RULES[target])


_from_cache = lru_cache(maxsize=_CACHED_SCHEMAS)(_from_bytes)


def _projected(schema: Any, rules: Rules) -> Projected:
    notes: list[SchemaNote] = []
    if not isinstance(schema, dict) and schema is not None and schema is not True:
        notes.append(SchemaNote("$", "not", "not a schema of any object; any object is allowed"))
    root = schema if isinstance(schema, dict) and schema else {"type": "object", "properties": {}}
    if schema is None:
        root["additionalProperties"] = False
    wrapped = False
    if rules.object_root:
        root, wrapped = object_root(root)
        if wrapped:
            notes.append(
                SchemaNote("$", "type", "the root must be an object; wrapped as its property `value`")
            )
    size = len(json_text(root))
    walk = Walk(root, rules, size, keep_refs=not wrapped and not root.keys() & {"anyOf", "oneOf", "allOf"})
    out = walk.run() or {"type": "object", "properties": {}}
    if walk.mode == "verbatim" and is_dangling(out):  # a rewrite moved what a reference pointed to
        walk = Walk(root, rules, size, keep_refs=False)
        out = walk.run()
    return Projected(out, (*notes, *walk.notes), out == schema)
