"""The tables of the fields that dialects have no place for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import msgspec
import pytest

import wireglot_core.dialects
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.ir import content, embedding, outcome, request, stream
from wireglot_core.ir.content import PHASE, CacheMark, Citation, Extra, Origin, Signature
from wireglot_core.ir.loss import Loss, feature_of
from wireglot_core.ir.outcome import Candidate
from wireglot_core.ir.request import Sampling
from wireglot_core.ir.stream import PartEnd, Start

FOLDER = Path(wireglot_core.dialects.__file__).parent
FAMILIES = sorted(path.parent.name for path in FOLDER.glob("*/dialect.py"))
ELSEWHERE: dict[type[Any], str] = {
    CacheMark: "it is written as a whole, or lost with what carries it",
    Candidate: "it is written as an answer is, or lost with the others",
    Citation: "what is kept of it depends on its kind",
    PartEnd: "its fields are those of the part that ends",
    Start: "its fields are repeated by `Finish`, or are those of an answer's head",
}
"""Structs that need no place in the tables, with the reason."""


def tables(family: str) -> list[LostFields]:
    package = import_module(f"wireglot_core.dialects.{family}")
    names = [f"{package.__name__}.{module.name}" for module in iter_modules(package.__path__)]
    found = [each for name in names for each in vars(import_module(name)).values()]
    return [each for each in found if isinstance(each, LostFields)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_field_of_the_neutral_form_is_carried_or_has_its_row(family: str) -> None:
    assert [name for table in tables(family) for name in table.uncovered()] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_struct_that_may_hold_fields_of_a_dialect_is_in_its_tables(family: str) -> None:
    neutral = [content, request, outcome, stream]
    if "embeddings.py" in [path.name for path in (FOLDER / family).iterdir()]:
        neutral.append(embedding)
    held: set[type[Any]] = {
        struct
        for module in neutral
        for struct in vars(module).values()
        if isinstance(struct, msgspec.StructMeta) and struct.__module__ == module.__name__
        if "extra" in struct.__struct_fields__
    }
    listed = {struct for table in tables(family) for struct in table.table}
    assert (held | {Sampling}) - listed - ELSEWHERE.keys() == set()


class Shape(msgspec.Struct):
    sides: int
    colour: str = ""
    filled: bool | None = None
    signature: Signature | None = None
    extra: Extra | None = None


SHAPES = LostFields(
    "ours",
    {
        Shape: Carries(
            "sides",
            extra="response.extra",
            colour=Lost("image", "approximated", "all are grey", usual=("grey",), whole=True),
            filled=Lost("image.detail", "dropped", "all are outlines", usual=(False,)),
            signature=Lost(feature_of, "dropped", "shapes prove nothing"),
        )
    },
)


def lost(shape: Shape) -> list[Loss]:
    losses: list[Loss] = []
    SHAPES.of(shape, "$.shape", losses)
    return losses


def test_fields_with_a_value_are_lost_in_the_order_of_their_rows_after_those_of_another_dialect() -> None:
    proof = Signature("x", Origin("theirs"))
    assert lost(Shape(3, "red", True, proof, Extra("theirs", {"angle": 9}))) == [
        Loss("$.shape.angle", "response.extra", "dropped", "theirs only"),
        Loss("$.shape", "image", "approximated", "all are grey"),
        Loss("$.shape.filled", "image.detail", "dropped", "all are outlines"),
        Loss("$.shape.signature", "reasoning.signature", "dropped", "shapes prove nothing"),
    ]


def test_what_is_lost_with_a_signature_depends_on_what_it_is() -> None:
    phase = Signature("commentary", Origin("theirs"), PHASE)
    assert [loss.feature for loss in lost(Shape(3, signature=phase))] == ["message.phase"]


@pytest.mark.parametrize(
    "shape", [Shape(3), Shape(4, "grey", False), Shape(5, extra=Extra("ours", {"angle": 9}))]
)
def test_defaults_usual_values_and_a_dialects_own_fields_are_no_loss(shape: Shape) -> None:
    assert lost(shape) == []


def test_a_new_field_and_a_row_of_no_field_are_uncovered() -> None:
    table = LostFields("ours", {Shape: Carries("sides size", colour=Lost("image", "dropped", "grey"))})
    assert table.uncovered() == ["Shape.filled", "Shape.signature", "Shape.size"]
