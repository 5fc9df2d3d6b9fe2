"""The phases of a client's connection, and which of them may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Plain integers: the phase is compared for each piece of data that arrives.
HEAD: Final = 0
"""Waiting for a head, or within one."""
BODY: Final = 1
"""The head is let in; its body arrives."""
ANSWERING: Final = 2
"""The application has the request; what arrives now waits."""
WAITING: Final = 3
"""More has arrived; it is read once the client has taken its answers and the others have had their turn."""
SKIPPING: Final = 4
"""Reading past the rest of a body whose request has been refused."""
LINGERING: Final = 5
"""The last answer is out; what still arrives is thrown away, so that the client can read the answer."""
CLOSING: Final = 6
"""Nothing is read any more."""
UPGRADED: Final = 7
"""Another protocol is spoken: what arrives is handed on as it is."""

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
"""A refusal that leaves nothing behind it stays in HEAD: the connection is ready for the next request."""
