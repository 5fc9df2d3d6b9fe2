from hypothesis import given
from hypothesis import strategies as st

from wireglot_core.testing.laws import cut_at, every_cut


@given(st.binary(max_size=600), st.integers(0, 3))
def test_the_pieces_are_always_the_whole(data, seed):
    cuts = list(every_cut(data, seed=seed))
    assert all(b"".join(pieces) == data for pieces in cuts)
    assert cuts[0] == [data]
    assert all(len(piece) == 1 for piece in cuts[1])
    assert cuts == list(every_cut(data, seed=seed))


def test_offsets_may_be_wild():
    assert cut_at(b"abc", [9, 1, 1, -5]) == [b"", b"a", b"", b"bc", b""]
