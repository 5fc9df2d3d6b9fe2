"""Converts calls that a server left in the text, in its model's special tokens, back to calls.

Hosts of open models parse these tokens. Where one fails to, its client gets them as text, and an agent ends
its turn. Only answers of providers that are known to leak calls (`Limits.leaks_calls`) are parsed for them,
and only for the tokens that the provider leaks. Anywhere else such text may be a quotation, and is never
converted.

A call is recognized if it names a tool that the request offers and its choice allows, and if only calls
follow it in the answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from wireglot_core.ir.content import Part, Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop, StopReason
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    GrowingText,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)


class TaggedCall(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: msgspec.Raw


LeakFamily = Literal["kimi", "deepseek", "hermes"]
"""The model family of the tokens. Hermes and Qwen write the same tags."""
LEAK_FAMILIES: Final[tuple[LeakFamily, ...]] = ("kimi", "deepseek", "hermes")

TAG: Final = "<tool_call>"
"""Hermes and Qwen write calls like this (the chat template of huggingface.co/Qwen/Qwen3-8B). Unlike tokens,
any text can contain it: such a call begins a line, and it is never read from reasoning."""


class _CallTokens(NamedTuple):
    """A call is what `begin` matches, then its arguments, up to `end`."""

    begin: re.Pattern[str]
    end: str


_CALLS: Final[dict[LeakFamily, _CallTokens]] = {
    # huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md
    "kimi": _CallTokens(
        re.compile(
            r"<\|tool_call_begin\|>\s*+(?P<name>[^<\s]++)\s*+<\|tool_call_argument_begin\|>",
        ),
        "<|tool_call_end|>",
    ),
    # The chat templates of V3, R1 and V3.1.
    "deepseek": _CallTokens(
        re.compile(
            r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[^<\s`]++)\s*+"
            r"(?:<｜tool▁sep｜>)?\s*+(?:```json)?"
        ),
        "<｜tool▁call▁end｜>",
    ),
}
_BLANKS: Final = re.compile(r"\s*+")
_FENCE: Final = "```"
_TAGGED: Final = re.compile(rf"{TAG}\s*(\{{.*?\}})\s*</tool_call>\s*", re.DOTALL)
_OPENING: Final = re.compile(r"(?:<\|tool_calls_section_begin\|>|<｜tool▁calls▁begin｜>)?\s*")
_ENDING: Final = re.compile(
    r"(?:<\|tool_calls_section_end\|>|<｜tool▁calls▁end｜>)?(?:<｜end▁of▁sentence｜>)?\s*"
)
_NAME: Final = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?")

_HEADS: Final[dict[LeakFamily, str]] = {
    "kimi": r"(?:<\|tool_calls_section_begin\|>\s{0,99})?<\|tool_call_begin\|>\s{0,99}"
    r"(?P<kimi>[^<\s]{1,256})\s{0,99}<\|tool_call_argument_begin\|>",
    "deepseek": r"(?:<｜tool▁calls▁begin｜>\s{0,99})?<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?"
    r"(?P<deepseek>[^<\s`]{1,256})(?:<｜tool▁sep｜>|\s{0,99}```)",
    "hermes": rf"(?P<hermes>{TAG})\s{{0,99}}\{{",
}
"""The beginning of a call up to its arguments. A text that only mentions a token does not have it."""


def _beginning(literal: str) -> str:
    """A pattern for every prefix of a text, including the empty one and all of it."""
    return "".join(f"(?:{re.escape(char)}" for char in literal) + ")?" * len(literal)


_UNDECIDED: Final[dict[LeakFamily, str]] = {
    "kimi": rf"{_beginning('<|tool_calls_section_begin|>')}|(?:<\|tool_calls_section_begin\|>\s{{0,99}})?"
    rf"(?:{_beginning('<|tool_call_begin|>')}"
    rf"|<\|tool_call_begin\|>\s{{0,99}}[^<\s]{{0,256}}\s{{0,99}}{_beginning('<|tool_call_argument_begin|>')})",
    "deepseek": rf"{_beginning('<｜tool▁calls▁begin｜>')}|(?:<｜tool▁calls▁begin｜>\s{{0,99}})?"
    rf"(?:{_beginning('<｜tool▁call▁begin｜>')}"
    rf"|<｜tool▁call▁begin｜>[^<\s`]{{0,256}}(?:{_beginning('<｜tool▁sep｜>')}|\s{{0,99}}{_beginning('```')}))",
    "hermes": rf"{_beginning(TAG)}|{TAG}\s{{0,99}}",
}
"""Patterns for text that may still become a head."""

_LINE: Final = 100
"""How far back to search for the beginning of a line; tags that are indented further are text."""


class _Tokens(NamedTuple):
    head: re.Pattern[str]
    undecided: re.Pattern[str]


@lru_cache(maxsize=64)
def _tokens(families: frozenset[LeakFamily]) -> _Tokens | None:
    known = [family for family in LEAK_FAMILIES if family in families]
    if not known:
        return None
    return _Tokens(
        re.compile("|".join(_HEADS[family] for family in known)),
        re.compile("|".join(_UNDECIDED[family] for family in known)),
    )


def _families(part: Part, families: Iterable[LeakFamily]) -> frozenset[LeakFamily]:
    """The families whose tokens may leak into a part."""
    if type(part) is Text:
        return frozenset(families)
    return frozenset(families) - {"hermes"} if type(part) is Reasoning else frozenset()


def _begins_line(before: str) -> bool:
    """Whether there are only blanks between the last line break (or start) of a text and its end."""
    line = before[-_LINE:].rpartition("\n")[2]
    return len(line) < _LINE and not line.strip(" \t")


_ENDED: Final[frozenset[StopReason]] = frozenset({"end", "stop_sequence", "tool_calls"})
_LEAKED: Final = "leaked tool tokens"

_look_over = msgspec.json.Decoder(msgspec.Raw).decode
_read_tagged = msgspec.json.Decoder(TaggedCall).decode
_read_arguments = msgspec.json.Decoder().decode


def offered(request: Request | None, renamed: Mapping[str, tuple[str, str]]) -> frozenset[str]:
    """The names under which a model may call tools as functions: those of the request that its choice allows.
    Empty if the request is unknown. `renamed`: see `Aliases.functions`."""
    if request is None:
        return frozenset()
    choice = request.tool_choice
    allowed = [
        tool for tool in request.tools if type(tool) is Tool and (choice is None or choice.allows(tool))
    ]
    names = {(tool.namespace, tool.name) for tool in allowed}
    plain = {tool.name for tool in allowed if tool.kind == "function" and not tool.namespace}
    return frozenset(plain.union(name for name, meant in renamed.items() if meant in names))


def _allows_calls(stop: Stop) -> bool:
    """Whether the answer ended by itself. Unknown reasons may mean a filter; some servers report none."""
    return stop.reason in _ENDED or (stop.reason == "other" and not stop.raw)


def recovered(response: Response, names: frozenset[str], families: Iterable[LeakFamily]) -> Response:
    """A whole answer with its leaked calls converted to calls, after its other parts; the same object if
    there are none. `names`: the tools that may be called."""
    if not names or not _allows_calls(response.stop):
        return response
    leaks = _leaks(
        [
            (part, "", part.text if type(part) is Text or type(part) is Reasoning else "")
            for part in response.content
        ],
        [part for part in response.content if type(part) is ToolCall],
        names,
        families,
        response.id,
    )
    if leaks is None:
        return msgspec.structs.replace(response, stop=Stop("malformed_call", _LEAKED))
    if not leaks:
        return response
    content: list[Part] = []
    for number, part in enumerate(response.content):
        if number not in leaks or (type(part) is not Text and type(part) is not Reasoning):
            content.append(part)
        elif part.text[: leaks[number][0]].strip():
            content.append(msgspec.structs.replace(part, text=part.text[: leaks[number][0]]))
    calls = [call for number in sorted(leaks) for call in leaks[number][1]]
    return msgspec.structs.replace(response, content=(*content, *calls), stop=_called(response.stop))


def _leaks(
    parts: list[tuple[Part, str, str]],
    structured: list[ToolCall],
    names: frozenset[str],
    families: Iterable[LeakFamily],
    seed: str,
) -> dict[int, tuple[int, list[ToolCall]]] | None:
    """Part number -> (the offset at which leaked calls begin in its text, the calls). None for a broken call.

    `parts`: each with the end of the text already sent, and the remaining text. They are parsed from the last
    to the first, up to the answer's last text that is not a call. `structured`: the calls that did not leak.
    """
    leaks: dict[int, tuple[int, list[ToolCall]]] = {}
    known = {_key(call) for call in structured}
    for number in range(len(parts) - 1, -1, -1):
        part, before, text = parts[number]
        if type(part) is ToolCall:
            continue
        if type(part) is not Text and type(part) is not Reasoning:
            break
        head = _head(text, before, _families(part, families))
        if head is None:
            if text.strip() or before.strip():
                break
            continue
        found = _read(head, text, seed)
        if found is None:
            if (
                not structured
                and not before.strip()
                and not text[: head.start()].strip()
                and _is_broken(head, names)
            ):
                return None
            break
        if any(call.name not in names for call in found):
            break
        if not _repeats(found, known):
            leaks[number] = (head.start(), found)
            known.update(map(_key, found))
        if before.strip() or text[: head.start()].strip():
            break
    return leaks


def _head(text: str, before: str, families: frozenset[LeakFamily]) -> re.Match[str] | None:
    """The first head of a call in a text that follows `before`."""
    tokens = _tokens(families) if "<" in text else None
    if tokens is None:
        return None
    for head in tokens.head.finditer(text):
        at = head.start()
        if head.lastgroup != "hermes" or _begins_line(before[-_LINE:] + text[max(0, at - _LINE) : at]):
            return head
    return None


def _read(head: re.Match[str], text: str, seed: str) -> list[ToolCall] | None:
    leaked = text[head.start() :]
    if head.lastgroup == "hermes":
        return read_tagged(leaked, seed)
    return read_calls(leaked, "kimi" if head.lastgroup == "kimi" else "deepseek", seed)


def _is_broken(head: re.Match[str], names: frozenset[str]) -> bool:
    """Whether a text with this head that cannot be parsed is nevertheless a broken call: it names an offered
    tool. A tag may begin any text."""
    if head.lastgroup is None or head.lastgroup == "hermes":
        return False
    name = _NAME.fullmatch(head[head.lastgroup])
    return name is not None and name[1] in names


def _repeats(found: Iterable[ToolCall], known: Set[tuple[str, bytes | str]]) -> bool:
    """Whether one of these calls is in the answer already: some servers parse the calls and leave the text,
    and some add the defaults from a tool's schema."""
    return not known.isdisjoint(map(_key, found))


def _key(call: ToolCall) -> tuple[str, bytes | str]:
    """Equal for calls that mean the same."""
    try:
        value = _without_nulls(_read_arguments(call.arguments or "{}"))
        return call.name, msgspec.json.encode(value, order="sorted")
    except (ValueError, OverflowError, RecursionError):
        return call.name, call.arguments


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_nulls(member) for name, member in value.items() if member is not None}
        case list():
            return [_without_nulls(item) for item in value]
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case _:
            return value


def _called(stop: Stop) -> Stop:
    return stop if stop.reason == "tool_calls" else Stop("tool_calls", _LEAKED)


def read_tagged(text: str, seed: str) -> list[ToolCall] | None:
    """The calls in a text that consists of tagged calls only; None for any other."""
    calls: list[ToolCall] = []
    at = 0
    while at < len(text):
        found = _TAGGED.match(text, at)
        call = _tagged(found[1]) if found is not None else None
        if found is None or call is None:
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


def read_calls(text: str, family: Literal["kimi", "deepseek"], seed: str) -> list[ToolCall] | None:
    """The calls in leaked tokens; None if they are incomplete, or something is between them."""
    opening = _OPENING.match(text)
    at = opening.end() if opening is not None else 0
    tokens, calls = _CALLS[family], list[ToolCall]()
    while (found := tokens.begin.match(text, at)) is not None:
        end = text.find(tokens.end, found.end())
        if end < 0:
            return None
        arguments = text[found.end() : end].strip()
        if family == "deepseek":
            arguments = arguments.removesuffix(_FENCE).strip()
        arguments = arguments or "{}"
        name = _NAME.fullmatch(found["name"])
        if name is None or not _is_object(arguments):
            return None
        made_up = _made_up(seed, str(len(calls)), name[1], arguments)
        identifier = found["name"] if family == "kimi" else made_up
        calls.append(ToolCall(identifier, name[1], arguments))
        at = _end_of_blanks(text, end + len(tokens.end))
    ending = _ENDING.match(text, at)
    if not calls or ending is None or ending.end() != len(text):
        return None
    return calls


def _end_of_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks is not None else at


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
    """The same for a stream. Everything from the head of a call on is held back until the end of the answer:
    only the end shows whether the text may be a call, and which calls are in the answer already."""

    __slots__ = (
        "_at", "_before", "_calls", "_families", "_names", "_parts", "_seed", "_started", "_sure", "_tail",
        "_waiting", "recovered",
    )  # fmt: skip

    def __init__(self, names: frozenset[str], families: Iterable[LeakFamily]) -> None:
        self.recovered = False
        """Whether calls were recovered from a text."""
        self._names = names
        self._families = tuple(families)
        self._seed = ""
        self._started = 0
        self._parts: dict[int, Part] = {}
        self._before: dict[int, str] = {}
        """The end of the text already passed on, for each part; blank only if all of it is."""
        self._calls: dict[int, tuple[ToolCall, GrowingText]] = {}
        self._waiting: list[Event] = []
        self._at = -1
        """The part in which a call may begin; its text from that position is `_tail`."""
        self._tail = ""
        self._sure = False
        """Whether that text has a complete call head."""

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
                self._parts[event.index] = part
                if type(part) is Text or type(part) is Reasoning:
                    self._before[event.index] = part.text
                elif type(part) is ToolCall:
                    self._calls[event.index] = (part, GrowingText())
            case Delta() if event.index in self._calls:
                self._calls[event.index][1].add(event.text)
            case _:
                pass

    def _take(self, event: Event, passed: list[Event]) -> None:
        """Pass an event on, or hold it back after what may be a call."""
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
        elif type(event) is Delta and event.index in self._before:
            self._search(event, 0, passed)
        else:
            passed.append(event)

    def _search(self, delta: Delta, start: int, passed: list[Event]) -> None:
        """Pass text on up to the next place where a call may begin."""
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
        self._pass(delta.index, said.text)
        if said.text or said.logprobs or not text:
            passed.append(said)

    def _pass(self, index: int, text: str) -> None:
        """Keep the end of the text passed on: enough to detect the start of a line, and whether there was any
        content."""
        before = self._before[index] + text
        if len(before) > _LINE:
            before = ("." if before.strip() else "") + before[-_LINE:]
        self._before[index] = before

    def _may_call(self, text: str, at: int, index: int) -> bool:
        families = _families(self._parts[index], self._families)
        if "hermes" in families:
            before = self._before[index][-_LINE:] + text[max(0, at - _LINE) : at]
            if not _begins_line(before):
                families -= {"hermes"}
        tokens = _tokens(families)
        self._sure = tokens is not None and tokens.head.match(text, at) is not None
        return self._sure or (tokens is not None and tokens.undecided.fullmatch(text, at) is not None)

    def _release(self, passed: list[Event]) -> None:
        """The held text is not a call: its first character is released, and the rest is searched."""
        (first, *waiting), self._waiting = self._waiting, []
        self._at = -1
        assert type(first) is Delta
        self._search(first, 1, passed)
        for event in waiting:
            self._take(event, passed)

    def _decided(self, finish: Finish) -> list[Event]:
        """All held events, with leaked calls converted to calls, and the end."""
        waiting, self._waiting = self._waiting, []
        if not _allows_calls(finish.stop):
            return [*waiting, finish]
        structured = [
            msgspec.structs.replace(call, arguments=call.arguments + str(text))
            for call, text in self._calls.values()
        ]
        texts: dict[int, GrowingText] = {}
        for event in waiting:
            if type(event) is Delta and event.index in self._before:
                texts.setdefault(event.index, GrowingText()).add(event.text)
        order = sorted(self._parts)
        leaks = _leaks(
            [(self._parts[index], self._before.get(index, ""), str(texts.get(index, ""))) for index in order],
            structured,
            self._names,
            self._families,
            self._seed,
        )
        if leaks is None:
            return [*waiting, msgspec.structs.replace(finish, stop=Stop("malformed_call", _LEAKED))]
        if not leaks:
            return [*waiting, finish]
        calls = [call for number in sorted(leaks) for call in leaks[number][1]]
        room = {order[number]: at for number, (at, _) in leaks.items()}
        """For each part with leaked calls, the number of characters that are text."""
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
