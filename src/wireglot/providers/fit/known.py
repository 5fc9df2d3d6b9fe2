"""Turns that come again, joined as they were before: then what was written of them is found, too."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from wireglot.ir.content import Message
from wireglot.ir.turns import joined
from wireglot.wire.memory import Memory

_PLACE_BYTES: Final = 64
"""Of a message in a joined turn; its parts are held with it, wherever it came from."""


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
