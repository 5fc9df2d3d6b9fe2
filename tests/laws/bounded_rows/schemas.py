"""Schemas of clients, rewritten for every target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.laws.bounded import Row
from tests.tiers import WHOLE
from wireglot_core.dialects.schema import SchemaTarget
from wireglot_core.dialects.schema.project import _projected
from wireglot_core.dialects.schema.targets import RULES

Schema = dict[str, Any]


def of(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties}


def enum(n: int, prefix: str = "v") -> Schema:
    return {"enum": [f"{prefix}{at}" for at in range(n)]}


def objects(n: int, name: str = "v") -> Schema:
    return {"enum": [{name: at} for at in range(n)]}


def each(n: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(at) for at in range(n)]


def named(n: int, make: Callable[[int], Any]) -> dict[str, Any]:
    return {f"p{at}": make(at) for at in range(n)}


def nest(n: int, make: Callable[[Any], Schema]) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(n):
        schema = make(schema)
    return schema


def ref(at: Any) -> Schema:
    return {"$ref": f"#/$defs/p{at}"}


SCHEMAS: dict[str, Callable[[int], Schema]] = {
    "properties": lambda n: of(**named(n, lambda _: {"type": "string"})),
    "properties that must be absent": lambda n: of(**named(n, lambda _: False)),
    "required names": lambda n: {**of(**named(n, lambda _: {})), "required": each(n, "p{}".format)},
    "required names of nothing": lambda n: {**of(), "required": each(n, "p{}".format)},
    "required names that lead back": lambda n: {
        **of(**named(n, lambda _: {"$ref": "#"})),
        "required": each(n, "p{}".format),
    },
    "a long enum": lambda n: of(a=enum(n)),
    "a long enum of objects": lambda n: of(a=objects(n)),
    "allOf of two enums": lambda n: of(a={"allOf": [enum(n), {"enum": enum(n)["enum"][::-1]}]}),
    "allOf of two enums of objects": lambda n: of(a={"allOf": [objects(n), objects(n)]}),
    "oneOf of two enums": lambda n: of(a={"oneOf": [enum(n), enum(n, "w")]}),
    "oneOf of two enums of objects": lambda n: of(a={"oneOf": [objects(n), objects(n, "w")]}),
    "oneOf of many objects": lambda n: of(
        a={"oneOf": each(n, lambda at: {**of(kind={"const": at}), "required": ["kind"]})}
    ),
    "allOf of many properties": lambda n: of(a={"allOf": each(n, lambda at: of(**{f"p{at}": {}}))}),
    "allOf of one property": lambda n: of(a={"allOf": each(n, lambda at: of(p={"minLength": at}))}),
    "allOf of descriptions": lambda n: of(a={"allOf": each(n, lambda at: {"description": f"d{at}"})}),
    "allOf of items": lambda n: of(a={"allOf": each(n, lambda at: {"items": {"minLength": at}})}),
    "a tuple": lambda n: of(a={"type": "array", "prefixItems": each(n, lambda at: {"const": at})}),
    "a reference beside an enum": lambda n: {**of(a={**ref(0), **enum(n)}), "$defs": {"p0": enum(n)}},
    "many references beside an enum": lambda n: {
        **of(**named(n, lambda _: {**ref(0), **enum(2)})),
        "$defs": {"p0": enum(n)},
    },
    "many references to a long text": lambda n: {
        **of(**named(n, lambda _: ref(0))),
        "$defs": {"p0": {"description": "x" * 20 * n}},
    },
    "many references to many properties": lambda n: {
        **of(**named(n, lambda _: ref(0))),
        "$defs": {"p0": of(**named(n, lambda _: {}))},
    },
    "definitions that follow each other": lambda n: {
        **of(a=ref(0)),
        "$defs": {**named(n, lambda at: of(a=ref(at + 1))), f"p{n}": {"type": "string"}},
    },
    "definitions that are each other": lambda n: {
        **of(a=ref(0)),
        "$defs": {**named(n, lambda at: {**ref(at + 1), "description": "x"}), f"p{n}": {"type": "string"}},
    },
    "definitions in a circle": lambda n: {
        **of(a=ref(0)),
        "$defs": named(n, lambda at: of(a=ref((at + 1) % n))),
    },
    "definitions without a usable name": lambda n: {
        **of(**named(n, lambda at: {"$ref": f"#/$defs/{chr(0x4E00 + at)}"})),
        "$defs": {chr(0x4E00 + at): of(a={"$ref": "#"}) for at in range(n)},
    },
    "definitions that double": lambda n: {
        **of(a=ref(0)),
        "$defs": {**named(n, lambda at: of(l=ref(at + 1), r=ref(at + 1))), f"p{n}": {"type": "string"}},
    },
    "unions that double": lambda n: {
        **ref(0),
        "$defs": {**named(n, lambda at: {"anyOf": [ref(at + 1)] * 3}), f"p{n}": {"type": "string"}},
    },
    "a union at the root": lambda n: {"type": "object", "anyOf": each(n, lambda at: of(a={"const": at}))},
    "a union at the root with names": lambda n: {
        "type": "object",
        "anyOf": [{**of(**named(n, lambda _: {})), "required": each(n, "p{}".format)}] * 2,
    },
    "a union beside properties": lambda n: of(
        a={**of(**named(n, lambda _: {})), "anyOf": each(n, lambda at: {"required": [f"p{at}"]})}
    ),
    "a union beside a long text": lambda n: of(
        a={"pattern": "x" * 20 * n, "anyOf": each(n, lambda at: {"minLength": at})}
    ),
    "a union in a union": lambda n: of(a=nest(n, lambda s: {"anyOf": [s, {"type": "null"}]})),
    "allOf in allOf": lambda n: of(a=nest(n, lambda s: {"allOf": [s, {"minLength": 1}]})),
    "objects in objects": lambda n: nest(n, lambda s: of(a=s)),
    "a long name around others": lambda n: of(**{"x" * 20 * n: of(**named(n, lambda at: {"x-a": at}))}),
    "unknown keywords": lambda n: of(a={f"x-{at}": at for at in range(n)}),
    "a dropped schema in a definition": lambda n: {
        **of(**named(n, lambda _: {**ref(0), "minLength": 2})),
        "$defs": {"p0": {"not": of(**named(n, lambda _: {}))}},
    },
}
QUICK: tuple[SchemaTarget, ...] = ("gemini-openapi",)  # with most rewrites


def rewrite(target: SchemaTarget, schema: Schema) -> None:
    _projected(schema, RULES[target])


ROWS = [
    Row(f"{target}: {name}", make, partial(rewrite, target), n=60 if WHOLE else 30)
    for target in (RULES if WHOLE else QUICK)
    for name, make in SCHEMAS.items()
]
