"""The small reader of expressions finds what they name, and refuses what it does not know."""

from __future__ import annotations

import pytest

from tests.tiers import rows
from tools.monitoring.promql import named


@rows(
    ("expression", "metrics", "labels"),
    [
        ("a", {"a": set()}, None),
        ('a{x="1", y=~"a|}b"} == 0', {"a": {"x", "y"}}, None),
        ('sum by (x) (rate(a{y!=""}[5m])) > 0.5', {"a": {"x", "y"}}, {"x"}),
        ("sum (a) / sum (b)", {"a": set(), "b": set()}, set()),
        ("topk(10, 3600 * sum by (x, z) (rate(a[$__rate_interval])))", {"a": {"x", "z"}}, {"x", "z"}),
        ("histogram_quantile(0.9, sum by (le) (a_bucket))", {"a_bucket": {"le"}}, {"le"}),
        (
            "sum by (j, f) (a) / on (j) group_left () sum by (j) (b)",
            {"a": {"j", "f"}, "b": {"j"}},
            {"j", "f"},
        ),
        ("time() - max by (i) (a)", {"a": {"i"}}, {"i"}),
        ("(sum (a) or vector(0)) / sum (b)", {"a": set(), "b": set()}, set()),
    ],
)
def test_metrics_and_labels_are_found(
    expression: str, metrics: dict[str, set[str]], labels: set[str] | None
) -> None:
    assert named(expression) == (metrics, labels)


def test_a_function_that_is_not_known_is_taken_for_a_metric_nobody_has() -> None:
    assert "deriv" in named("deriv(a[5m])").metrics


@pytest.mark.parametrize("expression", ["a # b", "sum by (x (a)", "a{x='1'}"])
def test_what_is_not_understood_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"not understood|not closed"):
        named(expression)
