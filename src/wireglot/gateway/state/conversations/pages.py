"""`/v1/conversations`: creates, shows, changes and deletes conversations and their items."""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

from wireglot.gateway.entry.callers import sealing
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.account_details import shown_route
from wireglot.gateway.request.page_request import PageRequest, listed, order_of, page_size, unavailable
from wireglot.gateway.state.conversations.items import Stem, as_wire, parsed
from wireglot.gateway.state.conversations.store import ConversationStore, Seen
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.stored_forms import KeptConversation, KeptItem, new_part
from wireglot.stores.base import Ledger
from wireglot.stores.records import Session, UsageQuery
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import surface

# Items that one request adds to a conversation, as at OpenAI.
_MAX_NEW_ITEMS: Final = 20
# Pairs of a conversation's metadata, as at OpenAI.
_MAX_PAIRS: Final = 16
# Characters of a name in a conversation's metadata, as at OpenAI.
_MAX_KEY_LETTERS: Final = 64
# Characters of a value in a conversation's metadata, as at OpenAI.
_MAX_VALUE_LETTERS: Final = 512


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
    if len(value) > _MAX_NEW_ITEMS:
        raise RequestError(
            "bad",
            f"items: at most {_MAX_NEW_ITEMS} at a time, got {len(value)}",
            code="array_above_max_length",
            param="items",
        )
    form = surface(page.asked.dialect).stored
    assert form is not None, "only a dialect with stored conversations has a path to them"
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
        parsed(value, context)  # items that cannot be part of a request are not stored
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
    if len(value) > _MAX_PAIRS:
        raise RequestError(
            "bad",
            f"metadata: at most {_MAX_PAIRS} pairs, got {len(value)}",
            code="object_above_max_properties",
            param="metadata",
        )
    for key, said in value.items():
        if not isinstance(said, str):
            raise RequestError("bad", "metadata: values are strings", code="invalid_type", param="metadata")
        if len(key) > _MAX_KEY_LETTERS or len(said) > _MAX_VALUE_LETTERS:
            raise RequestError(
                "bad",
                f"metadata: keys have at most {_MAX_KEY_LETTERS} characters, values {_MAX_VALUE_LETTERS}",
                code="string_above_max_length",
                param="metadata",
            )
    return value


# Items that an interaction is shown with.
_MAX_SHOWN_ITEMS: Final = 1000
_ROWS: Final = 100
"""Maximum number of a session's last requests whose dialects are reported."""


class SessionPages:
    def __init__(self, conversations: ConversationStore, ledger: Ledger, usage: UsageLedger) -> None:
        self._conversations = conversations
        self._ledger = ledger
        self._usage = usage

    async def list_all(self, page: PageRequest) -> None:
        caller, limit = page.caller.name, page_size(page)
        before = _cursor(page.query("after"))
        held = await self._conversations.recent(caller, limit + 1, before)
        known, unheld = await self._named(page, limit + 1, before)
        metadata = await self._conversations.metadata(caller, [seen.kept for seen in held])
        entries = []
        for seen in held:
            session = known.get(seen.kept.id) or await self._counted(page, seen.kept.id)
            entry = _of_held(seen, metadata[seen.kept.id], session)
            entries.append((seen.used, seen.kept.id, entry))
        entries += [(session.last, session.id, _of_session(session)) for session in unheld]
        entries.sort(key=lambda entry: entry[:2], reverse=True)
        shown, has_more = entries[:limit], len(entries) > limit
        page.send(
            {
                "object": "list",
                "data": [entry for _, _, entry in shown],
                "has_more": has_more,
                "after": f"{shown[-1][0]}.{shown[-1][1]}" if shown and has_more else None,
            }
        )

    async def _named(
        self, page: PageRequest, wanted: int, before: tuple[int, str] | None
    ) -> tuple[dict[str, Session], list[Session]]:
        """The sessions in the ledger, by id, and those of them that are not stored conversations. Stored ones
        have their own place in the list; if they leave too few others, more are read."""
        last, id = before or (0, "")
        limit, caller, made = wanted, page.caller.name, _made(page)
        while True:
            listed = await self._ledger.sessions(caller, limit=limit, before=last, beyond=id)
            counted = [session for session in listed if session.last >= made]
            held = await self._conversations.known(caller, [session.id for session in counted])
            unheld = [session for session in counted if session.id not in held]
            if len(counted) < limit or len(unheld) >= wanted:
                return {session.id: session for session in counted}, unheld
            limit *= 2

    async def get(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        caller = page.caller.name
        await self._usage.flush()  # a request that has just ended is included
        seen = await self._conversations.seen(caller, id)
        if seen is None:
            session = await self._counted(page, id)
            if session is None:
                raise _no_session(id)
            page.send(_one(page, session, _of_session(session)))
            return
        context = context_of(page)
        placed = await self._conversations.items(
            caller, seen.kept, limit=_MAX_SHOWN_ITEMS + 1, newest_first=True
        )
        items = [as_wire(entry.kept, context) for entry in reversed(placed[:_MAX_SHOWN_ITEMS])]
        metadata = await self._conversations.metadata(caller, [seen.kept])
        session = await self._counted(page, id)
        entry = _one(page, session, _of_held(seen, metadata[id], session))
        page.send({**entry, "items": items, "has_more": len(placed) > _MAX_SHOWN_ITEMS})

    async def delete(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        # Rows that are not in the store yet would create the name again.
        if not await self._usage.flush():
            raise unavailable(f"session {id!r}")
        held = await self._conversations.delete(page.caller.name, id)
        counted = await self._ledger.forget_session(page.caller.name, id)
        if not held and not counted:
            raise _no_session(id)
        page.send({"id": id, "object": "session.deleted", "deleted": True})

    async def _counted(self, page: PageRequest, id: str) -> Session | None:
        """The ledger's data about one session."""
        caller = page.caller.name
        query = UsageQuery(caller=caller, session=id, since=_made(page))
        totals = await self._ledger.totals(query)
        if not totals or not totals[0].requests:
            return None
        total = totals[0]
        rows = await self._ledger.rows(query, limit=_ROWS)
        # Titles, sub-agents and the gateway's own requests about an answer belong to the session, too.
        said = (row for row in rows if row.operation == "generate" and row.purpose in ("", "main"))
        latest = next(said, rows[0])
        dialects = tuple(dict.fromkeys(row.dialect for row in reversed(rows)))
        route = f"{latest.provider}/{latest.upstream_model}"
        if page.caller.key is not None:
            route = shown_route(latest.provider, latest.upstream_model)
        return Session(
            id=id,
            caller=caller,
            requests=total.requests,
            tokens=sum(total.tokens.values()),
            cost=total.cost,
            model=latest.model,
            dialects=dialects,
            first=total.first,
            last=total.last,
            route=route if latest.provider else "",
            last_request=latest.id,
        )


def _made(page: PageRequest) -> int:
    """When the caller's key was created: it may not see what an earlier key of the same name did."""
    return page.caller.key.created if page.caller.key is not None else 0


def _entry(id: str) -> dict[str, Any]:
    return {
        "id": id,
        "object": "session",
        "held": False,
        "created_at": 0,
        "last_used_at": 0,
        "requests": 0,
        "tokens": 0,
        "cost": 0,
        "model": None,
        "dialects": [],
        "metadata": {},
    }


def _of_session(session: Session) -> dict[str, Any]:
    return _entry(session.id) | {
        "created_at": session.first // 1000,
        "last_used_at": session.last // 1000,
        "requests": session.requests,
        "tokens": session.tokens,
        "cost": session.cost,
        "model": session.model or None,
        "dialects": [name for name in session.dialects if name],
    }


def _one(page: PageRequest, session: Session | None, entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the list with the details that only the page of one session shows."""
    route, last = (session.route, session.last_request) if session is not None else ("", "")
    return {**entry, "route": route or None, "last_request": last or None, "currency": page.settings.currency}


def _of_held(seen: Seen, metadata: dict[str, str], session: Session | None) -> dict[str, Any]:
    kept = seen.kept
    entry = _of_session(session) if session is not None else _entry(kept.id)
    entry |= {"held": True, "metadata": metadata, "created_at": kept.created}
    entry["last_used_at"] = max(entry["last_used_at"], seen.used // 1000)
    if kept.dialect and not entry["dialects"]:
        entry["dialects"] = [kept.dialect]
    return entry


def _no_session(id: str) -> RequestError:
    return RequestError("not_found", f"Session '{id}' not found.", code="session_not_found")


def _cursor(text: str) -> tuple[int, str] | None:
    """The last entry of the previous page: when it was used, and its id."""
    if not text:
        return None
    used, dot, id = text.partition(".")
    if not dot or not used.isascii() or not used.isdigit() or len(used) > 15:
        raise RequestError(
            "bad", "after: expected the `after` of the previous page", code="invalid_value", param="after"
        )
    return int(used), id
