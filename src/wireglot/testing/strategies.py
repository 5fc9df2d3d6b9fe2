"""Hypothesis strategies for conversations, answers and streams. Needs `pip install hypothesis`.

    @given(requests())
    def test_my_middleware_keeps_the_conversation(request): ...

Everything drawn is well formed: turns alternate, results answer calls of the turn before, a stop reason fits
the content, streams satisfy the grammar. `plain=True` stays with what every dialect has (text, function calls
and their results, images, basic settings); `origins` limits whose signatures, extras and foreign parts
appear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import Any, Literal, TypeVar, cast

from hypothesis import strategies as st
from msgspec.structs import replace

from wireglot.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot.ir.errors import ApiError, ErrorKind
from wireglot.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot.ir.request import (
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
from wireglot.ir.stream import (
    Delta,
    Event,
    Failure,
    ForeignEvent,
    PartStart,
    UsageReport,
    unfold,
)
from wireglot.testing import samples

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

# No surrogates: they are not text, and the JSON layer has mended them before a dialect looks.
_ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_TEXTS = st.one_of(st.sampled_from(samples.TEXTS), st.sampled_from(samples.TEXTS), _ANY_TEXT)
_INT = st.integers(0, 9)
_COUNT = st.integers(0, 5000)
_TOOL_NAMES = ("get_weather", "search", "Bash", "mcp__files__read", "a")
_RATIO = st.sampled_from((0, 0.2, 0.5, 1, 1.0, 0.95))


class _Source:
    """One draw in progress: what may appear, and the counters that keep ids unique."""

    def __init__(self, draw: Draw, plain: bool, origins: Sequence[str]) -> None:
        self.draw = draw
        self.plain = plain
        self.origins = tuple(origins)
        self.calls = 0

    def chance(self, of_ten: int) -> bool:
        """True in `of_ten` cases of ten; shrinks to False."""
        return bool(self.draw(_INT) >= 10 - of_ten)

    def rare(self, of_ten: int = 1) -> bool:
        """Like `chance`, and never in plain draws."""
        return not self.plain and self.chance(of_ten)

    def one(self, options: Sequence[T]) -> T:
        return cast(T, self.draw(st.sampled_from(options)))

    def text(self) -> str:
        text = cast(str, self.draw(_TEXTS))
        return text if text.strip() or not self.plain else "Hello"  # not everyone takes blank text

    def maybe(self, make: Callable[[], T], of_ten: int = 1) -> T | None:
        return make() if self.rare(of_ten) else None

    def extra(self, place: str) -> Extra | None:
        homes = [name for name in self.origins if place in samples.EXTRA_HOMES.get(name, ())]
        if not homes or not self.rare():
            return None
        return Extra(self.one(homes), {"x_future": self.one(samples.UNKNOWN)})

    def cache(self) -> CacheMark | None:
        return self.maybe(lambda: CacheMark(self.one(("", "short", "long"))))

    def known(self, options: Sequence[Foreign]) -> list[Foreign]:
        return [option for option in options if option.dialect in self.origins]

    def signatures(self, options: Sequence[Signature]) -> list[Signature]:
        return [option for option in options if option.origin.dialect in self.origins]

    def part_signature(self) -> Signature | None:
        allowed = self.signatures((samples.PART_SIGNATURE,))
        return allowed[0] if allowed and self.rare(2) else None

    # Parts

    def words(self, *, answer: bool = False) -> Text:
        text = self.text()
        if self.plain:
            return Text(text)
        return Text(
            text,
            citations=self.citations(text) if answer and self.rare() else (),
            signature=self.part_signature() if answer else None,
            cache=None if answer else self.cache(),
            extra=self.extra("text"),
        )

    def citations(self, text: str) -> tuple[Citation, ...]:
        return (Citation("https://example.com/a", "A page", start=0, end=len(text)),)

    def media(self) -> Media:
        kind = self.draw(_INT)
        if kind < 5 or self.plain:
            image = Media("image", "image/png", samples.PNG)
            if self.plain or kind == 0:
                return image
            return replace(
                image, cache=self.cache(), extra=self.extra("media"), detail=self.one(("", "", "low", "high"))
            )
        return self.one(
            (
                Media("image", url="https://example.com/cat.png"),
                Media("image", file_id="file_image_1"),
                Media("document", "application/pdf", samples.PDF, name="paper.pdf"),
                Media("document", "application/pdf", url="https://example.com/paper.pdf"),
                Media("document", "text/plain", text="plain text document"),
                Media("document", file_id="file_doc_1"),
                Media("audio", "audio/wav", samples.WAV),
                Media("video", "video/mp4", samples.MP4),
            )
        )

    def reasoning(self) -> Reasoning:
        if self.rare() and "anthropic" in self.origins:
            return Reasoning("", samples.REDACTED, redacted=True)
        allowed = self.signatures(samples.REASONING_SIGNATURES)
        signature = self.one(allowed) if allowed and self.chance(7) else None
        text = "" if signature is not None and self.chance(2) else self.text()
        return Reasoning(text, signature, extra=self.extra("reasoning"))

    def call(self, first: bool, history: bool) -> ToolCall:
        self.calls += 1
        identifier = f"call_{self.calls:02}Ab-{self.calls}"
        name = self.one(_TOOL_NAMES)
        if self.rare():
            return ToolCall(identifier, name, self.one(samples.FREEFORM), "custom")
        arguments = self.one(samples.BROKEN_ARGUMENTS if self.rare() else samples.ARGUMENTS)
        return ToolCall(
            identifier,
            name,
            arguments,
            namespace="files" if self.rare() else "",
            # Gemini signs the first call of a step only.
            signature=self.part_signature() if first else None,
            cache=self.cache() if history else None,
            extra=self.extra("call"),
        )

    def result(self, call: ToolCall) -> ToolResult:
        content: list[ResultPart] = [Text(self.text()) for _ in range(self.draw(st.integers(0, 2)))]
        if self.rare(2):
            content.append(self.media())
        allowed = self.known(samples.FOREIGN_RESULTS)
        if allowed and self.rare():
            content.append(self.one(allowed))
        return ToolResult(
            call.id,
            tuple(content),
            is_error=self.chance(2),
            name=call.name if self.chance(3) else "",
            kind=call.kind,
            cache=self.cache(),
            extra=self.extra("result"),
        )

    # Turns

    def answer(self, *, history: bool) -> tuple[Part, ...]:
        """What an assistant says (or said): thinking, prose, calls, mostly in that order."""
        parts: list[Part] = []
        if self.rare(4):
            parts.append(self.reasoning())
        if self.chance(7):
            parts.append(self.words(answer=True))
        if self.chance(5) or not parts:
            for first in (True, False, False)[: self.draw(st.integers(1, 3))]:
                parts.append(self.call(first, history))
        allowed = self.known(samples.FOREIGN_ANSWERS)
        if allowed and self.rare():
            parts.insert(self.draw(st.integers(0, len(parts))), self.one(allowed))
        if self.rare():  # interleaved thinking, prose behind calls
            parts.append(self.reasoning() if self.chance(5) else self.words(answer=True))
        return tuple(parts)

    def question(self, open_calls: Sequence[ToolCall]) -> tuple[Part, ...]:
        parts: list[Part] = [self.result(call) for call in open_calls]
        if not parts or self.chance(3):
            parts.append(self.words())
        if self.chance(2):
            parts.append(self.media())
        allowed = self.known(samples.FOREIGN_QUESTIONS)
        if allowed and self.rare():
            parts.append(self.one(allowed))
        return tuple(parts)

    def message(self, role: Role, content: tuple[Part, ...]) -> Message:
        only_text = all(isinstance(part, Text) for part in content)
        return Message(
            role,
            content,
            name="alice" if role == "user" and only_text and self.rare() else "",
            # A turn with calls or results has no object of its own in every dialect.
            extra=self.extra("message") if only_text else None,
        )

    def messages(self) -> tuple[Message, ...]:
        out: list[Message] = []
        if self.chance(5):
            out.append(Message("system", tuple(self.words() for _ in range(self.draw(st.integers(1, 2))))))
        open_calls: list[ToolCall] = []
        for _ in range(self.draw(st.integers(0, 3))):
            out.append(self.message("user", self.question(open_calls)))
            if self.rare():
                out.append(Message("system", (self.words(),)))
            content = self.answer(history=True)
            open_calls = [part for part in content if isinstance(part, ToolCall)]
            out.append(self.message("assistant", content))
        if open_calls or not self.rare():  # else the last turn is a prefill
            out.append(self.message("user", self.question(open_calls)))
        if not any(message.role == "user" for message in out):
            out.insert(min(1, len(out)), Message("user", (Text("Hello"),)))
        return tuple(out)

    # Settings

    def tools(self) -> tuple[AnyTool, ...]:
        tools: list[AnyTool] = []
        for name in _TOOL_NAMES[: self.draw(st.integers(0, 3))]:
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
            self.tool_choice(tools),
            self.one((None, True, False)) if tools and self.rare(3) else None,
            self.draw(st.integers(1, 64000)) if self.chance(8) else None,
            self.one(((), ("END",), ("\n\n", "STOP"))) if self.rare(2) else (),
            self.sampling(),
            self.thinking(),
            self.output(),
            self.one(("low", "medium", "high")) if self.rare() else "",
            self.one((None, True, False)),
            "user-1" if self.rare() else "",
            {"trace": "t-1"} if self.rare() else {},
            self.one(("auto", "standard", "flex", "priority")) if self.rare() else "",
            self.cache(),
            "cache-key-1" if self.rare() else "",
            self.extra("request"),
        )

    # Outcomes

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
            self.usage(),
            self.one((0, 1760000000)),
            self.one(("standard", "priority", "flex", "batch")) if self.rare() else "",
            (Candidate((Text("another"),), Stop("end")),) if self.rare() else (),
            self.extra("response"),
        )

    # Streams

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


@st.composite
def requests(draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN) -> Request:
    """Conversations with their tools and settings."""
    return _Source(draw, plain, origins).request()


@st.composite
def responses(draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN) -> Response:
    """Whole answers."""
    return _Source(draw, plain, origins).response()


@st.composite
def event_streams(
    draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN, failing: bool = False
) -> list[Event]:
    """Grammatical streams, parallel calls interleaved; with `failing` some end in a Failure."""
    return _Source(draw, plain, origins).events(failing)
