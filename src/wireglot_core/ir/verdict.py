"""Decides whether an answer is valid, before a client sees it: whole, or while its events pass.

Invalid are: a call that the model or its server broke, an answer that ends inside a call, and an empty answer
that is reported as ended by itself. If the token limit was reached, an answer may be empty, and a call that
was cut off is left out: arguments are passed on whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from wireglot_core.ir.content import Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.leaked_calls import LeakFamily, LeakFilter, offered, recovered
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stop_sequences import cut_response
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    GrowingText,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)


class Accepted(msgspec.Struct, frozen=True):
    response: Response
    losses: tuple[Loss, ...] = ()


_AT_LIMIT: Final[frozenset[StopReason]] = frozenset({"length", "context_full"})
_INTERRUPTED: Final[frozenset[StopReason]] = _AT_LIMIT | {"refused", "paused"}
_MAY_BE_EMPTY: Final[frozenset[StopReason]] = _INTERRUPTED | {"stop_sequence"}

_MALFORMED: Final = "malformed_tool_call"
_TRUNCATED: Final = "truncated_tool_call"
_EMPTY: Final = "empty_answer"
VERDICTS: Final = frozenset({_MALFORMED, _TRUNCATED, _EMPTY})
"""Codes of errors that describe an invalid answer, and mean nothing about the health of its server."""

CUT: Final = ApiError("server", "the answer ended inside a tool call", status=502, code=_TRUNCATED)
CUT_BY_LIMIT: Final = ApiError(
    "invalid_request",
    "the answer reached its token limit inside a tool call: ask for more tokens",
    status=400,
    code=_TRUNCATED,
)
"""For a stream that has already sent the beginning of the call. The same request would be cut again."""
CUT_BY_FILTER: Final = ApiError(
    "content_policy", "the answer was stopped inside a tool call", status=400, code=_TRUNCATED
)
INTERRUPTIONS: Final = (CUT_BY_LIMIT, CUT_BY_FILTER)
EMPTY: Final = ApiError("server", "the model returned an empty answer", status=502, code=_EMPTY)
_LEFT_OUT: Final = "the answer reached its token limit inside the call"

RECOVERED: Final = Loss(
    "$.content", "tool_call.arguments", "invented", "the server returned its calls as text: parsed as calls"
)

_look_over = msgspec.json.Decoder(msgspec.Raw).decode


class NoAnswer(Exception):
    """The response is not a valid answer, though its status was successful. It was billed: `usage`."""

    def __init__(self, error: ApiError, usage: Usage | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.usage = usage


def malformed(stop: Stop) -> ApiError:
    """A call that the model broke."""
    said = f" ({stop.raw})" if stop.raw else ""
    return ApiError("server", f"the model produced a malformed tool call{said}", status=502, code=_MALFORMED)


def is_cut(arguments: str) -> bool:
    """Whether arguments end too early. Arguments that are invalid JSON for another reason are not cut."""
    if not arguments or arguments.isspace():
        return False
    try:
        _look_over(arguments)
    except msgspec.DecodeError as problem:
        return "truncated" in str(problem)
    except (ValueError, RecursionError):
        pass
    return False


class CallIds:
    """Makes the ids of calls unique in a conversation. Some servers restart the numbers in every turn
    (`call_0`), and clients find the result of a call by its id alone. Claude Code takes `call_0_2` for
    `call_0`."""

    __slots__ = ("_last", "_request", "_taken")

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._last: dict[str, int] = {}
        """The last number given to an id that occurs again."""
        self._taken: set[str] | None = None
        """None: there was no call so far."""

    def distinct(self, part: Part) -> Part:
        if type(part) is not ToolCall:
            return part
        taken = self._taken
        if taken is None:
            messages = self._request.messages if self._request is not None else ()
            taken = self._taken = set()
            for message in messages:
                for each in message.content:
                    if type(each) is ToolCall:
                        # Gemini CLI puts the tool's name before every id, and would put it before this one.
                        taken |= {each.id, each.id.removeprefix(f"{each.name}__")}
        if part.id not in taken:
            taken.add(part.id)
            return part
        number = self._last.get(part.id, 1) + 1
        while (identifier := f"{part.id}-{number}") in taken:
            number += 1
        self._last[part.id] = number
        taken.add(identifier)
        return msgspec.structs.replace(part, id=identifier)

    def distinct_in(self, answer: Candidate) -> Candidate:
        content = tuple(map(self.distinct, answer.content))
        return answer if content == answer.content else msgspec.structs.replace(answer, content=content)


def accept(
    response: Response,
    request: Request | None,
    *,
    may_be_empty: bool = False,
    leaks_calls: tuple[LeakFamily, ...] = (),
    renamed: Mapping[str, tuple[str, str]] = {},
    cuts: bool = True,
) -> Accepted:
    """A whole answer, without calls that were cut off by its token limit. Raises NoAnswer if the answer is
    invalid.

    `request`: the request, if known. Without it an empty answer is not an error in itself. `leaks_calls`: the
    tokens in which its provider may leave calls in the text (`leaked_calls`). `renamed`: upstream function
    name -> the client's tool (`Aliases.functions`). `cuts`: whether to cut the answer at the first stop
    sequence of the request. If the upstream supports them, its text contains none.
    """
    losses: list[Loss] = []
    if cuts and request is not None and request.stop:
        response = cut_response(response, request.stop)
    if leaks_calls:
        came, response = response, recovered(response, offered(request, renamed), leaks_calls)
        if response is not came:
            losses.append(RECOVERED)
    stop = response.stop
    if stop.reason == "malformed_call":
        raise NoAnswer(malformed(stop), response.usage)
    content = response.content
    interrupted = _is_interrupted(stop, response.usage, request)
    cut = _cut_calls(content, may_be_unbegun=interrupted or not stop.raw)
    if cut and not interrupted:
        raise NoAnswer(CUT, response.usage)
    if cut:
        response = _without(response, cut)
        losses += [Loss(f"$.content[{index}]", "tool_call.arguments", "dropped", _LEFT_OUT) for index in cut]
    elif not (may_be_empty or any(map(_says, content)) or _may_be_empty(stop, interrupted, request)):
        raise NoAnswer(EMPTY, response.usage)
    if response.others:
        response = _with_whole_others(response, losses)
    return Accepted(_with_distinct_calls(response, request), tuple(losses))


def _with_distinct_calls(response: Response, request: Request | None) -> Response:
    content = tuple(map(CallIds(request).distinct, response.content))
    others = tuple(CallIds(request).distinct_in(other) for other in response.others)
    if content != response.content or others != response.others:
        return msgspec.structs.replace(response, content=content, others=others)
    return response


def _with_whole_others(response: Response, losses: list[Loss]) -> Response:
    others = tuple(
        with_whole_calls(other, f"$.others[{number}]", losses) for number, other in enumerate(response.others)
    )
    return response if others == response.others else msgspec.structs.replace(response, others=others)


def _cut_calls(content: tuple[Part, ...], *, may_be_unbegun: bool) -> list[int]:
    """The places of calls that were cut off."""
    cut = [index for index, part in enumerate(content) if type(part) is ToolCall and _is_cut_call(part)]
    if may_be_unbegun and content and _is_unbegun(content[-1]):
        cut.append(len(content) - 1)
    return cut


def with_whole_calls(answer: Candidate, path: str, losses: list[Loss]) -> Candidate:
    """A further answer without the calls that were cut off: no tool is called with incomplete arguments."""
    content = tuple(part for part in answer.content if not (type(part) is ToolCall and _is_cut_call(part)))
    if len(content) == len(answer.content):
        return answer
    for index, part in enumerate(answer.content):
        if type(part) is ToolCall and _is_cut_call(part):
            detail = "the answer ended inside the call"
            losses.append(Loss(f"{path}.content[{index}]", "tool_call.arguments", "dropped", detail))
    return msgspec.structs.replace(answer, content=content)


def _is_cut_call(call: ToolCall) -> bool:
    return call.kind == "function" and is_cut(call.arguments)


def _is_unbegun(part: Part) -> bool:
    """A call without arguments is only complete if the answer continues after it or reports its end."""
    return type(part) is ToolCall and part.kind == "function" and not part.arguments.strip()


def _without(response: Response, cut: list[int]) -> Response:
    content = tuple(part for index, part in enumerate(response.content) if index not in cut)
    return msgspec.structs.replace(response, content=content, stop=_reported(response.stop))


def _reported(stop: Stop) -> Stop:
    """The reason why an answer was interrupted, for answers where only the token counts show it."""
    return stop if stop.reason in _INTERRUPTED else Stop("length")


def _says(part: Part) -> bool:
    """Whether a part has content for the client. Thoughts alone are not an answer."""
    match part:
        case Text():
            return bool(part.text)
        case Reasoning():
            return False
        case _:
            return True


def _is_interrupted(stop: Stop, usage: Usage | None, request: Request | None) -> bool:
    """Whether the model was interrupted: by its stop reason, or by the token counts, as some servers report
    `tool_calls` or `stop` at the limit."""
    if stop.reason in _INTERRUPTED:
        return True
    most = request.max_tokens if request is not None else None
    return most is not None and usage is not None and usage.total_output >= most > 0


def _may_be_empty(stop: Stop, interrupted: bool, request: Request | None) -> bool:
    if interrupted or stop.reason in _MAY_BE_EMPTY or request is None:
        return True
    # Not every dialect distinguishes a stop sequence from an end.
    return stop.reason == "end" and (
        bool(request.stop) or _ends_in_result(request) or _ends_in_answer(request)
    )


def _ends_in_answer(request: Request) -> bool:
    """Whether the model was to continue an answer that the client began: it may have been complete."""
    last = request.messages[-1] if request.messages else None
    return last is not None and last.role == "assistant" and any(type(part) is Text for part in last.content)


def _ends_in_result(request: Request) -> bool:
    """Whether the model was sent results of its tools: it may have nothing to add."""
    for message in reversed(request.messages):
        if message.role == "assistant":
            return False
        if any(type(part) is ToolResult for part in message.content):
            return True
    return False


class StreamVerdict:
    """The same for an answer that streams. It is passed every event once and keeps little: the arguments of
    open calls, and whether there was any content.

    `leaks_calls`, `renamed`: as in `accept`; leaked calls are converted on the way.

    A call with incomplete arguments is not ended before the reason is known. `leaves_out`: the client can
    discard a call without its end (see `PartEnd.cut`); for other clients the beginning of its arguments
    cannot be taken back, and the stream fails.
    """

    __slots__ = (
        "_arguments", "_held", "_ids", "_leaks", "_leaves_out", "_request", "_said", "_thoughts",
        "losses", "usage", "verdict",
    )  # fmt: skip

    def __init__(
        self,
        request: Request | None,
        *,
        leaves_out: bool = False,
        may_be_empty: bool = False,
        leaks_calls: tuple[LeakFamily, ...] = (),
        renamed: Mapping[str, tuple[str, str]] = {},
    ) -> None:
        self.usage: Usage | None = None
        self.losses: list[Loss] = []
        """Losses from changes to the answer, in addition to those of the writer."""
        self.verdict: ApiError | None = None
        """Why the answer is invalid."""
        self._request = request
        self._ids = CallIds(request)
        self._leaves_out = leaves_out
        self._arguments: dict[int, GrowingText] = {}  # of the open calls
        self._held: dict[int, tuple[PartEnd, bool]] = {}  # whether it is cut, or only has no arguments so far
        self._thoughts: set[int] = set()
        self._said = may_be_empty
        names = offered(request, renamed) if leaks_calls else frozenset()
        self._leaks = LeakFilter(names, leaks_calls) if names else None

    @property
    def is_clear(self) -> bool:
        """Whether there was content, and no open part could still turn out to be cut."""
        return self._said and not self.has_open_calls

    @property
    def has_open_calls(self) -> bool:
        return bool(self._arguments or self._held)

    def is_known(self, index: int) -> bool:
        """Whether further pieces of this part, and of no other, cannot change the verdict and pass: they need
        not be parsed."""
        return (self._said or index in self._thoughts) and not self._arguments and self._leaks is None

    def pass_on(self, events: list[Event]) -> list[Event]:
        """The same list if nothing is wrong; a Finish may be replaced by a Failure."""
        arguments = self._arguments
        if self._leaks is not None:
            events = self._leaks.events(events)
        if self._said and not arguments:  # most of a stream: one more piece of a text
            for event in events:
                if type(event) is not Delta:
                    break
            else:
                return events
        ended = False
        came = events
        for place, event in enumerate(came):
            if type(event) is Delta:
                if event.index in arguments:
                    arguments[event.index].add(event.text)
                    continue
                if not self._said and event.text and event.index not in self._thoughts:
                    self._said = True
            elif type(event) is PartStart:
                part = self._ids.distinct(event.part)
                if part is not event.part:
                    events = [*came] if events is came else events
                    events[place] = PartStart(event.index, part)
                self._open(event)
            elif type(event) is PartEnd:
                ended = ended or event.index in arguments
            elif type(event) is Finish:
                self.usage = event.usage or self.usage
                ended = True
            elif type(event) is UsageReport or type(event) is Start:
                self.usage = event.usage or self.usage
            elif type(event) is OtherAnswer:
                answer = CallIds(self._request).distinct_in(event.answer)
                if answer is not event.answer:
                    events = [*came] if events is came else events
                    events[place] = OtherAnswer(answer)
        return self._judged(events) if ended or self._held else events

    def _open(self, start: PartStart) -> None:
        part = start.part
        if type(part) is Reasoning:
            self._thoughts.add(start.index)
        elif type(part) is ToolCall and part.kind == "function":
            self._arguments[start.index] = text = GrowingText()
            if part.arguments:
                text.add(part.arguments)
        if not self._said:
            self._said = _says(part)

    def _judged(self, events: list[Event]) -> list[Event]:
        """The events after the end of calls or of the answer, judged."""
        passed: list[Event] = []
        for event in events:
            if type(event) is PartStart and self._held:
                self._release(passed)  # the answer continues after a call without arguments: it has none
            elif type(event) is PartEnd and self._holds(event):
                continue
            elif type(event) is Finish:
                passed += self._last(event)
                break
            passed.append(event)
        return passed

    def _holds(self, end: PartEnd) -> bool:
        arguments = self._arguments.pop(end.index, None)
        if arguments is None:
            return False
        text = str(arguments)
        if text and not text.isspace():
            if not is_cut(text):
                return False
            self._held[end.index] = (end, True)
        else:
            self._held[end.index] = (end, False)
        return True

    def _release(self, passed: list[Event]) -> None:
        for index, (end, cut) in list(self._held.items()):
            if not cut:
                passed.append(end)
                del self._held[index]

    def _last(self, finish: Finish) -> list[Event]:
        stop, request = finish.stop, self._request
        if self._leaks is not None and self._leaks.recovered:
            self.losses.append(RECOVERED)
        interrupted = _is_interrupted(stop, self.usage, request)
        if not interrupted and stop.raw:
            released: list[Event] = []
            self._release(released)
        else:
            released = self._released_but_last()
        error: ApiError | None = None
        if stop.reason == "malformed_call":
            error = malformed(stop)
        elif self._held and not interrupted:
            error = CUT
        elif self._held and not self._leaves_out:
            error = CUT_BY_LIMIT if _reported(stop).reason in _AT_LIMIT else CUT_BY_FILTER
        elif not self._said and not _may_be_empty(stop, interrupted, request):
            error = EMPTY
        if error is not None:
            self.verdict = error
            reports: list[Event] = [UsageReport(finish.usage)] if finish.usage is not None else []
            return [*released, *reports, Failure(error)]
        if not self._held:
            return [*released, finish]
        if stop.reason not in _INTERRUPTED:
            finish = msgspec.structs.replace(finish, stop=_reported(stop))
        return [*released, *(PartEnd(index, cut=True) for index in self._held), finish]

    def _released_but_last(self) -> list[Event]:
        """Releases all held calls but the last: only that one can have been cut off before its arguments
        began."""
        last = next(reversed(self._held), -1)
        kept = self._held.pop(last, None)
        released: list[Event] = []
        self._release(released)
        if kept is not None:
            self._held[last] = kept
        return released
