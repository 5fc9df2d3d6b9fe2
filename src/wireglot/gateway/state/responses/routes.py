"""`/v1/responses/{id}`: stored responses, shown and deleted."""

from __future__ import annotations

from typing import Any

from wireglot.gateway.faults import Fault
from wireglot.gateway.state.background import Background, unknown
from wireglot.gateway.state.paging import listed, order_of, page_size
from wireglot.gateway.state.question import Question
from wireglot.gateway.state.responses.store import ResponseStore


class ResponseRoutes:
    def __init__(self, responses: ResponseStore, background: Background) -> None:
        self._responses = responses
        self._background = background

    async def answer(self, question: Question, verb: str) -> None:
        match verb:
            case "get" if question.query("stream") == "true":
                await self._background.stream(question)
            case "get":
                await self._get(question)
            case "delete":
                await self._delete(question)
            case "cancel":
                await self._background.cancel(question)
            case "input_items":
                await self._input_items(question)

    async def _get(self, question: Question) -> None:
        (id,) = question.asked.ids
        kept = await self._responses.load(question.tenant, id)
        if kept is not None:
            kept = await self._background.current(question.tenant, id, kept)
        if kept is None:
            raise unknown(id)
        question.send(kept.body)

    async def _delete(self, question: Question) -> None:
        (id,) = question.asked.ids
        if not await self._responses.delete(question.tenant, id):
            raise unknown(id)
        await self._background.dropped(question.tenant, id)
        question.send({"id": id, "object": "response.deleted", "deleted": True})

    async def _input_items(self, question: Question) -> None:
        (id,) = question.asked.ids
        kept = await self._responses.load(question.tenant, id)
        if kept is None:
            raise unknown(id)
        items: list[dict[str, Any]] = kept.input
        if order_of(question) == "desc":
            items = items[::-1]
        after, limit = question.query("after"), page_size(question)
        if after:
            places = [place for place, item in enumerate(items) if item["id"] == after]
            if not places:
                raise Fault("bad", f"after: there is no item '{after}' in this list", param="after")
            items = items[places[0] + 1 :]
        question.send(listed(items[:limit], has_more=len(items) > limit))
