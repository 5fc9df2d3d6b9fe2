"""Reads the turns of a conversation from a client and writes them to an upstream, using the cache.

A dialect knows how to read and write one message, and which other parts of the request that depends on. Turns
that were read or written before, and nearly all of a repeated conversation, are taken from the cache (see
`wire/cache.py`).

The output for a message depends on the message, on the context, on what is known of the calls that it
answers, and, if something is lost, on its place, which losses contain. All of this is part of the cache key,
or compared here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import repeat
from typing import Any, ClassVar, Final, Protocol

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Message, Part, Role, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.cache import Cache, KnownTurns
from wireglot_core.wire.json import encode

_OBJECTS_BYTES: Final = 3
"""A turn written at the end is also held as its writer's own objects: about this many times its text."""


class TurnReader(Protocol):
    """Parses turns in order and appends them to `messages`."""

    messages: list[Message]

    def read_message(self, item: Any, index: int) -> None: ...

    def state(self, item: Any) -> Hashable:
        """Everything except the item that its parsing depends on; None if it must be parsed each time."""

    def mark(self) -> Any:
        """The state that the last parsed message changes for those after it, as needed by `go_on`."""

    def go_on(self, mark: Any) -> None:
        """Continue after a message that was parsed before, with this mark."""

    def snapshot(self) -> Any:
        """All of the reader's state except its messages, for `restore`; None if it cannot be saved."""

    def restore(self, snapshot: Any) -> None: ...


def read_turns(reader: TurnReader, items: Sequence[Any], context: Context, *depends_on: Hashable) -> None:
    """`depends_on`: the dialect, and everything in the request that any of its turns may depend on."""
    memory = context.memory.for_turns(items) if context.memory is not None else None
    if memory is None:
        for index, item in enumerate(items):
            reader.read_message(item, index)
        return
    scope = context.scope(*depends_on)
    messages = reader.messages
    leading = len(messages)
    start = 0
    row = memory.row(items)
    if row is not None and (known := row.reached(("read", scope))) is not None:
        start, (read, snapshot) = known
        messages += read
        reader.restore(snapshot)
    for index in range(start, len(items)):
        if row is not None and index == len(row.values) and (snapshot := reader.snapshot()) is not None:
            row.settle(("read", scope), (tuple(messages[leading:]), snapshot))
        item = items[index]
        state = reader.state(item)
        key = (scope, state)
        known = memory.find(item, key) if state is not None else None
        if known is not None:
            message, mark = known
            messages.append(message)
            reader.go_on(mark)
            continue
        count = len(messages)
        reader.read_message(item, index)
        if state is not None and len(messages) == count + 1 and (mark := reader.mark()) is not None:
            memory.keep(item, key, (messages[-1], mark), shared=messages[-1])


class TurnWriter(ABC):
    """Renders messages in order, for `write_turns` or `join_turns`."""

    losses: list[Loss]
    calls: dict[str, Any]
    """What is known of the calls so far, by id."""

    @abstractmethod
    def write_message(self, message: Message, index: int) -> list[Any]:
        """The items of a message that is a turn by itself, or the pieces from which a turn is joined."""

    def turn_end(self, messages: tuple[Message, ...], start: int) -> int:
        """The index of the first message after the turn that begins with this one."""
        return start + 1

    def write_turn(self, messages: tuple[Message, ...], start: int, end: int) -> list[Any]:
        """The items of several messages that form one turn."""
        raise NotImplementedError

    def state(self, message: Message) -> Hashable:
        """Everything that rendering this message depends on except the message, the context and the calls
        that it answers; None if it must be rendered each time."""
        return 0

    def mark(self) -> Any:
        """The state that the last rendered message changes for those after it, in addition to the calls."""
        return None

    def go_on(self, mark: Any) -> None:
        """Continue after a message that was rendered before, with this mark."""
        assert mark is None, "a writer with marks goes on by itself"


class JoiningWriter(TurnWriter):
    """Renders pieces: those of neighbouring messages of one role form one turn."""

    roles: ClassVar[dict[Role, str]]
    """The role in this dialect for messages of each role."""
    turns: list[JoinedTurn]
    """The turns so far."""

    @abstractmethod
    def begins_turn(self, message: Message) -> bool:
        """Whether the message begins a new turn, although the turn before has the same role."""

    def is_turn(self, message: Message) -> bool:
        """Whether a message is a turn even if it has no rendered content."""
        return False


class WrittenTurn(msgspec.Struct, frozen=True, eq=False):
    """A rendered message. It must not be changed."""

    key: Hashable
    """Its cache key."""
    items: tuple[Any, ...]
    calls: tuple[tuple[str, Any], ...]
    """Ids of its calls, with what is known of each afterwards."""
    answers: tuple[tuple[str, Any], ...]
    """Ids of the calls that it answers or makes, with what was known of each before."""
    losses: tuple[Loss, ...]
    mark: Any
    whole: list[msgspec.Raw] = []
    """The turn made from this message alone, once it was rendered."""


class WrittenTogether(msgspec.Struct, frozen=True, eq=False):
    """Several rendered turns. They must not be changed."""

    start: int
    """Index of the first message."""
    end: int
    """Index after the last message."""
    items: tuple[msgspec.Raw, ...]
    calls: dict[str, Any]
    """All that is known of calls afterwards."""
    losses: tuple[Loss, ...]
    mark: Any


def write_turns(
    writer: TurnWriter, messages: tuple[Message, ...], start: int, context: Context, *depends_on: Hashable
) -> list[Any]:
    """The items of the messages from `start` on, as encoded JSON if they may be repeated. `depends_on`: see
    `read_turns`."""
    out: list[Any] = []
    index, count = start, len(messages)
    cache = _cache(writer, messages, context, depends_on)
    if cache is None:
        while index < count:
            end = writer.turn_end(messages, index)
            alone = end == index + 1
            out += (
                writer.write_message(messages[index], index)
                if alone
                else writer.write_turn(messages, index, end)
            )
            index = end
        return out
    row = cache.memory.row(messages)
    lost = len(writer.losses)
    if row is not None:
        index = cache.take_settled(row, messages, start, out)
    while index < count:
        if row is not None and start < index == len(row.values):
            cache.settle(row, start, out, lost)
        end = writer.turn_end(messages, index)
        if end > index + 1:
            out += writer.write_turn(messages, index, end)
        else:
            state = writer.state(messages[index])
            if state is None:
                row = None  # what follows it may differ the next time, too
                out += writer.write_message(messages[index], index)
            else:
                out += cache.write(messages[index], index, state, is_whole=True)[0]
        index = end
    return out


class JoinedTurn(msgspec.Struct, eq=False):
    """A turn being joined: `pieces` with the indexes of their messages, of which `message` is the first."""

    role: str
    message: Message
    _cache: _WriterCache | None
    _known: WrittenTurn | None
    is_one: bool = True
    """Whether it has only one message."""
    pieces: list[tuple[int, Any]] = []

    def finished(self, make: Callable[[JoinedTurn], Any]) -> Any:
        """The result of `make` for this turn; as encoded JSON if it may be repeated."""
        known, cache = self._known, self._cache
        if cache is None or known is None or not self.is_one:
            return make(self)
        return known.whole[0] if known.whole else cache.finish(known, self, make)


def join_turns(
    writer: JoiningWriter, messages: tuple[Message, ...], start: int, context: Context, *depends_on: Hashable
) -> list[JoinedTurn]:
    """The turns of the messages from `start` on; see `write_turns`."""
    turns = writer.turns = []
    cache = _cache(writer, messages, context, depends_on)
    for index in range(start, len(messages)):
        message = messages[index]
        known: WrittenTurn | None = None
        pieces: Sequence[Any]
        if cache is None or (state := writer.state(message)) is None:
            pieces = writer.write_message(message, index)
        else:
            pieces, known = cache.write(message, index, state, is_whole=False)
        if not pieces and not writer.is_turn(message):
            continue
        role = writer.roles[message.role]
        if turns and turns[-1].role == role and not writer.begins_turn(message):
            turns[-1].is_one = False
        else:
            turns.append(JoinedTurn(role, message, cache, known))
        turns[-1].pieces.extend(zip(repeat(index), pieces))
    writer.turns = []  # they refer to the writer: all of it is freed at once and not by the collector
    return turns


def _cache(
    writer: TurnWriter, messages: tuple[Message, ...], context: Context, depends_on: tuple[Hashable, ...]
) -> _WriterCache | None:
    memory = context.memory.for_turns(messages) if context.memory is not None else None
    return _WriterCache(memory, writer, context.scope("written", *depends_on)) if memory is not None else None


class _WriterCache:
    """The rendered messages known from earlier requests, for one request that is being rendered."""

    __slots__ = ("_scope", "_writer", "memory")

    def __init__(self, memory: Cache, writer: TurnWriter, scope: int) -> None:
        self.memory = memory
        self._writer = writer
        self._scope = scope

    def take_settled(self, row: KnownTurns, messages: tuple[Message, ...], start: int, out: list[Any]) -> int:
        """Write the first turns from `start` on, as far as they are cached; returns the number of the next
        message."""
        known = row.reached(("written", self._scope))
        found: WrittenTogether | None = known[1] if known is not None else None
        writer = self._writer
        if found is None or not found.start == start < found.end:
            return start
        if writer.turn_end(messages, found.end - 1) > found.end:
            return start  # this time the last of them continues
        out += found.items
        writer.calls.update(found.calls)
        writer.losses += found.losses
        writer.go_on(found.mark)
        return found.end

    def settle(self, row: KnownTurns, start: int, out: list[Any], lost: int) -> None:
        """Records that everything that will be repeated is rendered, so that it is taken at once next time.
        It depends on the messages and the context alone. `lost`: the number of losses before."""
        key, end = ("written", self._scope), len(row.values)
        known = row.reached(key)
        if known is None or known[0] != end:
            texts = tuple([item if type(item) is msgspec.Raw else _as_json(item) for item in out])
            writer = self._writer
            losses = tuple(writer.losses[lost:])
            row.settle(
                key, WrittenTogether(start, end, texts, dict(writer.calls), losses, mark=writer.mark())
            )

    def write(
        self, message: Message, index: int, state: Hashable, *, is_whole: bool
    ) -> tuple[Sequence[Any], WrittenTurn | None]:
        """The output for a message, and the turn under which it is cached, if it may be repeated. `is_whole`:
        it is complete; otherwise its own writer continues it, and nothing else may change it."""
        found = self._find(message, index, state)
        if found is not None:
            return found.items, found
        writer = self._writer
        if not self.memory.is_known(message):
            return writer.write_message(message, index), None
        known = writer.calls.get
        # A writer that leaves a call out keeps what another one knows of it.
        answers = [
            (identifier, known(identifier))
            for part in message.content
            if (identifier := _call_id(part)) is not None
        ]
        lost = len(writer.losses)
        items = writer.write_message(message, index)
        if is_whole:
            items = [_as_json(item) for item in items]
        losses = tuple(writer.losses[lost:])
        calls = [
            (part.id, call)
            for part in message.content
            if type(part) is ToolCall and (call := known(part.id)) is not None
        ]
        key = (self._scope, state, index) if losses else (self._scope, state)
        turn = WrittenTurn(key, tuple(items), tuple(calls), tuple(answers), losses, mark=writer.mark())
        self.memory.keep(message, key, turn, sum(map(len, items)) if is_whole else 0)
        return items, turn

    def _find(self, message: Message, index: int, state: Hashable) -> WrittenTurn | None:
        """The rendered message; its calls and losses are reported again."""
        find, writer = self.memory.find, self._writer
        found: WrittenTurn | None = find(message, (self._scope, state))
        if found is None:
            found = find(message, (self._scope, state, index))
            if found is None:
                return None
        calls = writer.calls
        for identifier, call in found.answers:
            if calls.get(identifier) is not call:
                return None
        calls.update(found.calls)
        writer.losses += found.losses
        writer.go_on(found.mark)
        return found

    def finish(self, known: WrittenTurn, turn: JoinedTurn, make: Callable[[JoinedTurn], Any]) -> Any:
        """The turn made from this message alone, as JSON from now on; unless something was lost, which
        depends on its place."""
        lost = len(self._writer.losses)
        value = make(turn)
        if len(self._writer.losses) > lost:
            return value
        raw = _as_json(value)
        known.whole[:] = [raw]
        self.memory.grow(turn.message, known.key, _OBJECTS_BYTES * len(raw))
        return raw


def _call_id(part: Part) -> str | None:
    """The id of the call that a part makes or answers."""
    return part.call_id if type(part) is ToolResult else part.id if type(part) is ToolCall else None


def _as_json(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
