"""Seals callers' values before a store sees them: AES-256-GCM with a separate key for each caller.

A sealed value is one byte of version, 12 bytes of nonce, the ciphertext and its tag. Its owner, kind and id
are bound into the seal: moved to another row or another caller it cannot be opened.
"""

from __future__ import annotations

import asyncio
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from wireglot.stores.base import Documents, StoreDown, Vault
from wireglot.stores.records import Document

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION: Final = 0x01
COMPRESSED: Final = 0x80
"""Set in the version's byte if the value was compressed before it was sealed."""

NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
COMPRESS_BYTES: Final = 1024
"""Shorter values are not compressed: a compressor takes 100,000 instructions before it has read a byte, more
than all the rest of a sealing."""

CIPHERS_MAX: Final = 1024
"""Cached ciphers of callers: deriving one takes longer than using it."""


class Unreadable(Exception):
    """Sealed with an unknown secret, moved from elsewhere, or damaged."""


class Sealer:
    def __init__(self, secret: bytes, old: Sequence[bytes] = ()) -> None:
        """Seals with `secret`; opens values sealed with any of them."""
        if not all((secret, *old)):
            raise ValueError("the store cannot be sealed with an empty secret")
        self._secrets = (secret, *old)
        self._cipher = lru_cache(CIPHERS_MAX)(self._derive)

    def seal(self, caller: str, kind: str, id: str, value: bytes) -> bytes:
        version = VERSION
        if len(value) >= COMPRESS_BYTES:
            packed = zlib.compress(value, 1)
            if len(packed) < len(value):
                version, value = VERSION | COMPRESSED, packed
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._cipher(0, caller).encrypt(nonce, value, _bound(version, caller, kind, id))
        return bytes((version,)) + nonce + sealed

    def open(self, caller: str, kind: str, id: str, sealed: bytes) -> bytes:
        if len(sealed) < 1 + NONCE_BYTES + TAG_BYTES or sealed[0] & ~COMPRESSED != VERSION:
            raise Unreadable("not a sealed value of a version that is known here")
        from cryptography.exceptions import InvalidTag

        version, nonce, body = sealed[0], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        bound = _bound(version, caller, kind, id)
        for number in range(len(self._secrets)):
            try:
                value = self._cipher(number, caller).decrypt(nonce, body, bound)
            except InvalidTag:
                continue
            return zlib.decompress(value) if version & COMPRESSED else value
        raise Unreadable("cannot be decrypted with any configured secret")

    def _derive(self, number: int, caller: str) -> AESGCM:
        # Loaded on first use: a gateway that stores nothing does not wait 30 ms for it.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        info = b"wireglot store v1" + caller.encode("utf-8", "surrogatepass")
        return AESGCM(HKDF(SHA256(), length=32, salt=None, info=info).derive(self._secrets[number]))


def _bound(version: int, caller: str, kind: str, id: str) -> bytes:
    """Each part with its length, so that the parts of no two places are equal when joined."""
    return _place(version, caller, kind) + _part(id)


@lru_cache(CIPHERS_MAX)
def _place(version: int, caller: str, kind: str) -> bytes:
    return bytes((version,)) + _part(caller) + _part(kind)


def _part(text: str) -> bytes:
    part = text.encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(part)) + part


_LENGTH: Final = struct.Struct(">I")


OFF_LOOP_BYTES: Final = 64 << 10
"""Values with a larger total are sealed and opened in a thread: the loop has other work."""

VAULT: Final = "vault"


class SealedDocuments:
    """Documents of any store, sealed when they are written and opened when they are read."""

    def __init__(
        self,
        behind: Documents,
        sealer: Sealer,
        on_unreadable: Callable[[str], None],
        needed: Collection[str] = (),
    ) -> None:
        """A document that cannot be opened does not exist; `on_unreadable` is called with its kind. One of a
        kind that is `needed`, requested by its name, is a StoreDown: what is only locked must not be
        overwritten."""
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
    """The same for a vault."""

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
