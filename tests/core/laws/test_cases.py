"""Which dialects the laws try with which."""

from itertools import permutations

from tests.core.laws.cases import MAIN, MAIN_PAIRS, PAIRS, crossings, of_kind, partners
from wireglot_core.dialects.registry import NAMES, surface


def test_in_full_every_dialect_meets_every_other():
    pairs = [(name, other) for name in NAMES for other in partners(name, whole=True)]
    assert sorted(pairs) == sorted(permutations(NAMES, 2))


def test_otherwise_the_main_ones_meet_each_other_and_a_further_one_meets_two_of_them():
    met = {name: partners(name, whole=False) for name in NAMES}
    pairs = {(name, other) for name in NAMES for other in met[name]}
    assert set(MAIN_PAIRS) <= pairs
    assert pairs == {(other, name) for name, other in pairs}, "both directions"
    for name in set(NAMES) - set(MAIN):
        assert len(set(met[name])) == 2
        assert set(met[name]) < set(MAIN)
        assert {other for other in MAIN if surface(other).family == surface(name).family} <= set(met[name])


def test_the_pairs_of_laws_are_those_of_partners():
    assert {(name, other) for name in NAMES for other in partners(name)} == set(PAIRS)
    crossed = {(case.values[0].dialect, case.values[1]) for case in crossings("requests")}
    assert crossed == {*PAIRS, *((name, name) for name in NAMES)}
    assert {case.values[0].id for case in crossings("requests")} == {
        case.values[0].id for case in of_kind("requests")
    }
