"""Make what a running gateway leaves behind after `kill -9`, with all that its clients were sent by then.

    python -m proofs.lab.leave_behind OUT [--tree CHECKOUT] [--python PYTHON] [--fleet]

A gateway with the demo model and a SQLite store is asked everything that it remembers something of, in every
dialect. Then its store is locked from outside, so that the last requests reach the journal and nothing else,
and the process is killed. OUT gets `wireglot.toml`, `client_record.json` and `data.tar.gz` (databases, WAL,
journals).

With `--fleet` the same clients are served on a private PostgreSQL and Redis, and OUT gets `fleet.json`: the
tables, and what lies in Redis.

`--tree` is the checkout that is run (with `--python`, if it has an environment of its own), so that one
version can be started on what another left behind: see tests/upgrade. The machine's name is part of what is
left; where that matters: `unshare --uts sh -c 'hostname gateway-1 && exec python -m ...'`.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import msgspec

from proofs.lab.client_record import ClientRecord, write_client_record
from proofs.lab.fleet_forms import FleetForms, read_fleet
from proofs.lab.forms import journal_rows, read_database
from proofs.lab.scenario import Clients, until
from proofs.lab.scenario_config import CONFIG, UPSTREAM
from proofs.served import HERE, Served, Tree
from proofs.servers import PostgresServer, RedisServer
from wireglot.testing.scripted_upstream import ScriptedUpstream

WORKERS: Final = 2
"""Two, so that there are counters that processes share, and journals of several."""
ARCHIVE: Final = "data.tar.gz"
FLEET: Final = "fleet.json"
_DATA: Final = "wireglot"
_BUSY_MILLISECONDS: Final = 10_000


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody can write to it meanwhile. What is in its WAL stays there."""
    connection = apsw.Connection(str(database))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close(True)


async def leave_behind(folder: Path, tree: Tree = HERE) -> ClientRecord:
    """In `folder`: the configuration and the data, as the killed process left them."""
    reported = ClientRecord()
    with ScriptedUpstream() as upstream:
        reported.config_check = Served(folder, CONFIG, tree=tree).run("config", "check", "wireglot.toml")
        gateway = Served(folder, CONFIG.replace(UPSTREAM, upstream.url), workers=WORKERS, tree=tree)
        await _live(gateway, Clients(gateway.port, upstream, reported), reported)
    (folder / "wireglot.toml").write_text(CONFIG, encoding="utf-8")
    return reported


async def _live(gateway: Served, clients: Clients, reported: ClientRecord) -> None:
    gateway.start()
    data = gateway.folder / _DATA
    database = data / "wireglot.db"
    try:
        await clients.have_things_kept()
        _checkpoint(database)
        await clients.have_more_kept()
        await until(lambda: _is_applied(database, reported))
        await clients.when_the_store_has_it()
        with locked(database):
            await clients.be_killed_in_the_middle(lambda: _is_in_journal(data, reported))
            gateway.kill()
            reported.killed = int(time.time() * 1000)
        await clients.hung_up()
    finally:
        clients.close()
        gateway.kill()


async def leave_in_fleet(folder: Path, tree: Tree = HERE) -> FleetForms:
    """What a killed gateway of a fleet left in PostgreSQL and Redis."""
    reported = ClientRecord()
    with PostgresServer() as postgres, RedisServer() as redis, ScriptedUpstream() as upstream:
        stores = {"WIREGLOT_STORE": postgres.url, "WIREGLOT_SHARED": redis.url}
        gateway = Served(folder, CONFIG.replace(UPSTREAM, upstream.url), tree=tree, environ=stores)
        gateway.start()
        clients = Clients(gateway.port, upstream, reported)
        try:
            await clients.have_things_kept()
            await clients.have_more_kept()
            await clients.be_killed_in_the_middle(lambda: _is_in_journal(folder / _DATA, reported))
            gateway.kill()
            return await read_fleet(postgres.url, redis.url)
        finally:
            clients.close()
            gateway.kill()


def pack(folder: Path, reported: ClientRecord, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "wireglot.toml", out)
    write_client_record(reported, out)
    with tarfile.open(out / ARCHIVE, "w:gz", compresslevel=9) as archive:
        archive.add(folder / _DATA, _DATA, filter=_anonymous)


def unpack(packed: Path, folder: Path) -> None:
    """What `pack` has packed, where a gateway can be started on it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(packed / "wireglot.toml", folder)
    with tarfile.open(packed / ARCHIVE) as archive:
        archive.extractall(folder, filter="data")


def _checkpoint(database: Path) -> None:
    """So that some of it lies in the database itself, and the rest in its WAL."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close(True)


def _is_applied(database: Path, reported: ClientRecord) -> bool:
    """Whether the store has all that clients were sent: only then is what follows known to be missing."""
    done = {row["id"] for row in read_database(database).tables["usage"] if row["outcome"]}
    return done >= set(reported.requests)


def _is_in_journal(data: Path, reported: ClientRecord) -> bool:
    rows = journal_rows(data)
    done = {row["id"] for row in rows if row.get("outcome")}
    begun = [row for row in rows if row["id"] not in done]
    return done >= set(reported.requests) and len(begun) == sum(reported.crashed.values())


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    parser = argparse.ArgumentParser(description="Make what a gateway leaves behind after kill -9.")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--tree", type=Path, metavar="CHECKOUT", help="what is run; without it this one")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="by which interpreter")
    parser.add_argument("--fleet", action="store_true", help="on PostgreSQL and Redis, and only their forms")
    given = parser.parse_args()
    tree = Tree(given.tree.resolve() if given.tree else None, given.python)
    with tempfile.TemporaryDirectory(prefix="wireglot-left-") as temporary:
        if given.fleet:
            forms = asyncio.run(leave_in_fleet(Path(temporary), tree))
            (given.out / FLEET).write_bytes(msgspec.json.format(msgspec.json.encode(forms), indent=1) + b"\n")
            return
        record = asyncio.run(leave_behind(Path(temporary), tree))
        pack(Path(temporary), record, given.out)
    size = sum(path.stat().st_size for path in given.out.iterdir())
    print(
        f"{len(record.requests)} requests acknowledged, {len(record.unapplied)} of them only in the journal, "
        f"{sum(record.crashed.values())} open; {len(record.fetched)} things stored, {len(record.again)} "
        f"questions that build on them; {size:,} bytes in {given.out}"
    )


if __name__ == "__main__":
    main()
