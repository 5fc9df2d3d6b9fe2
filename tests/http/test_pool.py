"""The pool and the heads of requests, without sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.http.limits_kit import Limits
from tests.tiers import rows
from wireglot.http.client import client as module
from wireglot.http.client.client import HttpTransport, Pool, _opening, _Route
from wireglot.http.client.dial import Dialer, Sessions, interleaved, literal
from wireglot.http.client.origin import parse_url
from wireglot.http.transport import Timeouts, TransportFault


class Connection:
    """A double: whether it can be used is what a test says."""

    def __init__(self) -> None:
        self.usable = self.fit = True
        self.steps: list[Any] = []

    def rest(self, seconds: float) -> None:
        self.steps.append(seconds)

    def drop(self) -> None:
        self.steps.append("drop")
        self.pool.forget(self)

    def sever(self) -> None:
        self.steps.append("sever")

    pool: Any


class Stage:
    def __init__(self, **limits: Any) -> None:
        self.made: list[Connection] = []
        self.fails: BaseException | None = None
        self.usable = True
        dial: Any = self.dial
        self.pool: Any = Pool(Limits(**limits), dial)

    async def dial(self, pool: Any, timeouts: Timeouts) -> Connection:
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        connection = Connection()
        connection.pool = pool
        connection.usable = self.usable
        self.made.append(connection)
        return connection

    def obtain(self, *, fresh: bool = False) -> asyncio.Future[Connection]:
        made: asyncio.Future[Connection] = asyncio.ensure_future(self.pool.obtain(Timeouts(), fresh=fresh))
        return made

    @property
    def figures(self) -> tuple[int, int, int, int]:
        pool = self.pool
        return pool.open, pool.idle, pool.waiting, pool._slots


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


def scene(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@scene
async def test_there_are_as_many_connections_as_the_limit_says_and_the_others_wait():
    stage = Stage(pool=2, pool_idle=7.0)
    first, second = await stage.obtain(), await stage.obtain()
    third, fourth = stage.obtain(), stage.obtain()
    await turns()
    assert stage.figures == (2, 0, 2, 2)
    stage.pool.release(first)
    await turns()
    assert third.result() is first
    assert first.steps == [7.0]
    assert not fourth.done()
    second.drop()
    assert await fourth is stage.made[2], "the slot of one that is gone is for a new one"
    assert stage.figures == (2, 0, 0, 2)


@scene
async def test_an_idle_connection_is_taken_while_it_is_fit():
    stage = Stage(pool=3)
    connections = [await stage.obtain() for _ in range(3)]
    assert stage.pool.take() is None
    for connection in connections:
        stage.pool.release(connection)
    connections[2].fit = False
    assert stage.figures == (3, 3, 0, 3)
    assert stage.pool.take() is connections[1], "the one used last comes first, but for one past its time"
    assert connections[2].steps[-1] == "drop"
    assert stage.figures == (2, 1, 0, 2)
    assert not stage.pool.unused


@scene
async def test_a_fresh_connection_takes_the_place_of_an_idle_one():
    stage = Stage(pool=2)
    first, second = await stage.obtain(), await stage.obtain()
    stage.pool.release(first)
    stage.pool.release(second)
    fresh = await stage.obtain(fresh=True)
    assert fresh is stage.made[2]
    assert (first.steps[-1], second.steps[-1]) == ("drop", 15.0), "the one unused for longest"
    waiting = stage.obtain(fresh=True)
    stage.pool.take()
    await turns()
    stage.pool.release(fresh)
    assert await waiting not in (first, second, fresh)


@scene
async def test_no_more_wait_than_the_queue_holds():
    stage = Stage(pool=1, queue=2)
    await stage.obtain()
    waiting = [stage.obtain() for _ in range(3)]
    await turns()
    assert [each.done() for each in waiting] == [False, False, True]
    with pytest.raises(TransportFault) as caught:
        await waiting[2]
    assert (caught.value.problem, caught.value.sent) == ("busy", False)
    for each in waiting[:2]:
        each.cancel()
    await turns()
    assert stage.figures == (1, 0, 0, 1)


@scene
async def test_who_waits_too_long_is_told_that_all_are_busy():
    stage = Stage(pool=1, queue_time=0.001)
    await stage.obtain()
    with pytest.raises(TransportFault, match="all connections to the upstream are in use"):
        await stage.obtain()
    assert stage.figures == (1, 0, 0, 1)


@scene
async def test_a_slot_is_given_back_where_no_connection_can_be_made():
    stage = Stage(pool=1)
    stage.fails = TransportFault("dns", "no")
    with pytest.raises(TransportFault, match="no"):
        await stage.obtain()
    assert stage.figures == (0, 0, 0, 0)
    assert stage.pool.unused
    stage.fails, stage.usable = None, False
    with pytest.raises(TransportFault, match="could not connect to the upstream"):
        await stage.obtain()
    assert stage.pool.unused


@scene
async def test_fewer_connections_are_kept_where_the_limit_was_lowered():
    stage = Stage(pool=2)
    first, second = await stage.obtain(), await stage.obtain()
    stage.pool.limits = Limits(pool=1)
    stage.pool.release(first)
    stage.pool.release(second)
    assert (first.steps, second.steps) == (["drop"], [15.0])
    assert stage.figures == (1, 1, 0, 1)


@scene
async def test_a_pool_that_is_closed_gives_nothing_and_takes_nothing():
    stage = Stage(pool=1)
    first = await stage.obtain()
    waiting = stage.obtain()
    await turns()
    stage.pool.close()
    for work in (waiting, stage.obtain()):
        with pytest.raises(TransportFault, match="shutting down"):
            await work
    assert first.steps == ["sever"]
    stage.pool.release(first)
    assert first.steps == ["sever", "drop"]
    stage.pool.forget(first)
    assert stage.figures[0] == 0


# --- heads of requests


@rows(
    "url, proxy, lines",
    [
        ("http://a/x", "", "POST /x HTTP/1.1\r\nhost: a\r\naccept-encoding: identity\r\n"),
        ("https://a:1/x?y", "", "POST /x?y HTTP/1.1\r\nhost: a:1\r\naccept-encoding: identity\r\n"),
        (
            "http://a/x",
            "http://u:w@p:3128",
            "POST http://a/x HTTP/1.1\r\nhost: a\r\naccept-encoding: identity\r\n"
            "proxy-authorization: Basic dTp3\r\n",
        ),
        ("https://a/x", "http://u:w@p:3128", "POST /x HTTP/1.1\r\nhost: a\r\naccept-encoding: identity\r\n"),
        ("http://a/x", "socks5://u:w@p", "POST /x HTTP/1.1\r\nhost: a\r\naccept-encoding: identity\r\n"),
    ],
)
def test_a_request_begins_with_its_target_and_host(url, proxy, lines):
    origin, target = parse_url(url, proxy, "")
    assert _opening("POST", origin, target) == lines


OURS = (
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "te",
    "trailer", "upgrade", "expect", "proxy-connection", "proxy-authorization",
)  # fmt: skip


def test_what_frames_a_message_is_left_out_of_its_headers():
    pool: Any = None
    route = _Route(pool, "S\r\n")
    assert route.render(
        [(name, "x") for name in OURS] + [("a", "b"), ("c", "ü")]
    ) == "S\r\na: b\r\nc: ü\r\n".encode("latin-1")
    for value in ("a\nb", "a\rb", "a\0b", "€"):
        with pytest.raises(TransportFault) as caught:
            route.render([("a", value)])
        assert (caught.value.problem, caught.value.sent) == ("protocol", False)
    for number in range(70):
        route.render([("a", str(number))])
        assert len(route.heads) <= 64
    assert (("a", "69"),) in route.heads


def test_routes_that_are_not_used_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_MAX_ROUTES", 2)

    async def scenario() -> None:
        transport = HttpTransport(Limits())
        for number in range(3):
            transport._route(("POST", f"http://h{number}/x", "", ""))
        assert (len(transport._routes), len(transport._pools)) == (1, 1)
        assert (transport.open_connections, transport.idle_connections, transport.waiting) == (0, 0, 0)
        await transport.close()
        with pytest.raises(TransportFault, match="shutting down"):
            transport._route(("POST", "http://a/", "", ""))

    asyncio.run(scenario())


# --- addresses and sessions


def test_an_address_is_told_from_a_name():
    assert literal("10.0.0.1", 80) == [(socket.AF_INET, "10.0.0.1", 80)]
    assert literal("::1", 81) == [(socket.AF_INET6, "::1", 81)]
    assert literal("a.example", 80) is None
    four, six = (socket.AF_INET, "1", 1), (socket.AF_INET6, "2", 1)
    assert interleaved([four, four, six, four, six]) == [four, six, four, six, four]


def test_a_session_is_kept_where_it_has_a_ticket():
    class Session:
        def __init__(self, has_ticket: bool) -> None:
            self.has_ticket = has_ticket

    class Spoken:
        def __init__(self, session: Session | None) -> None:
            self.session = session

        def get_extra_info(self, name: str) -> Any:
            return self if self.session is not None or name != "ssl_object" else None

    origin, _ = parse_url("https://a/", "", "")
    real: Any = object()
    for session, kept in ((None, False), (Session(False), False), (Session(True), True)):
        sessions = Sessions()
        sessions.keep(origin, Spoken(session))
        assert (sessions.context(real, origin) is not real) is kept
        assert sessions.forget(origin) is kept
        assert not sessions.forget(origin)
        assert sessions.context(real, origin) is real


def test_a_socket_to_an_upstream_finds_out_when_its_peer_has_vanished():
    """The first probe after 15 seconds, then three, five seconds apart."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            where = (socket.AF_INET, "127.0.0.1", listening.getsockname()[1])
            with await Dialer(loop, loop.time, None)._connect_to(where) as sock:
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
                for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
                    if hasattr(socket, name):
                        assert sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value

    asyncio.run(scenario())
