"""Turns of a conversation as they were written to an upstream once (see `wire/memory.py`).

What is written of a message follows from the message, from the context, from what is known of the calls that
it answers, and, where something is lost, from its place: losses tell that. All of it is in the name under
which it is found, or compared here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

import msgspec

from wireglot.dialects.context import Context
from wireglot.ir.content import Message, ToolCall, ToolResult
from wireglot.ir.loss import Loss
from wireglot.wire.json import encode
from wireglot.wire.known_row import KnownRow, row_of

_OBJECTS_BYTES: Final = 3
"""A turn that is written at the end is held as its writer's own objects too: about so many times its text."""


class WrittenTurn(msgspec.Struct, frozen=True, eq=False):
    """Nobody may change anything of it."""

    key: Hashable
    """Under which it is kept."""
    items: tuple[Any, ...]
    calls: tuple[tuple[str, Any], ...]
    """Ids of its calls, with what is known of each from here on."""
    answers: tuple[tuple[str, Any], ...]
    """Ids of the calls that it answers or makes, with what was known of each before."""
    losses: tuple[Loss, ...]
    told: bool = False
    """Whatever else there is to say about it."""
    whole: list[msgspec.Raw] = []
    """The turn that was made of it alone, once it was written."""


class WrittenTogether(msgspec.Struct, frozen=True, eq=False):
    """Several turns. Nobody may change anything of it."""

    start: int
    """Of the first message."""
    behind: int
    """The last one."""
    items: tuple[Any, ...]
    calls: dict[str, Any]
    """All that is known of calls from here on."""
    losses: tuple[Loss, ...]


class WrittenTurns:
    """Of one request that is being written. `calls`: what is known of those so far, by their ids; `losses`:
    where the writer tells what it could not say."""

    __slots__ = ("_before", "_calls", "_losses", "_memory", "_row", "_scope")

    def __init__(self, context: Context, calls: dict[str, Any], losses: list[Loss], *told: Any) -> None:
        self._memory = context.memory
        self._calls = calls
        self._losses = losses
        self._scope = context.scope("written", *told) if context.memory is not None else 0
        self._row: KnownRow | None = None
        self._before = (0, 0, 0)
        """How many messages, items and losses there were before the turns that are settled."""

    def together(self, messages: tuple[Message, ...], start: int, items: int) -> WrittenTogether | None:
        """What was written of the first turns from `start` on, as far as they came before; so many items were
        written of the messages before them."""
        row = self._row = row_of(self._memory, messages)
        self._before = (start, items, len(self._losses))
        known = row.reached(("written", self._scope)) if row is not None else None
        found: WrittenTogether | None = known[1] if known is not None else None
        return found if found is not None and found.start == start < found.behind else None

    def take(self, found: WrittenTogether, out: list[Any]) -> int:
        """The number of messages that are written with these."""
        out += found.items
        self._calls.update(found.calls)
        self._losses += found.losses
        return found.behind

    def settle(self, behind: int, out: list[Any]) -> None:
        """So many messages are written. If these are all that will come again, they are taken at once then.
        They follow from the messages and the context alone."""
        row = self._row
        if row is None or behind != len(row.values):
            return
        key = ("written", self._scope)
        known = row.reached(key)
        if known is None or known[0] != behind:
            start, items, losses = self._before
            texts = tuple([item if type(item) is msgspec.Raw else written(item) for item in out[items:]])
            lost = tuple(self._losses[losses:])
            row.settle(key, WrittenTogether(start, behind, texts, dict(self._calls), losses=lost))

    def find(self, message: Message, index: int) -> WrittenTurn | None:
        """What was written of it; its calls and losses are told as they were."""
        memory = self._memory
        if memory is None:
            return None
        found: WrittenTurn | None = memory.find(message, self._scope)
        if found is None:
            found = memory.find(message, (self._scope, index))
            if found is None:
                return None
        calls = self._calls
        for identifier, call in found.answers:
            if calls.get(identifier) is not call:
                return None
        calls.update(found.calls)
        self._losses += found.losses
        return found

    def begin(self, message: Message) -> Beginning | None:
        """Before a message is written that may come again; None: it cannot be known by then."""
        if self._memory is None or not self._memory.is_known(message):
            return None
        known = self._calls.get
        answers: list[tuple[str, Any]] = []
        for part in message.content:
            if type(part) is ToolResult:
                answers.append((part.call_id, known(part.call_id)))
            elif type(part) is ToolCall:  # a writer that leaves it out leaves what another one said of it
                answers.append((part.id, known(part.id)))
        return Beginning(tuple(answers), len(self._losses))

    def keep(
        self, message: Message, index: int, began: Beginning, items: Iterable[Any], *, told: bool = False
    ) -> WrittenTurn:
        """`items`: what was written, as JSON or for its own writer alone."""
        assert self._memory is not None
        losses = tuple(self._losses[began.losses :])
        calls = tuple(
            [
                (part.id, call)
                for part in message.content
                if type(part) is ToolCall and (call := self._calls.get(part.id)) is not None
            ]
        )
        key = (self._scope, index) if losses else self._scope
        turn = WrittenTurn(key, tuple(items), calls, began.answers, losses=losses, told=told)
        size = sum([len(item) for item in turn.items if type(item) is msgspec.Raw])
        self._memory.keep(message, key, turn, size)
        return turn

    def finish(self, turn: WrittenTurn, message: Message, value: Any) -> msgspec.Raw:
        """`value`, made of this turn alone, as JSON from now on."""
        assert self._memory is not None
        raw = written(value)
        turn.whole[:] = [raw]
        self._memory.grow(message, turn.key, _OBJECTS_BYTES * len(raw))
        return raw


class Beginning(msgspec.Struct, frozen=True):
    answers: tuple[tuple[str, Any], ...]
    losses: int


def count_opening(messages: tuple[Message, ...]) -> int:
    """How many system texts stand before the first turn."""
    for count, message in enumerate(messages):
        if message.role != "system":
            return count
    return len(messages)


def written(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
