"""Stored responses of the Responses dialect: written whole, found only by the caller whose they are."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wireglot.gateway.settings import Settings
from wireglot.gateway.state.kept import REFERENCE, RESPONSE, KeptResponse, pack
from wireglot.stores.base import Documents
from wireglot.stores.records import Document

_DECODER: Final = msgspec.json.Decoder(KeptResponse)
_DAY: Final = 24 * 3600 * 1000


class ResponseStore:
    def __init__(self, documents: Documents, settings: Settings) -> None:
        self._documents = documents
        self._days = settings.store.keep.responses_days

    def adopt(self, settings: Settings) -> None:
        self._days = settings.store.keep.responses_days

    async def load(self, tenant: str, id: str) -> KeptResponse | None:
        return (await self.load_all(tenant, [id])).get(id)

    async def load_all(self, tenant: str, ids: Iterable[str]) -> dict[str, KeptResponse]:
        """Those that are there, by id."""
        found = await self._documents.get(tenant, RESPONSE, list(ids))
        return {document.id: _DECODER.decode(document.body) for document in found}

    async def save(self, tenant: str, id: str, kept: KeptResponse, *, new: bool = False) -> bool:
        """Durable when it returns. With `new`: False, and nothing written, where the id exists."""
        document = self._form(tenant, id, kept)
        if new:
            # Items that were echoed have a reference already, so they cannot be part of the same step.
            if not await self._documents.put([document], new=True):
                return False
            await self._refer(document, kept)
            return True
        return await self._documents.put([document, *_references(document, kept)])

    async def replace(self, tenant: str, id: str, kept: KeptResponse) -> bool:
        """Only where it still exists: what a client has deleted stays deleted."""
        document = self._form(tenant, id, kept)
        if not await self._documents.replace(document):
            return False
        await self._refer(document, kept)
        return True

    async def delete(self, tenant: str, id: str) -> bool:
        kept = await self.load(tenant, id)
        if kept is not None:
            pointing = await self._documents.get(tenant, REFERENCE, _item_ids(kept))
            own = [reference.id for reference in pointing if reference.body.decode() == id]
            if own:
                await self._documents.delete(tenant, REFERENCE, own)
        return await self._documents.delete(tenant, RESPONSE, [id]) > 0

    async def items(self, tenant: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The items of stored responses that have these ids, as far as there are such."""
        wanted = set(ids)
        pointing = await self._documents.get(tenant, REFERENCE, list(wanted))
        kept = await self.load_all(tenant, {reference.body.decode() for reference in pointing})
        return {
            item["id"]: item
            for response in kept.values()
            for item in (*response.input, *response.body.get("output", ()))
            if item.get("id") in wanted
        }

    async def _refer(self, document: Document, kept: KeptResponse) -> None:
        references = _references(document, kept)
        if references:
            await self._documents.put(references)

    def _form(self, tenant: str, id: str, kept: KeptResponse) -> Document:
        now = int(time.time() * 1000)
        expires = now + int(self._days * _DAY) if self._days else 0
        return Document(tenant, RESPONSE, id, pack(kept), created=now, expires=expires)


def _references(document: Document, kept: KeptResponse) -> list[Document]:
    return [
        Document(
            document.tenant,
            REFERENCE,
            id,
            document.id.encode(),
            created=document.created,
            expires=document.expires,
        )
        for id in _item_ids(kept)
    ]


def _item_ids(kept: KeptResponse) -> list[str]:
    items = (*kept.input, *kept.body.get("output", ()))
    return list(dict.fromkeys(item["id"] for item in items if isinstance(item.get("id"), str)))
