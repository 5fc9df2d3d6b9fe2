"""Chunks that differ from the one before in nothing but their text: most of a stream.

All other bytes being equal, such a chunk says again what the last one said. Only its text is decoded, which
costs a fraction of reading the whole chunk.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot.ir.stream import Delta, Event
from wireglot.wire.json import decode

_LINE: Final = b"data: "
_PLACES: Final = {
    key: re.compile(rb'"%b"[ \t]*:[ \t]*("[^"\\]*(?:\\.[^"\\]*)*")' % key.encode())
    for key in ("content", "reasoning_content", "reasoning")
}
_PROBE: Final = "?"
_TRIES: Final = 4
"""How many chunks in a row are learned in vain: some servers number or time each one."""

_decode_text = msgspec.json.Decoder(str).decode


class RepeatedChunks:
    """The bytes before and behind the text of the last chunk, where that text was all it said: a chunk that
    begins and ends with the same bytes repeats it."""

    __slots__ = ("_after", "_before", "_cut", "_index", "_start", "_tries")

    def __init__(self) -> None:
        self._before = b""
        self._after = b""
        self._start = 0
        self._cut = 0
        self._index = -1  # the part its text belongs to
        self._tries = _TRIES

    def read(self, blocks: list[bytes], at: int, out: list[Event]) -> int:
        """Read the chunks from `at` on that repeat the last one; the place of the first that does not."""
        index = self._index
        if index < 0:
            return at
        before, after, start, cut = self._before, self._after, self._start, self._cut
        count = len(blocks)
        while at < count:
            block = blocks[at]
            if not (block.startswith(before) and block.endswith(after)):
                break
            try:
                text = _decode_text(block[start : len(block) - cut])
            except ValueError:  # half a character, or no text at all: it is read in full
                break
            if text:
                out.append(Delta(index, text))
            self._tries = _TRIES
            at += 1
        return at

    def learn(self, block: bytes, said: list[Event]) -> None:
        """Remember a chunk that was read in full and gave the events `said`."""
        self._index = -1
        if len(said) != 1 or not self._tries or not block.startswith(_LINE):
            return
        event = said[0]
        if type(event) is not Delta or event.logprobs:
            return
        self._tries -= 1
        place = _place(block)
        if place is not None:
            self._start, end = place
            self._cut = len(block) - end
            # The quotes belong to both ends, so that what stands between them is one string.
            self._before, self._after = block[: self._start + 1], block[end - 1 :]
            self._index = event.index


def _place(block: bytes) -> tuple[int, int] | None:
    """Where the text stands in a chunk that holds one, and nothing else that adds up from chunk to chunk."""
    chunk = decode(block[len(_LINE) :])
    choices = chunk["choices"]
    if len(choices) != 1 or chunk.get("usage") is not None:
        return None
    choice = choices[0]
    if choice.get("finish_reason") is not None or choice.get("usage") is not None:
        return None
    delta = choice.get("delta")
    told = [key for key, value in delta.items() if value is not None and key != "role"] if delta else []
    found = _PLACES[told[0]].search(block) if len(told) == 1 and told[0] in _PLACES else None
    if found is None:
        return None
    start, end = found.span(1)
    # The key may stand elsewhere in the chunk, too: another text at this place must change this delta only.
    changed: Any = decode(b'%b"%b"%b' % (block[len(_LINE) : start], _PROBE.encode(), block[end:]))
    delta[told[0]] = _PROBE
    return (start, end) if changed == chunk else None
