"""The page of deliberate defects: the newest sample of a package beside all of them."""

from proofs.mutants.results import _cells
from tests.tiers import rows

FIRST = {"made": 10, "noticed": 5, "day": "2026-11-17"}


@rows(
    ("samples", "cells"),
    [
        ({}, ("not measured", "", "", "")),
        ({"1": FIRST}, ("5 of 10", "50 %", "2026-11-17", "5 of 10 (50 %) in 1")),
        (
            {"1": FIRST, "2": {**FIRST, "noticed": 9}},
            ("9 of 10", "90 %", "2026-11-17", "14 of 20 (70 %) in 2"),
        ),
        (
            {"10": FIRST, "9": {**FIRST, "noticed": 9}},
            ("5 of 10", "50 %", "2026-11-17", "14 of 20 (70 %) in 2"),
        ),
        (
            {"1": {**FIRST, "noticed": 9, "time": "10:00"}, "2": {**FIRST, "time": "09:59"}},
            ("9 of 10", "90 %", "2026-11-17", "14 of 20 (70 %) in 2"),
        ),
        (
            {
                "1": {**FIRST, "noticed": 9, "day": "2026-11-18", "time": "00:01"},
                "2": {**FIRST, "time": "09:59"},
            },
            ("9 of 10", "90 %", "2026-11-18", "14 of 20 (70 %) in 2"),
        ),
    ],
    ids=["none", "one", "by seed", "seeds are numbers", "by time", "by day"],
)
def test_the_newest_sample_and_the_sum_of_all(samples, cells):
    assert _cells(samples) == cells
