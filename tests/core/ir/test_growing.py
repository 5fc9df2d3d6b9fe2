"""What grows by words, as streams do."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.content import Text
from wireglot_core.ir.stream import Delta, Event, Folding, GrowingText, PartStart, Start

WORDS = 20_000
WORD = "{:05d} "


@given(st.lists(st.text(max_size=3), max_size=300))
def test_it_is_all_that_was_added(words: list[str]) -> None:
    text = GrowingText()
    for word in words:
        text.add(word)
    assert str(text) == "".join(words)


def held_bytes(take, events: list[Event]) -> int:
    """What is held more after many words than before."""
    take(events)
    tracemalloc.start()
    try:
        for number in range(WORDS):
            take([Delta(0, WORD.format(number))])
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


OPENED: list[Event] = [Start("id", "model"), PartStart(0, Text(""))]
MOST = WORDS * len(WORD.format(0)) * 2
"""Twice what was said; a list of words takes ten times."""


def test_an_answer_that_is_collected_takes_little_more_memory_than_its_words() -> None:
    assert held_bytes(Folding().add, OPENED) < MOST


@pytest.mark.sampled(each=4)
@rows("name", NAMES)
def test_a_writer_holds_little_more_than_the_words_of_its_stream(name) -> None:
    writer = dialect(name).stream_writer(Context(), None)
    assert held_bytes(writer.write, OPENED) < MOST
