"""An answer as it arrives: events, their grammar, and the way between events and a whole Response.

    Start (PartStart | Delta | PartEnd | UsageReport | ForeignEvent)* OtherAnswer* (Finish | Failure)

Part indices are unique and count up from 0 in order of their start; several parts may be open at once
(parallel tool calls interleave); every part that starts ends before Finish. Failure may come at any time,
even before Start, and leaves open parts open. A part whose end has `cut` does not belong to the answer.
Further answers to one request (`n`, `candidateCount`) come whole, after the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from wireglot_core.ir.content import (
    PHASE,
    Citation,
    Extra,
    Foreign,
    Media,
    Part,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.ir.safeguards import SafeguardResult

_FEW: Final = 64


class GrowingText(msgspec.Struct, eq=False):
    """A list of the pieces would take ten times their memory: a short string is mostly object header. So the
    last few are kept as received, those before them as long strings."""

    _long: list[str] = []
    _last: list[str] = []

    def add(self, text: str) -> None:
        last = self._last
        last.append(text)
        if len(last) == _FEW:
            self._long.append("".join(last))
            last.clear()

    def __str__(self) -> str:
        return "".join(self._long) + "".join(self._last)


class Start(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    id: str
    model: str
    created: int = 0
    usage: Usage | None = None
    service_tier: str = ""
    extra: Extra | None = None


class PartStart(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """`part`: what is known at the start: a ToolCall with its final id and name, or a whole Media."""

    index: int
    part: Part


class Delta(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """More prose, reasoning or argument text for an open part; always incremental, never cumulative."""

    index: int
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class PartEnd(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """What is only known at the end. None and empty values keep those of PartStart; `extra` replaces it.
    `cut`: the answer reached its limit inside this part, which is a call: it must not be executed."""

    index: int
    signature: Signature | None = None
    citations: tuple[Citation, ...] = ()
    extra: Extra | None = None
    cut: bool = False


class UsageReport(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """The usage so far; a later report replaces an earlier one."""

    usage: Usage


class ForeignEvent(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """An event only one dialect knows, verbatim. It changes nothing in the folded response."""

    dialect: str
    type: str
    value: dict[str, Any]


class OtherAnswer(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """A second or later answer to one request, in order of their numbers."""

    answer: Candidate


class Finish(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    """The end of an answer. `usage` is final. `extra` replaces that of Start if given (fields known only at
    the end)."""

    stop: Stop
    usage: Usage | None = None
    service_tier: str = ""
    extra: Extra | None = None
    safeguard_results: tuple[SafeguardResult, ...] = ()


class Failure(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True):
    error: ApiError


Event = Start | PartStart | Delta | PartEnd | UsageReport | ForeignEvent | OtherAnswer | Finish | Failure


FLAWS: Final = {
    "second_start": "the answer began twice",
    "second_end": "the answer ended twice",
    "content_after_end": "content followed the end of the answer",
    "index_not_growing": "a part had the index of an earlier one, or a lower one",
    "number_not_growing": "an event had the number of an earlier one, or a lower one",
    "piece_without_part": "a piece belonged to no part that was open",
}
"""Rules of a dialect that a provider's stream may break and still be readable. The answer continues; readers
and taps report each once (`flaws`), for the metrics, the log and the trace."""


class BrokenGrammar(AssertionError):
    """A reader produced events out of order: a bug of Wireglot, never of the provider."""


class StreamFailed(Exception):
    """`fold` met a Failure."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


def check(events: Iterable[Event]) -> Iterator[Event]:
    """Pass events through, raising BrokenGrammar at the first one the grammar forbids."""
    started = ended = False
    opened = 0
    live: set[int] = set()
    for event in events:
        if ended:
            raise BrokenGrammar(f"{event!r} after the end")
        match event:
            case Delta(index=index):
                if index not in live:
                    raise BrokenGrammar(f"delta for part {index}, which is not open")
            case PartStart(index=index):
                if not started:
                    raise BrokenGrammar("part before Start")
                if index != opened:
                    raise BrokenGrammar(f"part {index} started, {opened} was next")
                opened += 1
                live.add(index)
            case PartEnd(index=index):
                if index not in live:
                    raise BrokenGrammar(f"end of part {index}, which is not open")
                live.remove(index)
            case Start():
                if started:
                    raise BrokenGrammar("second Start")
                started = True
            case Finish():
                if not started:
                    raise BrokenGrammar("Finish before Start")
                if live:
                    raise BrokenGrammar(f"Finish with open parts {sorted(live)}")
                ended = True
            case Failure():
                ended = True
            case UsageReport() | ForeignEvent() | OtherAnswer():
                if not started:
                    raise BrokenGrammar(f"{type(event).__name__} before Start")
        yield event
    if not ended:
        raise BrokenGrammar("no Finish and no Failure")


class _Open(msgspec.Struct, eq=False):
    """A part being collected."""

    part: Part
    text: GrowingText = msgspec.field(default_factory=GrowingText)
    logprobs: list[TokenLogprob] = []

    def close(self, end: PartEnd) -> Part:
        return finish_part(self.part, str(self.text), tuple(self.logprobs), end)


def finish_part(part: Part, text: str, logprobs: tuple[TokenLogprob, ...], end: PartEnd) -> Part:
    """The complete part, after its deltas and its end."""
    extra = end.extra if end.extra is not None else getattr(part, "extra", None)
    match part:
        case Text():
            return Text(
                part.text + text,
                refusal=part.refusal,
                citations=part.citations + end.citations,
                logprobs=part.logprobs + logprobs,
                signature=end.signature or part.signature,
                cache=part.cache,
                extra=extra,
            )
        case Reasoning():
            return Reasoning(part.text + text, end.signature or part.signature, part.redacted, extra)
        case ToolCall():
            return ToolCall(
                part.id,
                part.name,
                part.arguments + text,
                kind=part.kind,
                namespace=part.namespace,
                signature=end.signature or part.signature,
                cache=part.cache,
                extra=extra,
            )
        case Media():
            if end.signature is None and end.extra is None:
                return part
            return msgspec.structs.replace(part, signature=end.signature or part.signature, extra=extra)
        case _:
            return part


class Folding:
    """Collects a response from its events as they arrive: parts and texts are kept, the events are not."""

    __slots__ = ("_failure", "_finish", "_live", "_others", "_parts", "_start", "_usage", "cut")

    def __init__(self) -> None:
        self.cut: list[ToolCall] = []
        """Calls without an end, which do not belong to the response (see `PartEnd.cut`)."""
        self._start: Start | None = None
        self._usage: Usage | None = None
        self._parts: dict[int, Part] = {}
        self._live: dict[int, _Open] = {}
        self._others: list[Candidate] = []
        self._finish: Finish | None = None
        self._failure: Failure | None = None

    def add_delta(self, delta: Delta) -> None:
        collected = self._live[delta.index]
        collected.text.add(delta.text)
        if delta.logprobs:
            collected.logprobs.extend(delta.logprobs)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if type(event) is Delta:  # most of a stream, and to match it costs twice as much
                self.add_delta(event)
                continue
            match event:
                case PartStart(index=index, part=part):
                    self._live[index] = _Open(part)
                case PartEnd(index=index):
                    part = self._live.pop(index).close(event)
                    if not event.cut:
                        self._parts[index] = part
                    elif type(part) is ToolCall:
                        self.cut.append(part)
                case Start():
                    self._start, self._usage = event, event.usage
                case UsageReport():
                    self._usage = event.usage
                case Finish():
                    self._finish = event
                    return
                case Failure():
                    self._failure = event
                    return
                case OtherAnswer(answer=answer):
                    self._others.append(answer)
                case ForeignEvent():
                    pass

    @property
    def failure(self) -> ApiError | None:
        return self._failure.error if self._failure is not None else None

    def so_far(self, stop: Stop) -> Response | None:
        """The response so far of an answer without an end, including its open parts; None before its Start.
        `stop` replaces the missing stop reason."""
        if self._start is None:
            return None
        still_open = {index: part.close(PartEnd(index)) for index, part in self._live.items()}
        parts = {**self._parts, **still_open}
        start = self._start
        return Response(
            id=start.id,
            model=start.model,
            content=tuple(parts[index] for index in sorted(parts)),
            stop=stop,
            usage=self._usage,
            created=start.created,
            service_tier=start.service_tier,
            others=tuple(self._others),
            extra=start.extra,
        )

    def response(self) -> Response:
        """The response that the events add up to. Raises StreamFailed if they end in a Failure."""
        if self._failure is not None:
            raise StreamFailed(self._failure.error)
        start, finish = self._start, self._finish
        if start is None or finish is None:
            raise BrokenGrammar("the events end without Finish or Failure")
        return Response(
            id=start.id,
            model=start.model,
            content=tuple(map(self._parts.__getitem__, sorted(self._parts))),
            stop=finish.stop,
            usage=finish.usage if finish.usage is not None else self._usage,
            created=start.created,
            service_tier=finish.service_tier or start.service_tier,
            others=tuple(self._others),
            safeguard_results=finish.safeguard_results,
            extra=finish.extra if finish.extra is not None else start.extra,
        )


def fold(events: Iterable[Event]) -> Response:
    """The whole response that a stream of events adds up to. Raises StreamFailed on a Failure."""
    folding = Folding()
    folding.add(events)
    return folding.response()


def unfold(response: Response) -> Iterator[Event]:
    """The events of a response that arrived whole."""
    yield Start(
        response.id,
        response.model,
        created=response.created,
        service_tier=response.service_tier,
        extra=response.extra,
    )
    for index, part in enumerate(response.content):
        match part:
            case Text(text=text):
                phase = part.signature if part.signature is not None and part.signature.id == PHASE else None
                yield PartStart(
                    index,
                    msgspec.structs.replace(part, text="", citations=(), logprobs=(), signature=phase),
                )
                if text or part.logprobs:
                    yield Delta(index, text, part.logprobs)
                yield PartEnd(index, None if phase is not None else part.signature, part.citations)
            case Reasoning(text=text):
                yield PartStart(
                    index, Reasoning("", part.signature if part.redacted else None, part.redacted, part.extra)
                )
                if text:
                    yield Delta(index, text)
                yield PartEnd(index, None if part.redacted else part.signature)
            case ToolCall(arguments=arguments):
                yield PartStart(index, msgspec.structs.replace(part, arguments=""))
                if arguments:
                    yield Delta(index, arguments)
                yield PartEnd(index)
            case Media() | Foreign():
                yield PartStart(index, part)
                yield PartEnd(index)
            case _:
                raise BrokenGrammar(f"{type(part).__name__} in a response")
    for other in response.others:
        yield OtherAnswer(other)
    yield Finish(
        response.stop,
        response.usage,
        response.service_tier,
        safeguard_results=response.safeguard_results,
    )
