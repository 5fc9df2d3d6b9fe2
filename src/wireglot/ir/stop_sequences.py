"""Cuts answers at stop sequences, for upstreams that do not support them: whole, or while their events pass.

The sequence that is complete first ends the answer, as it would in an engine that checks its text after each
token; of several that are complete at the same character it is the longest. So the cut does not depend on how
a stream was split. Only prose is searched, part by part: neither reasoning nor arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wireglot.ir.content import Part, Text, TokenLogprob, ToolCall
from wireglot.ir.outcome import Candidate, Response, Stop
from wireglot.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)


def first_match(text: str, sequences: Sequence[str]) -> tuple[int, str] | None:
    """Where to cut the text, and at which sequence."""
    found = [(at + len(each), at, each) for each in sequences if each and (at := text.find(each)) >= 0]
    if not found:
        return None
    _, at, sequence = min(found)
    return at, sequence


def open_match(text: str, sequences: Sequence[str]) -> int:
    """The number of characters at the end of a text that may begin a sequence."""
    longest = 0
    for each in sequences:
        for size in range(min(len(each) - 1, len(text)), longest, -1):
            if text.endswith(each[:size]):
                longest = size
                break
    return longest


def cut_response(response: Response, sequences: Sequence[str]) -> Response:
    """A whole answer up to the first stop sequence, and each further answer likewise."""
    cut = _cut(response.content, sequences)
    if cut is not None:
        response = msgspec.structs.replace(response, content=cut[0], stop=cut[1])
    if response.others:
        response = msgspec.structs.replace(
            response, others=tuple([_cut_answer(other, sequences) for other in response.others])
        )
    return response


def _cut_answer(answer: Candidate, sequences: Sequence[str]) -> Candidate:
    cut = _cut(answer.content, sequences)
    return answer if cut is None else msgspec.structs.replace(answer, content=cut[0], stop=cut[1])


def _cut(content: tuple[Part, ...], sequences: Sequence[str]) -> tuple[tuple[Part, ...], Stop] | None:
    for index, part in enumerate(content):
        found = first_match(part.text, sequences) if type(part) is Text else None
        if found is None:
            continue
        assert type(part) is Text
        at, sequence = found
        kept = content[:index]
        if at:
            held = _HeldText(tokens=list(part.logprobs))
            cited = tuple([each for each in part.citations if each.end is not None and each.end <= at])
            kept += (
                msgspec.structs.replace(
                    part, text=part.text[:at], citations=cited, logprobs=held.tokens_within(at)
                ),
            )
        return kept, Stop("stop_sequence", sequence=sequence)
    return None


class _HeldText(msgspec.Struct, eq=False):
    """The text of an open part that was not passed on yet."""

    text: str = ""
    """Text that may be the beginning of a sequence."""
    tokens: list[TokenLogprob] = []
    passed: int = 0
    """Characters of the first token that have been passed on."""

    def tokens_within(self, characters: int) -> tuple[TokenLogprob, ...]:
        """The tokens that end within the next characters."""
        room = self.passed + characters
        count = 0
        for token in self.tokens:
            if len(token.token) > room:
                break
            room -= len(token.token)
            count += 1
        released = tuple(self.tokens[:count])
        del self.tokens[:count]
        self.passed = room
        return released


class StopFilter:
    """Cuts a stream at the first stop sequence. Text is held only while it may be the beginning of one.

    At the match the answer ends, unless more is needed: calls that are open are completed, and further
    answers (`several`) follow the first.
    """

    def __init__(self, sequences: Sequence[str], *, several: bool = False) -> None:
        self.cut = False
        """The answer was ended here before its upstream finished: the rest is not needed."""
        self._sequences = tuple([each for each in sequences if each])
        self._several = several
        self._texts: dict[int, _HeldText] = {}
        self._others: set[int] = set()  # open parts that are neither prose nor calls
        self._calls: set[int] = set()
        self._stop: Stop | None = None
        self._ended = False

    def events(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            if self._ended:
                break
            if self._stop is not None:
                self._after(event, self._stop, passed)
            elif type(event) is Delta:
                held = self._texts.get(event.index)
                if held is None:
                    passed.append(event)
                else:
                    self._search(event.index, held, event.text, event.logprobs, passed)
            elif type(event) is PartStart:
                self._open(event, passed)
            else:
                self._pass(event, passed)
        return passed

    def _open(self, start: PartStart, passed: list[Event]) -> None:
        part = start.part
        if type(part) is not Text:
            (self._calls if type(part) is ToolCall else self._others).add(start.index)
            passed.append(start)
            return
        held = self._texts[start.index] = _HeldText()
        if not part.text:
            passed.append(start)
            return
        passed.append(PartStart(start.index, msgspec.structs.replace(part, text="", logprobs=())))
        self._search(start.index, held, part.text, part.logprobs, passed)

    def _pass(self, event: Event, passed: list[Event]) -> None:
        if type(event) is PartEnd:
            held = self._texts.pop(event.index, None)
            if held is not None:
                self._release(event.index, held, passed)
            self._calls.discard(event.index)
            self._others.discard(event.index)
        elif type(event) is Failure:
            for index, held in self._texts.items():
                self._release(index, held, passed)
        elif type(event) is OtherAnswer:
            event = OtherAnswer(_cut_answer(event.answer, self._sequences))
        passed.append(event)

    def _release(self, index: int, held: _HeldText, passed: list[Event]) -> None:
        if held.text or held.tokens:
            passed.append(Delta(index, held.text, tuple(held.tokens)))

    def _search(
        self, index: int, held: _HeldText, text: str, tokens: tuple[TokenLogprob, ...], passed: list[Event]
    ) -> None:
        whole = held.text + text if held.text else text
        held.tokens += tokens
        found = first_match(whole, self._sequences)
        at = found[0] if found is not None else len(whole) - open_match(whole, self._sequences)
        logprobs = held.tokens_within(at)
        held.text = whole[at:]
        if at or logprobs:
            passed.append(Delta(index, whole[:at], logprobs))
        if found is not None:
            self._match(found[1], passed)

    def _match(self, sequence: str, passed: list[Event]) -> None:
        passed.extend([PartEnd(index) for index in sorted((*self._texts, *self._others))])
        self._stop = Stop("stop_sequence", sequence=sequence)
        self._end_early(self._stop, passed)

    def _end_early(self, stop: Stop, passed: list[Event]) -> None:
        if not self._calls and not self._several:
            self.cut = self._ended = True
            passed.append(Finish(stop))

    def _after(self, event: Event, stop: Stop, passed: list[Event]) -> None:
        """Pass on the events that are still needed after the match."""
        match event:
            case Delta(index=index):
                if index in self._calls:
                    passed.append(event)
            case PartEnd(index=index):
                if index in self._calls:
                    self._calls.discard(index)
                    passed.append(event)
                    self._end_early(stop, passed)
            case Finish():
                self._ended = True
                passed.append(msgspec.structs.replace(event, stop=stop))
            case OtherAnswer() | Failure():
                self._pass(event, passed)
            case UsageReport() | Start():
                passed.append(event)
            case _:  # parts that begin after the match
                pass
