"""The grammar of OpenAI's Responses streams, as its SDK and Codex depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wireglot.probe.frames import Frame
from wireglot.probe.reply import At, Reply, Rule
from wireglot.probe.verdict import Broken
from wireglot.probe.wires.responses_object import plain, read_item, read_response
from wireglot.probe.wires.wire import Faults

_LAST: Final = ("response.completed", "response.incomplete", "response.failed")
_TEXTS: Final = {
    "response.output_text": ("content_index", "text"),
    "response.refusal": ("content_index", "refusal"),
    "response.reasoning_summary_text": ("summary_index", "text"),
    "response.reasoning_text": ("content_index", "text"),
    "response.function_call_arguments": ("", "arguments"),
}
"""Events that have `.delta` and `.done`: which index tells the part, and the field of the whole text."""


class _Item(msgspec.Struct):
    id: str
    kind: str
    call: str
    texts: dict[tuple[str, int], str] = {}
    parts: set[int] = set()
    done: dict[str, Any] | None = None


def read_stream(frames: Sequence[Frame]) -> Reply:
    reader = _Reader()
    for number, frame in enumerate(frames):
        reader.frame(frame, number)
    return reader.end()


class _Reader:
    def __init__(self) -> None:
        self.faults = Faults()
        self.items: dict[int, _Item] = {}
        self.seen: list[str] = []
        self.number = -1
        self.id = ""
        self.pieces = 0
        self.final: Reply | None = None

    def frame(self, frame: Frame, number: int) -> None:
        if (not frame.data and frame.lines) or frame.data == "[DONE]":
            return  # a comment, or what OpenAI's SDK leaves alone
        document = frame.document()
        if not isinstance(document, dict):
            self.faults.add("frames", f"frame {number}: its data is no JSON object: {frame.data[:80]!r}")
            return
        kind = str(document.get("type"))
        at = At(document, f"frame {number} ({kind})")
        if frame.event and frame.event != kind:  # the SDK goes by the type, and needs no name
            self.faults.add("frames", f"frame {number}: `event: {frame.event}` over data of type {kind!r}")
        if any(last in self.seen for last in _LAST):
            self.faults.add("ending", f"{at.path}: behind the last event")
        if not self.seen and kind != "response.created":
            self.faults.add("opening", f"the stream begins with {kind}, not with response.created")
        self._sequence(at)
        try:
            self._event(kind, at)
        except Broken as broken:
            self.faults.add(_rule_of(kind), str(broken))
        self.seen.append(kind)

    def _sequence(self, at: At) -> None:
        try:
            found = at.number("sequence_number")
        except Broken as broken:
            self.faults.add("indexes", str(broken))
            return
        if self.seen and found != self.number + 1:
            self.faults.add("indexes", f"{at.path}: sequence_number {found} behind {self.number}")
        self.number = found

    def _event(self, kind: str, at: At) -> None:
        if kind in ("response.created", "response.in_progress", *_LAST):
            self._response(kind, at.get("response"))
        elif kind == "response.output_item.added":
            self._added(at)
        elif kind == "response.output_item.done":
            self._done(at)
        elif kind in ("response.content_part.added", "response.reasoning_summary_part.added"):
            item = self._item(at)
            item.parts = {*item.parts, at.number(_index_of(kind))}
        elif kind in ("error", "response.error"):
            raise Broken(f"{at.path}: an error: {at.value}")
        else:
            self._text(kind, at)

    def _response(self, kind: str, response: At) -> None:
        name = response.text("id", filled=True)
        if self.id and name != self.id:
            self.faults.add("identity", f"{response.path}.id was {self.id!r} and now is {name!r}")
        self.id = self.id or name
        if kind not in _LAST:
            response.is_("status", "in_progress", "queued")
            if response.get("output").value != []:
                raise response.get("output").broken("an empty list")
            return
        if kind == "response.failed":
            raise Broken(f"{response.path}: the response failed: {response.get('error').value}")
        response.is_("status", kind.removeprefix("response."))
        self.final = read_response(response)

    def _added(self, at: At) -> None:
        index = at.number("output_index")
        if index != len(self.items):
            self.faults.add(
                "indexes", f"{at.path}: an item with output_index {index}, expected {len(self.items)}"
            )
        item = at.get("item")
        kind = item.text("type", filled=True)
        call = item.text("call_id", filled=True) if kind == "function_call" else ""
        if kind == "function_call":
            item.text("name", filled=True)
        self.items[index] = _Item(item.text("id", filled=True), kind, call)

    def _item(self, at: At) -> _Item:
        index = at.number("output_index")
        found = self.items.get(index)
        if found is None:
            raise Broken(f"{at.path}: for the item {index}, which was not added")
        if found.done is not None:
            raise Broken(f"{at.path}: for the item {index}, which is done")
        name = at.text("item_id", filled=True)
        if name != found.id:
            self.faults.add(
                "identity", f"{at.path}: item_id {name!r} of an item that was added as {found.id!r}"
            )
        return found

    def _text(self, kind: str, at: At) -> None:
        stem, _, verb = kind.rpartition(".")
        if stem not in _TEXTS or verb not in ("delta", "done"):
            return
        item = self._item(at)
        index, field = _TEXTS[stem]
        place = at.number(index) if index else 0
        if index and place not in item.parts:
            raise Broken(f"{at.path}: for part {place}, which was not added")
        key = (stem, place)
        if verb == "delta":
            item.texts = {**item.texts, key: item.texts.get(key, "") + at.text("delta")}
            self.pieces += stem == "response.output_text"
            return
        whole = at.text(field)
        if whole != item.texts.get(key, ""):
            rule: Rule = "calls" if field == "arguments" else "order"
            told = item.texts.get(key, "")
            self.faults.add(rule, f"{at.path}: {whole[:60]!r}, but the deltas make {told[:60]!r}")

    def _done(self, at: At) -> None:
        index = at.number("output_index")
        found = self.items.get(index)
        if found is None or found.done is not None:
            raise Broken(f"{at.path}: the item {index} is not open")
        item = at.get("item")
        read_item(Reply(), item)
        found.done = item.object()
        if item.text("id", filled=True) != found.id or (found.call and item.value["call_id"] != found.call):
            self.faults.add("identity", f"{at.path}: the item changed its id between added and done")
        if found.kind == "function_call":
            told = found.texts.get(("response.function_call_arguments", 0), "")
            if told != item.text("arguments"):
                self.faults.add("calls", f"{at.path}: the deltas make {told[:60]!r}, the item has others")

    def end(self) -> Reply:
        faults = self.faults
        faults.unless("response.created" in self.seen, "opening", "there is no response.created")
        ends = [kind for kind in self.seen if kind in _LAST]
        faults.unless(len(ends) == 1, "ending", f"the last event came {len(ends)} times, expected once")
        for index, item in self.items.items():
            if item.done is None:
                faults.add("order", f"the item {index} ({item.kind}) has no response.output_item.done")
        reply = self.final if self.final is not None else Reply(id=self.id)
        done = [item.done for _, item in sorted(self.items.items()) if item.done is not None]
        if self.final is not None and [_identity(item) for item in done] != [
            _identity(item) for item in self.final.items
        ]:
            faults.add("identity", "the last event lists other items than those that were done")
        reply.pieces = self.pieces
        reply.faults = faults.found
        return reply


def _identity(item: Any) -> tuple[Any, ...]:
    found = plain(item)
    return found.get("id"), found.get("type"), found.get("call_id"), found.get("arguments")


def _index_of(kind: str) -> str:
    return "summary_index" if "summary" in kind else "content_index"


def _rule_of(kind: str) -> Rule:
    if kind in ("response.created", "response.in_progress"):
        return "opening"
    if kind in _LAST or kind == "error":
        return "ending"
    return "calls" if "function_call" in kind else "order"
