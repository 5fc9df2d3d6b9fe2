"""Caches JSON texts that are received repeatedly, byte for byte, and what was derived from them.

An agent sends its tools and its whole conversation with every turn. A `Texts` decodes a known text to the
same value as before, and `remembered` keeps what was derived from a value: how it was parsed, fitted and
written. A value from here must not be changed, nor anything inside it. A value from elsewhere is never
mistaken for one from here.

The owner of a memory decides which caller it belongs to: this module has no global memory.

Several threads may use it at once. A lookup is a single step that the interpreter does not interrupt; every
change of the memory is made under its lock. Between two steps another thread may have evicted anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, Final, Self, TypeVar

import msgspec

from wireglot_core.cache.body_frame import BodyFrame, KnownRun
from wireglot_core.wire.json import MAX_DEPTH, decode

_VALUE_BYTES: Final = 3
"""A text is held as received, decoded, and (mostly the same objects) parsed: about this many times its
bytes."""
_ENTRY_BYTES: Final = 2304
"""Added for each text, however short it is: its value, its places in the memory and in what is parsed from
it. Measured with conversations of tiny turns (tests/core/laws/test_growing.py)."""
_KEPT_BYTES: Final = 384
"""Added for each derived value, in addition to the size its maker reports."""
_MAX_MADE: Final = 32
"""Derived values that are cached for one text: one for each kind of endpoint it is sent to."""
# Scopes (a client key, a dialect) whose texts are cached at the same time.
_MAX_SCOPES: Final = 1024
# Frames of bodies (all that is not a turn) that are cached for one scope.
_MAX_FRAMES: Final = 64
_FRAME_BYTES: Final = 4096
"""Added for each frame, in addition to its own texts."""
_FRAME_SHARE: Final = 8
"""A frame larger than this fraction (1/8) of the memory is not kept."""
_MAX_RUNS: Final = 128
"""Conversations of one scope whose beginning is cached: testing one takes a tenth of a microsecond."""
_RUN_BYTES: Final = 1024
"""Added for each run, in addition to its body."""
_RUN_SHARE: Final = 8
"""All runs together take at most this fraction (1/8) of the memory."""
_MAX_BEHIND: Final = 256
"""Cached conversations that begin alike and continue differently: testing one takes a hundredth of the time
of parsing a turn."""

_CREDIT: Final = 256 * 1024
# Bytes that a scope may look up in advance of what it has sent.
_MAX_CREDIT: Final = 1024 * 1024
_LEARNING_COST: Final = 2
"""Learning a byte takes as long as parsing two more; finding one saves parsing it."""
_SENT_SHARE: Final = 32
"""Fraction of the bytes a caller sends that is added to its credit, so that learning is tried again for a
caller it was disabled for: 1/32, which costs less than 5 % where nothing is ever found."""

_MISSING: Final = object()

_T = TypeVar("_T")


class Known:
    __slots__ = ("_root", "beside", "costs", "made", "value")

    def __init__(self, value: Any, root: KnownText | None) -> None:
        self.value = value  # held so that no other object can get the same id()
        self._root = root
        self.made: dict[Hashable, Any] = {}
        self.costs: dict[Hashable, tuple[int, Known | None]] = {}
        """For each derived value: its counted size, and the value that was registered and is evicted with
        it."""
        self.beside: list[Known] = []

    @property
    def root(self) -> KnownText:
        """The text this value belongs to: it is evicted with that text, and its size is counted there."""
        assert self._root is not None, "only a text has none"
        return self._root


class KnownText(Known):
    __slots__ = ("behind", "depth", "number", "size", "stated", "text")

    def __init__(self, text: bytes, value: Any, depth: int) -> None:
        super().__init__(value, None)
        self.size = _VALUE_BYTES * len(text) + _ENTRY_BYTES
        self.text = text
        self.depth = depth
        self.number = 0
        """Unique among all texts this memory has ever held."""
        self.stated = text.rstrip(b" ")
        """The text as it appears in a body. Trailing spaces only mark a second value of the same text."""
        self.behind: list[int] = []
        """The numbers of the texts that followed it in a list, the latest first."""

    @property
    def root(self) -> KnownText:
        return self  # not held: it would refer to itself


class Texts:
    """Holds about `most` bytes and evicts the least recently used texts first."""

    __slots__ = (
        "_counted", "_credit", "_known", "_lock", "_numbered", "_numbers", "_run_bytes", "_scopes", "_texts",
        "frames", "held", "learned", "most", "runs",
    )  # fmt: skip

    def __init__(
        self,
        most: int,
        lock: AbstractContextManager[object] | None = None,
        counted: Callable[[int], None] | None = None,
    ) -> None:
        """`lock` is needed if several threads use the memory. `counted` is called with each change of `held`,
        by the thread that makes it."""
        self.most = most
        self._counted = counted
        self.held = 0
        """Estimated bytes of everything in this memory."""
        self._lock: AbstractContextManager[object] = lock if lock is not None else nullcontext()
        self._texts: OrderedDict[bytes, KnownText] = OrderedDict()  # the least recently used first
        self._known: dict[int, Known] = {}
        self._numbered: dict[int, KnownText] = {}
        self._scopes: dict[Hashable, int] = {}
        self._numbers = count()
        self.frames: list[BodyFrame] = []
        """The most recently used first."""
        self._credit = _CREDIT
        self.learned = 0
        """Bytes of all texts that were ever learned."""
        self._run_bytes = 0
        self.runs: tuple[KnownRun, ...] = ()
        """The most recently used first."""

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def learns(self) -> bool:
        """Whether learning has been worth its cost so far, or may still become so: it is disabled for a
        caller whose texts are not found again. To be checked before a body, not within it."""
        return self._credit > 0

    def sent(self, size: int) -> None:
        """Count a body of this size that the caller has sent."""
        self._credit = min(self._credit + size // _SENT_SHARE, _MAX_CREDIT)

    def decode(
        self, text: bytes | memoryview | msgspec.Raw, depth: int = MAX_DEPTH, *, learn: bool = True
    ) -> Any:
        """Like `wire.json.decode`, but an array or object that was decoded recently is returned as the same
        object."""
        key = bytes(text)
        known = self._texts.get(key)
        if known is not None and known.depth == depth:
            return self.recall(known)
        value = decode(key, depth)
        if learn and (type(value) is dict or type(value) is list):
            self._add(KnownText(key, value, depth))
        return value

    def recall(self, known: KnownText) -> Any:
        """The value of a known text, which is marked as recently used."""
        self._credit = min(self._credit + len(known.text), _MAX_CREDIT)
        try:
            self._texts.move_to_end(known.text)
        except KeyError:  # another thread has forgotten it meanwhile
            self._add(KnownText(known.text, known.value, known.depth))
        return known.value

    def recall_all(self, texts: Sequence[KnownText]) -> list[Any]:
        """The values of known texts, which are marked as recently used."""
        move = self._texts.move_to_end
        found = 0
        for known in texts:
            found += len(known.text)
            try:
                move(known.text)
            except KeyError:
                self.recall(known)
        self._credit = min(self._credit + found, _MAX_CREDIT)
        return [known.value for known in texts]

    def text(self, number: int) -> KnownText | None:
        """The text with this number, if it is still known."""
        return self._numbered.get(number)

    def text_of(self, value: object) -> KnownText | None:
        """The text that this very value was decoded from, if it is still known."""
        known = self._known.get(id(value))
        return known if type(known) is KnownText and known.value is value else None

    def texts(self, numbers: Sequence[int]) -> list[KnownText] | None:
        """The texts with these numbers, if all are still known."""
        try:
            return list(map(self._numbered.__getitem__, numbers))
        except KeyError:
            return None

    def use(self, frame: BodyFrame) -> None:
        """Add a frame or mark it as recently used: the next body is compared with it first."""
        if (self.frames and self.frames[0] is frame) or frame.size > self.most // _FRAME_SHARE:
            return
        with self._lock:
            if frame in self.frames:
                self.frames.remove(frame)
            else:
                self._count(frame.size + _FRAME_BYTES)
            self.frames.insert(0, frame)
            if len(self.frames) > _MAX_FRAMES:
                self._drop_frame()
            self._make_room()

    def may_know(self, body: bytes) -> bool:
        """Whether the body probably continues a known conversation, judged by a few of its bytes."""
        return any(run.may_begin(body) for run in self.runs)

    def may_frame(self, body: bytes) -> bool:
        """Whether the body probably begins with a known frame, judged by a few of its bytes."""
        return any(body.startswith(frame.head[0].text or b"") for frame in self.frames)

    def use_run(self, run: KnownRun, instead: KnownRun | None = None) -> None:
        """Add a run or mark it as recently used: the next body is compared with it first. `instead`: the run
        it replaces."""
        room = self.most // _RUN_SHARE
        if (self.runs and self.runs[0] is run) or len(run.body) + _RUN_BYTES > room:
            return
        with self._lock:
            before = self.runs
            self.runs = (run, *[each for each in before if each is not run and each is not instead])
            if run not in before:
                self._count_run(run, 1)
            if instead is not None and instead in before:
                self._count_run(instead, -1)
            while self._run_bytes > room or len(self.runs) > _MAX_RUNS:
                self._drop_last_run()
            self._make_room()

    def has_met(self, frame: BodyFrame, turn: msgspec.Raw) -> bool:
        """Whether a conversation in this frame has begun with this turn before."""
        with self._lock:
            return frame.has_met(turn)

    def drop_run(self, run: KnownRun) -> None:
        with self._lock:
            if run in self.runs:
                self.runs = tuple([each for each in self.runs if each is not run])
                self._count_run(run, -1)

    def follow(self, frame: BodyFrame, turns: Sequence[Any], start: int = 0) -> None:
        """Record the order of these turns; those before `start` are already recorded."""
        numbers = frame.openings
        if start:
            known = self.text_of(turns[start - 1])
            numbers = known.behind if known is not None else []
        for value in turns[start:]:
            known = self.text_of(value)
            if known is None:
                return
            number = known.number
            if not numbers or numbers[0] != number:
                with self._lock:
                    if number in numbers:
                        numbers.remove(number)
                    numbers.insert(0, number)
                    del numbers[_MAX_BEHIND:]
            numbers = known.behind

    def is_known(self, value: object) -> bool:
        known = self._known.get(id(value))
        return known is not None and known.value is value

    def for_turns(self, turns: Sequence[Any]) -> Self | None:
        """This memory if some of these turns are known; otherwise nothing can be found or kept for any of
        them. Turns in the middle are tested: in a conversation that has grown, they are known."""
        middle = len(turns) // 2
        nearby = turns[max(0, middle - 2) : middle + 3]
        return self if any(map(self.is_known, nearby)) else None

    def find(self, value: object, key: Hashable) -> Any:
        """What was derived from the value under this key; None if there is nothing, or if the value is not
        known."""
        known = self._known.get(id(value))
        return known.made.get(key) if known is not None and known.value is value else None

    def keep(self, value: object, key: Hashable, made: Any, size: int = 0, *, shared: object = None) -> None:
        """Keep what was derived from `value`, if that is known. It must depend on value and key alone.
        `shared` becomes known with it. `size`: its bytes, in addition to those of the value."""
        known = self._known.get(id(value))
        if known is None or known.value is not value:
            return
        with self._lock:  # inlined instead of calling helpers: a conversation is kept in hundreds of these
            if self._known.get(id(value)) is not known:
                return  # forgotten meanwhile
            already = known.made
            if key in already:
                self._drop(known, key)
            elif len(already) >= _MAX_MADE:
                self._drop(known, next(iter(already)))
            size += _KEPT_BYTES
            root = known.root
            child = None
            if shared is not None:
                if already and known is root:
                    size += len(root.text)  # parsed again in another way
                other = self._known.get(id(shared))
                if other is None or other.value is not shared:
                    child = self._known[id(shared)] = Known(shared, root)
            already[key] = made
            known.costs[key] = (size, child)
            root.size += size
            self.held += size
            if self._counted is not None:
                self._counted(size)
            if self.held > self.most:
                self._make_room()

    def grow(self, value: object, key: Hashable, size: int) -> None:
        """Count bytes that a caller has added to what was derived from `value`."""
        known = self._known.get(id(value))
        if known is not None and known.value is value:
            with self._lock:
                cost = known.costs.get(key)
                if cost is not None and self._known.get(id(value)) is known:
                    known.costs[key] = (cost[0] + size, cost[1])
                    self._grow(known, size)

    def remembered(self, value: object, key: Hashable, make: Callable[[], _T]) -> _T:
        """The result of `make`, computed once if `value` is known. It must depend on value and key alone."""
        known = self._known.get(id(value))
        if known is None or known.value is not value:
            return make()
        found = known.made.get(key, _MISSING)
        if found is not _MISSING:
            made: _T = found
            return made
        made = make()
        self.keep(value, key, made)
        return made

    def share(self, value: _T, beside: object) -> _T:
        """Make `value` known for as long as `beside`, the value it was derived from, is known. Returns
        `value`."""
        if value:
            with self._lock:
                source = self._known.get(id(beside))
                if source is not None and source.value is beside and not self.is_known(value):
                    child = self._known[id(value)] = Known(value, source.root)
                    source.beside.append(child)
                    self._grow(source, _KEPT_BYTES)
        return value

    def scope(self, *reported: Hashable) -> int:
        """A short number for a tuple of keys: equal tuples get the same number."""
        number = self._scopes.get(reported)
        if number is None:
            with self._lock:
                if len(self._scopes) >= _MAX_SCOPES:
                    self._scopes.clear()  # never reused: entries under old ones are not found
                number = self._scopes.setdefault(reported, next(self._numbers))
        return number

    def shrink(self, most: int) -> None:
        """Evict the least recently used until about `most` bytes are left."""
        with self._lock:
            self._make_room(most)

    def retire(self) -> None:
        """Evict everything and keep nothing from now on: later lookups find nothing."""
        self.most = 0
        self.shrink(0)

    def _add(self, new: KnownText) -> None:
        with self._lock:
            before = self._texts.pop(new.text, None)
            if before is not None:  # decoded by another thread meanwhile, or for another depth
                self._forget(before)
            if new.size > self.most:
                return
            self.learned += len(new.text)
            self._credit -= _LEARNING_COST * len(new.text)
            new.number = next(self._numbers)
            self._texts[new.text] = self._numbered[new.number] = new
            self._known[id(new.value)] = new
            self._count(new.size)
            if self.held > self.most:
                self._make_room()

    def _count(self, size: int) -> None:
        self.held += size
        if self._counted is not None:
            self._counted(size)

    def _grow(self, known: Known, size: int) -> None:
        known.root.size += size
        self._count(size)
        if self.held > self.most:
            self._make_room()

    def _make_room(self, most: int | None = None) -> None:
        if most is None:
            most = self.most
        while self._texts and self.held > most:
            self._forget(self._texts.popitem(last=False)[1])
        while self.frames and self.held > most:
            self._drop_frame()
        while self.runs and self.held > most:
            self._drop_last_run()

    def _drop_last_run(self) -> None:
        run, self.runs = self.runs[-1], self.runs[:-1]
        self._count_run(run, -1)

    def _count_run(self, run: KnownRun, times: int) -> None:
        size = times * (len(run.body) + _RUN_BYTES)
        self._run_bytes += size
        self._count(size)

    def _drop_frame(self) -> None:
        self._count(-self.frames.pop().size - _FRAME_BYTES)

    def _forget(self, text: KnownText) -> None:
        del self._numbered[text.number]
        self._let_go(text)
        self._count(-text.size)

    def _drop(self, known: Known, key: Hashable) -> None:
        """Remove one derived value and what became known with it."""
        del known.made[key]
        size, child = known.costs.pop(key)
        if child is not None:
            size += self._let_go(child)
        known.root.size -= size
        self._count(-size)

    def _let_go(self, known: Known) -> int:
        """Forget a value and all that became known with it; returns the bytes counted for what was derived
        from them. Reference cycles are broken here, so that it is freed at once and not by the collector."""
        size = 0
        waiting: list[Known] = [known]
        while waiting:  # there may be a long chain of them, each derived from the one before
            each = waiting.pop()
            if self._known.get(id(each.value)) is not each:
                continue
            del self._known[id(each.value)]
            for cost, child in each.costs.values():
                size += cost
                if child is not None:
                    waiting.append(child)
            size += _KEPT_BYTES * len(each.beside)
            waiting += each.beside
            each.costs, each.beside = {}, []
        return size
