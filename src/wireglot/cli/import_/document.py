"""A configuration of another program as a tree that remembers where each value stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from wireglot.gateway.config.problems import key_path

Scalar: TypeAlias = "str | int | float | bool | None"
_INDEX: Final = re.compile(r"\[\d+\]")
_NUMBER: Final = re.compile(r"[+-]?(\d{1,12}\.?\d{0,15}|\.\d{1,15})([eE]-?\d{1,2})?")
_NUMBER_MOST: Final = 1e12
"""No setting is larger; a NaN is none of them either."""


class Unreadable(Exception):
    """A file that is not what it should be. The message names the place, and no value."""


class Node:
    """One value, and what is inside it. Two that look alike are two: each has its own place."""

    __slots__ = ("file", "line", "path", "value")

    def __init__(
        self, value: Scalar | dict[str, Node] | list[Node], path: str, line: int, file: str = ""
    ) -> None:
        """`file`: the included file that it stands in, "" for the main one."""
        self.value = value
        self.path = path
        self.line = line
        self.file = file

    @property
    def name(self) -> str:
        """The path without the numbers of list items."""
        return _INDEX.sub("[]", self.path)

    @property
    def fields(self) -> Mapping[str, Node]:
        """What a table holds; nothing if it is none."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """What a list holds; nothing if it is none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """A text that is not empty, else ""."""
        return self.value.strip() if isinstance(self.value, str) else ""

    @property
    def number(self) -> float | None:
        """A number, also one that was written as text: YAML reads `1e-6` as a text."""
        if isinstance(self.value, bool):
            return None
        if isinstance(self.value, int | float):
            return float(self.value) if abs(self.value) < _NUMBER_MOST else None
        return float(self.text) if _NUMBER.fullmatch(self.text) else None

    @property
    def is_nothing(self) -> bool:
        return self.value is None or self.value == ""

    def get(self, *names: str) -> Node | None:
        """The first of these fields that is there and says something."""
        for name in names:
            found = self.fields.get(name)
            if found is not None and not found.is_nothing:
                return found
        return None

    def leaves(self) -> Iterator[Node]:
        """All values without anything inside, the empty tables and lists among them."""
        inner = list(self.fields.values()) or self.items
        if not inner:
            yield self
        for node in inner:
            yield from node.leaves()


def child_path(path: str, key: str) -> str:
    return key_path(path, key)


def kind(node: Node) -> str:
    """What sort of value it is, in words."""
    match node.value:
        case dict():
            return "a table"
        case list():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return "a switch"
        case int() | float():
            return "a number"
        case _:
            return "text" if node.value else "empty text"
