"""Requests and their answers: what goes out, and what does not."""

import asyncio
import random

import pytest

from tests.http.limits_kit import Limits
from tests.http.transport_kit import PATIENT, Peer, Server, always, answer, fetch, opened, post, scenario
from wireglot.http.transport import Outbound, TransportFault


@scenario
async def test_a_request_goes_out_whole_and_its_answer_comes_back():
    async with (
        Server(always(answer(b'{"a":1}', headers="X-Request-Id: r1\r\n"))) as server,
        opened() as transport,
    ):
        request = post(server, b"hello", headers=[("authorization", "Bearer k"), ("x-a", "b")])
        reply = await transport.send(request, PATIENT)
        assert (reply.status, await reply.read(100)) == (200, b'{"a":1}')
        assert reply.headers == {"x-request-id": "r1", "content-length": "7"}
        assert server.requests == [
            f"POST /v1/x HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\naccept-encoding: identity\r\n"
            "authorization: Bearer k\r\nx-a: b\r\ncontent-length: 5\r\n\r\nhello".encode()
        ]


@scenario
async def test_a_get_has_no_body_and_says_no_length():
    async with Server(always(answer())) as server, opened() as transport:
        await fetch(transport, Outbound("GET", server.url + "?a=b#c", [], b""))
        assert server.requests[0].startswith(b"GET /v1/x?a=b HTTP/1.1\r\n")
        assert b"content-length" not in server.requests[0]


@scenario
async def test_an_empty_post_says_that_it_is_empty():
    async with Server(always(answer())) as server, opened() as transport:
        await fetch(transport, post(server, b""))
        assert server.requests[0].endswith(b"content-length: 0\r\n\r\n")


@scenario
async def test_a_head_request_is_answered_without_a_body():
    async with (
        Server(always(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")) as server,
        opened() as transport,
    ):
        assert await fetch(transport, Outbound("HEAD", server.url, [], b"")) == b""


@scenario
async def test_what_frames_a_message_is_not_taken_from_the_caller():
    ours = [
        ("host", "evil"),
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ]
    async with Server(always(answer())) as server, opened() as transport:
        await fetch(transport, post(server, headers=[*ours, ("accept-encoding", "gzip"), ("x-mine", "1")]))
        head = server.requests[0]
        assert head.count(b"host:") == head.count(b"content-length:") == head.count(b"accept-encoding:") == 1
        assert b"evil" not in head
        assert b"transfer-encoding" not in head
        assert b"x-mine: 1" in head


@pytest.mark.parametrize("value", ["a\r\nx-b: c", "a\nb", "a\rb", "a\0b", "日本"])
@scenario
async def test_a_header_that_would_break_the_head_is_not_sent(value: str):
    async with Server(always(answer())) as server, opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server, headers=[("x-a", value)]))
        assert (caught.value.problem, caught.value.sent) == ("protocol", False)
        assert server.peers == []


@pytest.mark.parametrize(
    "url",
    ["ftp://h/x", "http:///x", "http://h:99999/x", "http://h/a b", "http://h/ü", "host", "http://h/\r\nx"],
)
@scenario
async def test_a_url_that_cannot_be_used_is_refused(url: str):
    async with opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(url))
        assert (caught.value.problem, caught.value.sent) == ("protocol", False)
        assert url not in caught.value.message


@scenario
async def test_a_redirect_is_an_answer_and_not_followed():
    async with Server(always(answer())) as canary:
        moved = answer(b"", status="307 Temporary Redirect", headers=f"location: {canary.url}\r\n")
        async with Server(always(moved)) as server, opened() as transport:
            reply = await transport.send(post(server, headers=[("authorization", "Bearer k")]), PATIENT)
            assert (reply.status, reply.headers["location"]) == (307, canary.url)
            assert await reply.read(10) == b""
            assert canary.peers == []


@scenario
async def test_an_answer_before_the_request_was_sent_whole_ends_the_connection():
    async def serve(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(answer(b"too large", status="413 Content Too Large"))
        await asyncio.Event().wait()

    async with Server(serve) as server, opened() as transport:
        reply = await transport.send(post(server, bytes(16 << 20)), PATIENT)
        assert (reply.status, await reply.read(100)) == (413, b"too large")
        assert transport.open_connections == 0


@scenario
async def test_a_large_request_arrives_whole():
    body = random.Random(1).randbytes(3 << 20)

    async def serve(peer: Peer) -> None:
        await peer.send(answer(b"same" if await peer.request() == body else b"other"))

    async with Server(serve) as server, opened() as transport:
        assert await fetch(transport, post(server, body)) == b"same"


@scenario
async def test_after_close_nothing_is_sent_and_nothing_stays_open():
    started = asyncio.Event()

    async def serve(peer: Peer) -> None:
        await peer.request()
        started.set()
        await peer.gone()

    async with Server(serve) as server, opened(Limits(pool=1)) as transport:
        waiting = [asyncio.create_task(fetch(transport, post(server))) for _ in range(2)]
        await started.wait()
        await transport.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [TransportFault, TransportFault]
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.sent is False
        assert transport.open_connections == 0
