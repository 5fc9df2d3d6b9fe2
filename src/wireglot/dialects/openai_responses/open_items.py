"""The output items of an open stream, and which of them an event or a final item is about.

No identification can be relied on: ids change from event to event (Copilot), indexes are 0 on everything or
differ between `output_index` and the final `output` (if an item that is not shown came before). An id or call
id has priority, then the index, then the order among items of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wireglot.dialects.openai_responses.items import identity
from wireglot.ir.content import Citation, Text


class OpenPart:
    """A part being streamed: its index in the IR (-1 once it ended) and the text already sent."""

    __slots__ = ("citations", "final", "index", "late_phase", "sent")

    def __init__(self, index: int) -> None:
        self.index = index
        self.sent: list[str] = []
        self.citations: list[Citation] = []
        self.final: Text | None = None
        self.late_phase = False  # the phase of its item may still be reported

    def is_begun_by(self, text: str) -> bool:
        """Whether the text already sent is the beginning of `text`."""
        return text.startswith("".join(self.sent))


class OpenItem:
    """One output item: its open parts by content index (0 for calls and reasoning)."""

    __slots__ = ("call_id", "done", "identity", "kind", "parts", "position", "section", "source", "value")

    def __init__(self, position: int, kind: str, value: dict[str, Any]) -> None:
        self.position = position
        self.kind = kind
        self.value = value
        self.parts: dict[int, OpenPart] = {}
        self.done = False
        self.identity: set[str] = set()
        self.call_id: Any = None
        self.source = ""  # reasoning: which of its lists is shown
        self.section = 0  # reasoning: the entry of that list now streaming
        self.name(value)

    def name(self, value: dict[str, Any]) -> None:
        """Take the ids in a value of this item."""
        self.identity = identity(value)
        self.call_id = value.get("call_id")

    def streamed(self, number: int, final: Text) -> OpenPart | None:
        """The open text that a final one finishes. Bedrock's gpt-oss streams at content_index 1 what becomes
        the first part of the done item."""
        here = self.parts.get(number)
        if here is None or not here.is_begun_by(final.text):
            for part in self.parts.values():
                if part.index >= 0 and part.sent and part.is_begun_by(final.text):
                    return part
        return here

    def _is_named(self, value: dict[str, Any]) -> bool:
        reported = value.get("call_id")
        if reported and self.call_id:
            return bool(reported == self.call_id)
        return not self.identity.isdisjoint(identity(value))

    def is_of(self, value: dict[str, Any]) -> bool:
        return self.kind == kind_of(value) and self._is_named(value)


class OpenItems:
    def __init__(self) -> None:
        self._items: dict[int, OpenItem] = {}
        self._crowded = False  # several items have claimed one index

    def __iter__(self) -> Iterator[OpenItem]:
        return iter(self._items.values())

    def open(self, position: int, kind: str, value: dict[str, Any]) -> OpenItem:
        item = self._items[position] = OpenItem(position, kind, value)
        return item

    def add(self, event: dict[str, Any], value: dict[str, Any]) -> OpenItem | None:
        """The announced item; None if it was announced before."""
        index = event.get("output_index")
        here = self._items.get(index) if type(index) is int else None
        if here is not None and (here.is_of(value) or not here.identity or not identity(value)):
            return None
        self._crowded = self._crowded or here is not None
        place = index if type(index) is int and here is None else self._next()
        return self.open(place, kind_of(value), value)

    def about(self, event: dict[str, Any]) -> OpenItem | None:
        """The item that an event continues: a field that is repeated on every delta is the least reliable."""
        index, name = event.get("output_index"), event.get("item_id")
        if type(index) is int and not self._crowded:
            return self._items.get(index)
        for item in self._items.values():
            if type(name) is str and name in item.identity:
                return item
        return self._items.get(index) if type(index) is int else self._newest()

    def announce(self, event: dict[str, Any], kind: str) -> OpenItem:
        """An item that began without an announcement."""
        index = event.get("output_index")
        return self.open(
            index if type(index) is int else self._next(), kind, {"type": kind, "id": event.get("item_id")}
        )

    def finished(self, event: dict[str, Any], value: dict[str, Any]) -> OpenItem:
        """The item of a done event, opened if it was never announced."""
        index = event.get("output_index")
        here = self._items.get(index) if type(index) is int else None
        if here is not None and here.is_of(value):
            return here
        for item in self._items.values():
            if item.is_of(value) and (not item.done or item.call_id):
                return item
        if type(index) is not int:
            newest = self._newest()
            if newest is not None and not newest.done:
                return newest
        elif here is None:
            return self.open(index, kind_of(value), value)
        elif not (here.done and here.call_id and value.get("call_id")):
            return here
        return self.open(self._next(), kind_of(value), value)

    def pair(self, output: list[Any]) -> Iterator[tuple[OpenItem, dict[str, Any]]]:
        """Pairs each item of the final output with a streamed one, or with a new one."""
        values = {
            place: value for place, value in enumerate(output) if type(value) is dict and kind_of(value)
        }
        left = dict(self._items)
        found: dict[int, OpenItem] = {}
        for is_one in (_names, _stands_at, _is_of_kind):
            for place, value in values.items():
                if place not in found:
                    item = next((item for item in left.values() if is_one(item, place, value)), None)
                    if item is not None:
                        found[place] = left.pop(item.position)
        for place, value in values.items():
            streamed = found.get(place)
            if streamed is None:
                free = place if place not in self._items else self._next()
                streamed = self.open(free, kind_of(value), value)
            yield streamed, value

    def _newest(self) -> OpenItem | None:
        return next(reversed(self._items.values()), None)

    def _next(self) -> int:
        return max(self._items, default=-1) + 1


def kind_of(value: dict[str, Any]) -> str:
    kind = value.get("type")
    if type(kind) is not str:
        kind = "message" if "content" in value else ""
    return kind


def _names(item: OpenItem, place: int, value: dict[str, Any]) -> bool:
    return item.is_of(value)


def _stands_at(item: OpenItem, place: int, value: dict[str, Any]) -> bool:
    return item.position == place and item.kind == kind_of(value)


def _is_of_kind(item: OpenItem, place: int, value: dict[str, Any]) -> bool:
    return item.kind == kind_of(value)
