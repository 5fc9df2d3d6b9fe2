"""Losses that are alike are reported as one."""

from __future__ import annotations

from wireglot_core.ir.loss import Loss, LossGroup, grouped, sum_of


def lost(path: str, detail: str = "none of the target's") -> Loss:
    return Loss(path, "reasoning.signature", "dropped", detail)


def test_what_differs_in_its_place_only_is_one_with_a_count() -> None:
    signatures = [lost(f"$.messages[{turn}].content[0].signature") for turn in range(1, 9, 2)]
    seed = Loss("$.seed", "sampling.seed", "dropped")
    group, other = grouped([signatures[0], seed, *signatures[1:]])
    assert group.told() == {
        "path": "$.messages[*].content[0].signature",
        "feature": "reasoning.signature",
        "action": "dropped",
        "detail": "none of the target's",
        "grade": signatures[0].grade,
        "document": "request",
        "count": 4,
    }
    assert other is seed
    assert sum_of([group, other]) == 5


def test_the_same_at_the_same_place_keeps_its_path() -> None:
    (group,) = grouped([lost("$.messages[1].content[0]")] * 3)
    assert isinstance(group, LossGroup)
    assert (group.path, group.count) == ("$.messages[1].content[0]", 3)


def test_what_differs_in_anything_else_is_reported_by_itself() -> None:
    losses = [
        lost("$.messages[1].content[0]"),
        lost("$.messages[2].content[0]", "another reason"),
        lost("$.messages[3].content[0].signature"),
        Loss("$.messages[4].content[0]", "reasoning.signature", "approximated", "none of the target's"),
        Loss("$.messages[5].content[0]", "reasoning.text", "dropped", "none of the target's"),
        Loss(
            "$.messages[6].content[0]", "reasoning.signature", "dropped", "none of the target's", "response"
        ),
    ]
    assert grouped(losses) == losses
    assert grouped(losses[:1]) == losses[:1]
    assert grouped([]) == []


def test_a_key_that_looks_like_a_place_of_many_is_none() -> None:
    """Keys are clients' words."""
    losses = [lost('$["[*]"]'), lost('$["[3]"]')]
    assert grouped(losses) == losses
