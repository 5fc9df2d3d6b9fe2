"""Every value the demo model makes for a schema is one the schema accepts."""

from __future__ import annotations

import base64
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date, datetime, time
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot.demo.fill import DEPTH_MAX, NODES_MAX, Hints, filled


def problems(value: Any, schema: dict[str, Any], path: str = "$") -> list[str]:
    """What is wrong with a value: an own little validator for the keywords the strategies below use."""
    found: list[str] = []
    kind = schema.get("type")
    kinds = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "null": value is None,
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    wanted = kind if isinstance(kind, list) else [kind] if kind else []
    if wanted and not any(kinds[word] for word in wanted):
        return [f"{path}: {value!r} is no {kind}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: not the constant")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is not in the enumeration")
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9):
            found.append(f"{path}: {value!r} has a wrong length")
    elif kinds["number"]:
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{path}: {value} is out of bounds")
        if "exclusiveMinimum" in schema and not value > schema["exclusiveMinimum"]:
            found.append(f"{path}: {value} is not above {schema['exclusiveMinimum']}")
        if "exclusiveMaximum" in schema and not value < schema["exclusiveMaximum"]:
            found.append(f"{path}: {value} is not below {schema['exclusiveMaximum']}")
        if "multipleOf" in schema and Fraction(str(value)) % Fraction(str(schema["multipleOf"])):
            found.append(f"{path}: {value} is no multiple of {schema['multipleOf']}")
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9):
            found.append(f"{path}: {len(value)} items")
        for number, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{path}[{number}]")
    elif isinstance(value, dict):
        found += [f"{path}: {name} is missing" for name in schema.get("required", []) if name not in value]
        if schema.get("additionalProperties") is False and value.keys() - schema.get("properties", {}).keys():
            found.append(f"{path}: a property too many")
        for name, item in value.items():
            found += problems(item, schema.get("properties", {}).get(name, {}), f"{path}.{name}")
    for branch in schema.get("allOf", []):
        found += problems(value, branch, path)
    if "anyOf" in schema and all(problems(value, branch, path) for branch in schema["anyOf"]):
        found.append(f"{path}: no branch takes {value!r}")
    return found


KEYS = st.sampled_from(["path", "command", "city", "query", "count", "filePath", "x", "nested", "dir"])
NUMBERS = st.integers(-50, 50)


@st.composite
def strings(draw: st.DrawFn) -> dict[str, Any]:
    shortest = draw(st.integers(0, 30))
    return {"type": "string", "minLength": shortest, "maxLength": shortest + draw(st.integers(0, 30))}


@st.composite
def integers(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(NUMBERS)
    made: dict[str, Any] = {"type": "integer"}
    if draw(st.booleans()):
        made[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    if draw(st.booleans()):
        made[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = low + draw(st.integers(2, 40))
    if "exclusiveMaximum" not in made and "maximum" not in made and draw(st.booleans()):
        made["multipleOf"] = draw(st.integers(1, 9))
    return made


@st.composite
def floats(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(NUMBERS) / 4
    made: dict[str, Any] = {"type": "number"}
    if draw(st.booleans()):
        made[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    if draw(st.booleans()):
        made[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = low + draw(st.integers(1, 40)) / 8
    elif draw(st.booleans()):
        made["multipleOf"] = draw(st.sampled_from([0.25, 0.1, 0.01, 2, 2.5]))
    return made


def simple() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        strings(),
        integers(),
        floats(),
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        st.lists(st.sampled_from(["a", "b", 1, True]), min_size=1, unique_by=repr).map(lambda v: {"enum": v}),
        st.sampled_from(["x", 7]).map(lambda v: {"const": v}),
        st.just({"type": ["string", "null"]}),
        st.just({"type": "string", "default": "usual"}),
    )


def compound(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(KEYS, inner, max_size=4)
    objects = properties.flatmap(
        lambda p: st.builds(
            lambda required, closed: {
                "type": "object",
                "properties": p,
                "required": required,
                "additionalProperties": closed,
            },
            st.lists(st.sampled_from(sorted(p)), unique=True) if p else st.just([]),
            st.booleans(),
        )
    )
    arrays = st.builds(
        lambda items, few, more: {"type": "array", "items": items, "minItems": few, "maxItems": few + more},
        inner,
        st.integers(0, 3),
        st.integers(0, 3),
    )
    return st.one_of(
        objects,
        arrays,
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        inner.map(lambda branch: {"allOf": [branch, {"description": "more"}]}),
    )


SCHEMAS = st.recursive(simple(), compound, max_leaves=8)
HINTS = st.builds(Hints, *[st.sampled_from(["", "/tmp/some/file.txt", "words of a user"])] * 4)


@given(SCHEMAS, HINTS)
def test_what_is_made_for_a_schema_is_what_it_accepts(schema: dict[str, Any], hints: Hints) -> None:
    assert problems(filled(schema, hints), schema) == []


def test_the_check_of_this_file_finds_a_wrong_value() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}},
        "required": ["n", "m"],
    }
    assert problems({"n": 1}, schema) == ["$: m is missing", "$.n: 1 is out of bounds"]


def test_hints_go_where_their_keys_stand() -> None:
    schema = {
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "command": {"type": "string"},
            "city": {"type": "string"},
            "query": {"type": "string"},
            "workdir": {"type": "string"},
        },
    }
    made = filled(schema, Hints("/tmp/a.txt", "cat /tmp/a.txt", "some words", "Rome"))
    assert made == {
        "filePath": "/tmp/a.txt",
        "command": "cat /tmp/a.txt",
        "city": "Rome",
        "query": "some words",
        "workdir": "/tmp",
    }


def test_a_command_that_is_a_list_runs_in_a_shell() -> None:
    schema = {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}}
    assert filled(schema, Hints(command="cat x")) == {"command": ["bash", "-lc", "cat x"]}


def test_an_optional_path_is_filled_when_the_prompt_names_one() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "n": {"type": "integer"}},
        "required": [],
    }
    assert filled(schema, Hints(path="/a")) == {"path": "/a"}
    assert filled(schema) == {}


def test_references_into_the_schema_are_followed() -> None:
    schema = {
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/point"}, "far": {"$ref": "https://example.com/other.json"}},
        "required": ["at"],
    }
    assert filled(schema) == {"at": {"x": 1}}


def test_branches_that_must_all_hold_are_merged() -> None:
    one = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
    two = {"properties": {"a": {"maximum": 4}, "b": {"const": "x"}}, "required": ["b"]}
    assert filled({"allOf": [one, two]}) == {"a": 3, "b": "x"}


def test_upper_case_types_and_sizes_as_strings_are_understood() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {"l": {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "2"}},
    }
    assert filled(schema) == {"l": [1, 1]}


FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "duration": re.compile(r"P(?=.)(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?").fullmatch,
    # Names that nobody can own (RFC 2606).
    "email": re.compile(r"[a-z]+@example\.com").fullmatch,
    "hostname": re.compile(r"example\.com").fullmatch,
    "uri": lambda made: urlsplit(made).hostname == "example.com",
    "url": lambda made: urlsplit(made).hostname == "example.com",
    "uri-reference": lambda made: urlsplit(made).path.startswith("/"),
    "uuid": lambda made: uuid.UUID(made).version == 4,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "byte": lambda made: base64.b64decode(made, validate=True),
}


@rows("form", list(FORMATS))
def test_formats_are_kept(form: str) -> None:
    """Whatever the key asks for, and though a text of this format would be too long."""
    text = {"type": "string", "format": form, "maxLength": 3}
    made = filled({"type": "object", "properties": {"path": text}}, Hints("/a"))
    assert made["path"] != "/a"
    assert FORMATS[form](made["path"])


def test_distinct_items_are_distinguished() -> None:
    made = filled({"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True})
    assert len(made) == len(set(made)) == 3


@rows(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 6),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": 4}, 5),
        ({"type": "integer", "maximum": 0}, 0),
        ({"type": "integer", "exclusiveMaximum": 0}, -1),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "integer", "multipleOf": 2.5}, 5),
        ({"type": "number"}, 1.0),
        ({"type": "number", "multipleOf": 0.5, "maximum": 0.8}, 0.5),
        ({"type": "number", "minimum": 0, "maximum": 1}, 0.5),
        ({"type": "number", "minimum": 1, "maximum": 4}, 2.5),
        ({"type": "number", "minimum": 3}, 3),
        ({"type": "number", "exclusiveMinimum": 3}, 4),
        ({"type": "number", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMaximum": -3}, -4),
        ({"maximum": -3}, -3),
        ({"type": "boolean"}, False),
        ({"type": "boolean", "default": True}, True),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "TYPE_UNSPECIFIED", "items": {}}, ["demo"]),
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "string", "default": 5}, "demo"),
        ({"type": "integer", "default": True}, 1),
        ({"type": "string", "minLength": 6}, "demoxx"),
        ({"type": "string", "maxLength": 2}, "de"),
        ({"enum": [None, "a", "b"]}, "a"),
        ({"enum": [None]}, None),
        ({"const": 0}, 0),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [1, 2]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True}, ["a", "b"]),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True}, [False, False]),
        ({"prefixItems": [{"const": 5}, {"const": 7}], "uniqueItems": True}, [5, 7]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 0}, []),
        ({"prefixItems": [{"type": "integer"}, {"const": "b"}]}, [1, "b"]),
        ({"type": "object", "minProperties": 2}, {"demo_0": "demo", "demo_1": "demo"}),
        ({"required": ["n"], "additionalProperties": {"type": "integer"}}, {"n": 1}),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"oneOf": [{"type": "null"}]}, None),
        ({"$ref": "#/a~1b/0", "a/b": [{"const": 3}]}, 3),
        ({"$ref": "other.json#/a"}, "demo"),
        ({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}, "b"),
        ({"type": "integer", "allOf": [{"minimum": 2}, {"minimum": 9}, {"maximum": 12}, {"maximum": 20}]}, 9),
        ({"type": "integer", "allOf": [{"maximum": -2}, {"maximum": -9}]}, -9),
    ],
)
def test_the_simplest_value_within_the_bounds_is_taken(schema: dict[str, Any], value: Any) -> None:
    assert filled(schema) == value
    assert type(filled(schema)) is type(value)


@rows(
    ("keys", "value"),
    [
        (("path", "filePath", "file-name", "ABSOLUTE_PATH", "target_file", "file", "filepath"), "README.md"),
        (("command", "cmd", "script", "shellCommand"), "echo hello from the demo model"),
        (("dir_path", "directory", "workdir", "cwd", "dir", "folder"), "."),
        (("city", "location", "place", "town"), "Paris"),
        (("query", "q", "text", "prompt", "message", "question", "input", "content", "task"), "demo"),
        (("description", "reason", "justification", "explanation", "why"), "The demo model tries its tools"),
        (("url", "uri", "link", "href"), "https://example.com/"),
        (("anything", ""), "demo"),
    ],
)
def test_a_text_is_what_its_key_asks_for(keys: tuple[str, ...], value: str) -> None:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in keys}}
    assert filled(schema) == dict.fromkeys(keys, value)


def test_a_schema_that_holds_itself_ends() -> None:
    tree: dict[str, Any] = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 2}},
                "required": ["kids"],
            }
        },
        "$ref": "#/$defs/node",
    }
    assert str(filled(tree)).count("kids") <= NODES_MAX
    loop: dict[str, Any] = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert filled(loop) == "demo"


def test_deep_lists_hold_only_what_they_must() -> None:
    def depth(given: dict[str, Any]) -> int:
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(DEPTH_MAX):
            schema = {"type": "array", "items": schema, **given}
        made, depth = filled(schema), 0
        while isinstance(made, list) and made:
            (made,), depth = made, depth + 1
        return depth

    assert depth({}) == DEPTH_MAX // 2
    assert depth({"minItems": 1}) == DEPTH_MAX


def test_a_huge_demand_is_not_met() -> None:
    made = filled({"type": "array", "items": {"type": "string", "minLength": 10**9}, "minItems": 10**9})
    assert [len(text) for text in made] == [4096] * 64


def test_what_a_prompt_offers_goes_to_every_field_that_asks_for_it() -> None:
    hints = Hints("/a/b.txt", "ls", "words", "Rome")
    expected = {
        "/a/b.txt": "path file_path filepath file filename file_name absolute_path target_file",
        "ls": "command cmd script shell_command",
        "/a": "dir_path directory workdir cwd dir folder",
        "Rome": "city location place town",
        "words": "query q text prompt message question input content task search answer",
        "The demo model tries its tools": "description reason justification explanation why",
        "https://example.com/": "url uri link href",
    }
    wanted = {key: value for value, keys in expected.items() for key in keys.split()}
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in wanted}}
    assert filled(schema, hints) == wanted


def test_names_with_slashes_and_tildes_are_referred_to_as_json_pointers_are() -> None:
    for name, pointer in (("a/b", "a~1b"), ("a~b", "a~0b"), ("~1", "~01")):
        assert filled({"$ref": f"#/$defs/{pointer}", "$defs": {name: {"const": 7}}}) == 7
