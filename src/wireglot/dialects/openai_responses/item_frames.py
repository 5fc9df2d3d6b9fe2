"""What all output items of a client's stream have in common: numbers, ids, announcement and end."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.base import Context
from wireglot.dialects.openai_responses.output import ItemIds
from wireglot.ir.content import Part, Text
from wireglot.ir.loss import Loss
from wireglot.ir.stream import GrowingText
from wireglot.wire.json import encode

TAIL = b"}\n\n"


class Item:
    """An output item on its way; `value` is what the final response will hold."""

    __slots__ = ("done", "position", "text", "value")

    def __init__(self, position: int, value: dict[str, Any]) -> None:
        self.position = position
        self.value = value
        self.done = False
        self.text: Text | None = None  # message items: the last text in them


class OpenPart:
    """A part on its way. `before` and `after` frame a delta's sequence number; empty until it opens."""

    __slots__ = (
        "after", "before", "item", "logprobs", "number", "part", "path", "sections", "source", "tail",
        "text",
    )  # fmt: skip

    def __init__(self, part: Part, path: str) -> None:
        self.part = part
        self.path = path
        self.text = GrowingText()
        self.logprobs: list[Any] = []
        self.item: Item | None = None
        self.number = 0
        self.before = b""
        self.after = b""
        self.tail = TAIL
        self.source = ""  # reasoning: the list of the item it is shown in
        self.sections: list[str] = []  # reasoning: the entries of that list that are complete


class ItemFrames:
    """Collects bytes in `out`. `items` is what became of the answer so far."""

    def __init__(self, context: Context) -> None:
        self.losses: list[Loss] = []
        self.out: list[bytes] = []
        self.sequence = context.first_event
        self.items: list[Item] = []
        self.ids = ItemIds("", context)
        self.hides_state = False
        """Whether reasoning items are shown without their state."""
        self._context = context
        self._newest: Item | None = None  # complete, but its closing event is still held

    def emit(self, kind: str, payload: dict[str, Any]) -> None:
        # An event that is passed on has the name that its provider gave it, whatever that is.
        name = kind if kind.isprintable() else " ".join(kind.split())
        data = encode({"type": kind, "sequence_number": self.sequence, **payload})
        self.out.append(b"event: %b\ndata: %b\n\n" % (name.encode(), data))
        self.sequence += 1

    def release(self, status: str = "completed") -> None:
        """Close the newest item: nothing can be added to it any more."""
        item, self._newest = self._newest, None
        if item is None:
            return
        if item.value.get("status") == "in_progress":
            item.value["status"] = status
        self._done(item)

    def _add(self, value: dict[str, Any], announce: bool = True) -> Item:
        item = Item(len(self.items), value)
        self.items.append(item)
        if announce:
            self.emit("response.output_item.added", {"output_index": item.position, "item": value})
        return item

    def _done(self, item: Item) -> None:
        item.done = True
        self.emit("response.output_item.done", {"output_index": item.position, "item": item.value})

    def _whole(self, value: dict[str, Any]) -> None:
        self._done(self._add(value))

    def _frame(self, part: OpenPart, kind: str, place: dict[str, Any], tail: bytes = TAIL) -> None:
        name = kind.encode()
        part.before = b'event: %b\ndata: {"type":"%b","sequence_number":' % (name, name)
        part.after = b',%b,"delta":' % encode(place)[1:-1]
        part.tail = tail

    def _place(self, part: OpenPart, key: str = "content_index") -> dict[str, Any]:
        assert part.item is not None
        place: dict[str, Any] = {"item_id": part.item.value["id"], "output_index": part.item.position}
        if key:
            place[key] = part.number
        return place
