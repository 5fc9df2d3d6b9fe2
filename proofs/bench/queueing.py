"""Queues: how long work waits for a worker that is partly busy. Textbook formulas, nothing of ours.

A worker is one event loop: it does one thing after the other, no matter who asked for it, so it is a queue
with one server. Work comes from many clients that know nothing of one another, so it comes at random
(Poisson)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Overloaded(Exception):
    """More work arrives than can be done: the queue grows for ever."""


class Work(NamedTuple):
    """One kind of it. `variation` is the variance of its service time over the square of its mean: 0 where
    all take equally long, 1 where they vary as an exponential does."""

    per_second: float
    seconds: float
    variation: float = 1.0


class Queue(NamedTuple):
    """What a queue with one server comes to."""

    utilisation: float
    mean_wait: float
    """Seconds until a piece of work begins."""

    def percentile_wait(self, part: float) -> float:
        """The wait that `part` of all work stays below.

        A piece waits at all with the probability of the utilisation; how long, is taken for exponential,
        which is exact where service times are and near it where the queue is long.
        """
        late = 1 - part
        if self.utilisation <= late:
            return 0.0
        return self.mean_wait / self.utilisation * math.log(self.utilisation / late)


def single_server(kinds: Iterable[Work]) -> Queue:
    """M/G/1: the formula of Pollaczek and Khinchine."""
    kinds = list(kinds)
    utilisation = sum(kind.per_second * kind.seconds for kind in kinds)
    if utilisation >= 1:
        raise Overloaded(f"a server would have to be busy {utilisation:.2f} of the time")
    second_moment = sum(kind.per_second * kind.seconds**2 * (1 + kind.variation) for kind in kinds)
    return Queue(utilisation, second_moment / (2 * (1 - utilisation)))


def erlang_b(offered: float, servers: int) -> float:
    """The part of calls that find all servers busy and leave. `offered` is arrivals times service time."""
    blocked = 1.0
    for server in range(1, servers + 1):
        blocked = offered * blocked / (server + offered * blocked)
    return blocked


def erlang_c(offered: float, servers: int) -> float:
    """The part of calls that have to wait, where nobody leaves."""
    if offered >= servers:
        raise Overloaded(f"{offered:.2f} servers' work for {servers}")
    blocked = erlang_b(offered, servers)
    return blocked / (1 - offered / servers * (1 - blocked))


def servers_for(offered: float, most_waiting: float) -> int:
    """The fewest servers with which at most that part of calls waits."""
    servers = math.floor(offered) + 1
    while erlang_c(offered, servers) > most_waiting:
        servers += 1
    return servers


def fullest(mean: float, places: int) -> float:
    """How many of `mean * places` come to the fullest place, where each goes to one at random.

    The kernel deals connections to workers like that. Near enough: what one of so many normal variables
    exceeds once.
    """
    if places <= 1 or mean <= 0:
        return mean
    return mean + math.sqrt(mean * 2 * math.log(places))
