"""Write docs/limits.md: every bound in the source, with the comment that says what it bounds and why.

A bound is a constant of a module whose name has MAX or MOST. The comment is directly above it, or the text
directly below; one without either is a failure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final, NamedTuple

from tools.structure import Module, modules

_NAME: Final = re.compile(r"(?:^|_)(?:MAX|MOST)(?:_|$)")
_NOT_BOUNDS: Final = frozenset({"_ARENA_MAX", "_INT_MAX"})
"""Numbers of the operating system."""
_TESTING: Final = "wireglot.testing"
_SIZES: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_AREAS: Final = {
    "http": "Connections",
    "wire": "Streams and documents",
    "ir": "Streams and documents",
    "dialects": "Requests and answers",
    "providers": "Requests and answers",
    "translate": "Requests and answers",
    "cache": "Requests and answers",
    "gateway": "The gateway",
    "stores": "Stores",
    "traces": "Traces",
    "web": "Web search and web fetch",
    "logins": "Signing in at providers",
    "history": "The library",
    "kimi": "The library",
    "demo": "The demo model",
    "probe": "The probe",
    "cli": "The command line",
}
_INTRODUCTION: Final = (
    "# Limits",
    "",
    "What one client, provider, page or file can cost everybody else is bounded. What meets their text is",
    "linear in it, or has one of these limits. Limits that you can change are in the",
    "[configuration](configuration.md); these are constants of the source.",
)


class Undescribed(Exception):
    """A bound without a comment."""


class Bound(NamedTuple):
    file: str
    name: str
    value: float
    text: str


def bounds() -> list[Bound]:
    """Raises Undescribed."""
    found = [bound for module in modules().values() for bound in bounds_of(module)]
    lacking = [
        f"{each.file}: {each.name} has no comment that says what it bounds" for each in found if not each.text
    ]
    if lacking:
        raise Undescribed("\n".join(lacking))
    return found


def bounds_of(module: Module) -> Iterator[Bound]:
    if module.name.startswith(_TESTING):
        return
    lines = module.path.read_text(encoding="utf-8").splitlines()
    for number, node in enumerate(module.tree.body):
        name = _assigned(node)
        if _NAME.search(name) is None or name in _NOT_BOUNDS:
            continue
        value = getattr(import_module(module.name), name)
        if type(value) in (int, float):
            after = module.tree.body[number + 1 : number + 2]
            text = _above(lines, node.lineno - 1) or _below(after) or _beside(lines[node.lineno - 1])
            yield Bound(module.file, name, value, text)


def _assigned(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _above(lines: list[str], at: int) -> str:
    found: list[str] = []
    while at and lines[at - 1].startswith("# "):
        at -= 1
        found.insert(0, lines[at].removeprefix("# "))
    return " ".join(found)


def _below(nodes: list[ast.stmt]) -> str:
    for node in nodes:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is str
        ):
            return " ".join(node.value.value.split())
    return ""


def _beside(line: str) -> str:
    comment = line.partition("  # ")[2]
    return f"{comment[:1].upper()}{comment[1:]}." if comment else ""


def page() -> list[str]:
    sections: dict[str, list[Bound]] = {title: [] for title in _AREAS.values()}
    for bound in bounds():
        sections[_AREAS[bound.file.partition("/")[0]]].append(bound)
    lines = list(_INTRODUCTION)
    for title, found in sections.items():
        if found:
            lines += ["", f"## {title}", "", "| limit | of what | constant |", "|---|---|---|"]
            lines += [
                f"| {shown(each)} | {_cell(each.text)} | `{each.file}` `{each.name}` |" for each in found
            ]
    return lines


def shown(bound: Bound) -> str:
    value = bound.value
    if re.search(r"BYTES|BODY|FRAME|ANSWER$", bound.name) and value >= 1024:
        for size, unit in _SIZES:
            if value % size == 0:
                return f"{int(value) // size:,} {unit}"
    return f"{value:,}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
