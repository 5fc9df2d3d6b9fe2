"""What is fuzzed, and how: inputs made of inputs, tried one by one, and kept where they reach new lines."""

from __future__ import annotations

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

from tools.lab.fuzz_lines import Lines
from tools.lab.fuzz_mutations import Mutator

_WATCHED_ONE_OF: Final = 5
"""So many inputs are tried for one whose lines are watched, which takes several times as long."""
_FRESH_CHANCE: Final = 0.3
"""That the last of the corpus, which reached something new, is changed further."""
_BUSY_SECONDS: Final = 2.0
"""Of the processor, for one input: other work on the machine does not count."""
_SILENT_SECONDS: Final = 60.0
_MEMORY_BYTES: Final = 6 << 30
_PROBLEMS_MOST: Final = 200


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
        self._corpus = target.seeds()
        self._names = {one.name for one in self._corpus}

    def run(self, count: int, seed: str) -> tuple[Counter[str], list[str]]:
        """How so many inputs ended, and what was wrong."""
        self._read_others()
        chance = Random(seed)
        mutator = Mutator(chance, self._target.words)
        counts: Counter[str] = Counter()
        problems: list[str] = []
        self._target.begin()
        try:
            for number in range(count):
                given = self._made(mutator)
                counts[self._one(given, chance, problems, watched=number % _WATCHED_ONE_OF == 0)] += 1
        finally:
            self._target.end()
        return counts, problems

    def _made(self, mutator: Mutator) -> Input:
        chance = mutator.chance
        fresh = chance.random() < _FRESH_CHANCE
        one = chance.choice(self._corpus[-50:] if fresh else self._corpus)
        other = chance.choice(self._corpus)
        return Input(one.form, self._target.changed(mutator, one, other))

    def _one(self, given: Input, chance: Random, problems: list[str], *, watched: bool) -> str:
        def work() -> str:
            return _timed(lambda: self._target.tried(given, chance))

        known = self._lines.known
        try:
            outcome = self._lines.watched(work) if watched else work()
        except (Exception, Hang) as problem:  # whatever it is, it is what was looked for
            if len(problems) < _PROBLEMS_MOST:
                problems.append(_told(given, problem))
            _write(self._folder.with_name(f"{self._folder.name}.wrong"), given)
            outcome = "wrong"
            if isinstance(problem, Hang):
                self._target.end()
                self._target.begin()
        if watched and self._lines.known > known and outcome != "wrong":
            self._keep(given)
        return outcome

    def _keep(self, given: Input) -> None:
        if given.name not in self._names:
            self._names.add(given.name)
            self._corpus.append(given)
            _write(self._folder, given)

    def _read_others(self) -> None:
        for path in sorted(self._folder.glob("[!.]*")):
            if path.name not in self._names:
                self._names.add(path.name)
                self._corpus.append(read(path))


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
    raise Hang("too much work" if number == signal.SIGVTALRM else "nothing happens")


def _told(given: Input, problem: BaseException) -> str:
    places = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(problem.__traceback__)]
    said = str(problem)[:3000]
    return (
        f"{given.form}: {type(problem).__name__}: {said} at {' '.join(places[-4:])} for {given.data[:2000]!r}"
    )
