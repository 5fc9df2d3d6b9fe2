"""Fold: a stream amounts to the response it would have been, and unfolding is the way back."""

from hypothesis import given
from msgspec.structs import replace

from tests.core.laws.cases import FIXTURES
from tests.tiers import rows
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.stream import check, fold, unfold
from wireglot_core.testing import codec_laws
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.testing.strategies import event_streams, responses


def twins() -> list[tuple[Case, Case]]:
    def stem(case: Case) -> str:
        return case.id.rpartition("/")[2].partition(".")[0]

    return [
        (stream, response)
        for name in NAMES
        for stream in fixtures(FIXTURES, name, "streams")
        for response in fixtures(FIXTURES, name, "responses")
        if stem(stream) == stem(response)
    ]


@given(responses())
def test_unfolding_and_folding_gives_the_response_back(response):
    alone = replace(response, others=())  # a stream has one candidate
    assert fold(check(unfold(alone))) == alone


@given(event_streams())
def test_cutting_and_interleaving_deltas_does_not_change_what_they_fold_to(events):
    again = list(unfold(fold(check(events))))
    assert fold(again) == fold(events)


@rows(("stream", "response"), twins(), ids=lambda case: case.id)
def test_a_stream_folds_to_its_unary_twin(stream, response):
    """R-DC-01"""
    codec_laws.stream_folds_to_its_twin(dialect(stream.dialect), stream.data, response.body)


def test_every_main_dialect_has_twins():
    assert {stream.dialect for stream, _ in twins()} == set(NAMES)
