"""Words looked for in bytes, as quickly as it goes.

`word in data` takes the word for a number first and makes an error of that each time, which costs more than
to look through a kilobyte. `number in data` and `find` of a single letter look at 32 bytes at once, `find` of
a word at one or two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_MAX_HOPS: Final = 64
"""From letter to letter, before it is taken for one that is not rare here: each hop costs as much as to look
through 100 bytes for the word."""


def holds_any(data: bytes, words: tuple[bytes, ...]) -> bool:
    for word in words:  # noqa: SIM110 - a generator would cost more than the search
        if data.find(word) >= 0:
            return True
    return False


def holds_rare(data: bytes, word: bytes) -> bool:
    """Whether the word stands there. It is looked for by its first capital letter, where it has one: few
    texts have many of one."""
    place = _capital(word)
    if place < 0:
        return data.find(word) >= 0
    letter = word[place : place + 1]
    at = data.find(letter, place)
    for _ in range(_MAX_HOPS):
        if at < 0:
            return False
        if data.startswith(word, at - place):
            return True
        at = data.find(letter, at + 1)
    return at >= 0 and data.find(word, at - place) >= 0


@lru_cache(maxsize=64)
def _capital(word: bytes) -> int:
    """Where the first capital letter stands, -1 where there is none."""
    return next((at for at, letter in enumerate(word) if 65 <= letter <= 90), -1)
