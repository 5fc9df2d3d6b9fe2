"""Steps around an answer that remember nothing: whether we are open, who may ask, where it goes, its turn,
how long it may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from wireglot.gateway.entry.callers import check_permitted
from wireglot.gateway.entry.gates import Gates, shed
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.aside import aside
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.targets.routing import Router


class Open:
    """A gateway that is shutting down takes nothing more on."""

    def __init__(self, inner: Answerer, is_draining: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_draining = is_draining

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        if self._is_draining():
            raise shed("the gateway is shutting down")
        return self._inner.answer(exchange)


class Permitted:
    """A client key may be good for some models only."""

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        job = exchange.job
        if job.caller.key is not None:
            check_permitted(job.caller.key, job.model)
        return self._inner.answer(exchange)


class Routed:
    """From here on it is known who may be asked."""

    def __init__(self, inner: Answerer, router: Router) -> None:
        self._inner = inner
        self._router = router

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        job, router = exchange.job, self._router
        effort = exchange.effort() if router.depends_on_effort(job.settings, job.model) else ""
        exchange.targets = router.targets(job.settings, job.model, job.dialect, effort)
        return self._inner.answer(exchange)


class Opened:
    """A large body is read beside the loop, where it is to be read at all: later steps find it done."""

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        return self._opened(exchange) if exchange.is_large else self._inner.answer(exchange)

    async def _opened(self, exchange: Exchange) -> None:
        job = exchange.job
        passes = all(target.dialect == job.dialect and target.plain for target in exchange.targets)
        wanted = not passes or job.surface.stored is not None or bool(job.conversation)
        if wanted:
            exchange.held.take(len(job.body))  # decoded, it is there once more
        with suppress(RequestError):  # whoever has to read it tells what is wrong with it
            await aside(lambda: _open(exchange, wanted))
        await self._inner.answer(exchange)


def _open(exchange: Exchange, wanted: bool) -> None:
    if exchange.sealed or wanted:
        exchange.request()


class Gated:
    """Waits for its turn, where there are too many at once."""

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


class WithinTime:
    """The time that the caller gives it, waiting and further attempts included."""

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        seconds = exchange.job.timeout
        return self._inner.answer(exchange) if seconds is None else self._within(exchange, seconds)

    async def _within(self, exchange: Exchange, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._inner.answer(exchange)
        except TimeoutError:
            raise RequestError("upstream_timeout", f"no whole answer within {seconds:g} seconds") from None
