"""The admin API: client keys, the store, and all data of a caller. It needs the admin secret."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.state.keys.ring import KeyRefused, Keyring, Taken, Unknown, described
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.gateway.state.losses.shelf import LossShelf
from wireglot.gateway.state.stored_forms import LOSSES
from wireglot.http.application import Headers
from wireglot.stores.base import Engine, VaultApart
from wireglot.stores.records import KeyRow

_OK = 200
_CREATED = 201
_UNCACHED: Headers = [("cache-control", "no-store")]
"""Some of these responses contain a new key: no cache may keep them."""


class AdminPages:
    def __init__(
        self,
        engine: Engine,
        table: KeyTable,
        health: Callable[[], dict[str, Any]],
        note: Note,
        *,
        vault_apart: VaultApart | None,
        losses: LossShelf,
        forget_traces: Callable[[str], Awaitable[int]],
        flush_usage: Callable[[], Awaitable[object]],
    ) -> None:
        """`health`: further details about the store. `vault_apart`: the vault, if it is not the engine's:
        wiping a caller must include it, and `losses` that are not in the store yet, and recorded exchanges
        (`forget_traces`)."""
        self._engine = engine
        self._table = table
        self._health = health
        self._note = note
        self._vault_apart = vault_apart
        self._losses = losses
        self._forget_traces = forget_traces
        self._flush_usage = flush_usage

    async def list_keys(self, page: PageRequest) -> None:
        now = time.time()
        rows = await self._ring(page).all()
        self._send(page, {"object": "list", "data": [described(row, now) for row in rows]})

    async def create_key(self, page: PageRequest) -> None:
        fields = page.document()
        with _RefusalsTold():
            row, key = await self._ring(page).create(fields.pop("name", None), fields)
        self._send(page, await self._changed(page, row, key), _CREATED)

    async def get_key(self, page: PageRequest) -> None:
        with _RefusalsTold():
            row = await self._ring(page).get(page.asked.ids[0])
        self._send(page, described(row, time.time()))

    async def update_key(self, page: PageRequest) -> None:
        with _RefusalsTold():
            row = await self._ring(page).update(page.asked.ids[0], page.document())
        self._send(page, await self._changed(page, row))

    async def revoke_key(self, page: PageRequest) -> None:
        with _RefusalsTold():
            row = await self._ring(page).revoke(page.asked.ids[0])
            for sign_in in self._table.sign_ins_of(row.name):  # which are revoked with it
                await self._ring(page).revoke(sign_in.name)
        self._send(page, await self._changed(page, row))

    async def delete_key(self, page: PageRequest) -> None:
        with _RefusalsTold():
            row = await self._ring(page).delete(page.asked.ids[0], self._wipe)
        self._send(page, await self._changed(page, row))

    async def rotate_key(self, page: PageRequest) -> None:
        fields = page.document()
        overlap = fields.pop("overlap", 0)
        with _RefusalsTold():
            if fields:
                raise KeyRefused("expected nothing but overlap (seconds)", next(iter(fields)))
            row, key = await self._ring(page).rotate(page.asked.ids[0], overlap)
        self._send(page, await self._changed(page, row, key))

    async def store_stats(self, page: PageRequest) -> None:
        stats = msgspec.to_builtins(await self._engine.stats())
        self._send(page, {**stats, **self._health()})

    async def wipe_caller(self, page: PageRequest) -> None:
        (caller,) = page.asked.ids
        removed = await self._wipe(caller)
        self._send(page, {"caller": caller, "removed": removed})

    async def _wipe(self, caller: str) -> dict[str, int]:
        # First, since it also marks running requests, so that nothing more of them is recorded. The rest is
        # removed even if it fails.
        (recorded,) = await asyncio.gather(self._forget_traces(caller), return_exceptions=True)
        unwritten = self._losses.forget(caller)
        await self._flush_usage()  # rows not written yet name sessions
        removed = dict(await self._engine.wipe(caller))
        if unwritten:
            removed[LOSSES] = removed.get(LOSSES, 0) + unwritten
        if self._vault_apart is not None:
            removed["vault"] = removed.get("vault", 0) + await self._vault_apart.forget(caller)
        if isinstance(recorded, BaseException):
            raise recorded
        if recorded:
            removed["traces"] = recorded
        self._note("info", "caller wiped", caller=caller, removed=sum(removed.values()))
        return removed

    def _ring(self, page: PageRequest) -> Keyring:
        settings = page.settings
        return Keyring(self._engine.keys, {key.name for key in settings.keys}, settings.groups)

    async def _changed(self, page: PageRequest, row: KeyRow, key: str = "") -> dict[str, Any]:
        """The changed key applies here at once, and in other processes within seconds. The key itself is
        reported only this once."""
        await self._table.refresh()
        self._note("info", "key changed", name=row.name, change=page.asked.verb.partition(".")[2])
        document = described(row, time.time())
        return {**document, "key": key} if key else document

    def _send(self, page: PageRequest, document: dict[str, Any], status: int = _OK) -> None:
        page.send(document, status, _UNCACHED)


class _RefusalsTold:
    """Reports refusals of the key ring to the caller."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        match problem:
            case Unknown():
                raise RequestError("bad", str(problem), code="key_not_found").with_status(404) from None
            case Taken():
                refused = RequestError("bad", str(problem), code="key_conflict", param=problem.field)
                raise refused.with_status(409) from None
            case KeyRefused():
                raise RequestError("bad", str(problem), code="invalid_value", param=problem.field) from None
