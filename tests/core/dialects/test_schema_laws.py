"""What must hold for any schema and any target."""

import copy
import json
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from tests.core.dialects.schema_checks import check
from tests.core.dialects.schema_strategies import GARBAGE, GOOD_ROOTS, ROOTS, VALUES
from tests.core.dialects.schema_validator import Validator, without_nullable
from tests.tiers import rows
from wireglot_core.dialects.schema import SchemaTarget, infer_type, object_root, project

TARGETS: tuple[SchemaTarget, ...] = get_args(SchemaTarget)


@rows("target", TARGETS)
@given(schema=ROOTS)
def test_only_what_the_target_takes_comes_out(target: SchemaTarget, schema: Any) -> None:
    """R-DB-09, R-DB-10, R-DB-11"""
    check(project(schema, target), target)


@rows("target", TARGETS)
@given(schema=GARBAGE)
def test_garbage_never_raises_and_still_comes_out_valid(target: SchemaTarget, schema: Any) -> None:
    check(project(schema, target), target)


@rows("target", TARGETS)
@given(schema=ROOTS)
def test_the_input_is_not_mutated(target: SchemaTarget, schema: Any) -> None:
    before = copy.deepcopy(schema)
    project(schema, target)
    object_root(schema)
    infer_type(schema)
    assert json.dumps(schema) == json.dumps(before)


@rows("target", TARGETS)
@given(schema=ROOTS)
def test_what_is_called_the_same_is_the_same(target: SchemaTarget, schema: Any) -> None:
    projected = project(schema, target)
    assert projected.same == (projected.schema == schema)


@rows("target", TARGETS)
@given(schema=ROOTS)
def test_projecting_twice_changes_nothing_more(target: SchemaTarget, schema: Any) -> None:
    once = project(schema, target)
    twice = project(once.schema, target)
    assert twice.schema == once.schema
    assert {note.keyword for note in twice.notes} <= {note.keyword for note in once.notes}


@rows("target", [target for target in TARGETS if target != "json-schema"])
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


ANY_VALUES: tuple[Any, ...] = (None, "a", "bb", 1, 5, True, False, 1.5, [])
ENUMS: list[Any] = [
    {"enum": values, **more}
    for values in (
        ["a", None, "bb"],
        [1, None, 5],
        ["a", 1, True, None],
        [None],
        [True, False, None],
        ["a", "bb"],
    )
    for more in (
        {},
        {"minLength": 2},
        {"maximum": 3},
        {"type": ["string", "null"]},
        {"type": ["string", "integer", "null"], "minLength": 2},
        {"type": ["string", "null"], "anyOf": [{"minLength": 2}, {"type": "null"}]},
        {"anyOf": [{"minLength": 2}, {"type": "null"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "minLength": 2, "title": "t"},
    )
]


@rows("target", [target for target in TARGETS if target != "json-schema"])
@rows("inner", ENUMS)
def test_the_same_values_fit_an_enum_with_null_unless_a_note_says_otherwise(
    target: SchemaTarget, inner: Any
) -> None:
    schema = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    projected = project(schema, target)
    if any(note.path.startswith("$.properties") for note in projected.notes):
        return
    out = without_nullable(projected.schema)
    for value in ANY_VALUES:
        fits = Validator(out).fits({"a": value}, out)
        assert fits == Validator(schema).fits({"a": value}, schema), (value, projected.schema)


@given(schema=ROOTS)
def test_an_object_root_is_an_object_and_stays_one(schema: Any) -> None:
    wrapped, _ = object_root(schema)
    again, twice = object_root(wrapped)
    assert again == wrapped
    assert not twice
