"""What an event that repeats the one before may say otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot.dialects.repeated_chunks import Place, RepeatedChunks

_TEXTS: Final = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class MessageChunks(RepeatedChunks):
    """A reader notes nothing of the pieces of a block, once they go straight through."""

    __slots__ = ()

    varying = re.compile(rb'"(?:text|thinking|partial_json)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"')

    def told(self, document: dict[str, Any]) -> Place | None:
        delta = document.get("delta")
        if document.get("type") != "content_block_delta" or type(delta) is not dict:
            return None
        kind = delta.get("type")
        key = _TEXTS.get(kind) if type(kind) is str else None
        return (delta, key) if key is not None and type(delta.get(key)) is str else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return ()
