"""Instructions of whole requests, streams and events in the gateway, from the client's bytes to the client's.

The gateway is `wireglot serve` under callgrind, in front of the bench's mock upstream; the client and the
upstream are other processes and are not counted. Requests come one at a time on one connection. Counting
begins after a few of the same kind, when the interpreter has specialised its code and every table is made:
the start of the gateway is in no count.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import NamedTuple

from proofs.bench import processes, targets
from proofs.bench.bodies import SHAPES, VARIED, Conversation, body
from proofs.bench.conversations import OFF
from proofs.bench.scenarios import DIALECTS, PROVIDERS, path_of
from proofs.guard import callgrind, serve
from proofs.guard.client import Client, wait_until_quiet

EVENTS = 20
GAP = 40
"""Milliseconds between two events, so that each is a read of its own. Where the machine is so busy that two
are read at once they cost less: a count may come out too low, never too high."""
LARGE = ("cc", "ac", "ag")
"""Letters of the client's dialect and of the upstream's: forwarded, translated, and the dearest pair."""
STREAMED = ("cc", "ac", "ag", "ca", "rc")
BLOCKS = 3
"""Of each case; the figure is that of the block in the middle: now and then one has several million more."""
WARM = 10
"""So many small requests until another takes as many instructions as the one before."""
TURNS, FIRST_BYTES, LAST_BYTES, SEEN = 40, 10_000, 105_000, 25
"""Of a conversation; turns from `SEEN` on are sent, those that are counted have about 100 KB."""

_START_SECONDS = 300.0


class Case(NamedTuple):
    """Requests of one kind: some that are not counted, then blocks of some that are."""

    pair: str
    model: str
    content: Callable[[int], bytes]
    """The number of the request -> its body."""
    warm: int
    times: int
    stream: bool = False
    cached: bool = True
    """Whether the gateway has its cache of bodies (`limits.remembered`)."""


class Figure(NamedTuple):
    name: str
    cases: tuple[Case, ...]
    of: Callable[..., float] = float
    """Instructions of one request of each case -> the figure."""


def figures() -> Iterator[Figure]:
    for pair in ("cc", *("".join(pair) for pair in permutations(DIALECTS, 2))):
        yield Figure(_name("2 KB", pair), (_case(pair, same(pair, _model(pair)), WARM, 6),))
    for pair in LARGE:
        yield Figure(_name("100 KB, first seen", pair), (_case(pair, first_seen(pair), 2, 4),))
    for pair in LARGE:
        on = _case(pair, _template(pair), 3, 4)
        off = on._replace(cached=False)
        yield Figure(_name("100 KB of one template", pair), (on,))
        yield Figure(_name("100 KB of one template, cache on to off, x 1000", pair), (on, off), _per_mille)
    yield Figure(_name("a turn of a conversation, 100 KB", "ac"), (_case("ac", _turns(), 3, 4),))
    for pair in STREAMED:
        # Not one without any: an answer of which nothing is said is a failure, and goes another way.
        short, long = (_stream(pair, events) for events in (1, 1 + EVENTS))
        yield Figure(_name("a stream without its events", pair), (short, long), _without_events)
        yield Figure(_name("an event", pair), (short, long), _per_event)


def _name(kind: str, pair: str) -> str:
    client, upstream = map(DIALECTS.__getitem__, pair)
    return f"gateway, {kind}: {client} > {upstream}"


def _per_mille(on: float, off: float) -> float:
    return 1000 * on / off


def _per_event(short: float, long: float) -> float:
    return (long - short) / EVENTS


def _without_events(short: float, long: float) -> float:
    return short - _per_event(short, long)


# Bodies


def _model(pair: str, plan: str = "") -> str:
    return f"{PROVIDERS[pair[1]]}/mock{plan}"


def _case(pair: str, content: Callable[[int], bytes], warm: int, times: int) -> Case:
    return Case(pair, _model(pair), content, warm, times)


def _stream(pair: str, events: int) -> Case:
    model = _model(pair, f"-c{events}-g{GAP}")
    warm = WARM if events == 1 else 2
    return Case(pair, model, same(pair, model, stream=True), warm, 4, stream=True)


def same(pair: str, model: str, *, stream: bool = False) -> Callable[[int], bytes]:
    content = cache(lambda: body(DIALECTS[pair[0]], "2k", model, stream=stream))
    return lambda number: content()


def _template(pair: str) -> Callable[[int], bytes]:
    """The same system text and tools, the same texts at the same places, and other ids and numbers in all
    messages: as evaluations and batches send them. Two thirds of a body are messages."""
    shape = SHAPES["100k"]._replace(messages=56)
    common = cache(lambda: body(DIALECTS[pair[0]], shape, _model(pair), stream=False))

    def content(number: int) -> bytes:
        return common().replace(b"toolu_", b"toolu_%06d" % (number * 382_157 % 1_000_000))

    return content


def first_seen(pair: str) -> Callable[[int], bytes]:
    """Every text has another length, too: nothing is at the place where it was in another body."""

    def content(number: int) -> bytes:
        plain = SHAPES["100k"]
        shape = plain._replace(
            system=plain.system + 31 * number, said=plain.said + 3 * number, code=plain.code - 2 * number
        )
        made = body(DIALECTS[pair[0]], shape, _model(pair), stream=False)
        return made.replace(VARIED.encode(), b"%06d" % (number * 617_413 % 1_000_000))

    return content


def _turns() -> Callable[[int], bytes]:
    made = cache(lambda: list(Conversation(1, TURNS, FIRST_BYTES, LAST_BYTES, _model("ac")).bodies())[SEEN:])
    return lambda number: made()[number]


# Counting


def count(wanted: list[Figure]) -> dict[str, int]:
    needed = list(dict.fromkeys(case for figure in wanted for case in figure.cases))
    with tempfile.TemporaryDirectory(prefix="wireglot-guard-") as name:
        each = spent(needed, Path(name), _gateway)
    return {figure.name: round(figure.of(*map(each.__getitem__, figure.cases))) for figure in wanted}


def spent(
    cases: list[Case], directory: Path, start: Callable[[int, Path, bool], targets.Target]
) -> dict[Case, float]:
    """Instructions of one request of each case, in servers that `start` makes: of the upstream's port, a
    folder, and whether the case is `cached`."""
    upstream = processes.free_port()
    double = processes.start(
        [sys.executable, "-m", "proofs.bench.upstream", str(upstream)], directory / "upstream.log"
    )
    gateways = {cached: start(upstream, directory, cached) for cached in {case.cached for case in cases}}
    try:
        if not processes.answers(upstream, 30):
            raise callgrind.NotCounted("the mock upstream did not start")
        for gateway in gateways.values():
            gateway.patience = _START_SECONDS
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda gateway: gateway.start(None), gateways.values()))
        for gateway in gateways.values():
            callgrind.command_to(gateway.pid, "instrumentation on")
        return {case: _count(case, gateways[case.cached], directory) for case in cases}
    except targets.NotStarted as fault:
        raise callgrind.NotCounted(str(fault)) from None
    finally:
        for gateway in gateways.values():
            gateway.stop()
        processes.stop(double)


def _gateway(upstream: int, directory: Path, cached: bool) -> targets.Target:
    own = directory / ("on" if cached else "off")
    own.mkdir()
    command = callgrind.under_callgrind(
        own, [sys.executable, "-m", "proofs.guard.serve"], "--instr-atstart=no"
    )
    return targets.wireglot(command, upstream, own, limits={} if cached else OFF)


def _count(case: Case, gateway: targets.Target, directory: Path) -> float:
    client = Client(gateway.port)
    path = path_of(DIALECTS[case.pair[0]], case.model, stream=case.stream)
    contents = [case.content(number) for number in range(case.warm + BLOCKS * case.times)]
    for content in contents[: case.warm]:
        client.ask(path, content)
    _settle(gateway.pid)
    counts = directory / ("on" if case.cached else "off")
    blocks = [
        _block(gateway, client, path, contents[start : start + case.times], counts)
        for start in range(case.warm, len(contents), case.times)
    ]
    client.close()
    return median(blocks)


def _block(
    gateway: targets.Target, client: Client, path: str, contents: list[bytes], directory: Path
) -> float:
    """Instructions of one of these requests."""
    callgrind.command_to(gateway.pid, "zero")
    for content in contents:
        client.ask(path, content)
    _settle(gateway.pid)
    callgrind.command_to(gateway.pid, "dump")
    return callgrind.total(callgrind.parts(directory)[-1]) / len(contents)


def _settle(pid: int) -> None:
    """Have it write what it has gathered, and wait until it has nothing to do."""
    wait_until_quiet(pid)
    os.kill(pid, serve.TICK)
    wait_until_quiet(pid)
