"""Client keys as they lie in a store."""

from __future__ import annotations

from typing import Final

import msgspec

from wireglot.stores.records import KeyRow

_DECODER: Final = msgspec.json.Decoder(KeyRow)


def read_key(name: str, body: bytes) -> KeyRow:
    """One that cannot be read (damaged, or of a later version) has no digest: it opens nothing, and the
    others are as good as before."""
    try:
        return _DECODER.decode(body)
    except msgspec.DecodeError:
        return KeyRow(name, "", "", 0)
