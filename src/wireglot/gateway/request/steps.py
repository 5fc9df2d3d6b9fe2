"""Steps around an answer that keep no state: admission, routing, the queue, the time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from wireglot.gateway.entry.callers import check_permitted
from wireglot.gateway.entry.gates import Gates, shed
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.aside import aside
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.targets.routing import Router, depends_on_effort


class Admission:
    """A gateway that is shutting down takes no more requests, and a client key may be good for some models
    only."""

    def __init__(self, inner: Answerer, gates: Gates) -> None:
        self._inner = inner
        self._gates = gates

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        if self._gates.draining:
            raise shed("the gateway is shutting down")
        job = exchange.job
        if job.caller.key is not None:
            check_permitted(job.caller.key, job.model)
        return self._inner.answer(exchange)


class Routing:
    """Finds the targets. A large body is read in a thread, where it is to be read at all: later steps find it
    read."""

    def __init__(self, inner: Answerer, router: Router) -> None:
        self._inner = inner
        self._router = router

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        job, router = exchange.job, self._router
        by_effort = router.has_effort_rules and depends_on_effort(job.settings, job.model)
        effort = exchange.effort() if by_effort else ""
        exchange.targets = router.targets(job.settings, job.model, job.dialect, effort)
        return self._read(exchange) if exchange.is_large else self._inner.answer(exchange)

    async def _read(self, exchange: Exchange) -> None:
        job = exchange.job
        passes = all(target.dialect == job.dialect and target.plain for target in exchange.targets)
        wanted = not passes or job.surface.stored is not None or bool(job.conversation)
        if wanted:
            exchange.held.take(len(job.body))  # decoded, it is there once more
        with suppress(RequestError):  # raised again by the step that needs the request
            await aside(lambda: _read(exchange, wanted))
        await self._inner.answer(exchange)


def _read(exchange: Exchange, wanted: bool) -> None:
    if exchange.sealed or wanted:
        exchange.request()


class Queue:
    """Waits for its turn, where there are too many requests at once."""

    def __init__(self, inner: Answerer, gates: Gates) -> None:
        self._inner = inner
        self._gates = gates

    async def answer(self, exchange: Exchange) -> None:
        job = exchange.job
        entered, tap = [], exchange.tap
        if tap is not None:
            tap.passed("store")
        try:
            for gate in self._gates.of(job.caller, job.settings.limits):
                if not gate.try_enter():
                    await gate.enter()
                entered.append(gate)
            if tap is not None:
                tap.passed("queue")
            await self._inner.answer(exchange)
        finally:
            for gate in entered:
                gate.leave()


class TimeLimit:
    """The time that the caller gives the whole answer, waiting and further attempts included."""

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner

    async def answer(self, exchange: Exchange) -> None:
        seconds = exchange.job.timeout
        try:
            async with asyncio.timeout(seconds):
                await self._inner.answer(exchange)
        except TimeoutError:
            raise RequestError("upstream_timeout", f"no whole answer within {seconds:g} seconds") from None
