"""All regular expressions of the package, found in its syntax trees."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from tests.laws.pattern_steps import Mode
from tools.structure import Module, modules

_FUNCTIONS: Final = {
    "compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn",
}  # fmt: skip
_TESTING: Final = ("wireglot.testing", "wireglot_core.testing")
"""Its patterns meet only what the tests of a dialect's author have made."""
_ANCHORED: Final[dict[str, Mode]] = {"match": "match", "fullmatch": "fullmatch"}


class Found(NamedTuple):
    """One regular expression. `pattern` is None if it depends on what its function is given."""

    module: str
    line: int
    name: str
    """What it is assigned to, with its module."""
    source: str
    pattern: str | bytes | None
    flags: int
    mode: Mode


def source_patterns() -> Iterator[Found]:
    methods = _methods()
    for module in modules().values():
        if module.name.startswith(_TESTING):
            continue
        names = _names(module)
        for node in module.nodes:
            if (call := _call(node)) is not None:
                yield _found(module, call, names, methods)


def _call(node: ast.AST) -> ast.Call | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in _FUNCTIONS:
            return node
    return None


def _names(module: Module) -> dict[int, str]:
    """The names that calls are assigned to: also where they are a method of it, as in `re.compile(x).match`."""
    found = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                found[id(node.value)] = target.id
        if isinstance(node, ast.Attribute):
            found[id(node.value)] = f".{node.attr}"
    return found


def _methods() -> dict[str, set[str]]:
    """What is called on each name: a private one in its module, another one in any."""
    found = defaultdict[str, set[str]](set)
    for module in modules().values():
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found[_known(module, node.value.id)].add(node.attr)
    return found


def _known(module: Module, name: str) -> str:
    return f"{module.name}.{name}" if name.startswith("_") else name


def _found(module: Module, call: ast.Call, names: dict[int, str], methods: dict[str, set[str]]) -> Found:
    assert isinstance(call.func, ast.Attribute)
    used = {call.func.attr}
    if used == {"compile"}:
        name = names.get(id(call), "")
        used = (
            {name[1:]}
            if name.startswith(".")
            else methods[_known(module, name)] & _FUNCTIONS
            if name
            else set()
        )
    mode: Mode = "search"
    if used and used <= set(_ANCHORED):
        mode = "fullmatch" if used == {"fullmatch"} else "match"
    space = vars(import_module(module.name))
    try:
        pattern = _value(call.args[0], space)
        flags = _value(_flags(call), space) or 0
    except NameError:
        pattern, flags = None, 0
    source = " ".join(ast.unparse(call.args[0]).split())
    name = f"{module.name}.{names.get(id(call), '')}"
    return Found(module.name, call.lineno, name, source, pattern, int(flags), mode)


def _flags(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    given = [each.value for each in call.keywords if each.arg == "flags"]
    if call.func.attr == "compile":
        given += call.args[1:2]
    return given[0] if given else ast.Constant(0)


def _value(node: ast.expr, space: dict[str, Any]) -> Any:
    value = eval(ast.unparse(node), dict(space))
    if isinstance(value, re.Pattern):
        return value.pattern
    return value
