"""The account of every request: an intent before an upstream is called, completed exactly once.

A request writes only to the journal on the local disk, which is copied to the store in the background. So a
slow or unavailable store costs a request nothing, and no usage is lost with it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.gateway.config.prices import known_price
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.client_names import client_name
from wireglot.gateway.observe.forms import replacement_of, struct_of
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.record import MARKS, NAME_MAX, ExchangeRecord
from wireglot.gateway.request.ending import Account
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.drain import PACE, Drain, DrainPace
from wireglot.gateway.targets.routing import Target
from wireglot.stores.base import Ledger
from wireglot.stores.journal.disk import DISK, Disk
from wireglot.stores.journal.journal import Journal, JournalFull
from wireglot.stores.journal.sync import Wait
from wireglot.stores.records import UsageRow
from wireglot_core.dialects.registry import UnknownDialect, surface
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import COUNTS, with_counts
from wireglot_core.providers.prices import Price, cost

FOLDER: Final = "journal"
_PROMISED_BYTES: Final = 1024
"""Bytes of the journal that are reserved for each open row: a row that was begun can be completed."""
# Prices of models that are cached.
_MAX_PRICES: Final = 4096
_HOUR_MS: Final = 3_600_000
_REPORTED_SECONDS: Final = 3600.0
"""Between two notes about the same inconsistency of the same provider."""

_MAX_TOKENS: Final = 10**12
"""Tokens of one request in the usage ledger. No request has more; larger numbers are cut off."""


class UsageLedger:
    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        instance: str,
        note: Any,
        *,
        pace: DrainPace = PACE,
        disk: Disk = DISK,
    ) -> None:
        store = settings.store
        self.journal = Journal(
            Path(store.folder) / FOLDER if store.folder else None,
            instance,
            limit=store.journal // max(1, settings.server.workers),
            # If nothing outlives the process, nothing needs to survive a power failure.
            sync=store.sync != "off" and bool(store.folder),
            # Before a provider is called no money has been spent: then a slow disk is waited for.
            patient=store.sync == "before",
            disk=disk,
        )
        self._before = store.sync == "before" and bool(store.folder)
        """Whether an intent must be durable before the provider is called, and not only before the client has
        an answer."""
        self.dropped = 0
        """Requests without an account."""
        self.odd_usage: dict[tuple[str, ...], float] = {}
        self._drain = Drain(self.journal, ledger, instance, note, pace=pace)
        self._settings = settings
        self._instance = instance
        self._note = note
        self._open: dict[str, _OpenAccount] = {}
        self._prices: dict[tuple[str, str, int], Price | None] = {}
        self._flaw_reported: dict[tuple[str, ...], float] = {}
        self._refusing = False

    def adopt(self, settings: Settings) -> None:
        self._settings = settings
        self._prices = {}

    async def start(self) -> None:
        await self.journal.start()
        await self._drain.start()

    async def close(self) -> None:
        for account in list(self._open.values()):
            account.exchange.record.cut_off()
            account.complete()
        await self._drain.close()
        await self.journal.close()

    def publish(self, metrics: Metrics) -> None:
        metrics.read(
            "usage_journal_bytes",
            "Usage on the local disk that is not yet in the store.",
            lambda: {(): self.journal.pending},
        )
        metrics.read(
            "usage_journal_limit_bytes",
            "Maximum size of the journal; beyond it usage is dropped, or requests are rejected.",
            lambda: {(): self.journal.limit},
        )
        metrics.read(
            "usage_dropped_total",
            "Requests without recorded usage: the journal was full, or the store rejected the row.",
            lambda: {(): self.dropped + self._drain.refused + self.journal.damaged},
            kind="counter",
        )
        metrics.read(
            "usage_unsynced_total",
            "Requests that continued before their record was on disk: the disk failed, or was slow.",
            lambda: {(): self.journal.unsynced},
            kind="counter",
        )
        metrics.read(
            "usage_flaws_total",
            "Answers in which the provider's own token counts do not add up.",
            lambda: self.odd_usage,
            ("provider", "flaw"),
            "counter",
        )

    @property
    def full(self) -> bool:
        """Whether there is no room for another account."""
        return not self.journal.takes((len(self._open) + 1) * _PROMISED_BYTES)

    @property
    def trouble(self) -> str:
        """Why the store is behind, or why nothing is written at all; "" if all is well."""
        return self.journal.trouble or self._drain.behind

    async def flush(self, seconds: float = 1.0) -> bool:
        """Have the store accept all rows written so far. Returns whether it did."""
        return await self._drain.flush(seconds)

    # Requests to models.

    def open_account(self, exchange: Exchange) -> None:
        """A step: an intent is written before a provider is called, and its completion at the end."""
        account = self.begin(exchange, exchange.targets[0])
        if account is not None:
            exchange.record.booked = True
            exchange.ending.account = account

    def begin(self, exchange: Exchange, target: Target) -> Account | None:
        """Write the intent. None: this request is not recorded. Raises a RequestError if it must be."""
        record = exchange.record
        if record.id in self._open:
            return None
        row = intent(exchange, target, self._instance)
        try:
            # The row is written to the kernel before the provider is called, even if that does not wait for
            # the disk.
            promised = (len(self._open) + 1) * _PROMISED_BYTES
            sequence = self.journal.append(row, promised, gather=self._before)
        except JournalFull as full:
            self._drop(str(full))
            if exchange.job.settings.store.ledger_required:
                raise _unrecorded() from None
            return None
        if self._refusing:
            self._refusing = False
            self._note("warn", "usage recorded again", dropped=self.dropped)
        self._drain.due.set()
        account: _OpenAccount
        if self._before:
            # Requested now and awaited later: the disk works while the request is prepared.
            account = _DurableFirst(self, row, exchange, sequence, synced=self.journal.synced(sequence))
        else:
            account = _OpenAccount(self, row, exchange, sequence)
            self.journal.syncer.ask_sync(1)
        self._open[record.id] = account
        return account

    # Paid uses other than requests to models.

    def begin_row(self, row: UsageRow) -> UsageRow | None:
        """Write an intent. None: there is no room for it."""
        row = msgspec.structs.replace(row, instance=self._instance)
        return row if self._append(row) else None

    def end_row(self, row: UsageRow) -> None:
        """Complete a row."""
        self._append(row)

    def _append(self, row: UsageRow) -> bool:
        try:
            self.journal.append(row)
        except JournalFull as full:
            self._drop(str(full))
            return False
        self.journal.syncer.ask_later()
        self._drain.due.set()
        return True

    def finish(self, record: ExchangeRecord) -> None:
        """Complete the account of a request, if one was begun and is not complete."""
        account = self._open.pop(record.id, None)
        if account is None:
            return
        # Half an answer has incomplete usage, which need not add up.
        wrong = usage_checks(record.usage) if record.usage_source == "provider" else ()
        if wrong:
            record.flawed(wrong)
            self._flag(record.provider, wrong)
        settings = account.exchange.job.settings
        whole = completed(
            account.row,
            record,
            price=self._price(record, settings, account.row.started) if record.usage is not None else None,
            flags=wrong,
            first_byte=record.first_byte,
            now=time.monotonic(),
        )
        record.cost = whole.cost
        self._append(whole)

    def _drop(self, why: str) -> None:
        self.dropped += 1
        if not self._refusing:
            self._refusing = True
            self._note("error", "usage not recorded", detail=why)

    def _price(self, record: ExchangeRecord, settings: Settings, started: int) -> Price | None:
        if settings is not self._settings:  # reloaded since the request came in: its own prices apply
            return known_price(settings, record.provider, record.upstream_model, started)
        # Prices change at most once an hour.
        key = (record.provider, record.upstream_model, started // _HOUR_MS)
        try:
            return self._prices[key]
        except KeyError:
            if len(self._prices) >= _MAX_PRICES:
                self._prices.clear()
            found = self._prices[key] = known_price(settings, record.provider, record.upstream_model, started)
            return found

    def _flag(self, provider: str, wrong: tuple[str, ...]) -> None:
        now = time.monotonic()
        for flaw in wrong:
            key = (provider, flaw)
            self.odd_usage[key] = self.odd_usage.get(key, 0) + 1
            if now - self._flaw_reported.get(key, -_REPORTED_SECONDS) >= _REPORTED_SECONDS:
                self._flaw_reported[key] = now
                self._note("warn", "odd usage", provider=provider, flaw=flaw)


class _OpenAccount(msgspec.Struct, eq=False):
    """Implements `Account`: one row whose intent is written. The disk stores it while the provider works."""

    ledger: UsageLedger
    row: UsageRow
    exchange: Exchange
    sequence: int
    _wait: Wait | None = None
    """For the disk, shared by all attempts and keep-alives of the request."""
    _unsynced: bool = False

    def before_asking(self) -> Awaitable[None] | None:
        return None

    def before_answering(self) -> Awaitable[None] | None:
        journal, wait = self.ledger.journal, self._wait
        if journal.syncer.covered >= self.sequence:
            return None
        waited = wait is not None and not wait.cancelled()
        if journal.awaits_disk(self.sequence):
            if wait is None or wait.cancelled():
                wait = self._wait = journal.synced(self.sequence)
            return None if wait.done() else wait  # done, and not on the disk: waited long enough
        if journal.trouble and not waited and not self._unsynced:
            self._unsynced = True
            journal.went_on(self.sequence)
        return None

    def complete(self) -> None:
        self.ledger.finish(self.exchange.record)


class _DurableFirst(_OpenAccount, eq=False, kw_only=True):
    """The same, for settings that require the intent on disk before a provider is called."""

    synced: Wait

    def before_asking(self) -> Awaitable[None] | None:
        required = self.exchange.job.settings.store.ledger_required
        return self._held() if required else self.synced

    def before_answering(self) -> Awaitable[None] | None:
        return None

    async def _held(self) -> None:
        await self.synced
        if not self.ledger.journal.holds(self.sequence):
            raise _unrecorded()


# A request as a row: its intent at first, its result at the end.

_ROUTE: Final = ("provider", "upstream_model", "upstream_dialect")
_AT_BEGIN: Final = ("started", "client", *_ROUTE)
_AT_END: Final = ("session", "finished", "status", "first_byte", "cost", "losses", "flags", *_ROUTE)
_COPIED: Final = MARKS.copied("ledger", {*_AT_BEGIN, *_AT_END, *COUNTS} - {"session"})
OTHER_COLUMNS: Final = ("instance", "caller_group")
"""Those that no record has: the process, and the group of the caller's key."""
_begun: Final = struct_of(
    UsageRow, [source for source in _COPIED if source.part != "end"], (*_AT_BEGIN, *OTHER_COLUMNS)
)
_ended: Final = replacement_of(UsageRow, [source for source in _COPIED if source.part == "end"], _AT_END)


def intent(exchange: Exchange, target: Target, instance: str) -> UsageRow:
    record, key = exchange.record, exchange.job.caller.key
    ago = time.monotonic() - record.started
    return _begun(
        record,
        started=int((time.time() - ago) * 1000),
        instance=instance,
        provider=target.provider.name,
        upstream_model=target.model[:NAME_MAX],
        upstream_dialect=target.dialect,
        caller_group=key.group if key is not None else "",
        client=client_name(record.agent),
    )


def completed(
    row: UsageRow,
    record: ExchangeRecord,
    *,
    price: Price | None,
    flags: tuple[str, ...],
    first_byte: float | None,
    now: float,
) -> UsageRow:
    """`now` is monotonic, like the record's times: setting the clock meanwhile cannot make a duration
    negative."""
    usage = record.usage
    if usage is not None and usage.total > _MAX_TOKENS:
        usage = _bounded(usage)
    # Rounded: the difference of two large clock readings may fall just short of a whole millisecond, and the
    # same duration must not depend on how long the machine has been up.
    first_ms = round((first_byte - record.started) * 1000) if first_byte is not None else 0
    # In two steps: with over fifteen keyword arguments Python builds a dictionary, which takes twice as long.
    ended = _ended(
        record,
        old=row,
        session="" if record.wiped else record.session[:NAME_MAX],  # may have become the conversation's
        provider=record.provider or row.provider,
        upstream_model=record.upstream_model[:NAME_MAX] or row.upstream_model,
        upstream_dialect=record.upstream_dialect or row.upstream_dialect,
        finished=row.started + round((now - record.started) * 1000),
        # A stream's row is completed before its status is noted: it has been sent.
        status=record.status or (0 if record.outcome == "gateway_abort" else 200),
        first_byte=first_ms,
        cost=cost(price, usage) if price is not None and usage is not None else None,
        losses=tuple(dict.fromkeys([loss.feature for loss in record.losses])) if record.losses else (),
        flags=flags,
    )
    return with_counts(ended, usage) if usage is not None else ended


def _bounded(usage: Usage) -> Usage:
    """A provider may report any number; a ledger must be able to add it up."""
    counts = {
        name: min(value, _MAX_TOKENS)
        for name in usage.__struct_fields__
        if type(value := getattr(usage, name)) is int
    }
    return msgspec.structs.replace(usage, **counts)


def usage_checks(usage: Usage | None) -> tuple[str, ...]:
    """The names of the checks that a provider's own numbers fail, sorted; none if the numbers agree, or if
    the provider reported none. The numbers are recorded unchanged."""
    raw = usage.raw if usage is not None else None
    if raw is None:
        return ()
    try:
        check = surface(raw.dialect).check_usage
    except UnknownDialect:
        return ()
    return check(raw) if check is not None else ()


def _unrecorded() -> RequestError:
    return RequestError("shed", "usage cannot be recorded now", code="storage_unavailable", retry_after=2)
