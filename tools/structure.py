"""The structure of what is below src, read from its syntax trees: modules, who imports whom, and circles.

Every import counts as one: also those for types only and those inside functions.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

SOURCES = Path(__file__).parents[1] / "src"
PACKAGES = ("wireglot", "wireglot_core")

Graph = Mapping[str, set[str]]


class Module(msgspec.Struct, frozen=True, eq=False):
    """One file. `name` is what one imports: of a package, the package's."""

    name: str
    path: Path
    nodes: tuple[ast.AST, ...]
    """Its whole tree, the module itself first."""
    lines: int = 0

    @property
    def tree(self) -> ast.Module:
        assert isinstance(self.nodes[0], ast.Module)
        return self.nodes[0]

    @property
    def file(self) -> str:
        """Its path below src."""
        return self.path.relative_to(SOURCES).as_posix()

    @property
    def inside(self) -> str:
        """Its path below its top package."""
        return self.file.partition("/")[2]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def title(self) -> str:
        """The first paragraph of its docstring, on one line."""
        paragraph = (ast.get_docstring(self.tree) or "").partition("\n\n")[0]
        return " ".join(paragraph.split())


@cache
def modules() -> dict[str, Module]:
    """All of the two packages by name, in the order of their files."""
    found = {}
    gc.disable()  # half a million nodes that stay: looking through them again and again took most of the time
    for path in sorted(path for package in PACKAGES for path in (SOURCES / package).rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, path, nodes_of(text), text.count("\n"))
    gc.freeze()
    gc.enable()
    return found


def nodes_of(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def imported(module: Module) -> Iterator[str]:
    """What a file imports: of `from a import b` it is `a.b`, whether that is a module or not."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


@cache
def import_graph() -> dict[str, set[str]]:
    """Which modules each one imports. The packages above them are loaded, too, and do not count."""
    known = modules()
    graph = {}
    for name, module in known.items():
        targets = {
            target if target in known else target.rpartition(".")[0]
            for target in imported(module)
            if target.startswith("wireglot")
        }
        graph[name] = (targets & known.keys()) - {name}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Groups in which each module leads to all others: Tarjan's algorithm, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for start in graph:
        work = [(start, iter(sorted(graph[start])))] if start not in index else []
        if work:
            index[start] = low[start] = len(index)
            stack.append(start)
        while work:
            here, ahead = work[-1]
            for there in ahead:
                if there not in index:
                    index[there] = low[there] = len(index)
                    stack.append(there)
                    work.append((there, iter(sorted(graph[there]))))
                    break
                if there in stack:
                    low[here] = min(low[here], index[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[here])
                if low[here] == index[here]:
                    at = stack.index(here)
                    if len(group := stack[at:]) > 1:
                        found.append(sorted(group))
                    del stack[at:]
    return found


def shortest_circle(graph: Graph, group: list[str]) -> list[str]:
    """One way around, from a file back to itself: what to look at first."""
    ways = [way for start in group if (way := _way_back(graph, start, set(group)))]
    return min(ways, key=len)


def _way_back(graph: Graph, start: str, within: set[str]) -> list[str]:
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:
        for there in sorted(graph[way[-1]] & within):
            if there == start:
                return [*way, start]
            if there not in seen:
                seen.add(there)
                ways.append([*way, there])
    return []


class BroadExcept(msgspec.Struct, frozen=True):
    """A place that takes any exception there is and goes on, and the comment on its line that says why."""

    file: str
    function: str
    why: str


def broad_excepts(module: Module) -> list[BroadExcept]:
    """Those that clean up and raise again are none."""
    if not any(isinstance(node, ast.ExceptHandler) and _is_broad(node) for node in module.nodes):
        return []
    lines = module.path.read_text(encoding="utf-8").splitlines()
    found: list[BroadExcept] = []

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.ExceptHandler) and _is_broad(node):
            why = lines[node.lineno - 1].partition("# ")[2]
            found.append(BroadExcept(module.file, function, why))
        for child in ast.iter_child_nodes(node):
            look(child, function)

    look(module.tree, "")
    return found


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or getattr(kind, "id", "") in ("Exception", "BaseException") for kind in kinds):
        return False
    last = handler.body[-1]
    return not (isinstance(last, ast.Raise) and last.exc is None)
