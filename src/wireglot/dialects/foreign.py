"""Events that only one dialect knows, told to a client of another."""

from __future__ import annotations

from wireglot.ir.loss import Feature, Loss
from wireglot.ir.stream import ForeignEvent

CANDIDATE = "candidate"
"""The type of an event that is a piece of a second or later answer (`n`, `candidateCount`)."""


class ForeignEvents:
    """Declares each kind once for a stream: some come hundreds of times."""

    __slots__ = ("_losses", "_told")

    def __init__(self, losses: list[Loss]) -> None:
        self._losses = losses
        self._told: set[str] = set()

    def declare(self, event: ForeignEvent) -> None:
        feature: Feature = "candidates" if event.type == CANDIDATE else "foreign_event"
        detail = f"{event.type} of {event.dialect}"
        if detail not in self._told:
            self._told.add(detail)
            self._losses.append(Loss("$", feature, "dropped", detail))
