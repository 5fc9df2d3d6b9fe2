"""What arrives in tiny pieces: events in the live view, frames of WebSockets, a read full of events."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from wsproto.connection import Connection, ConnectionType
from wsproto.events import TextMessage

from tests.laws.bounded import Row
from wireglot.gateway.streams.feeder import _end_of_step
from wireglot.gateway.trace.growing import _Frames
from wireglot.http.server.websocket import WebSocket

HEADERS = [("content-type", "text/event-stream")]


def seen_live(pieces: list[bytes]) -> object:
    """The events of a running stream, as a page asks for them."""
    side: Any = SimpleNamespace(pieces=[(0.0, piece) for piece in pieces], headers=HEADERS, streamed=True)
    frames = _Frames()
    found = frames._new_events(side)
    while frames.more:
        found += frames._new_events(side)
    return found


def fed(data: bytes) -> int:
    """The steps in which one read of a stream is fed."""
    at = steps = 0
    while at < len(data):
        at = _end_of_step(data, at)
        steps += 1
    return steps


class _Reply:
    """The connection of a WebSocket, as far as that needs one."""

    is_paused = False

    def upgrade(self, headers: object, upgrade: Any) -> None:
        self.upgraded = upgrade

    def write_raw(self, data: bytes) -> None: ...

    def linger(self) -> None: ...

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def hold(self, size: int) -> bool:
        return True


def received(data: bytes) -> None:
    async def run() -> None:
        reply: Any = _Reply()
        head: Any = SimpleNamespace(headers={"sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="})
        limits: Any = SimpleNamespace(message=1 << 24, ping=3600.0)
        socket = WebSocket(head, reply, limits)
        reply.upgraded.receive(data)
        while reply.is_paused:
            await asyncio.sleep(0)
        socket.release()

    asyncio.run(run())


def fragments(n: int, size: int) -> bytes:
    client = Connection(ConnectionType.CLIENT)
    return b"".join(client.send(TextMessage("x" * size, message_finished=False)) for _ in range(n))


ROWS = [
    Row("an event that comes byte by byte, seen live", lambda n: [b"x"] * n, seen_live, n=4000),
    Row("events that come byte by byte, seen live", lambda n: [b"d", b"\n", b"\n"] * n, seen_live, n=2000),
    Row("a read full of tiny events", lambda n: b"data: {}\n\n" * n, fed, n=5000),
    Row("a read without lines", lambda n: b"x" * n, fed, n=100_000),
    Row("a message in many fragments", lambda n: fragments(n, 100), received),
    Row("a flood of empty fragments", lambda n: fragments(n, 0), received, n=1000),
]
