"""`$ref`: its target, which definitions are recursive, and a stable name for each."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from .keywords import DEFINITION_KEYWORDS, LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS
from .values import Node

_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_MAX_FOLLOWED = 100_000  # schemas visited while searching for cycles
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def children(node: Node) -> Iterator[Any]:
    """The direct subschemas of a node, definitions left out."""
    for key, value in node.items():
        if key in SCHEMA_KEYWORDS and isinstance(value, dict):
            yield value
        elif (key in LIST_KEYWORDS or key == "items") and isinstance(value, list):
            yield from value
        elif key in MAP_KEYWORDS and key not in DEFINITION_KEYWORDS and isinstance(value, dict):
            yield from value.values()


def _nodes(schema: Any, also: frozenset[str] = frozenset()) -> Iterator[Node]:
    """A schema and all schemas inside it. Iterative, so no depth of nesting can hurt."""
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting.extend(children(node))
        for key in also.intersection(node):
            if isinstance(node[key], dict):
                waiting.extend(node[key].values())


def refs_in(schema: Any) -> Iterator[str]:
    """Every `$ref` inside a schema, definitions left out."""
    for node in _nodes(schema):
        if isinstance(ref := node.get("$ref"), str):
            yield ref


class Refs:
    """The references of one root schema."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._found: dict[str, tuple[str, Any] | None] = {}
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}  # how many names a text was wanted for
        self._taken: set[str] = set()
        self._anchors: dict[str, Any] | None = None
        self._cyclic = self._find_cyclic()  # None: too complex to decide, so everything counts as cyclic

    def find(self, ref: str) -> tuple[str, Any] | None:
        """The canonical pointer and the schema it points to; None if there is none."""
        if ref not in self._found:
            self._found[ref] = self._find(ref)
        return self._found[ref]

    def _find(self, ref: str) -> tuple[str, Any] | None:
        own = self._root.get("$id")
        if isinstance(own, str) and own and ref.startswith(own):
            ref = ref[len(own) :] or "#"
        if not ref.startswith("#"):
            return None
        if ref in ("#", "#/"):
            return "#", self._root
        found = self._at_pointer(ref[2:]) if ref.startswith("#/") else self._at_anchor(ref[1:])
        return found if found is not None and isinstance(found[1], dict | bool) else None

    def name(self, pointer: str) -> str:
        """The name of the definition that `pointer` refers to. Equal on every run."""
        if pointer not in self._names:
            wanted = _UNSAFE.sub("_", last_name(pointer)) or "root"
            name, count = wanted, self._counts.get(wanted, 1)
            while name in self._taken:
                count += 1
                name = f"{wanted}_{count}"
            self._counts[wanted] = count
            self._names[pointer] = name
            self._taken.add(name)
        return self._names[pointer]

    @property
    def any_cyclic(self) -> bool:
        return self._cyclic is None or bool(self._cyclic)

    def is_cyclic(self, pointer: str) -> bool:
        return self._cyclic is None or pointer in self._cyclic

    def leads_into_cycle(self, schema: Any, spend: Callable[[int], None]) -> bool:
        """`spend`: called for each schema inside it."""
        for node in _nodes(schema):
            spend(1)
            ref = node.get("$ref")
            found = self.find(ref) if isinstance(ref, str) else None
            if found is not None and self.is_cyclic(found[0]):
                return True
        return False

    def peek(self, node: Any) -> Any:
        """Follows a lone `$ref` of a node to its target; never loops."""
        for _ in range(16):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                return node
            found = self.find(node["$ref"])
            if found is None:
                return node
            node = found[1]
        return node

    def _at_pointer(self, pointer: str) -> tuple[str, Any] | None:
        here: Any = self._root
        for token in pointer.split("/"):
            key = _unescape(token)
            if isinstance(here, dict) and key in here:
                here = here[key]
            elif isinstance(here, list) and key.isdecimal() and len(key) < 6 and int(key) < len(here):
                here = here[int(key)]
            else:
                return None
        return f"#/{pointer}", here

    def _at_anchor(self, name: str) -> tuple[str, Any] | None:
        if self._anchors is None:
            nodes = _nodes(self._root, DEFINITION_KEYWORDS)
            self._anchors = {node["$anchor"]: node for node in nodes if isinstance(node.get("$anchor"), str)}
        return (f"#{name}", self._anchors[name]) if name in self._anchors else None

    def _find_cyclic(self) -> frozenset[str] | None:
        graph: dict[str, set[str]] = {}
        waiting = [found for ref in refs_in(self._root) if (found := self.find(ref))]
        followed = 0
        while waiting:
            pointer, node = waiting.pop()
            if pointer in graph:
                continue
            ahead = [found for ref in refs_in(node) if (found := self.find(ref))]
            followed += sum(1 for _ in _nodes(node))
            if followed > _MAX_FOLLOWED:
                return None
            graph[pointer] = {target for target, _ in ahead}
            waiting.extend(ahead)
        return frozenset(_without_ends(_reversed(_without_ends(graph))))


def last_name(pointer: str) -> str:
    """A readable name for a pointer: the definition's own, or all its segments joined."""
    if not pointer.startswith("#/"):
        return pointer[1:]
    tokens = pointer.split("/")[1:]
    return _unescape(
        "_".join(tokens[1:] if len(tokens) == 2 and tokens[0] in DEFINITION_KEYWORDS else tokens)
    )


def _unescape(token: str) -> str:
    if "%" in token:
        token = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), token)
    return token.replace("~1", "/").replace("~0", "~")


def _reversed(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    back: dict[str, set[str]] = {node: set() for node in graph}
    for node, targets in graph.items():
        for target in targets & graph.keys():
            back[target].add(node)
    return back


def _without_ends(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph after repeatedly removing nodes that lead nowhere."""
    sources: dict[str, list[str]] = defaultdict(list)
    ahead = {node: len(targets & graph.keys()) for node, targets in graph.items()}
    for node, targets in graph.items():
        for target in targets:
            sources[target].append(node)
    ends = [node for node, count in ahead.items() if count == 0]
    while ends:
        end = ends.pop()
        del ahead[end]
        for source in sources[end]:
            ahead[source] -= 1
            if ahead[source] == 0:
                ends.append(source)
    return {node: graph[node] for node in ahead}
