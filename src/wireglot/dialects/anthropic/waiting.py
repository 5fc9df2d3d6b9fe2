"""A part on its way to the client's stream, where only one block is open at a time."""

from __future__ import annotations

from wireglot.dialects.anthropic.argument_stream import ArgumentStream
from wireglot.ir.content import Part
from wireglot.ir.stream import PartEnd


class Waiting:
    """A part that has not been written to its end: the one whose turn it is, or one behind it."""

    __slots__ = ("arguments", "end", "index", "opened", "part", "pieces", "scored")

    def __init__(self, index: int, part: Part) -> None:
        self.index = index
        self.part = part
        self.pieces: list[str] = []  # what came before its turn
        self.end: PartEnd | None = None
        self.opened = False
        self.scored = False  # whether its logprobs were declared
        self.arguments: ArgumentStream | None = None

    @property
    def path(self) -> str:
        return f"$.content[{self.index}]"
