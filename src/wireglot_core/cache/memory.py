"""One caller's cache: JSON texts that are received repeatedly, and what was derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from wireglot_core.cache.body_frame import BodyFrame
from wireglot_core.cache.growing_body import Grown, compare
from wireglot_core.cache.known_row import KnownRow, row_of
from wireglot_core.cache.texts import KnownText, Texts
from wireglot_core.wire.cache import BodyOutline
from wireglot_core.wire.json import MAX_DEPTH, decode
from wireglot_core.wire.splice import decode_items, decode_member

_SHORT_BYTES: Final = 1024
"""Members up to this size are decoded faster than looked up."""
_MAX_EQUAL: Final = 128
"""Equal turns of one conversation that are cached; further ones are decoded each time."""
_NESTED: Final = b"[{"


class Memory(Texts):
    """Implements `wire.cache.Cache`."""

    __slots__ = ()

    def compare(self, body: bytes, turns: str, max_fresh: int | None = None) -> Grown | None:
        return compare(body, self, turns, max_fresh)

    def row(self, turns: Sequence[Any]) -> KnownRow | None:
        return row_of(self, turns)

    def document(self, outline: BodyOutline, depth: int = MAX_DEPTH, turns: str = "") -> dict[str, Any]:
        inside = depth - 1
        body = memoryview(outline.body)
        grown = outline.grown
        assert grown is None or isinstance(grown, Grown)
        learn = self.learns
        texts: dict[str, KnownText] = {}
        document: dict[str, Any] = {}
        for key, (start, end) in outline.members.items():
            raw = body[start:end]
            if len(raw) <= _SHORT_BYTES or raw[0] not in _NESTED:
                document[key] = decode_member(raw, inside)
            elif key == turns:
                known = grown if grown is not None and grown.frame.turns == turns else None
                grows = learn
                if known is not None and 2 * known.fresh > len(raw):  # another conversation, or a question
                    grows = self.has_met(known.frame, known.rest[0]) and learn
                if grows or (known is not None and known.turns):
                    document[key] = _decode_turns(raw, inside, self, known, grows)
                else:
                    document[key] = decode_member(raw, inside)
            else:
                text = grown.texts.get(start) if grown is not None else None
                if text is not None and text.depth == inside:
                    document[key] = self.recall(text)
                    continue
                document[key] = value = self.decode(raw, inside, learn=learn)
                text = self.text_of(value)
                if text is not None:
                    texts[key] = text
        self._learn(outline, document.get(turns), texts, turns)
        return document

    def _learn(self, outline: BodyOutline, found: Any, texts: Mapping[str, KnownText], turns: str) -> None:
        """Prepare for a next body that is this one with a few more turns."""
        if type(found) is not list or not found:
            return
        grown = outline.grown
        if isinstance(grown, Grown):
            self.follow(grown.frame, found, len(grown.turns))
        elif not outline.repeated and self.text_of(found[0]) is not None:
            known = {key: (text.number, len(text.stated)) for key, text in texts.items()}
            frame = BodyFrame(outline.body, outline.members, known, turns)
            self.use(frame)
            self.follow(frame, found)


def _decode_turns(text: memoryview, depth: int, memory: Texts, grown: Grown | None, learn: bool) -> Any:
    """Decode an array whose items are looked up one by one, since a conversation grows at its end."""
    turns: list[Any] = []
    times: dict[int, int] = {}
    """id(value) -> how many turns have this value or an equal one."""
    if grown is not None and not {text.depth for text in grown.turns} - {depth - 1}:
        turns = memory.recall_all(grown.turns)
        items = grown.rest
        if items:
            times = dict.fromkeys(map(id, turns), 1)
    else:
        try:
            items = decode_items(text)
        except (ValueError, RecursionError):
            return decode(text, depth)  # which reports the error, or decodes an object
    for item in items:
        value = memory.decode(item, depth - 1, learn=learn)
        if type(value) is dict or type(value) is list:
            first, again = id(value), times.get(id(value), 0)
            while id(value) in times and again <= _MAX_EQUAL:
                # Two turns with the same text are two: places in a conversation are known by identity. With
                # trailing spaces, it is another text with an equal value.
                value = memory.decode(bytes(item) + b" " * again, depth - 1, learn=learn)
                again += 1
            if id(value) in times:
                value = decode(memoryview(item), depth - 1)
            if again:
                times[first] = again
            times[id(value)] = 1
        turns.append(value)
    return turns
