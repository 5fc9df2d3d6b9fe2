"""`/v1/sessions`: what the gateway holds for a caller, and what its ledger knows by a session's name."""

from __future__ import annotations

from typing import Any, Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest, page_size, unavailable
from wireglot.gateway.state.conversations.items import as_wire
from wireglot.gateway.state.conversations.pages import context_of
from wireglot.gateway.state.conversations.store import ConversationStore, Seen
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.stores.base import Ledger
from wireglot.stores.records import Session, UsageQuery

_ITEMS_MOST: Final = 1000
_ROWS: Final = 100
"""Of a session's requests, the last ones, whose dialects are told."""


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
        """What the ledger knows, by id, and those of it that nothing is held of. Those that are held have a
        place of their own in the list: where they leave too few, more is read."""
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
        seen = await self._conversations.seen(caller, id)
        if seen is None:
            session = await self._counted(page, id)
            if session is None:
                raise _no_session(id)
            page.send(_of_session(session))
            return
        context = context_of(page)
        placed = await self._conversations.items(caller, seen.kept, limit=_ITEMS_MOST + 1, newest_first=True)
        items = [as_wire(entry.kept, context) for entry in reversed(placed[:_ITEMS_MOST])]
        metadata = await self._conversations.metadata(caller, [seen.kept])
        entry = _of_held(seen, metadata[id], await self._counted(page, id))
        page.send({**entry, "items": items, "has_more": len(placed) > _ITEMS_MOST})

    async def delete(self, page: PageRequest) -> None:
        (id,) = page.asked.ids
        # Rows that are still on their way to the store would bring the name back.
        if not await self._usage.flush():
            raise unavailable(f"session {id!r}")
        held = await self._conversations.delete(page.caller.name, id)
        counted = await self._ledger.forget_session(page.caller.name, id)
        if not held and not counted:
            raise _no_session(id)
        page.send({"id": id, "object": "session.deleted", "deleted": True})

    async def _counted(self, page: PageRequest, id: str) -> Session | None:
        """What the ledger knows of one session."""
        caller = page.caller.name
        query = UsageQuery(caller=caller, session=id, since=_made(page))
        totals = await self._ledger.totals(query)
        if not totals or not totals[0].requests:
            return None
        total = totals[0]
        rows = await self._ledger.rows(query, limit=_ROWS)
        dialects = tuple(dict.fromkeys(row.dialect for row in reversed(rows)))
        return Session(
            id=id,
            caller=caller,
            requests=total.requests,
            tokens=sum(total.tokens.values()),
            cost=total.cost,
            model=rows[0].model,
            dialects=dialects,
            first=total.first,
            last=total.last,
        )


def _made(page: PageRequest) -> int:
    """When the caller's key was made: what another key of its name did before is not its to see."""
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
    """The last entry that was seen: when it was used, and its id."""
    if not text:
        return None
    used, dot, id = text.partition(".")
    if not dot or not used.isascii() or not used.isdigit() or len(used) > 15:
        raise RequestError(
            "bad", "after: expected what the page before says", code="invalid_value", param="after"
        )
    return int(used), id
