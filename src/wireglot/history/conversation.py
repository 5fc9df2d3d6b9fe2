"""A conversation of an agent: it grows turn by turn, and its requests can go to any provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Unpack

import msgspec

from wireglot.history.ask import Asked, Settings, Target, ask
from wireglot.history.assistant import Assistant
from wireglot.history.calls import Call, call_of
from wireglot.history.pairs import cut_place, leading_system, open_calls, pending_calls
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import (
    Extra,
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import AnyTool
from wireglot_core.providers.limits import Limits
from wireglot_core.wire.json import BadJson, decode, encode

_VERSION: Final = 1
"""Of the saved document, not of the program."""


class BadHistory(WireglotError):
    """The document is no saved history, or one that this version cannot read."""

    code = "BAD_HISTORY"


class _Saved(msgspec.Struct, frozen=True):
    """`turns` counts all turns ever added, including removed ones: made-up ids must not repeat."""

    wireglot_history: int
    turns: int
    messages: tuple[Message, ...]


# Created here: msgspec 0.22 lets one thread use a type that another has only begun to build.
msgspec.json.Decoder(_Saved)
msgspec.json.Decoder(Extra)


class NoSuchCall(ValueError):
    """A result for a call that the history does not know, or that has one."""


class History:
    """Turns in their order. The messages are frozen values, so a copy costs nothing and shares nothing that
    could change."""

    __slots__ = ("_messages", "_turns")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: tuple[Message, ...] = tuple(map(_own, messages))
        self._turns = len(self._messages)

    @classmethod
    def of(cls, name: str, body: dict[str, Any], *, context: Context | None = None) -> History:
        """The conversation inside a request of a dialect."""
        return cls(dialect(name).parse_request(body, context or Context()).messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._messages

    @property
    def pending(self) -> tuple[Call, ...]:
        """The calls of the model's last turn that have no result yet."""
        return tuple(map(call_of, pending_calls(self._messages)))

    # Adding turns

    def system(self, text: str) -> None:
        """Instructions, in this place of the conversation."""
        if not text.strip():
            raise ValueError("a system text must say something")
        self.append(Message("system", (Text(text),)))

    def user(self, text: str = "", *media: Media) -> None:
        """A turn of the user: text, then images or files."""
        _check(text, media)
        if not text.strip() and not media:
            raise ValueError("a user turn needs text or media")
        words: tuple[Part, ...] = (Text(text),) if text.strip() else ()
        self.append(Message("user", words + media))

    def assistant(self, answer: Assistant | Response | Message | str) -> None:
        """The model's answer, complete. An empty answer adds no turn."""
        message = _turn_of(answer)
        if message.role != "assistant":
            raise ValueError(f"a turn of the {message.role} is none of the assistant's")
        if message.content:
            self.append(message)

    def result(
        self,
        call: str | Call | ToolCall,
        text: str = "",
        *,
        error: bool = False,
        media: Iterable[Media] = (),
    ) -> None:
        """The result of a call (or its id): text, images or files, or why it failed.

        Of several open calls with one id, the first of the latest turn is answered. Results of one turn are
        kept together.
        """
        media = tuple(media)
        _check(text, media)
        if type(error) is not bool:
            raise TypeError(f"error: expected True or False, got {type(error).__name__}")
        identifier = call if isinstance(call, str) else call.id
        found = self._find(identifier)
        words = (Text(text),) if text else ()
        result = ToolResult(identifier, (*words, *media), error, found.name, found.kind)
        last = self._messages[-1]
        if last.role == "user" and all(type(part) is ToolResult for part in last.content):
            joined = Message("user", (*last.content, _own_part(result)), last.name, last.extra)
            self._messages = (*self._messages[:-1], joined)
        else:
            self.append(Message("user", (result,)))

    def append(self, message: Message) -> None:
        """Any message, unchanged."""
        self._messages = (*self._messages, _own(message))
        self._turns += 1

    def _find(self, identifier: str) -> ToolCall:
        calls = [call for call in pending_calls(self._messages) if call.id == identifier]
        # A late result of an earlier turn is accepted too; rendering moves it to its call.
        calls += [call for call in reversed(open_calls(self._messages)) if call.id == identifier]
        if not calls:
            raise NoSuchCall(f"no call {identifier!r} waits for a result")
        return calls[0]

    # Requests

    def request(
        self,
        dialect: str,
        *,
        model: str,
        provider: str | None = None,
        tools: Iterable[AnyTool | Mapping[str, Any]] = (),
        limits: Limits | None = None,
        context: Context | None = None,
        strict: bool = False,
        **settings: Unpack[Settings],
    ) -> Asked:
        """The next request, for any dialect; the provider may be another one every time.

        `tools` are neutral ones or declarations of any dialect. What the target cannot express is in
        `losses`; with `strict` it raises StrictLoss. Calls and results that do not pair are repaired, and
        each repair is such a loss.
        """
        target = Target(dialect, model, provider, limits, context or Context())
        return ask(self._messages, target, tools, settings, seed=str(self._turns), strict=strict)

    # Storage

    def copy(self) -> History:
        twin = History()
        twin._messages, twin._turns = self._messages, self._turns
        return twin

    __copy__ = copy

    def cut(self, keep: int | Callable[[tuple[Message, ...]], bool]) -> tuple[Message, ...]:
        """Remove (and return) the oldest turns until `keep` messages are left or `keep(messages)` is true.

        System text at the start stays and is not counted. No call is separated from its result: the cut is
        before a question of the user, or, if the last question is too far back, between two steps of its
        answer. If even that leaves too much, the last step stays.
        """
        head = leading_system(self._messages)
        if isinstance(keep, int):
            most = keep
            place = cut_place(self._messages, lambda messages: len(messages) - head <= most)
        else:
            place = cut_place(self._messages, keep)
        removed = self._messages[head:place]
        self._messages = self._messages[:head] + self._messages[place:]
        return removed

    def save(self) -> bytes:
        """JSON. `load` returns an equal history."""
        return encode(_Saved(_VERSION, self._turns, self._messages))

    @classmethod
    def load(cls, data: bytes | str) -> History:
        document = _loaded(data)
        history = cls()
        history._messages, history._turns = document.messages, document.turns
        return history

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self._messages == other._messages and self._turns == other._turns

    def __repr__(self) -> str:
        return f"History({len(self._messages)} messages, {len(self.pending)} calls pending)"


def _turn_of(answer: Assistant | Response | Message | str) -> Message:
    match answer:
        case Assistant():
            return answer.message()
        case Response():
            return Assistant.from_response(answer).message()
        case str():
            return Message("assistant", (Text(answer),) if answer.strip() else ())
        case Message():
            return answer


def _check(text: object, media: tuple[object, ...]) -> None:
    """Checked at once, and not when the conversation is sent or saved: a tool that returns a dict is an easy
    mistake."""
    if type(text) is not str:
        raise TypeError(f"text: expected a string, got {type(text).__name__}: encode it first")
    for each in media:
        if type(each) is not Media:
            raise TypeError(f"media: expected Media, got {type(each).__name__}")


def _own(message: Message) -> Message:
    """The message with copied containers: the caller may go on changing its own."""
    content = tuple(map(_own_part, message.content))
    extra = _own_extra(message.extra)
    if extra is message.extra and all(
        mine is given for mine, given in zip(content, message.content, strict=True)
    ):
        return message
    return Message(message.role, content, message.name, extra)


def _own_part(part: Part) -> Part:
    if _is_plain(part):
        return part
    # Converting there and back builds every container again; texts and base64 are shared, since they cannot
    # change.
    return msgspec.convert(msgspec.to_builtins(part), type(part))


def _is_plain(part: Part) -> bool:
    """Whether nothing in it can change, which is true of nearly all parts."""
    match part:
        case Foreign():
            return False
        case ToolResult():
            return part.cache is None and part.extra is None and all(map(_is_plain, part.content))
        case Text():
            return not part.citations and part.cache is None and part.extra is None
        case Reasoning():
            return part.extra is None
        case ToolCall() | Media():
            return part.cache is None and part.extra is None


def _own_extra(extra: Extra | None) -> Extra | None:
    return None if extra is None else msgspec.convert(msgspec.to_builtins(extra), Extra)


def _loaded(data: bytes | str) -> _Saved:
    try:
        document: Any = decode(data)
    except BadJson as problem:
        raise BadHistory(f"not JSON: {problem}") from None
    version = document.get("wireglot_history") if isinstance(document, dict) else None
    if type(version) is not int:
        raise BadHistory("expected a saved history", "$.wireglot_history")
    if version != _VERSION:
        raise BadHistory(f"version {version}: this release reads version {_VERSION}", "$.wireglot_history")
    try:
        return msgspec.convert(document, _Saved)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at ")
        raise BadHistory(reason, path.strip("`") or "$") from None
