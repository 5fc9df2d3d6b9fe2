"""What names a key and does not tell it."""

from __future__ import annotations

import hashlib
from typing import Final

_DIGITS: Final = 10


def fingerprint(key: str) -> str:
    return hashlib.sha256(f"wireglot-account:{key}".encode()).hexdigest()[:_DIGITS]
