"""A stream of one dialect written in another."""

from __future__ import annotations

import msgspec

from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.exchange import Exchange, whole_usage
from wireglot.gateway.request.token_weight import (
    ESTIMATED,
    LETTER,
    events_weight,
    is_unreported,
    tells_usage,
    text_weight,
)
from wireglot.gateway.streams.feeder import (
    STREAM_TIMES,
    asked,
    begins,
    reasoning_filter,
    shown_searches,
    signed,
    too_large,
    usage_source,
)
from wireglot.gateway.targets.prepared import Prepared
from wireglot_core.dialects.base import Dialect, StreamReader, StreamWriter
from wireglot_core.dialects.places import answer_located
from wireglot_core.ir.content import ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Usage
from wireglot_core.ir.stream import Delta, Event, Failure, Finish, Folding, OtherAnswer, Start, fold, unfold
from wireglot_core.ir.verdict import INTERRUPTIONS, NoAnswer, StreamVerdict, accept
from wireglot_core.providers.aliases import NO_ALIASES, EventRestorer
from wireglot_core.providers.carried import MinterNamer
from wireglot_core.providers.emulation import EmulatingReader, Emulator


class Translation:
    """Events of one dialect written in another."""

    def __init__(
        self,
        exchange: Exchange,
        upstream: Dialect,
        prepared: Prepared,
        client: ClientStream,
        *,
        keeps: bool,
    ) -> None:
        """`keeps`: the answer is collected as it passes, and its end waits until it is stored."""
        self.ended = False
        self.failure: ApiError | None = None
        self.moved = False
        self.cut = False
        self.holds_end = keeps
        self._request = prepared.request or (asked(exchange) if prepared.leaks_calls else None)
        self.writer: StreamWriter = exchange.codec.stream_writer(prepared.context, self._request)
        self._exchange = exchange
        self._client = client
        self._reader: StreamReader = upstream.stream_reader(prepared.context)
        self._emulator = Emulator(prepared.emulation) if prepared.emulation is not None else None
        if self._emulator is not None:
            self._reader = EmulatingReader(self._reader, self._emulator)
        self._restorer = EventRestorer(prepared.aliases) if prepared.aliases != NO_ALIASES else None
        self._searches = shown_searches(exchange, upstream, self._request)
        self._reasoning_filter = reasoning_filter(exchange, prepared, keeps=keeps)
        minter = prepared.minter if self._reasoning_filter is None else None
        self._reasoning = MinterNamer(minter) if minter is not None else self._reasoning_filter
        """Removes reasoning that the client did not ask for, or names its minter."""
        # Writers keep the text for their last event.
        self._room = exchange.job.settings.limits.response * STREAM_TIMES
        self._buffer: list[Event] = []
        """Events that may begin an answer but are not one yet."""
        self._begun = False
        self._flowing = -1
        """The part of which a further piece of text is sent at once."""
        self._leaks_calls = prepared.leaks_calls
        self._cuts = prepared.context.emulates
        self._renamed = prepared.aliases.functions if prepared.leaks_calls else {}
        client_side = exchange.job.surface.client
        self._watch = StreamVerdict(
            self._request,
            leaves_out=client_side.leaves_out_calls,
            leaks_calls=self._leaks_calls,
            renamed=self._renamed,
        )
        self._tells_usage = tells_usage(client_side, self._request)
        self._usage_first = self._tells_usage and client_side.usage_first
        self._unreported = self._tells_usage
        """Whether the usage of the answer still has to be reported."""
        self._weight = 0
        """The weight of the answer so far, while its usage is unreported."""
        self._estimate: Usage | None = None
        self._folding = Folding() if keeps else None
        self._pending: Finish | None = None
        self._own_words: ApiError | None = None
        """The upstream's error before it was adapted for the client, for the log."""

    def feed(self, data: bytes) -> None:
        self._room -= len(data)
        if self._room < 0:
            raise too_large()
        events = self._reader.read(data)
        if not events:
            self.moved = self.moved or (self._emulator is not None and self._emulator.holds)
            return
        self.moved = True
        delta = events[-1]
        if type(delta) is not Delta or delta.index != self._flowing or len(events) > 1:
            self._take(events)
            self._flowing = self._flows(delta)
            return
        # A further piece of a text, as most of a stream is: the same result as `_take`, faster.
        if self._unreported:
            text = delta.text
            self._weight += len(text) * LETTER if text.isascii() else text_weight(text)
        if self._folding is not None:
            self._folding.add_delta(delta)
        if self._reasoning_filter is not None:
            events = self._reasoning_filter.events(events)
        written = self.writer.write(events)
        if written:
            self._client.write(written)

    def _flows(self, last: Event) -> int:
        if type(last) is not Delta or not self._begun or self.ended:
            return -1
        if self._restorer is not None or self._searches is not None:
            return -1
        return last.index if self._watch.is_known(last.index) else -1

    def finish(self) -> None:
        if not self.ended:
            self._take(self._reader.end())

    def fail(self, error: ApiError) -> None:
        if not self.ended:
            self._begun = True
            self._take([Failure(error)])

    def abandon(self) -> None:
        if not self.ended:
            usage = self._watch.usage
            self._exchange.record.used(usage, usage_source(usage, False))

    def events(self, events: list[Event]) -> None:
        """Events that did not come over the wire (from an answer that was not streamed)."""
        self._take(events)

    def _take(self, events: list[Event]) -> None:
        if self.ended:
            return
        watch = self._watch
        came = events
        events = watch.pass_on(came)
        self._unreported = self._tells_usage and (watch.usage is None or is_unreported(watch.usage))
        if self._emulator is not None and self._emulator.may_cut:
            self._look_for_cut(self._emulator, came[-1])
        if not self._begun:
            events = self._begin(events, came)
        if not events:
            return
        last = events[-1]
        if self._unreported:
            self._weight += events_weight(events)
        if type(last) is Finish or type(last) is Failure:
            last = self._ending(last, watch)
            events = [*events[:-1], last]
        if self._restorer is not None:
            events = self._restorer.events(events)
        if self._searches is not None:
            events = self._searches.events(events)
            last = events[-1]
        if self._folding is not None:
            self._folding.add(events)
            if type(last) is Finish:
                events, self._pending, self.ended = events[:-1], last, True
        if self._reasoning is not None:
            events = self._reasoning.events(events)
        if type(last) is Failure or (type(last) is Finish and self._pending is None):
            self._end(last, self.writer.write(events))
            return
        data = self.writer.write(events)
        if data:
            self._client.write(data)

    def _look_for_cut(self, emulator: Emulator, last: Event) -> None:
        """The usage of an answer that is cut off is never reported: it is counted from its beginning."""
        self.cut = emulator.cut
        self._unreported |= self.cut or type(last) is not Finish

    def _begin(self, events: list[Event], came: list[Event]) -> list[Event]:
        """All events since the start, once they begin an answer; none before. `came`: as they came."""
        if self._watch.verdict is not None:
            events = self._repaired(self._watch, came)
        self._buffer += events
        if not begins(events):
            return []
        self._begun = True
        events, self._buffer = self._buffer, []
        if type(events[0]) is Start:
            events[0] = self._opening(events[0])
        return events

    def _ending(self, last: Finish | Failure, watch: StreamVerdict) -> Finish | Failure:
        """The last event, with an estimate of usage that was not reported, or with the gateway's words."""
        if type(last) is Failure:
            self._own_words = last.error
            return Failure(signed(last.error, self._exchange))
        if self._unreported:
            self._estimate = self._estimated(watch.usage)
            return msgspec.structs.replace(last, usage=self._estimate)
        return last

    def _estimated(self, reported: Usage | None) -> Usage:
        """The usage of an answer that was cut off; its upstream may have reported the usage at its start."""
        estimate = self._exchange.estimated_usage(self._weight)
        if reported is None or is_unreported(reported):
            return estimate
        output = max(estimate.output, reported.output)
        return msgspec.structs.replace(reported, output=output, raw=None)

    def _opening(self, start: Start) -> Start:
        """The first event, with the requested name, and with the estimated input usage: many providers report
        that at the end only."""
        if self._exchange.job.surface.client.asked_model is not None:
            start = msgspec.structs.replace(start, model=self._exchange.job.model)
        if self._usage_first and is_unreported(start.usage):
            self._exchange.estimates_input = True
            start = msgspec.structs.replace(start, usage=Usage(input=self._exchange.expected_input()))
        return start

    def _repaired(self, watch: StreamVerdict, came: list[Event]) -> list[Event]:
        """An answer that ended before anything of it was sent: checked as a whole one."""
        assert watch.verdict is not None
        if watch.verdict not in INTERRUPTIONS:
            raise NoAnswer(watch.verdict, watch.usage)
        watch.verdict = None
        accepted = accept(
            fold([*self._buffer, *came]),
            self._request,
            leaks_calls=self._leaks_calls,
            renamed=self._renamed,
            cuts=self._cuts,
        )
        places = self._exchange.codec.places
        self._exchange.record.lost(answer_located(places, accepted.losses))
        self._buffer = []
        return list(unfold(accepted.response))

    def response(self) -> Response | None:
        if self._pending is None or self._folding is None:
            return None
        return self._folding.response()

    def cut_calls(self) -> list[ToolCall]:
        """Calls that the client has seen begin and that are not part of the answer: its limit cut them
        off."""
        return self._folding.cut if self._folding is not None else []

    def release(self, error: ApiError | None = None) -> None:
        if self._pending is None:
            return  # it did not end properly, which has been reported
        last: Finish | Failure = self._pending
        others: list[Event] = []
        if error is not None:
            last = Failure(signed(error, self._exchange))
        elif results := self._exchange.safeguard_results:
            last = msgspec.structs.replace(self._pending, safeguard_results=results)
        elif further := self._exchange.further:
            others = [OtherAnswer(each.answer) for each in further]
            usage = whole_usage(self._pending.usage or self._watch.usage, further)
            last = msgspec.structs.replace(self._pending, usage=usage)
            if any(each.estimated for each in further):
                self._exchange.record.lost([ESTIMATED])
        self._end(last, self.writer.write([*others, last]))

    def _end(self, last: Finish | Failure, data: bytes) -> None:
        self.ended = True
        record = self._exchange.record
        usage = self._watch.usage
        source = usage_source(usage, type(last) is Finish or self._watch.verdict is not None)
        if self._estimate is not None:
            usage, source = self._estimate, "estimated"
            record.lost([ESTIMATED])
        record.used(usage, source)
        losses = self._watch.losses + self.writer.losses
        if self._emulator is not None:
            losses = self._emulator.losses + losses
        if self._searches is not None:
            losses = self._searches.losses + losses
        if self._reasoning is not None:
            losses = self._reasoning.losses + losses
        if losses:
            places = self._exchange.codec.places
            record.lost(answer_located(places, losses))
        if flaws := getattr(self._reader, "flaws", None):  # a custom dialect need not have any
            record.flawed(flaws)
        if type(last) is Finish:
            record.stopped(last.stop.reason)
        elif type(last) is Failure:
            self.failure = last.error
            record.failed(self._own_words or last.error)
        if data:
            self._client.write(data, last=True, answers=type(last) is Finish)
        self._client.end()
