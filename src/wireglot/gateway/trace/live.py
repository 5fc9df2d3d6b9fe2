"""Rows as they come, as server-sent events, for as long as somebody looks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot.gateway.entry.gates import shed, shed_seconds
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.trace.rows import Listener
from wireglot.gateway.trace.siblings import Told
from wireglot.gateway.trace.traces import Traces
from wireglot.http.application import Headers

PLACES: Final = 32
"""Of this process."""
_PLACES_OF_A_KEY: Final = 6
_PLACES_OF_KEYS: Final = 28
_PLACES_WITHOUT_KEY: Final = 24
"""So that neither keys nor whoever looks after the gateway can keep the other from looking."""
_TURN_SECONDS: Final = 1.0
"""After which it is looked whether the gateway ends, or the viewer may look no more."""
_PING_SECONDS: Final = 15.0
_GATHER_SECONDS: Final = 0.05
"""Rows that come within it go out together."""
_HEADERS: Final[Headers] = [
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
]

_encode = msgspec.json.Encoder().encode


class Live:
    def __init__(self, traces: Traces, is_draining: Callable[[], bool]) -> None:
        self._traces = traces
        self._is_draining = is_draining
        self._inside: Counter[str] = Counter()
        """By client key; "": whoever looks with the admin secret, or needs none."""

    def _enter(self, key: str) -> None:
        own, of_keys = self._inside[key], self._inside.total() - self._inside[""]
        if own >= (_PLACES_OF_A_KEY if key else _PLACES_WITHOUT_KEY):
            whose = "with this client key" if key else "with the admin secret"
            told = f"{own} pages follow the live list {whose} already: close one of them"
            raise RequestError("rate", told, code="too_many_listeners", retry_after=shed_seconds())
        if self._inside.total() >= PLACES or (key and of_keys >= _PLACES_OF_KEYS):
            raise shed("too many look at the list at once")
        self._inside[key] += 1

    async def tell(self, page: PageRequest, viewer: Viewer) -> None:
        self._enter(viewer.key)
        listener, traces = self._traces.listen(), self._traces
        others: list[asyncio.Task[None]] = []
        unlisten = traces.fleet.rows.listen(listener.tell) if traces.fleet is not None else None
        try:
            if traces.siblings is not None:
                telling = traces.siblings.listen(lambda told: _pass_on(told, listener))
                others.append(asyncio.create_task(telling))
            if traces.fleet is not None:
                others.append(asyncio.create_task(traces.fleet.follow()))
            await self._tell(page, viewer, listener)
        finally:
            self._inside[viewer.key] -= 1
            listener.close()
            if unlisten is not None:
                unlisten()
            for task in others:
                task.cancel()

    async def _tell(self, page: PageRequest, viewer: Viewer, listener: Listener) -> None:
        reply, loop = page.reply, asyncio.get_running_loop()
        flowing = asyncio.Event()
        flowing.set()
        hello: dict[str, Any] = {"worker": self._traces.worker, "recording": await self._traces.status()}
        page.record.answered(200)
        reply.start(200, [*_HEADERS, *identity(page.record.id, page.asked.dialect)])
        reply.on_pressure(flowing.clear, flowing.set)
        reply.write(_event("hello", hello))
        last, dropped, fleet = loop.time(), 0, hello["recording"]["fleet"]
        while not self._is_draining() and viewer.holds():
            if not flowing.is_set():  # what comes meanwhile waits in the listener, which is bounded
                await asyncio.sleep(_GATHER_SECONDS)
                continue
            news = await listener.heard(_TURN_SECONDS)
            pieces = [_event("row", self._traces.told(row)) for row in news if viewer.sees(row.key, row.at)]
            if listener.dropped > dropped:
                dropped = listener.dropped
                pieces.append(_event("dropped", {"count": dropped}))
            now = self._traces.fleet.status() if self._traces.fleet is not None else None
            if now != fleet:
                fleet = now
                pieces.append(_event("fleet", fleet))
            if not pieces and loop.time() - last >= _PING_SECONDS:
                pieces = [b": ping\n\n"]
            if pieces:
                reply.write(b"".join(pieces))
                last = loop.time()
            if news:
                await asyncio.sleep(_GATHER_SECONDS)
        reply.end()


def _pass_on(told: Told, listener: Listener) -> None:
    for row in told.rows:
        listener.tell(row)
    listener.dropped += told.dropped


def _event(name: str, document: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(document))
