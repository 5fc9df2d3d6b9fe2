"""Chunking: any cutting of the bytes gives the same output bytes and losses."""

import pytest
from hypothesis import given

from tests.core.laws.cases import MAIN, all_hold, crossings, every_dialect, of_kind, recorded
from tests.tiers import rows
from wireglot_core import StreamTranslator
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.stream import Event
from wireglot_core.testing import codec_laws
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import every_cut
from wireglot_core.testing.strategies import event_streams


def translated(case: Case, target: DialectName, pieces: list[bytes]) -> tuple[bytes, list[object]]:
    translator = StreamTranslator(source=dialect_name(case.dialect), target=target)
    data = b"".join(translator.feed(piece) for piece in pieces) + translator.close()
    return data, list(translator.losses)


def cutting_does_not_show(case: Case, target: DialectName, random_cuts: int) -> None:
    whole, *others = every_cut(case.data, random_cuts)
    expected = translated(case, target, whole)
    for pieces in others:
        assert translated(case, target, pieces) == expected


@pytest.mark.sampled("case.dialect", "target", each=2)
@rows(("case", "target"), crossings("streams"))
def test_the_cutting_of_a_stream_does_not_show(case, target):
    cutting_does_not_show(case, target, 4)


@rows("case", of_kind("streams"))
def test_the_cutting_of_a_stream_does_not_change_its_events(case):
    codec_laws.cutting_does_not_change_events(dialect(case.dialect), case.data)


@every_dialect
def test_the_cutting_of_a_recorded_stream_does_not_show(name):
    def law(case: Case) -> None:
        if len(case.data) < 40_000:
            target = MAIN[len(case.id) % len(MAIN)]
            whole, by_byte, *_ = every_cut(case.data, 1)
            assert translated(case, dialect_name(target), whole) == translated(
                case, dialect_name(target), by_byte
            )

    all_hold(recorded(name, "streams", 40), law)


@every_dialect
@given(events=event_streams(failing=True))
def test_a_writer_gives_the_same_bytes_for_events_one_by_one(name, events: list[Event]):
    codec_laws.events_one_by_one_are_the_same_bytes(dialect(name), events)
