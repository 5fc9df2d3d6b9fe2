"""The server as its clients and its application see it."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import socket
import struct

import pytest

from tests.gateway.server_kit import PLAIN, FakeApp, Run, echo, get, loops, post, runner, serving, until
from wireglot.gateway.exchange import Head, Refusal, Reply
from wireglot.gateway.server import HttpServer
from wireglot.gateway.settings import Guard


@pytest.fixture(params=loops())
def run(request) -> Run:
    return runner(request.param)


async def silent(head: Head, body: bytes, reply: Reply) -> None:
    await asyncio.Event().wait()


async def begun_and_silent(head: Head, body: bytes, reply: Reply) -> None:
    reply.start(200, PLAIN)
    reply.write(b"first")
    await asyncio.Event().wait()


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
                    "127.0.0.1",
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
    ("version", "line", "closes", "told"),
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
    run: Run, version: str, line: str, closes: bool, told: str | None
):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            data = f"GET / HTTP/{version}\r\nHost: localhost\r\n{line}\r\n\r\n".encode()
            client.send(data)
            answer = await client.response()
            assert answer.headers.get("connection") == told
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


def _fin(sock: socket.socket) -> None:
    sock.close()


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def _half_close(sock: socket.socket) -> None:
    sock.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("handler", [silent, begun_and_silent])
@pytest.mark.parametrize("leave", [_fin, _reset, _half_close])
def test_a_client_that_leaves_cancels_its_handler_while_nothing_is_written(run: Run, handler, leave):
    async def scenario():
        app = FakeApp(handler)
        async with serving(app) as served:
            sock = socket.create_connection((served.host, served.port))
            sock.sendall(post("/", b"abc"))
            await until(lambda: served.server.requests == 1)
            leave(sock)
            await until(lambda: served.server.requests == 0)
            assert app.cancelled == ["the client has gone"]
            await until(lambda: served.server.connections == 0)
            sock.close()

    run(scenario())


def test_a_request_cut_short_is_never_handled(run: Run):
    async def scenario():
        async with serving() as served:
            for data in (
                post("/", b"abc")[:-1],
                get("/")[:-1],
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            ):
                client = await served.client()
                client.send(data)
                client.writer.write_eof()
                assert await client.rest() == b""
            await until(lambda: served.server.connections == 0)
            assert served.app.heads == []
            assert served.server.buffered == 0

    run(scenario())


def test_a_handler_is_left_alone_once_it_has_answered(run: Run):
    async def scenario():
        gone = asyncio.Event()

        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            reply.start(200, PLAIN)
            reply.end()
            await gone.wait()
            reply.write(b"nothing")

        app = FakeApp(handler)
        async with serving(app) as served:
            client = await served.client()
            client.send(get("/1"))
            assert (await client.response()).status == 200
            client.send(get("/2"))  # does not wait for what the first handler still has to do
            assert (await client.response()).status == 200
            await client.close()
            await until(lambda: served.server.connections == 0)
            assert served.server.requests == 2
            gone.set()
            await until(lambda: served.server.requests == 0)
            assert (app.finished, app.cancelled) == (2, [])

    run(scenario())


def test_writing_to_a_client_that_has_gone_is_nothing(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            reply.start(200, PLAIN)
            reply.write(b"too late")
            reply.on_pressure(lambda: None, lambda: None)
            reply.end()
            reply.send(500, PLAIN, b"")
            reply.abort()

    async def scenario():
        app = FakeApp(handler)
        async with serving(app) as served:
            client = await served.client()
            client.send(get("/"))
            await until(lambda: served.server.requests == 1)
            await client.close()
            await until(lambda: app.finished == 1)

    run(scenario())


def test_an_aborted_answer_is_not_whole(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        reply.start(200, PLAIN)
        reply.write(b"half")
        reply.abort()
        reply.write(b"more")
        reply.end()

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(get("/"))
            assert (await client.head()).status == 200
            assert await client.rest() == b"4\r\nhalf\r\n"

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


def _slow_reader(served) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect((served.host, served.port))
    sock.setblocking(False)
    return sock


def test_a_slow_reader_is_felt_by_the_handler_and_so_is_its_catching_up(run: Run):
    async def scenario():
        events: list[str] = []
        done = asyncio.Event()

        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            reply.on_pressure(lambda: events.append("pause"), lambda: events.append("resume"))
            reply.start(200, PLAIN)
            written = 0
            while not events:
                reply.write(b"x" * 16_384)
                written += 16_384
                await asyncio.sleep(0)
            # Registered late, it is told at once.
            reply.on_pressure(lambda: events.append("pause again"), lambda: events.append("resume"))
            await done.wait()
            reply.end()

        async with serving(FakeApp(handler)) as served:
            sock = _slow_reader(served)
            sock.sendall(get("/"))
            await until(lambda: len(events) == 2)
            assert events == ["pause", "pause again"]
            loop = asyncio.get_running_loop()
            while "resume" not in events:
                assert await loop.sock_recv(sock, 65_536)
            done.set()
            tail = b""
            while not tail.endswith(b"\r\n0\r\n\r\n"):
                tail = (tail + await loop.sock_recv(sock, 65_536))[-16:]
            sock.close()

    run(scenario())


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "stream"])
def test_a_client_that_never_reads_is_cut_off(run: Run, whole: bool):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        if whole:
            reply.send(200, PLAIN, b"x" * 20_000_000)
            return
        reply.start(200, PLAIN)
        reply.write(b"x" * 20_000_000)
        await asyncio.Event().wait()

    async def scenario():
        app = FakeApp(handler)
        async with serving(app, Guard(write_stall=0.1)) as served:
            sock = _slow_reader(served)
            sock.sendall(get("/"))
            await until(lambda: len(app.heads) == 1)
            await until(lambda: served.server.connections == 0)
            await until(lambda: served.server.requests == 0)
            assert app.cancelled == ([] if whole else ["the client has gone"])
            sock.close()

    run(scenario())


def test_draining_lets_requests_finish_and_closes_idle_connections(run: Run):
    async def scenario():
        go_on = asyncio.Event()

        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            if head.path == "/stream":
                reply.start(200, PLAIN)
                reply.write(b"one")
            await go_on.wait()
            if head.path == "/stream":
                reply.write(b"two")
                reply.end()
            else:
                reply.send(200, PLAIN, b"done")

        app = FakeApp(handler)
        async with serving(app) as served:
            idle, stream, whole = [await served.client() for _ in range(3)]
            stream.send(get("/stream"))
            whole.send(get("/whole"))
            await until(lambda: served.server.requests == 2)
            drained = asyncio.ensure_future(served.server.drain(60))
            assert await idle.rest() == b""
            with pytest.raises(ConnectionRefusedError):
                await served.client()
            assert not drained.done()
            go_on.set()
            assert (await stream.response()).body == b"onetwo"
            assert await stream.rest() == b""
            answer = await whole.response()
            assert (answer.body, answer.headers["connection"]) == (b"done", "close")
            await drained
            assert (served.server.connections, served.server.requests, app.cancelled) == (0, 0, [])

    run(scenario())


def test_at_the_end_of_a_drain_handlers_are_cancelled_and_may_still_end_their_answer(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        if head.path == "/stream":
            reply.start(200, PLAIN)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if head.path == "/stream":
                reply.write(b"error")
                reply.end()
            raise

    async def scenario():
        app = FakeApp(handler)
        async with serving(app) as served:
            stream, whole = await served.client(), await served.client()
            stream.send(get("/stream"))
            whole.send(get("/whole"))
            await until(lambda: served.server.requests == 2)
            slow = asyncio.ensure_future(served.server.drain(60))
            await asyncio.sleep(0)
            await served.server.drain(0.01)  # overtakes the first
            await slow
            assert (await stream.response()).body == b"error"
            assert (await whole.response()).status == 503
            assert app.cancelled == ["the server is shutting down"] * 2
            assert (served.server.connections, served.server.requests) == (0, 0)

    run(scenario())


def test_a_drain_cuts_handlers_that_do_not_heed_their_cancellation(run: Run):
    async def scenario():
        released = asyncio.Event()

        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            reply.start(200, PLAIN)
            reply.write(b"half")
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue

        async with serving(FakeApp(handler), Guard(drain_again=0.05)) as served:
            client = await served.client()
            client.send(get("/"))
            await client.head()
            drained = asyncio.ensure_future(served.server.drain(0))
            assert await client.rest() == b"4\r\nhalf\r\n"
            released.set()
            await drained
            assert served.server.connections == 0

    run(scenario())


def test_it_listens_on_ipv6_and_on_a_socket_of_its_own(run: Run, tmp_path):
    async def scenario():
        app = FakeApp()
        server = HttpServer(app, Guard)
        host, port = await server.listen("::1", 0)
        assert host == "::1"
        assert port > 0
        path = os.fspath(tmp_path / "s")
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(path)
        await server.listen_on(bound)
        for opened in (asyncio.open_connection(host, port), asyncio.open_unix_connection(path)):
            reader, writer = await opened
            writer.write(get("/"))
            assert b"200 OK" in await reader.readuntil(b"\r\n")
            writer.close()
        assert [head.peer for head in app.heads] == ["::1", ""]
        await server.drain(0)

    run(scenario())


def test_workers_can_share_a_port(run: Run):
    async def scenario():
        first, second = HttpServer(FakeApp(), Guard), HttpServer(FakeApp(), Guard)
        host, port = await first.listen("127.0.0.1", 0, reuse_port=True)
        assert await second.listen(host, port, reuse_port=True) == (host, port)
        await first.drain(0)
        await second.drain(0)

    run(scenario())


def test_a_thousand_clients_that_leave_at_any_point_leave_nothing_behind(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        await asyncio.sleep(0)
        reply.start(200, PLAIN)
        reply.write(b"x" * 1000)
        await asyncio.sleep(0.001)
        reply.end()

    async def scenario():
        data = post("/", b"x" * 200) + get("/2")
        async with serving(FakeApp(handler)) as served:
            for number in range(1000):
                sock = socket.create_connection((served.host, served.port))
                sock.sendall(data[: number % len(data) + 1])
                for _ in range(number % 5):
                    await asyncio.sleep(0)
                (_fin, _reset)[number % 2](sock)
            await until(lambda: served.server.connections == 0 and served.server.requests == 0)
            assert served.server.buffered == 0

    run(scenario())
