"""Every loss has a grade, and a reason for it."""

from typing import get_args

from tests.tiers import rows
from wireglot_core.ir.content import Extra, Origin, Signature
from wireglot_core.ir.grades import GRADE_MEANINGS, GRADES, Grade, grade_of
from wireglot_core.ir.loss import (
    FEATURES,
    Action,
    Feature,
    Loss,
    feature_of,
    is_blank,
    losses_of_extra,
    worst_first,
)


def test_the_table_is_well_formed():
    for (feature, action), (grade, reason) in GRADES.items():
        assert action in get_args(Action), feature
        assert grade in get_args(Grade), feature
        assert reason[0].isupper(), reason
        assert reason.endswith("."), reason
    assert tuple(GRADE_MEANINGS) == get_args(Grade)


@rows("action", get_args(Action))
@rows("feature", get_args(Feature))
def test_whatever_happens_to_a_feature_has_a_grade(feature, action):
    """[X25] Totality: also what no code declares yet."""
    grade, reason = grade_of(feature, action)
    assert grade in get_args(Grade)
    assert reason
    assert Loss("$", feature, action).grade == grade


def test_what_an_extension_names_itself_is_taken_seriously():
    assert grade_of("acme.whistle", "dropped")[0] == "serious"
    assert grade_of("acme.whistle", "emulated")[0] == "harmless"


@rows("feature", ["cache_key", "cache_marker", "service_tier"])
@rows("action", get_args(Action))
def test_what_only_costs_money_or_time_is_harmless(feature, action):
    assert grade_of(feature, action)[0] == "harmless"


def test_serious_ones_come_first():
    """[X25] And those of one grade stay in their order."""
    harmless = Loss("$.user", "user", "dropped")
    degraded = Loss("$.seed", "sampling.seed", "dropped")
    serious = Loss("$.tools[0]", "hosted_tool", "dropped")
    other = Loss("$.tools[1]", "tool.custom", "dropped")
    assert worst_first([harmless, degraded, serious, other]) == [serious, other, degraded, harmless]


def test_a_loss_is_reported_with_its_grade_and_its_document():
    loss = Loss("$.seed", "sampling.seed", "dropped", "no such parameter")
    assert loss.as_dict() == {
        "path": "$.seed",
        "feature": "sampling.seed",
        "action": "dropped",
        "detail": "no such parameter",
        "grade": "degraded",
        "document": "request",
    }


def test_every_feature_is_known_to_both_tables_and_no_other_is():
    """A policy or a page that names a feature finds it in both."""
    assert set(FEATURES) == set(get_args(Feature))
    assert {feature for feature, _ in GRADES} <= set(FEATURES)
    for said in (*FEATURES.values(), *(reason for _, reason in GRADES.values())):
        assert said[0].isupper(), said
        assert said.endswith("."), said


def test_what_nobody_has_judged_is_as_bad_as_dropping_it():
    """A bend that the table does not name: what is turned back or demanded harms nobody, the rest might."""
    for feature in get_args(Feature):
        for action in get_args(Action):
            if (feature, action) in GRADES:
                assert grade_of(feature, action) == GRADES[feature, action]
            elif action in ("emulated", "invented"):
                assert grade_of(feature, action)[0] == "harmless"
            elif (feature, "dropped") in GRADES:
                assert grade_of(feature, action) == GRADES[feature, "dropped"]
            else:
                assert grade_of(feature, action)[0] == "serious"
    assert grade_of("acme.whistle", "approximated")[0] == "serious"
    assert grade_of("acme.whistle", "invented")[0] == "harmless"
    assert all(
        reason.endswith(".") for _, reason in (grade_of("acme", action) for action in get_args(Action))
    )


def test_a_loss_gives_the_reason_of_its_grade():
    assert Loss("$", "user", "dropped").reason == GRADES["user", "dropped"][1]


def test_the_name_of_a_phase_is_no_proof_of_origin():
    assert feature_of(Signature("commentary", Origin("openai-responses"), "phase")) == "message.phase"
    assert feature_of(Signature("x", Origin("openai-responses"), "rs_1")) == "reasoning.signature"


def test_fields_of_another_dialect_are_declared_where_they_say_something():
    extra = Extra("acme", {"a": 1, "usage.b": 2, "c": None, "d": False, "e": 0, "f": "", "g": [], "h": {}})
    losses: list[Loss] = []
    losses_of_extra(extra, "chat", "$.x", losses)
    assert losses == [
        Loss("$.x.a", "unknown_field", "dropped", "acme only"),
        Loss("$.x.usage.b", "usage.detail", "dropped", "acme only"),
    ]
    losses.clear()
    losses_of_extra(extra, "acme", "$.x", losses)
    losses_of_extra(None, "chat", "$.x", losses)
    assert losses == []
    losses_of_extra(extra, "chat", "$", losses, "response.extra")
    assert [loss.feature for loss in losses] == ["response.extra", "usage.detail"]


@rows("value", [None, False, 0, 0.0, "", [], {}])
def test_what_is_blank_says_nothing(value):
    assert is_blank(value)


@rows("value", [True, 1, -1, "0", " ", [None], {"a": None}])
def test_what_says_something_is_not_blank(value):
    assert not is_blank(value)
