"""The strategies themselves, as `@given` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Literal, cast

from hypothesis import strategies as st
from msgspec.structs import replace

from wireglot_core.ir.content import Media, Part, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import (
    EFFORTS,
    AnyTool,
    Grammar,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.stream import Delta, Event, Failure, ForeignEvent, PartStart, UsageReport, unfold
from wireglot_core.testing.strategies import samples
from wireglot_core.testing.strategies.content import TOOL_NAMES, ContentSource, Draw

_RATIO = st.sampled_from((0, 0.2, 0.5, 1, 1.0, 0.95))


class RequestSource(ContentSource):
    def tools(self) -> tuple[AnyTool, ...]:
        tools: list[AnyTool] = []
        for name in TOOL_NAMES[: self.draw(st.integers(0, 3))]:
            if self.rare():
                grammar = self.one((None, Grammar("lark", 'start: "a"'), Grammar("regex", "[a-z]+")))
                tools.append(Tool(name, "freeform", kind="custom", grammar=grammar))
                continue
            tools.append(
                Tool(
                    name,
                    self.one((None, "", "Does things.")),
                    self.one(samples.SCHEMAS),
                    self.one((None, False, True)) if self.rare(3) else None,
                    namespace="files" if self.rare() else "",
                    deferred=self.rare(),
                    cache=self.cache(),
                    extra=self.extra("tool"),
                )
            )
        hosted = [tool for tool in samples.HOSTED if tool.native.dialect in self.origins]
        if hosted and self.rare():
            tools.append(self.one(hosted))
        return tuple(tools)

    def tool_choice(self, tools: tuple[AnyTool, ...]) -> ToolChoice | None:
        names = tuple(tool.name for tool in tools if isinstance(tool, Tool) and not tool.namespace)
        if not names or not self.chance(4):
            return None
        choices = [
            ToolChoice("auto"),
            ToolChoice("none"),
            ToolChoice("required"),
            ToolChoice("required", names[:1]),
        ]
        if not self.plain and len(names) > 1:
            choices += [ToolChoice("auto", names[:2]), ToolChoice("required", names[:2])]
        return self.one(choices)

    def sampling(self) -> Sampling:
        if not self.chance(4):
            return Sampling()
        if self.plain:
            return Sampling(temperature=self.draw(_RATIO))
        logprobs = True if self.chance(2) else None
        return Sampling(
            temperature=self.maybe(lambda: self.draw(_RATIO), 3),
            top_p=self.maybe(lambda: self.draw(_RATIO), 3),
            top_k=self.maybe(lambda: 40, 2),
            frequency_penalty=self.maybe(lambda: 0.5, 2),
            presence_penalty=self.maybe(lambda: -1, 2),
            seed=self.maybe(lambda: 42, 2),
            candidates=self.maybe(lambda: self.one((1, 2)), 2),
            logprobs=logprobs,
            top_logprobs=3 if logprobs else None,
        )

    def thinking(self) -> Thinking:
        if not self.rare(4):
            return Thinking()
        displays: tuple[Literal["summary", "omitted"] | None, ...] = (None, None, "summary", "omitted")
        display = self.one(displays)
        return self.one(
            (
                Thinking(effort=self.one(EFFORTS)),
                Thinking(effort="high", display=display),
                Thinking(mode="on", budget=2048, display=display),
                Thinking(mode="auto", display=display),
                Thinking(mode="auto", effort=self.one(EFFORTS[2:5]), display=display),
                Thinking(mode="off"),
                Thinking(display="summary"),
            )
        )

    def output(self) -> OutputFormat | None:
        if not self.rare(2):
            return None
        return self.one(
            (
                OutputFormat("text"),
                OutputFormat("json"),
                OutputFormat("schema", samples.OUTPUT_SCHEMA, "answer", strict=True),
                OutputFormat("schema", samples.OUTPUT_SCHEMA, "answer", "What to answer."),
            )
        )

    def request(self) -> Request:
        tools = self.tools()
        return Request(
            self.one(("some-model", "other-model")),
            self.messages(),
            tools,
            tool_choice=self.tool_choice(tools),
            parallel_tools=self.one((None, True, False)) if tools and self.rare(3) else None,
            max_tokens=self.draw(st.integers(1, 64000)) if self.chance(8) else None,
            stop=self.one(((), ("END",), ("\n\n", "STOP"))) if self.rare(2) else (),
            sampling=self.sampling(),
            thinking=self.thinking(),
            output=self.output(),
            verbosity=self.one(("low", "medium", "high")) if self.rare() else "",
            stream=self.one((None, True, False)),
            user="user-1" if self.rare() else "",
            metadata={"trace": "t-1"} if self.rare() else {},
            service_tier=self.one(("auto", "standard", "flex", "priority")) if self.rare() else "",
            cache=self.cache(),
            cache_key="cache-key-1" if self.rare() else "",
            safeguards=samples.SAFEGUARDS if self.rare() else (),
            extra=self.extra("request"),
        )


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
        """The events of the leading run of tool calls, interleaved (or of the first part alone)."""
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


@st.composite
def requests(draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN) -> Request:
    """Conversations with their tools and settings."""
    return RequestSource(draw, plain, origins).request()


@st.composite
def responses(draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN) -> Response:
    """Whole answers."""
    return AnswerSource(draw, plain, origins).response()


@st.composite
def event_streams(
    draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN, failing: bool = False
) -> list[Event]:
    """Grammatical streams, parallel calls interleaved; with `failing` some end in a Failure."""
    return AnswerSource(draw, plain, origins).events(failing)
