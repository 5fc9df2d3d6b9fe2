"""A defect made in a module that is already loaded: the code of its functions is replaced."""

from __future__ import annotations

import ast
import gc
import inspect
from collections import Counter
from collections.abc import Iterator
from types import CodeType, FunctionType

from proofs.mutants.changes import Change


def is_in_function(text: str, change: Change) -> bool:
    """Whether only calls of a function run the changed code; all else was run when the module was loaded."""
    lines = text.splitlines(keepends=True)
    start = len(text[: change.start].encode())
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first, last = node.body[0], node.body[-1]
            if (
                begins[first.lineno - 1] + first.col_offset
                <= start
                < begins[(last.end_lineno or 0) - 1] + (last.end_col_offset or 0)
            ):
                return True
    return False


def swap(text: str, change: Change, file: str) -> bool:
    """Make a defect in the functions of a loaded file. Whether there were any, and all could be replaced."""
    old = _functions(compile(text, file, "exec", dont_inherit=True))
    new = _functions(compile(change.of(text), file, "exec", dont_inherit=True))
    replaced = {(code.co_qualname, code.co_firstlineno): new.get(key) for key, code in old.items()}
    found = False
    for function in gc.get_objects():
        if type(function) is not FunctionType or function.__code__.co_filename != file:
            continue
        code = replaced.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is None or code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
        found = True
    return found


def _functions(module: CodeType) -> dict[tuple[str, int], CodeType]:
    """All functions of a module by their name and how many of this name came before."""
    counts = Counter[str]()
    found: dict[tuple[str, int], CodeType] = {}
    for code in _codes(module):
        if code.co_flags & inspect.CO_OPTIMIZED:
            found[code.co_qualname, counts[code.co_qualname]] = code
            counts[code.co_qualname] += 1
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
