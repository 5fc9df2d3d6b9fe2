"""A list of exchanges as a file, piece by piece: CSV, JSON lines, or HAR 1.2 with recorded bodies."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from wireglot import __version__
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceMessage

_COLUMNS: Final = (
    "id", "at", "state", "client", "purpose", "agent", "dialect", "key", "session", "asked", "provider",
    "model", "upstream_dialect", "status", "stop", "attempts", "first_ms", "total_ms", "input", "output",
    "cached", "cost", "currency", "serious", "degraded", "harmless", "losses", "title", "error",
)  # fmt: skip
_MILLION: Final = 1_000_000
_FORMULA: Final = tuple("=+-@\t\r\n|%")
"""Beginnings of cells that spreadsheets take for formulas."""
_HEAD: Final = {"version": "1.2", "creator": {"name": "Wireglot", "version": __version__}}
_encode = msgspec.json.Encoder().encode


class ExportFormat(NamedTuple):
    """The beginning of a file, the separator of its entries, and its end."""

    kind: str
    suffix: str
    head: bytes = b""
    between: bytes = b""
    tail: bytes = b""
    has_bodies: bool = False


def _line(cells: Iterable[object]) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow(cells)
    return written.getvalue()


FORMATS: Final = {
    "csv": ExportFormat("text/csv; charset=utf-8", "csv", (",".join(_COLUMNS) + "\r\n").encode()),
    "jsonl": ExportFormat("application/jsonl", "jsonl"),
    "har": ExportFormat(
        "application/json",
        "har",
        head=b'{"log": ' + _encode(_HEAD)[:-1] + b', "entries": [\n',
        between=b",\n",
        tail=b"\n]}}\n",
        has_bodies=True,
    ),
}


def csv_lines(rows: Sequence[Row], currency: str) -> bytes:
    lines = (
        _line(as_text(cell) if isinstance(cell, str) else cell for cell in _cells(row, currency))
        for row in rows
    )
    return "".join(lines).encode("utf-8", "replace")


def json_lines(rows: Sequence[Row]) -> bytes:
    return b"".join(_encode(row) + b"\n" for row in rows)


def _cells(row: Row, currency: str) -> tuple[object, ...]:
    tokens, losses = row.tokens, row.losses
    used = (tokens.input, tokens.output, tokens.cached) if tokens is not None else (None,) * 3
    # In plain decimals, which spreadsheets read as numbers.
    cost = (f"{row.cost / _MILLION:.6f}", currency) if row.cost is not None else (None, None)
    lost = (losses.serious, losses.degraded, losses.harmless) if losses is not None else (None,) * 3
    return (
        row.id, _moment(row.at), row.state, row.client, row.purpose, row.agent_name, row.dialect, row.key,
        row.session, row.asked, row.provider, row.model, row.upstream_dialect, row.status, row.stop,
        row.attempts, row.first_ms, row.total_ms, *used, *cost, *lost, " ".join(row.features), row.title,
        row.error,
    )  # fmt: skip


def as_text(cell: str) -> str:
    """A text that no spreadsheet takes for a formula: names of models and words of users come from anyone."""
    return f"'{cell}" if cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA) else cell


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def har_entries(row: Row, trace: Trace | None) -> list[bytes]:
    """The client's exchange, then each request to a provider, if bodies were recorded."""
    if trace is None:
        bare = TraceMessage(method="POST", url=row.path), TraceMessage(status=row.status)
        return [_encode(_entry(row, *bare, began_ms=0.0, ended_ms=row.total_ms, side="client"))]
    entries = [_entry(row, trace.request, trace.answer, began_ms=0.0, ended_ms=row.total_ms, side="client")]
    entries += [_attempt_entry(row, attempt) for attempt in trace.attempts if attempt.request is not None]
    return [_encode(entry) for entry in entries]


def _attempt_entry(row: Row, attempt: Attempt) -> dict[str, Any]:
    assert attempt.request is not None
    answer = attempt.answer or TraceMessage()
    ended = answer.frames[-1].ms if answer.frames else None
    entry = _entry(row, attempt.request, answer, began_ms=attempt.began_ms, ended_ms=ended, side="upstream")
    comment = f"{attempt.provider}/{attempt.model}" + (f": {attempt.error}" if attempt.error else "")
    return {**entry, "comment": comment}


def _entry(
    row: Row, asked: TraceMessage, answer: TraceMessage, *, began_ms: float, ended_ms: float | None, side: str
) -> dict[str, Any]:
    first = answer.frames[0].ms if answer.frames else row.first_ms if side == "client" else None
    wait = max(0.0, (first if first is not None else ended_ms or began_ms) - began_ms)
    receive = max(0.0, (ended_ms or 0.0) - began_ms - wait)
    # A client's request has only a path: HAR requires a URL.
    url = asked.url if "://" in asked.url else f"http://wireglot{asked.url}"
    status = answer.status or (row.status if side == "client" else 0)
    request: dict[str, Any] = {
        "method": asked.method or "POST",
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _headers(asked),
        "queryString": _query(url),
        "headersSize": -1,
        "bodySize": asked.bytes,
    }
    if asked.body:
        request["postData"] = {"mimeType": _type(asked), "text": asked.body}
        if asked.base64:
            request["postData"]["comment"] = "base64"
    text = "".join(frame.data for frame in answer.frames) if answer.frames else answer.body
    content: dict[str, Any] = {"size": answer.bytes, "mimeType": _type(answer)}
    if text:
        content["text"] = text
    if answer.base64:
        content["encoding"] = "base64"
    return {
        "startedDateTime": _moment(row.at + began_ms / 1000),
        "time": wait + receive,
        "request": request,
        "response": {
            "status": status,
            "statusText": "",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _headers(answer),
            "content": content,
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": answer.bytes,
        },
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": receive},
        "_id": row.id,
        "_side": side,
        **({"_row": row} if side == "client" else {}),
    }


def _headers(message: TraceMessage) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in message.headers]


def _query(url: str) -> list[dict[str, str]]:
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=64)
    except ValueError:  # not a URL, or too many fields: they stay in the URL alone
        return []
    return [{"name": name, "value": value} for name, value in pairs]


def _type(message: TraceMessage) -> str:
    return next(
        (value for name, value in message.headers if name.lower() == "content-type"), "application/json"
    )
