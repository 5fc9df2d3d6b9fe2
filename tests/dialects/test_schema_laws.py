"""What must hold for any schema and any target."""

import copy
import json
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wireglot.dialects.schema import Projected, SchemaTarget, infer_type, object_root, project

TARGETS: tuple[SchemaTarget, ...] = get_args(SchemaTarget)
LIMITED: tuple[SchemaTarget, ...] = (
    "gemini-json",
    "gemini-openapi",
    "openai-strict",
    "anthropic-strict",
    "moonshot",
)


def words(text: str) -> set[str]:
    return set(text.split())


# ---------------------------------------------------------------- generated schemas

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

# ---------------------------------------------------------------- an independent checker of what each target takes

ALLOWED: dict[str, set[str]] = {
    "gemini-json": words(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum "
        "maximum anyOf oneOf properties additionalProperties required propertyOrdering"
    ),
    "gemini-openapi": words(
        "type format title description nullable enum items minItems maxItems properties required minProperties "
        "maxProperties minLength maxLength pattern minimum maximum anyOf default example propertyOrdering"
    ),
    "openai-strict": words(
        "$defs $ref type title description enum anyOf items minItems maxItems properties required format pattern "
        "additionalProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
    ),
    "anthropic-strict": words(
        "$defs $ref type title description enum const anyOf items minItems properties required format pattern default "
        "additionalProperties"
    ),
    "moonshot": words(
        "$defs $ref type title description enum anyOf items minItems maxItems properties required format pattern default "
        "additionalProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength "
        "minProperties maxProperties uniqueItems examples"
    ),
}


def nodes(schema: Any, path: str = "$"):
    """Every schema in an output, with its path; everything found in a schema's place must be a schema."""
    assert isinstance(schema, dict), f"{path} is not an object: {schema!r}"
    yield path, schema
    for key, value in schema.items():
        if key in ("items", "not", "if", "then", "else") or (
            key == "additionalProperties" and not isinstance(value, bool)
        ):
            yield from nodes(value, f"{path}.{key}")
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            assert value, f"{path}.{key} is empty"
            for at, each in enumerate(value):
                yield from nodes(each, f"{path}.{key}[{at}]")
        elif key in ("properties", "$defs", "definitions", "patternProperties"):
            for name, each in value.items():
                yield from nodes(each, f"{path}.{key}.{name}")


def check_references(root: dict[str, Any]) -> None:
    for path, node in nodes(root):
        if "$ref" in node:
            assert set(node) == {"$ref"}, f"{path}: siblings of $ref"
            kind, name = node["$ref"].rsplit("/", 1)
            assert kind == "#/$defs", f"{path}: {node['$ref']}"
            assert name in root["$defs"], f"{path}: {node['$ref']}"
        if path != "$":
            assert "$defs" not in node


def check_gemini_json(root: dict[str, Any]) -> None:
    check_references(root)
    for path, node in nodes(root):
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        for value in node.get("enum", []):
            assert isinstance(value, str | int | float), path
            assert not isinstance(value, bool), path


def check_gemini_openapi(root: dict[str, Any]) -> None:
    for path, node in nodes(root):
        if "anyOf" in node:
            assert set(node) <= {"anyOf"}, f"{path}: {set(node)} beside anyOf"
            continue
        assert node["type"] in ("STRING", "INTEGER", "NUMBER", "BOOLEAN", "OBJECT", "ARRAY"), path
        assert ("items" in node) == (node["type"] == "ARRAY"), path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        if "enum" in node:
            assert node["type"] == "STRING", path
            assert node["enum"], path
            assert all(isinstance(value, str) and value for value in node["enum"]), path
        assert node.get("format", "enum") in ("enum", "date-time", "int32", "int64", "float", "double"), path


def is_object(node: dict[str, Any]) -> bool:
    return "object" in ([node["type"]] if isinstance(node.get("type"), str) else node.get("type", []))


def check_openai_strict(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert "anyOf" not in root
    check_references(root)
    for path, node in nodes(root):
        assert node.keys() & {"type", "anyOf", "$ref"}, path
        if is_object(node):
            assert node["additionalProperties"] is False, path
            assert sorted(node["required"]) == sorted(node["properties"]), path


def check_anthropic_strict(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert "anyOf" not in root
    check_references(root)
    for path, node in nodes(root):
        assert not is_object(node) or node["additionalProperties"] is False, path
        assert node.get("minItems", 0) <= 1, path


def check_moonshot(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert "anyOf" not in root
    check_references(root)
    for path, node in nodes(root):
        if "$ref" in node:
            continue
        if "anyOf" in node:
            assert set(node) <= {"anyOf", "title", "description"}, path
        elif isinstance(node.get("type"), list):
            assert set(node) <= {"type", "title", "description"} | ({"$defs"} if path == "$" else set()), path
        elif not path.endswith(".additionalProperties"):
            assert isinstance(node["type"], str), path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        assert len({isinstance(value, str) for value in node.get("enum", [])}) <= 1, path


def check_plain_root(root: dict[str, Any]) -> None:
    assert root["type"] == "object"
    assert isinstance(root["properties"], dict)
    assert not root.keys() & {"anyOf", "oneOf", "allOf"}


def check_openai(root: dict[str, Any]) -> None:
    check_plain_root(root)
    for path, node in nodes(root):
        kinds = [node["type"]] if isinstance(node.get("type"), str) else node.get("type", [])
        assert "array" not in kinds or "items" in node, path


CHECKS = {
    "json-schema": lambda root: None,
    "gemini-json": check_gemini_json,
    "gemini-openapi": check_gemini_openapi,
    "openai-strict": check_openai_strict,
    "openai": check_openai,
    "anthropic": check_plain_root,
    "anthropic-strict": check_anthropic_strict,
    "moonshot": check_moonshot,
}


def check(projected: Projected, target: SchemaTarget) -> None:
    root = projected.schema
    json.dumps(root)
    if target in ALLOWED:
        for path, node in nodes(root):
            assert set(node) <= ALLOWED[target], f"{path}: {set(node) - ALLOWED[target]}"
    CHECKS[target](root)


# ---------------------------------------------------------------- a small validator, to see whether meaning was kept


class Validator:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.steps = 0

    def fits(self, value: Any, schema: Any) -> bool:
        self.steps += 1
        assume(self.steps < 3000)
        if isinstance(schema, bool):
            return schema
        return all(self.one(key, want, value, schema) for key, want in schema.items())

    def one(self, key: str, want: Any, value: Any, schema: dict[str, Any]) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        match key:
            case "$ref":
                here: Any = self.root
                for token in want.split("/")[1:]:
                    here = here[token]
                return self.fits(value, here)
            case "type":
                kinds = [want] if isinstance(want, str) else want
                return any(self.is_a(value, kind.lower(), number) for kind in kinds)
            case "nullable":
                return True
            case "enum":
                return any(json.dumps(each) == json.dumps(value) for each in want)
            case "const":
                return json.dumps(want) == json.dumps(value)
            case "anyOf":
                return any(self.fits(value, each) for each in want)
            case "oneOf":
                return sum([self.fits(value, each) for each in want]) == 1
            case "allOf":
                return all(self.fits(value, each) for each in want)
            case "not":
                return not self.fits(value, want)
        if isinstance(value, dict):
            return self.one_of_object(key, want, value, schema)
        if isinstance(value, list):
            return self.one_of_array(key, want, value, schema)
        if number:
            return self.one_of_number(key, want, value)
        return not (isinstance(value, str) and key == "minLength") or len(value) >= int(want)

    @staticmethod
    def one_of_number(key: str, want: Any, value: Any) -> bool:
        match key:
            case "minimum":
                return bool(value >= want)
            case "maximum":
                return bool(value <= want)
            case "exclusiveMinimum":
                return bool(value > want)
            case "exclusiveMaximum":
                return bool(value < want)
        return True

    @staticmethod
    def is_a(value: Any, kind: str, number: bool) -> bool:
        return {
            "string": isinstance(value, str),
            "integer": number and value == int(value),
            "number": number,
            "boolean": isinstance(value, bool),
            "object": isinstance(value, dict),
            "array": isinstance(value, list),
            "null": value is None,
        }[kind]

    def one_of_object(self, key: str, want: Any, value: dict[str, Any], schema: dict[str, Any]) -> bool:
        match key:
            case "properties":
                return all(self.fits(value[name], each) for name, each in want.items() if name in value)
            case "required":
                return all(name in value for name in want)
            case "additionalProperties":
                known = schema.get("properties", {})
                return all(self.fits(each, want) for name, each in value.items() if name not in known)
        return True

    def one_of_array(self, key: str, want: Any, value: list[Any], schema: dict[str, Any]) -> bool:
        match key:
            case "prefixItems":
                return all(self.fits(each, one) for each, one in zip(value, want, strict=False))
            case "items":
                return all(self.fits(each, want) for each in value[len(schema.get("prefixItems", ())) :])
            case "minItems":
                return len(value) >= int(want)
            case "maxItems":
                return len(value) <= int(want)
        return True


def without_nullable(schema: Any) -> Any:
    """Gemini's flag said in JSON Schema, for the validator."""
    if isinstance(schema, list):
        return [without_nullable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: without_nullable(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


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

# ---------------------------------------------------------------- the laws


@pytest.mark.parametrize("target", TARGETS)
@given(schema=ROOTS)
def test_only_what_the_target_takes_comes_out(target: SchemaTarget, schema: Any) -> None:
    """R-DB-09, R-DB-10, R-DB-11"""
    check(project(schema, target), target)


@pytest.mark.parametrize("target", TARGETS)
@given(schema=GARBAGE)
def test_garbage_never_raises_and_still_comes_out_valid(target: SchemaTarget, schema: Any) -> None:
    check(project(schema, target), target)


@pytest.mark.parametrize("target", TARGETS)
@given(schema=ROOTS)
def test_the_input_is_not_mutated(target: SchemaTarget, schema: Any) -> None:
    before = copy.deepcopy(schema)
    project(schema, target)
    object_root(schema)
    infer_type(schema)
    assert json.dumps(schema) == json.dumps(before)


@pytest.mark.parametrize("target", TARGETS)
@given(schema=ROOTS)
def test_projecting_twice_changes_nothing_more(target: SchemaTarget, schema: Any) -> None:
    once = project(schema, target)
    twice = project(once.schema, target)
    assert twice.schema == once.schema
    assert {note.keyword for note in twice.notes} <= {note.keyword for note in once.notes}


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "json-schema"])
@given(schema=GOOD_ROOTS, values=st.lists(VALUES, min_size=4, max_size=4))
def test_no_notes_means_the_same_values_fit(target: SchemaTarget, schema: Any, values: list[Any]) -> None:
    if target == "gemini-openapi":
        del schema["additionalProperties"]  # closing an object cannot be said there, and is always noted
    projected = project(schema, target)
    if projected.notes:
        return
    out = without_nullable(projected.schema)
    for value in values:
        try:
            before = Validator(schema).fits({"a": value}, schema)
        except RecursionError:  # a schema that only refers to itself fits nothing and everything
            return
        assert Validator(out).fits({"a": value}, out) == before, (value, projected.schema)


@given(schema=ROOTS)
def test_an_object_root_is_an_object_and_stays_one(schema: Any) -> None:
    wrapped, _ = object_root(schema)
    again, twice = object_root(wrapped)
    assert again == wrapped
    assert not twice
