"""Identity: in the same dialect `render(parse(x)) == x`, unknown fields included."""

import re
from copy import deepcopy

import pytest
from msgspec.structs import replace

from tests.corpus import Case
from tests.laws.cases import all_hold, every_dialect, of_kind, recorded
from tests.laws.wires import same_spelling
from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.ir.outcome import Response
from wireglot.ir.stream import Finish, fold
from wireglot.testing.canonical import canonical_response
from wireglot.testing.laws import differences, ending, opened, read_stream, write_stream

CONTEXT = Context()
_UPSTREAMS_FAULT = frozenset({"tool_call.id", "tool_call.arguments", "stop_reason"})
"""What a stream may have that its own dialect forbids: illegal ids, broken arguments, no reason for its end."""


def request_comes_back(case: Case) -> None:
    codec = dialect(case.dialect)
    before = deepcopy(case.body)
    rendered = codec.render_request(codec.parse_request(case.body, CONTEXT), CONTEXT)
    assert case.body == before, "the input was changed"
    assert rendered.losses == ()
    want, got = (same_spelling(case.dialect, body) for body in (case.body, rendered.value))
    assert not differences(want, got)


def response_comes_back(case: Case) -> None:
    codec = dialect(case.dialect)
    if codec.parse_error(case.body) is not None:
        return  # an error with status 200
    before = deepcopy(case.body)
    rendered = codec.render_response(codec.parse_response(case.body, CONTEXT), CONTEXT)
    assert case.body == before, "the input was changed"
    assert rendered.losses == ()
    want, got = (same_spelling(case.dialect, body) for body in (case.body, rendered.value))
    assert not differences(want, got)


def error_comes_back(case: Case) -> None:
    codec = dialect(case.dialect)
    error = codec.parse_error(case.body, case.status)
    assert error is not None
    if isinstance(case.body, dict) and "error" not in case.body:
        return  # a proxy's own form, which clients of the dialect would not understand
    assert not differences(case.body, codec.render_error(error, CONTEXT).value)


def stream_comes_back(case: Case) -> None:
    codec = dialect(case.dialect)
    events = read_stream(codec, [case.data])
    written = write_stream(codec, events)
    again = read_stream(codec, [written.value])
    assert ending(again) is ending(events)
    if ending(events) is Finish:
        before, after = fold(events), fold(again)
        assert not [loss for loss in written.losses if loss.feature not in _UPSTREAMS_FAULT]
        if not before.stop.raw:  # it never said why it stopped
            after = replace(after, stop=before.stop)
        if after.id.endswith(before.id):  # some hosts give none, or one without the prefix clients look for
            after = replace(after, id=before.id)
        found = differences(spoken(before), spoken(after))
        # Kimi's ids (`functions.Bash:0`) are not legal on the wire they come from; clients get legal ones.
        # Arguments that break off midway are closed, with the raw text inside, and that is declared.
        bent = {loss.feature for loss in written.losses}
        allowed = r"\]\.id: '[^']*[.:][^']*' !="
        if "tool_call.arguments" in bent:
            allowed += r"|\]\.arguments: .* != .*_raw"
        assert not [line for line in found if not re.search(allowed, line, re.DOTALL)]


def spoken(response: Response) -> tuple[object, ...]:
    """The content as it counts, and the addresses and raw words that equality forgives between dialects."""
    whole = opened(response)
    return canonical_response(whole), whole.id, whole.model, whole.created, whole.stop.raw


@pytest.mark.parametrize("case", of_kind("requests"))
def test_a_request_comes_back_as_it_was(case):
    request_comes_back(case)


@pytest.mark.parametrize("case", of_kind("responses"))
def test_a_response_comes_back_as_it_was(case):
    response_comes_back(case)


@pytest.mark.parametrize("case", of_kind("errors"))
def test_an_error_comes_back_as_it_was(case):
    error_comes_back(case)


@pytest.mark.parametrize("case", of_kind("streams"))
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
