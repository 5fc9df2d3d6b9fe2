"""Truncation: a stream cut anywhere ends in an error or is complete; never a silent stop."""

from random import Random

import pytest

from tests.core.laws.cases import all_hold, crossings, every_dialect, of_kind, recorded
from tests.core.laws.wires import ends_in
from tests.tiers import rows
from wireglot_core import StreamTranslator
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import Failure
from wireglot_core.testing import codec_laws
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import ending, read_stream


@pytest.mark.sampled("case.dialect")
@rows("case", of_kind("streams"))
def test_a_cut_stream_is_an_error_or_complete(case):
    """R-DC-07"""
    codec_laws.cut_is_noticed(dialect(case.dialect), case.data)


@every_dialect
def test_a_cut_recorded_stream_is_an_error_or_complete(name):
    def law(case: Case) -> None:
        codec = dialect(name)
        random = Random(case.id)
        for at in (len(case.data) // 2, random.randrange(len(case.data) + 1)):
            ending(read_stream(codec, [case.data[:at]]))

    all_hold(recorded(name, "streams"), law)


@pytest.mark.sampled("case.dialect", "target", each=3)
@rows(("case", "target"), crossings("streams"))
def test_what_the_client_gets_of_a_cut_stream_has_an_end(case, target):
    """R-DC-07"""
    random = Random(case.id)
    for at in (0, 1, len(case.data) // 2, *(random.randrange(len(case.data)) for _ in range(6))):
        translator = StreamTranslator(source=case.dialect, target=target)
        data = translator.feed(case.data[:at]) + translator.close()
        events = read_stream(dialect(case.dialect), [case.data[:at]])
        expected = {"error"} if ending(events) is Failure else {"complete", "error"}
        assert ends_in(target, data) in expected, f"cut at {at}"
