"""A server that sends faster than anyone reads is made to wait."""

import asyncio
from functools import partial

import pytest

from tests.http.limits_kit import Limits
from tests.http.transport_kit import (
    PATIENT,
    Counted,
    Peer,
    Server,
    chunked,
    opened,
    post,
    scenario,
    stalled,
)
from tests.waiting import until

OK = b"HTTP/1.1 200 OK\r\n"


async def _flood(peer: Peer) -> None:
    """Sends until the client no longer takes it; the peer's `number` tells how much it sent."""
    await peer.request()
    await peer.send(OK + b"\r\n")
    while True:
        await peer.send(bytes(65536))
        peer.number += 65536


@scenario
async def test_an_answer_that_nobody_consumes_is_not_read_on_for_ever():
    async with Server(_flood) as server, opened(Limits(write_pending=1000)) as transport:
        reply = await transport.send(post(server), PATIENT)
        await stalled(server.peers[0])
        got = 0

        def feed(data: bytes) -> None:
            nonlocal got
            got += len(data)
            if got > (32 << 20):
                raise InterruptedError

        before = server.peers[0].number
        with pytest.raises(InterruptedError):
            await reply.pump(feed)
        assert server.peers[0].number > before


@scenario
async def test_pause_stops_the_server_and_resume_lets_it_go_on():
    async with Server(_flood) as server, opened() as transport:
        got = Counted()
        reply = await transport.send(post(server), PATIENT)
        pumping = asyncio.create_task(reply.pump(got))
        await until(lambda: got.size > 1 << 20)
        reply.pause()
        reply.pause()
        held = got.size
        await stalled(server.peers[0])
        assert got.size == held
        reply.resume()
        await until(lambda: got.size > held + (1 << 20))
        pumping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pumping
        assert transport.open_connections == 0


@scenario
async def test_a_connection_paused_at_the_end_of_its_answer_is_read_again_for_the_next():
    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(chunked(end=b""))
            await begun.wait()
            begun.clear()
            await peer.send(b"1\r\na\r\n0\r\n\r\n")

    begun = asyncio.Event()
    async with Server(serve) as server, opened() as transport:
        for _ in range(3):
            reply = await transport.send(post(server), PATIENT)
            begun.set()
            await reply.pump(partial(lambda reply, _: reply.pause(), reply))
            reply.resume()
        assert len(server.peers) == 1
