"""The admin API: client keys, the store, and all that is kept of one caller. Behind its own secret."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from wireglot.gateway.faults import Fault
from wireglot.gateway.state.keys.ring import Keyring, Refused, Taken, Unknown, told
from wireglot.gateway.state.question import Question
from wireglot.stores.records import KeyRow

if TYPE_CHECKING:
    from wireglot.gateway.state.state import State

_OK = 200
_CREATED = 201


async def answer(state: State, question: Question) -> None:
    try:
        status, document = await _answer(state, question)
    except Unknown as unknown:
        raise Fault("bad", str(unknown), code="key_not_found").with_status(404) from None
    except Taken as taken:
        raise Fault("bad", str(taken), code="key_conflict", param=taken.field).with_status(409) from None
    except Refused as refused:
        raise Fault("bad", str(refused), code="invalid_value", param=refused.field) from None
    # A new key is in some of them: no cache may keep it.
    question.send(document, status, [("cache-control", "no-store")])


async def _answer(state: State, question: Question) -> tuple[int, dict[str, Any]]:
    ring = Keyring(state.engine.keys, {key.name for key in question.settings.keys})
    match question.asked.verb, question.asked.ids:
        case "keys.list", _:
            now = time.time()
            return _OK, {"object": "list", "data": [told(row, now) for row in await ring.all()]}
        case "keys.create", _:
            fields = question.document()
            row, key = await ring.create(fields.pop("name", None), fields)
            return _CREATED, await _changed(state, question, row, key)
        case "keys.get", (name,):
            return _OK, told(await ring.get(name), time.time())
        case "keys.update", (name,):
            return _OK, await _changed(state, question, await ring.update(name, question.document()))
        case "keys.revoke", (name,):
            return _OK, await _changed(state, question, await ring.revoke(name))
        case "keys.rotate", (name,):
            fields = question.document()
            overlap = fields.pop("overlap", 0)
            if fields:
                unknown = next(iter(fields))
                raise Refused("expected nothing but overlap (seconds)", unknown)
            row, key = await ring.rotate(name, overlap)
            return _OK, await _changed(state, question, row, key)
        case "store.stats", _:
            stats = msgspec.to_builtins(await state.engine.stats())
            return _OK, {**stats, "trouble": state.trouble or None, "processes": state.sharing.peers}
        case "callers.wipe", (name,):
            return _OK, {"caller": name, "removed": await _wipe(state, name)}
    raise Fault("not_found", f"there is nothing at {question.head.path}", code="unknown_url")


async def _changed(state: State, question: Question, row: KeyRow, key: str = "") -> dict[str, Any]:
    """Holds here from now on, and everywhere else within seconds. The key is told this once."""
    await state.keys.refresh()
    state.note("info", "key changed", name=row.name, change=question.asked.verb.partition(".")[2])
    document = told(row, time.time())
    return {**document, "key": key} if key else document


async def _wipe(state: State, tenant: str) -> dict[str, int]:
    removed = dict(await state.engine.wipe(tenant))
    forget = getattr(state.vault_apart, "forget", None)
    if forget is not None:
        removed["vault"] = removed.get("vault", 0) + await forget(tenant)
    state.note("info", "caller wiped", caller=tenant, removed=sum(removed.values()))
    return removed
