"""OpenTelemetry of clients (OTLP over HTTP): forwarded to the configured collector, otherwise discarded."""

from __future__ import annotations

from typing import Final

from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.metrics import Counter
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.setting_tables import TelemetrySettings
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.transport import Outbound, Timeouts, Transport, TransportFault

OPERATION: Final = "telemetry"
MAX_BODY: Final = 4 * MIB
_PASSED: Final = ("content-type", "content-encoding")
"""Other headers of a client are not sent to the collector, least of all its key."""
_MAX_CONCURRENT: Final = 16
_MAX_ANSWER: Final = 64 * KIB
_TIMEOUTS: Final = Timeouts(first_byte=10.0, idle=5.0, total=15.0)


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
        outcome = await self._taken(settings, head, asked.verb, body) if settings.forward else "discarded"
        self._counter.add((asked.verb, outcome))
        reply.send(200, [], b"")

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
