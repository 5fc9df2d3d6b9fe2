"""What a stream brings that a client's dialect has no place for: events that only one dialect knows, further
answers."""

from __future__ import annotations

from typing import Final

from wireglot.ir.loss import Loss
from wireglot.ir.stream import ForeignEvent

ONE_ANSWER: Final = Loss("$.others", "candidates", "dropped", "this dialect has a place for one answer")
"""Of an answer that brings several, whole or streamed."""

NO_SAFEGUARDS: Final = Loss("$.safeguards", "safeguards", "dropped", "this dialect has no such check")
NO_RESULTS: Final = Loss("$.safeguard_results", "safeguards", "dropped", "no place for results of a check")


class ForeignEvents:
    """Declares each kind once for a stream: some come hundreds of times."""

    __slots__ = ("_losses", "_told")

    def __init__(self, losses: list[Loss]) -> None:
        self._losses = losses
        self._told: set[str] = set()

    def declare(self, event: ForeignEvent) -> None:
        detail = f"{event.type} of {event.dialect}"
        if detail not in self._told:
            self._told.add(detail)
            self._losses.append(Loss("$", "foreign_event", "dropped", detail))
