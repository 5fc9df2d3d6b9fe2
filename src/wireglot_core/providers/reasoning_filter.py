"""Leaves reasoning that a client did not ask to see out of its answer, where the answer is stored.

Clients that never ask for thinking take the first part of an answer for its text. Additional parts in an
answer of another dialect (thoughts, state, parts without an equivalent) would come before it, as a block or
an opaque part. If the answer is stored whole and all of it is restored with the next request, such a client
gets only the rest.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wireglot_core.ir.content import Foreign, Media, Origin, Part, Reasoning, Text, ToolCall
from wireglot_core.ir.loss import Loss, left_out
from wireglot_core.ir.outcome import Candidate, Response
from wireglot_core.ir.stream import Delta, Event, OtherAnswer, PartEnd, PartStart

_PLACE: Final = "$.content"
_NOT_SHOWN: Final = Loss(
    _PLACE, "thinking.display", "dropped", "the request does not ask for visible thinking"
)


class ReasoningFilter(Struct, eq=False):
    """Filters one answer, whole or as the events of a stream. `signs`: texts and calls of the client's
    dialect have a field for their state, and keep it."""

    minter: Origin
    signs: bool
    losses: list[Loss] = []
    _left_out: set[int] = set()
    _moved: dict[int, int] = {}
    """Index of each shown part in the stream -> its index for the client."""

    def response(self, response: Response) -> Response:
        others = tuple(map(self._other, response.others))
        return replace(response, content=self._shown(response.content), others=others)

    def events(self, events: list[Event]) -> list[Event]:
        shown: list[Event] = []
        for event in events:
            if type(event) is Delta and self._moved.get(event.index) == event.index:
                shown.append(event)
            elif (moved := self._event(event)) is not None:
                shown.append(moved)
        return shown

    def _event(self, event: Event) -> Event | None:
        kind = type(event)
        if kind is not Delta and kind is not PartStart and kind is not PartEnd:
            return OtherAnswer(self._other(event.answer)) if type(event) is OtherAnswer else event
        assert isinstance(event, Delta | PartStart | PartEnd)
        index = event.index
        if type(event) is PartStart:
            if self._is_left_out(event.part):
                self._left_out.add(index)
            else:
                self._moved[index] = len(self._moved)
        if index in self._left_out:
            if type(event) is Delta and event.text:
                self._declare(_NOT_SHOWN)
            return None
        number = self._moved[index]
        if type(event) is PartStart:
            return PartStart(number, self._unsigned(event.part))
        if type(event) is PartEnd and event.signature is not None and not self.signs:
            return replace(event, index=number, signature=None)
        return event if number == index else replace(event, index=number)

    def _other(self, answer: Candidate) -> Candidate:
        return replace(answer, content=self._shown(answer.content))

    def _shown(self, content: tuple[Part, ...]) -> tuple[Part, ...]:
        return tuple(self._unsigned(part) for part in content if not self._is_left_out(part))

    def _is_left_out(self, part: Part) -> bool:
        if type(part) is Reasoning:
            if part.text:
                self._declare(_NOT_SHOWN)
            return True
        if type(part) is Foreign and part.dialect == self.minter.dialect:
            self._declare(left_out(part, _PLACE))
            return True
        return False

    def _unsigned(self, part: Part) -> Part:
        if self.signs or not isinstance(part, Text | ToolCall | Media) or part.signature is None:
            return part
        return replace(part, signature=None)

    def _declare(self, loss: Loss) -> None:
        if loss not in self.losses:
            self.losses.append(loss)
