"""The account of every request: an intent before an upstream is asked, completed exactly once.

A request writes to the journal on the local disk only; what is there goes on to the store behind its back.
So a store that is slow or down costs a request nothing, and no usage is lost with it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.record import Record
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.drain import PACE, Drain, Pace
from wireglot.gateway.state.ledger.rows import completed, intent, legible
from wireglot.gateway.state.ledger.usage_checks import usage_checks
from wireglot.gateway.targets.routing import Target
from wireglot.providers.prices import Price, price_of
from wireglot.stores.base import Ledger
from wireglot.stores.journal.disk import DISK, Disk
from wireglot.stores.journal.journal import Journal, JournalFull
from wireglot.stores.records import UsageRow

if TYPE_CHECKING:
    from wireglot.gateway.request.job import Job

FOLDER: Final = "journal"
_PROMISED: Final = 1024
"""Bytes of the journal that each open row has a right to: what was begun can be completed."""
_PRICES: Final = 4096
_TOLD: Final = 3600.0
"""Seconds between two notes about the same flaw of the same provider."""


class UsageLedger:
    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        instance: str,
        note: Any,
        *,
        pace: Pace = PACE,
        disk: Disk = DISK,
    ) -> None:
        store = settings.store
        self.journal = Journal(
            Path(store.folder) / FOLDER if store.folder else None,
            instance,
            limit=store.journal // max(1, settings.server.workers),
            # Where nothing outlives the process, nothing need outlive the power.
            sync=store.sync and bool(store.folder),
            disk=disk,
        )
        self.dropped = 0
        """Requests of which no account was kept."""
        self.usage_checks: dict[tuple[str, ...], float] = {}
        self._drain = Drain(self.journal, ledger, instance, note, pace=pace)
        self._settings = settings
        self._instance = instance
        self._note = note
        self._open: dict[str, tuple[UsageRow, Job]] = {}
        self._prices: dict[tuple[str, str], Price | None] = {}
        self._flaw_told: dict[tuple[str, ...], float] = {}
        self._refusing = False

    def adopt(self, settings: Settings) -> None:
        self._settings = settings
        self._prices = {}

    async def start(self) -> None:
        await self.journal.start()
        await self._drain.start()

    async def close(self) -> None:
        for _, job in list(self._open.values()):
            job.record.outcome = "gateway_abort"
            self.finish(job.record)
        await self._drain.close()
        await self.journal.close()

    def publish(self, metrics: Metrics) -> None:
        metrics.read(
            "usage_journal_bytes",
            "Usage on the local disk that the store has not got yet.",
            lambda: {(): self.journal.pending},
        )
        metrics.read(
            "usage_dropped_total",
            "Requests of which no usage was kept: the journal was full, or the store refused the row.",
            lambda: {(): self.dropped + self._drain.refused + self.journal.damaged},
            kind="counter",
        )
        metrics.read(
            "usage_flaws_total",
            "Answers in which the provider's own token counts do not add up.",
            lambda: self.usage_checks,
            ("provider", "flaw"),
            "counter",
        )

    @property
    def full(self) -> bool:
        """No account could be kept of another request."""
        return not self.journal.takes((len(self._open) + 1) * _PROMISED)

    @property
    def trouble(self) -> str:
        """Why the store is behind, or nothing is written at all; "" where all is well."""
        return self.journal.trouble or self._drain.behind

    async def flush(self, seconds: float = 1.0) -> bool:
        """Have the store know what we know. Whether it does."""
        return await self._drain.flush(seconds)

    # A request.

    def begin(self, job: Job, target: Target) -> None:
        """Write the intent. Raises a Fault where that must be and cannot."""
        record = job.record
        if record.id in self._open:
            return
        row = intent(job, target, self._instance)
        required = job.settings.store.ledger_required
        try:
            sequence = self._write(self.journal.intend, row, (len(self._open) + 1) * _PROMISED)
        except JournalFull as full:
            self._drop(str(full))
            if required:
                raise _unrecorded() from None
            return
        if self._refusing:
            self._refusing = False
            self._note("warn", "usage recorded again", dropped=self.dropped)
        self._open[record.id] = (row, job)
        durable = self.journal.synced(sequence)
        job.durable = _Required(self.journal, sequence, durable) if required else durable
        job.completed = partial(self.finish, record)

    def finish(self, record: Record) -> None:
        """Complete the account, if one was begun and is not complete."""
        found = self._open.pop(record.id, None)
        if found is None:
            return
        row, job = found
        # Half an answer brings half an account, which need not add up.
        wrong = usage_checks(record.usage) if record.usage_source == "provider" else ()
        if wrong:
            self._flag(record.provider, wrong)
        first = job.client.first if job.client is not None else record.first_byte
        whole = completed(
            row,
            record,
            price=self._price(record, job.settings) if record.usage is not None else None,
            flags=wrong,
            first_byte=first,
            now=time.monotonic(),
        )
        try:
            self._write(self.journal.append, whole, 0)
        except JournalFull as full:
            self._drop(str(full))
            return
        self.journal.sync_later()

    def _write(self, write: Callable[[UsageRow, int], int], row: UsageRow, leave: int) -> int:
        try:
            sequence = write(row, leave)
        except UnicodeEncodeError:
            sequence = write(legible(row), leave)
        self._drain.wake()
        return sequence

    def _drop(self, why: str) -> None:
        self.dropped += 1
        if not self._refusing:
            self._refusing = True
            self._note("error", "usage not recorded", detail=why)

    def _price(self, record: Record, settings: Settings) -> Price | None:
        if settings is not self._settings:  # reloaded since the request came in: its own prices hold
            return _look_up(settings, record.provider, record.upstream_model)
        key = (record.provider, record.upstream_model)
        try:
            return self._prices[key]
        except KeyError:
            if len(self._prices) >= _PRICES:
                self._prices.clear()
            found = self._prices[key] = _look_up(settings, *key)
            return found

    def _flag(self, provider: str, wrong: tuple[str, ...]) -> None:
        now = time.monotonic()
        for flaw in wrong:
            key = (provider, flaw)
            self.usage_checks[key] = self.usage_checks.get(key, 0) + 1
            if now - self._flaw_told.get(key, -_TOLD) >= _TOLD:
                self._flaw_told[key] = now
                self._note("warn", "odd usage", provider=provider, flaw=flaw)


class _Required:
    """Waits until a row is on the disk, and refuses the request where it cannot be."""

    def __init__(self, journal: Journal, sequence: int, durable: Awaitable[None]) -> None:
        self._journal = journal
        self._sequence = sequence
        self._durable = durable

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._durable.__await__()
        if not self._journal.holds(self._sequence):
            raise _unrecorded()


def _unrecorded() -> RequestError:
    return RequestError("shed", "usage cannot be recorded now", code="storage_unavailable", retry_after=2)


def _look_up(settings: Settings, provider: str, model: str) -> Price | None:
    found = settings.providers.get(provider)
    return price_of(settings.prices, found.spec, provider, model) if found is not None else None
