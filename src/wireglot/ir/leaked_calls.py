"""Calls that a server left in the text, in the tokens its model writes them with: made calls again.

Hosts of open models parse these tokens; where one fails to, its client gets them as words, and an agent ends
its turn. Tokens that cannot be read as calls make the answer a malformed one.
"""

from __future__ import annotations

import hashlib
import operator
import re
from typing import Final

import msgspec

from wireglot.ir.content import Part, Reasoning, Text, ToolCall
from wireglot.ir.outcome import Response, Stop, StopReason
from wireglot.ir.request import Request, Tool
from wireglot.ir.stream import Delta, Event, Finish, PartEnd, PartStart
from wireglot.ir.tagged_call import TaggedCall

MARKS: Final = (
    # Kimi K2: huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    # DeepSeek: the chat templates of V3, R1 and V3.1.
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
)
"""What leaked calls begin with. These are single tokens of their models, and no words of any language."""

TAG: Final = "<tool_call>"
"""Hermes and Qwen write calls so (the chat template of huggingface.co/Qwen/Qwen3-8B). It can be a word of an
answer that explains it: a call it is where it is whole, names an offered tool, and nothing but calls follows;
anything else stays a text."""

_MARK: Final = re.compile("|".join(map(re.escape, MARKS)))
_TAGGED: Final = re.compile(rf"{TAG}\s*(\{{.*?\}})\s*</tool_call>\s*", re.DOTALL)


_read_tagged = msgspec.json.Decoder(TaggedCall).decode
_OPENING: Final = re.compile(r"(?:<\|tool_calls_section_begin\|>|<｜tool▁calls▁begin｜>)?\s*")
_CALL: Final = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>[^<]+?)\s*<\|tool_call_argument_begin\|>(?P<arguments>.*?)"
    r"<\|tool_call_end\|>\s*"
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[^<\s`]+)\s*(?:<｜tool▁sep｜>)?\s*(?:```json)?"
    r"(?P<fenced>.*?)(?:```)?\s*<｜tool▁call▁end｜>\s*",
    re.DOTALL,
)
_ENDING: Final = re.compile(
    r"(?:<\|tool_calls_section_end\|>|<｜tool▁calls▁end｜>)?(?:<｜end▁of▁sentence｜>)?\s*"
)
_NAME: Final = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?")
_BY_ITSELF: Final[frozenset[StopReason]] = frozenset({"end", "other", "stop_sequence"})
_LEAKED: Final = "leaked tool tokens"

_look_over = msgspec.json.Decoder(msgspec.Raw).decode


def leaks(text: str) -> bool:
    return _MARK.search(text) is not None


def may_begin(text: str) -> bool:
    """Whether so much of an answer may be the beginning of leaked tokens."""
    return any(mark.startswith(text) for mark in MARKS)


def offered(request: Request | None) -> frozenset[str]:
    """The names that a tagged call may have."""
    if request is None:
        return frozenset()
    return frozenset(tool.name for tool in request.tools if type(tool) is Tool and tool.kind == "function")


def can_leak(request: Request | None) -> bool:
    """Whoever offers no tools gets no calls: such words are words."""
    return request is None or bool(request.tools)


def _has_tokens(response: Response) -> bool:
    """Whether there can be any: marks and tags begin with the same letter."""
    for part in response.content:
        if (type(part) is Text or type(part) is Reasoning) and "<" in part.text:
            return True
    return False


def recovered(response: Response, request: Request | None) -> Response:
    """A whole answer with its leaked calls as calls, and the same one where there are none."""
    if not _has_tokens(response) or not can_leak(request):
        return response
    if not any(map(_leaks, response.content)):
        return _untagged(response, offered(request))
    content: list[Part] = []
    for part in response.content:
        if not _leaks(part):
            content.append(part)
            continue
        assert isinstance(part, Text | Reasoning)
        found = _MARK.search(part.text)
        at = found.start() if found is not None else 0
        if part.text[:at].strip():
            content.append(msgspec.structs.replace(part, text=part.text[:at]))
        calls = read_calls(part.text[at:], response.id)
        if calls is None:
            return msgspec.structs.replace(response, stop=_stop(response.stop, broken=True))
        content += calls
    return msgspec.structs.replace(response, content=tuple(content), stop=_stop(response.stop, broken=False))


def _untagged(response: Response, names: frozenset[str]) -> Response:
    content: list[Part] = []
    for part in response.content:
        at = part.text.find(TAG) if type(part) is Text and names else -1
        calls = read_tagged(part.text[at:], names, response.id) if type(part) is Text and at >= 0 else None
        if type(part) is not Text or calls is None:
            content.append(part)
            continue
        if part.text[:at].strip():
            content.append(msgspec.structs.replace(part, text=part.text[:at]))
        content += calls
    if len(content) == len(response.content) and all(map(operator.is_, content, response.content)):
        return response
    return msgspec.structs.replace(response, content=tuple(content), stop=_stop(response.stop, broken=False))


def read_tagged(text: str, names: frozenset[str], seed: str) -> list[ToolCall] | None:
    """The calls in a text that is nothing but tagged calls to these tools; None for any other."""
    calls: list[ToolCall] = []
    at = 0
    while at < len(text):
        found = _TAGGED.match(text, at)
        told = _tagged(found[1]) if found is not None else None
        if found is None or told is None or told.name not in names:
            return None
        arguments = bytes(told.arguments).decode()
        calls.append(ToolCall(_made_up(seed, str(len(calls)), told.name, arguments), told.name, arguments))
        at = found.end()
    return calls


def _tagged(text: str) -> TaggedCall | None:
    try:
        told = _read_tagged(text)
    except (ValueError, RecursionError):
        return None
    return told if bytes(told.arguments).startswith(b"{") else None


def _leaks(part: Part) -> bool:
    return isinstance(part, Text | Reasoning) and leaks(part.text)


def read_calls(text: str, seed: str) -> list[ToolCall] | None:
    """The calls in leaked tokens; None where they are not whole, or something stands between them."""
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


def _stop(stop: Stop, *, broken: bool) -> Stop:
    if broken:
        return Stop("malformed_call", _LEAKED)
    return Stop("tool_calls", _LEAKED) if stop.reason in _BY_ITSELF else stop


class LeakFilter:
    """The same of a stream: text from a mark on waits for the end of its part. While `active` it must be told
    every event; otherwise only texts with a `<` in them, and by `note` where parts begin."""

    __slots__ = (
        "_broken", "_held", "_leaked", "_names", "_places", "_spoken", "_started", "_texts",
        "active", "recovered",
    )  # fmt: skip

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        """`names`: of the tools that a tagged call may be to."""
        self._names = names
        self._texts: set[int] = set()
        self._started = 0
        self._spoken: set[int] = set()
        self._held: dict[int, str] = {}  # ends of texts that may be the beginning of a mark
        self._leaked: dict[int, list[str]] = {}
        self._places: dict[int, int] = {}  # where parts stand, once calls were put between them
        self.recovered = False
        self._broken = False
        self.active = False

    def note(self, start: PartStart) -> None:
        self._started += 1
        if isinstance(start.part, Text | Reasoning):
            self._spoken.add(start.index)
            if self._names and isinstance(start.part, Text):
                self._texts.add(start.index)

    def events(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            match event:
                case Delta():
                    self._delta(event, passed)
                case PartStart():
                    self._places[event.index] = self._started
                    self.note(event)
                    passed.append(self._placed(event))
                case PartEnd():
                    self._end(event, passed)
                case Finish() if self.recovered or self._broken:
                    passed.append(msgspec.structs.replace(event, stop=_stop(event.stop, broken=self._broken)))
                case _:
                    passed.append(event)
        self.active = bool(self._held or self._leaked or self.recovered or self._broken)
        return passed

    def _placed(self, event: Delta | PartStart | PartEnd) -> Event:
        place = self._places.get(event.index, event.index)
        return event if place == event.index else msgspec.structs.replace(event, index=place)

    def _delta(self, delta: Delta, passed: list[Event]) -> None:
        index = delta.index
        if index in self._leaked:
            self._leaked[index].append(delta.text)
            return
        if index not in self._spoken:
            passed.append(self._placed(delta))
            return
        text = self._held.pop(index, "") + delta.text
        found = _MARK.search(text)
        tagged = text.find(TAG) if index in self._texts else -1
        if found is not None and not 0 <= tagged < found.start():
            self._leaked[index] = [text[found.start() :]]
            text = text[: found.start()]
        elif tagged >= 0:
            self._leaked[index] = [text[tagged:]]
            text = text[:tagged]
        else:
            tail = text.rfind("<")
            tags = index in self._texts and TAG.startswith(text[tail:])
            if tail >= 0 and (tags or may_begin(text[tail:])):
                self._held[index] = text[tail:]
                text = text[:tail]
        if text or delta.logprobs:
            passed.append(self._placed(msgspec.structs.replace(delta, text=text)))

    def _end(self, end: PartEnd, passed: list[Event]) -> None:
        index = end.index
        held = self._held.pop(index, "")
        if held:
            passed.append(self._placed(Delta(index, held)))
        leaked = "".join(self._leaked.pop(index, ()))
        is_tagged = leaked.startswith(TAG)
        seed = str(self._started)
        calls = read_tagged(leaked, self._names, seed) if is_tagged else read_calls(leaked, seed)
        if is_tagged and calls is None:
            passed.append(self._placed(Delta(index, leaked)))
        passed.append(self._placed(end))
        if not leaked or (is_tagged and calls is None):
            return
        if calls is None:
            self._broken = True
            return
        self.recovered = True
        for call in calls:
            passed += (
                PartStart(self._started, msgspec.structs.replace(call, arguments="")),
                Delta(self._started, call.arguments),
                PartEnd(self._started),
            )
            self._started += 1
