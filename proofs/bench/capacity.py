"""How many workers, machines and servers a number of streams takes, from a run of the benchmark.

    python -m proofs.bench.capacity docs/figures/bench.json [--write docs/capacity.md] [--price 0.04] ...

Costs are measured; what traffic looks like, what a machine is and what it costs are assumptions that can be
given otherwise. The page says which.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from proofs.bench import page, queueing, setting, tables
from proofs.bench.results import OURS, Results, read
from proofs.bench.scenarios import BY_KEY
from proofs.bench.tables import Section, number

PLANS = (1_000, 100_000, 1_000_000)
_EPHEMERAL_PORTS = 28_232
"""Linux's own choice (32768 to 60999): connections of a machine to one address of a provider."""
_SOCKET_PAIR = 2
_MILLION = 1e6


class Missing(Exception):
    """The run has not what the plan is made of."""


class Costs(NamedTuple):
    """Measured; microseconds of processor time, KiB, calls."""

    request: float
    event: float
    stream_kib: float
    idle_mib: float
    transactions: float
    rows: float
    wal_bytes: float
    postgres_us: float
    redis_calls: float
    redis_us: float


class Traffic(NamedTuple):
    """Assumed."""

    seconds: float = 20.0
    """Of a stream."""
    events: float = 50.0
    """A second, of one stream."""
    event_bytes: float = 200.0


class Machine(NamedTuple):
    """Assumed."""

    cores: int = 16
    memory_gib: float = 64.0
    network_gbit: float = 10.0
    utilisation: float = 0.6
    """How busy a core may be planned."""
    store_cores: int = 16
    """Of the PostgreSQL server."""
    price: float = 0.04
    """Of a core for an hour; in whatever currency."""
    addresses: int = 4
    """Of the providers, among which the upstream connections are divided."""


class Plan(NamedTuple):
    streams: int
    requests: float
    """A second."""
    cores: float
    workers: int
    machines: int
    memory_gib: float
    wait_p99_ms: float
    """Of a piece of work for its worker."""
    transactions: float
    postgres_cores: float
    redis_calls: float
    redis_cores: float
    gbit: float
    ports: float
    """Connections of a machine to one address of a provider, of those it can have."""
    tightest: str
    """What is used up first, if this plan grows as it is."""


def plan(streams: int, costs: Costs, traffic: Traffic, machine: Machine) -> Plan:
    """So many streams at once, with as many new requests as end."""
    requests = streams / traffic.seconds  # Little's law
    request, event = costs.request / _MILLION, costs.event / _MILLION
    cores = requests * request + streams * traffic.events * event
    workers = _workers(streams, cores, machine.utilisation)
    # The fullest worker is the one whose clients wait.
    share = queueing.fullest(streams / workers, workers) / streams
    queue = queueing.single_server(
        [
            queueing.Work(requests * share, request),
            queueing.Work(streams * share * traffic.events, event),
        ]
    )
    memory = (streams * costs.stream_kib / 1024 + workers * costs.idle_mib) / 1024
    bits = streams * traffic.events * traffic.event_bytes * 8 * _SOCKET_PAIR / 1e9
    machines = max(
        math.ceil(workers / machine.cores),
        math.ceil(memory / (machine.memory_gib * machine.utilisation)),
        math.ceil(bits / (machine.network_gbit * machine.utilisation)),
        math.ceil(streams / (machine.addresses * _EPHEMERAL_PORTS * machine.utilisation)),
    )
    postgres, redis = requests * costs.postgres_us / _MILLION, requests * costs.redis_us / _MILLION
    ports = streams / machines / machine.addresses / _EPHEMERAL_PORTS
    used = {
        "the gateways' processors": cores / (machines * machine.cores),
        "the gateways' memory": memory / (machines * machine.memory_gib),
        "the network": bits / (machines * machine.network_gbit),
        "ports towards a provider": ports,
        "PostgreSQL": postgres / machine.store_cores,
        "Redis": redis,
    }
    return Plan(
        streams=streams,
        requests=requests,
        cores=cores,
        workers=workers,
        machines=machines,
        memory_gib=memory,
        wait_p99_ms=queue.percentile_wait(0.99) * 1000,
        transactions=requests * costs.transactions,
        postgres_cores=postgres,
        redis_calls=requests * costs.redis_calls,
        redis_cores=redis,
        gbit=bits,
        ports=ports,
        tightest=max(used, key=lambda name: used[name]),
    )


def _workers(streams: int, cores: float, utilisation: float) -> int:
    """As few as leave the fullest no busier than planned: streams come to workers at random."""
    workers = max(math.ceil(cores / utilisation), 1)
    while cores / streams * queueing.fullest(streams / workers, workers) > utilisation:
        workers += max(workers // 100, 1)
    return workers


# From a run


def costs(results: Results, *, cross: bool = True, limited: bool = False) -> Costs:
    """Of streamed requests: what one takes without its events, and one event."""
    request = figure(results, "D-ac" if cross else "A-cc", "cpu_us_req")
    event = _first(results, ("DE-ac", "DP-ac") if cross else ("E-cc", "P-cc"))
    memory = figure(results, "D1000-ac" if cross else "E1000-cc", "kib_stream")
    if OURS not in results.idle:
        raise Missing("idle memory: run `make bench ARGS=--only=start`")
    stores = results.stores.get("limited" if limited else "stream")
    if stores is None:
        raise Missing("store calls: run `make bench ARGS=--only=stores`")
    return Costs(
        request=request,
        event=event,
        stream_kib=max(memory, 1.0),
        idle_mib=results.idle[OURS]["pss"],
        transactions=stores["transactions"],
        rows=stores["rows"],
        wal_bytes=stores["wal_bytes"],
        postgres_us=stores["postgres_cpu"] * _MILLION,
        redis_calls=stores["redis_commands"],
        redis_us=stores["redis_cpu"] * _MILLION,
    )


def _first(results: Results, keys: tuple[str, ...]) -> float:
    return figure(results, next((key for key in keys if key in results.runs), keys[0]), "cpu_us_ev")


def figure(results: Results, key: str, name: str) -> float:
    found: list[float] = [one[name] for one in results.rounds(BY_KEY[key], OURS) if name in one]
    if not found:
        raise Missing(f"{key} was not measured: run `make bench ARGS=--only={key}`")
    return median(found)


# The page


_KINDS = {
    "A-cc": "a request of 2 KB, same dialect",
    "B-cc": "a request of 100 KB, same dialect",
    "D-ac": "a request of 2 KB, cross",
    "DB-ac": "a request of 100 KB, cross, never seen before",
    "E-cc": "an event of 200 paced streams, same dialect",
    "DE-ac": "an event of 200 paced streams, cross",
}


def _one_core(results: Results, machine: Machine) -> Section:
    rows = []
    for key, title in _KINDS.items():
        if key in results.runs:
            rows.append(_kind(title, figure(results, key, BY_KEY[key].cost), machine))
    for figures in results.growing.get(OURS, [])[:1]:
        each = [one["cpu_s"] * _MILLION / max(one["ok"], 1) for one in results.growing[OURS]]
        turns = len(figures["bytes"])
        rows.append(_kind(f"a turn of a conversation of {turns}, cross", median(each), machine))
    note = (
        f"At {machine.utilisation:.0%} of a core, and {machine.price:g} for a core and hour. A million "
        "requests that take a microsecond each are a second of a core."
    )
    header = ["", "us", "a second on one core", "core hours a million", "price of a million"]
    return Section("What one core carries", note, header, rows)


def _kind(title: str, cost: float, machine: Machine) -> list[str]:
    hours = cost / 3600 / machine.utilisation
    rate = machine.utilisation * _MILLION / cost
    return [title, number(cost), f"{rate:,.0f}", f"{hours:.3f}", f"{hours * machine.price:.4f}"]


def _plans(made: list[Plan]) -> Section:
    lines: list[tuple[str, Callable[[Plan], str]]] = [
        ("new requests a second", lambda one: number(one.requests)),
        ("cores at work", lambda one: number(one.cores)),
        ("workers", lambda one: f"{one.workers:,}"),
        ("machines", lambda one: f"{one.machines:,}"),
        ("memory, GiB", lambda one: number(one.memory_gib)),
        ("wait for a worker, p99, ms", lambda one: number(one.wait_p99_ms)),
        ("network, Gbit/s", lambda one: number(one.gbit)),
        ("ports to one provider address, of those there are", lambda one: f"{one.ports:.0%}"),
        ("PostgreSQL transactions a second, at most", lambda one: number(one.transactions)),
        ("PostgreSQL cores", lambda one: number(one.postgres_cores)),
        ("Redis calls a second", lambda one: number(one.redis_calls)),
        ("Redis cores", lambda one: number(one.redis_cores)),
        ("used up first", lambda one: one.tightest),
    ]
    rows = [[title, *(tell(one) for one in made)] for title, tell in lines]
    return Section("", "", ["concurrent streams", *(f"{one.streams:,}" for one in made)], rows)


def _assumed(costs: Costs, traffic: Traffic, machine: Machine) -> str:
    return (
        f"A stream of {traffic.seconds:g} s with {traffic.events:g} events a second of "
        f"{traffic.event_bytes:g} bytes; {costs.request:,.0f} us a request, {costs.event:.1f} us an event, "
        f"{costs.stream_kib:.0f} KiB a stream. Machines of {machine.cores} cores, {machine.memory_gib:g} GiB "
        f"and {machine.network_gbit:g} Gbit/s, at most {machine.utilisation:.0%} busy; {machine.addresses} "
        "addresses of providers."
    )


def sections(results: Results, traffic: Traffic, machine: Machine) -> list[Section]:
    found = [_one_core(results, machine)]
    for title, cross, limited in (
        ("Cross streams", True, False),
        ("Cross streams of keys with limits", True, True),
        ("Same-dialect streams", False, False),
    ):
        reported = costs(results, cross=cross, limited=limited)
        table = _plans([plan(streams, reported, traffic, machine) for streams in PLANS])
        found.append(table._replace(title=title, note=_assumed(reported, traffic, machine)))
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Plan capacity from a run of the benchmark.")
    parser.add_argument("source", type=Path, help="what `make bench` wrote with --json")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page, too")
    for name, value in {**Traffic()._asdict(), **Machine()._asdict()}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    arguments = parser.parse_args(argv)
    traffic = Traffic(**{name: getattr(arguments, name) for name in Traffic._fields})
    machine = Machine(**{name: getattr(arguments, name) for name in Machine._fields})
    results = read(arguments.source)
    try:
        found = sections(results, traffic, machine)
    except (Missing, queueing.Overloaded) as fault:
        raise SystemExit(f"capacity: {fault}") from None
    print(tables.as_text(setting.sentence(results.setting), found))
    if arguments.write:
        text = tables.as_markdown(setting.sentence(results.setting), found)
        page.write(arguments.write, text, page.CAPACITY)


if __name__ == "__main__":
    main()
