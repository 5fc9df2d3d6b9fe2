"""Conversations and their items in the store.

A conversation has an unguessable `part`, under which its items are stored: an item that another request adds
after the conversation was deleted never appears in a later one of the same name. If a client sends a whole
history, its items are written under a new part, in one step with the entry that makes it the current one:
readers see all of the old items or all of the new ones. Of two such histories at once one becomes current; a
turn that is added meanwhile goes to that one. Entries are kept until the items of their part are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.job import Job
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.stored_forms import (
    CONVERSATION,
    ITEM,
    METADATA,
    PART,
    KeptConversation,
    KeptItem,
    key_of,
    new_part,
    now_ms,
    pack,
)
from wireglot.stores.base import Documents, StoreDown
from wireglot.stores.records import Document
from wireglot_core.dialects.context import Context

_CONVERSATION: Final = msgspec.json.Decoder(KeptConversation)
_METADATA: Final = msgspec.json.Decoder(dict[str, str])
_ITEM: Final = msgspec.json.Decoder(KeptItem)
_DAY_MS: Final = 24 * 3600 * 1000
_RENEWED: Final = 0.9
"""A conversation's time is extended to the whole when less than this fraction of it is left."""


class Placed(msgspec.Struct, frozen=True):
    """An item and its place."""

    number: int
    kept: KeptItem


class Seen(msgspec.Struct, frozen=True):
    """A conversation, when it was last used, and when it and its items expire (unix milliseconds; 0:
    never)."""

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

    async def find(self, caller: str, id: str) -> KeptConversation | None:
        seen = await self.seen(caller, id)
        return None if seen is None else seen.kept

    async def seen(self, caller: str, id: str) -> Seen | None:
        found = await self._documents.get(caller, CONVERSATION, [id])
        return _seen(found[0]) if found else None

    async def known(self, caller: str, ids: Sequence[str]) -> set[str]:
        """Which of these conversations are stored."""
        return {document.id for document in await self._documents.get(caller, CONVERSATION, ids)}

    async def recent(self, caller: str, limit: int, before: tuple[int, str] | None = None) -> list[Seen]:
        """The most recently used first."""
        found = await self._documents.recent(caller, CONVERSATION, limit=limit, before=before)
        return [_seen(document) for document in found]

    async def begin(
        self,
        caller: str,
        kept: KeptConversation,
        items: Sequence[KeptItem],
        context: Context,
        metadata: dict[str, str] | None = None,
    ) -> bool:
        """Create the conversation with its first items, in one step. False, and nothing written, if it
        exists."""
        until = self._until(now_ms())
        documents = [
            Document(caller, CONVERSATION, kept.id, pack(kept), created=now_ms(), expires=until),
            _entry(caller, kept, kept.part, 1, until),
            *_pieces(caller, kept.part, _named(items, set(), context), until),
        ]
        if metadata:
            documents.append(_note(caller, kept, metadata, until))
        return await self._documents.put(documents, new=True)

    async def metadata(
        self, caller: str, conversations: Sequence[KeptConversation]
    ) -> dict[str, dict[str, str]]:
        """The metadata of all of them, by id."""
        found = await self._documents.get(caller, METADATA, [kept.part for kept in conversations])
        by_part = {document.id: _METADATA.decode(document.body) for document in found}
        return {kept.id: by_part.get(kept.part, {}) for kept in conversations}

    async def update(self, caller: str, kept: KeptConversation, metadata: dict[str, str]) -> bool:
        """Change its metadata. False if it has been deleted."""
        seen = await self.seen(caller, kept.id)
        if seen is None or seen.kept.part != kept.part:
            return False
        await self._documents.put([_note(caller, kept, metadata, seen.until)])
        if await self._is_there(caller, kept):
            return True
        await self._documents.delete(caller, METADATA, [kept.part])
        return False

    async def delete(self, caller: str, id: str) -> bool:
        """Delete a conversation, with immediate effect. Items that could not be removed are removed by the
        next call."""
        there = await self._documents.delete(caller, CONVERSATION, [id]) > 0
        return await self._clear(caller, id) or there

    # Items.

    async def items(
        self,
        caller: str,
        kept: KeptConversation,
        *,
        after: int = 0,
        before: int = 0,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Placed]:
        while True:
            part = await self._current(caller, kept)
            found = await self._documents.pieces(
                caller, ITEM, part, after=after, before=before, limit=limit, newest_first=newest_first
            )
            # No items: they may have been replaced since their part was looked up.
            if found or await self._current(caller, kept) == part:
                return [Placed(document.number, _ITEM.decode(document.body)) for document in found]

    async def items_named(self, caller: str, kept: KeptConversation, ids: Iterable[str]) -> dict[str, Placed]:
        """The existing ones of these items, by id."""
        part = await self._current(caller, kept)
        found = await self._documents.get(caller, ITEM, [_piece(part, id) for id in ids])
        placed = (Placed(document.number, _ITEM.decode(document.body)) for document in found)
        return {entry.kept.id: entry for entry in placed}

    async def item(self, caller: str, kept: KeptConversation, id: str) -> Placed | None:
        return (await self.items_named(caller, kept, [id])).get(id)

    async def delete_item(self, caller: str, kept: KeptConversation, id: str) -> bool:
        part = await self._current(caller, kept)
        return await self._documents.delete(caller, ITEM, [_piece(part, id)]) > 0

    async def keep_turn(
        self,
        caller: str,
        kept: KeptConversation,
        items: Sequence[KeptItem],
        context: Context,
        *,
        begins: bool,
        whole: bool = False,
    ) -> None:
        """Store a turn: at the end of its conversation, or (`whole`) replacing all earlier items. Nothing is
        stored if the conversation was deleted meanwhile."""
        if begins:
            if await self.begin(caller, kept, items, context):
                return
            found = await self.find(caller, kept.id)  # another request has created it meanwhile
            if found is None:
                return
            kept = found
        if whole:
            await self.exchange(caller, kept, items, context)
        else:
            await self.append(caller, kept, items, context)

    async def append(
        self, caller: str, kept: KeptConversation, items: Sequence[KeptItem], context: Context
    ) -> list[KeptItem] | None:
        """Add items; returns them as they are stored: one whose id is taken gets another. None: the
        conversation has been deleted."""
        while (until := await self._touched(caller, kept)) is not None:
            if not items:
                return []
            part = await self._current(caller, kept)
            places = [_piece(part, item.id) for item in items]
            taken = {document.id for document in await self._documents.get(caller, ITEM, places)}
            added = _named(items, {place.partition("\x1f")[2] for place in taken}, context)
            await self._documents.append(_pieces(caller, part, added, until))
            try:
                if await self._is_there(caller, kept) and await self._current(caller, kept) == part:
                    return added
            except StoreDown:
                return added  # they are stored: after an error the client would add them again
            # The conversation was deleted, or its items were replaced, before ours were stored, so they were
            # not removed with the others.
            await self._documents.delete_pieces(caller, ITEM, part)
        return None

    async def exchange(
        self, caller: str, kept: KeptConversation, items: Sequence[KeptItem], context: Context
    ) -> None:
        """Replace all stored items by these."""
        if not items or (until := await self._touched(caller, kept)) is None:
            return
        entries = await self._documents.pieces(caller, PART, kept.id, limit=1, newest_first=True)
        last = entries[0].number if entries else 0
        part = new_part()
        pieces = _pieces(caller, part, _named(items, set(), context), until)
        await self._documents.put([*pieces, _entry(caller, kept, part, last + 1, until)])
        with suppress(StoreDown):  # the exchange is done: the next one, or a deletion, removes the old items
            await self._clear(caller, kept.id)

    # Parts.

    async def _current(self, caller: str, kept: KeptConversation) -> str:
        """The part under which its items are stored."""
        return _latest(kept, await self._documents.pieces(caller, PART, kept.id))

    async def _clear(self, caller: str, id: str) -> bool:
        """Remove data that is no longer visible: items that were replaced, and items of deleted conversations
        of this name. Returns whether there was any."""
        # The entries are read first: a part that is current by then is replaced only by one that is not among
        # them.
        entries = await self._documents.pieces(caller, PART, id)
        kept = await self.find(caller, id)
        current = _name(kept, _latest(kept, entries)) if kept is not None else ""
        old = [entry.id for entry in entries if entry.id != current]
        for name in old:
            await self._documents.delete_pieces(caller, ITEM, name.partition("\x1f")[2])
        gone = {name.partition("\x1f")[0] for name in old} - {kept.part if kept is not None else ""}
        if gone:
            await self._documents.delete(caller, METADATA, list(gone))
        if old:
            await self._documents.delete(caller, PART, old)
        return bool(old)

    async def _is_there(self, caller: str, kept: KeptConversation) -> bool:
        """Whether this conversation exists, and not only another of its name."""
        found = await self.find(caller, kept.id)
        return found is not None and found.part == kept.part

    async def _touched(self, caller: str, kept: KeptConversation) -> int | None:
        """Mark it as used. Returns when it expires now, or None if it is gone. Only this changes its expiry,
        and that of everything that belongs to it."""
        seen = await self.seen(caller, kept.id)
        if seen is None or seen.kept.part != kept.part:
            return None
        now = now_ms()
        until = self._until(now)
        if bool(until) == bool(seen.until) and (not until or seen.until - now >= _RENEWED * (until - now)):
            until = seen.until
        else:
            await self._documents.touch(caller, METADATA, kept.part, created=now, expires=until)
            await self._documents.touch_pieces(caller, PART, kept.id, expires=until)
            await self._documents.touch_pieces(caller, ITEM, await self._current(caller, kept), expires=until)
        there = await self._documents.touch(caller, CONVERSATION, kept.id, created=now, expires=until)
        return until if there else None

    def _until(self, now: int) -> int:
        return now + int(self._days * _DAY_MS) if self._days else 0


def _seen(document: Document) -> Seen:
    """`created` is when it was last used, since conversations are listed in that order."""
    return Seen(_CONVERSATION.decode(document.body), document.created, document.expires)


def _note(caller: str, kept: KeptConversation, metadata: dict[str, str], until: int) -> Document:
    body = msgspec.json.encode(metadata)
    return Document(caller, METADATA, kept.part, body, created=now_ms(), expires=until)


def _name(kept: KeptConversation, part: str) -> str:
    return f"{kept.part}\x1f{part}"


def _entry(caller: str, kept: KeptConversation, part: str, number: int, until: int) -> Document:
    """An entry that names the part with its items. Entries are found by the conversation's name, even after
    it was deleted."""
    return Document(
        caller,
        PART,
        _name(kept, part),
        b"",
        parent=kept.id,
        number=number,
        created=now_ms(),
        expires=until,
    )


def _latest(kept: KeptConversation, entries: Sequence[Document]) -> str:
    """Two histories stored at once may have the same number: every process prefers the same one."""
    own = ((entry.number, entry.id) for entry in entries if entry.id.startswith(_name(kept, "")))
    return max(own, default=(0, _name(kept, kept.part)))[1].partition("\x1f")[2]


def _pieces(caller: str, part: str, items: Sequence[KeptItem], until: int) -> list[Document]:
    """The items numbered from one, for a part that is still empty."""
    now = now_ms()
    return [
        Document(
            caller,
            ITEM,
            _piece(part, item.id),
            pack(item),
            parent=part,
            number=number,
            created=now,
            expires=until,
        )
        for number, item in enumerate(items, 1)
    ]


def _piece(part: str, item: str) -> str:
    """Item ids are unique within their conversation only: providers choose them."""
    return f"{part}\x1f{key_of(item)}"


def _named(items: Sequence[KeptItem], taken: set[str], context: Context) -> list[KeptItem]:
    """The items, each with a unique id. `taken` are the keys of the existing ones."""
    named: list[KeptItem] = []
    for item in items:
        if not item.id or key_of(item.id) in taken:
            item = _renamed(item, context, len(named))
        taken.add(key_of(item.id))
        named.append(item)
    return named


def _renamed(item: KeptItem, context: Context, place: int) -> KeptItem:
    identifier = context.new_id(item.id.partition("_")[0] or "item", "again", str(place))
    wire = item.item if item.item is None else {**item.item, "id": identifier}
    return replace(item, id=identifier, item=wire)


def new_conversation(name: str, job: Job) -> KeptConversation:
    """A conversation that begins with this request. Callers choose the names, but cannot make up ids in our
    form."""
    if name.startswith("conv_"):
        raise no_conversation(name)
    return KeptConversation(name, job.context.now, new_part(), dialect=job.dialect)


def no_conversation(id: str) -> RequestError:
    message = f"Conversation with id '{id}' not found."
    return RequestError("not_found", message, code="conversation_not_found", param="conversation")
