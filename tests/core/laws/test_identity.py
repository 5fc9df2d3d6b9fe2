"""Identity: in the same dialect `render(parse(x)) == x`, unknown fields included."""

from functools import partial

from tests.core.laws.cases import all_hold, every_dialect, of_kind, recorded
from tests.core.laws.wires import same_spelling
from tests.tiers import rows
from wireglot_core.dialects.registry import dialect
from wireglot_core.testing import codec_laws
from wireglot_core.testing.check_dialect import Case


def request_comes_back(case: Case) -> None:
    codec_laws.request_comes_back(dialect(case.dialect), case.body, partial(same_spelling, case.dialect))


def response_comes_back(case: Case) -> None:
    codec_laws.response_comes_back(dialect(case.dialect), case.body, partial(same_spelling, case.dialect))


def error_comes_back(case: Case) -> None:
    codec_laws.error_comes_back(dialect(case.dialect), case.body, case.status)


def stream_comes_back(case: Case) -> None:
    codec_laws.stream_comes_back(dialect(case.dialect), case.data)


@rows("case", of_kind("requests"))
def test_a_request_comes_back_as_it_was(case):
    request_comes_back(case)


@rows("case", of_kind("responses"))
def test_a_response_comes_back_as_it_was(case):
    response_comes_back(case)


@rows("case", of_kind("errors"))
def test_an_error_comes_back_as_it_was(case):
    error_comes_back(case)


@rows("case", of_kind("streams"))
def test_a_stream_written_again_reads_the_same(case):
    """R-DE-16"""
    stream_comes_back(case)


@every_dialect
def test_recorded_requests_come_back_as_they_were(name):
    all_hold(recorded(name, "requests"), request_comes_back)


@every_dialect
def test_recorded_responses_come_back_as_they_were(name):
    all_hold(recorded(name, "responses"), response_comes_back)


@every_dialect
def test_recorded_errors_come_back_as_they_were(name):
    all_hold(recorded(name, "errors"), error_comes_back)


@every_dialect
def test_recorded_streams_written_again_read_the_same(name):
    all_hold(recorded(name, "streams", 60), stream_comes_back)
