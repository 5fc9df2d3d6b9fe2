"""Words are found by their rare letter wherever `in` finds them."""

from hypothesis import example, given
from hypothesis import strategies as st

from wireglot_core.wire.search import holds_any, holds_rare

WORD = b'"V0cx'
pieces = st.lists(
    st.sampled_from([WORD, WORD[:-1], WORD[1:], b"V", b"V" * 90, b'"', b"x", b"text "]), max_size=30
)


@given(pieces.map(b"".join))
@example(b"V" * 64 + WORD)
@example(b"V" * 65 + WORD)
@example(WORD[1:])
@example(b"V")
def test_a_word_is_found_by_its_capital_letter_wherever_it_stands(data):
    assert holds_rare(data, WORD) == (WORD in data)


@given(st.binary(), st.binary(min_size=1, max_size=3))
@example(b"abc", b"ab")
@example(b"abc", b"bc")
@example(b"Vxy", b"Vx")
@example(b"xVxy", b"Vx")
def test_any_word_is_found_in_any_bytes(data, word):
    assert holds_rare(data, word) == (word in data)
    assert holds_any(data, (b"\x00\x01\x02", word)) == (b"\x00\x01\x02" in data or word in data)
