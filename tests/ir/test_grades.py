"""Every loss has a grade, and a reason for it."""

import ast
from pathlib import Path
from typing import get_args

import pytest

import wireglot
from wireglot.ir.grades import GRADE_MEANINGS, GRADES, Grade, grade_of
from wireglot.ir.loss import Action, Feature, Loss, worst_first

SOURCE = Path(wireglot.__file__).parent


def _declared():
    """Every pair of feature and action that the code names in one place."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Loss" and len(node.args) >= 3:
                feature, action = node.args[1], node.args[2]
                if isinstance(feature, ast.Constant) and isinstance(action, ast.Constant):
                    yield feature.value, action.value, f"{file.name}:{node.lineno}"


def test_every_feature_is_graded():
    """[X25] A feature that nobody has judged is not added: its row in `GRADES` comes with it."""
    judged = {feature for feature, _ in GRADES}
    assert judged == set(get_args(Feature))


def test_every_loss_that_the_code_declares_is_judged():
    """[X25] By its own row, not by the rule for what nobody thought of."""
    missing = [(f, a, place) for f, a, place in _declared() if (f, a) not in GRADES]
    assert missing == [], "add a row to GRADES in ir/grades.py"


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
        "in": "request",
        "feature": "sampling.seed",
        "action": "dropped",
        "grade": "degraded",
        "detail": "no such parameter",
    }
