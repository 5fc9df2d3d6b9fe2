"""What an event that repeats the one before may say otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot.dialects.openai_responses.item_reader import ItemReader
from wireglot.dialects.openai_responses.output import SEAM
from wireglot.dialects.repeated_chunks import Place, RepeatedChunks

_KINDS: Final = frozenset(
    {
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    }
)
_BESIDE: Final = {"obfuscation": str, "sequence_number": int}
"""Padding, and a number that no reader goes by."""


class ResponsesChunks(RepeatedChunks):
    __slots__ = ("_items",)

    varying = re.compile(
        rb'"(?:delta|obfuscation)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"|"sequence_number"[ \t]*:[ \t]*(\d+)'
    )

    def __init__(self, most: int, items: ItemReader) -> None:
        super().__init__(most)
        self._items = items

    def told(self, document: dict[str, Any]) -> Place | None:
        kind = document.get("type")
        if type(kind) is not str or kind not in _KINDS or type(document.get("delta")) is not str:
            return None
        return document, "delta"

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        return [(document, key) for key, kind in _BESIDE.items() if type(document.get(key)) is kind]

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return self._items.sent_of(index)

    def tells_again(self, said: list[str], text: str) -> bool:
        return text == SEAM  # of a thought it is two pieces
