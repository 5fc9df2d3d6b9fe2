"""`/v1/responses/{id}`: stored responses, shown and deleted."""

from __future__ import annotations

from typing import Any

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest, listed, order_of, page_size
from wireglot.gateway.state.responses.background import Background
from wireglot.gateway.state.responses.store import ResponseStore


class ResponsePages:
    def __init__(self, responses: ResponseStore, background: Background) -> None:
        self._responses = responses
        self._background = background

    async def cancel(self, page: PageRequest) -> None:
        await self._background.cancel(page)

    async def get(self, page: PageRequest) -> None:
        if page.query("stream") == "true":
            await self._background.stream(page)
            return
        (id,) = page.asked.ids
        kept = await self._responses.load(page.caller.name, id)
        if kept is not None:
            kept = await self._background.current(page.caller.name, id, kept)
        if kept is None:
            raise self._responses.missing(page.caller.name, id)
        page.send(kept.body)

    async def delete(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        if not await self._responses.delete(page.caller.name, id):
            raise self._responses.missing(page.caller.name, id)
        await self._background.dropped(page.caller.name, id)
        page.send({"id": id, "object": "response.deleted", "deleted": True})

    async def input_items(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        kept = await self._responses.load(page.caller.name, id)
        if kept is None:
            raise self._responses.missing(page.caller.name, id)
        items: list[dict[str, Any]] = kept.input
        if order_of(page) == "desc":
            items = items[::-1]
        after, limit = page.query("after"), page_size(page)
        if after:
            places = [place for place, item in enumerate(items) if item["id"] == after]
            if not places:
                raise RequestError("bad", f"after: there is no item '{after}' in this list", param="after")
            items = items[places[0] + 1 :]
        page.send(listed(items[:limit], has_more=len(items) > limit))
