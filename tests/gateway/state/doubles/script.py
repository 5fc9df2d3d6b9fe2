"""What the doubles say: a conversation with tools, different in every run and the same on every reading."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

TOOLS = ("look_up", "measure")
TOOL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "step": {"type": "integer"},
        "note": {"type": "string"},
        "where": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    "required": ["key", "step"],
}
_TOKEN = re.compile(r"conversation ([0-9a-z-]+)")
ROUND = 4
"""Three steps with calls, then an answer: the user speaks again."""


class Call(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any]

    @property
    def key(self) -> str:
        return str(self.arguments["key"])


class Step(msgspec.Struct, frozen=True):
    """One answer of the model. `number` counts the answers of the conversation from 0."""

    conversation: str
    number: int
    thinking: str
    text: str
    calls: tuple[Call, ...] = ()

    @property
    def key(self) -> str:
        """What tells this step from all others, no matter who quotes it."""
        return self.calls[0].key if self.calls else self.text


class Script(msgspec.Struct, frozen=True):
    nonce: str

    def step(self, conversation: str, number: int) -> Step:
        mark = self._mark(conversation, str(number))
        thinking = f"Thinking about step {number} ({mark}).\nWhat was asked: “{conversation}”."
        place = number % ROUND
        if place == ROUND - 1:
            return Step(conversation, number, thinking, f"That is all of it: {mark}, so far {number}.")
        text = f"Let me see, {mark}." if place == 2 else ""
        count = 2 if place == 1 else 1
        return Step(
            conversation,
            number,
            thinking,
            text,
            tuple(self._call(conversation, number, index) for index in range(count)),
        )

    def _call(self, conversation: str, number: int, index: int) -> Call:
        key = self._mark(conversation, str(number), str(index))
        arguments: dict[str, Any] = {"key": key, "step": number}
        if number % 2:
            arguments["note"] = 'Straße "3"\n\t<b> \\ '
            arguments["where"] = {"city": "Zürich"}
        return Call(TOOLS[(number + index) % 2], arguments)

    def _mark(self, *material: str) -> str:
        return hashlib.sha256("\x1f".join((self.nonce, *material)).encode()).hexdigest()[:12]


def asked(conversation: str, number: int) -> str:
    """What the user says. The first words name the conversation, as a real first question would."""
    return f"This is conversation {conversation}. Go on, question {number}."


def conversation_of(text: str) -> str:
    found = _TOKEN.search(text)
    return found.group(1) if found else ""


def result_of(arguments: dict[str, Any]) -> str:
    """What the tool said: only the right result holds the key of its call."""
    return f"found {arguments['key']}, step {arguments['step']}"
