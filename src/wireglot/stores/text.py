"""Any Python string as one that a database can hold, and back.

Names come from clients. No database holds half a surrogate pair, and PostgreSQL no NUL either; a lookup of
such a name must find nothing rather than fail, and two different names must stay different.
"""

from __future__ import annotations

import re
from typing import Final

_FORBIDDEN: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def is_plain(value: str) -> bool:
    """Whether a database holds it as it is."""
    return not _FORBIDDEN.search(value)


def to_text(value: str) -> str:
    if not _FORBIDDEN.search(value):
        return value
    return _FORBIDDEN.sub(lambda found: r"\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", value)


def from_text(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", value)
