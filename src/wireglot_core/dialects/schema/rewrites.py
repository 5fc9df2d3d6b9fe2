"""Rewrites that several targets share. Each receives a node that it may modify, and the node's place."""

import math
from collections.abc import Callable, Hashable
from itertools import combinations
from typing import Any

from .keywords import ANNOTATIONS, APPLIES_TO, SILENT, concerns, infer_type, value_types
from .merge import both, const_as_enum, merge
from .place import Place
from .refs import Refs
from .tidy import tidy
from .values import (
    ANY_TYPES,
    Node,
    distinct,
    has_type,
    holds,
    json_key,
    json_text,
    json_type,
    type_names,
)
from .walk import Step

# Branches of a `oneOf` that are compared with one another.
_MAX_COMPARED = 32


def merge_all_of(node: Node, place: Place) -> Node:
    """Merges `allOf` into the node itself."""
    while "allOf" in node:
        combined: Node = {}
        for member in node.pop("allOf"):
            combined = merge(combined, place.walk.expand(member, place), place)
        node = merge(combined, node, place)
    return node


def const_to_enum(node: Node, place: Place) -> Node:
    if "const" in node and "enum" in node and not holds(node["enum"], node["const"]):
        place.note("const", "not one of the enum's values")
    return const_as_enum(node)


def one_of_to_any_of(node: Node, place: Place) -> Node:
    """Equivalent if no value can match two branches; otherwise a loosening."""
    if "oneOf" not in node:
        return node
    branches = node["oneOf"]
    if "anyOf" in node:
        place.drop(node, "oneOf")
        return node
    if not _exclusive(branches, place.walk.refs):
        place.note("oneOf", "sent as anyOf: a value may now match several of the branches")
    del node["oneOf"]
    node["anyOf"] = branches
    return node


def simplify_any_of(node: Node, place: Place) -> Node:
    """Removes branches that match nothing; a single branch becomes part of the node."""
    while "anyOf" in node:
        branches = [branch for branch in node.pop("anyOf") if branch is not False]
        if len(branches) > 1:
            return {**node, "anyOf": branches}
        if not branches:
            return {**node, "not": {}}
        if _is_recursive(branches[0], place):
            return _beside_reference(branches[0], node, place)
        node = merge_all_of(merge(place.walk.expand(branches[0], place), node, place), place)
        node = one_of_to_any_of(const_as_enum(node), place)
    return node


def _is_recursive(branch: Any, place: Place) -> bool:
    """Whether a branch is a reference that must stay one, with at most annotations next to it."""
    walk = place.walk
    ref = branch.get("$ref") if isinstance(branch, dict) else None
    found = walk.refs.find(ref) if isinstance(ref, str) and walk.mode == "named" else None
    return (
        found is not None
        and walk.refs.is_cyclic(found[0])
        and branch.keys() <= {"$ref", *ANNOTATIONS, *SILENT}
    )


def _beside_reference(branch: Node, node: Node, place: Place) -> Node:
    about = {key: value for key, value in branch.items() if key in ANNOTATIONS}
    return {**merge(tidy(about, place), node, place), "anyOf": [{"$ref": branch["$ref"]}]}


def drop_idle_keywords(node: Node, place: Place) -> Node:
    """Drops keywords that do not restrict values of the declared type."""
    kinds = type_names(node)
    return {key: value for key, value in node.items() if concerns(key, kinds)} if kinds else node


def drop_idle_values(node: Node, place: Place) -> Node:
    """Drops enum values that the declared type forbids anyway, and types that no value of the enum has."""
    kinds = type_names(node)
    if not kinds or "enum" not in node:
        return node
    fitting = [value for value in node["enum"] if any(has_type(value, kind) for kind in kinds)]
    if not fitting:
        place.drop(node, "enum")
        return node
    used = [kind for kind in kinds if any(has_type(value, kind) for value in fitting)]
    return {**node, "type": used[0] if len(used) == 1 else used, "enum": fitting}


def type_from_values(node: Node, place: Place) -> Node:
    """A const or enum without a type gets the type of its values."""
    kinds = value_types(node)
    if "type" in node or not kinds:
        return node
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **node}


def type_from_keywords(node: Node, place: Place) -> Node:
    """Derives the type from keywords that apply to one type only."""
    if "type" in node or node.keys() & {"anyOf", "oneOf", "allOf", "$ref"}:
        return node
    kind = infer_type(node)
    rivals = {APPLIES_TO[key] for key in node if key in APPLIES_TO}
    if kind is None and rivals:
        kind = next(each for each in ("object", "array", "string") if each in rivals)  # of at least two
        place.note("type", f"keywords of several types; taken for type {kind}")
    return {"type": kind, **node} if kind else node


def close_false_items(node: Node, place: Place) -> Node:
    """`items: false` ends a tuple: expressed with maxItems."""
    if node.get("items") is False:
        del node["items"]
        length = len(node.get("prefixItems", ()))
        node["maxItems"] = min(node.get("maxItems", length), length)
    return node


def tuple_to_items(node: Node, place: Place) -> Node:
    """A tuple as an array whose items match any of its members' schemas."""
    if "prefixItems" not in node:
        return node
    members = [{} if member is True else member for member in node.pop("prefixItems")]
    rest = node.get("items")
    members += [{} if rest is True else rest] if rest is not None else []
    unique = distinct(members)
    place.spend(sum(len(json_text(member)) for member in members))
    node["items"] = unique[0] if len(unique) == 1 else {"anyOf": unique}
    ends = rest is not None or node.get("maxItems", len(members) + 1) <= len(members)
    if len(unique) > 1 or not ends:
        place.note("prefixItems", "positions of the tuple are lost: each item may match any of its schemas")
    return node


def items_for_arrays(node: Node, place: Place) -> Node:
    if "array" in type_names(node) and "items" not in node:
        node["items"] = {}
    return node


def required_exists(node: Node, place: Place) -> Node:
    """Only names of declared properties may be required."""
    if "required" not in node:
        return node
    known = node.get("properties", {})
    unknown = [name for name in node["required"] if name not in known]
    if unknown:
        place.note("required", f"not declared as properties: {', '.join(unknown)}")
        node["required"] = [name for name in node["required"] if name in known]
    if not node["required"]:
        del node["required"]
    return node


def drop_false_properties(node: Node, place: Place) -> Node:
    """Leaves out a property that must be absent, for targets that cannot express that."""
    properties = node.get("properties", {})
    absent = [name for name, schema in properties.items() if schema is False]
    for name in absent:
        place.note("properties", "a property that must be absent is left out", "properties", name)
    if absent:
        node["properties"] = {name: schema for name, schema in properties.items() if schema is not False}
    return node


def integer_bounds(node: Node, place: Place) -> Node:
    """For integers `> n` is `>= n + 1`; for other numbers the bound itself is the nearest there is."""
    for key, plain, step, tighter in (
        ("exclusiveMinimum", "minimum", 1, max),
        ("exclusiveMaximum", "maximum", -1, min),
    ):
        if key not in node:
            continue
        bound = node[key]
        exact = node.get("type") == "integer" and isinstance(bound, int)
        if exact:
            del node[key]
            bound += step
        else:
            place.drop(node, key)
        node[plain] = tighter(node.get(plain, bound), bound)
    return node


def limit_enum(*allowed: str) -> Step:
    """Limits an enum to the allowed JSON types; a null among its values becomes a separate branch."""

    def limit(node: Node, place: Place) -> Node:
        values = node.get("enum", [])
        if all(json_type(value) in allowed for value in values):
            return node
        plain = [value for value in values if value is not None]
        if plain and all(json_type(value) in allowed for value in plain):
            return _null_apart(node, plain)
        return _without_enum(node, place)

    return limit


def _null_apart(node: Node, values: list[Any]) -> Node:
    outside = {key: value for key, value in node.items() if key in ANNOTATIONS}
    inside = {key: value for key, value in node.items() if key not in ANNOTATIONS and key != "anyOf"}
    kinds = [kind for kind in type_names(node) if kind != "null"]
    typed = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    valued = {**inside, **typed, "enum": values}
    null = {key: value for key, value in inside.items() if concerns(key, ("null",)) and key != "enum"}
    null["type"] = "null"
    if "anyOf" in node:
        either = {"anyOf": node["anyOf"]}
        return {**outside, "anyOf": [both(valued, either), both(null, either)]}
    return {**outside, "anyOf": [valued, null]}


def _without_enum(node: Node, place: Place) -> Node:
    """The enum described in text, unless the type is equivalent."""
    values = node["enum"]
    kinds = value_types(node)
    full = {"boolean": 2, "null": 1}
    if sum(full.get(kind, math.inf) for kind in kinds) == len(values) and set(type_names(node)) <= set(kinds):
        del node["enum"]
    else:
        place.drop(node, "enum")
    return node


def limit_formats(*known: str) -> Step:
    allowed = frozenset(known)

    def limit(node: Node, place: Place) -> Node:
        if "format" in node and node["format"] not in allowed:
            place.drop(node, "format")
        return node

    return limit


def split_types(node: Node, place: Place) -> Node:
    """Splits several types into an anyOf with one branch each; every keyword goes to the type it applies
    to."""
    kinds = type_names(node)
    if len(kinds) < 2 or "anyOf" in node:
        return node
    aside = {key: value for key, value in node.items() if key in ANNOTATIONS}
    about = {key: value for key, value in node.items() if key not in ANNOTATIONS and key != "type"}
    branches = [branch for kind in kinds if (branch := _branch_of(kind, about))]
    return {**aside, "anyOf": branches}


def _branch_of(kind: str, about: Node) -> Node | None:
    branch = {"type": kind} | {key: value for key, value in about.items() if concerns(key, (kind,))}
    if "enum" in branch:
        branch["enum"] = [value for value in branch["enum"] if has_type(value, kind)]
        return branch if branch["enum"] else None
    return branch


def spread_into_any_of(beside: frozenset[str]) -> Step:
    """Moves the keywords next to an anyOf into each branch: A and (B or C) is (A and B) or (A and C)."""

    def spread(node: Node, place: Place) -> Node:
        if "anyOf" not in node:
            return node
        for key in [key for key in node if key in ANNOTATIONS - {"title", "description"}]:
            place.drop(node, key)
        base = {key: value for key, value in node.items() if key != "anyOf" and key not in beside}
        outside = {key: value for key, value in node.items() if key in beside}
        branches = node["anyOf"]
        if base:
            branches = [both(base, branch) for branch in branches]
        return {**outside, "anyOf": branches}

    return spread


def any_type_or(fallback: Callable[[Node, Place], Node]) -> Step:
    """A rewrite that gives a type to nodes that still have neither type nor branches."""

    def choose(node: Node, place: Place) -> Node:
        if "type" in node or "anyOf" in node or "$ref" in node:
            return node
        return fallback(node, place)

    return choose


def every_type(node: Node, place: Place) -> Node:
    return {"type": list(ANY_TYPES), **node}


def close_objects(node: Node, place: Place) -> Node:
    """Sets `additionalProperties: false` on every object."""
    if "object" in type_names(node) and node.get("additionalProperties") is not False:
        if "additionalProperties" in node:
            place.drop(node, "additionalProperties")
        place.note("additionalProperties", "the object is closed: only declared properties are allowed")
        node["additionalProperties"] = False
    return node


def _exclusive(branches: list[Any], refs: Refs) -> bool:
    if len(branches) > _MAX_COMPARED:
        return False
    seen = [_Branch(refs.peek(branch)) for branch in branches]
    return all(one.excludes(two) for one, two in combinations(seen, 2))


class _Branch:
    """What distinguishes one branch of a union from the others, looked at once."""

    __slots__ = ("kinds", "required", "schema", "values")

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.kinds: set[str] = set()
        self.values: frozenset[Hashable] | None = None
        self.required: dict[str, frozenset[Hashable] | None] = {}
        """The values of each required property, if the schema names them."""
        if isinstance(schema, dict):
            self.kinds = set(type_names(schema)) or set(value_types(schema))
            self.values = _named_values(schema)
        if self.kinds == {"object"}:
            self.required = _required_values(schema)

    def excludes(self, other: "_Branch") -> bool:
        """True if certainly no value matches both."""
        if not isinstance(self.schema, dict) or not isinstance(other.schema, dict):
            return self.schema is False or other.schema is False
        numeric = [kinds & {"integer", "number"} for kinds in (self.kinds, other.kinds)]
        if self.kinds and other.kinds and not self.kinds & other.kinds and not all(numeric):
            return True
        if _apart(self.values, other.values):
            return True
        shared = self.required.keys() & other.required.keys()
        return any(_apart(self.required[name], other.required[name]) for name in shared)


def _apart(one: frozenset[Hashable] | None, two: frozenset[Hashable] | None) -> bool:
    return one is not None and two is not None and one.isdisjoint(two)


def _named_values(node: Any) -> frozenset[Hashable] | None:
    values = const_as_enum(node).get("enum") if isinstance(node, dict) else None
    return frozenset(map(json_key, values)) if isinstance(values, list) else None


def _required_values(node: Node) -> dict[str, frozenset[Hashable] | None]:
    try:
        return {name: _named_values(node["properties"].get(name)) for name in node.get("required", ())}
    except (KeyError, TypeError, AttributeError):
        return {}  # not well-formed: nothing is certain
