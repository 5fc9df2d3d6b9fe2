"""The interface between a caller and the transport to an upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from wireglot.http.application import Headers

Seconds = Annotated[float, Meta(extra={"unit": "seconds"})]


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long each part of an exchange may take."""

    connect: Annotated[Seconds, Meta(description="to connect to the provider; also to resolve its name")] = (
        5.0
    )
    tls: Annotated[Seconds, Meta(description="for the TLS handshake")] = 5.0
    first_byte: Annotated[
        Seconds, Meta(description="from the last byte of the request to the first of the answer")
    ] = 300.0
    idle: Annotated[Seconds, Meta(description="between any two reads of an answer")] = 300.0
    total: Annotated[Seconds, Meta(description="for the whole exchange")] = 3600.0


class Outbound(msgspec.Struct, frozen=True):
    """One request to an upstream. `url` comes from the configuration, never from a client."""

    method: str
    url: str
    headers: Headers
    body: bytes = b""
    pool: str = ""
    """Connections are shared only between requests with the same value (the account, and its credential)."""
    proxy: str = ""


TransportProblem = Literal[
    "dns",
    "connect",
    "tls",
    "first_byte_timeout",
    "idle_timeout",
    "total_timeout",
    "broken",
    "too_large",
    "protocol",
    "busy",
]
"""broken: the connection ended too early. protocol: not valid HTTP (redirects are answers). busy: this
process itself has no room for one more connection, or all that it may have there are in use."""


class TransportFault(Exception):
    """`sent`: whether the upstream may have seen the request."""

    def __init__(self, problem: TransportProblem, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.problem: TransportProblem = problem
        self.message = message
        self.sent = sent


class Answer(Protocol):
    """An upstream's answer with its head parsed. Consume it with `read` or `pump`, once, or `abort` it.

    Raises TransportFault. Cancelling its consumer closes the connection: no other request uses it.
    """

    status: int
    headers: dict[str, str]
    """Names in lower case; a repeated header is joined with ", "."""

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        """The whole body; TransportFault("too_large") beyond the limit. `held` gets the size of each received
        piece; its exceptions end the exchange and are raised here."""
        ...

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        """Pass each piece of the body to `feed` as it arrives (one call for each read of the socket), and
        return at its end. An exception of `feed` closes the connection and is raised here."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abort(self) -> None: ...


class Transport(Protocol):
    @property
    def waiting(self) -> int:
        """Requests that wait for a free connection."""
        ...

    async def send(self, request: Outbound, timeouts: Timeouts) -> Answer: ...

    async def close(self) -> None: ...
