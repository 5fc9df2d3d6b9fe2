"""Grammar: every reader's events satisfy the grammar, on fixtures and on mutated fixtures."""

from zlib import crc32

import pytest

from tests.core.laws.cases import DEEP, all_hold, every_dialect, of_kind, recorded
from tests.core.laws.wires import ends_in
from tests.tiers import rows
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.stream import Failure
from wireglot_core.testing.check_dialect import bent_streams
from wireglot_core.testing.laws import ending, read_stream, write_stream


def streams_again(events):
    """Whatever a reader gives, every writer makes one legal stream of it."""
    failed = ending(events) is Failure
    for name in NAMES:
        end = ends_in(name, write_stream(dialect(name), events).value)
        assert end == "error" if failed else end != "nothing", f"{name} ends in {end}"


@rows("case", of_kind("streams"))
def test_events_follow_the_grammar(case):
    streams_again(read_stream(dialect(case.dialect), [case.data]))


@pytest.mark.sampled("case.dialect", each=2)
@rows("case", of_kind("streams"))
def test_events_of_a_bent_stream_follow_the_grammar(case):
    for data in bent_streams(case.data, 400 if DEEP else 40, crc32(case.id.encode())):
        streams_again(read_stream(dialect(case.dialect), [data]))


@every_dialect
def test_events_of_recorded_streams_follow_the_grammar(name):
    all_hold(recorded(name, "streams"), lambda case: streams_again(read_stream(dialect(name), [case.data])))
