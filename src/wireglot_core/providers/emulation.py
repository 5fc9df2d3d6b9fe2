"""Changes an answer where its upstream lacks a feature: cuts it at stop sequences, turns the arguments of the
function that replaces an output format into text, and a text that replaces a forced call into that call.

`fit` decides what is needed (`Fitted.emulation`). It is applied where the answer is read, before anything
else processes it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from wireglot_core.dialects.base import StreamReader
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.ir.stop_sequences import StopFilter, cut_response
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    OtherAnswer,
    PartEnd,
    PartStart,
    fold,
    unfold,
)

_BESIDE: Final = "text outside the requested JSON document is left out"
_SECOND: Final = "a second JSON document is left out"


class Emulation(msgspec.Struct, frozen=True):
    """What to change in the answer to one request."""

    stops: tuple[str, ...] = ()
    """Stop sequences that were not sent to the upstream."""
    several: bool = False
    """Several answers were requested from the upstream."""
    answer_tool: str = ""
    """The function whose arguments are the answer in the format that the client requested."""
    call_tool: str = ""
    """The function whose arguments the model was to write as its answer."""
    call_id: str = ""
    """The id of that call."""

    def __bool__(self) -> bool:
        return bool(self.stops or self.answer_tool or self.call_tool)

    def response(self, response: Response, losses: list[Loss]) -> Response:
        """Changes a whole answer."""
        if self.answer_tool:
            answer = AnswerFilter(self.answer_tool)
            response = fold(answer.events([*unfold(response)]))
            losses += answer.losses
        if self.call_tool:
            response = fold(CallFilter(self).events([*unfold(response)]))
        return cut_response(response, self.stops) if self.stops else response


class Emulator:
    """The same for the events of a stream, as they arrive."""

    def __init__(self, emulation: Emulation) -> None:
        self.holds = False
        """The last call received events and passed none of them on."""
        self._answer = AnswerFilter(emulation.answer_tool) if emulation.answer_tool else None
        self._call = CallFilter(emulation) if emulation.call_tool else None
        self._stops = StopFilter(emulation.stops, several=emulation.several) if emulation.stops else None

    @property
    def losses(self) -> list[Loss]:
        return self._answer.losses if self._answer is not None else []

    @property
    def may_cut(self) -> bool:
        return self._stops is not None

    @property
    def cut(self) -> bool:
        """Whether the answer was ended before its upstream finished: the rest is not needed."""
        return self._stops is not None and self._stops.cut

    def events(self, events: list[Event]) -> list[Event]:
        came = events
        if self._answer is not None:
            events = self._answer.events(events)
        if self._call is not None:
            events = self._call.events(events)
        if self._stops is not None:
            events = self._stops.events(events)
        self.holds = bool(came) and not events
        return events


class EmulatingReader:
    """A stream reader that applies an `Emulator` to the events of another."""

    def __init__(self, reader: StreamReader, emulator: Emulator) -> None:
        self._reader = reader
        self._emulator = emulator

    @property
    def flaws(self) -> list[str]:
        return getattr(self._reader, "flaws", [])

    def read(self, data: bytes) -> list[Event]:
        return self._emulator.events(self._reader.read(data))

    def end(self) -> list[Event]:
        return self._emulator.events(self._reader.end())


class AnswerFilter:
    """Converts the calls of one function to text. Prose next to such a call does not belong to the answer, so
    prose is held back until it is known that no such call follows: until another call, or the end."""

    def __init__(self, tool: str) -> None:
        self.losses: list[Loss] = []
        self._tool = tool
        self._indices: dict[int, int] = {}
        """Index of an open part upstream -> its index for the client."""
        self._next = 0
        self._waiting: list[Event] = []
        self._prose: set[int] = set()  # open parts that are held back
        self._left_out: dict[int, str] = {}
        """Open parts that do not belong to the answer, and why."""
        self._answers: set[int] = set()  # open calls of the function
        self._answered = False
        self._called = False

    def events(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            if type(event) is Delta:
                if event.index in self._prose:
                    self._waiting.append(event)
                elif event.index in self._left_out:
                    self._lose(self._left_out[event.index], event.text)
                else:
                    passed.append(Delta(self._indices[event.index], event.text, event.logprobs))
            elif type(event) is PartStart:
                self._open(event, passed)
            elif type(event) is PartEnd:
                self._close(event, passed)
            elif type(event) is Finish:
                self._release(passed)
                passed.append(msgspec.structs.replace(event, stop=self._stop(event.stop)))
            elif type(event) is Failure:
                self._release(passed)
                passed.append(event)
            elif type(event) is OtherAnswer:
                passed.append(OtherAnswer(self._other(event.answer)))
            else:
                passed.append(event)
        return passed

    def _open(self, start: PartStart, passed: list[Event]) -> None:
        part, index = start.part, start.index
        if type(part) is Text and not part.refusal:
            if self._answered:
                self._left_out[index] = _BESIDE
                self._lose(_BESIDE, part.text)
            else:
                self._prose.add(index)
                self._waiting.append(start)
            return
        if type(part) is ToolCall and part.name == self._tool:
            self._open_answer(index, part, passed)
            return
        if type(part) is ToolCall:
            self._called = True
            self._release(passed)
        self._start(index, start, passed)

    def _open_answer(self, index: int, call: ToolCall, passed: list[Event]) -> None:
        if self._answered:
            self._left_out[index] = _SECOND
            self._lose(_SECOND, call.arguments)
            return
        self._answered = True
        for event in self._waiting:
            if type(event) is Delta:
                self._lose(_BESIDE, event.text)
        self._left_out |= dict.fromkeys(self._prose, _BESIDE)
        self._prose.clear()
        self._waiting.clear()
        self._answers.add(index)
        self._start(index, PartStart(index, Text("")), passed)
        if call.arguments:
            passed.append(Delta(self._indices[index], call.arguments))

    def _close(self, end: PartEnd, passed: list[Event]) -> None:
        index = end.index
        if index in self._prose:
            self._waiting.append(end)
            self._prose.discard(index)
        elif index in self._left_out:
            del self._left_out[index]
        elif index in self._answers:
            self._answers.discard(index)
            passed.append(PartEnd(self._indices.pop(index)))
        else:
            passed.append(msgspec.structs.replace(end, index=self._indices.pop(index)))

    def _start(self, index: int, start: PartStart, passed: list[Event]) -> None:
        self._indices[index] = self._next
        passed.append(PartStart(self._next, start.part))
        self._next += 1

    def _release(self, passed: list[Event]) -> None:
        """Pass on the held prose, which belongs to the answer."""
        waiting, self._waiting = self._waiting, []
        self._prose.clear()
        for event in waiting:
            if type(event) is PartStart:
                self._start(event.index, event, passed)
            elif type(event) is Delta:
                passed.append(Delta(self._indices[event.index], event.text, event.logprobs))
            elif type(event) is PartEnd:
                self._close(event, passed)

    def _stop(self, stop: Stop) -> Stop:
        if self._answered and not self._called and stop.reason == "tool_calls":
            return Stop("end")
        return stop

    def _lose(self, detail: str, text: str) -> None:
        loss = Loss("$.content", "output_format", "approximated", detail)
        if text and not text.isspace() and loss not in self.losses:
            self.losses.append(loss)

    def _other(self, answer: Candidate) -> Candidate:
        own = AnswerFilter(self._tool)
        response = fold(own.events([*unfold(Response("", "", answer.content, answer.stop))]))
        self.losses += [loss for loss in own.losses if loss not in self.losses]
        return Candidate(response.content, response.stop, answer.extra)


class CallFilter:
    """Converts the first text of an answer to the forced call, if it begins as an object does."""

    def __init__(self, emulation: Emulation) -> None:
        self._call = ToolCall(emulation.call_id, emulation.call_tool, "")
        self._waiting: list[Event] = []
        """The beginning of a text, until its first visible character."""
        self._index = -1
        """The text that is the call."""
        self._called = False

    def events(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            if (
                type(event) is PartStart
                and type(event.part) is Text
                and not self._called
                and not self._waiting
            ):
                self._waiting.append(PartStart(event.index, msgspec.structs.replace(event.part, text="")))
                self._index = event.index
                if event.part.text:
                    self._take(Delta(event.index, event.part.text), passed)
            elif self._waiting and type(event) is Delta and event.index == self._index:
                self._take(event, passed)
            elif type(event) is PartEnd and event.index == self._index:
                self._release(passed)
                passed.append(PartEnd(event.index) if self._called else event)
                self._index = -1
            elif type(event) is Delta and self._called and event.index == self._index:
                passed.append(Delta(event.index, event.text))
            elif type(event) is Finish:
                self._release(passed)
                is_end = self._called and event.stop.reason == "end"
                passed.append(msgspec.structs.replace(event, stop=Stop("tool_calls")) if is_end else event)
            else:
                if type(event) is Failure:
                    self._release(passed)
                passed.append(event)
        return passed

    def _take(self, delta: Delta, passed: list[Event]) -> None:
        said = delta.text.lstrip()
        if not said:
            self._waiting.append(delta)
        elif said[0] == "{":
            self._waiting.clear()
            self._called = True
            passed += (PartStart(self._index, self._call), Delta(self._index, said))
        else:
            self._release(passed)
            passed.append(delta)

    def _release(self, passed: list[Event]) -> None:
        passed += self._waiting
        self._waiting.clear()
