"""Clients that send more than they read, or more than the process may hold."""

from __future__ import annotations

import asyncio
import json
import socket
import tracemalloc
import urllib.request
from pathlib import Path

import pytest

from tests.http.limits_kit import Limits
from tests.http.server_kit import (
    PLAIN,
    Client,
    FakeApp,
    Recorder,
    Run,
    Served,
    connect,
    get,
    loops,
    post,
    runner,
    serving,
    slow_reader,
)
from tests.waiting import until
from wireglot.http.application import Head, Refusal, Reply
from wireglot.http.server.body import ChunkedBody, SizedBody
from wireglot.http.server.connection import Backlog, Hub, ServerConnection
from wireglot.testing.live_gateway import LiveGateway

LARGE = b"x" * 300_000
REQUESTS = 90
"""Below the number of refusals that end a connection."""


@pytest.fixture(params=loops())
def run(request) -> Run:
    return runner(request.param)


class CountingApp(FakeApp):
    """Refuses `/no`, answers the rest; `seen` counts both."""

    def __init__(self, answer: bytes = b"yes", refusal: bytes = b"no") -> None:
        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            reply.send(200, PLAIN, answer)

        super().__init__(handler)
        self.refusals["/no"] = Refusal(404, PLAIN, refusal)
        self.seen = 0

    def admit(self, head: Head) -> Refusal | None:
        self.seen += 1
        return super().admit(head)


def _connected(app: FakeApp, limits: Limits | None = None) -> tuple[Hub, ServerConnection, Recorder]:
    limits = limits or Limits()
    hub = Hub(app, limits)
    hub.open()
    return hub, *connect(hub)


async def _settled(app: CountingApp, served: Served) -> int:
    """How many requests were looked at once that number stays the same; another client is served meanwhile."""
    other = await served.client()
    quiet, last = 0, -1
    while quiet < 20:
        other.send(post("/other", b""))
        assert (await other.response()).status == 200
        app.seen -= 1
        quiet = quiet + 1 if app.seen == last else 0
        last = app.seen
    return last


@pytest.mark.parametrize("path", ["/no", "/yes"], ids=["refused", "admitted"])
def test_who_does_not_read_gets_no_further_answers_until_it_does(run: Run, path: str):
    async def scenario():
        app = CountingApp(answer=LARGE, refusal=LARGE)
        async with serving(app) as served:
            sock = slow_reader(served)
            sock.sendall(get(path) * REQUESTS)
            await until(lambda: app.seen > 0)
            assert 0 < await _settled(app, served) < REQUESTS
            loop = asyncio.get_running_loop()
            received = 0
            while app.seen < REQUESTS or received < REQUESTS * len(LARGE):
                received += len(await loop.sock_recv(sock, 1 << 20))
            assert app.seen == REQUESTS
            sock.close()

    run(scenario())


@pytest.mark.parametrize("path", ["/no", "/yes"], ids=["refused", "admitted"])
def test_who_pipelines_and_never_reads_is_cut_off(run: Run, path: str):
    async def scenario():
        app = CountingApp(answer=LARGE, refusal=LARGE)
        async with serving(app, Limits(write_stall=0.1)) as served:
            sock = slow_reader(served)
            sock.sendall(get(path) * REQUESTS)
            await until(lambda: app.seen > 0)
            await until(lambda: served.server.connections == 0)
            assert app.seen < REQUESTS
            sock.close()

    run(scenario())


@pytest.mark.parametrize("path", ["/no", "/yes"], ids=["refused", "admitted"])
def test_under_pressure_no_request_is_looked_at(run: Run, path: str):
    async def scenario():
        app = CountingApp()
        _, connection, transport = _connected(app)
        connection.pause_writing()
        data = get(path)
        connection.data_received(data[:10])
        connection.data_received(data[10:] + data)
        connection.data_received(data * 3)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (app.seen, transport.writes) == (0, [])
        connection.resume_writing()
        await until(lambda: len(transport.writes) == 5)
        assert app.seen == 5

    run(scenario())


@pytest.mark.parametrize("paths", [("/no",), ("/yes",), ("/no", "/yes")], ids=["refused", "admitted", "both"])
def test_one_pipelined_request_is_taken_in_a_step_of_the_loop(run: Run, paths: tuple[str, ...]):
    async def scenario():
        app = CountingApp()
        _, connection, transport = _connected(app)
        connection.data_received(b"".join(get(path) for path in paths) * 30)
        assert app.seen == 1
        for _ in range(200):
            before = app.seen
            await asyncio.sleep(0)
            assert app.seen - before <= 1
        assert app.seen == len(transport.writes) == 30 * len(paths)

    run(scenario())


def test_refused_bodies_are_read_past_among_pipelined_requests(run: Run):
    async def scenario():
        app = CountingApp()
        async with serving(app) as served:
            client = await served.client()
            trap = get("/smuggled") * 3
            client.send((post("/no", trap) + post("/yes", trap) + b"\r\n" + get("/no")) * 20)
            for _ in range(20):
                assert [(await client.response()).status for _ in range(3)] == [404, 200, 404]
            assert app.bodies == [trap] * 20

    run(scenario())


def test_a_client_far_ahead_is_not_read_until_there_is_room(run: Run):
    async def scenario():
        app = CountingApp()
        _, connection, transport = _connected(app)
        data = post("/yes", b"x" * 1000)
        connection.pause_writing()
        for _ in range(50):
            connection.data_received(data)
        assert transport.flow == []
        for _ in range(50):
            connection.data_received(data)
        assert transport.flow == ["pause"]
        connection.resume_writing()
        while transport.flow == ["pause"] and app.seen < 100:
            await asyncio.sleep(0)
        assert transport.flow == ["pause", "resume"]
        assert 0 < app.seen < 100
        await until(lambda: len(transport.writes) == 100)

    run(scenario())


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_who_is_far_ahead_of_a_request_that_runs_on_is_cut_off_for_it_may_have_gone(
    run: Run, in_one_piece: bool
):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        await asyncio.Event().wait()

    async def scenario():
        app = FakeApp(handler)
        hub, connection, transport = _connected(app)
        ahead = get("/") * 3000
        pieces = [get("/") + ahead] if in_one_piece else [get("/"), ahead]
        for piece in pieces:
            connection.data_received(piece)
        await asyncio.sleep(0)
        now = hub.loop.time()
        connection.sweep(now, hub.limits)
        assert (transport.flow, transport.aborted) == (["pause"], False)
        connection.sweep(now + 1.1, hub.limits)
        assert transport.aborted
        connection.connection_lost(None)
        await until(lambda: app.cancelled == ["the client has disconnected"])
        assert hub.refused == {"too_far_ahead": 1}

    run(scenario())


def test_who_has_left_behind_much_that_waits_is_found_out(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        await asyncio.Event().wait()

    async def scenario():
        app = FakeApp(handler)
        async with serving(app) as served:
            client = await served.client()
            client.send(post("/", b"") + get("/") * 8000)
            await until(lambda: served.server.requests == 1)
            await client.close()
            hub = served.server._hub
            await until(lambda: all(each._backlog.is_full for each in served.connections()))
            for connection in tuple(hub.connections):
                connection.sweep(hub.loop.time() + 2, hub.limits)
            await until(lambda: served.server.requests == served.server.connections == 0)
            assert len(app.cancelled) == 1

    run(scenario())


def test_a_request_may_run_on_with_a_few_others_behind_it(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        await asyncio.Event().wait()

    async def scenario():
        hub, connection, transport = _connected(FakeApp(handler))
        connection.data_received(get("/") * 100)
        await asyncio.sleep(0)
        connection.sweep(hub.loop.time() + 1000, hub.limits)
        assert not transport.is_closing()
        connection.connection_lost(None)

    run(scenario())


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="not on this system")
def test_the_system_holds_little_that_a_client_does_not_read(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        reply.send(200, PLAIN, b"x" * 20_000_000)
        answered.set()

    answered = asyncio.Event()

    async def scenario():
        limits = Limits(write_pending=50_000)
        async with serving(FakeApp(handler), limits) as served:
            sock = slow_reader(served)
            sock.sendall(get("/"))
            await answered.wait()
            (connection,) = served.connections()
            assert connection._transport is not None
            ours = connection._transport.get_extra_info("socket")
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == 50_000
            sent = 20_000_000 - connection._transport.get_write_buffer_size()
            assert sent < 1_000_000
            sock.close()

    run(scenario())


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="not on this system")
def test_a_client_that_does_not_come_by_tcp_is_served(run: Run, tmp_path: Path):
    async def scenario():
        app = FakeApp()
        hub = Hub(app, Limits())
        hub.open()
        path = str(tmp_path / "s")
        async with await hub.loop.create_unix_server(lambda: ServerConnection(hub), path):
            client = Client(*await asyncio.open_unix_connection(path))
            client.send(get("/"))
            assert (await client.response()).status == 200
            await client.close()
            await until(lambda: not hub.connections)
        assert [head.peer for head in app.heads] == [""]

    run(scenario())


def test_waiting_requests_are_not_copied_for_each_that_is_taken():
    backlog = Backlog(Recorder())
    data = get("/") * 10
    backlog.put(data, 5)
    taken, at = backlog.take()
    assert taken is data
    assert at == 5
    backlog.put(data, 7)
    backlog.add(b"more")
    assert backlog.take() == (data[7:] + b"more", 0)


def test_a_hundred_refusals_in_a_row_end_a_connection(run: Run):
    async def scenario():
        async with serving(CountingApp()) as served:
            client = await served.client()
            client.send(get("/no") * 300)
            for number in range(1, 101):
                answer = await client.response()
                assert (answer.status, answer.headers.get("connection") == "close") == (404, number == 100)
            assert await client.rest() == b""

    run(scenario())


def test_a_request_let_in_makes_up_for_the_refusals_before_it(run: Run):
    async def scenario():
        async with serving(CountingApp()) as served:
            client = await served.client()
            client.send((get("/no") * 99 + get("/yes")) * 3)
            for _ in range(3):
                assert [(await client.response()).status for _ in range(100)] == [404] * 99 + [200]

    run(scenario())


def test_a_drain_does_not_wait_for_requests_that_wait_for_their_client(run: Run):
    async def scenario():
        app = CountingApp()
        _, connection, transport = _connected(app)
        connection.pause_writing()
        connection.data_received(get("/yes") * 3)
        connection.close_if_idle()
        assert transport.closed
        connection.resume_writing()
        for _ in range(5):
            await asyncio.sleep(0)
        assert app.seen == 0

    run(scenario())


def test_a_client_that_leaves_while_its_requests_wait_leaves_nothing_behind(run: Run):
    async def scenario():
        app = CountingApp()
        hub, connection, transport = _connected(app)
        connection.data_received(get("/no") * 3)
        connection.connection_lost(None)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (app.seen, len(transport.writes), len(hub.connections)) == (1, 1, 0)

    run(scenario())


def _chunked(body: bytes) -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("cut", [0, 30_000], ids=["whole", "in two"])
@pytest.mark.parametrize("frame", [lambda body: post("/", body), _chunked], ids=["sized", "chunked"])
def test_a_body_counts_until_its_handler_is_through(run: Run, frame, cut: int):
    async def scenario():
        go_on = asyncio.Event()

        async def handler(head: Head, body: bytes, reply: Reply) -> None:
            if body:
                await go_on.wait()
            reply.send(200, PLAIN, b"")

        app = FakeApp(handler)
        async with serving(app, Limits(buffered=50_000)) as served:
            first = await served.client()
            data = frame(b"a" * 40_000)
            first.send(data[:cut])
            await until(lambda: served.server.buffered > 0 or not cut)
            first.send(data[cut:])
            await until(lambda: served.server.requests == 1)
            assert served.server.buffered == 40_000
            second = await served.client()
            second.send(frame(b"b" * 20_000))
            answer = await second.response()
            assert (answer.status, json.loads(answer.body)["error"]["code"]) == (503, "server_is_overloaded")
            assert served.server.buffered == 40_000
            assert (await served.ask(get("/healthz"))).status == 200
            go_on.set()
            assert (await first.response()).status == 200
            await until(lambda: served.server.buffered == 0)
            assert (await served.ask(frame(b"b" * 20_000))).status == 200
            assert [len(body) for body in app.bodies] == [40_000, 0, 20_000]

    run(scenario())


def test_the_body_of_a_client_that_has_gone_counts_no_longer(run: Run):
    async def handler(head: Head, body: bytes, reply: Reply) -> None:
        await asyncio.Event().wait()

    async def scenario():
        async with serving(FakeApp(handler)) as served:
            client = await served.client()
            client.send(post("/", b"a" * 1000))
            await until(lambda: served.server.buffered == 1000)
            await client.close()
            await until(lambda: served.server.buffered == 0)

    run(scenario())


def test_a_declared_body_for_which_there_is_no_room_is_refused_before_it_comes(run: Run):
    async def scenario():
        async with serving(limits=Limits(buffered=50_000)) as served:
            client = await served.client()
            client.send(post("/", b"a" * 60_000)[:100])
            assert (await client.response()).status == 503
            assert served.server.refused == {"server_is_overloaded": 1}

    run(scenario())


@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_a_body_is_held_once(chunked: bool):
    part, count = 65_536, 128
    body = ChunkedBody(part * count) if chunked else SizedBody(part * count)
    tracemalloc.start()
    try:
        for _ in range(count):
            body.feed(b"%x\r\n%b\r\n" % (part, b"x" * part) if chunked else b"x" * part)
        if chunked:
            body.feed(b"0\r\n\r\n")
        whole = body.body()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(whole), body.rest) == (part * count, b"")
    assert peak < 1.5 * part * count


def test_a_body_of_many_small_parts_takes_little_more_than_its_bytes():
    size = 100_000
    body = SizedBody(size)
    whole = bytes(range(250)) * (size // 250)
    tracemalloc.start()
    try:
        body.feed(memoryview(b"head" + whole[:10])[4:])
        for at in range(10, size - 1):
            body.feed(whole[at : at + 1])
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1.5 * size
    body.feed(whole[-1:] + b"the next")
    assert (body.body(), body.rest) == (whole, b"the next")


def test_refusals_without_a_dialect_show_in_the_metrics():
    with LiveGateway() as gateway:
        for data in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/3.0\r\nHost: a\r\n\r\n",
        ):
            _exchange(gateway.url, data)
        with urllib.request.urlopen(f"{gateway.url}/metrics") as answer:
            shown = answer.read().decode()
    assert 'wireglot_http_refused_total{code="invalid_host"} 2\n' in shown
    assert "# TYPE wireglot_http_refused_total counter\n" in shown
    assert "wireglot_buffered_bytes 0\n" in shown


def _exchange(url: str, data: bytes) -> None:
    async def exchange() -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(data)
        assert (await reader.read()).startswith(b"HTTP/1.1 ")
        writer.close()

    asyncio.run(exchange())
