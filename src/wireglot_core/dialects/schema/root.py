"""The root of a schema: most targets require a plain object there."""

from typing import Any

from .keywords import DEFINITION_KEYWORDS, LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS, infer_type
from .merge import merge
from .place import Place
from .refs import Refs, refs_in
from .rewrites import merge_all_of
from .values import Node, distinct, json_text, type_names
from .walk import MAX_DEPTH, Step

WRAPPED_IN = "value"
_UNIONS = ("anyOf", "oneOf")
_KEPT_AT_ROOT = DEFINITION_KEYWORDS | {"$schema", "$id"}
_DEFINITIONS = tuple(f"#/{key}/" for key in sorted(DEFINITION_KEYWORDS))


def object_root(schema: Any) -> tuple[Node, bool]:
    """The schema with an object at its root, and whether it had to be wrapped as `{"value": ...}` for that.

    A schema without a type counts as an object. Wrap before `project`, unwrap the returned value.
    """
    if not isinstance(schema, dict) or not schema:
        return {"type": "object", "properties": {}}, False
    kind = _kind(schema, Refs(schema))
    if kind in ("object", None):
        return (schema if "type" in schema else {"type": "object", **schema}), False
    kept = {key: each for key, each in schema.items() if key in _KEPT_AT_ROOT}
    value = {key: each for key, each in schema.items() if key not in kept}
    if any(not ref.startswith(_DEFINITIONS) for ref in _all_refs(schema)):
        value = _moved(value, 0)
        kept = _moved(kept, 0)
    wrapped = {"type": "object", "properties": {WRAPPED_IN: value}, "required": [WRAPPED_IN]}
    return {**wrapped, "additionalProperties": False, **kept}, True


def _kind(
    node: Any, refs: Refs, look: int = 8, known: dict[tuple[int, int], str | None] | None = None
) -> str | None:
    """Like infer_type, but follows references and counts an object that may be null as an object. `known`:
    the nodes that were looked at, since many branches may refer to one."""
    node = refs.peek(node)
    if not isinstance(node, dict) or look == 0:
        return None
    known = {} if known is None else known
    key = id(node), look
    if key not in known:
        known[key] = _kind_of(node, refs, look, known)
    return known[key]


def _kind_of(node: Node, refs: Refs, look: int, known: dict[tuple[int, int], str | None]) -> str | None:
    kinds = [str(kind).lower() for kind in type_names(node)]
    if kinds:
        return "object" if "object" in kinds else infer_type({"type": kinds}) or "mixed"
    for keyword in _UNIONS:
        if isinstance(branches := node.get(keyword), list) and branches:
            found = {_kind(branch, refs, look - 1, known) for branch in branches} - {"null"}
            return found.pop() if len(found) == 1 else "mixed" if found - {"object", None} else "object"
    if isinstance(members := node.get("allOf"), list):
        kinds = [kind for kind in (_kind(member, refs, look - 1, known) for member in members) if kind]
        return kinds[0] if kinds else infer_type(node)
    return infer_type(node)


def is_dangling(schema: Node) -> bool:
    """True if a reference of the schema has no target."""
    found = _all_refs(schema)
    refs = Refs(schema) if found else None
    return refs is not None and any(refs.find(ref) is None for ref in found)


def _all_refs(schema: Node) -> list[str]:
    found = list(refs_in(schema))
    for key in DEFINITION_KEYWORDS:
        if isinstance(defs := schema.get(key), dict):
            found += [ref for each in defs.values() for ref in refs_in(each)]
    return found


def _moved(node: Any, depth: int) -> Any:
    """Redirects references to the old root and its parts to their new places."""
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return node
    return {key: _moved_keyword(key, value, depth + 1) for key, value in node.items()}


def _moved_keyword(key: str, value: Any, depth: int) -> Any:
    if key == "$ref" and isinstance(value, str):
        inside = value == "#" or (value.startswith("#/") and not value.startswith(_DEFINITIONS))
        return f"#/properties/{WRAPPED_IN}{value[1:].rstrip('/')}" if inside else value
    if key in LIST_KEYWORDS | {"items"} and isinstance(value, list):
        return [_moved(each, depth) for each in value]
    if key in MAP_KEYWORDS and isinstance(value, dict):
        return {name: _moved(each, depth) for name, each in value.items()}
    return _moved(value, depth) if key in SCHEMA_KEYWORDS else value


def plain_root(*refused: str) -> Step:
    """A rewrite of the root to `type: object` with properties, and none of the refused keywords."""

    def flatten(node: Node, place: Place) -> Node:
        if not place.is_root:
            return node
        node = flatten_unions(merge_all_of(node, place), place)
        kinds = type_names(node)
        if kinds and kinds != ("object",):
            place.note("type", "the root can only be an object")
        for key in [key for key in refused if key in node]:
            place.drop(node, key)
        return {**node, "type": "object", "properties": node.get("properties", {})}

    return flatten


def plain_typed_root(node: Node, place: Place) -> Node:
    """Merges unions at the root, but only if the schema itself declares the root an object."""
    if not place.is_root or node.get("type") != "object":
        return node
    return flatten_unions(merge_all_of(node, place), place)


def flatten_unions(node: Node, place: Place) -> Node:
    for keyword in _UNIONS:
        if keyword in node:
            branches = node.pop(keyword)
            node = _flattened(keyword, branches, node, place)
    return node


def _flattened(keyword: str, branches: list[Any], node: Node, place: Place) -> Node:
    opened = [_branch(branch, place.at(keyword, at)) for at, branch in enumerate(branches)]
    objects = [branch for branch in opened if infer_type(branch) in ("object", None)]
    if len(objects) < len(opened) and "object" not in type_names(node):
        place.note(keyword, "branches that are not objects are left out")
    if len(objects) == 1:
        return merge(objects[0], node, place)
    if objects:
        place.tell(keyword, " | ".join(map(_summary, objects)), "alternatives are merged into one object")
    return merge(_union(objects, place), node, place)


def _branch(raw: Any, place: Place) -> Node:
    node = merge_all_of(place.walk.expand(raw, place), place)
    if place.depth < MAX_DEPTH:
        node = flatten_unions(node, place)
    return place.describe(node)


def _summary(branch: Node) -> str:
    names = branch.get("required") or branch.get("properties", {})
    return str(branch.get("title") or "{" + ", ".join(names) + "}")


def _union(branches: list[Node], place: Place) -> Node:
    """An object schema that allows everything the branches allow."""
    found: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in branch.get("properties", {}).items():
            found.setdefault(name, []).append(schema)
    for name, schemas in found.items():
        if len(schemas) > 1:
            place.spend(sum(len(json_text(schema)) for schema in schemas))
            found[name] = distinct(schemas)
    union: Node = {"type": "object"}
    union["properties"] = {
        name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in found.items()
    }
    required = [frozenset(branch.get("required", ())) for branch in branches]
    if common := [
        name
        for name in (branches[0].get("required", ()) if branches else ())
        if all(name in names for names in required)
    ]:
        union["required"] = common
    if branches and all(branch.get("additionalProperties") is False for branch in branches):
        union["additionalProperties"] = False
    return union
