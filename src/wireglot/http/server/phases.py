"""The phases of a client's connection, and which of them may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Plain integers: the phase is compared for each piece of data that arrives.
HEAD: Final = 0
"""Waiting for a head, or within one."""
BODY: Final = 1
"""The head is admitted; its body arrives."""
ANSWERING: Final = 2
"""The application has the request; data that arrives now waits."""
WAITING: Final = 3
"""More data has arrived; it is read once the client has taken its answers and other connections have had
their turn."""
SKIPPING: Final = 4
"""Skipping the rest of a body whose request has been refused."""
LINGERING: Final = 5
"""The last answer is sent; further data is discarded, so that the client can read the answer."""
CLOSING: Final = 6
"""Nothing is read any more."""
UPGRADED: Final = 7
"""Another protocol is spoken: data is passed on unchanged."""

FOLLOWS: Final[Mapping[int, frozenset[int]]] = {
    HEAD: frozenset({BODY, ANSWERING, WAITING, SKIPPING, LINGERING, CLOSING}),
    BODY: frozenset({ANSWERING, LINGERING, CLOSING}),
    ANSWERING: frozenset({HEAD, UPGRADED, CLOSING}),
    UPGRADED: frozenset({LINGERING, CLOSING}),
    WAITING: frozenset({HEAD, CLOSING}),
    SKIPPING: frozenset({HEAD, CLOSING}),
    LINGERING: frozenset({CLOSING}),
    CLOSING: frozenset({CLOSING}),
}
"""A refusal without a remaining body stays in HEAD: the connection is ready for the next request."""
