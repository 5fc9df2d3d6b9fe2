"""Stores that seal what goes in and open what comes out; behind them lies any store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from wireglot.stores.base import Documents, StoreDown, Vault
from wireglot.stores.records import Document
from wireglot.stores.seal import Sealer, Unreadable

OFF_LOOP_BYTES: Final = 64 << 10
"""Values that are larger together are sealed and opened in a thread: the loop has others to serve."""

VAULT: Final = "vault"


class SealedDocuments:
    def __init__(
        self,
        behind: Documents,
        sealer: Sealer,
        on_unreadable: Callable[[str], None],
        needed: Collection[str] = (),
    ) -> None:
        """A document that cannot be opened is not there; `on_unreadable` is told its kind. One of a kind that
        is `needed`, asked for by its name, is a StoreDown: nobody shall write over what is only locked."""
        self._needed = frozenset(needed)
        self._behind = behind
        self._sealer = sealer
        self._on_unreadable = on_unreadable

    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        return await self._behind.put(await self._seal(documents), new=new)

    async def replace(self, document: Document) -> bool:
        return await self._behind.replace((await self._seal([document]))[0])

    async def touch(self, caller: str, kind: str, id: str, *, created: int, expires: int) -> bool:
        return await self._behind.touch(caller, kind, id, created=created, expires=expires)

    async def touch_pieces(self, caller: str, kind: str, parent: str, *, expires: int) -> None:
        await self._behind.touch_pieces(caller, kind, parent, expires=expires)

    async def append(self, documents: Sequence[Document]) -> int:
        return await self._behind.append(await self._seal(documents))

    async def get(self, caller: str, kind: str, ids: Sequence[str]) -> list[Document]:
        return await self._open(await self._behind.get(caller, kind, ids), kind in self._needed)

    async def pieces(
        self,
        caller: str,
        kind: str,
        parent: str,
        *,
        after: int = 0,
        before: int = 0,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Document]:
        return await self._open(
            await self._behind.pieces(
                caller, kind, parent, after=after, before=before, limit=limit, newest_first=newest_first
            ),
            kind in self._needed,
        )

    async def recent(
        self, caller: str, kind: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[Document]:
        return await self._open(await self._behind.recent(caller, kind, limit=limit, before=before))

    async def delete(self, caller: str, kind: str, ids: Sequence[str]) -> int:
        return await self._behind.delete(caller, kind, ids)

    async def delete_pieces(self, caller: str, kind: str, parent: str) -> int:
        return await self._behind.delete_pieces(caller, kind, parent)

    async def _seal(self, documents: Sequence[Document]) -> list[Document]:
        def seal() -> list[Document]:
            return [
                msgspec.structs.replace(d, body=self._sealer.seal(d.caller, d.kind, d.id, d.body))
                for d in documents
            ]

        return await asyncio.to_thread(seal) if _large(d.body for d in documents) else seal()

    async def _open(self, documents: Sequence[Document], needed: bool = False) -> list[Document]:
        unreadable: list[str] = []

        def open_all() -> list[Document]:
            opened = []
            for d in documents:
                try:
                    body = self._sealer.open(d.caller, d.kind, d.id, d.body)
                except Unreadable:
                    unreadable.append(d.kind)
                else:
                    opened.append(msgspec.structs.replace(d, body=body))
            return opened

        opened = await asyncio.to_thread(open_all) if _large(d.body for d in documents) else open_all()
        for kind in unreadable:
            self._on_unreadable(kind)
        if unreadable and needed:
            raise StoreDown(f"a {unreadable[0]} is sealed with another secret: see server.old_secrets")
        return opened


class SealedVault:
    def __init__(self, behind: Vault, sealer: Sealer, on_unreadable: Callable[[str], None]) -> None:
        self._behind = behind
        self._sealer = sealer
        self._on_unreadable = on_unreadable

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        def seal() -> dict[str, bytes]:
            return {name: self._sealer.seal(caller, VAULT, name, value) for name, value in entries.items()}

        sealed = await asyncio.to_thread(seal) if _large(entries.values()) else seal()
        await self._behind.keep(caller, sealed, seconds)

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        found = await self._behind.recall(caller, names)
        unreadable: list[str] = []

        def open_all() -> dict[str, bytes]:
            opened = {}
            for name, sealed in found.items():
                try:
                    opened[name] = self._sealer.open(caller, VAULT, name, sealed)
                except Unreadable:
                    unreadable.append(name)
            return opened

        opened = await asyncio.to_thread(open_all) if _large(found.values()) else open_all()
        for _ in unreadable:
            self._on_unreadable(VAULT)
        return opened


def _large(bodies: Iterable[bytes]) -> bool:
    return sum(map(len, bodies)) > OFF_LOOP_BYTES
