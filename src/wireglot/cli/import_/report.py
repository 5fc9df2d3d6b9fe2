"""What became of each setting of the source. By construction none is left out: `close` tells of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from wireglot.cli.import_.document import Node

Fate = Literal["carried", "default", "left"]
_NO_SUCH_SETTING: Final = "nothing here is like it"
_EMPTY: Final = "it is empty"
_SAID_AGAIN: Final = "it is said again further down, and the last word holds"


class Finding(msgspec.Struct, frozen=True):
    """`leaf` is one setting; `at` is the setting, or the table around it, that the words are about."""

    leaf: Node
    at: Node
    fate: Fate
    said: str


class Report:
    """Who speaks first about a setting is right."""

    def __init__(self, root: Node, beside: Sequence[Node] = ()) -> None:
        """`beside`: what stands in the source and does not hold, since it is said again further down."""
        self.root = root
        self._beside = beside
        self.warnings: list[str] = []
        """What a person must know at once: models that are gone."""
        self._found: dict[Node, Finding] = {}

    def carried(self, node: Node | None, said: str) -> None:
        self._tell(node, "carried", said)

    def default(self, node: Node | None, said: str) -> None:
        """Nothing had to be written: it is so anyway."""
        self._tell(node, "default", said)

    def left(self, node: Node | None, said: str) -> None:
        """Not carried over: why, and what there is instead."""
        self._tell(node, "left", said)

    def is_told(self, leaf: Node) -> bool:
        return leaf in self._found

    def begin(self) -> None:
        """Tell of what says nothing, and of what does not hold."""
        for node in self._beside:
            self.left(node, _SAID_AGAIN)
        for leaf in self.root.leaves():
            if leaf is not self.root and (leaf.is_nothing or isinstance(leaf.value, dict | list)):
                self.default(leaf, _EMPTY)

    def close(self) -> None:
        """Tell of all that nobody has spoken of."""
        for leaf in self.root.leaves():
            if leaf is not self.root:
                self.left(leaf, _NO_SUCH_SETTING)

    @property
    def findings(self) -> list[Finding]:
        """In the order of the source."""
        return [self._found[leaf] for leaf in self.leaves() if leaf in self._found]

    def leaves(self) -> Iterator[Node]:
        """Every setting of the source."""
        for node in (self.root, *self._beside):
            yield from node.leaves()

    def of(self, fate: Fate) -> list[Finding]:
        return [finding for finding in self.findings if finding.fate == fate]

    def _tell(self, node: Node | None, fate: Fate, said: str) -> None:
        if node is None:
            return
        for leaf in node.leaves():
            self._found.setdefault(leaf, Finding(leaf, node, fate, said))


def place(node: Node) -> str:
    """`line 12`, or `models.yaml, line 12`."""
    line = f"line {node.line}"
    return f"{node.file}, {line}" if node.file else line


def places(nodes: Iterable[Node]) -> str:
    """`line 3`, `lines 3, 9 and 14`, each file by itself."""
    lines: dict[str, list[int]] = {}
    for node in nodes:
        seen = lines.setdefault(node.file, [])
        if node.line not in seen:
            seen.append(node.line)
    return "; ".join(_of_file(file, seen) for file, seen in lines.items())


def _of_file(file: str, lines: list[int]) -> str:
    *most, last = map(str, lines)
    told = f"lines {', '.join(most)} and {last}" if most else f"line {last}"
    return f"{file}, {told}" if file else told
