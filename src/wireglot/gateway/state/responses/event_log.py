"""The stream of a response with or without listeners, recorded event by event as clients see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from wireglot.http.application import Headers
from wireglot_core.dialects.capabilities import Stored, StoredEvents
from wireglot_core.wire.json import decode, encode

FULL_BYTES: Final = 64 * 1024
"""With this many bytes, events are stored at once, without waiting for more."""
HELD_BYTES: Final = 256 * 1024
"""Bytes of events that stay in memory for followers of the stream after they have been stored."""

_GAP: Final = b"\n\n"
_DATA: Final = b"\ndata: "


class Frame(msgspec.Struct, frozen=True):
    number: int
    kind: str
    data: bytes
    """The bytes on the wire, with the blank line."""


def frame(form: StoredEvents, kind: str, number: int, content: dict[str, Any]) -> Frame:
    body = encode(form.event(kind, number, content))
    return Frame(number, kind, b"event: %b\ndata: %b\n\n" % (kind.encode(), body))


def terminal(form: StoredEvents, data: bytes) -> dict[str, Any] | None:
    """The final response, if the stored bytes of an event log contain its last event."""
    for each in frames(form, data):
        if each.kind in form.ends:
            response: dict[str, Any] | None = _event(each).get(form.holder)
            return response
    return None


def frames(form: StoredEvents, data: bytes) -> Iterator[Frame]:
    """The events in the stored bytes of an event log."""
    for piece in data.split(_GAP):
        found = piece.find(_DATA)
        if piece.startswith(b"event: ") and found > 0 and piece + _GAP != form.closing:
            event = decode(piece[found + len(_DATA) :])
            yield Frame(form.number(event), form.kind(event), piece + _GAP)


class EventLog:
    """Implements `Reply`. Every response in it gets the values of `patch`: its id was reported long
    before."""

    def __init__(
        self,
        stored: Stored,
        patch: dict[str, Any],
        *,
        keeps: bool,
        full_bytes: int = FULL_BYTES,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        """`keeps`: whether the events are stored, or only the final response."""
        self.started = False
        self.opening: dict[str, Any] | None = None
        """The response as its first event shows it."""
        self.final: dict[str, Any] | None = None
        """The response as its last event shows it."""
        self.next = 0
        """The number of the next event."""
        self.over = False
        """Set when nothing more will be added."""
        self.dirty = asyncio.Event()
        """Set while something has not been stored."""
        self.full = asyncio.Event()
        """Set when the stream must wait until more is stored."""
        self.changed = asyncio.Event()
        """Set, and replaced by a new event, with every change."""
        self.listener: Callable[[bytes], None] | None = None
        """A recorder, called with every event."""
        self._stored_form = stored
        self._form = stored.events
        self._patch = patch
        self._full_bytes = full_bytes
        self._held_bytes = held_bytes
        self.keeps = keeps
        self._broken = b""
        self._frames: list[Frame] = []  # with consecutive numbers
        self._stored = 0  # number of stored ones, from the first
        self._stored_size = 0
        self._fresh_size = 0

    # Written by the gateway.

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        raise AssertionError("a response in the background is always streamed")

    def start(self, status: int, headers: Headers) -> None:
        self.started = True

    def write(self, data: bytes) -> None:
        data = self._broken + data
        cut = data.rfind(_GAP) + len(_GAP) if _GAP in data else 0
        self._broken = data[cut:]
        for each in frames(self._form, data[:cut]):  # keep-alives are not events
            self.add(each)

    def end(self) -> None: ...

    def abort(self) -> None: ...

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """It never causes pressure."""

    # Storing and reading

    def add(self, each: Frame) -> None:
        if self.final is not None:
            return
        if each.kind in self._form.ends or each.kind in self._form.opening:
            each = self._patched(each)
        self.next = each.number + 1
        if self.listener is not None:
            self.listener(each.data)
        if self.keeps:
            self._frames.append(each)
            self._fresh_size += len(each.data)
            if self._fresh_size >= self._full_bytes:
                self.full.set()
        self.dirty.set()
        self.notify()

    def close(self) -> None:
        self.over = True
        self.notify()

    def notify(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def fresh(self) -> list[Frame]:
        """The events not stored yet; they stay here until `stored` is called."""
        self.dirty.clear()
        self.full.clear()
        return self._frames[self._stored :]

    def stored(self, count: int) -> None:
        size = sum(len(each.data) for each in self._frames[self._stored : self._stored + count])
        self._stored += count
        self._stored_size += size
        self._fresh_size -= size
        let_go = 0
        while self._stored_size > self._held_bytes and let_go < len(self._frames) - 1:
            self._stored_size -= len(self._frames[let_go].data)
            let_go += 1
        self._stored -= let_go
        del self._frames[:let_go]

    def after(self, number: int) -> list[Frame] | None:
        """The events after this one; None: some of them are only in the store by now.

        The last one is sent only once it is stored: any client that has received it finds the response in the
        same state.
        """
        if number + 1 >= self.next or not self.keeps:
            return []
        start = number + 1 - self._frames[0].number
        if start < 0:
            return None
        hidden = self.final is not None and not self.over
        return self._frames[start : len(self._frames) - hidden]

    def _patched(self, each: Frame) -> Frame:
        form, event = self._form, _event(each)
        response = event.get(form.holder)
        if response is None:  # an error, which contains no response
            message = str(event.get("error", {}).get("message", ""))
            self.final = self._stored_form.ended(self.opening or dict(self._patch), "failed", message)
            return each
        response.update(self._patch)
        if each.kind in form.ends:
            self.final = response
        elif self.opening is None:
            self.opening = response
        return frame(form, each.kind, each.number, {form.holder: response})


def _event(each: Frame) -> dict[str, Any]:
    event: dict[str, Any] = decode(each.data[each.data.index(_DATA) + len(_DATA) :])
    return event
