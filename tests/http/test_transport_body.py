"""Answers as servers send them: framed in every way, cut anywhere, too large, not HTTP at all."""

import asyncio
import random

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
from tests.waiting import until
from wireglot.http.transport import Outbound, TransportFault

OK = b"HTTP/1.1 200 OK\r\n"


NOT_HTTP = {
    "html": b"<html>no</html>",
    "no status": b"HTTP/1.1 banana\r\n\r\n",
    "switching protocols": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
    "switching to nothing": b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + answer(),
    "nine interims": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9 + answer(),
    "two lengths": OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "length and chunked": OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "coded transfer": OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "unknown transfer": OK + b"transfer-encoding: gzip\r\n\r\n",
    "negative length": OK + b"content-length: -1\r\n\r\n",
    "bad chunk": OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n",
    "brotli": OK + b"content-encoding: br\r\ncontent-length: 2\r\n\r\nab",
    "zstd": OK + b"content-encoding: zstd\r\ncontent-length: 2\r\n\r\nab",
    "twice coded": OK + b"content-encoding: gzip, gzip\r\ncontent-length: 2\r\n\r\nab",
    "not gzip": OK + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nplain",
    "folded header": OK + b"a: b\r\n c: folded\r\ncontent-length: 0\r\n\r\n",
    "too many headers": OK + b"".join(b"x-%d: y\r\n" % n for n in range(201)) + b"content-length: 0\r\n\r\n",
    "too large headers": OK + b"x: " + b"y" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n",
    "too many trailers": OK
    + b"transfer-encoding: chunked\r\n\r\n0\r\n"
    + b"".join(b"t%d: y\r\n" % n for n in range(300)),
    "too large trailer": OK + b"transfer-encoding: chunked\r\n\r\n0\r\nt: " + b"y" * 400_000,
    "too large chunk extension": OK + b"transfer-encoding: chunked\r\n\r\n0;" + b"y" * 400_000,
}


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (answer(b"hello"), b"hello"),
        (answer(b""), b""),
        (chunked(b"hel", b"lo"), b"hello"),
        (chunked(), b""),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n5;ext=1\r\nhello\r\n0;x\r\nTrailer-A: b\r\n\r\n", b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + answer(b"hello"), b"hello"),
    ],
)
@scenario
async def test_any_cut_gives_the_same_answer_and_keeps_the_connection(wire: bytes, body: bytes):
    async def serve(peer: Peer) -> None:
        for cut in range(1, len(wire) + 1):
            await peer.request()
            await peer.send(wire[:cut])
            await asyncio.sleep(0.0005)
            await peer.send(wire[cut:])
        await peer.request()
        for position in range(len(wire)):
            await peer.send(wire[position : position + 1])
            await asyncio.sleep(0)
        await peer.gone()

    async with Server(serve) as server, opened() as transport:
        for _ in range(len(wire) + 1):
            reply = await transport.send(post(server), PATIENT)
            assert "link" not in reply.headers
            assert "trailer-a" not in reply.headers
            assert await reply.read(100) == body
        assert len(server.peers) == 1


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@scenario
async def test_a_body_without_a_length_ends_with_the_connection(version: bytes):
    wire = b"HTTP/%s 200 OK\r\n\r\nhello" % version
    async with Server(always(wire, close=True)) as server, opened() as transport:
        assert await fetch(transport, post(server)) == b"hello"
        assert transport.open_connections == 0


@pytest.mark.parametrize(
    "wire",
    [
        b"H",
        OK + b"content-len",
        OK + b"content-length: 6\r\n\r\nhello",
        OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n6\r\nhello",
        OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ],
)
@pytest.mark.parametrize("reset", [False, True])
@scenario
async def test_an_answer_that_ends_too_early_is_broken(wire: bytes, reset: bool):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(wire)
        if reset:
            await asyncio.sleep(0.005)
            peer.reset()

    async with Server(serve) as server, opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert (caught.value.problem, caught.value.sent) == ("broken", True)


@scenario
async def test_a_reset_does_not_end_a_body_without_a_length():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK + b"\r\nhello")
        await asyncio.sleep(0.005)
        peer.reset()

    async with Server(serve) as server, opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.problem == "broken"


@pytest.mark.parametrize("case", NOT_HTTP)
@scenario
async def test_what_is_not_http_as_we_speak_it_is_refused(case: str):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(NOT_HTTP[case])
        await peer.gone()

    async with Server(serve) as server, opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.problem == "protocol"
        assert transport.open_connections == 0


@scenario
async def test_eight_interim_answers_are_skipped():
    wire = b"HTTP/1.1 103 Early Hints\r\nx-a: 1\r\n\r\n" * 8 + answer(headers="x-b: 2\r\n")
    async with Server(always(wire)) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        assert reply.headers == {"x-b": "2", "content-length": "2"}
        reply.abort()


@scenario
async def test_repeated_headers_are_joined_and_odd_bytes_survive():
    head = OK + b"X-A: 1\r\nx-a: 2 \t\r\nX-B: \xe9\xff\r\ncontent-length: 0\r\n\r\n"
    async with Server(always(head)) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        assert reply.headers["x-a"] == "1, 2"
        assert reply.headers["x-b"] == "\xe9\xff"


@scenario
async def test_a_stream_is_handed_on_read_by_read():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(end=b""))
        for n in range(5):
            await step.acquire()
            await peer.send(b"3\r\na%db\r\n3\r\nc%dd\r\n" % (n, n))
        await step.acquire()
        await peer.send(b"0\r\n\r\n")
        await peer.gone()

    step = asyncio.Semaphore(1)
    got: list[bytes] = []

    def feed(data: bytes) -> None:
        got.append(data)
        step.release()

    async with Server(serve) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        await reply.pump(feed)
        assert got == [b"a%dbc%dd" % (n, n) for n in range(5)]
        assert transport.idle_connections == 1


@scenario
async def test_what_came_before_pump_is_handed_on_first():
    async with Server(always(chunked(b"a", b"b"))) as server, opened() as transport:
        got: list[bytes] = []
        reply = await transport.send(post(server), PATIENT)
        await until(lambda: transport.idle_connections == 1)
        await reply.pump(got.append)
        assert got == [b"ab"]


@pytest.mark.parametrize("error", [ValueError, StopIteration])
@pytest.mark.parametrize("late", [False, True])
@scenario
async def test_an_exception_of_feed_comes_out_of_pump_and_closes_the_connection(error: type, late: bool):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(*([] if late else [b"a"]), end=b""))
        await begun.wait()
        await peer.send(b"1\r\nb\r\n")
        await peer.gone()
        closed.set()

    def feed(data: bytes) -> None:
        raise error("no")

    begun, closed = asyncio.Event(), asyncio.Event()
    async with Server(serve) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        begun.set()
        # A coroutine cannot raise StopIteration: Python makes a RuntimeError of it.
        with pytest.raises(ValueError if error is ValueError else RuntimeError):
            await reply.pump(feed)
        await closed.wait()
        assert transport.open_connections == 0


@pytest.mark.parametrize("rest", [b"", b"0\r\n\r\n"])
@scenario
async def test_feed_may_abort_even_at_the_very_end(rest: bytes):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(end=b""))
        await begun.wait()
        await peer.send(b"1\r\na\r\n" + rest)
        await peer.gone()

    begun = asyncio.Event()
    async with Server(serve) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        begun.set()
        with pytest.raises(TransportFault) as caught:
            await reply.pump(lambda _: reply.abort())
        assert caught.value.problem == "broken"
        assert transport.open_connections == 0


@scenario
async def test_aborting_from_outside_wakes_the_one_that_pumps():
    async with Server(always(chunked(b"a", end=b""))) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        got: list[bytes] = []
        pumping = asyncio.create_task(reply.pump(got.append))
        await until(lambda: got)
        reply.abort()
        reply.abort()
        with pytest.raises(TransportFault):
            await pumping
        assert transport.open_connections == 0


@scenario
async def test_a_body_over_the_limit_is_too_large():
    wires = [answer(bytes(101)), chunked(bytes(50), bytes(51)), OK + b"\r\n" + bytes(101)]
    for wire in wires:
        async with Server(always(wire, close=True)) as server, opened() as transport:
            reply = await transport.send(post(server), PATIENT)
            with pytest.raises(TransportFault) as caught:
                await reply.read(100)
            assert caught.value.problem == "too_large"
            await until(lambda: transport.open_connections == 0)


@scenario
async def test_an_announced_length_over_the_limit_is_refused_before_it_comes():
    async with Server(always(OK + b"content-length: 999999999\r\n\r\n")) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        with pytest.raises(TransportFault) as caught:
            await reply.read(1000)
        assert caught.value.problem == "too_large"
        assert transport.open_connections == 0


@scenario
async def test_a_body_of_just_the_limit_is_read():
    async with Server(always(answer(bytes(100)))) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        assert await reply.read(100) == bytes(100)


@scenario
async def test_a_large_body_is_read_whole():
    body = random.Random(3).randbytes(5 << 20)
    for wire in (
        answer(body),
        chunked(body),
        chunked(*(body[n : n + 9999] for n in range(0, len(body), 9999))),
    ):
        async with Server(always(wire)) as server, opened() as transport:
            assert await fetch(transport, post(server)) == body
            assert transport.idle_connections == 1


@scenario
async def test_a_piece_of_a_stream_larger_than_any_buffer_passes():
    event = b"data: " + b"x" * (8 << 20) + b"\n\n"
    got: list[bytes] = []
    async with Server(always(chunked(event))) as server, opened() as transport:
        reply = await transport.send(Outbound("GET", server.url, []), PATIENT)
        await reply.pump(got.append)
        assert b"".join(got) == event
