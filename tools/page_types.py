"""Write page/src/traces.ts: what the gateway reports about exchanges, as types of the inspector's page.

Each type is a struct, with the comments of its fields. A field that is left out when it has its default is
optional.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from wireglot.gateway.trace.growing import GrowingTrace
from wireglot_core.traces import cache_truth, trace

FILE: Final = Path("page/src/traces.ts")
_HEAD: Final = "// Written by tools/generate_docs.py (`make docs`). Do not edit."
_ALIASES: Final[dict[Any, str]] = {trace.State: "State"}
_STRUCTS: Final[dict[type[msgspec.Struct], str]] = {
    trace.Tokens: "Tokens",
    trace.LossCounts: "LossCounts",
    trace.TurnHashes: "TurnHashes",
    trace.Row: "Row",
    trace.TraceFrame: "Frame",
    trace.TraceMessage: "Message",
    trace.Link: "Link",
    trace.TracedLoss: "TracedLoss",
    trace.TraceStep: "Step",
    trace.TraceCounted: "Counted",
    trace.Attempt: "Attempt",
    trace.Trace: "RecordedTrace",
    GrowingTrace: "NewOfTrace",
    cache_truth.CacheBreak: "CacheBreak",
    cache_truth.CacheTruth: "CacheTruth",
}
"""With their names in the page: a struct that is a part of one of these has to be here, too."""
_PLAIN: Final[dict[Any, str]] = {
    str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null", Any: "unknown",
}  # fmt: skip


def text() -> str:
    return "\n".join([_HEAD, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    for alias, name in _ALIASES.items():
        yield from ("", f"export type {name} = {_literal(alias)};")
    for struct, name in _STRUCTS.items():
        yield ""
        yield from _comment(inspect.cleandoc(struct.__doc__ or ""), "")
        yield f"export interface {name} {{"
        hints, comments = get_type_hints(struct), _comments(struct)
        for field in msgspec.structs.fields(struct):
            yield from _comment(comments.get(field.name, ""), "  ")
            optional = not field.required and struct.__struct_config__.omit_defaults
            yield f"  {field.encode_name}{'?' if optional else ''}: {type_of(hints[field.name])};"
        yield "}"


def _comment(written: str, indent: str) -> Iterator[str]:
    if written:
        yield f"{indent}/** {' '.join(written.split())} */"


def _comments(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The text below each field."""
    (declared,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for node, below in zip(declared.body, declared.body[1:], strict=False):
        match node, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as said)):
                found[name] = said
    return found


def type_of(hint: Any) -> str:
    if hint in _ALIASES:
        return _ALIASES[hint]
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _STRUCTS[hint]
    parts = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return _literal(hint)
        case origin if origin in (Union, UnionType):
            return " | ".join(dict.fromkeys(map(type_of, parts)))
        case origin if origin is list:
            (item,) = map(type_of, parts)
            return f"({item})[]" if " | " in item else f"{item}[]"
        case origin if origin is tuple:
            return f"[{', '.join(map(type_of, parts))}]"
        case origin if origin is dict:
            return f"Record<{', '.join(map(type_of, parts))}>"
    raise TypeError(f"no type of the page for {hint}")


def _literal(hint: Any) -> str:
    return " | ".join(f'"{value}"' for value in get_args(hint))
