"""`/v1/conversations`: conversations and their items, made, shown, changed and deleted."""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

from wireglot.dialects.base import Context
from wireglot.gateway.faults import Fault
from wireglot.gateway.state.conversations.items import (
    RESPONSES,
    Stem,
    as_wire,
    is_reference,
    parsed,
    whole_items,
)
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.kept import KeptConversation, KeptItem, new_part
from wireglot.gateway.state.paging import listed, order_of, page_size
from wireglot.gateway.state.question import Question

_ITEMS_MOST: Final = 20
_PAIRS_MOST: Final = 16
_KEY_MOST: Final = 64
_VALUE_MOST: Final = 512


class ConversationRoutes:
    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations

    async def answer(self, question: Question) -> None:
        match question.asked.verb:
            case "conversations.create":
                await self._create(question)
            case "conversations.get":
                await self._send(question, await self._found(question))
            case "conversations.update":
                await self._update(question)
            case "conversations.delete":
                await self._delete(question)
            case "items.create":
                await self._create_items(question)
            case "items.list":
                await self._list_items(question)
            case "items.get":
                await self._get_item(question)
            case "items.delete":
                await self._delete_item(question)

    async def _create(self, question: Question) -> None:
        body = question.document()
        items = _items(body.get("items"), question) if body.get("items") is not None else []
        metadata = _metadata(body.get("metadata"))
        kept = KeptConversation(f"conv_{secrets.token_hex(16)}", int(time.time()), new_part(), RESPONSES)
        await self._conversations.begin(question.tenant, kept, items, context_of(question), metadata)
        question.send(_shown(kept, metadata))

    async def _update(self, question: Question) -> None:
        kept = await self._found(question)
        body = question.document()
        if "metadata" not in body:
            raise Fault(
                "bad", "metadata: expected an object", code="missing_required_parameter", param="metadata"
            )
        metadata = _metadata(body["metadata"])
        if not await self._conversations.update(question.tenant, kept, metadata):
            raise no_conversation(kept.id)
        question.send(_shown(kept, metadata))

    async def _delete(self, question: Question) -> None:
        (id,) = question.asked.ids
        if not await self._conversations.delete(question.tenant, id):
            raise no_conversation(id)
        question.send({"id": id, "object": "conversation.deleted", "deleted": True})

    async def _create_items(self, question: Question) -> None:
        kept = await self._found(question)
        items = _items(question.document().get("items"), question)
        added = await self._conversations.append(question.tenant, kept, items, context_of(question))
        if added is None:
            raise no_conversation(kept.id)
        question.send(listed([item.item or {} for item in added], has_more=False))

    async def _list_items(self, question: Question) -> None:
        kept = await self._found(question)
        newest_first, limit = order_of(question) == "desc", page_size(question)
        after = before = 0
        if question.query("after"):
            seen = await self._conversations.item(question.tenant, kept, question.query("after"))
            if seen is None:
                raise Fault(
                    "bad", f"after: there is no item '{question.query('after')}' in this list", param="after"
                )
            after, before = (0, seen.number) if newest_first else (seen.number, 0)
        found = await self._conversations.items(
            question.tenant, kept, after=after, before=before, limit=limit + 1, newest_first=newest_first
        )
        context = context_of(question)
        entries = [as_wire(placed.kept, context) for placed in found[:limit]]
        question.send(listed(entries, has_more=len(found) > limit))

    async def _get_item(self, question: Question) -> None:
        kept, id = await self._found(question), question.asked.ids[1]
        placed = await self._conversations.item(question.tenant, kept, id)
        if placed is None:
            raise _no_item(id)
        question.send(as_wire(placed.kept, context_of(question)))

    async def _delete_item(self, question: Question) -> None:
        kept, id = await self._found(question), question.asked.ids[1]
        if not await self._conversations.delete_item(question.tenant, kept, id):
            raise _no_item(id)
        await self._send(question, kept)

    async def _send(self, question: Question, kept: KeptConversation) -> None:
        metadata = await self._conversations.metadata(question.tenant, [kept])
        question.send(_shown(kept, metadata[kept.id]))

    async def _found(self, question: Question) -> KeptConversation:
        id = question.asked.ids[0]
        kept = await self._conversations.find(question.tenant, id)
        if kept is None:
            raise no_conversation(id)
        return kept


def context_of(question: Question) -> Context:
    secret = question.settings.server.secret.value.encode() or b"wireglot"
    return Context(secret=secret, seed=question.record.id, now=int(time.time()))


def _shown(kept: KeptConversation, metadata: dict[str, str]) -> dict[str, Any]:
    return {
        "id": kept.id,
        "object": "conversation",
        "created_at": kept.created,
        "metadata": metadata,
    }


def no_conversation(id: str) -> Fault:
    return Fault("not_found", f"Conversation with id '{id}' not found.", code="conversation_not_found")


def _no_item(id: str) -> Fault:
    return Fault("not_found", f"Item with id '{id}' not found.", code="item_not_found")


def _items(value: Any, question: Question) -> list[KeptItem]:
    if not isinstance(value, list):
        raise Fault("bad", "items: expected an array of items", code="invalid_type", param="items")
    if len(value) > _ITEMS_MOST:
        raise Fault(
            "bad",
            f"items: at most {_ITEMS_MOST} at a time, got {len(value)}",
            code="array_above_max_length",
            param="items",
        )
    for number, item in enumerate(value):
        if is_reference(item):
            raise Fault(
                "bad",
                "a conversation holds items, not references to them",
                code="invalid_value",
                param=f"items[{number}]",
            )
    context = context_of(question)
    try:
        parsed(value, context)  # what no request could be made of is not kept
    except Fault as fault:
        place = fault.error.param.replace("input[", "items[", 1)
        message = fault.error.message.replace("input[", "items[", 1)
        raise Fault("bad", message, code=fault.error.code, param=place) from None
    stem = Stem(context, "items")
    return [KeptItem(item["id"], item) for item in whole_items(value, stem)]


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Fault("bad", "metadata: expected an object", code="invalid_type", param="metadata")
    if len(value) > _PAIRS_MOST:
        raise Fault(
            "bad",
            f"metadata: at most {_PAIRS_MOST} pairs, got {len(value)}",
            code="object_above_max_properties",
            param="metadata",
        )
    for key, said in value.items():
        if not isinstance(said, str):
            raise Fault("bad", "metadata: values are strings", code="invalid_type", param="metadata")
        if len(key) > _KEY_MOST or len(said) > _VALUE_MOST:
            raise Fault(
                "bad",
                f"metadata: keys have at most {_KEY_MOST} characters, values {_VALUE_MOST}",
                code="string_above_max_length",
                param="metadata",
            )
    return value
