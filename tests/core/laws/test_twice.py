"""Twice: translating the same request twice gives equal bytes, and leaves the request as it was."""

from copy import deepcopy

import pytest

from tests.core.laws.cases import PAIRS, all_hold, crossings, recorded
from tests.tiers import rows
from wireglot_core import Unsupported, translate_request, translate_response
from wireglot_core.dialects.registry import NAMES, DialectName, dialect_name
from wireglot_core.testing.check_dialect import Case
from wireglot_core.wire.json import encode


def twice_is_equal(case: Case, target: DialectName) -> None:
    before = deepcopy(case.body)
    try:
        first = translate_request(case.body, source=dialect_name(case.dialect), target=target)
    except Unsupported:
        return
    second = translate_request(case.body, source=dialect_name(case.dialect), target=target)
    assert encode(first.value) == encode(second.value)
    assert first.losses == second.losses
    assert case.body == before, "the input was changed"


@pytest.mark.sampled("case.dialect", "target", each=3)
@rows(("case", "target"), crossings("requests"))
def test_a_request_translated_twice_gives_equal_bytes(case, target):
    """R-DE-17"""
    twice_is_equal(case, target)


@pytest.mark.sampled("case.dialect", "target", each=3)
@rows(("case", "target"), crossings("responses"))
def test_a_response_translated_twice_gives_equal_bytes(case, target):
    first, second = (translate_response(case.body, source=case.dialect, target=target) for _ in range(2))
    assert encode(first.value) == encode(second.value)


@rows(("source", "target"), [*PAIRS, *((name, name) for name in NAMES)])
def test_recorded_requests_translated_twice_give_equal_bytes(source, target):
    all_hold(recorded(source, "requests", 30), lambda case: twice_is_equal(case, target))
