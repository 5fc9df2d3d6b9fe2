"""Stored answers: written whole, found only by the caller they belong to."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.conversations.items import stem_of
from wireglot.gateway.state.stored_forms import REFERENCE, RESPONSE, KeptResponse, key_of, pack
from wireglot.stores.base import Documents
from wireglot.stores.records import Document

_DECODER: Final = msgspec.json.Decoder(KeptResponse)
_DAY_MS: Final = 24 * 3600 * 1000

# Responses that a process remembers without a store.
MAX_REMEMBERED: Final = 10_000
WHY: Final = "It was answered with store: false, because the gateway's store was not available."

Name = tuple[str, str]
"""A caller, and the id of one of its responses."""


class Unstored:
    """Responses that were answered but not stored: the client is told why one is missing.

    Kept in the memory of the process that answered. Others do not know them and report that there is no such
    response; so does this one after it has dropped them.
    """

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        self._most = most
        self._names: OrderedDict[Name, bool] = OrderedDict()
        """The value: whether parts of it may be in the store, since an aborted call may have succeeded."""

    def add(self, caller: str, id: str, *, doubtful: bool = True) -> None:
        self._names[caller, id] = doubtful
        while len(self._names) > self._most:
            self._names.popitem(last=False)

    def __contains__(self, name: Name) -> bool:
        return name in self._names

    def doubtful(self) -> list[Name]:
        return [name for name, doubtful in self._names.items() if doubtful]

    def cleared(self, name: Name) -> None:
        """Nothing of it is in the store."""
        if name in self._names:
            self._names[name] = False


class ResponseStore:
    def __init__(self, documents: Documents, settings: Settings) -> None:
        self.unstored = Unstored()
        self._documents = documents
        self._days = settings.store.keep.responses_days

    def adopt(self, settings: Settings) -> None:
        self._days = settings.store.keep.responses_days

    async def load(self, caller: str, id: str) -> KeptResponse | None:
        return (await self.load_all(caller, [id])).get(id)

    async def load_all(self, caller: str, ids: Iterable[str]) -> dict[str, KeptResponse]:
        """The existing responses, by id. One whose client was told that it is not stored does not count, even
        if the aborted call succeeded."""
        wanted = [id for id in ids if (caller, id) not in self.unstored]
        if not wanted:
            return {}
        found = await self._documents.get(caller, RESPONSE, wanted)
        return {document.id: _DECODER.decode(document.body) for document in found}

    async def save(self, caller: str, id: str, kept: KeptResponse) -> None:
        """Saved with the references to its items, in one step; durable when it returns."""
        document = self._form(caller, id, kept)
        await self._documents.put([document, *_references(document, _keys(kept))])

    async def replace(self, caller: str, id: str, kept: KeptResponse) -> bool:
        """Only if it still exists: what a client has deleted stays deleted. Its input does not change."""
        document = self._form(caller, id, kept)
        if not await self._documents.replace(document):
            return False
        references = _references(document, _output_keys(kept))
        if references:
            await self._documents.put(references)
        return True

    def missing(self, caller: str, id: str, noun: str) -> RequestError:
        """The error for an id without a response."""
        why = f" {WHY}" if (caller, id) in self.unstored else ""
        return RequestError(
            "not_found", f"{noun.capitalize()} with id '{id}' not found.{why}", code="response_not_found"
        )

    async def remove_unstored(self) -> None:
        """The store is back: remove what aborted calls may have left in it. References to it are then
        invalid, and expire."""
        for name in self.unstored.doubtful():
            caller, id = name
            await self._documents.delete(caller, RESPONSE, [id])
            self.unstored.cleared(name)

    async def delete(self, caller: str, id: str) -> bool:
        kept = await self.load(caller, id)
        if kept is not None:
            pointing = await self._documents.get(caller, REFERENCE, _keys(kept))
            own = [reference.id for reference in pointing if reference.body.decode() == id]
            if own:
                await self._documents.delete(caller, REFERENCE, own)
        return await self._documents.delete(caller, RESPONSE, [id]) > 0

    async def items(self, caller: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The items of stored responses with these ids, as far as they exist."""
        wanted = set(ids)
        keys = {key_of(id) for id in wanted} | {stem_of(id) for id in wanted} - {""}
        pointing = await self._documents.get(caller, REFERENCE, list(keys))
        kept = await self.load_all(caller, {reference.body.decode() for reference in pointing})
        return {
            item["id"]: item
            for response in kept.values()
            for item in (*response.input, *response.body.get("output", ()))
            if isinstance(item.get("id"), str) and item["id"] in wanted
        }

    def _form(self, caller: str, id: str, kept: KeptResponse) -> Document:
        now = int(time.time() * 1000)
        expires = now + int(self._days * _DAY_MS) if self._days else 0
        return Document(caller, RESPONSE, id, pack(kept), created=now, expires=expires)


def _references(document: Document, keys: Iterable[str]) -> list[Document]:
    body = document.id.encode()
    return [
        Document(
            document.caller, REFERENCE, key, body, created=document.created, expires=document.expires
        )
        for key in keys
    ]  # fmt: skip


def _keys(kept: KeptResponse) -> list[str]:
    """The keys by which its items are found. Input items whose ids we made share one: clients that send whole
    histories would otherwise leave an entry for each item of each request."""
    given = (id for id in _ids(kept.input) if not kept.stem or stem_of(id) != kept.stem)
    keys = [*map(key_of, given), *_output_keys(kept)]
    if kept.stem and any(stem_of(id) == kept.stem for id in _ids(kept.input)):
        keys.append(kept.stem)
    return list(dict.fromkeys(keys))


def _output_keys(kept: KeptResponse) -> list[str]:
    return list(dict.fromkeys(map(key_of, _ids(kept.body.get("output", ())))))


def _ids(items: Iterable[dict[str, Any]]) -> Iterable[str]:
    return (item["id"] for item in items if isinstance(item.get("id"), str))
