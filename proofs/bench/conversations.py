"""Many conversations by turns: what it is worth to remember them, on one worker and on two.

An agent's next turn meets the process that remembers the last one only if it has not forgotten it for the
turns of others, and only if it is the same process: who connects again is given to any worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any, NamedTuple

from proofs.bench import processes
from proofs.bench.bodies import Conversation
from proofs.bench.scenarios import path_of
from proofs.bench.talking import Talk
from proofs.bench.targets import Target

_MODEL = "mine/mock"
_TURNS, _FIRST_BYTES, _LAST_BYTES = 40, 10_000, 100_000
_SEEN = 30
"""Turns that are left out, so that those sent are of nearly the same size."""
_SETTLES_SECONDS = 0.2
"""For what servers do after the last answer."""

_numbers = count(int(time.time()) % 1_000_000)


class Crowd(NamedTuple):
    conversations: int
    """Each has a turn before any has its next."""
    groups: int
    """So many times over, with others each time."""
    workers: int = 1

    @property
    def key(self) -> str:
        return f"{self.conversations} x {self.workers}"


CROWDS = (Crowd(1, 20), Crowd(50, 1), Crowd(500, 1), Crowd(1, 20, 2), Crowd(50, 1, 2))
TITLES = {"on": "remembered", "off": "not remembered"}
OFF = {"remembered": 0}
"""The limit that turns the memory off."""


def drive(target: Target, crowd: Crowd) -> dict[str, Any]:
    """A round: processor time of all turns but the first of each conversation, which nobody can have seen."""
    pids = processes.family(target.pid)
    failed = turns = 0
    spent = 0.0
    for _ in range(crowd.groups):
        conversations = [_late_turns() for _ in range(crowd.conversations)]
        failed += sum(_ask(target, next(conversation)) for conversation in conversations)
        time.sleep(_SETTLES_SECONDS / crowd.groups)
        before = _clock(pids)
        for _ in range(_TURNS - _SEEN - 1):
            failed += sum(_ask(target, next(conversation)) for conversation in conversations)
            turns += len(conversations)
        time.sleep(_SETTLES_SECONDS / crowd.groups)
        spent += _clock(pids) - before
    return {"cpu_us": spent * 1e6 / turns, "cpu_s": spent, "ok": turns, "err": failed}


def _late_turns() -> Iterator[bytes]:
    conversation = Conversation(next(_numbers) % 1_000_000, _TURNS, _FIRST_BYTES, _LAST_BYTES, _MODEL)
    return islice(conversation.bodies(), _SEEN, None)


def _ask(target: Target, content: bytes) -> bool:
    """Whether it failed. A connection of its own each time: the kernel gives it to any of the workers."""
    talk = Talk(target.port, target.headers)
    try:
        return talk.ask(path_of("anthropic", _MODEL, stream=False), content).status != 200
    finally:
        talk.close()


def _clock(pids: list[int]) -> float:
    return sum(processes.cpu_seconds(pid) or 0.0 for pid in pids)
