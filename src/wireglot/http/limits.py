"""Limits that protect a process that speaks HTTP: sizes and times. Any object with these attributes will do.
Sizes are bytes, times seconds."""

from __future__ import annotations

from typing import Protocol


class HeadLimits(Protocol):
    """How large the head of a request may be."""

    @property
    def url(self) -> int: ...

    @property
    def header_line(self) -> int: ...

    @property
    def header_count(self) -> int: ...

    @property
    def header_total(self) -> int: ...


class WriteLimits(Protocol):
    """How far the other side may fall behind."""

    @property
    def write_pending(self) -> int:
        """Above it the writer is paused."""
        ...

    @property
    def write_stall(self) -> float:
        """A client that takes nothing for this long is disconnected."""
        ...


class ServerLimits(HeadLimits, WriteLimits, Protocol):
    """What a server allows its clients."""

    @property
    def header_time(self) -> float: ...

    @property
    def body_idle(self) -> float: ...

    @property
    def body_total(self) -> float:
        """For a body that arrives too slowly; one that is fast enough may take longer."""
        ...

    @property
    def keep_alive(self) -> float: ...

    @property
    def buffered(self) -> int:
        """For all request bodies that are arriving or being handled."""
        ...

    @property
    def connections(self) -> int: ...

    @property
    def connections_per_peer(self) -> int: ...

    @property
    def drain_again(self) -> float:
        """For handlers that were cancelled at the end of a drain to end their answers."""
        ...


class ClientLimits(Protocol):
    """What a client keeps open, and how much of an unread answer it buffers."""

    @property
    def pool(self) -> int:
        """Connections to one origin."""
        ...

    @property
    def queue(self) -> int:
        """Requests that may wait for a free one."""
        ...

    @property
    def queue_time(self) -> float: ...

    @property
    def pool_idle(self) -> float: ...

    @property
    def write_pending(self) -> int: ...
