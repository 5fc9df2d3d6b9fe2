"""The steps that hold a client key to its quotas: reserved before, grown by what is put into a request,
settled after."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.state.quotas.quotas import Quotas


class QuotaReservation:
    """Settles however the request ends, also where its client left or the gateway ends."""

    def __init__(self, inner: Answerer, quotas: Quotas) -> None:
        self._inner = inner
        self._quotas = quotas

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        if not self._quotas.limit(exchange.job.caller.key):
            return self._inner.answer(exchange)
        return self._within(exchange)

    async def _within(self, exchange: Exchange) -> None:
        claim = await self._quotas.admit(exchange, exchange.targets[0])
        if claim is None:
            await self._inner.answer(exchange)
            return
        ended: BaseException | None = None
        try:
            await self._inner.answer(exchange)
        except BaseException as problem:
            ended = problem
            raise
        finally:
            self._quotas.settle(claim, exchange.record, ended)


class QuotaGrowth:
    """The model reads a conversation that we hold, too: once it stands in the request, it is reserved."""

    def __init__(self, inner: Answerer, quotas: Quotas) -> None:
        self._inner = inner
        self._quotas = quotas

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        if not exchange.rewritten:
            return self._inner.answer(exchange)
        return self._grown(exchange)

    async def _grown(self, exchange: Exchange) -> None:
        claim = self._quotas.held_by(exchange)
        if claim is not None:
            await self._quotas.grow(claim, exchange, exchange.targets[0])
        await self._inner.answer(exchange)
