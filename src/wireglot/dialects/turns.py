"""The turns of a conversation, read from a client and written to an upstream: where codecs meet the cache.

A dialect knows how to read and write one message, and what else of the request that depends on. Turns that
were read or written before, and nearly all of a conversation that came before, are taken from the cache (see
`wire/memory.py`).

What is written of a message follows from the message, from the context, from what is known of the calls that
it answers, and, where something is lost, from its place: losses tell that. All of it is in the name under
which it is found, or compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from wireglot.dialects.context import Context
from wireglot.ir.content import Message, ToolCall, ToolResult
from wireglot.ir.loss import Loss
from wireglot.wire.json import encode
from wireglot.wire.known_row import KnownRow, row_of

_OBJECTS_BYTES: Final = 3
"""A turn that is written at the end is held as its writer's own objects too: about so many times its text."""


class TurnReader(Protocol):
    """Reads turns in their order and appends them to `messages`."""

    messages: list[Message]

    def read_message(self, item: Any, index: int) -> None: ...

    def state(self, item: Any) -> Hashable:
        """All that the reading of this item depends on beside it; None if it is to be read each time."""

    def mark(self) -> Any:
        """What the last message that was read changes for those after it, and what `go_on` needs for that."""

    def go_on(self, mark: Any) -> None:
        """The last message has been read, and came to this."""

    def snapshot(self) -> Any:
        """All of the reader but its messages, for `restore`; None if it cannot be told."""

    def restore(self, snapshot: Any) -> None: ...


def read_turns(reader: TurnReader, items: Sequence[Any], context: Context, *told: Hashable) -> None:
    """`told`: the dialect, and all of the request that any of its turns may depend on."""
    memory = context.memory.for_turns(items) if context.memory is not None else None
    if memory is None:
        for index, item in enumerate(items):
            reader.read_message(item, index)
        return
    scope = context.scope(*told)
    messages = reader.messages
    leading = len(messages)
    start = 0
    row = row_of(memory, items)
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


class WrittenTurn(msgspec.Struct, frozen=True, eq=False):
    """Nobody may change anything of it."""

    key: Hashable
    """Under which it is kept."""
    items: tuple[Any, ...]
    calls: tuple[tuple[str, Any], ...]
    """Ids of its calls, with what is known of each from here on."""
    answers: tuple[tuple[str, Any], ...]
    """Ids of the calls that it answers or makes, with what was known of each before."""
    losses: tuple[Loss, ...]
    told: bool = False
    """Whatever else there is to say about it."""
    whole: list[msgspec.Raw] = []
    """The turn that was made of it alone, once it was written."""


class WrittenTogether(msgspec.Struct, frozen=True, eq=False):
    """Several turns. Nobody may change anything of it."""

    start: int
    """Of the first message."""
    behind: int
    """The last one."""
    items: tuple[Any, ...]
    calls: dict[str, Any]
    """All that is known of calls from here on."""
    losses: tuple[Loss, ...]


class WrittenTurns:
    """Of one request that is being written. `calls`: what is known of those so far, by their ids; `losses`:
    where the writer tells what it could not say."""

    __slots__ = ("_before", "_calls", "_losses", "_memory", "_row", "_scope")

    def __init__(
        self,
        messages: tuple[Message, ...],
        context: Context,
        calls: dict[str, Any],
        losses: list[Loss],
        *told: Any,
    ) -> None:
        self._memory = context.memory.for_turns(messages) if context.memory is not None else None
        self._calls = calls
        self._losses = losses
        self._scope = context.scope("written", *told) if self._memory is not None else 0
        self._row: KnownRow | None = None
        self._before = (0, 0, 0)
        """How many messages, items and losses there were before the turns that are settled."""

    def together(self, messages: tuple[Message, ...], start: int, items: int) -> WrittenTogether | None:
        """What was written of the first turns from `start` on, as far as they came before; so many items were
        written of the messages before them."""
        if self._memory is None:
            return None
        row = self._row = row_of(self._memory, messages)
        self._before = (start, items, len(self._losses))
        known = row.reached(("written", self._scope)) if row is not None else None
        found: WrittenTogether | None = known[1] if known is not None else None
        return found if found is not None and found.start == start < found.behind else None

    def take(self, found: WrittenTogether, out: list[Any]) -> int:
        """The number of messages that are written with these."""
        out += found.items
        self._calls.update(found.calls)
        self._losses += found.losses
        return found.behind

    def settle(self, behind: int, out: list[Any]) -> None:
        """So many messages are written. If these are all that will come again, they are taken at once then.
        They follow from the messages and the context alone."""
        row = self._row
        if row is None or behind != len(row.values):
            return
        key = ("written", self._scope)
        known = row.reached(key)
        if known is None or known[0] != behind:
            start, items, losses = self._before
            texts = tuple([item if type(item) is msgspec.Raw else written(item) for item in out[items:]])
            lost = tuple(self._losses[losses:])
            row.settle(key, WrittenTogether(start, behind, texts, dict(self._calls), losses=lost))

    def write(
        self,
        message: Message,
        index: int,
        make: Callable[[Message, int], list[Any]],
        *,
        as_json: bool = True,
        told: Callable[[], bool] | None = None,
    ) -> tuple[list[Any] | tuple[Any, ...], WrittenTurn | None]:
        """What `make` writes of a message, and the turn under which it is known, if it may come again.
        `as_json`: it is written to its end; otherwise its own writer goes on with it, and nobody may change
        anything of it. `told`: whatever else there is to say, once it is made."""
        memory = self._memory
        if memory is None:
            return make(message, index), None
        found = self._find(message, index)
        if found is not None:
            return found.items, found
        if not memory.is_known(message):
            return make(message, index), None
        began = self._begin(message)
        items = make(message, index)
        if as_json:
            items = [written(item) for item in items]
        return items, self._keep(message, index, began, items, told=told is not None and told())

    def _find(self, message: Message, index: int) -> WrittenTurn | None:
        """What was written of it; its calls and losses are told as they were."""
        memory = self._memory
        assert memory is not None
        found: WrittenTurn | None = memory.find(message, self._scope)
        if found is None:
            found = memory.find(message, (self._scope, index))
            if found is None:
                return None
        calls = self._calls
        for identifier, call in found.answers:
            if calls.get(identifier) is not call:
                return None
        calls.update(found.calls)
        self._losses += found.losses
        return found

    def _begin(self, message: Message) -> Beginning:
        """Before a message is written that may come again."""
        known = self._calls.get
        answers: list[tuple[str, Any]] = []
        for part in message.content:
            if type(part) is ToolResult:
                answers.append((part.call_id, known(part.call_id)))
            elif type(part) is ToolCall:  # a writer that leaves it out leaves what another one said of it
                answers.append((part.id, known(part.id)))
        return Beginning(tuple(answers), len(self._losses))

    def _keep(
        self, message: Message, index: int, began: Beginning, items: Iterable[Any], *, told: bool = False
    ) -> WrittenTurn:
        """`items`: what was written, as JSON or for its own writer alone."""
        assert self._memory is not None
        losses = tuple(self._losses[began.losses :])
        calls = tuple(
            [
                (part.id, call)
                for part in message.content
                if type(part) is ToolCall and (call := self._calls.get(part.id)) is not None
            ]
        )
        key = (self._scope, index) if losses else self._scope
        turn = WrittenTurn(key, tuple(items), calls, began.answers, losses=losses, told=told)
        size = sum([len(item) for item in turn.items if type(item) is msgspec.Raw])
        self._memory.keep(message, key, turn, size)
        return turn

    def finish(self, turn: WrittenTurn, message: Message, value: Any) -> msgspec.Raw:
        """`value`, made of this turn alone, as JSON from now on."""
        assert self._memory is not None
        raw = written(value)
        turn.whole[:] = [raw]
        self._memory.grow(message, turn.key, _OBJECTS_BYTES * len(raw))
        return raw


class Beginning(msgspec.Struct, frozen=True):
    answers: tuple[tuple[str, Any], ...]
    losses: int


def count_opening(messages: tuple[Message, ...]) -> int:
    """How many system texts stand before the first turn."""
    for count, message in enumerate(messages):
        if message.role != "system":
            return count
    return len(messages)


def written(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
