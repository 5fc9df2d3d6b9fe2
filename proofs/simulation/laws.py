"""What must hold, whatever happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from proofs.simulation.clients import Asked, Client
from proofs.simulation.loop import SimTask
from wireglot.stores import open_engine
from wireglot.stores.base import StoreDown
from wireglot.stores.records import UsageQuery, UsageRow

if TYPE_CHECKING:
    from proofs.simulation.world import Worker, World


_T = TypeVar("_T")
_MORE_CALLS = 5
_UNSYNCED_SECONDS = 1.0
"""After which the end of a request is on the disk, though nobody waits for it."""
KEY = "bob-opens-with-this-key"
"""That of a caller without limits."""


def after_end(world: World, worker: Worker) -> None:
    """A process that has ended in good order leaves nothing behind."""
    own = asyncio.current_task()
    left = [
        task
        for task in asyncio.all_tasks()
        if isinstance(task, SimTask) and task.owner is worker and task is not own and not task.done()
    ]
    for task in sorted(left, key=lambda task: task.number):
        world.broken("no task remains", f"{worker.name}: {getattr(task.get_coro(), '__qualname__', task)}")
    for endpoint in world.network.open:
        if endpoint.owner is worker and not endpoint.lost and endpoint.protocol is not None:
            world.broken("no connection remains", f"{worker.name}: {endpoint.number}")
    assert worker.process is not None
    _permits(world, worker)


def at_rest(world: World, worker: Worker) -> None:
    """Nobody asks for anything: then nothing is held."""
    process = worker.process
    assert process is not None
    _permits(world, worker)
    state = process.state
    # A client that is gone without a word has time to send the rest of its request.
    arriving = sum(connection._have for connection in process.server._hub.connections)
    held: dict[str, Any] = {
        "bytes": process.server.buffered - arriving,
        "provider connections in use": process._http.open_connections - process._http.idle_connections,
        "reservations": len(state.quotas._claims)
        + len(state.quotas.leases._running)
        + state.quotas.budgets._reserved.total(),
        "open accounts": len(state.ledger._open),
        "journal": state.ledger.journal.pending,
    }
    for what, amount in held.items():
        if amount:
            world.broken("nothing is held", f"{worker.name}: {what}: {amount}")


def _permits(world: World, worker: Worker) -> None:
    process = worker.process
    assert process is not None
    for what, amount in (
        ("permits", process.gateway.permits),
        ("waiting", process.gateway.waiting),
        ("requests", process.server.requests),
    ):
        if amount:
            world.broken("no permit remains", f"{worker.name}: {what}: {amount}")


async def ask_for_everything(world: World) -> None:
    """What was acknowledged is there; and a new request is answered."""
    client = world.clients[0]
    for other in world.clients:
        for asked in list(other.asked):
            check_answer(world, asked)
            if asked.background:
                await _background(world, client, asked)
            elif asked.response_id:
                found = await client.get(f"/v1/responses/{asked.response_id}", asked.key)
                if found.status != 200 or asked.mark.encode() not in found.body:
                    world.broken(
                        "nothing is lost",
                        f"response of {asked.mark}: {found.status} {found.body[:200]!r} {found.problem}",
                    )
            if asked.session and asked.acknowledged:
                await _session(world, client, asked)
    check_repeats(world)
    for number in range(8):  # a provider's key that was refused rests for a minute
        asked = Asked(f"mark{client.number}x999{number}y", "openai-chat", False, KEY)
        await client.ask(asked, patient=True)
        check_answer(world, asked)
        if asked.acknowledged:
            return
        await asyncio.sleep(10)
    world.broken("it recovers", f"{client.asked[-1].status} {client.asked[-1].body[:200]!r}")


async def _background(world: World, client: Client, asked: Asked) -> None:
    """It has ended, or its process has died and others find that out."""
    if not asked.response_id:
        return
    status, found = "queued", Asked("", "openai-responses", False, asked.key)
    for _ in range(12):
        if status not in ("queued", "in_progress"):
            break
        found = await client.get(f"/v1/responses/{asked.response_id}", asked.key)
        status = msgspec.json.decode(found.body).get("status") if found.status == 200 else ""
        if status in ("queued", "in_progress"):
            await asyncio.sleep(10)
    if status not in ("completed", "failed", "incomplete", "cancelled"):
        world.broken("background work ends", f"{asked.mark}: {found.status} {status} {found.body[:200]!r}")
    world.counts["background"] += 1


async def _session(world: World, client: Client, asked: Asked) -> None:
    if "storage" in asked.headers.get("x-wireglot-losses", ""):
        return  # it says itself that it was not kept
    if asked.stream and _is_unstored(world, asked):
        return  # the log says it: the head of the answer was out by then
    found = await client.get(f"/v1/sessions/{asked.session}?limit=1000", asked.key)
    if found.status != 200 or asked.mark.encode() not in found.body:
        world.broken(
            "nothing is lost", f"turn {asked.mark} of {asked.session}: {found.status} {found.body[:200]!r}"
        )
    world.counts["turns"] += 1


def _is_unstored(world: World, asked: Asked) -> bool:
    entries = (msgspec.json.decode(line) for line in (world.root / "log").read_bytes().splitlines())
    request = asked.headers["x-wireglot-request-id"]
    return any(entry["event"] == "not stored" and entry["id"] == request for entry in entries)


def check_answer(world: World, asked: Asked) -> None:
    """One answer, by itself."""
    world.counts["requests"] += 1
    world.counts["acknowledged"] += asked.acknowledged
    if asked.status != 200:
        return
    streamed = asked.stream and asked.headers.get("content-type", "").startswith("text/event-stream")
    if streamed and (asked.ends > 1 or (asked.whole and asked.ends != 1)):
        how = f"{asked.mark} ({asked.dialect}): {asked.ends} ends, {asked.body[-300:]!r}"
        world.broken("every stream ends once", how)
    if asked.acknowledged and asked.mark.encode() not in asked.body:
        world.broken("everyone gets their own answer", f"{asked.mark}: {asked.body[:300]!r}")
    for other in _marks(world):
        if other != asked.mark and other.encode() in asked.body and not asked.stored:
            world.broken("everyone gets their own answer", f"{asked.mark} was told {other}")


def _marks(world: World) -> set[str]:
    return {asked.mark for client in world.clients for asked in client.asked}


def check_repeats(world: World) -> None:
    """An answer under an Idempotency-Key is given again, byte for byte."""
    for client in world.clients:
        told: dict[str, Asked] = {}
        for asked in client.asked:
            if not asked.idempotency or not asked.acknowledged:
                continue
            before = told.setdefault(asked.idempotency, asked)
            if before is not asked and before.body != asked.body and not world.store_faults:
                world.broken("nothing is doubled", f"{asked.mark}: answered twice, and not the same")


async def budgets(world: World) -> None:
    """What a key has used of its budget is what the ledger says, where no process died in between."""
    for worker in world.living():
        process = worker.process
        assert process is not None
        state, settings = process.state, process.gateway.settings
        await state.ledger.flush(5.0)
        for key in settings.keys:
            for standing in await _in_the_end(partial(state.quotas.budgets.standings, key, settings)):
                if standing.used < 0:
                    world.broken("no budget is negative", f"{key.name}: {standing}")
                if world.kills or world.power_losses or world.store_faults:
                    continue
                tokens, money = await _in_the_end(partial(state.engine.ledger.spent, key.name, 0))
                spent = tokens if standing.unit == "tokens" else money
                if standing.used != spent and world.workers == 1:
                    world.broken(
                        "budgets add up",
                        f"{key.name}: {standing.used} {standing.unit}, the ledger says {spent}",
                    )


async def _in_the_end(call: Callable[[], Awaitable[_T]]) -> _T:
    """What a store answers: a process that is paused for a moment gives up a call, as it may, and no law is
    broken by that."""
    for _ in range(_MORE_CALLS):
        with contextlib.suppress(StoreDown):
            return await call()
        await asyncio.sleep(1)
    return await call()


def log(world: World) -> None:
    """What the gateway itself calls a bug is one."""
    for line in (world.root / "log").read_bytes().splitlines():
        entry = msgspec.json.decode(line)
        if entry["event"] in ("bug", "not closed"):
            world.broken("no crash", line.decode())


async def books(world: World) -> None:
    """Every acknowledged request has one row, and no request two."""
    if world.fleet is not None:
        rows = await world.fleet.engine.ledger.rows(UsageQuery(), limit=1_000_000)
    else:
        engine = await open_engine(f"sqlite://{world.folder / 'wireglot' / 'wireglot.db'}")
        rows = await engine.ledger.rows(UsageQuery(), limit=1_000_000)
        await engine.close()
    world.counts["rows"] += len(rows)
    by_model: dict[str, list[UsageRow]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row)
        if not row.outcome and not world.dropped:
            world.broken("no row stays open", row.id)
    ids = Counter(row.id for row in rows)
    for id, count in ids.items():
        if count > 1:
            world.broken("nothing is doubled", f"usage {id} is there {count} times")
    asked: dict[str, list[Asked]] = {}
    for client in world.clients:
        for one in client.asked:
            asked.setdefault(f"a-{one.mark}", []).append(one)
    for model, found in by_model.items():
        if len(found) > len(asked.get(model, ())):
            world.broken(
                "nothing is doubled",
                f"{len(found)} rows of {model}, which was sent {len(asked.get(model, ()))} times",
            )
    for model, sent in asked.items():
        acknowledged = [one for one in sent if one.acknowledged]
        mine = by_model.get(model, [])
        if not acknowledged or _may_be_lost(world):
            continue
        if not mine:
            world.broken("nothing is lost", f"usage of {model}, acknowledged")
        elif len(sent) == 1:
            _row(world, mine[0], acknowledged[0])


def _row(world: World, row: UsageRow, asked: Asked) -> None:
    if row.outcome == "crash" and any(
        asked.began < lost < asked.ended + _UNSYNCED_SECONDS for lost in world.power_lost
    ):
        return  # its end was told before it was on the disk, which is what `[store] sync` says
    if row.outcome != "ok":
        world.broken(
            "nothing is lost", f"usage of {row.model} says {row.outcome}, its client has the whole answer"
        )
    elif asked.tokens is not None and row.total != asked.tokens:
        world.broken(
            "nothing is lost", f"usage of {row.model}: {row.total} tokens, the client was told {asked.tokens}"
        )


def _may_be_lost(world: World) -> bool:
    """What the gateway has reported as lost, or was not asked to wait for."""
    unsafe = world.sync == "off" or world.unsynced > 0
    return world.dropped > 0 or (unsafe and bool(world.power_losses))
