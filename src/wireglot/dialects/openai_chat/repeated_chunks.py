"""What a chunk that repeats the one before may say otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot.dialects.openai_chat.repeated_calls import is_repeated
from wireglot.dialects.openai_chat.stream_parts import Assembly
from wireglot.dialects.repeated_chunks import Place, RepeatedChunks

_TEXTS: Final = ("content", "reasoning_content", "reasoning")
_PADDING: Final = "obfuscation"
"""OpenAI pads its chunks with it, each otherwise."""
_CALL: Final = frozenset({"index", "id", "type", "function"})
_FUNCTION: Final = frozenset({"name", "arguments"})


class ChatChunks(RepeatedChunks):
    __slots__ = ("_parts",)

    varying = re.compile(
        rb'"(?:content|reasoning_content|reasoning|arguments|obfuscation)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"'
    )

    def __init__(self, most: int, parts: Assembly) -> None:
        super().__init__(most)
        self._parts = parts

    def told(self, document: dict[str, Any]) -> Place | None:
        choices = document.get("choices")
        if type(choices) is not list or len(choices) != 1 or document.get("usage") is not None:
            return None
        choice = choices[0]
        if type(choice) is not dict or type(delta := choice.get("delta")) is not dict:
            return None
        if choice.get("finish_reason") is not None or choice.get("usage") is not None:
            return None
        told = [
            key
            for key, value in delta.items()
            if value is not None and key not in ("role", _PADDING) and not (value == "" and key in _TEXTS)
        ]
        if len(told) != 1:
            return None
        if told[0] in _TEXTS:
            return (delta, told[0]) if type(delta[told[0]]) is str else None
        return _told_of_call(delta["tool_calls"]) if told[0] == "tool_calls" else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        """Padding, which says nothing."""
        choice = document["choices"][0]
        levels = (document, choice, choice["delta"])
        return [(level, _PADDING) for level in levels if type(level.get(_PADDING)) is str]

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return self._parts.arguments_of(index)

    def tells_again(self, said: list[str], text: str) -> bool:
        return is_repeated(said, text)


def _told_of_call(calls: Any) -> Place | None:
    """A piece of arguments that says nothing else of its call, whose name was told before."""
    if type(calls) is not list or len(calls) != 1 or type(calls[0]) is not dict:
        return None
    call = calls[0]
    if not call.keys() <= _CALL or call.get("type") not in (None, "", "function"):
        return None
    function = call.get("function")
    if type(function) is not dict or not function.keys() <= _FUNCTION or function.get("name"):
        return None
    return (function, "arguments") if type(function.get("arguments")) is str else None
