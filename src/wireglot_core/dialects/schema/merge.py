"""Merges two schemas that must both apply into one."""

from collections.abc import Callable
from typing import Any, Final

from .keywords import ANNOTATIONS
from .place import Place
from .values import Node, json_key

CLASH: Final = object()


def both(one: Any, two: Any) -> Any:
    """A subschema that combines both; merged when it is visited."""
    return {"allOf": [one, two]}


def _meet_types(one: Any, two: Any) -> Any:
    ones = [one] if isinstance(one, str) else one
    twos = [two] if isinstance(two, str) else two
    met = [kind for kind in ones if kind in twos or (kind == "integer" and "number" in twos)]
    met += [kind for kind in twos if kind == "integer" and "number" in ones and kind not in met]
    return (met[0] if len(met) == 1 else met) if met else CLASH


def _meet_values(one: Any, two: Any) -> Any:
    others = {json_key(value) for value in two}
    return [value for value in one if json_key(value) in others] or CLASH


def _meet_maps(one: Any, two: Any, place: Place) -> Any:
    met = dict(one)
    for name, schema in two.items():
        met[name] = both(met[name], schema) if name in met and not place.same(met[name], schema) else schema
    return met


def _meet_additional(one: Any, two: Any) -> Any:
    if one is False or two is False:
        return False
    if one is True or two is True:
        return two if one is True else one
    return both(one, two)


def _join_names(one: Any, two: Any) -> Any:
    return list(dict.fromkeys([*one, *two]))


def _meet_steps(one: Any, two: Any) -> Any:
    small, large = sorted((one, two))
    return large if isinstance(small, int) and isinstance(large, int) and large % small == 0 else CLASH


_MEET: dict[str, Callable[[Any, Any], Any]] = {
    "type": _meet_types,
    "enum": _meet_values,
    "additionalProperties": _meet_additional,
    "items": both,
    "propertyNames": both,
    "required": _join_names,
    "propertyOrdering": _join_names,
    "allOf": lambda one, two: [*one, *two],
    "uniqueItems": lambda one, two: one or two,
    "multipleOf": _meet_steps,
    "not": lambda one, two: {"anyOf": [one, two]},
    **dict.fromkeys(("minimum", "exclusiveMinimum"), max),
    **dict.fromkeys(("minLength", "minItems", "minProperties", "minContains"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum"), min),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties", "maxContains"), min),
}
_MAPS = ("properties", "patternProperties", "dependentSchemas")
# Keywords that are only meaningful together: two different sets of them cannot be mixed.
_GROUPS = (("if", "then", "else"), ("contains", "minContains", "maxContains"), ("prefixItems", "items"))


def merge(inner: Node, outer: Node, place: Place) -> Node:
    """`inner` and `outer` as one schema. The outer one's annotations win; combinations that are impossible
    are reported."""
    place.spend(_width(inner) + _width(outer))
    outer = _without_rival_groups(inner, _values_alike(outer, inner), place)
    inner = _values_alike(inner, outer)
    _note_opened(inner, outer, place)
    merged = dict(inner)
    for key, value in outer.items():
        if key not in merged or place.same(merged[key], value):
            merged[key] = value
        elif key in _MAPS:
            merged[key] = _meet_maps(merged[key], value, place)
        elif key in ANNOTATIONS:
            merged[key] = _meet_annotation(key, merged[key], value)
        else:
            meet = _MEET.get(key)
            met = meet(merged[key], value) if meet else CLASH
            if met is CLASH:
                place.tell(key, merged[key], "combined schemas disagree; one is kept as description text")
                met = value
            merged[key] = met
    return merged


def _width(node: Node) -> int:
    """About how much a merge copies."""
    return sum(len(value) for value in node.values() if isinstance(value, str | list | dict))


def _meet_annotation(key: str, inner: Any, outer: Any) -> Any:
    if key == "description" and inner and outer:
        return f"{outer}\n{inner}"
    if key == "propertyOrdering":
        return _join_names(inner, outer)
    return outer


def _values_alike(node: Node, other: Node) -> Node:
    """`const` as `enum` where the other side has either, so that they can be compared."""
    if "const" in node and ("enum" in other or "const" in other):
        return const_as_enum(node)
    return node


def const_as_enum(node: Node) -> Node:
    """`const` is an `enum` of one; next to an enum it selects from it."""
    if "const" not in node:
        return node
    rest = {key: value for key, value in node.items() if key != "const"}
    return {**rest, "enum": [node["const"]]}


def _without_rival_groups(inner: Node, outer: Node, place: Place) -> Node:
    for first, *others in _GROUPS:
        group = (first, *others)
        rivals = [node for node in (inner, outer) if first in node]
        mixed = any(key in inner for key in group) and any(key in outer for key in group)
        if rivals and mixed and not all(place.same(inner.get(key), outer.get(key)) for key in group):
            for key in group:
                if key in outer:
                    place.tell(key, outer[key], "combined schemas disagree; one is kept as description text")
            outer = {key: value for key, value in outer.items() if key not in group}
    return outer


def _note_opened(inner: Node, outer: Node, place: Place) -> None:
    """A closed object combined with one that has more properties comes out less closed than it was."""
    for closed, other in ((inner, outer), (outer, inner)):
        if closed.get("additionalProperties", True) in (True, {}):
            continue
        if other.get("properties", {}).keys() - closed.get("properties", {}).keys():
            place.note(
                "additionalProperties", "a combined schema forbids properties that another one declares"
            )
