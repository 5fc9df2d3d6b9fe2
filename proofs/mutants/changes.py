"""The small changes that can be made to a file: a comparison turned, a constant moved, a step left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}
_REPORTED = frozenset(
    {"Loss", "detail", "message", "fail", "broken", "debug", "info", "warning", "error", "exception", "help"}
)
"""Calls and keywords whose texts are for people: their wording is not what tests are for."""
_TYPED = frozenset({"cast", "TypeVar", "NewType", "ParamSpec", "getLogger", "lru_cache"})
"""Calls that only type checkers, logs and the clock notice."""
_WORD = r"[A-Za-z]?[a-z']+[,:;]?"
_SENTENCE = re.compile(rf"[^<{{\\]*\b{_WORD} {_WORD} {_WORD}\b|[A-Z][^<{{\\]* [^<{{\\]*\.$")
"""Three words of prose in a row, or a sentence: descriptions, titles, prompts. Not SQL, nor a pattern."""
_NO_TABLES = frozenset({"__slots__", "__all__", "__match_args__"})


class Change(NamedTuple):
    """One piece of a file replaced by another."""

    line: int
    start: int
    end: int
    """Offsets into the file's text."""
    new: str
    what: str
    name: str = ""
    """Of the table at the top of the file in which this is."""

    def of(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


def changes(text: str) -> Iterator[Change]:
    """Every change that this module knows, in the order of the file."""
    starts = _line_starts(text)
    tree = ast.parse(text)
    for statement in tree.body:
        for node, new, what in _Finder().found(statement):
            start = _offset(text, starts, node.lineno, node.col_offset)
            end = _offset(text, starts, node.end_lineno or node.lineno, node.end_col_offset or 0)
            if text[start:end] != new:
                what = f"{what}: {text[start:end]!s} -> {new}"
                yield Change(node.lineno, start, end, new, what, _name(statement))


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _offset(text: str, starts: list[int], line: int, column: int) -> int:
    """The place of a node in the text; Python counts its columns in bytes."""
    begin = starts[line - 1]
    return begin + len(text[begin : starts[line]].encode()[:column].decode())


_Found = tuple[ast.expr | ast.stmt, str, str]


class _Finder:
    def found(self, statement: ast.stmt) -> Iterator[_Found]:
        if not _is_type(statement):
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[_Found]:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert():
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.ClassDef():
                for inner in node.body:
                    # Defaults of fields are part of the type.
                    if not isinstance(inner, ast.AnnAssign):
                        yield from self._statement(inner)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for inner in node.body:
                    yield from self._statement(inner)
                return
            case ast.Assign(targets=[ast.Name(id=name)]) if name in _NO_TABLES:
                return
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if name in _REPORTED:
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
                return  # the type checker proves that nobody comes here
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield node, "pass", "step left out"
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield node, "return None", "nothing returned"
            case ast.AnnAssign(value=ast.expr() as value):
                yield from self._expression(value)
                return
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            elif isinstance(child, ast.expr):
                yield from self._expression(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                for inner in child.body:
                    yield from self._statement(inner)

    def _expression(self, node: ast.expr) -> Iterator[_Found]:
        match node:
            case ast.JoinedStr() | ast.Lambda():
                return
            case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
                other = ast.Compare(node.left, [_COMPARISONS[type(op)]()], node.comparators)
                yield node, f"({ast.unparse(other)})", "comparison"
            case ast.BoolOp(op=ast.And() | ast.Or()):
                turned: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                yield node, f"({ast.unparse(ast.BoolOp(turned, node.values))})", "condition"
            case ast.UnaryOp(op=ast.Not()):
                yield node, f"({ast.unparse(node.operand)})", "negation"
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_text(node):
                other_sum = ast.BinOp(node.left, _ARITHMETIC[type(op)](), node.right)
                yield node, f"({ast.unparse(other_sum)})", "arithmetic"
            case ast.IfExp():
                yield node, f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})", "branches"
            case ast.Constant(value=bool() as value):
                yield node, str(not value), "switch"
            case ast.Constant(value=int() as number):
                yield node, str(number + 1), "number"
            case ast.Constant(value=str() as text) if text and not _SENTENCE.match(text):
                yield node, repr(text + "x"), "text"
            case _:
                pass
        for child in self._inner(node):
            yield from self._expression(child)

    def _inner(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            # The last words of a loss, and all of an error or a log line, are wording.
            if name in _TYPED:
                return
            yield from node.args[:3] if name == "Loss" else [] if name in _REPORTED else node.args
            yield from (each.value for each in node.keywords if each.arg not in _REPORTED)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.comprehension):
                yield from (child.iter, *child.ifs)


def _is_type(node: ast.stmt) -> bool:
    """Whether a statement at the top of a file names a type, as `Path = tuple[str, ...]` does."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp(op=ast.BitOr())):
            return not name.isupper()
        case _:
            return False


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) for side in sides) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides
    )
