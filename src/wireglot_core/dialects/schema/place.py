"""The place in a schema where a rewrite works, and the notes that it makes."""

import re
from collections.abc import Iterable
from typing import Any, Final, Literal, Protocol

from .keywords import HINTS, SILENT, TELLING, is_vacuous
from .refs import Refs
from .values import Node, SchemaNote, json_key, json_text

# verbatim: left unchanged. named: all under the root's $defs, without siblings. inline: none left.
RefMode = Literal["verbatim", "named", "inline"]

_PLAIN = re.compile(r"[A-Za-z0-9_$-]+")


class Walker(Protocol):
    """The interface of the schema walk that rewrites may use."""

    mode: RefMode
    refs: Refs
    notes: dict[SchemaNote, None]

    def expand(self, raw: Any, place: "Place") -> Node: ...

    def spend(self, units: int) -> None: ...


# Characters of a path in a note, and of a name in it: a note is written for each place, and the names on the
# way are the client's.
MAX_PATH: Final = 400
# Characters of one name in the path of a loss.
MAX_PATH_NAME: Final = 100


class TooLarge(Exception):
    """The schema needs more work than its size allows."""


def step_text(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if len(key) > MAX_PATH_NAME:
        key = f"{key[:MAX_PATH_NAME]}..."
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{json_text(key)}]"


class Place:
    """One node being visited. `home`: the definition that contains it, `active`: the references inlined
    around it, `merged`: those inlined into it."""

    __slots__ = (
        "_around", "_merged_in", "active", "depth", "hints", "home", "merged", "nullable", "path", "walk",
    )  # fmt: skip

    def __init__(self, walk: Walker, path: str = "$", depth: int = 0, home: str = "#") -> None:
        self.walk = walk
        self.path = path
        self.depth = depth
        self.home = home
        self.active: frozenset[str] = frozenset()
        self.merged: frozenset[str] = frozenset()
        self._around = self.active
        self._merged_in: frozenset[str] | None = None
        self.nullable = False
        self.hints: dict[str, str] = {}

    @property
    def is_root(self) -> bool:
        return self.path == "$"

    def at(self, *keys: str | int) -> "Place":
        inner = Place(self.walk, self._below(keys), self.depth + 1, self.home)
        inner.active = self.around
        return inner

    @property
    def around(self) -> frozenset[str]:
        if self._merged_in is not self.merged:
            self._merged_in, self._around = self.merged, self.active | self.merged
        return self._around

    def _below(self, keys: Iterable[str | int]) -> str:
        return self.path + "".join(map(step_text, keys)) if len(self.path) < MAX_PATH else self.path

    def spend(self, units: int) -> None:
        """Count work on the schema. Raises TooLarge when it is more than its size allows."""
        self.walk.spend(units)

    def same(self, one: Any, two: Any) -> bool:
        """Whether two JSON values are equal."""
        if one is two:
            return True
        keys = json_key(one), json_key(two)
        self.spend(sum(len(key[1]) for key in keys if isinstance(key, tuple) and isinstance(key[1], str)))
        return keys[0] == keys[1]

    def note(self, keyword: str, detail: str, *below: str | int, hint: bool = False) -> None:
        self.walk.notes.setdefault(SchemaNote(self._below(below), keyword, detail, hint))

    def tell(self, keyword: str, value: Any, detail: str = "not supported; kept as description text") -> None:
        """Note a removed constraint, and keep it as text for the model to read."""
        self.note(keyword, detail, hint=keyword in HINTS)
        self.hints[keyword] = text = value if isinstance(value, str) else json_text(value)
        self.spend(len(text))

    def drop(self, node: Node, keyword: str) -> None:
        """Remove a keyword the target does not know from the node."""
        value = node.pop(keyword)
        if keyword in SILENT or is_vacuous(keyword, value):
            return
        if keyword in TELLING:
            self.tell(keyword, value)
        else:
            self.note(keyword, "not supported; dropped")

    def describe(self, node: Node) -> Node:
        """Write the notes into the description."""
        if self.hints:
            text = "; ".join(f"{key}: {self.hints[key]}" for key in sorted(self.hints))
            before = node.get("description")
            node["description"] = f"{before} ({text})" if before else f"({text})"
            self.hints = {}
        return node
