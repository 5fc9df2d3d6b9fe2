"""Tracks the original place of every message, part and tool of a request while it is fitted.

Fitting moves, merges, drops and replaces things; a loss must still point to where the client put them. Values
are tracked by identity, and code that replaces a value calls `follow`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from wireglot_core.ir.content import Message, Part, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, Request

_PLACE = re.compile(r"\$\.(messages|tools)\[(\d+)\](?:\.content\[(\d+)\])?")


_Value = Message | Part | AnyTool
_Place = tuple[Any, ...]
"""The list a value is in (messages or tools), its index there, and its indexes inside the message. Paths are
only built from these when requested, since most values of a conversation lose nothing."""
_MESSAGES = "$.messages"
_TOOLS = "$.tools"


class Trail(msgspec.Struct, eq=False):
    """Places are computed only as far as needed: most requests lose nothing, or only near their beginning.
    Values are tracked by identity, so the trail keeps a reference to each."""

    _request: Request
    _places: dict[int, _Place] = {}
    _drawn: int = -1
    """Number of messages whose places are known; -1: not even those of the tools."""
    _inner: dict[int, _Place] | None = None
    _followed: dict[int, tuple[_Value, _Value]] = {}

    def of(self, value: _Value) -> str:
        """The path where the client put the value; `$.messages` for a value without a place."""
        followed = self._followed.get(id(value))
        known = self._find(followed[1]) if followed is not None else None
        if known is None:
            known = self._find(value)
        if known is None:
            return _MESSAGES
        path = f"{known[0]}[{known[1]}]"
        for place in known[2:]:
            path += f".content[{place}]"
        return path

    def follow(self, old: _Value, new: _Value) -> None:
        """Record that `new` replaces `old`."""
        if new is not old:
            before = self._followed.get(id(old))
            self._followed[id(new)] = (new, old if before is None else before[1])

    def _find(self, value: _Value) -> _Place | None:
        known = self._places.get(id(value))
        if known is None:
            known = self._draw(id(value))
        if known is not None:
            return known
        if self._inner is None:
            self._inner = _inner_places(self._request)
        return self._inner.get(id(value))

    def _draw(self, wanted: int) -> _Place | None:
        """Compute places up to the message that contains the value. A value that occurs twice has the place
        of its first occurrence."""
        places, messages = self._places, self._request.messages
        if self._drawn < 0:
            for number, tool in enumerate(self._request.tools):
                places.setdefault(id(tool), (_TOOLS, number))
            self._drawn = 0
        keep = places.setdefault
        while wanted not in places and self._drawn < len(messages):
            number = self._drawn
            keep(id(messages[number]), (_MESSAGES, number))
            for position, part in enumerate(messages[number].content):
                keep(id(part), (_MESSAGES, number, position))
            self._drawn = number + 1
        return places.get(wanted)

    def changed_parts(
        self, messages: tuple[Message, ...], change: Callable[[Part], Part | None]
    ) -> tuple[Message, ...]:
        """The messages with a change applied to each part; None removes the part, and a message without
        remaining parts is removed too. Whatever does not change stays the same object, whether a message or
        all of them."""
        changed: list[Message] | None = None
        for number, message in enumerate(messages):
            new = self._changed(message, change)
            if new is not message and changed is None:
                changed = list(messages[:number])
            if changed is not None and new is not None:
                changed.append(new)
        return messages if changed is None else tuple(changed)

    def _changed(self, message: Message, change: Callable[[Part], Part | None]) -> Message | None:
        content: list[Part] = []
        same = True
        for part in message.content:
            new = change(part)
            if new is not part:
                same = False
            if new is not None:
                self.follow(part, new)
                content.append(new)
        if same:
            return message
        if not content:
            return None
        changed = Message(message.role, tuple(content), message.name, message.extra)
        self.follow(message, changed)
        return changed

    def retrace(self, loss: Loss, fitted: Request) -> Loss:
        """A loss that a renderer reported about the fitted request, with its path in the client's request."""
        found = _PLACE.match(loss.path)
        if found is None:
            return loss
        kind, number, position = found[1], int(found[2]), found[3]
        values: tuple[Message | AnyTool, ...] = fitted.messages if kind == "messages" else fitted.tools
        if number >= len(values):
            return loss
        value: _Value = values[number]
        if position is not None and isinstance(value, Message) and int(position) < len(value.content):
            value = value.content[int(position)]
        path = self.of(value) + loss.path[found.end() :]
        return loss if path == loss.path else Loss(path, loss.feature, loss.action, loss.detail)


def _inner_places(request: Request) -> dict[int, _Place]:
    """Places of the parts inside tool results, which may be moved out of them."""
    places: dict[int, _Place] = {}
    for number, message in enumerate(request.messages):
        for position, part in enumerate(message.content):
            if type(part) is ToolResult:
                for index, item in enumerate(part.content):
                    places.setdefault(id(item), (_MESSAGES, number, position, index))
    return places
