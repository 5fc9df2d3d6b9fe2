"""What to tell of settings that no code carries over: a table for each program, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from wireglot.cli.import_.document import Node
from wireglot.cli.import_.report import Report


@cache
def table(program: str, file: str) -> dict[str, Any]:
    text = resources.files(f"wireglot.cli.import_.{program}").joinpath(file).read_text(encoding="utf-8")
    return tomllib.loads(text)


def tell_known(report: Report, program: str) -> None:
    """Of every setting that nobody has spoken of yet and that the program's table knows."""
    known = table(program, "known.toml")
    for node in _known_nodes(report.root, {**known["default"], **known["left"]}):
        said = _said(node.name, known["default"])
        if said is not None and not _is_better(node.name, known["left"], known["default"]):
            report.default(node, said)
        else:
            report.left(node, _said(node.name, known["left"]) or "")


def _known_nodes(node: Node, known: Mapping[str, str]) -> Iterator[Node]:
    """From the outside in: what is said of a table holds for all that is inside."""
    for inner in (*node.fields.values(), *node.items):
        if _said(inner.name, known) is not None:
            yield inner
        else:
            yield from _known_nodes(inner, known)


def _said(name: str, known: Mapping[str, str]) -> str | None:
    if name in known:
        return known[name]
    patterns = (pattern for pattern in known if "*" in pattern and fnmatchcase(name, _plain(pattern)))
    return next((known[pattern] for pattern in patterns), None)


def _is_better(name: str, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether one table names it outright, where the other has only a pattern."""
    return name in one and name not in other


def _plain(pattern: str) -> str:
    """Brackets of a path are no set of letters."""
    return pattern.replace("[", "[[]")
