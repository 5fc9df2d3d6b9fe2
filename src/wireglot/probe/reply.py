"""Replies, parsed strictly: the answer in neutral terms, and each violated rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from wireglot.probe.question import ProbeCall
from wireglot_core.wire.json import BadJson, decode

Verdict = Literal["pass", "fail", "warn", "not applicable", "inconclusive", "not run"]
"""warn: a rule that clients can do without is violated. inconclusive: the model did not do what the case
needs, or there was no answer, twice. not run: the budget was exhausted."""

VERDICTS: Final[tuple[Verdict, ...]] = ("pass", "fail", "warn", "not applicable", "inconclusive", "not run")


class Broken(Exception):
    """A rule is violated; the text says which one, and where."""


class NotApplicable(Exception):
    """The endpoint reports properly that it does not support what the case is about."""


class Inconclusive(Exception):
    """No conclusion is possible: usually the model chose otherwise."""


Stop = Literal["end", "length", "sequence", "tool", "other", ""]

Rule = Literal[
    "nulls",
    "repeated",
    "frames",
    "opening",
    "order",
    "indexes",
    "identity",
    "ending",
    "calls",
    "thoughts",
    "usage",
]
"""nulls: nullable fields are present, in a stream too. repeated: an answer repeats the request's settings.
The others are about streams. frames: each is framed and named as the dialect requires. opening: how it
begins. order: which event may follow which. indexes: counted from 0 without gaps. identity: ids stay the
same. ending: how it ends. calls, thoughts: their pieces. usage: where it is reported."""


_CONTENT: Final[tuple[Rule, ...]] = ("order", "ending", "calls", "thoughts")


class ProbeUsage(msgspec.Struct, frozen=True):
    """Tokens, as reported. `input` and `output` include everything; None: not reported."""

    input: int
    output: int
    cached: int | None = None
    reasoning: int | None = None
    total: int | None = None


class Thought(msgspec.Struct, frozen=True):
    text: str
    state: str = ""
    """A signature, or encrypted content."""


class ProbeReply(msgspec.Struct, kw_only=True):
    texts: list[str] = []
    """Its pieces: joined at their end, since a hostile endpoint sends very many."""
    calls: list[ProbeCall] = []
    thoughts: list[Thought] = []
    stop: Stop = ""
    stop_word: str = ""
    """In the dialect's own word."""
    sequence: str | None = None
    usage: ProbeUsage | None = None
    id: str = ""
    model: str = ""
    items: list[dict[str, Any]] = []
    """Sent back as the model's turn."""
    pieces: int = 0
    """Pieces of text, in a stream."""
    has_indexes: bool = True
    """Whether a stream has indexes to check."""
    faults: list[tuple[Rule, str]] = []
    states: list[str] = []
    """What must be sent back with the answer: all signatures."""

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def state(self) -> str:
        return "".join(self.states)

    def add_call(self, identifier: str, name: str, arguments: str) -> None:
        self.calls.append(ProbeCall(identifier, name, arguments))

    def add_thought(self, text: str, state: str = "") -> None:
        self.thoughts.append(Thought(text, state))
        self.states.append(state)

    def require(self, *rules: Rule) -> None:
        """Raises Broken for the first violation of one of these rules; if none is named, of the rules about
        the content. The others have separate cases: one fault shall not fail twenty."""
        for rule, text in self.faults:
            if rule in (rules or _CONTENT):
                raise Broken(text)

    def require_all(self) -> None:
        """Raises Broken for the first violation except a missing field, which has a separate case."""
        for rule, text in self.faults:
            if rule not in ("nulls", "repeated"):
                raise Broken(text)


class At:
    """A value of a document with its place, which every error names."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "$") -> None:
        self.value = value
        self.path = path

    def broken(self, expected: str) -> Broken:
        shown = msgspec.json.encode(self.value).decode()
        return Broken(f"{self.path}: expected {expected}, found {shown[:120]}")

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.broken("an object")
        return self.value

    def has(self, name: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def get(self, name: str) -> At:
        """A required field, which may be null."""
        if name not in self.object():
            raise Broken(f"{self.path}: the field {name} is missing")
        return At(self.value[name], f"{self.path}.{name}")

    def nullable(self, name: str, reply: ProbeReply) -> At:
        """A field that should be present, even if null. If it is missing, the SDKs treat it as null."""
        if name not in self.object():
            reply.faults.append(("nulls", f"{self.path}: the field {name} is missing (null is allowed)"))
        return At(self.value.get(name), f"{self.path}.{name}")

    def nullables(self, names: Iterable[str], reply: ProbeReply) -> None:
        for name in names:
            self.nullable(name, reply)

    def each(self) -> list[At]:
        if not isinstance(self.value, list):
            raise self.broken("a list")
        return [At(value, f"{self.path}[{number}]") for number, value in enumerate(self.value)]

    def text(self, name: str = "", *, filled: bool = False) -> str:
        at = self.get(name) if name else self
        if not isinstance(at.value, str) or (filled and not at.value):
            raise at.broken("a text" + (" that is not empty" if filled else ""))
        return at.value

    def number(self, name: str = "") -> int:
        at = self.get(name) if name else self
        if type(at.value) is not int or at.value < 0:
            raise at.broken("an integer")
        return at.value

    def boolean(self, name: str) -> bool:
        at = self.get(name)
        if type(at.value) is not bool:
            raise at.broken("true or false")
        return at.value

    def maybe_number(self, name: str) -> int | None:
        return self.number(name) if self.has(name) else None

    def is_(self, name: str, *words: str | None) -> Any:
        at = self.get(name)
        if at.value not in words:
            raise at.broken(" or ".join("null" if word is None else repr(word) for word in words))
        return at.value


class ProbeFrame(msgspec.Struct, frozen=True):
    """`lines`: those that are neither an event's name nor data: comments, ids, retry times."""

    event: str
    data: str
    lines: tuple[str, ...] = ()
    spaced: bool = True
    """Whether there is a space after each `data:`, without which one vendor's SDK reads nothing."""

    def document(self) -> Any:
        """None if it is not JSON."""
        try:
            return decode(self.data.encode())
        except BadJson:
            return None


def frames_of(body: bytes) -> list[ProbeFrame]:
    """Data after the last blank line is a frame too."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return [_frame(block) for block in text.split("\n\n") if block.strip("\n")]


def _frame(block: str) -> ProbeFrame:
    event, data, others, spaced = "", [], [], True
    for line in block.strip("\n").split("\n"):
        name, colon, value = line.partition(":")
        if name == "data" and colon:
            spaced = spaced and value.startswith(" ")
            data.append(value.removeprefix(" "))
        elif name == "event" and colon:
            event = value.strip()
        else:
            others.append(line)
    return ProbeFrame(event, "\n".join(data), tuple(others), spaced)
