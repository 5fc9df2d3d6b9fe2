"""The demo model's embeddings: a bag of hashed words, so that texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from typing import Final

from wireglot_core.ir.content import Part, Text
from wireglot_core.ir.embedding import EmbeddingInput, TokenIds

DIMENSIONS: Final = 256
# Numbers of one vector of the demo model.
MAX_DIMENSIONS: Final = 4096
_WORD: Final = re.compile(r"\w+")
_TRIGRAM: Final = 3


def vector(given: EmbeddingInput) -> tuple[float, ...]:
    """A vector of length 1, the same for the same content and number of dimensions."""
    size = given.dimensions or DIMENSIONS
    sums = [0.0] * size
    for feature, weight in _features(given.content):
        digest = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest())
        sums[digest % size] += weight if digest >> 63 else -weight
    length = math.sqrt(sum(number * number for number in sums))
    if not length:  # there were no words, or they cancelled out
        return (1.0, *sums[1:])
    return tuple([round(number / length, 9) for number in sums])


def text_of(content: str | TokenIds | tuple[Part, ...]) -> str:
    """The text of an input."""
    if isinstance(content, TokenIds):
        return "".join(f"{token:4d}" for token in content.ids)
    if isinstance(content, str):
        return content
    return "\n".join(part.text if isinstance(part, Text) else str(part) for part in content)


def _features(content: str | TokenIds | tuple[Part, ...]) -> Iterator[tuple[str, float]]:
    """Words, and parts of them, with their weights: other forms of a word are near it."""
    if isinstance(content, TokenIds):
        yield from ((f"token {token}", 1.0) for token in content.ids)
        return
    text = text_of(content).lower()
    words = _WORD.findall(text)
    if not words and text:
        yield text, 1.0
    for word in words:
        yield word, 1.0
        framed = f"<{word}>"
        yield from ((framed[at : at + _TRIGRAM], 0.25) for at in range(len(framed) - _TRIGRAM + 1))
