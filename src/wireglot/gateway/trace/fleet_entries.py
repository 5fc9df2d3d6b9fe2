"""What the machines of a fleet tell one another of exchanges, as it lies in their store.

Rows lie in the open, as usage does; what providers said of a failure may quote a prompt, so that is sealed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from wireglot.gateway.trace.peers import PeerCommand
from wireglot.stores.base import FleetLog
from wireglot.stores.records import LogEntry
from wireglot.stores.seal import Sealer, Unreadable
from wireglot.traces.trace import Row

ROWS: Final = "rows"
ORDERS: Final = "orders"
"""The names of the logs."""
KEPT_SECONDS: Final = 24 * 3600.0
"""Of both: a log's entries all stay for the same time."""
_ROWS_MOST: Final = 10_000
_ORDERS_MOST: Final = 1_000
ROWS_AT_ONCE: Final = 100
"""In one entry: so the log takes 100 MB at most, and mostly a tenth of it."""
_SEALED_FOR: Final = "\0fleet"
_ERRORS: Final = "row-errors"
_FORM: Final = b"\x01"
_BYTES_MOST: Final = 4 * 1024 * 1024


class RowsTold(msgspec.Struct, frozen=True, omit_defaults=True):
    machine: str
    """All workers of one supervisor have the same."""
    worker: str
    at: float
    rows: list[Row] = []
    """Without their errors."""
    errors: bytes = b""
    """By id, sealed."""
    dropped: int = 0
    """Rows that this worker could not tell, since it began."""
    forgotten: str | None = None
    """A caller, whose rows up to then nobody shall show."""


_pack = msgspec.msgpack.Encoder().encode
_RowsDecoder: Final = msgspec.msgpack.Decoder(RowsTold)
_OrderDecoder: Final = msgspec.msgpack.Decoder(PeerCommand)


def told_rows(
    machine: str, worker: str, at: float, rows: Sequence[Row], sealer: Sealer, dropped: int = 0
) -> RowsTold:
    errors = {row.id: row.error for row in rows if row.error}
    sealed = sealer.seal(_SEALED_FOR, _ERRORS, "", msgspec.json.encode(errors)) if errors else b""
    bare = [msgspec.structs.replace(row, error="") if row.error else row for row in rows]
    return RowsTold(machine, worker, at, bare, sealed, dropped)


def packed(value: RowsTold | PeerCommand) -> bytes:
    return _FORM + zlib.compress(_pack(value), 1)


async def tell(log: FleetLog, value: RowsTold | PeerCommand) -> None:
    """Raises StoreDown."""
    name, most = (ROWS, _ROWS_MOST) if type(value) is RowsTold else (ORDERS, _ORDERS_MOST)
    await log.tell(name, packed(value), seconds=KEPT_SECONDS, most=most)


def read_rows(entries: Sequence[LogEntry], sealer: Sealer) -> list[tuple[str, RowsTold]]:
    """With their places. What a later version wrote in another form is left out."""
    found = []
    for entry in entries:
        try:
            told = _RowsDecoder.decode(_unpacked(entry.body))
        except (ValueError, zlib.error, msgspec.MsgspecError):
            continue
        found.append((entry.place, _with_errors(told, sealer)))
    return found


def read_order(entry: LogEntry) -> PeerCommand | None:
    try:
        return _OrderDecoder.decode(_unpacked(entry.body))
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None


def _unpacked(body: bytes) -> bytes:
    if body[:1] != _FORM:
        raise ValueError("of another version")
    reading = zlib.decompressobj()
    unpacked = reading.decompress(body[1:], _BYTES_MOST)
    if not reading.eof:
        raise ValueError("longer than anything that is told")
    return unpacked


def _with_errors(told: RowsTold, sealer: Sealer) -> RowsTold:
    if not told.errors:
        return told
    try:
        opened = sealer.open(_SEALED_FOR, _ERRORS, "", told.errors)
        errors = msgspec.json.decode(opened, type=dict[str, str])
    except (Unreadable, ValueError, zlib.error, msgspec.MsgspecError):
        return told  # told with another secret: the row is there without its words
    rows = [
        msgspec.structs.replace(row, error=errors[row.id]) if row.id in errors else row for row in told.rows
    ]
    return msgspec.structs.replace(told, rows=rows)
