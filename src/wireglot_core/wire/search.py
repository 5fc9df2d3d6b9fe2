"""Fast search for words in bytes.

`word in data` first tries to read the word as a number and raises an error internally each time, which costs
more than scanning a kilobyte. `number in data` and `find` of a single character scan 32 bytes at once, `find`
of a word one or two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_MAX_HOPS: Final = 64
"""Places of a word's rarest character that are tested before the character counts as frequent in this text:
each test costs as much as searching 100 bytes for the word."""


def holds_any(data: bytes, words: tuple[bytes, ...]) -> bool:
    for word in words:  # noqa: SIM110 - a generator would cost more than the search
        if data.find(word) >= 0:
            return True
    return False


def holds_rare(data: bytes, word: bytes) -> bool:
    """Whether `data` contains the word. It is searched by its first capital letter, if it has one: few texts
    contain many of the same capital letter."""
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
    """The index of the first capital letter; -1 if there is none."""
    return next((at for at, letter in enumerate(word) if 65 <= letter <= 90), -1)
