"""What a conversation holds, as far as the demo model looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from wireglot.demo import words
from wireglot.demo.directives import without_directives
from wireglot.ir.content import Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot.ir.request import Request, Tool
from wireglot.wire.json import encode_text

_REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
"""What agents, and translations of system texts midway, put beside the user's own words; or into one text
with them, where a server takes only one."""


class Turn:
    """What the end of the conversation says: everything behind the model's last turn."""

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
