"""The parts of a conversation that the demo model uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wireglot.demo import words
from wireglot_core.ir.content import Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request, Tool
from wireglot_core.wire.json import encode_text

# Words that the demo model says when it is asked for a number of them.
WORDS_MAX = 20_000
# Calls that the demo model makes in one answer.
CALLS_MAX = 16
# Seconds that the demo model waits between two pieces.
GAP_MAX = 10.0

_OPEN: Final = "[[demo:"
_END: Final = "]]"
_NAME: Final = re.compile(r"[a-z-]+")
_FAIL: Final = re.compile(r"(\d{3})\b")
_WAIT: Final = re.compile(r"retry-after(-ms)?=(\d{1,6})")
_GAP: Final = re.compile(r"(\d{1,6})\s*(ms|s)\b")
_COUNT: Final = re.compile(r"\d{1,6}")
_TOOL: Final = re.compile(r"(\S+)\s*(.*)", re.DOTALL)


class Directives(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`fail` is a status, `gap` in seconds, `tool` a name with the arguments as they were written, `calls`
    the number of calls to make; 0: not set."""

    echo: bool = False
    think: bool = False
    refuse: bool = False
    strict: bool = False
    hang: bool = False
    hang_midstream: bool = False
    fail_midstream: bool = False
    cut: bool = False
    words: int = 0
    calls: int = 0
    tool: str = ""
    arguments: str = ""
    fail: int = 0
    retry_after: float | None = None
    gap: float = 0.0


_FLAGS: Final = {
    field.name.replace("_", "-"): field.name
    for field in msgspec.structs.fields(Directives)
    if field.default is False
}


def parse_directives(text: str) -> Directives:
    """Of two contradicting directives the later one wins; an invalid one is ignored."""
    found: dict[str, object] = {}
    for _, _, inside in _spans(text):
        name = _NAME.match(inside)
        if name is not None:
            found |= _meaning(name[0], inside[name.end() :].strip())
    return msgspec.convert(found, Directives)


def without_directives(text: str) -> str:
    kept: list[str] = []
    at = 0
    for start, end, _ in _spans(text):
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return "".join(kept).strip()


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and content of each. Arguments may contain `]]` themselves: the end of the JSON decides."""
    at = text.find(_OPEN)
    while at >= 0:
        start = at + len(_OPEN)
        end = text.find(_END, start)
        brace = text.find("{", start)
        if text.startswith("tool ", start) and 0 <= brace < end:
            end = text.find("}" + _END, start) + 1
        if end <= 0:
            return
        yield at, end + len(_END), text[start:end]
        at = text.find(_OPEN, end)


def _meaning(name: str, rest: str) -> dict[str, object]:
    if name in _FLAGS:
        return {_FLAGS[name]: True}
    if name == "fail" and (status := _FAIL.match(rest)) and 400 <= int(status[1]) <= 599:
        wait = _WAIT.search(rest)
        after = int(wait[2]) / (1000 if wait[1] else 1) if wait else None
        return {"fail": int(status[1]), "retry_after": after}
    if name == "slow" and (gap := _GAP.match(rest)):
        return {"gap": min(GAP_MAX, int(gap[1]) / (1000 if gap[2] == "ms" else 1))}
    if name == "text" and (count := _COUNT.match(rest)):
        return {"words": max(1, min(WORDS_MAX, int(count[0])))}
    if name == "tools" and (count := _COUNT.match(rest)):
        return {"calls": max(1, min(CALLS_MAX, int(count[0])))}
    if name == "tool" and (tool := _TOOL.match(rest)):
        return {"tool": tool[1], "arguments": tool[2].strip()}
    return {}


_REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
"""Text that agents, and translations of later system texts, put next to the user's own words; or into one
text with them, if a server accepts only one."""


class DemoTurn:
    """The end of the conversation: everything after the model's last turn."""

    def __init__(self, messages: Sequence[Message]) -> None:
        last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
        self.before = messages[: last + 1]
        self.results: list[ToolResult] = []
        self.said: list[str] = []
        for message in messages[last + 1 :]:
            for part in message.content:
                if isinstance(part, ToolResult):
                    self.results.append(part)
                elif isinstance(part, Text) and message.role == "user":
                    self.said.append(part.text)
        self.text = "\n".join(self.said)
        spoken = list(filter(None, map(_own_words, self.said)))
        self.prompt = without_directives(spoken[-1]) if spoken else ""


def _own_words(text: str) -> str:
    return _REMINDER.sub("", text).strip() if _REMINDER.search(text) else text


def user_texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "user":
            for part in message.content:
                if isinstance(part, Text):
                    yield part.text


def calls_of(messages: Sequence[Message]) -> list[ToolCall]:
    """The model's calls since the user last spoke."""
    calls: list[ToolCall] = []
    for message in reversed(messages):
        kinds = {type(part) for part in message.content}
        if message.role == "user" and Text in kinds and ToolResult not in kinds:
            break
        calls += [part for part in message.content if isinstance(part, ToolCall)]
    return calls


def result_text(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def part_text(part: Part) -> str:
    match part:
        case Text() | Reasoning():
            return part.text
        case ToolCall():
            return part.arguments
        case ToolResult():
            return result_text(part)
        case _:
            return ""


def message_tokens(message: Message) -> int:
    return 4 + sum(words.tokens(part_text(part)) for part in message.content)


def tool_tokens(request: Request) -> int:
    return sum(
        words.tokens(f"{tool.name}{tool.description or ''}{encode_text(tool.schema)}")
        for tool in request.tools
        if isinstance(tool, Tool)
    )
