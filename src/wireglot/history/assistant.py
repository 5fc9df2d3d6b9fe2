"""An answer as it grows: text, reasoning and calls at any moment, and the whole turn at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from wireglot.history.calls import Call, call_of
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import broken
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message, Part, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import (
    BrokenGrammar,
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    finish_part,
    unfold,
)
from wireglot_core.providers.aliases import Aliases, EventRestorer
from wireglot_core.wire.json import BadJson, decode

Kind = Literal["text", "reasoning", "call", "other"]

_KINDS: dict[type[Part], Kind] = {Text: "text", Reasoning: "reasoning", ToolCall: "call"}


class Unfinished(RuntimeError):
    """The answer is not complete: it is still arriving, or it failed."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change by one event: `delta` is new text of part `index`; `part` is the complete part at its end.

    A call has its `id` and `name` in every step, the first one included.
    """

    kind: Kind
    index: int
    delta: str = ""
    part: Part | None = None
    id: str = ""
    name: str = ""

    @property
    def partial(self) -> bool:
        return self.part is None

    @property
    def call(self) -> Call | None:
        """The call, once it is complete."""
        return call_of(self.part) if type(self.part) is ToolCall else None


class _Growing:
    """A part that has begun."""

    __slots__ = ("id", "kind", "logprobs", "name", "part", "texts", "whole")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.kind: Kind = _KINDS.get(type(part), "other")
        self.id, self.name = (part.id, part.name) if type(part) is ToolCall else ("", "")
        self.texts: list[str] = []
        self.logprobs: list[TokenLogprob] = []
        self.whole: Part | None = None

    def finish(self, end: PartEnd) -> Part:
        return finish_part(self.part, "".join(self.texts), tuple(self.logprobs), end)

    def now(self) -> Part:
        return self.whole if self.whole is not None else self.finish(PartEnd(0))


class _Upstream:
    """The stream, or the one document, of one answer: names that were changed for the request are changed
    back."""

    def __init__(self, name: str, context: Context, aliases: Aliases) -> None:
        self._dialect = dialect(name)
        self._context = context
        self._aliases = aliases
        self._reader = self._dialect.stream_reader(context)
        self._restorer = EventRestorer(aliases)

    def read(self, data: bytes) -> list[Event]:
        return self._restorer.events(self._reader.read(data))

    def end(self) -> list[Event]:
        return self._restorer.events(self._reader.end())

    def whole(self, body: dict[str, Any] | bytes | str, status: int) -> Iterator[Event]:
        try:
            document = body if isinstance(body, dict) else decode(body)
        except BadJson as problem:
            document = (
                body  # an error page: it is distinguished from an answer below, as far as the status allows
            )
            fault = broken(problem)
        else:
            fault = broken("no JSON object")
        error = self._dialect.parse_error(document, status)
        if error is None and isinstance(document, dict):
            try:
                response = self._dialect.parse_response(document, self._context)
            except UpstreamFault as problem:
                error = broken(problem)
            else:
                content = tuple(self._aliases.restore(part) for part in response.content)
                return unfold(msgspec.structs.replace(response, content=content, others=()))
        return iter((Failure(error if error is not None else fault),))


class Assistant:
    """Feed it events as they come, alone or in lists; or, made by `of`, the bytes of an upstream's stream.

    Everything can be read at any time. Ids, indices and emitted content never change.
    """

    def __init__(self) -> None:
        self._upstream: _Upstream | None = None
        self._parts: list[_Growing] = []
        self._start: Start | None = None
        self._finish: Finish | None = None
        self._whole: Response | None = None
        self._usage: Usage | None = None
        self.failed: ApiError | None = None
        """Why the answer broke off, or the provider's error in place of one."""

    @classmethod
    def of(
        cls,
        dialect: str,
        *,
        provider: str = "",
        model: str = "",
        aliases: Aliases | None = None,
        context: Context | None = None,
    ) -> Assistant:
        """One that reads what an upstream of this dialect sends (`read`, `end`, `steps`, `whole`).

        Provider and model are recorded with signatures, so that those are sent back to their minter only.
        `History.request(...).answer()` knows all of this by itself.
        """
        context = context or Context()
        context = msgspec.structs.replace(
            context, provider=provider or context.provider, model=model or context.model
        )
        answer = cls()
        answer._upstream = _Upstream(dialect, context, aliases or Aliases())
        return answer

    @classmethod
    def from_response(cls, response: Response) -> Assistant:
        """An answer that arrived whole."""
        answer = cls()
        answer.feed(unfold(response))
        answer._whole = response
        return answer

    # Input

    def feed(self, events: Event | Iterable[Event]) -> list[Step]:
        """One event or several; what they changed. Raises BrokenGrammar for events out of order."""
        several = (events,) if isinstance(events, Event) else events
        return [step for event in several if (step := self._take(event)) is not None]

    def read(self, data: bytes) -> list[Step]:
        """Bytes of the upstream's stream, split anywhere. Anything but a stream sets `failed`."""
        return self.feed(self._from().read(data))

    def end(self) -> list[Step]:
        """The upstream's stream has ended; one that was cut short sets `failed`."""
        return [] if self.done else self.feed(self._from().end())

    def steps(self, chunks: Iterable[bytes]) -> Iterator[Step]:
        """Read a whole stream, chunk by chunk, and end it."""
        for chunk in chunks:
            yield from self.read(chunk)
        yield from self.end()

    def events(self, chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        """Read a whole stream as plain events: `{"type": "text", "text"}`, `{"type": "reasoning", "text"}`,
        and `{"type": "native_tool_calls", "toolCalls"}` with the calls that each chunk has completed."""
        for chunk in chunks:
            yield from _plain_events(self.read(chunk))
        yield from _plain_events(self.end())

    def whole(self, body: dict[str, Any] | bytes | str, status: int = 0) -> list[Step]:
        """The upstream's answer (or error) as one JSON document."""
        return self.feed(self._from().whole(body, status))

    # State

    @property
    def id(self) -> str:
        return self._start.id if self._start is not None else ""

    @property
    def model(self) -> str:
        return self._start.model if self._start is not None else ""

    @property
    def text(self) -> str:
        return self._said("text")

    @property
    def reasoning(self) -> str:
        return self._said("reasoning")

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call so far; the arguments of a `partial` one are still being written."""
        return tuple(
            call_of(part, partial=growing.whole is None)
            for growing in self._parts
            if type(part := growing.now()) is ToolCall
        )

    @property
    def stop(self) -> Stop | None:
        return self._finish.stop if self._finish is not None else None

    @property
    def usage(self) -> Usage | None:
        """The usage so far."""
        return self._usage

    @property
    def done(self) -> bool:
        """Whether nothing more will come, also after a failure (`failed`)."""
        return self._finish is not None or self.failed is not None

    def message(self, *, partial: bool = False) -> Message:
        """The complete turn for the history: text, reasoning with its signatures, every call.

        `partial` also accepts an answer that has not ended well: complete parts and incomplete text, but no
        call and no thought that was cut short, since no provider accepts half of either.
        """
        if not partial:
            self._demand()
        parts = (
            growing.now() for growing in self._parts if growing.whole is not None or growing.kind == "text"
        )
        return Message("assistant", tuple(kept for part in parts if (kept := _for_history(part)) is not None))

    def response(self) -> Response:
        """The whole answer with its usage: the same result as folding all events."""
        start, finish = self._demand()
        if self._whole is not None:
            return self._whole
        return Response(
            id=start.id,
            model=start.model,
            content=tuple(growing.now() for growing in self._parts),
            stop=finish.stop,
            usage=self._usage,
            created=start.created,
            service_tier=finish.service_tier or start.service_tier,
            extra=finish.extra if finish.extra is not None else start.extra,
            safeguard_results=finish.safeguard_results,
        )

    # Internal

    def _from(self) -> _Upstream:
        if self._upstream is None:
            raise TypeError("it takes events only: Assistant.of(dialect) reads bytes")
        return self._upstream

    def _demand(self) -> tuple[Start, Finish]:
        if self.failed is not None:
            raise Unfinished(f"the answer failed: {self.failed.message}")
        if self._start is None or self._finish is None:
            raise Unfinished("the answer has not ended")
        return self._start, self._finish

    def _said(self, kind: Kind) -> str:
        pieces: list[str] = []
        for growing in self._parts:
            part = growing.part
            if growing.kind == kind and (type(part) is Text or type(part) is Reasoning):
                pieces.append(part.text)
                pieces += growing.texts
        return "".join(pieces)

    def _take(self, event: Event) -> Step | None:
        if self.done or (self._start is None and not isinstance(event, Start | Failure)):
            raise BrokenGrammar(f"{type(event).__name__} outside of an answer")
        match event:
            case Delta(index=index, text=text):
                growing = self._open(index)
                growing.texts.append(text)
                growing.logprobs.extend(event.logprobs)
                return Step(growing.kind, index, text, id=growing.id, name=growing.name)
            case PartStart(index=index, part=part):
                return self._begin(index, part)
            case PartEnd(index=index):
                growing = self._open(index)
                growing.whole = growing.finish(event)
                return Step(growing.kind, index, part=growing.whole, id=growing.id, name=growing.name)
            case UsageReport():
                self._usage = event.usage
            case Start():
                if self._start is not None:
                    raise BrokenGrammar("second Start")
                self._start, self._usage = event, event.usage
            case Finish():
                self._end(event)
            case Failure(error=error):
                self.failed = error
            case ForeignEvent() | OtherAnswer():
                pass
        return None

    def _begin(self, index: int, part: Part) -> Step:
        if index != len(self._parts):
            raise BrokenGrammar(f"part {index} started, {len(self._parts)} was next")
        growing = _Growing(part)
        self._parts.append(growing)
        said = part.text if type(part) is Text or type(part) is Reasoning else ""
        return Step(growing.kind, index, said, id=growing.id, name=growing.name)

    def _open(self, index: int) -> _Growing:
        if not 0 <= index < len(self._parts) or self._parts[index].whole is not None:
            raise BrokenGrammar(f"part {index} is not open")
        return self._parts[index]

    def _end(self, event: Finish) -> None:
        if any(growing.whole is None for growing in self._parts):
            raise BrokenGrammar("Finish with open parts")
        self._finish = event
        if event.usage is not None:
            self._usage = event.usage


def _for_history(part: Part) -> Part | None:
    """The part as a later request can contain it. Empty text is refused everywhere, unless it carries
    state."""
    if type(part) is not Text:
        return part
    if not part.text and part.signature is None:
        return None
    # Token probabilities are a measurement of the answer: no dialect accepts them back.
    return msgspec.structs.replace(part, logprobs=()) if part.logprobs else part


def _plain_events(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step.delta and step.kind in ("text", "reasoning"):
            yield {"type": step.kind, "text": step.delta}
    calls = [step.call.native for step in steps if step.call is not None]
    if calls:
        yield {"type": "native_tool_calls", "toolCalls": calls}
