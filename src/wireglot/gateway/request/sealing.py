"""With what a caller's reasoning state is sealed: the server's secret, for the caller alone.

The caller is who its key stands for, so a rotated key keeps its state. Without client keys everyone is one
caller, and an envelope names no owner, as in older versions: what they sealed opens for whoever brings it,
until the secret goes.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

import msgspec

from wireglot.gateway.entry.callers import LOCAL, Caller
from wireglot.gateway.settings import Secret, ServerSettings

_WITHOUT: Final = b"wireglot"
"""The library's own: a gateway that was given none, in tests."""
_CALLERS_MOST: Final = 1024
_OWNER_LETTERS: Final = 16


class Sealing(msgspec.Struct, frozen=True):
    """The fields of a `Context` that tell it."""

    secret: bytes
    old_secrets: tuple[bytes, ...]
    owner: str


def sealing(server: ServerSettings, caller: Caller) -> Sealing:
    return _sealing(server.secret, server.old_secrets, "" if caller.name == LOCAL.name else caller.name)


@lru_cache(maxsize=_CALLERS_MOST)
def _sealing(secret: Secret, old: tuple[Secret, ...], name: str) -> Sealing:
    # A hash: the envelope lies in the open in clients' histories, and a name may be a person's.
    owner = hashlib.sha256(f"caller {name}".encode()).hexdigest()[:_OWNER_LETTERS] if name else ""
    first, *others = (each.value.encode() or _WITHOUT for each in (secret, *old))
    return Sealing(first, tuple(others), owner)
