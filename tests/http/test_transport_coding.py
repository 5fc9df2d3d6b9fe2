"""Compressed answers, though we ask for none: undone wherever they are cut, and never without a limit."""

import asyncio
import gzip
import zlib

import pytest

from tests.http.transport_kit import (
    PATIENT,
    Peer,
    Server,
    always,
    answer,
    chunked,
    fetch,
    opened,
    post,
    scenario,
)
from wireglot.http.transport import TransportFault

EVENTS = b"".join(b"data: %d\n\n" % n for n in range(20))


def _raw(body: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(body) + deflate.flush()


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", gzip.compress(EVENTS)),
        ("x-gzip", gzip.compress(EVENTS[:50]) + gzip.compress(EVENTS[50:])),
        ("deflate", zlib.compress(EVENTS)),
        ("Deflate", _raw(EVENTS)),
        ("identity", EVENTS),
    ],
    ids=["gzip", "gzip-in-two", "deflate", "deflate-raw", "identity"],
)
@scenario
async def test_a_compressed_answer_is_decompressed_wherever_it_is_cut(coding: str, coded: bytes):
    async def serve(peer: Peer) -> None:
        for cut in range(0, len(coded), 7):
            await peer.request()
            await peer.send(
                chunked(*filter(None, [coded[:cut]]), headers=f"content-encoding: {coding}\r\n", end=b"")
            )
            await asyncio.sleep(0.0005)
            await peer.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(coded[cut:]), coded[cut:]))
        await peer.gone()

    async with Server(serve) as server, opened() as transport:
        for _ in range(0, len(coded), 7):
            got: list[bytes] = []
            reply = await transport.send(post(server), PATIENT)
            assert reply.headers.get("content-encoding", "identity") == "identity"
            await reply.pump(got.append)
            assert b"".join(got) == EVENTS
        assert len(server.peers) == 1


@scenario
async def test_a_decompressed_answer_says_neither_its_coding_nor_its_coded_length():
    wire = answer(gzip.compress(b"hello"), headers="content-encoding: gzip\r\nx-a: b\r\n")
    async with Server(always(wire)) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        assert reply.headers == {"x-a": "b"}
        assert await reply.read(5) == b"hello"


@scenario
async def test_a_compressed_answer_cut_short_is_broken():
    wire = answer(gzip.compress(EVENTS)[:-4], headers="content-encoding: gzip\r\n")
    async with Server(always(wire)) as server, opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.problem == "broken"


@pytest.mark.parametrize("read", [True, False])
@scenario
async def test_a_decompression_bomb_is_stopped(read: bool):
    bomb = gzip.compress(bytes(8 << 20))
    most = 0

    def feed(data: bytes) -> None:
        nonlocal most
        most += len(data)

    async with (
        Server(always(answer(bomb, headers="content-encoding: gzip\r\n"))) as server,
        opened() as transport,
    ):
        reply = await transport.send(post(server), PATIENT)
        with pytest.raises(TransportFault) as caught:
            await (reply.read(1 << 30) if read else reply.pump(feed))
        assert caught.value.problem == "too_large"
        assert most < 100 * len(bomb)
        assert transport.open_connections == 0


@scenario
async def test_a_decompressed_body_over_the_limit_is_too_large():
    wire = answer(gzip.compress(bytes(2000)), headers="content-encoding: gzip\r\n")
    async with Server(always(wire)) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        with pytest.raises(TransportFault) as caught:
            await reply.read(1999)
        assert caught.value.problem == "too_large"
