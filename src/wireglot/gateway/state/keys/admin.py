"""The admin API: client keys, the store, and all that is kept of one caller. Behind its own secret."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.state.keys.ring import KeyRefused, Keyring, Taken, Unknown, told
from wireglot.gateway.state.page_request import PageRequest
from wireglot.stores.records import KeyRow

if TYPE_CHECKING:
    from wireglot.gateway.state.state import State

_OK = 200
_CREATED = 201


async def answer(state: State, page: PageRequest) -> None:
    try:
        status, document = await _answer(state, page)
    except Unknown as unknown:
        raise RequestError("bad", str(unknown), code="key_not_found").with_status(404) from None
    except Taken as taken:
        raise RequestError("bad", str(taken), code="key_conflict", param=taken.field).with_status(
            409
        ) from None
    except KeyRefused as refused:
        raise RequestError("bad", str(refused), code="invalid_value", param=refused.field) from None
    # A new key is in some of them: no cache may keep it.
    page.send(document, status, [("cache-control", "no-store")])


async def _answer(state: State, page: PageRequest) -> tuple[int, dict[str, Any]]:
    ring = Keyring(state.engine.keys, {key.name for key in page.settings.keys})
    match page.asked.verb, page.asked.ids:
        case "keys.list", _:
            now = time.time()
            return _OK, {"object": "list", "data": [told(row, now) for row in await ring.all()]}
        case "keys.create", _:
            fields = page.document()
            row, key = await ring.create(fields.pop("name", None), fields)
            return _CREATED, await _changed(state, page, row, key)
        case "keys.get", (name,):
            return _OK, told(await ring.get(name), time.time())
        case "keys.update", (name,):
            return _OK, await _changed(state, page, await ring.update(name, page.document()))
        case "keys.revoke", (name,):
            return _OK, await _changed(state, page, await ring.revoke(name))
        case "keys.rotate", (name,):
            fields = page.document()
            overlap = fields.pop("overlap", 0)
            if fields:
                unknown = next(iter(fields))
                raise KeyRefused("expected nothing but overlap (seconds)", unknown)
            row, key = await ring.rotate(name, overlap)
            return _OK, await _changed(state, page, row, key)
        case "store.stats", _:
            stats = msgspec.to_builtins(await state.engine.stats())
            return _OK, {**stats, "trouble": state.trouble or None, "processes": state.sharing.peers}
        case "callers.wipe", (name,):
            return _OK, {"caller": name, "removed": await _wipe(state, name)}
    raise RequestError("not_found", f"there is nothing at {page.head.path}", code="unknown_url")


async def _changed(state: State, page: PageRequest, row: KeyRow, key: str = "") -> dict[str, Any]:
    """Holds here from now on, and everywhere else within seconds. The key is told this once."""
    await state.keys.refresh()
    state.note("info", "key changed", name=row.name, change=page.asked.verb.partition(".")[2])
    document = told(row, time.time())
    return {**document, "key": key} if key else document


async def _wipe(state: State, caller: str) -> dict[str, int]:
    removed = dict(await state.engine.wipe(caller))
    forget = getattr(state.vault_apart, "forget", None)
    if forget is not None:
        removed["vault"] = removed.get("vault", 0) + await forget(caller)
    state.note("info", "caller wiped", caller=caller, removed=sum(removed.values()))
    return removed
