"""OpenTelemetry of clients (OTLP over HTTP): forwarded to the configured collector, otherwise discarded."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Final

from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.metrics import Counter
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.request.worker_thread import LARGE_BYTES, run_in_thread
from wireglot.gateway.setting_tables import TelemetrySettings
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.transport import Outbound, Timeouts, Transport, TransportFault
from wireglot_core.wire.json import BadJson, decode

OPERATION: Final = "telemetry"
# Bytes of one message of clients' telemetry.
MAX_BODY: Final = 4 * MIB
_PASSED: Final = ("content-type", "content-encoding")
"""Other headers of a client are not sent to the collector, least of all its key."""
_FIELDS: Final = {"traces": "resourceSpans", "metrics": "resourceMetrics", "logs": "resourceLogs"}
_FIRST_FIELD: Final = 0x0A
"""The tag of these in protobuf: field 1, length-delimited."""
_BEGINNING_BYTES: Final = 64
# Bits of a size that a message of clients' telemetry names.
_MAX_SIZE_BITS: Final = 35
# Messages of clients' telemetry that are forwarded at once.
_MAX_CONCURRENT: Final = 16
# Bytes of a collector's answer.
_MAX_ANSWER: Final = 64 * KIB
_TIMEOUTS: Final = Timeouts(first_byte=10.0, idle=5.0, total=15.0)


def is_otlp(head: Head, signal: str, body: bytes) -> bool:
    """Whether a body looks like an export request of OTLP: an object of JSON with its field, or a protobuf
    message whose fields are messages. Of a compressed one only the beginning is read."""
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json"
    if not is_json and kind != "application/x-protobuf":
        return False
    coding = head.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        begins = _inflated(body) if coding == "gzip" else None
        if begins is None:
            return False
        return begins.lstrip().startswith(b"{") if is_json else not begins or begins[0] == _FIRST_FIELD
    if not is_json:
        return _is_message(body)
    try:
        document = decode(body)
    except BadJson:
        return False
    return type(document) is dict and (not document or _FIELDS.get(signal) in document)


def _inflated(body: bytes) -> bytes | None:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, _BEGINNING_BYTES)
    except zlib.error:
        return None


def _is_message(body: bytes) -> bool:
    """Whether a body is a repeated first field: each export request is such a list of messages."""
    at, end = 0, len(body)
    while at < end:
        if body[at] != _FIRST_FIELD:
            return False
        at += 1
        size = shift = 0
        while at < end and shift < _MAX_SIZE_BITS:
            byte = body[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            return False
        at += size
    return at == end


class TelemetryIntake:
    """Always answers 200: an exporter logs every other status, at each of its flushes."""

    def __init__(self, transports: dict[str, Transport], counter: Counter, note: Note) -> None:
        self._transports = transports
        self._counter = counter
        self._note = note
        self._forwarding = 0
        self._failing = False

    async def answer(
        self, settings: TelemetrySettings, head: Head, asked: Asked, body: bytes, reply: Reply
    ) -> None:
        if not settings.forward:
            outcome = "discarded"
        elif not await self._fits(head, asked.verb, body):
            outcome = "invalid"  # the collector gets nothing that any caller can make up
        else:
            outcome = await self._taken(settings, head, asked.verb, body)
        self._counter.add((asked.verb, outcome))
        reply.send(200, [], b"")

    async def _fits(self, head: Head, signal: str, body: bytes) -> bool:
        if len(body) <= LARGE_BYTES:
            return is_otlp(head, signal, body)
        return await run_in_thread(partial(is_otlp, head, signal, body))

    async def _taken(self, settings: TelemetrySettings, head: Head, signal: str, body: bytes) -> str:
        if self._forwarding >= _MAX_CONCURRENT:
            return "dropped"
        self._forwarding += 1
        try:
            fault = await self._forward(settings, head, signal, body)
        finally:
            self._forwarding -= 1
        if bool(fault) != self._failing:
            self._failing = bool(fault)
            if fault:
                self._note("warn", "telemetry not forwarded", detail=fault)
            else:
                self._note("info", "telemetry is forwarded again")
        return "failed" if fault else "forwarded"

    async def _forward(self, settings: TelemetrySettings, head: Head, signal: str, body: bytes) -> str:
        """What went wrong, or ""."""
        headers: Headers = [(name, head.headers[name]) for name in _PASSED if name in head.headers]
        url = f"{settings.forward}/v1/{signal}"
        outbound = Outbound("POST", url, [*headers, *settings.headers], body, pool=OPERATION)
        try:
            answer = await self._transports[url.partition(":")[0]].send(outbound, _TIMEOUTS)
            await answer.read(_MAX_ANSWER)
        except TransportFault as fault:
            return f"{fault.problem}: {fault.message}"
        return "" if answer.status < 300 else f"the collector has answered with status {answer.status}"
