"""The disk fails under the store: no crash, nothing that was acknowledged is lost, and it recovers.

1. The n-th operation on the disk fails, for n = 1, 2, 3 ... until a run comes through without meeting one:
   reads, writes, syncs, truncations, openings and deletions of the database, its WAL and the usage journal.
   Once, or from then on until the disk is repaired; with a half-written page; or for want of space.
2. A gateway whose files may not grow (RLIMIT_FSIZE, as a full disk), under requests, until they may again.
3. A database that is damaged: bytes changed, cut short, emptied; before a start, and while it is open.
4. Clocks that jump, by seconds and by decades, forwards and back.

    python -m proofs.lab.store_faults [--every N] [--damages N] [--seed N]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from proofs.lab.failing_disk import WAYS, FailingDisk, FailingVfs, Trouble, Way
from proofs.lab.link import Link, Reply
from proofs.lab.progress import Progress
from proofs.lab.result import Run, add_options
from proofs.served import Served
from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.journal.files import orphans
from wireglot.stores.journal.journal import Journal, JournalFull
from wireglot.stores.journal.sync import Timing
from wireglot.stores.records import Document, KeyRow, Rate, UsageQuery, UsageRow
from wireglot.stores.seal import SealedDocuments, Sealer
from wireglot.stores.sqlite import SqliteCounters, SqliteEngine

T = TypeVar("T")

_TRIES: Final = 3
"""After one fault, that each piece of work has: the fault itself takes one of them."""
_BUSY_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 60.0
_TYPED: Final = (StoreDown, StoreUnusable, JournalFull)
_HURRIED: Final = Timing(gather=0.0, later=0.001, retry=0.005)
_JOURNAL_BYTES: Final = 256 * 1024
_HOUR_SECONDS: Final = 3600.0
_KINDS: Final = ("k", "pieces")


class Bench:
    """One store and one journal, worked on while their disk fails; what was acknowledged is remembered."""

    def __init__(self, folder: Path, trouble: Trouble, problems: list[str], name: str) -> None:
        self._folder = folder
        self._trouble = trouble
        self._problems = problems
        self._name = name
        self._engine: SqliteEngine | None = None
        self.documents: dict[tuple[str, str], bytes] = {}
        self.rows: set[str] = set()
        self.keys: set[str] = set()

    def wrong(self, what: str) -> None:
        self._problems.append(f"{self._name}: {what}")

    async def run(self) -> None:
        """Work of every kind. What fails is tried again, and must go well once the disk is."""
        await self._try(self._open)
        journal = Journal(
            self._folder / "journal",
            "one",
            limit=_JOURNAL_BYTES,
            timing=_HURRIED,
            disk=FailingDisk(self._trouble),
        )
        await self._tried(journal.start)
        for turn in range(3):
            for number in range(2):
                await self._try(partial(self._put, f"{turn}-{number}"))
            await self._try(partial(self._append, turn))
            await self._try(partial(self._key, f"key-{turn}"))
            await self._try(partial(self._book, journal, f"row-{turn}"))
            await self._try(self._read_all)
            await self._try(lambda: self._drain(journal))
        await self._try(self._tidy)
        self._trouble.repair()
        # From here on nothing fails any more: everything must go well, without a new start.
        await self._must(lambda: self._put("after"))
        await self._must(lambda: self._book(journal, "row-after"))
        await self._must(self._read_all)
        await journal.close()
        await self._closed()

    async def found(self) -> None:
        """The one that comes next finds all of it."""
        engine = await SqliteEngine.open(str(self._folder / "store.db"))
        for orphan in orphans(self._folder / "journal", "two"):
            for rows in orphan.rows():
                await engine.ledger.apply(rows)
            orphan.remove()
        if await engine._database.report(lambda c: c.pragma("integrity_check")) != "ok":
            self.wrong("the database is damaged")
        there = {
            (kind, each.id): each.body
            for kind in _KINDS
            for each in await engine.documents.recent("t", kind, limit=10**6)
        }
        for name, body in self.documents.items():
            if there.get(name) != body:
                self.wrong(f"acknowledged and lost: document {name}")
        booked = {row.id for row in await engine.ledger.rows(UsageQuery(), limit=10**6)}
        if missing := self.rows - booked:
            self.wrong(f"acknowledged and lost: rows {sorted(missing)}")
        keys = {row.name for row in await engine.keys.all()}
        if missing := self.keys - keys:
            self.wrong(f"acknowledged and lost: keys {sorted(missing)}")
        await engine.close()

    # Work.

    async def _open(self) -> None:
        if self._engine is None:
            self._engine = await SqliteEngine.open(str(self._folder / "store.db"), busy=_BUSY_SECONDS)
            # Often, so that its operations are among those that fail.
            await self._engine._database.write(lambda c: c.wal_autocheckpoint(8))

    async def _store(self) -> SqliteEngine:
        await self._open()
        assert self._engine is not None
        return self._engine

    async def _put(self, id: str) -> None:
        engine, body = await self._store(), hashlib.sha256(id.encode()).digest() * 200
        await engine.documents.put([Document("t", "k", id, body)])
        self.documents["k", id] = body
        await engine.vault.keep("t", {id: body}, 3600)

    async def _append(self, turn: int) -> None:
        engine = await self._store()
        piece = Document("t", "pieces", f"piece-{turn}", b"x" * 100, parent="p")
        await engine.documents.append([piece])
        self.documents["pieces", piece.id] = piece.body

    async def _key(self, name: str) -> None:
        engine = await self._store()
        await engine.keys.put(KeyRow(name, hashlib.sha256(name.encode()).hexdigest(), "wg", created=1))
        self.keys.add(name)

    async def _book(self, journal: Journal, id: str) -> None:
        sequence = journal.append(UsageRow(id, "t", 1, instance="one"), gather=True)
        await journal.synced(sequence)
        if not journal.holds(sequence):
            raise JournalFull("not on the disk")
        self.rows.add(id)

    async def _drain(self, journal: Journal) -> None:
        engine = await self._store()
        while True:
            rows, position = journal.read(100)
            if not rows:
                return
            await engine.ledger.apply(rows)
            journal.applied(position)

    async def _read_all(self) -> None:
        engine = await self._store()
        for kind in _KINDS:
            found = {each.id: each.body for each in await engine.documents.recent("t", kind, limit=1000)}
            for (own, id), body in self.documents.items():
                if own == kind and found.get(id) != body:
                    self.wrong(f"acknowledged and not found: document {id}")

    async def _tidy(self) -> None:
        engine = await self._store()
        await engine.check()
        await engine.sweep(1, usage_before=0, dead_before=0, kinds={})
        await engine._database.write(lambda c: c.wal_autocheckpoint(1))
        await engine.check()

    # How it goes.

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        for _ in range(_TRIES):
            if await self._tried(work):
                return

    async def _must(self, work: Callable[[], Awaitable[None]]) -> None:
        """The journal looks again after a moment, and a connection is made again once: a few tries."""
        for _ in range(200):
            if await self._tried(work):
                return
            await asyncio.sleep(0.005)
        self.wrong("it does not recover")

    async def _tried(self, work: Callable[[], Awaitable[None]]) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await work()
        except _TYPED:
            return False
        except TimeoutError:
            self.wrong("it hangs")
        except Exception as bug:  # which the trial is there to find
            self.wrong(f"an error without a type: {type(bug).__name__}: {bug}")
        else:
            return True
        return False

    async def _closed(self) -> None:
        if self._engine is not None:
            await self._engine.close()


async def nth(at: int, way: Way, problems: list[str]) -> Trouble:
    """One run in which the n-th operation fails."""
    trouble = Trouble()
    with tempfile.TemporaryDirectory(prefix="store-faults-") as work:
        bench = Bench(Path(work), trouble, problems, f"{way}, operation {at}")
        disk = FailingVfs(trouble)
        try:
            trouble.arm(at, way)
            await bench.run()
        finally:
            trouble.repair()
            disk.close()
        await bench.found()
    return trouble


async def every_operation(every: int, progress: Progress) -> None:
    for piece in progress.left(WAYS):
        way = next(known for known in WAYS if known == piece)
        at = 1 + random.Random(piece).randrange(every)
        while True:
            trouble = await nth(at, way, progress.problems)
            progress.counts[f"runs, {way}"] += 1
            for operation, count in trouble.failed.items():
                progress.counts[f"failed {operation}"] += count
            if not trouble.struck and at > trouble.seen.total():
                progress.counts[f"operations of a run, {way}"] = trouble.seen.total()
                break
            at += every
        print(f"{way}: {at} operations, {len(progress.problems)} wrong", flush=True)


# A full disk.


async def full_disk(progress: Progress, rounds: int) -> None:
    """A gateway whose files may not grow. The limit is set from outside while it runs, and lifted again."""
    with tempfile.TemporaryDirectory(prefix="store-full-") as work:
        served = Served(Path(work), '[providers.demo]\n[store]\nurl = "sqlite:store.db"\n')
        await asyncio.to_thread(served.start)
        try:
            await _fill(served, progress, rounds)
        finally:
            await asyncio.to_thread(served.stop)


async def _fill(served: Served, progress: Progress, rounds: int) -> None:
    wrong, counts = progress.problems, progress.counts
    kept: dict[str, str] = {}
    asked = 0

    async def respond(word: str) -> Reply:
        nonlocal asked
        asked += 1
        reply = await _ask(
            served, "POST", "/v1/responses", {"model": "demo", "input": f"[[demo:echo]] {word}"}
        )
        if reply.status != 200 or word not in reply.body.decode():
            wrong.append(f"full disk: an answer is missing: {reply.status} {reply.body[:200]!r}")
        elif reply.json()["store"]:
            kept[reply.json()["id"]] = word
        else:
            counts["full disk: delivered and not stored"] += 1
        return reply

    for turn in range(rounds):
        for number in range(5):
            await respond(f"before-{turn}-{number}")
        file = served.folder / "store.db-wal"
        size = max(path.stat().st_size for path in (file, served.folder / "store.db") if path.exists())
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (size + 512, resource.RLIM_INFINITY))
        for number in range(12):
            await respond(f"full-{turn}-{number}")
        if served.ended() is not None:
            wrong.append("full disk: the gateway has ended")
            return
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await _until_ready(served, wrong)
        reply = await respond(f"after-{turn}")
        if not reply.json().get("store"):
            wrong.append("full disk: it does not recover")
    for id, word in kept.items():
        reply = await _ask(served, "GET", f"/v1/responses/{id}")
        if reply.status != 200 or word not in reply.body.decode():
            wrong.append(f"full disk: acknowledged and lost: {id}")
    await asyncio.to_thread(served.stop)
    booked = served.run("usage", "--json")
    if f'"requests":{asked}' not in booked.replace(" ", ""):
        wrong.append(f"full disk: the books do not say {asked} requests: {booked[:300]}")
    counts["full disk: stored"] += len(kept)
    await asyncio.to_thread(served.start)


async def _ask(served: Served, method: str, path: str, body: Any = None) -> Reply:
    link = Link(served.port)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await link.ask(method, path, body)
    finally:
        link.close()


async def _until_ready(served: Served, wrong: list[str]) -> None:
    for _ in range(600):
        if (await _ask(served, "GET", "/readyz")).json()["status"] == "ready":
            return
        await asyncio.sleep(0.05)
    wrong.append("full disk: it is not ready again")


# A damaged file.


async def damaged(seed: int, count: int, progress: Progress) -> None:
    chance = random.Random(seed)
    sealer = Sealer(b"a secret of the trial, and of nobody else")
    said = {f"d{number}": hashlib.sha256(str(number).encode()).digest() * 40 for number in range(60)}
    with tempfile.TemporaryDirectory(prefix="store-damaged-") as work:
        good = Path(work) / "good.db"
        engine = await SqliteEngine.open(str(good))
        await SealedDocuments(engine.documents, sealer, print).put(
            [Document("t", "k", id, body) for id, body in said.items()]
        )
        await engine.ledger.apply([UsageRow(id, "t", 1, outcome="ok") for id in said])
        await engine.close()
        for number in range(count):
            path = Path(work) / "bad.db"
            for old in Path(work).glob("bad.db*"):
                old.unlink()
            shutil.copyfile(good, path)
            open_first = number % 3 == 2
            name = f"damage {number} (seed {seed}{', while it is open' if open_first else ''})"
            running = await SqliteEngine.open(str(path), busy=_BUSY_SECONDS) if open_first else None
            _damage(path, chance)
            before = path.read_bytes()
            outcome = await _read_damaged(path, running, sealer, said, name, progress.problems)
            if outcome == "refused" and path.read_bytes() != before:
                progress.problems.append(f"{name}: refused, and changed")
            progress.counts[f"damaged files: {outcome}"] += 1
        again = await SqliteEngine.open(str(good))
        if len(await again.documents.recent("t", "k", limit=1000)) != len(said):
            progress.problems.append("damage: the copy that was put by is not whole")
        await again.close()


def _damage(path: Path, chance: random.Random) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        match chance.randrange(5):
            case 0:
                file.truncate(chance.randrange(size))
            case 1:
                file.truncate(0)
            case 2:  # a page of something else
                file.seek(chance.randrange(max(1, size // 4096)) * 4096)
                file.write(chance.randbytes(4096))
            case 3:
                file.seek(chance.randrange(100))  # the header
                file.write(chance.randbytes(chance.randrange(1, 32)))
            case _:
                for _ in range(chance.randrange(1, 30)):
                    file.seek(chance.randrange(size))
                    file.write(chance.randbytes(1))


async def _read_damaged(
    path: Path,
    engine: SqliteEngine | None,
    sealer: Sealer,
    said: dict[str, bytes],
    name: str,
    problems: list[str],
) -> str:
    try:
        engine = engine or await SqliteEngine.open(str(path), busy=_BUSY_SECONDS)
    except (StoreDown, StoreUnusable):
        return "refused"
    except Exception as bug:  # which the trial is there to find
        problems.append(f"{name}: an error without a type: {type(bug).__name__}: {bug}")
        return "wrong"
    unreadable: list[str] = []
    documents = SealedDocuments(engine.documents, sealer, unreadable.append)
    outcome = "opened, and read"
    works: list[Callable[[], Awaitable[Any]]] = [
        lambda: documents.put([Document("t", "k", "new", b"n" * 500)]),
        engine.check,
        lambda: engine.ledger.apply([UsageRow("new", "t", 1)]),
        lambda: engine.keys.all(),
    ]
    for id, body in said.items():
        found = await _typed(partial(documents.get, "t", "k", [id]), name, problems)
        if found is None:
            outcome = "opened, and reported when it was used"
        elif any(each.body != body for each in found[0]):
            problems.append(f"{name}: a wrong value is handed out")
    for work in works:
        if await _typed(work, name, problems) is None:
            outcome = "opened, and reported when it was used"
    if unreadable:
        outcome = "opened, and reported when it was used"
    with suppress(StoreDown):
        await engine.close()
    return outcome


async def _typed(work: Callable[[], Awaitable[T]], name: str, problems: list[str]) -> tuple[T] | None:
    """What it gives; None: it was reported as an error of the store."""
    try:
        return (await work(),)
    except (StoreDown, StoreUnusable):
        return None
    except Exception as bug:  # which the trial is there to find
        problems.append(f"{name}: an error without a type: {type(bug).__name__}: {bug}")
        return None


# Clocks.


class _Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


_JUMPS_SECONDS: Final = (
    1.0, -1.0, 90.0, -90.0, _HOUR_SECONDS, -_HOUR_SECONDS, 86_400.0, -86_400.0, 366 * 86_400.0,
    -366 * 86_400.0, 20 * 366 * 86_400.0, -20 * 366 * 86_400.0, -50 * 366 * 86_400.0,
)  # fmt: skip


async def clocks(seed: int, rounds: int, progress: Progress) -> None:
    """What does not end by itself is never lost; what does comes back with its time where nobody has swept;
    no limit, place or lock stays shut for longer than it says."""
    chance = random.Random(seed)
    for number in range(rounds):
        jumps = [chance.choice(_JUMPS_SECONDS) for _ in range(chance.randrange(1, 6))]
        name = f"clock {jumps}"
        try:
            await _jump(jumps, name, progress.problems)
        except Exception as bug:  # which the trial is there to find
            progress.problems.append(f"{name}: an error without a type: {type(bug).__name__}: {bug}")
        progress.counts["clocks that jumped"] += len(jumps)
        progress.counts["rounds of clocks"] = number + 1


async def _jump(jumps: list[float], name: str, problems: list[str]) -> None:
    clock = _Clock()
    with tempfile.TemporaryDirectory(prefix="store-clock-") as work:
        engine = await SqliteEngine.open(str(Path(work) / "store.db"), clock=clock)
        counters = await SqliteCounters.open(str(Path(work) / "counters.db"), clock=clock)
        stays: set[str] = set()
        begun = clock.now
        ends = Document("t", "k", "ends", b"x", expires=int((begun + _HOUR_SECONDS) * 1000))
        await engine.documents.put([ends])
        claim = Rate("r", 1, 60, 60.0)
        for turn, seconds in enumerate(jumps):
            for _ in range(60):
                await counters.take([claim])
            await counters.lock("l", f"holder-{turn}", 30.0)
            await counters.enter("p", f"holder-{turn}", 1, 30.0)
            clock.now = max(0.0, clock.now + seconds)
            await counters.check()  # somebody always asks
            id = f"stays-{turn}"
            await engine.documents.put([Document("t", "k", id, b"y", created=int(clock.now * 1000))])
            await engine.ledger.apply([UsageRow(id, "t", int(clock.now * 1000), outcome="ok")])
            stays.add(id)
            found = {each.id for each in await engine.documents.get("t", "k", [*stays, "ends"])}
            if not stays <= found:
                problems.append(f"{name}: lost {sorted(stays - found)}")
            if ("ends" in found) != (clock.now < begun + _HOUR_SECONDS):
                problems.append(f"{name}: what ends is there at the wrong time")
            # By its own clock, from here on: nothing is shut for longer than it says.
            clock.now += 61.0
            if await counters.take([claim]) is not None:
                problems.append(f"{name}: a limit stays shut")
            if not await counters.lock("l", "another", 30.0):
                problems.append(f"{name}: a lock stays shut")
            if not await counters.enter("p", "another", 1, 30.0):
                problems.append(f"{name}: a place stays taken")
            await counters.unlock("l", "another")
            await counters.leave("p", "another")
            clock.now += 200.0
        rows = {row.id for row in await engine.ledger.rows(UsageQuery(), limit=1000)}
        if rows != stays:
            problems.append(f"{name}: lost rows {sorted(stays - rows)}")
        await counters.close()
        await engine.close()


async def _run(arguments: argparse.Namespace, progress: Progress) -> None:
    await every_operation(arguments.every, progress)
    for piece in progress.left(("full disk", "damaged", "clocks")):
        if piece == "full disk":
            await full_disk(progress, arguments.fillings)
        elif piece == "damaged":
            await damaged(arguments.seed, arguments.damages, progress)
        else:
            await clocks(arguments.seed, arguments.damages // 4 + 1, progress)
        print(f"{piece}: {dict(progress.counts)}, {len(progress.problems)} wrong", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.store_faults", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="fail every n-th operation only")
    parser.add_argument("--damages", type=int, default=600, help="files that are damaged")
    parser.add_argument("--fillings", type=int, default=5, help="times that the disk is full")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    run = Run(
        "store_faults",
        "the n-th I/O operation of the store fails, n = 1, 2, 3 ...; disk full; file damaged; clock jumps",
        seed=arguments.seed,
    )
    options = f"{arguments.every} {arguments.damages} {arguments.fillings} {arguments.seed}"
    progress = Progress("store_faults", options, arguments.out)
    # A failure within SQLite that it can do without is reported by apsw on stderr, and is no news here.
    sys.unraisablehook = lambda _: None
    asyncio.run(_run(arguments, progress))
    run.tell(progress.problems)
    run.counts.update(progress.counts)
    run.unfinished = arguments.every > 1
    lost = sum("lost" in problem or "not found" in problem for problem in progress.problems)
    run.figure("acknowledged and lost", demanded="0", measured=lost, holds=lost == 0)
    stuck = sum("recover" in problem or "hangs" in problem for problem in progress.problems)
    run.figure("not recovered", demanded="0", measured=stuck, holds=stuck == 0)
    wrong = len(progress.problems)
    run.figure("crashes, untyped errors, and all else wrong", demanded="0", measured=wrong, holds=wrong == 0)
    progress.end()
    return run.write(arguments.out, seconds=progress.seconds)


if __name__ == "__main__":
    sys.exit(main())
