"""Ways to cut bytes: what a stream codec gives must not depend on how its input arrives."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random

# Up to this size every cut into two pieces is tried; above it only some.
_SHORT = 400


def cut_at(data: bytes, offsets: Iterable[int]) -> list[bytes]:
    """The pieces between those offsets, which may be unordered, repeated (an empty piece) or out of range."""
    inside = sorted(min(max(offset, 0), len(data)) for offset in offsets)
    return [data[start:end] for start, end in pairwise([0, *inside, len(data)])]


def every_cut(data: bytes, random_cuts: int = 8, seed: int = 0) -> Iterator[list[bytes]]:
    """Whole, byte by byte, in two at each place (if short), and at random, the same each time.

    >>> for pieces in every_cut(recorded):
    ...     assert read_all(pieces) == expected
    """
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    if len(data) <= _SHORT:
        for at in range(1, len(data)):
            yield cut_at(data, [at])
    random = Random(seed)
    for _ in range(random_cuts):
        count = random.randint(1, max(1, min(len(data), 40)))
        yield cut_at(data, [random.randint(0, len(data)) for _ in range(count)])
