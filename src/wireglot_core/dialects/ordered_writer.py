"""Base of the writers whose streams have one part open at a time: later parts wait for those before them."""

from __future__ import annotations

from abc import abstractmethod
from heapq import heappop, heappush
from typing import ClassVar

import msgspec

from wireglot_core.dialects.answer_writer import AnswerWriter
from wireglot_core.dialects.argument_stream import ArgumentStream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.lost_fields import Lost
from wireglot_core.ir.content import Part
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Delta, PartEnd, PartStart


class WaitingPart(msgspec.Struct, eq=False):
    """A part that is not yet written to its end."""

    index: int
    part: Part
    path: str
    pieces: list[str] = []
    """Pieces that arrived while it was held back, or all of a text that is needed whole."""
    end: PartEnd | None = None
    opened: bool = False
    silent: bool = False
    """Its text was written with its start."""
    scored: bool = False
    """Whether its logprobs were reported as lost."""
    arguments: ArgumentStream | None = None


class OrderedWriter(AnswerWriter):
    """Subclasses write the beginning, the pieces and the end of the part that is open. The pieces of a part
    that they made `_live` come to them in `write`, without `_delta`."""

    __slots__ = ("_arguments", "_head", "_live", "_order", "_prefix", "_waiting")

    no_logprobs: ClassVar[Lost]

    def __init__(self, context: Context, request: Request | None = None) -> None:
        super().__init__(context, request, [])
        self._head: WaitingPart | None = None  # the part that is being written
        self._waiting: dict[int, WaitingPart] = {}  # the others that have started
        self._order: list[int] = []  # their indices, the smallest first: a heap
        self._live = -1  # the part whose text is written without waiting
        self._prefix = b""  # of a delta of that part
        self._arguments: ArgumentStream | None = None  # of that part, where it is a call

    @abstractmethod
    def _begin_part(self, waiting: WaitingPart, out: list[bytes]) -> None: ...

    @abstractmethod
    def _more(self, waiting: WaitingPart, text: str, out: list[bytes]) -> None: ...

    @abstractmethod
    def _end(self, waiting: WaitingPart, end: PartEnd, out: list[bytes]) -> None: ...

    def _delta(self, delta: Delta, out: list[bytes]) -> None:
        head = self._head
        part = head if head is not None and head.index == delta.index else self._waiting[delta.index]
        if delta.logprobs and not part.scored:
            part.scored = True
            self.losses.append(self.no_logprobs.at(f"{part.path}.logprobs"))
        if not delta.text:
            return
        if part is head:
            self._more(part, delta.text, out)
        else:
            part.pieces.append(delta.text)

    def _open_part(self, event: PartStart, out: list[bytes]) -> None:
        part = WaitingPart(event.index, event.part, f"$.content[{event.index}]")
        if self._head is None:
            self._head = part
            self._begin_part(part, out)
        else:
            self._waiting[event.index] = part
            heappush(self._order, event.index)

    def _close_part(self, end: PartEnd, out: list[bytes]) -> None:
        head = self._head
        if head is None or head.index != end.index:
            self._waiting[end.index].end = end
            return
        self._end(head, end, out)
        self._head = None
        while self._order:
            self._head = part = self._waiting.pop(heappop(self._order))
            pieces, part.pieces = part.pieces, []
            self._begin_part(part, out)
            if pieces:
                self._more(part, "".join(pieces), out)
            if part.end is None:
                return
            self._end(part, part.end, out)
            self._head = None
