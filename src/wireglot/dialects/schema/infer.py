"""The type a schema means when it does not say so."""

from typing import Any

from .keywords import APPLIES_TO
from .values import TYPES, Node, common_type, json_type, type_names

_GUESS_DEPTH = 8  # how far into nested anyOf/oneOf/allOf a guess is worth making


def infer_type(node: Any, look: int = _GUESS_DEPTH) -> str | None:
    """The single JSON type of the values `node` describes (null aside), or None when there is no one type."""
    if not isinstance(node, dict) or look == 0:
        return None
    named = [name for name in type_names(node) if name in TYPES]
    if named:
        return _apart_from_null(named)
    return _from_values(node) or _from_keywords(node) or _from_branches(node, look)


def _apart_from_null(kinds: list[str]) -> str | None:
    return common_type([kind for kind in kinds if kind != "null"] or ["null"])


def value_types(node: Node) -> list[str]:
    """The types of a schema's const or enum values, in order of appearance."""
    values = [node["const"]] if "const" in node else node.get("enum")
    if not isinstance(values, list):
        return []
    return list(dict.fromkeys(json_type(value) for value in values))


def _from_values(node: Node) -> str | None:
    kinds = value_types(node)
    return _apart_from_null(kinds) if kinds else None


def _from_keywords(node: Node) -> str | None:
    return common_type([APPLIES_TO[key] for key in node if key in APPLIES_TO])


def _from_branches(node: Node, look: int) -> str | None:
    for keyword in ("anyOf", "oneOf"):
        branches = node.get(keyword)
        if isinstance(branches, list) and branches:
            kinds = [infer_type(branch, look - 1) for branch in branches]
            known = [kind for kind in kinds if kind is not None]
            return _apart_from_null(known) if len(known) == len(kinds) else None
    members = node.get("allOf")
    kinds = [infer_type(member, look - 1) for member in members] if isinstance(members, list) else []
    return common_type([kind for kind in kinds if kind])
