"""A client's body as the dialects read it, without a gateway."""

from __future__ import annotations

from typing import Any

from wireglot_core.wire.json import decode
from wireglot_core.wire.splice import Outline


class SentBody:
    """Implements the dialects' `Body`."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.outline = Outline(body)

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = decode(self.body)
        return found
