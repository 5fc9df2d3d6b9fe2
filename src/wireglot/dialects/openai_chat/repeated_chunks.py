"""Chunks that differ from the one before in nothing but their text: most of a stream.

All other bytes being equal, such a chunk says again what the last one said. Only its text is decoded, which
costs a fraction of reading the whole chunk. The text is prose, reasoning, or a piece of a call's arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot.dialects.openai_chat.repeated_calls import is_repeated
from wireglot.ir.stream import Delta, Event
from wireglot.wire.json import decode
from wireglot.wire.shape import Shape

_LINE: Final = b"data: "
_TEXTS: Final = ("content", "reasoning_content", "reasoning")
_PADDING: Final = "obfuscation"
"""OpenAI pads its chunks with it, each otherwise."""
_VARYING: Final = re.compile(
    rb'"(?:content|reasoning_content|reasoning|arguments|obfuscation)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"'
)
_QUOTE, _BACKSLASH = b'"\\'
_CALL: Final = frozenset({"index", "id", "type", "function"})
_FUNCTION: Final = frozenset({"name", "arguments"})
_TRIES: Final = 4
"""How many chunks in a row are learned in vain: some servers number or time each one."""

_decode_text = msgspec.json.Decoder(str).decode


class RepeatedChunks:
    """The shape of the last chunk, where a text was all it said: a chunk of the same shape repeats it."""

    __slots__ = ("_arguments_of", "_index", "_place", "_said", "_shape", "_tries")

    def __init__(self, arguments_of: Callable[[int], list[str] | None] = lambda index: None) -> None:
        """`arguments_of`: what was said so far of the call at this place of the answer, if it is one."""
        self._arguments_of = arguments_of
        self._shape: Shape | None = None
        self._place = 0  # of the text among the values
        self._index = -1  # the part its text belongs to
        self._said: list[str] | None = None
        self._tries = _TRIES

    def read(self, blocks: list[bytes], at: int, out: list[Event]) -> int:
        """Read the chunks from `at` on that repeat the last one; the place of the first that does not."""
        shape = self._shape
        if shape is None:
            return at
        first, last, is_alone = shape.first, shape.last, not shape.between
        start, cut = len(first), len(last)
        index, said, count = self._index, self._said, len(blocks)
        while at < count:
            block = blocks[at]
            end = len(block) - cut
            if block[:start] != first or block[end:] != last:
                break
            try:
                # With the quotes around it, so that what stands between them is one string.
                text = _decode_text(
                    block[start - 1 : end + 1] if is_alone else self._among_others(shape, block)
                )
            except ValueError:  # half a character, or no text at all: it is read in full
                break
            if text:
                if said is not None:
                    if is_repeated(said, text):
                        break
                    said.append(text)
                out.append(Delta(index, text))
            self._tries = _TRIES
            at += 1
        return at

    def _among_others(self, shape: Shape, block: bytes) -> bytes:
        """The text of a chunk with padding; empty where that may be more than padding."""
        values = shape.values(block).split(b"\n")
        if len(values) != len(shape.between) + 1:
            return b""
        text = values.pop(self._place)
        for value in values:
            if _QUOTE in value or _BACKSLASH in value:
                return b""
        return b'"%b"' % text

    def learn(self, block: bytes, said: list[Event]) -> None:
        """Remember a chunk that was read in full and gave the events `said`."""
        self._shape = None
        if len(said) != 1 or not self._tries or not block.startswith(_LINE):
            return
        event = said[0]
        if type(event) is not Delta or event.logprobs:
            return
        self._tries -= 1
        learned = _learned(block)
        if learned is not None:
            self._shape, self._place = learned
            self._index = event.index
            self._said = self._arguments_of(event.index)


def _learned(block: bytes) -> tuple[Shape, int] | None:
    """The shape of a chunk that holds one text, and nothing else that adds up from chunk to chunk; and which
    of its values the text is."""
    chunk = decode(block[len(_LINE) :])
    told = _told(chunk)
    if told is None or _VARYING.search(block) is None:
        return None
    shape = Shape(block, _VARYING)
    # A key may stand elsewhere in the chunk, too: other values must change this text and the padding only.
    probes = [b"?%d" % number for number in range(len(shape.between) + 1)]
    changed = decode(shape.filled(probes)[len(_LINE) :])
    holder, key = told
    found = _told(changed)
    probe = found[0][found[1]].encode() if found is not None else b""
    if probe not in probes:
        return None
    holder[key] = probe.decode()
    for level, other in zip(_levels(chunk), _levels(changed), strict=True):
        if type(level.get(_PADDING)) is str:
            level[_PADDING] = other[_PADDING]
    return (shape, probes.index(probe)) if changed == chunk else None


def _levels(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    """Where padding may stand, and says nothing."""
    choice = chunk["choices"][0]
    return [chunk, choice, choice["delta"]]


def _told(chunk: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Where the one text of a chunk stands: in what, under which key."""
    choices = chunk["choices"]
    if len(choices) != 1 or chunk.get("usage") is not None:
        return None
    choice = choices[0]
    if choice.get("finish_reason") is not None or choice.get("usage") is not None:
        return None
    delta = choice.get("delta")
    if not delta:
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


def _told_of_call(calls: Any) -> tuple[dict[str, Any], str] | None:
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
