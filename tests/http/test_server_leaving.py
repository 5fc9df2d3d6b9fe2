"""Clients that leave, read slowly or not at all, and the end of the server itself."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from tests.http.limits_kit import Limits
from tests.http.server_kit import (
    PLAIN,
    FakeApp,
    Run,
    get,
    loops,
    post,
    runner,
    serving,
    slow_reader,
)
from tests.waiting import until
from wireglot.http.application import Head, Reply


@pytest.fixture(params=loops())
def run(request) -> Run:
    return runner(request.param)


async def silent(head: Head, body: bytes, reply: Reply) -> None:
    await asyncio.Event().wait()


async def begun_and_silent(head: Head, body: bytes, reply: Reply) -> None:
    reply.start(200, PLAIN)
    reply.write(b"first")
    await asyncio.Event().wait()


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
            assert app.cancelled == ["the client has disconnected"]
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
            # Registered late, it is reported at once.
            reply.on_pressure(lambda: events.append("pause again"), lambda: events.append("resume"))
            await done.wait()
            reply.end()

        async with serving(FakeApp(handler)) as served:
            sock = slow_reader(served)
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
        async with serving(app, Limits(write_stall=0.1)) as served:
            sock = slow_reader(served)
            sock.sendall(get("/"))
            await until(lambda: len(app.heads) == 1)
            await until(lambda: served.server.connections == 0)
            await until(lambda: served.server.requests == 0)
            assert app.cancelled == ([] if whole else ["the client has disconnected"])
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

        async with serving(FakeApp(handler), Limits(drain_again=0.05)) as served:
            client = await served.client()
            client.send(get("/"))
            await client.head()
            drained = asyncio.ensure_future(served.server.drain(0))
            assert await client.rest() == b"4\r\nhalf\r\n"
            released.set()
            await drained
            assert served.server.connections == 0

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
