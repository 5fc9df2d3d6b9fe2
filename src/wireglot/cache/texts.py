"""What comes again and again, byte for byte, and what was made of it.

An agent sends its tools and its whole conversation with every turn. Decoded with a `Texts` they give
the values it got before, and `remembered` keeps what was made of one: what was read of it, how it was fitted,
how it was written. A value that came from here must not be changed, nor anything inside it. A value that did
not come from here is never taken for one that did.

The one that holds a memory decides whose it is: this module has none of its own.

Several threads may come at once. Finding is a single step that the interpreter does not interrupt; whatever
changes the memory is done under its lock. Between two steps another thread may have forgotten anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, Final, Self, TypeVar

import msgspec

from wireglot.cache.body_frame import BodyFrame, KnownRun
from wireglot.wire.json import MAX_DEPTH, decode

_VALUE_BYTES: Final = 3
"""A text is held as it came, decoded, and (mostly the same objects) parsed: about so many times its bytes."""
_ENTRY_BYTES: Final = 2304
"""And these bytes for each text, however short it is: its value, its places in the memory and in what is
read. Measured with conversations of tiny turns (tests/laws/test_growing.py)."""
_KEPT_BYTES: Final = 384
"""Of anything that was made of it, in addition to what its maker counts."""
_MAX_MADE: Final = 32
"""How much is kept of one value: one for each kind of endpoint it goes to."""
_MAX_SCOPES: Final = 1024
_MAX_FRAMES: Final = 64
_FRAME_BYTES: Final = 4096
"""In addition to its own texts."""
_FRAME_SHARE: Final = 8
"""One that takes more than such a part of the room is not kept."""
_MAX_RUNS: Final = 128
"""Conversations that are known from their beginning on: to try one takes a tenth of a microsecond."""
_RUN_BYTES: Final = 1024
"""In addition to its body."""
_RUN_SHARE: Final = 8
"""All of them take no more than such a part of the room."""
_MAX_BEHIND: Final = 256
"""Conversations that begin alike and go on in different ways: to try one takes a hundredth of what it costs
to read a turn."""

_CREDIT: Final = 256 * 1024
_MAX_CREDIT: Final = 1024 * 1024
_LEARNING_COST: Final = 2
"""Learning a byte takes as long as reading two more; finding one saves reading it."""
_SENT_SHARE: Final = 32
"""What a caller sends pays for learning, too, so that one who was given up is tried again: the 32nd part,
which costs less than 5 % where nothing is ever found."""

_MISSING: Final = object()

_T = TypeVar("_T")


class Known:
    __slots__ = ("_root", "beside", "costs", "made", "value")

    def __init__(self, value: Any, root: KnownText | None) -> None:
        self.value = value  # held, so that no other can take its identity
        self._root = root
        self.made: dict[Hashable, Any] = {}
        self.costs: dict[Hashable, tuple[int, Known | None]] = {}
        """What each of them is counted with, and who became known with it and goes with it."""
        self.beside: list[Known] = []

    @property
    def root(self) -> KnownText:
        """The one that came as text: with it this one goes, and it bears the size."""
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
        """Of all that this memory ever held it is the only one that has it."""
        self.stated = text.rstrip(b" ")
        """As it stands in a body: the spaces are for another value of the same words."""
        self.behind: list[int] = []
        """The numbers of the texts that stood behind it in a list, the latest first."""

    @property
    def root(self) -> KnownText:
        return self  # not held: it would refer to itself


class Texts:
    """Holds about `most` bytes; what was not used for longest goes first."""

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
        """`lock`: where several threads may come. `counted` is informed of each change of `held`, by anyone
        who makes it."""
        self.most = most
        self._counted = counted
        self.held = 0
        """An estimate of the bytes of all that is in it."""
        self._lock: AbstractContextManager[object] = lock if lock is not None else nullcontext()
        self._texts: OrderedDict[bytes, KnownText] = OrderedDict()  # the least recently used first
        self._known: dict[int, Known] = {}
        self._numbered: dict[int, KnownText] = {}
        self._scopes: dict[Hashable, int] = {}
        self._numbers = count()
        self.frames: list[BodyFrame] = []
        """The latest first."""
        self._credit = _CREDIT
        self.learned = 0
        """Bytes of all texts that were ever learned."""
        self._run_bytes = 0
        self.runs: tuple[KnownRun, ...] = ()
        """The latest first."""

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def learns(self) -> bool:
        """Whether what was learned so far is worth what it cost, or may still become so: a caller whose
        texts are not found again is given up. To be asked before a body, not within it."""
        return self._credit > 0

    def sent(self, size: int) -> None:
        """The caller has sent a body of this size."""
        self._credit = min(self._credit + size // _SENT_SHARE, _MAX_CREDIT)

    def decode(
        self, text: bytes | memoryview | msgspec.Raw, depth: int = MAX_DEPTH, *, learn: bool = True
    ) -> Any:
        """As `decode` of JSON, but an array or an object that was decoded lately is the same one."""
        key = bytes(text)
        known = self._texts.get(key)
        if known is not None and known.depth == depth:
            return self.recall(known)
        value = decode(key, depth)
        if learn and (type(value) is dict or type(value) is list):
            self._add(KnownText(key, value, depth))
        return value

    def recall(self, known: KnownText) -> Any:
        """Its value, which is in use again."""
        self._credit = min(self._credit + len(known.text), _MAX_CREDIT)
        try:
            self._texts.move_to_end(known.text)
        except KeyError:  # another thread has forgotten it meanwhile
            self._add(KnownText(known.text, known.value, known.depth))
        return known.value

    def recall_all(self, texts: Sequence[KnownText]) -> list[Any]:
        """The values of texts, which are in use again."""
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
        """The text of this number, if it is still known."""
        return self._numbered.get(number)

    def text_of(self, value: object) -> KnownText | None:
        """The text that this very value was decoded of, if it is still known."""
        known = self._known.get(id(value))
        return known if type(known) is KnownText and known.value is value else None

    def texts(self, numbers: Sequence[int]) -> list[KnownText] | None:
        """The texts of these numbers, if all are still known."""
        try:
            return list(map(self._numbered.__getitem__, numbers))
        except KeyError:
            return None

    def use(self, frame: BodyFrame) -> None:
        """It was found again, or is new: the next body is compared with it first."""
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
        """Whether it seems to go on as a conversation that is known, by a few of its bytes."""
        return any(run.may_begin(body) for run in self.runs)

    def may_frame(self, body: bytes) -> bool:
        """Whether it seems to begin as a body that is known, by a few of its bytes."""
        return any(body.startswith(frame.head[0].text or b"") for frame in self.frames)

    def use_run(self, run: KnownRun, instead: KnownRun | None = None) -> None:
        """It was found again, or is new, and so the next body is compared with it first. `instead`: what it
        replaces."""
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
        """Note in which order these turns came, those before `start` as they did before."""
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
        """This one, if some of these turns are known; otherwise nothing can be found or kept for any of them.
        They are where one looks: in the middle, of a conversation that has grown."""
        middle = len(turns) // 2
        nearby = turns[max(0, middle - 2) : middle + 3]
        return self if any(map(self.is_known, nearby)) else None

    def find(self, value: object, key: Hashable) -> Any:
        """What was made of it under this key; None where nothing was, or where the value is not known."""
        known = self._known.get(id(value))
        return known.made.get(key) if known is not None and known.value is value else None

    def keep(self, value: object, key: Hashable, made: Any, size: int = 0, *, shared: object = None) -> None:
        """Remember what was made of `value`, if that is known. It must follow from value and key alone.
        `shared` becomes known with it. `size`: bytes that it takes in addition to the value's own."""
        known = self._known.get(id(value))
        if known is None or known.value is not value:
            return
        with self._lock:  # a conversation is kept in hundreds of these: what could be called stands here
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
                    size += len(root.text)  # it was read once more, in another way
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
        """Count what a caller has added to what was made of it."""
        known = self._known.get(id(value))
        if known is not None and known.value is value:
            with self._lock:
                cost = known.costs.get(key)
                if cost is not None and self._known.get(id(value)) is known:
                    known.costs[key] = (cost[0] + size, cost[1])
                    self._grow(known, size)

    def remembered(self, value: object, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` gives, made once where `value` is known. It must follow from value and key alone."""
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
        """The value, known as long as the one it was made of is, if that is."""
        if value:
            with self._lock:
                source = self._known.get(id(beside))
                if source is not None and source.value is beside and not self.is_known(value):
                    child = self._known[id(value)] = Known(value, source.root)
                    source.beside.append(child)
                    self._grow(source, _KEPT_BYTES)
        return value

    def scope(self, *reported: Hashable) -> int:
        """A short name for all that is equal in many keys."""
        number = self._scopes.get(reported)
        if number is None:
            with self._lock:
                if len(self._scopes) >= _MAX_SCOPES:
                    self._scopes.clear()  # numbers are never given twice: what has one of them is not found
                number = self._scopes.setdefault(reported, next(self._numbers))
        return number

    def shrink(self, most: int) -> None:
        """Forget the longest unused until about `most` bytes are left."""
        with self._lock:
            self._make_room(most)

    def retire(self) -> None:
        """Forget everything, and remember nothing from here on: anyone who still uses it finds nothing."""
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
        """One of the things that were made of it, with what became known with it."""
        del known.made[key]
        size, child = known.costs.pop(key)
        if child is not None:
            size += self._let_go(child)
        known.root.size -= size
        self._count(-size)

    def _let_go(self, known: Known) -> int:
        """Forget it and all that became known with it. What was counted for what was made of them. Nothing
        of it refers to itself from here on, so that it is freed at once and not by the collector."""
        size = 0
        waiting: list[Known] = [known]
        while waiting:  # there may be a long row of them, one made of the other
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
