"""A WebSocket by itself: what waits, what is held, when a client counts as gone."""

from __future__ import annotations

import asyncio
import base64
import tracemalloc
from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from wireglot.http.application import Head, Headers, UpgradableReply, Upgrade
from wireglot.http.server.websocket import SocketClosed, WebSocket

_HEAD = Head("GET", "/", "/", "", {"sec-websocket-key": base64.b64encode(bytes(16)).decode()}, "127.0.0.1")
_FIN, _TEXT, _CLOSE = 0x80, 1, 8
_LONG = 3600.0


class _Limits(msgspec.Struct, frozen=True):
    message: int = 1 << 20
    ping: float = _LONG


class _Reply:
    """The connection, as far as a WebSocket knows it."""

    upgraded: Upgrade
    headers: Headers

    def __init__(self) -> None:
        self.held = 0

    def upgrade(self, headers: Headers, upgrade: Upgrade) -> None:
        self.headers, self.upgraded = headers, upgrade

    def write_raw(self, data: bytes) -> None: ...

    def linger(self) -> None: ...

    def hold(self, size: int) -> bool:
        self.held += size
        return True


def frame(opcode: int, payload: bytes = b"", fin: int = _FIN) -> bytes:
    assert len(payload) < 126
    return bytes([fin | opcode, 0x80 | len(payload)]) + bytes(4) + payload


def opened(limits: _Limits | None = None) -> tuple[WebSocket, _Reply]:
    reply = _Reply()
    return WebSocket(_HEAD, cast(UpgradableReply, reply), limits or _Limits()), reply


def within(check: Callable[[], object]) -> None:
    async def run() -> None:
        result = check()
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(run())


def test_the_handshake_is_answered_as_the_standard_wants_it() -> None:
    """RFC 6455, 1.3: its own example."""

    async def check() -> None:
        reply = _Reply()
        head = msgspec.structs.replace(_HEAD, headers={"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
        WebSocket(head, cast(UpgradableReply, reply), _Limits()).release()
        assert dict(reply.headers) == {
            "upgrade": "websocket",
            "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        }

    within(check)


def test_a_message_is_held_until_it_is_done() -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"one") + frame(_TEXT, b"three"))
        assert reply.held == 8
        message = await socket.receive(_LONG)
        assert message == b"one"
        assert reply.held == 8
        socket.done(message)
        assert reply.held == 5
        socket.release()
        assert reply.held == 0

    within(check)


def test_messages_are_dropped_once_the_client_has_closed() -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"{}") * 2 + frame(_CLOSE))
        with pytest.raises(SocketClosed):
            await socket.receive(_LONG)
        socket.release()
        assert reply.held == 0

    within(check)


def test_no_message_is_taken_while_the_client_does_not_read() -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"{}"))
        reply.upgraded.pause()
        taking = asyncio.ensure_future(socket.receive(_LONG))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not taking.done()
        reply.upgraded.resume()
        assert await taking == b"{}"
        socket.release()

    within(check)


@pytest.mark.parametrize("why", ["the server drains", "its time is over"])
def test_what_waits_does_not_lengthen_a_connection(why: str) -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"{}"))
        if why == "the server drains":
            reply.upgraded.drain()
        assert await socket.receive(_LONG if socket.draining else 0) is None
        socket.release()

    within(check)


def test_a_client_that_reads_slowly_is_not_taken_for_gone() -> None:
    async def check() -> None:
        socket, reply = opened(_Limits(ping=0))
        reply.upgraded.pause()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not socket.closed
        reply.upgraded.resume()
        for _ in range(20):
            await asyncio.sleep(0)
        assert socket.closed

    within(check)


def test_tiny_pieces_take_little_more_than_their_bytes() -> None:
    def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, "é".encode(), fin=0))
        pieces = frame(0, "é".encode(), fin=0) * 1000 + frame(0, fin=0) * 1000
        reply.upgraded.receive(pieces)
        tracemalloc.start()
        for _ in range(5):
            reply.upgraded.receive(pieces)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert reply.held == 12_002
        assert grown < 4 * reply.held
        socket.release()

    within(check)
