"""YAML as LiteLLM reads it (`yaml.safe_load`), with the line of every value. PyYAML is an extra."""

from __future__ import annotations

import importlib
from typing import Any, Final

from wireglot.cli.import_.document import Node, Scalar, Unreadable, child_path

MISSING: Final = "reading YAML needs PyYAML, which is not installed: pip install 'wireglot[import]'"
_NODES_MOST: Final = 200_000
_DEPTH_MOST: Final = 64
"""A file of a few lines with aliases of aliases can stand for billions of values."""


class NoYaml(Exception):
    pass


def read_yaml(text: str, file: str = "") -> tuple[Node, list[Node]]:
    """The document, and what is in it but does not hold: a key that stands again further down."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise NoYaml(MISSING) from None
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise Unreadable("is empty")
        walker = _Walker(yaml, loader, file)
        return walker.node(root, "", 0), walker.overridden
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise Unreadable(f"{where}not YAML: {fault.problem or fault.context}") from None
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise Unreadable(f"line {line}: not YAML: a control character") from None
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date that no calendar has
        raise Unreadable("not YAML") from None
    finally:
        if loader is not None:
            loader.dispose()


class _Walker:
    def __init__(self, yaml: Any, loader: Any, file: str) -> None:
        self._yaml = yaml
        self._loader = loader
        self._file = file
        self._seen = 0
        self._flattened: dict[int, int] = {}
        self.overridden: list[Node] = []

    def node(self, source: Any, path: str, depth: int) -> Node:
        self._seen += 1
        line = source.start_mark.line + 1
        if self._seen > _NODES_MOST or depth > _DEPTH_MOST:
            raise Unreadable(f"line {line}: too many values, or nested too deep")
        value: Scalar | dict[str, Node] | list[Node]
        if isinstance(source, self._yaml.MappingNode):
            value = self._table(source, path, depth)
        elif isinstance(source, self._yaml.SequenceNode):
            value = [
                self.node(one, f"{path}[{number}]", depth + 1) for number, one in enumerate(source.value)
            ]
        else:
            value = self._scalar(source)
        return Node(value, path, line, self._file)

    def _table(self, source: Any, path: str, depth: int) -> dict[str, Node]:
        merged = self._merged(source)
        found: dict[str, Node] = {}
        own: set[str] = set()
        for number, (key_node, value_node) in enumerate(source.value):
            if not isinstance(key_node, self._yaml.ScalarNode):
                raise Unreadable(f"line {key_node.start_mark.line + 1}: a key that is no text")
            key = str(key_node.value)
            node = self.node(value_node, child_path(path, key), depth + 1)
            if key in own:
                self.overridden.append(found[key])
            if number >= merged:
                own.add(key)
            found[key] = node
        return found

    def _merged(self, source: Any) -> int:
        """Puts what `<<: *defaults` brings along before the table's own; gives how much that is. A node with
        an anchor is met again: it is flat by then."""
        if id(source) not in self._flattened:
            own = sum(key.tag != "tag:yaml.org,2002:merge" for key, _ in source.value)
            self._loader.flatten_mapping(source)
            self._flattened[id(source)] = len(source.value) - own
        return self._flattened[id(source)]

    def _scalar(self, source: Any) -> Scalar:
        if source.tag.startswith("!"):
            line = source.start_mark.line + 1
            raise Unreadable(f"line {line}: not YAML: the tag {source.tag}, which nobody can read safely")
        value = self._loader.construct_object(source)
        plain = value is None or isinstance(value, str | int | float | bool)
        return value if plain else str(source.value)  # a version like 2024-10-21 is no date
