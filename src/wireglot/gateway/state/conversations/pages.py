"""`/v1/conversations`: conversations and their items, made, shown, changed and deleted."""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

from wireglot.dialects.base import Context
from wireglot.gateway.entry.callers import sealing
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest, listed, order_of, page_size
from wireglot.gateway.state.conversations.items import Stem, as_wire, item_form, parsed
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.stored_forms import KeptConversation, KeptItem, new_part

_ITEMS_MOST: Final = 20
_PAIRS_MOST: Final = 16
_KEY_LETTERS_MOST: Final = 64
_VALUE_LETTERS_MOST: Final = 512


class ConversationPages:
    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations

    async def get(self, page: PageRequest) -> None:
        await self._send(page, await self._found(page))

    async def create(self, page: PageRequest) -> None:
        body = page.document()
        items = _items(body.get("items"), page) if body.get("items") is not None else []
        metadata = _metadata(body.get("metadata"))
        kept = KeptConversation(
            f"conv_{secrets.token_hex(16)}", int(time.time()), new_part(), page.asked.dialect
        )
        await self._conversations.begin(page.caller.name, kept, items, context_of(page), metadata)
        page.send(_shown(kept, metadata))

    async def update(self, page: PageRequest) -> None:
        kept = await self._found(page)
        body = page.document()
        if "metadata" not in body:
            raise RequestError(
                "bad", "metadata: expected an object", code="missing_required_parameter", param="metadata"
            )
        metadata = _metadata(body["metadata"])
        if not await self._conversations.update(page.caller.name, kept, metadata):
            raise no_conversation(kept.id)
        page.send(_shown(kept, metadata))

    async def delete(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        if not await self._conversations.delete(page.caller.name, id):
            raise no_conversation(id)
        page.send({"id": id, "object": "conversation.deleted", "deleted": True})

    async def create_items(self, page: PageRequest) -> None:
        kept = await self._found(page)
        items = _items(page.document().get("items"), page)
        added = await self._conversations.append(page.caller.name, kept, items, context_of(page))
        if added is None:
            raise no_conversation(kept.id)
        page.send(listed([item.item or {} for item in added], has_more=False))

    async def list_items(self, page: PageRequest) -> None:
        kept = await self._found(page)
        newest_first, limit = order_of(page) == "desc", page_size(page)
        after = before = 0
        if page.query("after"):
            seen = await self._conversations.item(page.caller.name, kept, page.query("after"))
            if seen is None:
                raise RequestError(
                    "bad", f"after: there is no item '{page.query('after')}' in this list", param="after"
                )
            after, before = (0, seen.number) if newest_first else (seen.number, 0)
        found = await self._conversations.items(
            page.caller.name, kept, after=after, before=before, limit=limit + 1, newest_first=newest_first
        )
        context = context_of(page)
        entries = [as_wire(placed.kept, context) for placed in found[:limit]]
        page.send(listed(entries, has_more=len(found) > limit))

    async def get_item(self, page: PageRequest) -> None:
        kept, id = await self._found(page), page.asked.ids[1]
        placed = await self._conversations.item(page.caller.name, kept, id)
        if placed is None:
            raise _no_item(id)
        page.send(as_wire(placed.kept, context_of(page)))

    async def delete_item(self, page: PageRequest) -> None:
        kept, id = await self._found(page), page.asked.ids[1]
        if not await self._conversations.delete_item(page.caller.name, kept, id):
            raise _no_item(id)
        await self._send(page, kept)

    async def _send(self, page: PageRequest, kept: KeptConversation) -> None:
        metadata = await self._conversations.metadata(page.caller.name, [kept])
        page.send(_shown(kept, metadata[kept.id]))

    async def _found(self, page: PageRequest) -> KeptConversation:
        id = page.asked.ids[0]
        kept = await self._conversations.find(page.caller.name, id)
        if kept is None:
            raise no_conversation(id)
        return kept


def context_of(page: PageRequest) -> Context:
    sealed = sealing(page.settings.server, page.caller)
    return Context(
        secret=sealed.secret,
        old_secrets=sealed.old_secrets,
        owner=sealed.owner,
        seed=page.record.id,
        now=int(time.time()),
    )


def _shown(kept: KeptConversation, metadata: dict[str, str]) -> dict[str, Any]:
    return {
        "id": kept.id,
        "object": "conversation",
        "created_at": kept.created,
        "metadata": metadata,
    }


def no_conversation(id: str) -> RequestError:
    return RequestError("not_found", f"Conversation with id '{id}' not found.", code="conversation_not_found")


def _no_item(id: str) -> RequestError:
    return RequestError("not_found", f"Item with id '{id}' not found.", code="item_not_found")


def _items(value: Any, page: PageRequest) -> list[KeptItem]:
    if not isinstance(value, list):
        raise RequestError("bad", "items: expected an array of items", code="invalid_type", param="items")
    if len(value) > _ITEMS_MOST:
        raise RequestError(
            "bad",
            f"items: at most {_ITEMS_MOST} at a time, got {len(value)}",
            code="array_above_max_length",
            param="items",
        )
    form = item_form()
    for number, item in enumerate(value):
        if form.is_reference(item):
            raise RequestError(
                "bad",
                "a conversation holds items, not references to them",
                code="invalid_value",
                param=f"items[{number}]",
            )
    context = context_of(page)
    try:
        parsed(value, context)  # what no request could be made of is not kept
    except RequestError as fault:
        place = fault.error.param.replace("input[", "items[", 1)
        message = fault.error.message.replace("input[", "items[", 1)
        raise RequestError("bad", message, code=fault.error.code, param=place) from None
    stem = Stem(context, "items")
    return [KeptItem(item["id"], item) for item in form.whole_items(value, stem.id)]


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RequestError("bad", "metadata: expected an object", code="invalid_type", param="metadata")
    if len(value) > _PAIRS_MOST:
        raise RequestError(
            "bad",
            f"metadata: at most {_PAIRS_MOST} pairs, got {len(value)}",
            code="object_above_max_properties",
            param="metadata",
        )
    for key, said in value.items():
        if not isinstance(said, str):
            raise RequestError("bad", "metadata: values are strings", code="invalid_type", param="metadata")
        if len(key) > _KEY_LETTERS_MOST or len(said) > _VALUE_LETTERS_MOST:
            raise RequestError(
                "bad",
                f"metadata: keys have at most {_KEY_LETTERS_MOST} characters, values {_VALUE_LETTERS_MOST}",
                code="string_above_max_length",
                param="metadata",
            )
    return value
