"""The servers of a loaded fleet as they are run where it matters, and their primaries killed.

    python -m proofs.lab.failover [--seconds 5] [--clients 8] [--only tls,postgres,redis,pgbouncer] [--seed 1]

Two gateways, and callers of both. `tls`: both servers encrypted and verified, and refused with another
authority; `postgres`: several hosts in the URL, the primary dies and its synchronous replica is promoted;
`redis`: the same by Sentinels; `pgbouncer`: in transaction mode, and restarted. In the end every acknowledged
response and turn must be there, every acknowledged request exactly once in the books, and no gateway have
been started again.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import trustme

from proofs.lab.kill import Acknowledged, Client, look, look_at_rows
from proofs.lab.result import Run, add_options
from proofs.served import Served
from proofs.server_groups import PgBouncer, PostgresPair, WatchedRedis
from proofs.servers import PostgresServer, RedisServer
from wireglot.stores import StoreUnusable, open_counters, open_engine
from wireglot.stores.records import UsageQuery

_GATEWAYS: Final = 2
_CONFIG: Final = """\
[server]
secret = "the-secret-that-all-gateways-share"
log = "json"
[limits]
drain = 1.0
[store]
url = "{store}"
shared = "{shared}"
[providers.demo]
"""


class Servers(NamedTuple):
    store: str
    shared: str
    happens: Callable[[], None]


def _tls(stack: ExitStack) -> Servers:
    authority = trustme.CA()
    postgres = stack.enter_context(PostgresServer(authority=authority))
    redis = stack.enter_context(RedisServer(authority=authority))

    def refuse_another_authority() -> None:
        trustme.CA().cert_pem.write_to_path(postgres.directory / "stranger.crt")
        stranger = str(postgres.directory / "stranger.crt")
        for url, known, opens in (
            (postgres.url, postgres.authority, open_engine),
            (redis.url, redis.authority, open_counters),
        ):
            try:
                asyncio.run(opens(url.replace(str(known), stranger)))
            except StoreUnusable:
                continue
            raise AssertionError("a server was trusted that nobody vouches for")

    return Servers(postgres.url, redis.url, refuse_another_authority)


def _postgres(stack: ExitStack) -> Servers:
    pair = stack.enter_context(PostgresPair())
    return Servers(pair.url, stack.enter_context(RedisServer()).url, pair.fail_over)


def _redis(stack: ExitStack) -> Servers:
    watched = stack.enter_context(WatchedRedis())
    return Servers(stack.enter_context(PostgresServer()).url, watched.url, watched.fail_over)


def _pgbouncer(stack: ExitStack) -> Servers:
    pooler = stack.enter_context(PgBouncer(stack.enter_context(PostgresServer())))
    return Servers(pooler.url, stack.enter_context(RedisServer()).url, pooler.restart)


CASES: Final = {"tls": _tls, "postgres": _postgres, "redis": _redis, "pgbouncer": _pgbouncer}


class Outcome:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.restarted = 0


async def trial(name: str, arguments: argparse.Namespace, folder: Path, outcome: Outcome) -> None:
    with ExitStack() as stack:
        servers = await asyncio.to_thread(CASES[name], stack)
        toml = _CONFIG.format(store=servers.store, shared=servers.shared)
        gateways = [Served(folder / f"{name}-{number}", toml) for number in range(_GATEWAYS)]
        for gateway in gateways:
            await asyncio.to_thread(gateway.start)
            stack.callback(gateway.kill)
        acknowledged = Acknowledged()
        clients = [
            Client(
                gateways[n % _GATEWAYS].port, n, random.Random(f"{arguments.seed} {name} {n}"), acknowledged
            )
            for n in range(arguments.clients)
        ]
        stopped = asyncio.Event()
        tasks = [asyncio.create_task(client.run(stopped)) for client in clients]
        await asyncio.sleep(arguments.seconds)
        before = len(acknowledged.responses)
        await asyncio.to_thread(servers.happens)
        during = len(acknowledged.responses)
        await asyncio.sleep(arguments.seconds)
        stopped.set()
        await asyncio.gather(*tasks)
        if len(acknowledged.responses) == during:
            outcome.problems.append(f"{name}: nothing was stored any more")
        outcome.restarted += sum(gateway.ended() is not None for gateway in gateways)
        problems = await look(gateways[-1], acknowledged)
        for gateway in gateways:
            await asyncio.to_thread(gateway.stop)
        engine = await open_engine(servers.store)
        rows = await engine.ledger.rows(UsageQuery(), limit=10_000_000)
        await engine.close()
        outcome.problems += [f"{name}: {each}" for each in problems + look_at_rows(rows, acknowledged)]
    outcome.counts[f"{name}: acknowledged requests"] = len(acknowledged.requests)
    outcome.counts[f"{name}: acknowledged responses before"] = before
    outcome.counts[f"{name}: acknowledged responses"] = len(acknowledged.responses)
    outcome.counts[f"{name}: refused or delivered without being stored"] = (
        sum(acknowledged.refused.values()) + acknowledged.unstored
    )
    outcome.counts[f"{name}: cut off"] = acknowledged.broken
    if acknowledged.broken:
        outcome.problems.append(f"{name}: {acknowledged.broken} answers broke off")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.failover", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of load before it happens, and after")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--only", default=",".join(CASES), help="by commas")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    run = Run(
        "failover",
        "TLS to PostgreSQL and Redis; the primary dies, a replica is promoted; PgBouncer in transaction mode",
        seed=arguments.seed,
    )
    outcome = Outcome()
    for name in arguments.only.split(","):
        print(name, flush=True)
        with tempfile.TemporaryDirectory(prefix="failover-") as folder:
            asyncio.run(trial(name, arguments, Path(folder), outcome))
    run.tell(outcome.problems)
    run.counts.update(outcome.counts)
    lost = len(outcome.problems)
    run.figure("acknowledged and lost, doubled or wrong", demanded="0", measured=lost, holds=lost == 0)
    again = outcome.restarted
    run.figure("gateways that had to be restarted", demanded="0", measured=again, holds=again == 0)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
