"""The last head of a connection: the next one differs from it in nothing but the length of its body.

An agent sends the same forty lines with every turn. A head like the one before is not read again, and what
the application has found out about it need not be found out again.
"""

from __future__ import annotations

import re
from typing import Final

from wireglot.http.application import Familiar, Head
from wireglot.http.limits import HeadLimits
from wireglot.http.server.head import Inbound

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)(?=\r\n|\Z)", re.IGNORECASE)
_DIGITS_MOST: Final = 18


class KnownHead(Familiar):
    """It is held as it came, with its key, for no longer than its connection."""

    __slots__ = ("_before", "_behind", "_inbound", "_limits", "_longest")

    def __init__(self, raw: bytes, length: tuple[int, int], inbound: Inbound, limits: HeadLimits) -> None:
        """`length`: where its digits stand in `raw`."""
        super().__init__()
        start, end = length
        self._before: Final = raw[:start]
        self._behind: Final = raw[end:]
        self._inbound: Final = inbound
        self._limits: Final = limits
        self._longest: Final = min(limits.url, limits.header_line, limits.header_total)
        """No line of a head of this size is too long."""

    def again(self, raw: bytes, limits: HeadLimits) -> Inbound | None:
        """What `read_head` makes of it; None where it is another one."""
        before, behind = self._before, self._behind
        if not raw.startswith(before) or not raw.endswith(behind) or limits is not self._limits:
            return None
        digits = raw[len(before) : len(raw) - len(behind)]
        if not digits.isdigit() or len(digits) > _DIGITS_MOST or len(raw) > self._longest:
            return None
        known, length = self._inbound, digits.decode()
        head = known.head
        headers = head.headers.copy()
        headers["content-length"] = length
        return Inbound(
            Head(head.method, head.target, head.path, head.query, headers, peer=head.peer, familiar=self),
            int(length),
            known.keep_alive,
            known.expects_continue,
            known.minor,
        )


def remember(raw: bytes, inbound: Inbound, limits: HeadLimits) -> KnownHead | None:
    """None where nothing is said of the length of a body, or not plainly."""
    found = _LENGTH.search(raw) if inbound.length > 0 else None
    if found is None:
        return None
    head = inbound.head
    # Of its own: what the application makes of this one concerns no other.
    copy = Head(head.method, head.target, head.path, head.query, head.headers.copy(), peer=head.peer)
    kept = Inbound(copy, inbound.length, inbound.keep_alive, inbound.expects_continue, inbound.minor)
    return KnownHead(raw, found.span(1), kept, limits)
