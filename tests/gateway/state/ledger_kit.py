"""A usage ledger without a gateway: requests that are only their records, a store that can be switched off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

from tests.cli.running import COMMAND, PLAIN
from tests.gateway.kit import catalogued, exchange, own, settings
from tests.processes import ForkedCommand
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Settings, StoreSettings, SyncOrder
from wireglot.gateway.state.ledger.drain import DrainPace
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.stores import StoreDown
from wireglot.stores.journal.disk import DISK, Disk
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import UsageRow
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.list_price import ListPrice, Price
from wireglot_core.providers.spec import ModelSpec

ORDERS: Final[tuple[SyncOrder, ...]] = get_args(SyncOrder)
HURRIED = DrainPace(gather=0.001, retry=0.001, retry_max=0.002, close=0.05)
PRICE = Price(1_000_000, 2_000_000)
PRICES = tuple(
    ListPrice(model=f"fast{number}", price=PRICE, source="https://prices.test")
    for number in ("", "-1", "-2", "-3")
)


class Target:
    """Where a request goes, as far as the ledger looks."""

    def __init__(self, provider: Any, model: str, dialect: str = "openai-chat") -> None:
        self.provider, self.model, self.dialect = provider, model, dialect


def job_of(number: int, now: Settings, **more: Any) -> Exchange:
    """A request of alice's, as the gateway reads it; `more` is known of it by the end."""
    made = exchange(
        now,
        {"model": "fast"},
        path="/v1/messages",
        caller=Caller("alice"),
        id=f"req_{number}",
        started=time.monotonic(),
    )
    for name, value in more.items():
        setattr(made.record, name, value)
    return made


class Ledger:
    """A real ledger behind a switch. `down` refuses before anything is done, `unsure` after."""

    def __init__(self) -> None:
        self.memory = MemoryLedger()
        self.down = False
        self.unsure = False
        self.applied: list[list[UsageRow]] = []
        self.closed: list[str] = []

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        if self.down:
            raise StoreDown("no route to the store")
        self.applied.append(list(rows))
        await self.memory.apply(rows)
        if self.unsure:
            self.unsure = False
            raise StoreDown("the connection was lost")

    async def close_open(self, instances: Sequence[str], now: int) -> int:
        self.closed += instances
        return await self.memory.close_open(instances, now)

    async def beat(self, instance: str) -> None:
        await self.memory.beat(instance)

    @property
    def rows(self) -> dict[str, UsageRow]:
        return self.memory.usage


class Notes(list[tuple[str, str, dict[str, Any]]]):
    def __call__(self, level: str, event: str, **fields: Any) -> None:
        self.append((level, event, fields))

    def events(self) -> list[str]:
        return [event for _, event, _ in self]


def ledger_settings(folder: Path | None, **store: Any) -> Settings:
    """Settings with one provider that has a price, one that has none, one of the catalog."""
    return settings(
        own("mine", "openai-chat", ModelSpec("fast*"), prices=PRICES),
        own("other", "openai-chat"),
        catalogued("demo"),
        store=StoreSettings(folder=str(folder) if folder is not None else "", **store),
    )


def usage_ledger(
    ledger: Ledger,
    settings: Settings,
    instance: str = "one",
    notes: Notes | None = None,
    pace: DrainPace = HURRIED,
    disk: Disk = DISK,
) -> UsageLedger:
    return UsageLedger(
        ledger,  # type: ignore[arg-type]  # as much of a ledger as this one needs
        settings,
        instance,
        notes if notes is not None else Notes(),
        pace=pace,
        disk=disk,
    )


async def asking(job: Exchange) -> None:
    """As far as a provider may be asked."""
    recorded = job.ending.before_asking()
    if recorded is not None:
        await recorded


async def answering(job: Exchange) -> None:
    """As far as a client may get something of an answer."""
    await asking(job)
    recorded = job.ending.before_answering()
    if recorded is not None:
        await recorded


def begin(kept: UsageLedger, job: Exchange, where: Any) -> None:
    account = kept.begin(job, where)
    if account is not None:
        job.ending.account = account


def target(settings: Settings, name: str = "mine", model: str = "fast-1") -> Any:
    return Target(settings.providers[name], model)


def answered(job: Exchange, name: str = "mine", model: str = "fast-1", usage: Usage | None = None) -> None:
    """As the relay leaves a record."""
    record = job.record
    record.provider, record.upstream_model, record.upstream_dialect = name, model, "openai-chat"
    record.attempts, record.status = 1, 200
    record.usage = usage
    record.usage_source = "provider" if usage is not None else "none"


class Served:
    """A gateway in a process of its own, as far as asking it goes."""

    def __init__(self, folder: Path, toml: str) -> None:
        (folder / "wireglot.toml").write_text(toml)
        self.process = ForkedCommand(
            [*COMMAND, "serve", "--port", "0", "--log", "json", "--config", str(folder / "wireglot.toml")],
            env={**PLAIN, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr is not None
        while True:
            line = json.loads(self.process.stderr.readline())
            if line["event"] == "listening":
                self.url = line["url"]
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
