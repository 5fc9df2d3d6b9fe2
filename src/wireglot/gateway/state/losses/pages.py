"""`GET /v1/requests/{id}/losses`: what could not cross of a request, told to whoever sent it."""

from __future__ import annotations

from typing import Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.state.losses.shelf import LossShelf
from wireglot.wire.json import decode

_ID_LONGEST: Final = 64


class LossPages:
    def __init__(self, shelf: LossShelf) -> None:
        self._shelf = shelf

    async def get(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        found = await self._shelf.find(page.caller.name, id) if len(id) <= _ID_LONGEST else None
        if found is None:
            # The same words for the requests of others: that there are any is nobody's business.
            raise RequestError(
                "not_found",
                f"no losses of {id[:_ID_LONGEST]}: it had none, was sent by somebody else, or is long ago",
                code="losses_not_found",
            )
        page.send(decode(found))
