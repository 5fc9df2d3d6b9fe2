"""Answers: whole, and as streams of events."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from typing import cast

from hypothesis import strategies as st
from msgspec.structs import replace

from wireglot.ir.content import Media, Part, Text, TokenLogprob, ToolCall
from wireglot.ir.errors import ApiError, ErrorKind
from wireglot.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot.ir.stream import Delta, Event, Failure, ForeignEvent, PartStart, UsageReport, unfold
from wireglot.testing.strategies import samples
from wireglot.testing.strategies.content import ContentSource

_COUNT = st.integers(0, 5000)


class AnswerSource(ContentSource):
    def usage(self) -> Usage | None:
        if self.chance(1):
            return None
        return Usage(
            input=self.draw(_COUNT),
            cache_read=self.count(),
            cache_write=0 if self.plain else self.count(),
            cache_write_long=self.count() if self.rare() else 0,
            tool_prompt=self.count() if self.rare() else 0,
            output=self.draw(_COUNT),
            reasoning=self.one((None, 0, 17)),
        )

    def count(self) -> int:
        return cast(int, self.draw(_COUNT)) if self.chance(4) else 0

    def stop(self, content: tuple[Part, ...]) -> Stop:
        if any(isinstance(part, ToolCall) for part in content):
            return Stop("length" if self.rare() else "tool_calls")
        if self.plain:
            return Stop(self.one(("end", "length")))
        reason: StopReason = self.one(
            ("end", "end", "stop_sequence", "length", "context_full", "paused", "other")
        )
        return Stop(reason, sequence="END" if reason == "stop_sequence" else None)

    def response(self) -> Response:
        content = self.answer(history=False)
        texts = [part for part in content if isinstance(part, Text)]
        stop = self.stop(content)
        if len(texts) == 1 and self.rare():
            token = TokenLogprob(texts[0].text, -0.5, ((texts[0].text, -0.5), ("other", -2.25)))
            content = tuple(
                replace(part, logprobs=(token,)) if part is texts[0] else part for part in content
            )
        elif len(content) == 1 and texts and self.rare():
            content = (Text(texts[0].text, refusal=True),)
            stop = Stop("refused")
        elif self.rare():
            content = (*content, Media("image", "image/png", samples.PNG))
        return Response(
            self.one(("resp_1", "msg_1", "chatcmpl-1", "abc-DEF_1", "")),
            "some-model",
            content,
            stop,
            usage=self.usage(),
            created=self.one((0, 1760000000)),
            service_tier=self.one(("standard", "priority", "flex", "batch")) if self.rare() else "",
            others=(Candidate((Text("another"),), Stop("end")),) if self.rare() else (),
            safeguard_results=samples.SAFEGUARD_RESULTS if self.rare() else (),
            extra=self.extra("response"),
        )

    def events(self, failing: bool) -> list[Event]:
        first, *middle, last = unfold(replace(self.response(), others=()))
        parts: list[list[Event]] = []
        for event in middle:
            if isinstance(event, PartStart):
                parts.append([])
            parts[-1].extend(self.pieces(event) if isinstance(event, Delta) else (event,))
        out = [first]
        while parts:
            out += self.interleaved(parts) if self.chance(5) else parts.pop(0)
            if self.rare():
                out.append(UsageReport(Usage(input=5, output=self.draw(_COUNT))))
            foreign = [event for event in samples.FOREIGN_EVENTS if event[0] in self.origins]
            if foreign and self.rare():
                out.append(ForeignEvent(*self.one(foreign)))
        if failing and self.chance(3):
            return [*out[: self.draw(st.integers(0, len(out)))], Failure(self.error())]
        return [*out, last]

    def pieces(self, delta: Delta) -> list[Event]:
        if delta.logprobs or not delta.text:
            return [delta]
        cuts = sorted(self.draw(st.lists(st.integers(0, len(delta.text)), max_size=3)))
        bounds = [0, *cuts, len(delta.text)]
        pieces = [delta.text[start:end] for start, end in pairwise(bounds)]
        return [Delta(delta.index, piece) for piece in pieces if piece]

    def interleaved(self, parts: list[list[Event]]) -> list[Event]:
        """The events of the leading run of tool calls, taken in turns (or of the first part alone)."""
        run = [parts.pop(0)]
        while parts and _is_call(run[0]) and _is_call(parts[0]):
            run.append(parts.pop(0))
        opening = [events[0] for events in run]
        rounds = zip_longest(*(events[1:-1] for events in run))
        closing = [events[-1] for events in run]
        if self.chance(5):
            closing.reverse()
        return [*opening, *(event for turn in rounds for event in turn if event is not None), *closing]

    def error(self) -> ApiError:
        kind: ErrorKind = self.one(("server", "overloaded", "rate_limit", "invalid_request", "timeout"))
        return ApiError(kind, self.text())


def _is_call(events: list[Event]) -> bool:
    return isinstance(events[0], PartStart) and isinstance(events[0].part, ToolCall)
