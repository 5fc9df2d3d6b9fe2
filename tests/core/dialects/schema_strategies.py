"""Schemas and values made by chance: any schema at all, garbage, and schemas as tool authors write them."""

from typing import Any

from hypothesis import strategies as st

from tests.core.dialects.schema_checks import words

NAMES = st.sampled_from(["a", "b", "c", "type", "items", "$ref", "x.y"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "yy", "2"]), st.just(1.5)
)
REFS = st.sampled_from(
    [
        "#",
        "#/$defs/A",
        "#/$defs/B",
        "#/definitions/C",
        "#/properties/a",
        "#/$defs/gone",
        "http://x/y",
        "#here",
        "A",
    ]
)
TYPE_NAMES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
COUNTS = st.integers(0, 3)


def node_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(NAMES, inner, max_size=3)
    several = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(TYPE_NAMES, st.lists(TYPE_NAMES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": SCALARS,
        "properties": named,
        "patternProperties": named,
        "required": st.lists(NAMES, max_size=2),
        "additionalProperties": inner,
        "items": st.one_of(inner, several),
        "prefixItems": several,
        "additionalItems": inner,
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "minimum": st.integers(-2, 2),
        "exclusiveMinimum": st.one_of(st.integers(-2, 2), st.booleans()),
        "exclusiveMaximum": st.floats(-2, 2),
        "minLength": COUNTS,
        "maxItems": COUNTS,
        "minItems": COUNTS,
        "uniqueItems": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "pattern": st.sampled_from(["^a", r"(?=x)\b"]),
        "format": st.sampled_from(["date-time", "uri", "int32"]),
        "nullable": st.booleans(),
        "default": SCALARS,
        "description": st.just("words"),
        "title": st.just("T"),
        "examples": st.lists(SCALARS, max_size=2),
        "x-own": SCALARS,
        "$ref": REFS,
        "$anchor": st.just("here"),
        "$comment": st.just("c"),
    }
    pairs = [st.tuples(st.just(key), value) for key, value in keywords.items()]
    return st.lists(st.one_of(pairs), max_size=5).map(dict)


SCHEMAS = st.recursive(st.one_of(st.booleans(), node_of(st.just({"type": "string"}))), node_of, max_leaves=8)


def with_definitions(schema: Any, one: Any, two: Any, three: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {**schema, "$defs": {"A": one, "B": two}, "definitions": {"C": three}}


ROOTS = st.one_of(st.none(), SCHEMAS, st.builds(with_definitions, SCHEMAS, SCHEMAS, SCHEMAS, SCHEMAS))

JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)
GARBAGE = st.dictionaries(
    st.sampled_from(
        sorted(
            words(
                "type properties items required enum anyOf allOf oneOf not $ref $defs minLength minimum description nullable "
                "additionalProperties prefixItems format pattern exclusiveMinimum dependencies const default examples if"
            )
        )
    ),
    JSON,
)


def typed(kind: str, optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=optional)


def well_formed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas as tool authors write them: keywords beside the type they belong to."""
    several = st.lists(inner, min_size=1, max_size=3)
    objects = typed(
        "object",
        {
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": st.one_of(st.just(False), st.just(False), st.just(True), inner),
        },
    )
    arrays = typed("array", {"items": inner, "prefixItems": several, "minItems": COUNTS, "maxItems": COUNTS})
    bounds = {
        "minimum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
    }
    unions = st.fixed_dictionaries(
        {},
        optional={
            "type": st.lists(TYPE_NAMES, min_size=1, max_size=3, unique=True),
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "enum": st.lists(SCALARS, min_size=1, max_size=4),
            "const": SCALARS,
        },
    )
    leaves = st.sampled_from(
        [{"type": "string"}, {"type": "string", "minLength": 2}, {"type": "null"}, {}, True]
    )
    refs = st.sampled_from(
        [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A", "type": "object"}]
    )
    numbers = st.one_of(typed("integer", bounds), typed("number", bounds))
    return st.one_of(objects, arrays, numbers, unions, leaves, refs)


GOOD = st.recursive(well_formed(st.just({"type": "integer"})), well_formed, max_leaves=5)
GOOD_ROOTS = st.builds(
    lambda a, one, two: {
        "type": "object",
        "properties": {"a": a},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"A": one, "B": two},
    },
    GOOD,
    GOOD,
    GOOD,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
