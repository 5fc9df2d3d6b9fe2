"""The interface between the HTTP server and the application: requests and replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

Headers = list[tuple[str, str]]
"""Header names in lower case, in the order in which they are sent."""


class Familiar(msgspec.Struct, kw_only=True, eq=False):
    """A head that is repeated on a connection, identical except for the length of its body."""

    found: Any = None
    """Data that the application caches for the next identical head."""


class Head(msgspec.Struct):
    """A request without its body. Header names are lower case; a repeated header is joined with ", "."""

    method: str
    target: str
    """As in the request line; routing and auth use `path`, which is never decoded."""
    path: str
    query: str
    headers: dict[str, str]
    peer: str
    """The client's address; "" for a socket without one."""
    admission: Any = None
    """The application's result of admitting the request, for when it answers it."""
    familiar: Familiar | None = None
    """Set if this head differs from the connection's last one only in the length of its body."""


class Refusal(msgspec.Struct, frozen=True):
    """A complete response. `close`: the connection ends with it."""

    status: int
    headers: Headers
    body: bytes
    close: bool = False


class Reply(Protocol):
    """The way back to the client: either one `send`, or `start`, `write`s and `end`.

    When the client disconnects, the task that answers it is cancelled. Writing to a disconnected client has
    no effect.
    """

    started: bool

    def send(self, status: int, headers: Headers, body: bytes) -> None: ...

    def start(self, status: int, headers: Headers) -> None:
        """The head of an answer of unknown length (chunked)."""
        ...

    def write(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def abort(self) -> None:
        """Cut the connection without a proper end, so that the client cannot take the answer for complete."""
        ...

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Called when the client reads slower than we write, and when it has caught up."""
        ...


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """Callbacks of a connection that speaks another protocol. When the client disconnects, the task that
    answers it is cancelled, as always."""

    receive: Callable[[bytes], None]
    drain: Callable[[], None]
    """The server is shutting down: work in progress may end, nothing new should begin."""
    pause: Callable[[], None]
    resume: Callable[[], None]
    """As for `Reply.on_pressure`."""


class UpgradableReply(Reply, Protocol):
    """A reply of a connection that can switch to another protocol."""

    def upgrade(self, headers: Headers, upgrade: Upgrade) -> None:
        """Answer 101. From then on bytes are sent by `write_raw`, until `linger` or the end of the task."""
        ...

    def write_raw(self, data: bytes) -> None: ...

    def pause_reading(self) -> None:
        """Nothing more is received until `resume_reading`."""
        ...

    def resume_reading(self) -> None: ...

    def linger(self) -> None:
        """The last bytes are written: wait a little for the client to close."""
        ...

    def hold(self, size: int) -> bool:
        """Count this many more bytes as held; a negative number releases them. Returns whether there is room
        for them."""
        ...


class Application(Protocol):
    def admit(self, head: Head) -> Refusal | None:
        """Called as soon as the headers are complete, so that a request can be refused before its body is
        read."""
        ...

    def body_limit(self, head: Head) -> int: ...

    def too_large(self, head: Head, limit: int) -> Refusal:
        """The response to a body over its limit, in the caller's dialect."""
        ...

    def overloaded(self, head: Head) -> Refusal:
        """The response to a body for which there is no room now."""
        ...

    def stalled(self, head: Head) -> Refusal:
        """The response to a body that stopped arriving."""
        ...

    async def handle(self, head: Head, body: bytes, reply: Reply) -> None: ...
