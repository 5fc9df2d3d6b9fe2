"""The server as its clients and its application see it."""

from __future__ import annotations

import asyncio
import contextvars
import json
import socket

import pytest

from tests.http.limits_kit import Limits
from tests.http.server_kit import (
    PLAIN,
    FakeApp,
    Run,
    connect,
    echo,
    get,
    loops,
    post,
    runner,
    serving,
)
from tests.waiting import until
from wireglot.http.application import Head, Refusal, Reply
from wireglot.http.server.connection import Hub
from wireglot.http.server.server import HttpServer


@pytest.fixture(params=loops())
def run(request) -> Run:
    return runner(request.param)


def test_a_request_is_handed_over_with_everything_it_said(run: Run):
    async def scenario():
        async with serving() as served:
            lines = ["X-A:  one ", "x-a: two", "Content-Type: application/json", "Empty:"]
            answer = await served.ask(post("/v1/messages?beta=true", b'{"a":1}', *lines))
            assert (answer.status, answer.body) == (200, b'POST /v1/messages?beta=true {"a":1}')
            assert answer.headers["content-length"] == str(len(answer.body))
            assert "connection" not in answer.headers
            assert answer.headers["date"].endswith("GMT")
            headers = {
                "host": "localhost",
                "x-a": "one, two",
                "content-type": "application/json",
                "empty": "",
            }
            assert served.app.heads == [
                Head(
                    "POST",
                    "/v1/messages?beta=true",
                    "/v1/messages",
                    "beta=true",
                    headers | {"content-length": "7"},
                    peer="127.0.0.1",
                )
            ]

    run(scenario())


def test_a_request_reads_the_same_however_it_is_cut(run: Run):
    async def scenario():
        chunked = b"POST /c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: Chunked\r\n\r\n"
        chunked += b"3\r\nabc\r\n0A;ext=1\r\n0123456789\r\n000\r\n\r\n"
        async with serving() as served:
            for data in (post("/b", b"x" * 300), chunked, b"\r\n" + get("/g")):
                for step in (1, 2, 7, len(data)):
                    client = await served.client()
                    for at in range(0, len(data), step):
                        client.send(data[at : at + step])
                        await asyncio.sleep(0)
                    answer = await client.response()
                    assert answer.status == 200
            heads, bodies = served.app.heads, served.app.bodies
            assert bodies == [b"x" * 300] * 4 + [b"abc0123456789"] * 4 + [b""] * 4
            assert all(head == heads[index // 4 * 4] for index, head in enumerate(heads))

    run(scenario())


def test_one_connection_serves_many_requests(run: Run):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            for number in range(20):
                client.send(post(f"/{number}", b"x" * number))
                assert (await client.response()).body == f"POST /{number} ".encode() + b"x" * number
            assert served.server.connections == 1

    run(scenario())


def test_pipelined_requests_are_answered_in_order_one_at_a_time(run: Run):
    running = []

    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        running.append(head.path)
        assert len(running) == 1
        await asyncio.sleep(0)
        running.clear()
        await echo(head, body, reply)

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            for number in range(200):
                client.send(post(f"/{number}/first", b"a" * number) + get(f"/{number}/second"))
            for number in range(200):
                assert (await client.response()).body == f"POST /{number}/first ".encode() + b"a" * number
                assert (await client.response()).body == f"GET /{number}/second ".encode()

    run(scenario())


def test_a_long_queue_of_pipelined_requests_is_served_with_little_of_it_held(run: Run):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            client.send(b"".join(post(f"/{number}", b"x" * 5000) for number in range(100)))
            for number in range(100):
                assert (await client.response()).body.startswith(f"POST /{number} ".encode())

    run(scenario())


def test_a_request_begun_by_the_end_of_another_does_not_inherit_its_context(run: Run):
    whose: contextvars.ContextVar[str] = contextvars.ContextVar("whose", default="nobody's")

    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        found = whose.get()
        whose.set(head.path)
        reply.send(200, PLAIN, found.encode())

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(get("/1") + get("/2"))
            assert (await client.response()).body == b"nobody's"
            assert (await client.response()).body == b"nobody's"

    run(scenario())


def test_a_stream_goes_out_chunk_by_chunk_as_it_is_written(run: Run):
    async def scenario():
        go_on = asyncio.Event()

        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            reply.start(200, [("content-type", "text/event-stream")])
            await go_on.wait()
            reply.write(b"one")
            reply.write(b"")
            reply.write(b"two" * 10)
            reply.end()

        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(get("/"))
            head = await client.head()
            assert (head.status, head.headers["transfer-encoding"]) == (200, "chunked")
            go_on.set()
            assert [await client.chunk() for _ in range(3)] == [b"one", b"two" * 10, b""]
            client.send(get("/"))
            assert (await client.response()).body == b"one" + b"two" * 10

    run(scenario())


def test_head_is_answered_like_get_without_a_body(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        if head.path == "/stream":
            reply.start(200, PLAIN)
            reply.write(b"unseen")
            reply.end()
        else:
            reply.send(200, PLAIN, b"12345")

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await client.head()).headers["content-length"] == "5"
            client.send(b"HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await client.head()).headers["transfer-encoding"] == "chunked"
            client.send(get("/"))
            assert (await client.response()).body == b"12345"

    run(scenario())


def test_no_content_has_neither_length_nor_body(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        reply.send(204, [], b"")

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(get("/") + get("/"))
            for _ in range(2):
                answer = await client.head()
                assert (answer.status, set(answer.headers)) == (204, {"date"})

    run(scenario())


@pytest.mark.parametrize(
    ("version", "line", "closes", "reported"),
    [
        ("1.1", "Connection: close", True, "close"),
        ("1.1", "Connection: TE, Close", True, "close"),
        ("1.1", "Connection: keep-alive", False, None),
        ("1.1", "Connection: Keep-Alive, X", False, None),
        ("1.0", "A: b", True, "close"),
        ("1.0", "Connection: Keep-Alive", False, "keep-alive"),
        ("1.0", "Connection: keep-alive", False, "keep-alive"),
    ],
)
def test_a_connection_stays_when_its_client_wants_that(
    run: Run, version: str, line: str, closes: bool, reported: str | None
):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            data = f"GET / HTTP/{version}\r\nHost: localhost\r\n{line}\r\n\r\n".encode()
            client.send(data)
            answer = await client.response()
            assert answer.headers.get("connection") == reported
            if closes:
                assert await client.rest() == b""
            else:
                client.send(data)
                assert (await client.response()).status == 200

    run(scenario())


def test_a_stream_to_an_old_client_ends_with_its_connection(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        reply.start(200, PLAIN)
        reply.write(b"one")
        reply.write(b"two")
        if head.path == "/cut":
            reply.abort()
        reply.end()

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(b"GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
            assert set((await client.head()).headers) == {"date", "content-type", "connection"}
            assert await client.rest() == b"onetwo"
            client = await served.client()
            client.send(b"GET /cut HTTP/1.0\r\nHost: localhost\r\n\r\n")
            # A plain end would look like the end of the answer.
            with pytest.raises(ConnectionResetError):
                await client.rest()

    run(scenario())


def test_it_says_at_which_addresses_it_listens(run: Run):
    async def scenario():
        async with serving() as served:
            assert list(served.server.bound) == ["127.0.0.1"]
            await served.server.listen("127.0.0.2", 0)
            assert list(served.server.bound) == ["127.0.0.1", "127.0.0.2"]

    run(scenario())


def test_a_refusal_comes_before_the_body_is_read(run: Run):
    async def scenario():
        app = FakeApp()
        app.refusals["/no"] = Refusal(401, PLAIN, b"who are you")
        async with serving(app) as served:
            client = await served.client()
            client.send(post("/no", b"x" * 100_000)[:200])
            answer = await client.response()
            assert (answer.status, answer.body, answer.headers["connection"]) == (
                401,
                b"who are you",
                "close",
            )
            assert await client.rest() == b""
            assert app.heads == []

    run(scenario())


def test_a_short_refused_body_is_read_past_and_the_connection_stays(run: Run):
    async def scenario():
        app = FakeApp()
        app.refusals["/no"] = Refusal(401, PLAIN, b"no")
        async with serving(app) as served:
            client = await served.client()
            refused = post("/no", b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            client.send(refused + post("/1", b"a") + refused + refused[:-30])
            assert [(await client.response()).status for _ in range(4)] == [401, 200, 401, 401]
            client.send(refused[-30:] + get("/2"))
            assert (await client.response()).body == b"GET /2 "
            assert [head.path for head in app.heads] == ["/1", "/2"]

    run(scenario())


def test_a_refusal_that_closes_closes(run: Run):
    async def scenario():
        app = FakeApp()
        app.refusals["/no"] = Refusal(403, PLAIN, b"no", close=True)
        async with serving(app) as served:
            client = await served.client()
            client.send(get("/no") + get("/yes"))
            assert (await client.response()).headers["connection"] == "close"
            assert await client.rest() == b""
            assert app.heads == []

    run(scenario())


def test_continue_is_said_only_to_who_may_come_in(run: Run):
    async def scenario():
        app = FakeApp()
        app.refusals["/no"] = Refusal(401, PLAIN, b"no")
        async with serving(app) as served:
            client = await served.client()
            request = post("/yes", b"abc", "Expect: 100-Continue")
            client.send(request[:-3])
            assert (await client.head()).status == 100
            client.send(b"abc")
            assert (await client.response()).body == b"POST /yes abc"
            client.send(request)
            assert (await client.response()).status == 200  # no 100 to one that did not wait for it
            client.send(post("/no", b"abc", "Expect: 100-continue")[:-3])
            answer = await client.response()
            # Whether the body comes now is the client's choice: only an end keeps both in step.
            assert (answer.status, answer.headers["connection"]) == (401, "close")
            assert await client.rest() == b""

    run(scenario())


@pytest.mark.parametrize("fails", [True, False], ids=["raises", "returns"])
def test_a_handler_that_does_not_answer_gets_its_client_a_500(run: Run, fails: bool):
    reported: list[object] = []

    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        if head.path == "/begun":
            reply.start(200, PLAIN)
            reply.write(b"half")
        if fails:
            raise ValueError("secret detail")

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["exception"])
        )
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(get("/"))
            answer = await client.response()
            error = json.loads(answer.body)["error"]
            assert (answer.status, error["code"], error["type"]) == (500, "internal_error", "server_error")
            assert b"secret" not in answer.body
            assert await client.rest() == b""
            client = await served.client()
            client.send(get("/begun"))
            await client.head()
            assert await client.rest() == b"4\r\nhalf\r\n"
            assert [type(problem) for problem in reported] == [ValueError, ValueError] * fails

    run(scenario())


def test_an_admission_that_fails_is_a_500(run: Run):
    class Broken(FakeApp):
        def admit(self, head: Head) -> Refusal | None:
            raise ValueError("bug")

    async def scenario():
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["exception"])
        )
        async with serving(Broken()) as served:
            assert (await served.ask(get("/"))).status == 500
            assert len(reported) == 1

    run(scenario())


def test_headers_cannot_be_split_and_framing_is_the_servers(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        values = {
            "/lf": "a\nx-evil: 1",
            "/crlf": "a\r\nx-evil: 1",
            "/nul": "a\0b",
            "/wide": "snow ☃",
            "/tab": "a\tb",
        }
        headers = [("x-a", values[head.path]), ("content-length", "3"), ("transfer-encoding", "chunked")]
        reply.send(200, [*headers, ("connection", "upgrade"), ("x-b", "é")], b"hello")

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            shown = {
                "/lf": "a?x-evil: 1",
                "/crlf": "a??x-evil: 1",
                "/nul": "a?b",
                "/wide": "snow ?",
                "/tab": "a\tb",
            }
            for path, value in shown.items():
                client.send(get(path))
                answer = await client.response()
                assert answer.body == b"hello"
                del answer.headers["date"]
                assert answer.headers == {"x-a": value, "x-b": "é", "content-length": "5"}

    run(scenario())


def test_an_answer_is_one_write_and_so_is_each_part_of_a_stream(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        if head.path == "/whole":
            reply.send(200, PLAIN, b"body")
            return
        reply.start(200, PLAIN)
        reply.write(b"one")
        reply.write(b"two")
        reply.end()

    async def scenario():
        hub = Hub(FakeApp(handler), Limits())
        hub.open()
        connection, transport = connect(hub)
        assert transport.high == Limits().write_pending
        connection.data_received(get("/whole"))
        await until(lambda: not hub.tasks)
        connection.data_received(get("/stream"))
        await until(lambda: not hub.tasks)
        whole, first, second, last = transport.writes
        assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
        assert whole.endswith(b"\r\n\r\nbody")
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert first.endswith(b"\r\n\r\n3\r\none\r\n")
        assert (second, last) == (b"3\r\ntwo\r\n", b"0\r\n\r\n")

    run(scenario())


def test_connections_from_one_address_are_limited_but_not_those_of_this_machine(run: Run):
    async def scenario():
        hub = Hub(FakeApp(), Limits(connections_per_peer=2))
        hub.open()
        for peer in ("127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", ""):
            assert all(connect(hub, peer)[1].writes == [] for _ in range(3))
        first, second, third = [connect(hub, "192.0.2.1") for _ in range(3)]
        assert (first[1].writes, second[1].writes) == ([], [])
        assert third[1].writes[0].startswith(b"HTTP/1.1 503 ")
        assert third[1].writes[1] == b"EOF"
        assert connect(hub, "192.0.2.2")[1].writes == []
        for connection, _ in (first, third):
            connection.connection_lost(None)
        assert connect(hub, "192.0.2.1")[1].writes == []
        flood = [connect(hub, "192.0.2.3")[1] for _ in range(100)]
        assert [len(transport.writes) for transport in flood].count(2) == 64
        assert sum(transport.aborted for transport in flood) == 34

    run(scenario())


def test_small_writes_are_not_held_back_by_the_network_stack(run: Run):
    async def scenario():
        async with serving() as served:
            await served.client()
            await until(lambda: served.server.connections == 1)
            (connection,) = served.connections()
            assert connection._transport is not None
            sock = connection._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(scenario())


def test_it_listens_on_ipv6(run: Run):
    async def scenario():
        app = FakeApp()
        server = HttpServer(app, Limits())
        host, port = await server.listen("::1", 0)
        assert host == "::1"
        assert port > 0
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(get("/"))
        assert b"200 OK" in await reader.readuntil(b"\r\n")
        writer.close()
        assert [head.peer for head in app.heads] == ["::1"]
        await server.drain(0)

    run(scenario())


def test_workers_can_share_a_port(run: Run):
    async def scenario():
        first, second = HttpServer(FakeApp(), Limits()), HttpServer(FakeApp(), Limits())
        host, port = await first.listen("127.0.0.1", 0, reuse_port=True)
        assert await second.listen(host, port, reuse_port=True) == (host, port)
        await first.drain(0)
        await second.drain(0)

    run(scenario())


def test_new_limits_hold_for_connections_that_are_open(run: Run):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            client.send(get("/"))
            assert (await client.response()).status == 200
            served.server.adopt(Limits(header_count=2, buffered=7))
            client.send(get("/", "A: b", "C: d"))
            assert (await client.response()).status == 431
            assert (await served.ask(post("/", b"12345678"))).status == 503

    run(scenario())


def test_a_pause_of_the_process_is_no_silence_of_its_clients(run: Run):
    """A suspended machine: what clients have sent meanwhile is read before they are judged."""

    async def scenario():
        async with serving(FakeApp()) as served:
            client = await served.client()
            client.send(get("/"))
            assert (await client.response()).status == 200
            server = served.server
            (connection,) = server._hub.connections
            hour = 3600.0
            connection._begun -= hour
            server._due -= hour
            server._sweep()
            client.send(get("/"))
            assert (await client.response()).status == 200
            connection._begun -= hour
            server._sweep()
            assert await client.rest() == b""

    run(scenario())
