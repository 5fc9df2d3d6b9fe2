"""Limits of both sides as the tests set them: wide, unless a test is about one of them."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Is a `ServerLimits` and a `ClientLimits`."""

    url: int = 8 * 1024
    header_line: int = 8 * 1024
    header_count: int = 128
    header_total: int = 32 * 1024
    header_time: float = 10.0
    body_idle: float = 30.0
    body_total: float = 120.0
    keep_alive: float = 75.0
    write_pending: int = 64 * 1024
    write_stall: float = 60.0
    buffered: int = 512 * 1024 * 1024
    connections: int = 10_000
    connections_per_peer: int = 256
    drain_again: float = 2.0
    pool: int = 256
    pool_idle: float = 15.0
    queue: int = 256
    queue_time: float = 60.0
