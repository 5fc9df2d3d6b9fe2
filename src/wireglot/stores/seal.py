"""What callers store is sealed before a store sees it: AES-256-GCM under a key of the caller's own.

A sealed value is one byte of version, 12 bytes of nonce, the ciphertext and its tag. Whose it is, of which
kind and under which id is bound into the seal: moved to another row or another caller it does not open.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION: Final = 0x01
COMPRESSED: Final = 0x80
"""Set in the version's byte where the value was compressed before it was sealed."""

NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
COMPRESS_BYTES: Final = 1024
"""Shorter values are not compressed: a compressor takes 100,000 instructions before it has read a byte, more
than all the rest of a sealing."""

CIPHERS_MAX: Final = 1024
"""Ciphers of callers that are kept: to derive one takes longer than to use it."""


class Unreadable(Exception):
    """Sealed with a secret that is not here, moved from elsewhere, or damaged."""


class Sealer:
    def __init__(self, secret: bytes, old: Sequence[bytes] = ()) -> None:
        """Seals with `secret`; opens what any of them has sealed."""
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
        raise Unreadable("no secret that is known here opens it")

    def _derive(self, number: int, caller: str) -> AESGCM:
        # Loaded on first use: a gateway that stores nothing does not wait 30 ms for it.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        info = b"wireglot store v1" + caller.encode("utf-8", "surrogatepass")
        return AESGCM(HKDF(SHA256(), length=32, salt=None, info=info).derive(self._secrets[number]))


def _bound(version: int, caller: str, kind: str, id: str) -> bytes:
    """Each part with its length, so that no two places read the same."""
    return _place(version, caller, kind) + _part(id)


@lru_cache(CIPHERS_MAX)
def _place(version: int, caller: str, kind: str) -> bytes:
    return bytes((version,)) + _part(caller) + _part(kind)


def _part(text: str) -> bytes:
    part = text.encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(part)) + part


_LENGTH: Final = struct.Struct(">I")
