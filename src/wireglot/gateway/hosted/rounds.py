"""One answer made of several rounds: what the client is shown, and what is sent back to the model.

A round is one request to an upstream. Its answer passes through the relay's ordinary delivery, written by a
`RoundWriter` in place of the client's own writer: parts are numbered continuously over all rounds; calls of
the gateway's functions and the end of a round are held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from wireglot.gateway.hosted.runner import result_parts
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.ending import KeepsAll
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.targets.routing import Target
from wireglot_core.dialects.base import Dialect, StreamWriter
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.ir.content import Citation, Extra, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.hosted import RanCall, WebSource, without_calls
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    Folding,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    unfold,
)

_QUOTED_CHARACTERS: Final = 150
"""As long as quotes in Anthropic's citations."""
_AFTER: Final = r"(?![\w/?=&%#~-]|[.:,;@!+][\w/])"
"""Characters that would continue the address. Punctuation at the end of a sentence does not."""


class OneAnswer:
    """Implements `Teller`: the answer as the client gets it."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.failed: ApiError | None = None
        self.context: Context | None = None
        """From the upstream that began to answer."""
        self.parts = 0
        """The index of the next part."""
        self.folding = Folding() if exchange.client is None else None
        self.sources: list[WebSource] = []
        """The sources that its texts may cite."""
        self.quotes = exchange.job.surface.client.hosted.quotes
        self.opening: list[Event] = []
        """Events before the model's own output."""
        self.extra: Extra | None = None
        """Fields of a whole round besides its content."""
        self._started = False
        self._writer: StreamWriter | None = None

    @property
    def losses(self) -> list[Loss]:
        return self._writer.losses if self._writer is not None else []

    def written(self, events: list[Event], context: Context | None = None) -> bytes:
        """The bytes that the client is sent for these events; none if it gets its answer whole."""
        self.context = self.context or context
        shown: list[Event] = []
        for event in events:
            if type(event) is Start:
                if self._started:
                    continue
                self._started = True
                event = msgspec.structs.replace(event, extra=None)  # its extra fields are about one round
                shown += (event, *self.opening)
                continue
            elif type(event) is PartStart:
                self.parts = event.index + 1
            elif type(event) is Failure:
                self.failed = event.error
            shown.append(event)
        if self.folding is not None:
            self.folding.add(shown)
            return b""
        if self._writer is None:
            exchange = self.exchange
            self._writer = exchange.codec.stream_writer(
                self.context or exchange.job.context, exchange.request()
            )
        return self._writer.write(shown)

    def show(self, events: list[Event]) -> None:
        data = self.written(events)
        if data and self.exchange.client is not None:
            self.exchange.client.write(data)

    def fail(self, error: ApiError) -> None:
        """The answer has begun, and breaks off."""
        client = self.exchange.client
        assert client is not None
        client.write(self.written([Failure(error)]), last=True, answers=False)
        client.end()


class RoundWriter:
    """Implements `StreamWriter`, for one attempt of one round."""

    def __init__(self, answer: OneAnswer, names: frozenset[str], context: Context) -> None:
        self.losses: list[Loss] = []
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.calls: dict[int, ToolCall] = {}
        """Calls of the gateway's functions, by their index in the round. One that was cut off does not
        count."""
        self.held: list[Event | int] = []
        """Events after the first of these calls; an index in place of a call."""
        self._answer = answer
        self.names = names
        """Of the functions that the gateway runs."""
        self._context = context
        self.sources = tuple(answer.sources)
        """The sources that the model knew when it wrote this round: its texts may cite them."""
        self._passes = not names and not answer.parts and not answer.sources
        """Whether the parts pass unchanged: the first round of a request in which no tool is run."""
        self._moved: dict[int, int] = {}
        self._texts: dict[int, list[str]] = {}
        """Texts of parts that are needed completely at their end."""

    def write(self, events: Iterable[Event]) -> bytes:
        shown: list[Event] = []
        for event in events:
            kind = type(event)
            if kind is Finish:
                assert type(event) is Finish
                self.finish = event
                self.usage = event.usage if event.usage is not None else self.usage
            elif kind is UsageReport:
                assert type(event) is UsageReport
                self.usage = event.usage
            elif kind is OtherAnswer:
                continue  # only one was requested
            elif kind is PartStart or kind is Delta or kind is PartEnd:
                if self._passes:
                    shown.append(event)
                    continue
                assert isinstance(event, PartStart | Delta | PartEnd)
                if not self._is_ours(event):
                    self._pass(event, shown)
            else:
                if type(event) is Start and event.usage is not None:
                    self.usage = event.usage
                shown.append(event)
        return self._answer.written(shown, self._context) if shown else b""

    def _is_ours(self, event: PartStart | Delta | PartEnd) -> bool:
        index = event.index
        if type(event) is PartStart:
            part = event.part
            if type(part) is not ToolCall or part.name not in self.names:
                return False
            self.calls[index] = part
            self._texts[index] = [part.arguments]
            self.held.append(index)
            return True
        if index not in self.calls or index in self._moved:
            return False
        if type(event) is Delta:
            self._texts[index].append(event.text)
        elif type(event) is PartEnd:
            call = self.calls[index]
            if event.cut:
                del self.calls[index]
                self.held.remove(index)
            else:
                self.calls[index] = msgspec.structs.replace(call, arguments="".join(self._texts[index]))
        return True

    def _pass(self, event: PartStart | Delta | PartEnd, shown: list[Event]) -> None:
        if self.held:
            self.held.append(event)
        else:
            shown.append(self.moved(event, after=shown))

    def moved(self, event: Event, after: list[Event] | None = None) -> Event:
        """The event with its index in the whole answer. `after`: events that are shown before it and are not
        written yet."""
        if type(event) is PartStart:
            started = sum(type(each) is PartStart for each in after) if after else 0
            index = self._moved[event.index] = self._answer.parts + started
            if type(event.part) is Text and self.sources:
                self._texts[event.index] = [event.part.text]
            return event if index == event.index else msgspec.structs.replace(event, index=index)
        if type(event) is Delta:
            index = self._moved[event.index]
            if event.index in self._texts:
                self._texts[event.index].append(event.text)
            return event if index == event.index else msgspec.structs.replace(event, index=index)
        if type(event) is PartEnd:
            index = self._moved[event.index]
            texts = self._texts.pop(event.index, None)
            if texts is not None:
                found = cited("".join(texts), self.sources, quotes=self._answer.quotes)
                event = msgspec.structs.replace(event, citations=event.citations + found)
            return msgspec.structs.replace(event, index=index)
        return event


class RoundResult:
    """A round that came to its end: the answer as the model wrote it, and what its calls of the gateway's
    functions brought."""

    def __init__(self, writer: RoundWriter, finish: Finish, kept: Response) -> None:
        self.writer = writer
        self.finish = finish
        self.kept = kept
        self.brought: dict[str, tuple[RanCall, tuple[Part, ...]]] = {}
        """By the id of the model's call: the call that was run, and the parts that the client was shown."""
        self.calls_others = bool(writer.calls) and any(
            type(part) is ToolCall and part.name not in writer.names for part in kept.content
        )
        """Whether the model also calls tools of the client's own."""

    @property
    def usage(self) -> Usage | None:
        return self.writer.usage

    @property
    def stop(self) -> Stop:
        """The end as the client is shown it: it does not see the calls of the gateway's functions."""
        hides_calls = self.writer.calls and not self.calls_others
        return without_calls(self.finish.stop) if hides_calls else self.finish.stop

    @property
    def is_answered(self) -> bool:
        """Whether every call has its result: the model can go on."""
        pending = any(ran.call is not None and ran.call.pending for ran, _ in self.brought.values())
        return bool(self.brought) and not self.calls_others and not pending

    def held_events(self) -> Iterator[Event]:
        """Events that were held back after a call. Show each before the next is made: it moves that one."""
        return (self.writer.moved(entry) for entry in self.writer.held if not isinstance(entry, int))

    def shown_content(self, *, quotes: bool) -> Iterator[Part]:
        """The content as the client is shown it: calls that were run in place of those of the model."""
        writer = self.writer
        for part in self.kept.content:
            if type(part) is Text and writer.sources:
                found = cited(part.text, writer.sources, quotes=quotes)
                yield msgspec.structs.replace(part, citations=part.citations + found)
            elif type(part) is not ToolCall or part.name not in writer.names:
                yield part
            elif part.id in self.brought:
                yield from self.brought[part.id][1]

    def results(self) -> tuple[ToolResult, ...]:
        """The results for the model, in the order of its calls."""
        results = []
        for part in self.kept.content:
            if type(part) is ToolCall and part.id in self.brought:
                result = self.brought[part.id][0].result
                assert result is not None
                results.append(ToolResult(part.id, result_parts(result), is_error=bool(result.error)))
        return tuple(results)


class RoundReply(CollectedReply):
    """The reply of one round: its bytes are passed to the client, without pings and without an end."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange
        job = exchange.job
        self._ping = job.surface.client.pings[job.context.framing]

    def write(self, data: bytes) -> None:
        client = self._exchange.client
        if client is not None and data and data != self._ping and self.status == 200:
            client.write(data)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._exchange.reply.on_pressure(pause, resume)


class Round(KeepsAll):
    """One round: its request and its result. A `Keeper` of its whole answer."""

    def __init__(self, answer: OneAnswer, request: Request, names: frozenset[str]) -> None:
        self.request = request
        self.targets: tuple[Target, ...] = ()
        """The allowed targets; () if they are not known yet."""
        self.problem: Exception | None = None
        self.kept: Response | None = None
        """The answer as the model wrote it, with its reasoning state."""
        self.writer: RoundWriter | None = None
        self._answer = answer
        self._names = names

    def begin(self, exchange: Exchange) -> None:
        """Prepare the exchange in which this round is sent."""
        if self.targets:
            exchange.targets = self.targets
        exchange.rewrite(self.request)
        exchange.codec = self.codec(exchange.codec)
        exchange.own_functions = self._names
        exchange.files = self._answer.exchange.files
        exchange.withholds_reasoning = self._answer.exchange.withholds_reasoning
        exchange.ending.keepers.append(self)

    def ask_again(self, exchange: Exchange, other: Round) -> None:
        """Send the request of another round to a target that is offered other functions."""
        self.request, self._names = other.request, other._names
        exchange.rewrite(self.request)
        exchange.own_functions = self._names

    def result(self) -> RoundResult | None:
        """None if the round has no end."""
        writer, kept = self.writer, self.kept
        if writer is None or writer.finish is None:
            return None
        if kept is None:  # its key was revoked: the answer ends here
            kept = Response("", self._answer.exchange.job.model, (), writer.finish.stop)
        return RoundResult(writer, writer.finish, kept)

    def codec(self, spoken: Dialect) -> Dialect:
        """The client's dialect, with writers that write one answer of all rounds."""
        return msgspec.structs.replace(
            spoken, stream_writer=self._open_writer, render_response=self._take_response
        )

    def _open_writer(self, context: Context, request: Request | None = None, /) -> StreamWriter:
        self.writer = RoundWriter(self._answer, self._names, context)
        return self.writer

    def _take_response(
        self, response: Response, context: Context, request: Request | None = None, /
    ) -> Rendered[dict[str, Any]]:
        self.writer = RoundWriter(self._answer, self._names, context)
        self.writer.write(unfold(response))
        self._answer.extra = response.extra
        return Rendered({})

    async def keep(self, response: Response) -> None:
        self.kept = response


def cited(text: str, sources: Sequence[WebSource], *, quotes: bool) -> tuple[Citation, ...]:
    """A citation for each place at which a text contains the URL of a source, in order."""
    known: dict[str, WebSource] = {}
    for source in sources:
        if source.url and source.url in text:
            known.setdefault(source.url, source)
    if not known:
        return ()
    longest_first = sorted(known, key=len, reverse=True)
    addresses = "|".join(map(re.escape, longest_first))
    found = []
    # A Markdown link as a whole, else the URL alone.
    for place in re.finditer(rf"\[[^\[\]]*\]\(<?({addresses})>?\)|({addresses}){_AFTER}", text):
        source = known[place[1] or place[2]]
        quote = source.text[:_QUOTED_CHARACTERS] if quotes else ""
        found.append(Citation(source.url, source.title, quote, start=place.start(), end=place.end()))
    return tuple(found)
