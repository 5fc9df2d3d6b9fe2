"""Interface of the cache of decoded bodies, for its users: body reader, codecs, `fit`, reasoning vault.

An agent sends its tools and its whole conversation with every turn. Values decoded from cached texts are the
same objects as before, and results derived from them are found with them. Values from the cache must not be
changed. Without a cache (None) everything is computed each time; only the time may differ.

`wireglot_core.cache` implements it. The gateway's `composition.py` is its only importer: to remove the cache,
delete the package and import `NoCaches` in that one line.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Protocol, TypeVar

from wireglot_core.wire.scan import Span

_S = TypeVar("_S")
_T = TypeVar("_T")


class KnownBody(Protocol):
    """A body that continues one from the cache."""

    @property
    def spans(self) -> dict[str, Span]:
        """The span of each top-level member."""
        ...

    @property
    def work(self) -> int:
        """The remaining work, expressed in bytes of an uncached body."""
        ...


class BodyOutline(Protocol):
    """A body before it is decoded: `splice.Outline`."""

    body: bytes
    members: dict[str, Span]
    repeated: list[str]
    grown: KnownBody | None


class KnownTurns(Protocol):
    """The first turns of a conversation, which are known from before."""

    @property
    def values(self) -> tuple[Any, ...]: ...

    def reached(self, key: Hashable) -> tuple[int, Any] | None:
        """What was found out under this key, and after how many of the turns."""
        ...

    def settle(self, key: Hashable, found: Any, count: int | None = None) -> None:
        """Store a result that covers all of them, or the first `count`."""
        ...


class Cache(Protocol):
    """The cache of one caller."""

    def compare(self, body: bytes, turns: str, max_fresh: int | None = None) -> KnownBody | None:
        """The cached part of a body. `turns`: the member that holds the conversation. None if nothing is
        cached, or if more than `max_fresh` bytes are new."""
        ...

    def document(self, outline: BodyOutline, depth: int, turns: str) -> dict[str, Any]:
        """The body, decoded: each item of `turns` and every other member from the cache where it is known."""
        ...

    def for_turns(self, turns: Sequence[Any]) -> Cache | None:
        """This cache if some of these turns are known; otherwise nothing can be found or kept for any of
        them."""
        ...

    def row(self, turns: Sequence[Any]) -> KnownTurns | None: ...

    def is_known(self, value: object) -> bool: ...

    def find(self, value: object, key: Hashable) -> Any:
        """What was derived from the value under this key; None if there is nothing."""
        ...

    def keep(self, value: object, key: Hashable, made: Any, size: int = 0, *, shared: object = None) -> None:
        """Cache what was derived from `value`, if that is known. It must depend on value and key alone.
        `shared` becomes known with it. `size`: its bytes, in addition to those of the value."""
        ...

    def grow(self, value: object, key: Hashable, size: int) -> None:
        """Count bytes added to what was derived from the value."""
        ...

    def remembered(self, value: object, key: Hashable, make: Callable[[], _T]) -> _T:
        """The result of `make`, computed once if `value` is known. It must depend on value and key alone."""
        ...

    def share(self, value: _T, beside: object) -> _T:
        """Make `value` known for as long as `beside`, the value it was derived from, is known. Returns
        `value`."""
        ...

    def scope(self, *names: Hashable) -> int:
        """A short number for a tuple of keys: equal tuples get the same number."""
        ...


def fold(
    row: KnownTurns | None,
    values: tuple[Any, ...],
    key: Hashable,
    start: _S,
    step: Callable[[_S, tuple[Any, ...]], _S],
    settled: int | None = None,
) -> _S:
    """Folds all values from `start` on: `step` takes the result so far, which it must not change, and the
    next values. `row`: the known turns, which are folded once. `key`: everything that `step` depends on in
    addition to the values. `settled`: how many of the row can be folded separately, if not all."""
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
    """The caches of all callers."""

    @property
    def least_bytes(self) -> int:
        """Minimum size of bodies that are looked up."""
        ...

    def for_next_turn(self, caller: str, body: bytes) -> Cache | None:
        """The caller's cache, if the body probably continues a conversation in it."""
        ...

    def finder(self, caller: str) -> Callable[[bytes], Cache | None]:
        """A function that returns the caller's cache for any other repeated body."""
        ...

    def clear(self) -> None:
        """Called when settings change: others may parse the same bytes differently."""
        ...


class NoCaches:
    """Implements `Caches` without a cache; accepts any arguments."""

    least_bytes: Final = 0  # large bodies are read in a worker thread all the same

    def __init__(self, *unused: object) -> None: ...

    def for_next_turn(self, caller: str, body: bytes) -> Cache | None:
        return None

    def finder(self, caller: str) -> Callable[[bytes], Cache | None]:
        return lambda body: None

    def clear(self) -> None: ...
