"""The contract of the cache of decoded bodies, for its users: body reader, codecs, `fit`, reasoning vault.

An agent sends its tools and its whole conversation with every turn. Values that were decoded from cached
texts are the same objects again, and what was made of one is found with it. Values from the cache must not be
changed. Without a cache (None) everything is made each time; only the time may differ.

`wireglot.cache` implements it. `gateway/composition.py` is its only importer: to remove the cache, delete the
package and import `NoCaches` in that one line.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Protocol, TypeVar

from wireglot.wire.scan import Span

_S = TypeVar("_S")
_T = TypeVar("_T")


class KnownBody(Protocol):
    """A body that continues one from the cache."""

    @property
    def spans(self) -> dict[str, Span]:
        """Where each top-level member is."""
        ...

    @property
    def work(self) -> int:
        """How much work is left, in bytes of a body that is not cached."""
        ...


class BodyOutline(Protocol):
    """A body before it is decoded: `splice.Outline`."""

    body: bytes
    members: dict[str, Span]
    repeated: list[str]
    grown: KnownBody | None


class KnownTurns(Protocol):
    """The first turns of a conversation, which came before."""

    @property
    def values(self) -> tuple[Any, ...]: ...

    def reached(self, key: Hashable) -> tuple[int, Any] | None:
        """What was found out about them under this key, and after how many of them."""
        ...

    def settle(self, key: Hashable, found: Any, count: int | None = None) -> None:
        """What is known after all of them, or after `count`."""
        ...


class Cache(Protocol):
    """One caller's."""

    def compare(self, body: bytes, turns: str, max_fresh: int | None = None) -> KnownBody | None:
        """The cached part of a body. `turns`: the member that holds the conversation. None if nothing is
        cached, or if more than `max_fresh` bytes are new."""
        ...

    def document(self, outline: BodyOutline, depth: int, turns: str) -> dict[str, Any]:
        """The body, decoded: each item of `turns` and every other member from the cache where it is known."""
        ...

    def for_turns(self, turns: Sequence[Any]) -> Cache | None:
        """This one where some of these turns are known; nothing can be found or kept for others."""
        ...

    def row(self, turns: Sequence[Any]) -> KnownTurns | None: ...

    def is_known(self, value: object) -> bool: ...

    def find(self, value: object, key: Hashable) -> Any:
        """What was made of it under this key, None where nothing was."""
        ...

    def keep(self, value: object, key: Hashable, made: Any, size: int = 0, *, shared: object = None) -> None:
        """Cache what was made of `value`, if that is known. It must follow from value and key alone. `shared`
        becomes known with it. `size`: bytes that it takes in addition to the value's own."""
        ...

    def grow(self, value: object, key: Hashable, size: int) -> None:
        """Count what was added to what was made of it."""
        ...

    def remembered(self, value: object, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` gives, made once where `value` is known. It must follow from value and key alone."""
        ...

    def share(self, value: _T, beside: object) -> _T:
        """The value, known as long as the one it was made of is, if that is."""
        ...

    def scope(self, *names: Hashable) -> int:
        """A short name for all that is equal in many keys."""
        ...


def fold(
    row: KnownTurns | None,
    values: tuple[Any, ...],
    key: Hashable,
    start: _S,
    step: Callable[[_S, tuple[Any, ...]], _S],
    settled: int | None = None,
) -> _S:
    """What all values come to, from `start` on: `step` takes what those before came to, which it must not
    change, and the next ones. `row`: those that came before, which are gone through once. `key`: all that
    `step` depends on in addition to the values. `settled`: how many of the row can be cut off, where not all
    can."""
    if row is None:
        return step(start, values)
    if settled is None:
        settled = len(row.values)
    count, found = row.reached(key) or (0, start)
    if count < settled:
        found = step(found, values[count:settled])
        row.settle(key, found, settled)
    return step(found, values[max(count, settled) :])


class Caches(Protocol):
    """Those of all callers."""

    @property
    def least_bytes(self) -> int:
        """Minimum size of bodies that are looked up."""
        ...

    def for_next_turn(self, caller: str, body: bytes) -> Cache | None:
        """The caller's, for a body that seems to continue a conversation from it."""
        ...

    def finder(self, caller: str) -> Callable[[bytes], Cache | None]:
        """Finds the caller's for any other body that comes again."""
        ...

    def clear(self) -> None:
        """Other settings may read the same bytes in another way."""
        ...


class NoCaches:
    """Implements `Caches` without a cache, and takes whatever one is made with."""

    least_bytes: Final = 0  # large bodies are read in a worker thread all the same

    def __init__(self, *unused: object) -> None: ...

    def for_next_turn(self, caller: str, body: bytes) -> Cache | None:
        return None

    def finder(self, caller: str) -> Callable[[bytes], Cache | None]:
        return lambda body: None

    def clear(self) -> None: ...
