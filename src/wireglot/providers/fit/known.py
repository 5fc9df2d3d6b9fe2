"""Turns that come again: joined as they were before, so that what was written of them is found too, and not
looked at again where nothing was to be done for them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from typing import Final

from wireglot.ir.content import Message
from wireglot.ir.turns import joined, still_paired
from wireglot.wire.known_row import row_of
from wireglot.wire.memory import Memory

_PLACE_BYTES: Final = 64
"""Of a message in a joined turn; its parts are held with it, wherever it came from."""

_PAIRED: Final = "paired"


def join_known(memory: Memory | None) -> Callable[[list[Message]], Message]:
    if memory is None:
        return joined

    def join(turn: list[Message]) -> Message:
        # The whole turn at once: to remember every beginning of a long one would take its square.
        first, *others = turn
        key = ("joined", *map(id, others))
        found: tuple[list[Message], Message] | None = memory.find(first, key)
        if found is not None and all(map(operator.is_, found[0], others)):
            return found[1]
        whole = joined(turn)
        if all(map(memory.is_known, others)):
            size = _PLACE_BYTES * (len(turn) + len(whole.content))
            memory.keep(first, key, (others, whole), size, shared=whole)
        return whole

    return join


class Settled:
    """What is known of the turns of a conversation that have come before, while they are as they came."""

    __slots__ = ("_messages", "memory", "row")

    def __init__(self, messages: tuple[Message, ...], memory: Memory | None) -> None:
        self._messages = messages
        self.memory: Final = memory.for_turns(messages) if memory is not None else None
        """Where some of them are known."""
        self.row: Final = row_of(self.memory, messages)

    def holds(
        self,
        messages: tuple[Message, ...],
        key: Hashable,
        is_there: Callable[[tuple[Message, ...]], bool],
    ) -> bool:
        """Whether anything of a kind is there, which `is_there` looks for in each message by itself. `key`:
        all that it goes by beside the message."""
        row = self.row
        if row is None or messages is not self._messages:
            return is_there(messages)
        settled, known = len(row.values), row.reached(key)
        if is_there(messages[known[0] if known is not None else 0 : settled]):
            return True
        row.settle(key, None)
        return is_there(messages[settled:])

    def paired(self, messages: tuple[Message, ...]) -> bool:
        """As `is_paired` tells it."""
        row = self.row
        waiting: list[str] = []
        seen: set[str] = set()
        if row is None or messages is not self._messages:
            return still_paired(messages, waiting, seen)
        start, settled = 0, len(row.values)
        known = row.reached(_PAIRED)
        if known is not None:
            start = known[0]
            waiting += known[1][0]
            seen |= known[1][1]
        if start < settled:
            if not still_paired(messages[start:settled], waiting, seen):
                return False
            row.settle(_PAIRED, (tuple(waiting), frozenset(seen)))
        return still_paired(messages[settled:], waiting, seen)
