"""What a chunk that repeats the one before may say otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from wireglot.dialects.repeated_chunks import Place, RepeatedChunks

_USAGE: Final = "usageMetadata"
_TEXT: Final = {"text"}
_THOUGHT: Final = {"text", "thought"}


class GeminiChunks(RepeatedChunks):
    """Each chunk tells the whole usage so far: the last one's counts, and its reader asks for it."""

    __slots__ = ("_texts",)

    varying = re.compile(rb'"text"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"|"[a-z]*[tT]okenCount"[ \t]*:[ \t]*(\d+)')

    def __init__(self, most: int, texts: list[str]) -> None:
        """`texts`: where those of an open part that is no thought are noted."""
        super().__init__(most)
        self._texts = texts

    def told(self, document: dict[str, Any]) -> Place | None:
        candidates = document.get("candidates")
        if type(candidates) is not list or len(candidates) != 1 or type(candidates[0]) is not dict:
            return None
        content = candidates[0].get("content")
        parts = content.get("parts") if type(content) is dict else None
        if type(parts) is not list or len(parts) != 1 or type(parts[0]) is not dict:
            return None
        part = parts[0]
        known = part.keys() == _TEXT or (part.keys() == _THOUGHT and part["thought"] is True)
        return (part, "text") if known and type(part["text"]) is str else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return _counts(document.get(_USAGE))

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return None if "thought" in holder else self._texts


def _counts(value: Any) -> Iterator[Place]:
    if type(value) is dict:
        for key, item in value.items():
            if type(item) is int:
                yield value, key
            else:
                yield from _counts(item)
    elif type(value) is list:
        for item in value:
            yield from _counts(item)
