"""What is fuzzed, and how: inputs made of inputs, tried one by one, and kept where they reach new lines."""

from __future__ import annotations

import gc
import hashlib
import re
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final, NamedTuple, Protocol

from proofs.lab.fuzz_lines import Lines
from proofs.lab.fuzz_mutations import Mutator

_WATCHED_ONE_OF: Final = 5
"""So many inputs are tried for one whose lines are watched, which takes several times as long ..."""
_WATCHED_LATER_ONE_OF: Final = 25
_NOTHING_NEW: Final = 200
"""... and fewer are watched once so many of them, one after another, have reached nothing new."""
_FRESH_CHANCE: Final = 0.3
"""That the last of the corpus, which reached something new, is changed further."""
_EVEN_BYTES: Final = 1000
"""An input is taken as often as any other up to about this size; from there on the less, the larger it is, so
that each of the sizes gets about the same time."""
_BUSY_SECONDS: Final = 2.0
"""Of the processor, for one input: other work on the machine does not count."""
_SILENT_SECONDS: Final = 60.0
_MEMORY_BYTES: Final = 6 << 30
_MAX_GARBAGE: Final = 20_000
"""Objects, before circles among them are looked for: there are hardly any, and looking takes time."""
_MAX_PROBLEMS: Final = 200


class Input(NamedTuple):
    form: str
    """Which door it is for: a dialect, a path. It stays what it is."""
    data: bytes

    @property
    def name(self) -> str:
        form = re.sub(r"[^a-z-]+", "_", self.form)
        return f"{form}.{hashlib.sha256(self.form.encode() + b' ' + self.data).hexdigest()[:16]}"


class Found(AssertionError):
    """What must not be, said in words."""


class Hang(KeyboardInterrupt):
    """One input took too long. No `Exception`: nobody on the way may take it for an answer."""


class Silence(Hang):
    """By the clock on the wall: the process, or the machine, may have been stopped meanwhile."""


class Target(Protocol):
    @property
    def words(self) -> Sequence[bytes]:
        """What means something in this kind of input."""
        ...

    def seeds(self) -> list[Input]: ...

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes: ...

    def tried(self, given: Input, chance: Random) -> str:
        """What came of it, in a word. Whatever it raises is a problem."""
        ...

    def begin(self) -> None:
        """Before many tries."""
        ...

    def end(self) -> None: ...


class Fuzzer:
    """One target in one process, with a corpus that grows. `folder`: where all processes keep theirs."""

    def __init__(self, target: Target, folder: Path) -> None:
        self._target = target
        self._folder = folder
        self._lines = Lines()
        self._learnt = 0
        """So many of the corpus have been watched."""
        self._idle = 0
        """So many have been watched since one of them reached something new."""
        self._corpus: list[Input] = []
        self._weights: list[float] = []
        """Each with those before it, as `choices` wants them."""
        self._names: set[str] = set()
        for one in target.seeds():
            self._add(one)

    def run(self, count: int, seed: str) -> tuple[Counter[str], list[str]]:
        """How so many inputs ended, and what was wrong."""
        self._read_others()
        chance = Random(seed)
        mutator = Mutator(chance, self._target.words)
        counts: Counter[str] = Counter()
        problems: list[str] = []
        self._target.begin()
        try:
            self._learn(chance, problems)
            for number in range(count):
                given = self._made(mutator)
                one_of = _WATCHED_ONE_OF if self._idle < _NOTHING_NEW else _WATCHED_LATER_ONE_OF
                counts[self._one(given, chance, problems, watched=number % one_of == 0)] += 1
        finally:
            self._target.end()
        return counts, problems

    def _learn(self, chance: Random, problems: list[str]) -> None:
        """What was there before reaches nothing new. It is tried too, and not counted."""
        for one in self._corpus[self._learnt :]:
            self._one(one, chance, problems, watched=True)
        self._learnt = len(self._corpus)
        self._idle = 0

    def _made(self, mutator: Mutator) -> Input:
        chance = mutator.chance
        one, other = chance.choices(self._corpus, cum_weights=self._weights, k=2)
        if chance.random() < _FRESH_CHANCE:
            one = min(chance.choices(self._corpus[-50:], k=2), key=lambda each: len(each.data))
        return Input(one.form, self._target.changed(mutator, one, other))

    def _one(self, given: Input, chance: Random, problems: list[str], *, watched: bool) -> str:
        def work() -> str:
            return _timed(lambda: self._target.tried(given, chance))

        def judged() -> str:
            try:
                return self._lines.watched(work) if watched else work()
            except Silence:  # what hangs does so again
                self._target.end()
                self._target.begin()
                return self._lines.watched(work) if watched else work()

        known = self._lines.known
        try:
            outcome = judged()
        except (Exception, Hang) as problem:  # whatever it is, it is what was looked for
            if len(problems) < _MAX_PROBLEMS:
                problems.append(_reported(given, problem))
            _write(self._folder.with_name(f"{self._folder.name}.wrong"), given)
            outcome = "wrong"
            if isinstance(problem, Hang):
                self._target.end()
                self._target.begin()
        if watched:
            is_new = self._lines.known > known
            self._idle = 0 if is_new else self._idle + 1
            if is_new and outcome != "wrong" and given.name not in self._names:
                self._add(given)
                self._learnt += 1
                _write(self._folder, given)
        return outcome

    def _add(self, one: Input) -> None:
        before = self._weights[-1] if self._weights else 0.0
        self._names.add(one.name)
        self._corpus.append(one)
        self._weights.append(before + 1 / (_EVEN_BYTES + len(one.data)))

    def _read_others(self) -> None:
        for path in sorted(self._folder.glob("[!.]*")):
            if path.name not in self._names:
                self._add(read(path))


def read(path: Path) -> Input:
    """An input that was kept: in the corpus, or among those that went wrong."""
    form, _, data = path.read_bytes().partition(b"\n")
    return Input(form.decode(), data)


def _write(folder: Path, given: Input) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    unready = folder / f".{given.name}"
    unready.write_bytes(given.form.encode() + b"\n" + given.data)
    unready.replace(folder / given.name)


def guard() -> None:
    """For the process that tries: memory that runs away is a MemoryError, an endless loop a `Hang`."""
    gc.set_threshold(_MAX_GARBAGE)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    signal.signal(signal.SIGVTALRM, _hangs)
    signal.signal(signal.SIGALRM, _hangs)


def _timed(work: Callable[[], str]) -> str:
    signal.setitimer(signal.ITIMER_VIRTUAL, _BUSY_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _SILENT_SECONDS)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Hang("too much work") if number == signal.SIGVTALRM else Silence("nothing happens")


def _reported(given: Input, problem: BaseException) -> str:
    places = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(problem.__traceback__)]
    said = str(problem)[:3000]
    return (
        f"{given.form}: {type(problem).__name__}: {said} at {' '.join(places[-4:])} for {given.data[:2000]!r}"
    )
