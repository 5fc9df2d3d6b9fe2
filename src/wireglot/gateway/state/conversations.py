"""Conversations and their items in the store. A turn is added in one step: two at once never mix."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.kept import CONVERSATION, ITEM, KeptConversation, KeptItem, pack
from wireglot.stores.base import Documents
from wireglot.stores.records import Document

_CONVERSATION: Final = msgspec.json.Decoder(KeptConversation)
_ITEM: Final = msgspec.json.Decoder(KeptItem)
_DAY: Final = 24 * 3600 * 1000
_RENEWED: Final = 0.9
"""What is left of a conversation's time when all of it is given the whole time again."""


class Placed(msgspec.Struct, frozen=True):
    """An item and its place."""

    number: int
    kept: KeptItem


class Seen(msgspec.Struct, frozen=True):
    """A conversation, when it was last used, when it and its items expire (unix milliseconds; 0: never)."""

    kept: KeptConversation
    used: int
    until: int


class ConversationStore:
    def __init__(self, documents: Documents, settings: Settings) -> None:
        self._documents = documents
        self._days = settings.store.keep.conversations_days

    def adopt(self, settings: Settings) -> None:
        self._days = settings.store.keep.conversations_days

    # Conversations.

    async def find(self, tenant: str, id: str) -> KeptConversation | None:
        seen = await self.seen(tenant, id)
        return None if seen is None else seen.kept

    async def seen(self, tenant: str, id: str) -> Seen | None:
        found = await self._documents.get(tenant, CONVERSATION, [id])
        return _seen(found[0]) if found else None

    async def known(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """Which of these are held."""
        return {document.id for document in await self._documents.get(tenant, CONVERSATION, ids)}

    async def recent(self, tenant: str, limit: int, before: tuple[int, str] | None = None) -> list[Seen]:
        """The last used first."""
        found = await self._documents.recent(tenant, CONVERSATION, limit=limit, before=before)
        return [_seen(document) for document in found]

    async def create(self, tenant: str, kept: KeptConversation) -> bool:
        """False where it exists."""
        return await self._documents.put([_form(tenant, kept, self._until(_now()))], new=True)

    async def update(self, tenant: str, kept: KeptConversation) -> bool:
        """Only where it still exists."""
        return await self._documents.replace(_form(tenant, kept, self._until(_now())))

    async def delete(self, tenant: str, id: str) -> bool:
        there = await self._documents.delete(tenant, CONVERSATION, [id]) > 0
        return await self._documents.delete_pieces(tenant, ITEM, id) > 0 or there

    # Items.

    async def items(
        self,
        tenant: str,
        kept: KeptConversation,
        *,
        after: int = 0,
        before: int = 0,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Placed]:
        found = await self._documents.pieces(
            tenant,
            ITEM,
            kept.id,
            after=max(after, kept.first - 1),
            before=before,
            limit=limit,
            newest_first=newest_first,
        )
        return [Placed(document.number, _ITEM.decode(document.body)) for document in found]

    async def item(self, tenant: str, kept: KeptConversation, id: str) -> Placed | None:
        found = await self._documents.get(tenant, ITEM, [_piece(kept.id, id)])
        if not found or found[0].number < kept.first:
            return None
        return Placed(found[0].number, _ITEM.decode(found[0].body))

    async def delete_item(self, tenant: str, kept: KeptConversation, id: str) -> bool:
        return await self._documents.delete(tenant, ITEM, [_piece(kept.id, id)]) > 0

    async def append(
        self, tenant: str, kept: KeptConversation, items: Sequence[KeptItem], context: Context
    ) -> list[KeptItem] | None:
        """The items as they are kept: one whose id is taken has another. None: it has been deleted."""
        fresh = await self._touched(tenant, kept.id)
        if fresh is None:
            return None
        added, number = await self._add(tenant, fresh, items, context)
        if added and number < fresh.kept.first:  # all that it had was deleted, and the count began anew
            await self.update(tenant, replace(fresh.kept, first=number))
        return added

    async def exchange(
        self, tenant: str, kept: KeptConversation, items: Sequence[KeptItem], context: Context
    ) -> None:
        """Hold these items instead of all that were held. The new ones are there before the old ones go."""
        fresh = await self._touched(tenant, kept.id)
        if fresh is None or not items:
            return
        old = [placed.kept.id for placed in await self.items(tenant, fresh.kept)]
        _, number = await self._add(tenant, fresh, items, context)
        await self.update(tenant, replace(fresh.kept, first=number))
        await self._documents.delete(tenant, ITEM, [_piece(kept.id, id) for id in old])

    async def _add(
        self, tenant: str, seen: Seen, items: Sequence[KeptItem], context: Context
    ) -> tuple[list[KeptItem], int]:
        if not items:
            return [], 0
        kept = seen.kept
        places = [_piece(kept.id, item.id) for item in items]
        taken = {document.id for document in await self._documents.get(tenant, ITEM, places)}
        added: list[KeptItem] = []
        for item in items:
            if not item.id or _piece(kept.id, item.id) in taken:
                item = _renamed(item, context, len(added))
            taken.add(_piece(kept.id, item.id))
            added.append(item)
        now = _now()
        number = await self._documents.append(
            [
                Document(
                    tenant, ITEM, _piece(kept.id, item.id), pack(item), kept.id,
                    created=now, expires=seen.until,
                )
                for item in added
            ]
        )  # fmt: skip
        return added, number

    async def _touched(self, tenant: str, id: str) -> Seen | None:
        """The conversation as it is now, marked as used; None where it is gone. Its metadata are not written:
        somebody may be changing them."""
        seen = await self.seen(tenant, id)
        if seen is None:
            return None
        now = _now()
        until = self._until(now)
        if bool(until) == bool(seen.until) and (not until or seen.until - now >= _RENEWED * (until - now)):
            until = seen.until
        else:
            await self._documents.touch_pieces(tenant, ITEM, id, expires=until)
        there = await self._documents.touch(tenant, CONVERSATION, id, created=now, expires=until)
        return Seen(seen.kept, now, until) if there else None

    def _until(self, now: int) -> int:
        return now + int(self._days * _DAY) if self._days else 0


def _seen(document: Document) -> Seen:
    return Seen(_CONVERSATION.decode(document.body), document.created, document.expires)


def _form(tenant: str, kept: KeptConversation, until: int) -> Document:
    """`created` is when it was last used: that is the order in which conversations are listed."""
    return Document(tenant, CONVERSATION, kept.id, pack(kept), created=_now(), expires=until)


def _piece(conversation: str, item: str) -> str:
    """Item ids are unique within their conversation only: providers choose them."""
    return f"{conversation}\x1f{item}"


def _renamed(item: KeptItem, context: Context, place: int) -> KeptItem:
    identifier = context.new_id(item.id.partition("_")[0] or "item", "again", str(place))
    wire = item.item if item.item is None else {**item.item, "id": identifier}
    return replace(item, id=identifier, item=wire)


def _now() -> int:
    return int(time.time() * 1000)
