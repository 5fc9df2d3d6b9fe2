"""Which packages below src a proof depends on, read from its imports and from the programs it starts.

A file depends on what it imports, also inside functions, and on each module whose dotted name it holds as a
text: that is how a program is started (`python -m wireglot.cli`). The command that proofs start is `serve`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

import wireglot_core
from tools import structure

ROOT: Final = Path(__file__).parents[2]

PROGRAMS: Final = {"wireglot.cli": "wireglot.cli.serve", "wireglot": "wireglot.cli.serve"}
"""The command line imports each command only when it is called."""

_HOMES: Final[dict[str, str]] = vars(wireglot_core)["__homes__"]
"""Where the names are that `import wireglot` has."""


def packages(module: str) -> tuple[str, ...]:
    """The parts of wireglot and wireglot_core, packages and single files, that the module leads to."""
    seen: set[str] = set()
    ahead = [module, f"{module}.__main__"] if f"{module}.__main__" in _files() else [module]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += _leads_to(name)
    return tuple(
        sorted({name.split(".")[1] for name in seen if name.startswith(("wireglot.", "wireglot_core."))})
    )


@cache
def _files() -> dict[str, Path]:
    """The modules of this project by name, with those that only proofs use."""
    found = {name: module.path for name, module in structure.modules().items()}
    for folder in ("proofs", "tools", "clients"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _leads_to(name: str) -> frozenset[str]:
    if name in structure.PACKAGES:  # what is taken from it leads to where that is, see below
        return frozenset()
    module = structure.modules().get(name) or _module(name)
    found = {_resolved(target) for target in structure.imported(module)}
    if not name.startswith("wireglot"):
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(PROGRAMS.get(node.value, node.value if "." in node.value else ""))
    return frozenset(found & _files().keys())


def _module(name: str) -> structure.Module:
    path = _files()[name]
    return structure.Module(name, path, structure.nodes_of(path.read_text(encoding="utf-8")))


def _resolved(target: str) -> str:
    """`from package.module import name` is an import of the module."""
    if target in _files():
        return target
    base, _, name = target.rpartition(".")
    if base in structure.PACKAGES and name in _HOMES:
        return f"wireglot_core.{_HOMES[name]}"
    return base
