"""The walk over a schema: follows references, applies a target's rewrites to each node, then descends."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from .keywords import (
    ANNOTATIONS,
    CHILD_KEYWORDS,
    DEFINITION_KEYWORDS,
    LIST_KEYWORDS,
    MAP_KEYWORDS,
    SCHEMA_KEYWORDS,
)
from .merge import merge
from .place import Place, RefMode, TooLarge
from .refs import Refs, last_name, refs_in
from .tidy import tidy
from .values import Node, SchemaNote, json_text

# Nesting of a schema that is rewritten.
MAX_DEPTH = 64
# Schemas inside one schema, as it is written: inlining can make it grow without end.
MAX_NODES: Final = 5_000
# Work on one schema (characters copied or compared, entries merged): a fixed amount, and a multiple of its
# own size. A schema that refers to a large definition often, or repeats it beside each branch, needs more.
MIN_WORK: Final = 2_048
# Steps of work on a schema for each of its bytes.
MAX_WORK_FOR_EACH_BYTE: Final = 16
_NODE_WORK: Final = 32

Step: TypeAlias = Callable[[Node, Place], Node]


class Rules(msgspec.Struct, frozen=True):
    """The rules of a target, as data."""

    refs: RefMode = "verbatim"
    refs_if_cyclic: RefMode = "verbatim"
    keeps: frozenset[str] | None = None  # keywords the target supports; None: any
    object_root: bool = True  # the root must be of type object
    booleans: bool = False  # true and false are schemas
    rewrites: tuple[Step, ...] = ()  # applied before the subschemas are visited
    finish: tuple[Step, ...] = ()  # applied after

    def knows(self, keyword: str) -> bool:
        return self.keeps is None or keyword in self.keeps


def _reachable(out: Node, definitions: Node) -> set[str]:
    """Names of the definitions that the finished schema still refers to."""
    used: set[str] = set()
    waiting: list[Node] = [out]
    while waiting:
        for ref in refs_in(waiting.pop()):
            name = ref.rpartition("/")[2]
            if name not in used:
                used.add(name)
                waiting.append(definitions[name])
    return used


def _own_size(node: Node) -> int:
    """About how many characters a node has itself, without the schemas inside it."""
    size = _NODE_WORK
    for key, value in node.items():
        if isinstance(value, str):
            size += len(value)
        elif not isinstance(value, list | dict):
            continue
        elif key in MAP_KEYWORDS:
            size += 8 * len(value) + sum(len(name) for name in value if isinstance(name, str))
        elif key in CHILD_KEYWORDS:
            size += 8 * len(value)
        else:
            size += len(json_text(value))
    return size


class Walk:
    """One projection of one root schema."""

    def __init__(self, root: Node, rules: Rules, size: int, *, keep_refs: bool = True) -> None:
        """`size`: of the root as JSON."""
        self.rules = rules
        self.refs = Refs(root)
        self.notes: dict[SchemaNote, None] = {}
        mode = rules.refs_if_cyclic if self.refs.any_cyclic else rules.refs
        self.mode: RefMode = "named" if mode == "verbatim" and not keep_refs else mode
        self._root = root
        self._visited = 0
        self._room = MIN_WORK + MAX_WORK_FOR_EACH_BYTE * size
        self._wanted: dict[str, Any] = {}  # definitions referred to and not yet visited, by pointer
        self._named: set[str] = set()

    def spend(self, units: int) -> None:
        self._room -= units
        if self._room < 0:
            raise TooLarge

    def run(self) -> Node:
        out = self.visit(self._root, Place(self))
        if self.mode == "named":
            out = self._with_definitions(out)
        return out

    def _with_definitions(self, out: Node) -> Node:
        done: Node = {}
        while self._wanted:
            waiting, self._wanted = self._wanted, {}
            for pointer, target in waiting.items():
                name = self.refs.name(pointer)
                done[name] = self.visit(target, Place(self, f"$.$defs.{name}", 1, pointer))
        used = _reachable(out, done)
        return {**out, "$defs": {name: done[name] for name in done if name in used}} if used else out

    def visit(self, raw: Any, place: Place) -> Node:
        try:
            return self._projected(self._opened(raw, place), place)
        except TooLarge:
            place.hints.clear()
            self._note_cut(raw, place)
            return self._projected({"type": "object"}, place)

    def _projected(self, node: Node, place: Place) -> Node:
        node = self.follow(node, place)
        if "$ref" in node and self.mode != "verbatim":
            return place.describe(node)
        for rewrite in self.rules.rewrites:
            node = rewrite(node, place)
        self._drop_unknown(node, place)
        self._descend(node, place)
        for step in self.rules.finish:
            node = step(node, place)
        return place.describe(node)

    def expand(self, raw: Any, place: Place) -> Node:
        """A node about to be merged into the one at `place`, with its reference replaced by the target."""
        if not isinstance(raw, dict):
            return {} if raw is True else {"not": {}}
        self.spend(_own_size(raw))
        node = self._without_definitions(tidy(raw, place))
        while "$ref" in node:
            node = self._inlined(node, place)
        return node

    def follow(self, node: Node, place: Place) -> Node:
        """Handle the node's `$ref` as the target requires."""
        while "$ref" in node:
            found = self.refs.find(node["$ref"])
            if found is not None and not place.is_root:
                siblings = node.keys() - {"$ref"}
                if self.mode == "verbatim":
                    return node
                if self.mode == "named" and not siblings:
                    return self._reference(*found)
                if self.mode == "named" and self._must_wrap(found[0], siblings, place):
                    return self._wrapped(node, found, place)
            node = self._inlined(node, place)
        return node

    def _reference(self, pointer: str, target: Any) -> Node:
        if pointer not in self._named:
            self._named.add(pointer)
            self._wanted[pointer] = target
        return {"$ref": f"#/$defs/{self.refs.name(pointer)}"}

    def _must_wrap(self, pointer: str, siblings: set[str], place: Place) -> bool:
        if pointer in place.merged or not self.refs.is_cyclic(pointer):
            return False
        return siblings <= ANNOTATIONS or pointer in place.active

    def _wrapped(self, node: Node, found: tuple[str, Any], place: Place) -> Node:
        """Moves annotations next to a recursive reference: an anyOf of one may have them, the reference may
        not."""
        for key in [key for key in node if key not in ANNOTATIONS and key != "$ref"]:
            place.drop(node, key)
        del node["$ref"]
        return {**node, "anyOf": [self._reference(*found)]}

    def _inlined(self, node: Node, place: Place) -> Node:
        """The node merged with the target of its `$ref`."""
        ref = node["$ref"]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        found = self.refs.find(ref)
        if found is None:
            place.note("$ref", f"nothing found at {ref}")
            return (
                rest if self.rules.keeps is None or rest.keys() - ANNOTATIONS else {"type": "object", **rest}
            )
        pointer, target = found
        if pointer in place.merged:
            return rest  # already part of this node; adding it again has no effect
        self._visited += 1
        if pointer in place.active or self._visited > MAX_NODES or place.depth > MAX_DEPTH:
            place.tell(
                "recursive", last_name(pointer) or "the whole schema", "recursion cut: any object is allowed"
            )
            return {"type": "object", **rest}
        self.spend(len(place.merged))
        place.merged |= {pointer}
        if not isinstance(target, dict):
            return rest if target else {**rest, "not": {}}
        self.spend(_own_size(target))
        return merge(self._without_definitions(tidy(target, place), place), rest, place)

    def _without_definitions(self, node: Node, place: Place | None = None) -> Node:
        if self.mode == "verbatim" and place is None:
            return node
        return {key: value for key, value in node.items() if key not in DEFINITION_KEYWORDS}

    def _opened(self, raw: Any, place: Place) -> Node:
        """The node to work on: a well-formed copy, or a placeholder if the schema is too deep or large."""
        if not isinstance(raw, dict):
            return {} if raw is True else {"not": {}}
        self._visited += 1
        too_deep = place.depth > MAX_DEPTH and raw.keys() & CHILD_KEYWORDS
        if too_deep or self._visited > MAX_NODES or self._room <= 0:
            self._note_cut(raw, place)
            return {"type": "object"}
        self.spend(_own_size(raw))
        node = tidy(raw, place)
        return node if self.mode == "verbatim" else self._without_definitions(node)

    def _note_cut(self, raw: Any, place: Place) -> None:
        refers = isinstance(raw, dict) and "$ref" in raw
        place.note("$ref" if refers else "type", "schema too deep or too large; any object is allowed")

    def _drop_unknown(self, node: Node, place: Place) -> None:
        for key in [key for key in node if not self.rules.knows(key)]:
            place.drop(node, key)

    def _descend(self, node: Node, place: Place) -> None:
        for key, value in node.items():
            if key in SCHEMA_KEYWORDS:
                node[key] = self._child(key, value, place.at(key))
            elif key in LIST_KEYWORDS:
                node[key] = [self._child(key, each, place.at(key, at)) for at, each in enumerate(value)]
            elif key in MAP_KEYWORDS:
                node[key] = {
                    name: self._child(key, each, place.at(key, name)) for name, each in value.items()
                }

    def _child(self, key: str, value: Any, place: Place) -> Any:
        may_be_boolean = self.rules.booleans or key in ("additionalProperties", "unevaluatedProperties")
        return value if isinstance(value, bool) and may_be_boolean else self.visit(value, place)
