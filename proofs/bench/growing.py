"""A conversation as a coding agent has it: every turn sends all of it again, and two messages more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from statistics import linear_regression, median
from typing import Any, NamedTuple

from proofs.bench import processes
from proofs.bench.bodies import Conversation
from proofs.bench.scenarios import path_of
from proofs.bench.talking import Talk
from proofs.bench.targets import Target

TURNS = 100
FIRST_BYTES, LAST_BYTES = 10_000, 1_000_000
CONVERSATIONS = 3
"""Of one round: nginx needs that many for a cost that can be stated."""
_MODEL = "mine/mock"
_SETTLES_SECONDS = 0.003
"""What a server does after its answer belongs to that answer."""

_numbers = count(int(time.time()) % 1_000_000)


def drive(target: Target, turns: int = TURNS) -> dict[str, Any]:
    """A round: what each turn cost, in the median of a few conversations that nobody has seen before."""
    pids = processes.family(target.pid)
    rows: list[list[tuple[int, float]]] = []
    failed = 0
    for _ in range(CONVERSATIONS):
        talk = Talk(target.port, target.headers)
        row = []
        for content in _bodies(turns):
            before = _clock(pids)
            failed += talk.ask(path_of("anthropic", _MODEL, stream=False), content).status != 200
            time.sleep(_SETTLES_SECONDS)
            row.append((len(content), _clock(pids) - before))
        rows.append(row)
        talk.close()
    costs = [[cost for _, cost in row] for row in rows]
    return {
        "bytes": [size for size, _ in rows[0]],
        "cpu_us": [median(turn) * 1e6 for turn in zip(*costs, strict=True)],
        "cpu_s": sum(map(sum, costs)),
        "ok": turns * CONVERSATIONS - failed,
        "err": failed,
    }


def _bodies(turns: int) -> Iterator[bytes]:
    return Conversation(next(_numbers) % 1_000_000, turns, FIRST_BYTES, LAST_BYTES, _MODEL).bodies()


def _clock(pids: list[int]) -> float:
    return sum(processes.cpu_seconds(pid) or 0.0 for pid in pids)


class Line(NamedTuple):
    """The cost of a turn as a straight line over its bytes."""

    base_us: float
    us_per_kb: float


def line(bytes_sent: list[int], cpu_us: list[float]) -> Line:
    slope, intercept = linear_regression([size / 1000 for size in bytes_sent], cpu_us)
    return Line(intercept, slope)
