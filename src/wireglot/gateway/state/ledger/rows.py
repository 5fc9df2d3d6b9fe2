"""A request as a row of the ledger: at first what is meant, in the end what became of it."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.targets.routing import Target
from wireglot.ir.outcome import Usage
from wireglot.ir.usage import with_counts
from wireglot.providers.prices import Price, cost
from wireglot.stores.records import UsageRow

_NAME_LETTERS: Final = 256
"""Names are clients' words: the ledger takes no more of them than a person could read."""
_TOKENS_MOST: Final = 10**12
"""More than any request has; the ledger counts no more."""
_NOTHING: Final = Usage()


def intent(exchange: Exchange, target: Target, instance: str) -> UsageRow:
    record, job = exchange.record, exchange.job
    ago = time.monotonic() - record.started
    return UsageRow(
        id=record.id,
        caller=record.caller,
        started=int((time.time() - ago) * 1000),
        instance=instance,
        operation=record.operation,
        dialect=job.dialect,
        session=record.session[:_NAME_LETTERS],
        model=job.model[:_NAME_LETTERS],
        provider=target.provider.name,
        upstream_model=target.model[:_NAME_LETTERS],
        upstream_dialect=target.dialect,
        stream=job.stream,
    )


def completed(
    row: UsageRow,
    record: Record,
    *,
    price: Price | None,
    flags: tuple[str, ...],
    first_byte: float | None,
    now: float,
) -> UsageRow:
    """`now` is monotonic, as the record's times are: a clock that is set meanwhile makes no time negative."""
    usage = record.usage or _NOTHING
    if usage.total > _TOKENS_MOST:
        usage = _bounded(usage)
    started = record.started
    # In two steps: with over fifteen names Python makes a dictionary of them, which takes twice as long.
    ended = msgspec.structs.replace(
        row,
        session=record.session[:_NAME_LETTERS],  # by now it may be the conversation's
        provider=record.provider or row.provider,
        upstream_model=record.upstream_model[:_NAME_LETTERS] or row.upstream_model,
        upstream_dialect=record.upstream_dialect or row.upstream_dialect,
        outcome=record.outcome,
        finished=row.started + _milliseconds(now - started),
        # A stream is completed before its status is noted: it has been sent.
        status=record.status or (0 if record.outcome == "gateway_abort" else 200),
        error=record.error_kind,
        attempts=record.attempts,
        first_byte=_milliseconds(first_byte - started) if first_byte is not None else 0,
        source=record.usage_source,
        cost=cost(price, usage) if price is not None and record.usage is not None else None,
        losses=tuple(dict.fromkeys([loss.feature for loss in record.losses])) if record.losses else (),
        flags=flags,
    )
    whole: UsageRow = with_counts(ended, usage) if usage is not _NOTHING else ended
    return whole


def collapsed(rows: list[UsageRow]) -> list[UsageRow]:
    """One row for each request, its completion where that is among them."""
    merged: dict[str, UsageRow] = {}
    for row in rows:
        if row.outcome or row.id not in merged:
            merged[row.id] = row
    return list(merged.values())


def legible(row: UsageRow) -> UsageRow:
    """The same with letters that can be written, where a client's word holds halves of them."""
    changed = {
        name: value.encode("utf-8", "replace").decode()
        for name in ("caller", "session", "model", "upstream_model")
        if not (value := getattr(row, name)).isascii()
    }
    return msgspec.structs.replace(row, **changed)


def _milliseconds(seconds: float) -> int:
    """Rounded: the difference of two large clock readings may fall just short of a whole millisecond, and the
    same duration must not depend on how long the machine has been up."""
    return round(seconds * 1000)


def _bounded(usage: Usage) -> Usage:
    """A provider may tell any number; a ledger must be able to add it up."""
    counts = {
        name: min(value, _TOKENS_MOST)
        for name in usage.__struct_fields__
        if type(value := getattr(usage, name)) is int
    }
    return msgspec.structs.replace(usage, **counts)
