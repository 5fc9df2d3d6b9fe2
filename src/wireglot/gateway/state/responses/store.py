"""Stored answers: written whole, found only by the caller whose they are."""

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

MAX_REMEMBERED: Final = 10_000
WHY: Final = "It was answered with store: false, because the gateway's store was not available."

Name = tuple[str, str]
"""A caller, and the id of one of its responses."""


class Unstored:
    """Responses that were answered, and that the store did not take: the client is shown why one is not
    there.

    In the memory of the process that answered. Another one knows nothing of them, and says that there is no
    such response; so does this one, once it has forgotten.
    """

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        self._most = most
        self._names: OrderedDict[Name, bool] = OrderedDict()
        """With whether something of it may lie in the store: a call that was given up may have happened."""

    def add(self, caller: str, id: str, *, doubtful: bool = True) -> None:
        self._names[caller, id] = doubtful
        while len(self._names) > self._most:
            self._names.popitem(last=False)

    def __contains__(self, name: Name) -> bool:
        return name in self._names

    def doubtful(self) -> list[Name]:
        return [name for name, doubtful in self._names.items() if doubtful]

    def cleared(self, name: Name) -> None:
        """Nothing of it lies in the store."""
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
        """Those that are there, by id. One whose client was informed that it is not stored is not there,
        whatever became of the call that was given up."""
        wanted = [id for id in ids if (caller, id) not in self.unstored]
        if not wanted:
            return {}
        found = await self._documents.get(caller, RESPONSE, wanted)
        return {document.id: _DECODER.decode(document.body) for document in found}

    async def save(self, caller: str, id: str, kept: KeptResponse) -> None:
        """With the references to its items, in one step; durable when it returns."""
        document = self._form(caller, id, kept)
        await self._documents.put([document, *_references(document, _keys(kept))])

    async def replace(self, caller: str, id: str, kept: KeptResponse) -> bool:
        """Only where it still exists: what a client has deleted stays deleted. Its input is as it was."""
        document = self._form(caller, id, kept)
        if not await self._documents.replace(document):
            return False
        references = _references(document, _output_keys(kept))
        if references:
            await self._documents.put(references)
        return True

    def missing(self, caller: str, id: str, noun: str) -> RequestError:
        """What is reported about an id under which there is nothing."""
        why = f" {WHY}" if (caller, id) in self.unstored else ""
        return RequestError(
            "not_found", f"{noun.capitalize()} with id '{id}' not found.{why}", code="response_not_found"
        )

    async def remove_unstored(self) -> None:
        """The store is back: what calls that were given up may have left in it goes. Its references lead
        nowhere then, and end with their time."""
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
        """The items of stored responses that have these ids, as far as there are such."""
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
    """Under which its items are found. Those of the input that got their ids from us share one: clients that
    send whole histories would otherwise leave an entry for each item of each request."""
    given = (id for id in _ids(kept.input) if not kept.stem or stem_of(id) != kept.stem)
    keys = [*map(key_of, given), *_output_keys(kept)]
    if kept.stem and any(stem_of(id) == kept.stem for id in _ids(kept.input)):
        keys.append(kept.stem)
    return list(dict.fromkeys(keys))


def _output_keys(kept: KeptResponse) -> list[str]:
    return list(dict.fromkeys(map(key_of, _ids(kept.body.get("output", ())))))


def _ids(items: Iterable[dict[str, Any]]) -> Iterable[str]:
    return (item["id"] for item in items if isinstance(item.get("id"), str))
