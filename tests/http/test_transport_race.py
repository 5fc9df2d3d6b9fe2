"""Happy Eyeballs: an address that leads nowhere is not waited for (RFC 8305)."""

import asyncio
import socket

import pytest

from tests.http.transport_dial_kit import Names, fault_of, resolve_with
from tests.http.transport_kit import Server, always, answer, black_hole, fetch, opened, post, scenario
from tests.waiting import until
from wireglot.http.client import dial
from wireglot.http.client.dial import Address, first_reached, interleaved
from wireglot.http.transport import Timeouts

V4, V6 = socket.AF_INET, socket.AF_INET6


class Opened:
    """Every socket that was opened, and how many of those before were still on their way."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sockets: list[socket.socket] = []
        self.beside: list[int] = []
        self._real = dial._open
        patch.setattr(dial, "_open", self)

    def __call__(self, family: socket.AddressFamily) -> socket.socket:
        made = self._real(family)
        self.beside.append(sum(each.fileno() >= 0 for each in self.sockets))
        self.sockets.append(made)
        return made


@scenario
async def test_the_second_address_is_tried_while_the_first_still_might_answer(
    monkeypatch: pytest.MonkeyPatch,
):
    """The first would have had all the time to connect: nobody waits for it to fail."""
    opened_sockets = Opened(monkeypatch)
    async with Server(always(answer())) as server, opened() as transport:
        with black_hole("127.0.0.2", server.port):
            resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
            request = post(f"http://upstream.example:{server.port}/")
            assert await fetch(transport, request, Timeouts(connect=600)) == b"ok"
        assert opened_sockets.beside == [0, 1], "the first was on its way when the second began"
        assert opened_sockets.sockets[0].fileno() == -1, "and was given up when the second had connected"
        assert len(server.peers) == 1


@scenario
async def test_an_address_that_refuses_costs_no_wait_and_no_second_attempt_beside_it(
    monkeypatch: pytest.MonkeyPatch,
):
    opened_sockets = Opened(monkeypatch)
    with socket.socket() as taken:
        async with Server(always(answer())) as server, opened() as transport:
            taken.bind(("127.0.0.2", server.port))
            resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
            assert await fetch(transport, post(f"http://upstream.example:{server.port}/")) == b"ok"
            assert opened_sockets.beside == [0, 0]


@scenario
async def test_where_the_first_address_answers_no_other_is_asked(monkeypatch: pytest.MonkeyPatch):
    opened_sockets = Opened(monkeypatch)
    async with Server(always(answer())) as server, opened() as transport:
        resolve_with(transport, Names(["127.0.0.1", "127.0.0.2", "127.0.0.3"]))
        assert await fetch(transport, post(f"http://upstream.example:{server.port}/")) == b"ok"
        assert len(opened_sockets.sockets) == 1


@scenario
async def test_where_no_address_answers_all_were_tried_and_none_is_left_open(
    monkeypatch: pytest.MonkeyPatch,
):
    opened_sockets = Opened(monkeypatch)
    async with Server(always(answer())) as server, opened() as transport:
        with black_hole("127.0.0.2", server.port), black_hole("127.0.0.3", server.port):
            resolve_with(transport, Names(["127.0.0.2", "127.0.0.3"]))
            request = post(f"http://upstream.example:{server.port}/")
            fault = await fault_of(transport, request, Timeouts(connect=2.0))
            assert (fault.problem, fault.sent) == ("connect", False)
            assert [each.fileno() for each in opened_sockets.sockets] == [-1, -1]


@scenario
async def test_anyone_who_is_cancelled_meanwhile_leaves_no_socket(monkeypatch: pytest.MonkeyPatch):
    opened_sockets = Opened(monkeypatch)
    async with Server(always(answer())) as server, opened() as transport:
        with black_hole("127.0.0.2", server.port), black_hole("127.0.0.3", server.port):
            resolve_with(transport, Names(["127.0.0.2", "127.0.0.3"]))
            task = asyncio.create_task(fetch(transport, post(f"http://upstream.example:{server.port}/")))
            await until(lambda: len(opened_sockets.sockets) == 2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            assert [each.fileno() for each in opened_sockets.sockets] == [-1, -1]


@scenario
async def test_two_that_connect_in_the_same_moment_leave_one_socket():
    made: list[socket.socket] = []
    both = asyncio.Event()

    async def reach(address: Address) -> socket.socket:
        sock = socket.socket()
        made.append(sock)
        if len(made) == 2:
            both.set()
        await both.wait()
        return sock

    won = await first_reached(reach, [(V4, "a", 1), (V4, "b", 1)], head_start=0.0)
    assert won is made[0]
    assert made[1].fileno() == -1
    won.close()


def test_the_families_take_turns_beginning_with_the_first():
    addresses = [(V6, "1", 0), (V6, "2", 0), (V6, "3", 0), (V4, "4", 0), (V4, "5", 0)]
    assert [where for _, where, _ in interleaved(addresses)] == ["1", "4", "2", "5", "3"]
