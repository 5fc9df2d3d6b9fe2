"""Calls that a server left in the text, in the tokens its model writes them with: made calls again.

Hosts of open models parse these tokens. Where one fails to, its client gets them as words, and an agent ends
its turn. Only answers of providers that are known to leak calls (`Limits.leaks_calls`) are read so. From any
other provider such words may be a quotation, and a text is never a call.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wireglot.ir.content import Part, Reasoning, Text, ToolCall
from wireglot.ir.growing import GrowingText
from wireglot.ir.outcome import Response, Stop, StopReason
from wireglot.ir.request import Request, Tool
from wireglot.ir.stream import Delta, Event, Failure, Finish, PartEnd, PartStart, Start, UsageReport
from wireglot.ir.tagged_call import TaggedCall

TAG: Final = "<tool_call>"
"""Hermes and Qwen write calls so (the chat template of huggingface.co/Qwen/Qwen3-8B). Such a call must name
an offered tool."""

_CALL: Final = re.compile(
    # Kimi K2: huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md
    r"<\|tool_call_begin\|>\s*(?P<id>[^<\s]+)\s*<\|tool_call_argument_begin\|>(?P<arguments>.*?)"
    r"<\|tool_call_end\|>\s*"
    # DeepSeek: the chat templates of V3, R1 and V3.1.
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[^<\s`]+)\s*(?:<｜tool▁sep｜>)?\s*(?:```json)?"
    r"(?P<fenced>.*?)(?:```)?\s*<｜tool▁call▁end｜>\s*",
    re.DOTALL,
)
_TAGGED: Final = re.compile(rf"{TAG}\s*(\{{.*?\}})\s*</tool_call>\s*", re.DOTALL)
_OPENING: Final = re.compile(r"(?:<\|tool_calls_section_begin\|>|<｜tool▁calls▁begin｜>)?\s*")
_ENDING: Final = re.compile(
    r"(?:<\|tool_calls_section_end\|>|<｜tool▁calls▁end｜>)?(?:<｜end▁of▁sentence｜>)?\s*"
)
_NAME: Final = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?")

_HEAD: Final = re.compile(
    r"(?:<\|tool_calls_section_begin\|>\s{0,99})?<\|tool_call_begin\|>\s{0,99}(?P<id>[^<\s]{1,256})\s{0,99}"
    r"<\|tool_call_argument_begin\|>"
    r"|(?:<｜tool▁calls▁begin｜>\s{0,99})?<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[^<\s`]{1,256})"
    r"(?:<｜tool▁sep｜>|\s{0,99}```)"
)
"""The beginning of a call up to its arguments. A text that only mentions a token does not have it."""
_HEAD_OR_TAG: Final = re.compile(rf"{_HEAD.pattern}|{TAG}\s{{0,99}}\{{")


def _beginning(literal: str) -> str:
    """A pattern for every beginning of a text, from nothing to all of it."""
    return "".join(f"(?:{re.escape(char)}" for char in literal) + ")?" * len(literal)


_UNDECIDED: Final = re.compile(
    rf"{_beginning('<|tool_calls_section_begin|>')}|(?:<\|tool_calls_section_begin\|>\s{{0,99}})?"
    rf"(?:{_beginning('<|tool_call_begin|>')}"
    rf"|<\|tool_call_begin\|>\s{{0,99}}[^<\s]{{0,256}}\s{{0,99}}{_beginning('<|tool_call_argument_begin|>')})"
    rf"|{_beginning('<｜tool▁calls▁begin｜>')}|(?:<｜tool▁calls▁begin｜>\s{{0,99}})?"
    rf"(?:{_beginning('<｜tool▁call▁begin｜>')}"
    rf"|<｜tool▁call▁begin｜>[^<\s`]{{0,256}}(?:{_beginning('<｜tool▁sep｜>')}|\s{{0,99}}{_beginning('```')}))"
)
"""What may still become one."""
_UNDECIDED_OR_TAG: Final = re.compile(rf"{_UNDECIDED.pattern}|{_beginning(TAG)}|{TAG}\s{{0,99}}")

_ENDED: Final[frozenset[StopReason]] = frozenset({"end", "stop_sequence", "tool_calls"})
_LEAKED: Final = "leaked tool tokens"

_look_over = msgspec.json.Decoder(msgspec.Raw).decode
_read_tagged = msgspec.json.Decoder(TaggedCall).decode
_read_arguments = msgspec.json.Decoder().decode


def _offered(request: Request | None) -> frozenset[str] | None:
    """The names of the tools that may be called; None where nobody knows."""
    if request is None:
        return None
    return frozenset(tool.name for tool in request.tools if type(tool) is Tool and tool.kind == "function")


def may_leak(request: Request | None) -> bool:
    """Whether an answer may hold calls: not without tools, and not where the request forbids calls."""
    if request is None:
        return True
    return bool(request.tools) and (request.tool_choice is None or request.tool_choice.mode != "none")


def _allows_calls(stop: Stop) -> bool:
    """Whether the answer ended by itself. Unknown words may mean a filter; some servers say nothing."""
    return stop.reason in _ENDED or (stop.reason == "other" and not stop.raw)


def recovered(response: Response, request: Request | None) -> Response:
    """A whole answer with its leaked calls as calls, behind its other parts, and the same one where there are
    none."""
    if not may_leak(request) or not _allows_calls(response.stop):
        return response
    names = _offered(request)
    told = [part for part in response.content if type(part) is ToolCall]
    content: list[Part] = []
    calls: list[ToolCall] = []
    for part in response.content:
        if type(part) is not Text and type(part) is not Reasoning:
            content.append(part)
            continue
        at, found = _calls_in(part.text, names, response.id, tags=type(part) is Text)
        if found is None and not told and _is_broken(part.text, names):
            return msgspec.structs.replace(response, stop=Stop("malformed_call", _LEAKED))
        if found is None or _repeats(found, (*told, *calls)):
            content.append(part)
            continue
        if part.text[:at].strip():
            content.append(msgspec.structs.replace(part, text=part.text[:at]))
        calls += found
    if not calls:
        return response
    return msgspec.structs.replace(response, content=(*content, *calls), stop=_called(response.stop))


def _calls_in(
    text: str, names: frozenset[str] | None, seed: str, *, tags: bool
) -> tuple[int, list[ToolCall] | None]:
    """Where leaked calls begin in a text, and they; None where it does not end in such calls."""
    head = (_HEAD_OR_TAG if tags else _HEAD).search(text) if "<" in text else None
    if head is None:
        return len(text), None
    leaked = text[head.start() :]
    if leaked.startswith(TAG):
        return head.start(), read_tagged(leaked, names or frozenset(), seed)
    return head.start(), read_calls(leaked, seed)


def _is_broken(text: str, names: frozenset[str] | None) -> bool:
    """Whether a text that cannot be read as calls is one all the same: it begins with a call to an offered
    tool."""
    head = _HEAD.match(text.lstrip())
    name = _NAME.fullmatch(head["id"] or head["name"]) if head is not None else None
    return name is not None and (names is None or name[1] in names)


def _repeats(found: Iterable[ToolCall], told: Iterable[ToolCall]) -> bool:
    """Whether one of these calls is in the answer already: some servers read the calls and leave the text."""
    known = [(call.name, _value(call.arguments)) for call in told]
    return any((call.name, _value(call.arguments)) in known for call in found)


def _value(arguments: str) -> Any:
    try:
        return _read_arguments(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _called(stop: Stop) -> Stop:
    return stop if stop.reason == "tool_calls" else Stop("tool_calls", _LEAKED)


def read_tagged(text: str, names: frozenset[str], seed: str) -> list[ToolCall] | None:
    """The calls in a text that is nothing but tagged calls to these tools; None for any other."""
    calls: list[ToolCall] = []
    at = 0
    while at < len(text):
        found = _TAGGED.match(text, at)
        call = _tagged(found[1]) if found is not None else None
        if found is None or call is None or call.name not in names:
            return None
        arguments = bytes(call.arguments).decode()
        calls.append(ToolCall(_made_up(seed, str(len(calls)), call.name, arguments), call.name, arguments))
        at = found.end()
    return calls


def _tagged(text: str) -> TaggedCall | None:
    try:
        call = _read_tagged(text)
    except (ValueError, RecursionError):
        return None
    return call if bytes(call.arguments).startswith(b"{") else None


def read_calls(text: str, seed: str) -> list[ToolCall] | None:
    """The calls in leaked tokens; None where they are not whole, or something is between them."""
    opening = _OPENING.match(text)
    at = opening.end() if opening is not None else 0
    calls: list[ToolCall] = []
    while (found := _CALL.match(text, at)) is not None:
        arguments = (found["arguments"] or found["fenced"] or "").strip() or "{}"
        name = _NAME.fullmatch(found["id"] or found["name"])
        if name is None or not _is_object(arguments):
            return None
        identifier = found["id"] or _made_up(seed, str(len(calls)), name[1], arguments)
        calls.append(ToolCall(identifier, name[1], arguments))
        at = found.end()
    ending = _ENDING.match(text, at)
    if not calls or ending is None or ending.end() != len(text):
        return None
    return calls


def _is_object(arguments: str) -> bool:
    try:
        _look_over(arguments)
    except (ValueError, RecursionError):
        return False
    return arguments.startswith("{")


def _made_up(*material: str) -> str:
    digest = hashlib.blake2b("\x1f".join(material).encode("utf-8", "replace"), digest_size=12)
    return f"call_{digest.hexdigest()}"


class LeakFilter:
    """The same of a stream. From the head of a call on everything waits for the end of the answer: only that
    tells whether the text may be a call, and which calls are in the answer already."""

    __slots__ = (
        "_at", "_calls", "_names", "_said", "_seed", "_started", "_sure", "_tags", "_tail", "_waiting",
        "recovered",
    )  # fmt: skip

    def __init__(self, request: Request | None) -> None:
        self.recovered = False
        """Whether calls were read from a text."""
        self._names = _offered(request)
        self._seed = ""
        self._started = 0
        self._tags: dict[int, bool] = {}
        """The parts whose text is read, and whether a tag may be a call there."""
        self._said: set[int] = set()
        """Those of which words have gone out."""
        self._calls: dict[int, tuple[ToolCall, GrowingText]] = {}
        self._waiting: list[Event] = []
        self._at = -1
        """The part in which a call may begin; its text from there on is `_tail`."""
        self._tail = ""
        self._sure = False
        """Whether that is the head of a call."""

    def events(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            match event:
                case Finish():
                    passed += self._decided(event)
                case Failure():
                    passed += (*self._waiting, event)
                    self._waiting = []
                case UsageReport():
                    passed.append(event)
                case _:
                    self._note(event)
                    self._take(event, passed)
        return passed

    def _note(self, event: Event) -> None:
        match event:
            case Start():
                self._seed = event.id
            case PartStart(part=part):
                self._started = max(self._started, event.index + 1)
                if type(part) is Text or type(part) is Reasoning:
                    self._tags[event.index] = type(part) is Text
                elif type(part) is ToolCall:
                    self._calls[event.index] = (part, GrowingText())
            case Delta() if event.index in self._calls:
                self._calls[event.index][1].add(event.text)
            case _:
                pass

    def _take(self, event: Event, passed: list[Event]) -> None:
        """Pass an event on, or let it wait behind what may be a call."""
        if self._at >= 0:
            self._waiting.append(event)
            if self._sure:
                return
            if type(event) is Delta and event.index == self._at:
                self._tail += event.text
                if self._may_call(self._tail, 0, self._at):
                    return
            elif type(event) is not PartEnd or event.index != self._at:
                return
            self._release(passed)
        elif type(event) is Delta and event.index in self._tags:
            self._search(event, 0, passed)
        else:
            passed.append(event)

    def _search(self, delta: Delta, start: int, passed: list[Event]) -> None:
        """Pass words on up to the next place where a call may begin."""
        text = delta.text
        at = text.find("<", start)
        while at >= 0 and not self._may_call(text, at, delta.index):
            at = text.find("<", at + 1)
        if at < 0:
            said = delta
        else:
            said = msgspec.structs.replace(delta, text=text[:at])
            self._at, self._tail = delta.index, text[at:]
            self._waiting = [Delta(delta.index, self._tail)]
        if said.text.strip():
            self._said.add(delta.index)
        if said.text or said.logprobs or not text:
            passed.append(said)

    def _may_call(self, text: str, at: int, index: int) -> bool:
        tags = self._tags[index]
        self._sure = (_HEAD_OR_TAG if tags else _HEAD).match(text, at) is not None
        return self._sure or (_UNDECIDED_OR_TAG if tags else _UNDECIDED).fullmatch(text, at) is not None

    def _release(self, passed: list[Event]) -> None:
        """What waits is no call: its first character is a word, and the rest is searched."""
        (first, *waiting), self._waiting = self._waiting, []
        self._at = -1
        assert type(first) is Delta
        self._search(first, 1, passed)
        for event in waiting:
            self._take(event, passed)

    def _decided(self, finish: Finish) -> list[Event]:
        """All that waits, with its calls as calls, and the end."""
        waiting, self._waiting = self._waiting, []
        if not _allows_calls(finish.stop):
            return [*waiting, finish]
        told = [
            msgspec.structs.replace(call, arguments=call.arguments + str(text))
            for call, text in self._calls.values()
        ]
        texts: dict[int, GrowingText] = {}
        for event in waiting:
            if type(event) is Delta and event.index in self._tags:
                texts.setdefault(event.index, GrowingText()).add(event.text)
        calls: list[ToolCall] = []
        room: dict[int, int] = {}
        """How many characters of a part are words."""
        for index in sorted(texts):
            text = str(texts[index])
            at, found = _calls_in(text, self._names, self._seed, tags=self._tags[index])
            if found is None and not told and index not in self._said and _is_broken(text, self._names):
                return [*waiting, msgspec.structs.replace(finish, stop=Stop("malformed_call", _LEAKED))]
            if found is not None and not _repeats(found, (*told, *calls)):
                room[index] = at
                calls += found
        if not calls:
            return [*waiting, finish]
        self.recovered = True
        passed: list[Event] = []
        for event in waiting:
            left = room.get(event.index) if type(event) is Delta else None
            if type(event) is not Delta or left is None:
                passed.append(event)
                continue
            room[event.index] = max(0, left - len(event.text))
            if left or event.logprobs:
                passed.append(msgspec.structs.replace(event, text=event.text[:left]))
        for number, call in enumerate(calls, self._started):
            passed += (
                PartStart(number, msgspec.structs.replace(call, arguments="")),
                Delta(number, call.arguments),
                PartEnd(number),
            )
        return [*passed, msgspec.structs.replace(finish, stop=_called(finish.stop))]
