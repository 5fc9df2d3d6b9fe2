"""The output items of an open stream, and which of them an event or a final item is about.

No identification can be relied on: ids change from event to event (Copilot), indexes are 0 on everything or
differ between `output_index` and the final `output` (if an item that is not shown came before). An id or call
id has priority, then the index, then the order among items of a kind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from wireglot_core.dialects.openai_responses.items import identity, light_form
from wireglot_core.ir.content import Citation, Text
from wireglot_core.wire.json import encode

# Texts of an item that one at another place is compared with.
_MAX_OTHER_TEXTS: Final = 16
# Bytes of an announced item whose fields are read again with each of its parts; of a larger one, only its id
# and its phase.
_MAX_READ_AGAIN_BYTES: Final = 8 * 1024

Key = tuple[str, str, str]


class OpenPart:
    """A part being streamed: its index in the IR (-1 once it ended) and the text already sent."""

    __slots__ = ("citations", "final", "index", "late_phase", "sent")

    def __init__(self, index: int) -> None:
        self.index = index
        self.sent: list[str] = []
        self.citations: list[Citation] = []
        self.final: Text | None = None
        self.late_phase = False  # the phase of its item may still be reported

    def said(self) -> str:
        """The text already sent, joined once."""
        if len(self.sent) > 1:
            self.sent[:] = ["".join(self.sent)]
        return self.sent[0] if self.sent else ""

    def is_begun_by(self, text: str) -> bool:
        """Whether the text already sent is the beginning of `text`."""
        return text.startswith(self.said())


class OpenItem:
    """One output item: its open parts by content index (0 for calls and reasoning)."""

    __slots__ = (
        "_read_again", "call_id", "done", "ending", "identity", "kind", "number", "parts", "position",
        "section", "source", "value",
    )  # fmt: skip

    def __init__(self, number: int, position: int, kind: str, value: dict[str, Any]) -> None:
        """`number`: how many items were opened before it."""
        self.number = number
        self.position = position
        self.kind = kind
        self.value = value
        self._read_again: dict[str, Any] | None = None
        self.parts: dict[int, OpenPart] = {}
        self.ending: list[OpenPart] = []
        """Texts whose final form is known: they end when the next one begins."""
        self.done = False
        self.identity: set[str] = set()
        self.call_id = ""
        self.source = ""  # reasoning: which of its lists is shown
        self.section = 0  # reasoning: the entry of that list now streaming
        self.name(value)

    def name(self, value: dict[str, Any]) -> None:
        """Take the ids in a value of this item."""
        self.identity = identity(value)
        self.call_id = _call_id(value)

    @property
    def read_again(self) -> dict[str, Any]:
        """The fields that are read with each of its parts."""
        if self._read_again is None:
            is_short = len(encode(self.value)) <= _MAX_READ_AGAIN_BYTES
            self._read_again = self.value if is_short else light_form(self.value)
        return self._read_again

    def streamed(self, number: int, final: Text) -> OpenPart | None:
        """The open text that a final one finishes. Bedrock's gpt-oss streams at content_index 1 what becomes
        the first part of the done item."""
        here = self.parts.get(number)
        if here is None or not here.is_begun_by(final.text):
            for part in islice(self.parts.values(), _MAX_OTHER_TEXTS):
                if part.index >= 0 and part.sent and part.is_begun_by(final.text):
                    return part
        return here

    def found_by(self) -> set[Key]:
        """What finds it: its call id, its ids if it has none, any of its ids, and these whatever its kind."""
        found = {("call", self.kind, self.call_id)} if self.call_id else set[Key]()
        for name in self.identity:
            found |= {("id", self.kind, name), ("name", "", name)}
            if not self.call_id:
                found.add(("no call", self.kind, name))
        return found

    def is_of(self, value: dict[str, Any]) -> bool:
        """Call ids decide where both have one, else a common id."""
        return not self.found_by().isdisjoint(keys_of(value))


def keys_of(value: dict[str, Any]) -> set[Key]:
    kind, call_id = kind_of(value), _call_id(value)
    if call_id:
        return {("call", kind, call_id), *(("no call", kind, name) for name in identity(value))}
    return {("id", kind, name) for name in identity(value)}


def _call_id(value: dict[str, Any]) -> str:
    found = value.get("call_id")
    return found if type(found) is str else ""


class _NamedItems:
    """Finds items by their names without a search among all: a stream may have very many."""

    def __init__(self, items: Iterable[OpenItem] = ()) -> None:
        self._items: dict[Key, deque[OpenItem]] = {}
        for item in items:
            self.add(item)

    def add(self, item: OpenItem) -> None:
        for key in item.found_by():
            self._items.setdefault(key, deque()).append(item)

    def first(self, keys: Iterable[Key], usable: Callable[[OpenItem], bool]) -> OpenItem | None:
        """The earliest of the items with one of these names. One that is not usable never will be again."""
        found: OpenItem | None = None
        for key in keys:
            items = self._items.get(key, ())
            while items and not (key in items[0].found_by() and usable(items[0])):
                items.popleft()
            if items and (found is None or items[0].number < found.number):
                found = items[0]
        return found


class OpenItems:
    def __init__(self) -> None:
        self._items: dict[int, OpenItem] = {}
        self._named = _NamedItems()  # for events of items
        self._called = _NamedItems()  # for events of their parts, also after their end
        self._after = 0  # the position after the highest
        self._crowded = False  # several items have claimed one index

    def __iter__(self) -> Iterator[OpenItem]:
        return iter(self._items.values())

    def open(self, position: int, kind: str, value: dict[str, Any]) -> OpenItem:
        item = self._items[position] = OpenItem(len(self._items), position, kind, value)
        self._after = max(self._after, position + 1)
        self._named.add(item)
        self._called.add(item)
        return item

    def name(self, item: OpenItem, value: dict[str, Any]) -> None:
        """Take the ids in a value of this item."""
        before = item.found_by()
        item.name(value)
        if item.found_by() != before:
            self._named.add(item)
            self._called.add(item)

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
        if type(name) is str and (item := self._called.first([("name", "", name)], _any)) is not None:
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
        item = self._named.first(keys_of(value), _may_be_finished)
        if item is not None:
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
        named = _NamedItems(left.values())
        kinds: dict[str, deque[OpenItem]] = {}
        for item in left.values():
            kinds.setdefault(item.kind, deque()).append(item)

        def is_left(item: OpenItem) -> bool:
            return item.position in left

        def by_name(place: int, value: dict[str, Any]) -> OpenItem | None:
            return named.first(keys_of(value), is_left)

        def by_place(place: int, value: dict[str, Any]) -> OpenItem | None:
            item = left.get(place)
            return item if item is not None and item.kind == kind_of(value) else None

        def by_kind(place: int, value: dict[str, Any]) -> OpenItem | None:
            items = kinds.get(kind_of(value), ())
            while items and not is_left(items[0]):
                items.popleft()
            return items[0] if items else None

        found: dict[int, OpenItem] = {}
        for find in (by_name, by_place, by_kind):
            for place, value in values.items():
                if place not in found and (one := find(place, value)) is not None:
                    found[place] = left.pop(one.position)
        for place, value in values.items():
            streamed = found.get(place)
            if streamed is None:
                free = place if place not in self._items else self._next()
                streamed = self.open(free, kind_of(value), value)
            yield streamed, value

    def _newest(self) -> OpenItem | None:
        return next(reversed(self._items.values()), None)

    def _next(self) -> int:
        return self._after


def kind_of(value: dict[str, Any]) -> str:
    kind = value.get("type")
    if type(kind) is not str:
        kind = "message" if "content" in value else ""
    return kind


def _any(item: OpenItem) -> bool:
    return True


def _may_be_finished(item: OpenItem) -> bool:
    """An item is done once; only call ids say that another done event is about the same one."""
    return not item.done or bool(item.call_id)
