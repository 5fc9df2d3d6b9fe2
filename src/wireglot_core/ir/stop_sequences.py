"""Cuts answers at stop sequences, for upstreams that do not support them: whole, or while their events pass.

The sequence that is complete first ends the answer, as it would in an engine that checks its text after each
token; of several that are complete at the same character it is the longest. So the cut does not depend on how
a stream was split. Only prose is searched, part by part: neither reasoning nor arguments.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from wireglot_core.ir.content import Part, Text, TokenLogprob, ToolCall
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.ir.stream import (
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

# Stop sequences that are searched for in one answer; those beyond are reported as lost. Vendors that have
# stop sequences take 4 to 64 short ones; a table of all their beginnings is made, which grows with their
# text.
MAX_SEQUENCES: Final = 64
# Characters of all emulated stop sequences together.
MAX_SEQUENCE_CHARS: Final = 4096


def searched(sequences: Sequence[str]) -> tuple[str, ...]:
    """The sequences that are searched for: the first ones that the limits allow."""
    kept: list[str] = []
    room = MAX_SEQUENCE_CHARS
    for each in sequences:
        if each and len(each) <= room and len(kept) < MAX_SEQUENCES:
            room -= len(each)
            kept.append(each)
    return tuple(kept)


class _Beginnings:
    """All beginnings of some sequences, each with its successors: the automaton of Aho and Corasick, which
    finds all of them in one pass over a text. A beginning is a number, 0 is the empty one."""

    __slots__ = ("_following", "_shorter", "first", "found", "sizes")

    def __init__(self, sequences: Sequence[str]) -> None:
        self._following: list[dict[str, int]] = [{}]
        self._shorter = [0]
        """The longest other beginning that the text of a beginning ends with."""
        self.sizes = [0]
        self.found = [""]
        """The longest sequence that the text of a beginning ends with."""
        self.first = re.compile("[" + re.escape("".join({each[0] for each in sequences})) + "]")
        for each in sequences:
            self._add(each)
        waiting = deque(self._following[0].values())
        while waiting:
            here = waiting.popleft()
            self.found[here] = self.found[here] or self.found[self._shorter[here]]
            for char, following in self._following[here].items():
                self._shorter[following] = self.after(self._shorter[here], char)
                waiting.append(following)

    def _add(self, sequence: str) -> None:
        here = 0
        for char in sequence:
            following = self._following[here].get(char)
            if following is None:
                following = self._following[here][char] = len(self.sizes)
                self._following.append({})
                self._shorter.append(0)
                self.sizes.append(self.sizes[here] + 1)
                self.found.append("")
            here = following
        self.found[here] = sequence

    def after(self, here: int, char: str) -> int:
        """The longest beginning that the text of `here`, then `char`, ends with."""
        while (following := self._following[here].get(char)) is None:
            if not here:
                return 0
            here = self._shorter[here]
        return following

    def search(self, text: str, here: int = 0) -> tuple[int, int]:
        """The end of the first sequence in `text`, or of the text, and the beginning that the text ends with
        there. `here`: the beginning that the text before it ended with."""
        at, size = 0, len(text)
        while at < size:
            if not here:
                start = self.first.search(text, at)
                if start is None:
                    return size, 0
                at = start.start()
            here = self.after(here, text[at])
            at += 1
            if self.found[here]:
                return at, here
        return size, here


@lru_cache(maxsize=16)
def _beginnings(sequences: tuple[str, ...]) -> _Beginnings | None:
    return _Beginnings(sequences) if sequences else None


def first_match(text: str, sequences: Sequence[str]) -> tuple[int, str] | None:
    """Where to cut the text, and at which sequence."""
    beginnings = _beginnings(searched(sequences))
    if beginnings is None:
        return None
    end, reached = beginnings.search(text)
    sequence = beginnings.found[reached]
    return (end - len(sequence), sequence) if sequence else None


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
            held = _HeldText(tokens=deque(part.logprobs))
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
    reached: int = 0
    """That beginning."""
    tokens: deque[TokenLogprob] = msgspec.field(default_factory=deque)
    passed: int = 0
    """Characters of the first token that have been passed on."""

    def tokens_within(self, characters: int) -> tuple[TokenLogprob, ...]:
        """The tokens that end within the next characters."""
        room = self.passed + characters
        released: list[TokenLogprob] = []
        while self.tokens and len(self.tokens[0].token) <= room:
            released.append(self.tokens.popleft())
            room -= len(released[-1].token)
        self.passed = room
        return tuple(released)


class StopFilter:
    """Cuts a stream at the first stop sequence. Text is held only while it may be the beginning of one.

    At the match the answer ends, unless more is needed: calls that are open are completed, and further
    answers (`several`) follow the first.
    """

    def __init__(self, sequences: Sequence[str], *, several: bool = False) -> None:
        self.cut = False
        """The answer was ended here before its upstream finished: the rest is not needed."""
        self._sequences = searched(sequences)
        self._beginnings = _beginnings(self._sequences)
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
        held.tokens += tokens
        whole = held.text + text if held.text else text
        at, sequence = len(whole), ""
        if self._beginnings is not None:
            end, held.reached = self._beginnings.search(text, held.reached)
            sequence = self._beginnings.found[held.reached]
            at = len(whole) - len(text) + end - (len(sequence) or self._beginnings.sizes[held.reached])
        logprobs = held.tokens_within(at)
        held.text = whole[at:]
        if at or logprobs:
            passed.append(Delta(index, whole[:at], logprobs))
        if sequence:
            self._match(sequence, passed)

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
