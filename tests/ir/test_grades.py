"""Every loss has a grade, and a reason for it."""

from typing import get_args

import pytest

from wireglot.ir.grades import GRADE_MEANINGS, GRADES, Grade, grade_of
from wireglot.ir.loss import Action, Feature, Loss, worst_first


def test_the_table_is_well_formed():
    for (feature, action), (grade, reason) in GRADES.items():
        assert action in get_args(Action), feature
        assert grade in get_args(Grade), feature
        assert reason[0].isupper(), reason
        assert reason.endswith("."), reason
    assert tuple(GRADE_MEANINGS) == get_args(Grade)


@pytest.mark.parametrize("action", get_args(Action))
@pytest.mark.parametrize("feature", get_args(Feature))
def test_whatever_happens_to_a_feature_has_a_grade(feature, action):
    """[X25] Totality: also what no code declares yet."""
    grade, reason = grade_of(feature, action)
    assert grade in get_args(Grade)
    assert reason
    assert Loss("$", feature, action).grade == grade


def test_what_an_extension_names_itself_is_taken_seriously():
    assert grade_of("acme.whistle", "dropped")[0] == "serious"
    assert grade_of("acme.whistle", "emulated")[0] == "harmless"


def test_serious_ones_come_first():
    """[X25] And those of one grade stay in their order."""
    harmless = Loss("$.user", "user", "dropped")
    degraded = Loss("$.seed", "sampling.seed", "dropped")
    serious = Loss("$.tools[0]", "hosted_tool", "dropped")
    other = Loss("$.tools[1]", "tool.custom", "dropped")
    assert worst_first([harmless, degraded, serious, other]) == [serious, other, degraded, harmless]


def test_a_loss_is_told_with_its_grade_and_its_document():
    loss = Loss("$.seed", "sampling.seed", "dropped", "no such parameter")
    assert loss.told() == {
        "path": "$.seed",
        "feature": "sampling.seed",
        "action": "dropped",
        "detail": "no such parameter",
        "grade": "degraded",
        "document": "request",
    }
