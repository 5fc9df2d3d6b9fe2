"""Truncation: a stream cut anywhere ends in an error or is complete; never a silent stop."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.corpus import Case
from tests.laws.cases import all_hold, every_dialect, of_kind, recorded
from tests.laws.wires import ends_in
from wireglot import StreamTranslator
from wireglot.dialects.registry import NAMES, dialect
from wireglot.ir.stream import Failure, Finish, StreamFailed, fold
from wireglot.testing.laws import differences, ending, read_stream

_SHORT = 700


def places(data: bytes, more: int) -> Iterator[int]:
    """Every byte of a short stream and of the last part of a long one, and some places in between."""
    yield from range(max(0, len(data) - _SHORT), len(data))
    random = Random(len(data))
    for _ in range(more):
        yield random.randrange(len(data))


def cut_is_noticed(case: Case, more: int) -> None:
    codec = dialect(case.dialect)
    try:
        whole = fold(read_stream(codec, [case.data])).content
    except StreamFailed:
        whole = None
    for at in places(case.data, more):
        events = read_stream(codec, [case.data[:at]])
        if ending(events) is Finish:
            assert whole is not None, f"cut at {at}: finished, though the whole stream fails"
            assert not differences(fold(events).content, whole), f"cut at {at}"


@pytest.mark.parametrize("case", of_kind("streams"))
def test_a_cut_stream_is_an_error_or_complete(case):
    """R-DC-07"""
    cut_is_noticed(case, 60)


@every_dialect
def test_a_cut_recorded_stream_is_an_error_or_complete(name):
    def law(case: Case) -> None:
        codec = dialect(name)
        random = Random(case.id)
        for at in (len(case.data) // 2, random.randrange(len(case.data) + 1)):
            ending(read_stream(codec, [case.data[:at]]))

    all_hold(recorded(name, "streams"), law)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("case", of_kind("streams"))
def test_what_the_client_gets_of_a_cut_stream_has_an_end(case, target):
    """R-DC-07"""
    random = Random(case.id)
    for at in (0, 1, len(case.data) // 2, *(random.randrange(len(case.data)) for _ in range(6))):
        translator = StreamTranslator(source=case.dialect, target=target)
        data = translator.feed(case.data[:at]) + translator.close()
        events = read_stream(dialect(case.dialect), [case.data[:at]])
        expected = {"error"} if ending(events) is Failure else {"complete", "error"}
        assert ends_in(target, data) in expected, f"cut at {at}"
