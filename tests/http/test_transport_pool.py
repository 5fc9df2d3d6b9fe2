"""Connections that are shared, those that must not be, and those that died meanwhile."""

import asyncio
import random

import pytest

from tests.http.limits_kit import Limits
from tests.http.transport_kit import (
    PATIENT,
    Clock,
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
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.http.client.client import Pool
from wireglot.http.client.connection import ClientConnection
from wireglot.http.transport import Timeouts, TransportFault


@scenario
async def test_a_connection_is_used_again():
    async with Server(always(answer())) as server, opened() as transport:
        for _ in range(5):
            assert await fetch(transport, post(server)) == b"ok"
        assert len(server.peers) == 1
        assert (transport.open_connections, transport.idle_connections) == (1, 1)


@scenario
async def test_the_connection_used_last_is_used_first():
    async def serve(peer: Peer) -> None:
        while True:
            body = await peer.request()
            await peer.send(answer(body + b" on %d" % peer.number))

    async with Server(serve) as server, opened() as transport:
        replies = await asyncio.gather(*(fetch(transport, post(server, b"a")) for _ in range(3)))
        assert sorted(replies) == [b"a on 0", b"a on 1", b"a on 2"]
        again = {await fetch(transport, post(server, b"b")) for _ in range(4)}
        assert len(again) == 1


@scenario
async def test_connections_are_not_shared_between_pools():
    async with Server(always(answer())) as server, opened() as transport:
        await fetch(transport, post(server, pool="kimi/1"))
        await fetch(transport, post(server, pool="kimi/2"))
        await fetch(transport, post(server, pool="kimi/1"))
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


@pytest.mark.parametrize("pool", ["known", "new"])
@scenario
async def test_new_limits_hold_for_known_origins_and_for_new_ones(pool: str):
    async with Server(always(answer())) as server, opened() as transport:
        await fetch(transport, post(server, pool="known"))
        transport.adopt(Limits(pool=1, queue=0))
        both = (fetch(transport, post(server, pool=pool)) for _ in range(2))
        replies = await asyncio.gather(*both, return_exceptions=True)
        assert [getattr(reply, "problem", reply) for reply in replies] == [b"ok", "busy"]


@pytest.mark.parametrize("reset", [False, True])
@scenario
async def test_a_connection_that_died_in_the_pool_is_replaced_without_anyone_noticing(reset: bool):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"%d" % peer.number))
        if peer.number == 0:
            await peer.request()  # reads it, and says nothing
            if reset:
                peer.reset()
            return
        await peer.gone()

    async with Server(serve) as server, opened() as transport:
        assert await fetch(transport, post(server)) == b"0"
        assert await fetch(transport, post(server)) == b"1"
        assert len(server.peers) == 2


@scenario
async def test_a_fresh_connection_that_dies_is_not_tried_again():
    async def serve(peer: Peer) -> None:
        await peer.request()

    async with Server(serve) as server, opened() as transport:
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert (caught.value.problem, caught.value.sent) == ("broken", True)
        assert len(server.peers) == 1


@scenario
async def test_a_pooled_connection_that_dies_twice_is_tried_again_once():
    async def serve(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            await peer.send(answer())
            await peer.request()

    async with Server(serve) as server, opened() as transport:
        await fetch(transport, post(server))
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.problem == "broken"
        assert len(server.peers) == 2


@scenario
async def test_a_pooled_connection_that_answered_a_byte_is_not_tried_again():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await peer.request()
        await peer.send(b"H")

    async with Server(serve) as server, opened() as transport:
        await fetch(transport, post(server))
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.problem == "broken"
        assert len(server.peers) == 1


@pytest.mark.parametrize(
    "goodbye", [b"", b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", b"\r\n"]
)
@scenario
async def test_a_connection_that_speaks_or_ends_while_idle_leaves_the_pool(goodbye: bytes):
    is_idle = asyncio.Event()

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await is_idle.wait()
        await peer.send(goodbye)
        if goodbye:
            await peer.gone()

    async with Server(serve) as server, opened() as transport:
        await fetch(transport, post(server))
        is_idle.set()
        await until(lambda: transport.open_connections == 0)
        assert await fetch(transport, post(server)) == b"ok"
        assert len(server.peers) == 2


@pytest.mark.parametrize("behind", [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"x"])
@scenario
async def test_bytes_behind_an_answer_are_nobodys(behind: bytes):
    async with Server(always(answer() + behind)) as server, opened() as transport:
        assert await fetch(transport, post(server)) == b"ok"
        assert await fetch(transport, post(server)) == b"ok"
        assert len(server.peers) == 2


@scenario
async def test_a_server_that_wants_to_close_is_believed():
    async with Server(always(answer(headers="connection: close\r\n"))) as server, opened() as transport:
        await fetch(transport, post(server))
        assert transport.open_connections == 0


@scenario
async def test_an_idle_connection_expires():
    async with Server(always(answer())) as server, opened(Limits(pool_idle=0.02)) as transport:
        await fetch(transport, post(server))
        await until(lambda: transport.open_connections == 0)
        await until(server.peers[0].reader.at_eof)


@scenario
async def test_a_connection_past_its_time_is_not_used_even_if_the_timer_is_late():
    clock = 0.0
    async with Server(always(answer())) as server, opened(now=lambda: clock) as transport:
        await fetch(transport, post(server))
        clock = 14.9
        await fetch(transport, post(server))
        assert len(server.peers) == 1
        clock = 40.0
        await fetch(transport, post(server))
        assert len(server.peers) == 2


@scenario
async def test_there_are_never_more_connections_than_allowed_and_who_waits_is_served_in_order():
    arrived: list[bytes] = []
    unanswered: list[asyncio.Event] = []

    async def serve(peer: Peer) -> None:
        while True:
            body = await peer.request()
            arrived.append(body)
            may_answer = asyncio.Event()
            unanswered.append(may_answer)
            await may_answer.wait()
            await peer.send(answer(body))

    async def have_arrived(count: int) -> None:
        await until(lambda: len(arrived) == count)

    dice = random.Random(7)

    def answer_one() -> None:
        unanswered.pop(dice.randrange(len(unanswered))).set()

    async with Server(serve) as server, opened(Limits(pool=3)) as transport:
        bodies = [b"%d" % n for n in range(30)]
        fetches = asyncio.gather(*(fetch(transport, post(server, body)) for body in bodies))
        await have_arrived(3)
        # These did not wait, and connections need not be ready in the order in which they were begun.
        assert sorted(arrived) == bodies[:3]
        for count, following in enumerate(bodies[3:], start=4):
            answer_one()
            await have_arrived(count)
            assert arrived[-1] == following
            assert len(unanswered) == 3
        while unanswered:
            answer_one()
        assert await fetches == bodies
        assert len(server.peers) == 3


@scenario
async def test_who_waits_gets_the_slot_of_a_connection_that_broke():
    async def serve(peer: Peer) -> None:
        await peer.request()
        if peer.number < 2:
            return
        await peer.send(answer())
        await peer.gone()

    async with Server(serve) as server, opened(Limits(pool=1)) as transport:
        replies = await asyncio.gather(
            *(fetch(transport, post(server)) for _ in range(3)), return_exceptions=True
        )
        assert [isinstance(reply, TransportFault) for reply in replies] == [True, True, False]


@scenario
async def test_who_stops_waiting_takes_no_slot_along():
    async with Server(always(answer())) as server, opened(Limits(pool=1)) as transport:
        reply = await transport.send(post(server), PATIENT)  # whole: its connection is free again
        held = [asyncio.create_task(fetch(transport, post(server, b"%d" % n))) for n in range(6)]
        await asyncio.sleep(0)
        for task in held[1:4]:
            task.cancel()
        results = await asyncio.gather(*held, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [
            False, True, True, True, False, False,
        ]  # fmt: skip
        assert await reply.read(10) == b"ok"
        assert await fetch(transport, post(server)) == b"ok"


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None: ...


@scenario
async def test_who_is_served_and_cancelled_at_once_passes_the_connection_on():
    loop = asyncio.get_running_loop()

    async def dial(home: Pool, _: Timeouts) -> ClientConnection:
        connection = ClientConnection(home, loop, loop.time)
        connection.connection_made(Wire())
        return connection

    pool = Pool(Limits(pool=1), dial)
    only = await pool.obtain(PATIENT)
    first, second = (asyncio.create_task(pool.obtain(PATIENT)) for _ in range(2))
    await asyncio.sleep(0)
    pool.release(only)
    first.cancel()
    assert await asyncio.wait_for(second, DEADLINE_SECONDS) is only
    assert first.cancelled()
    pool.close()


@scenario
async def test_a_cancelled_exchange_never_leaks_into_another():
    """Each answer repeats its request's nonce; whatever arrives must be made of one's own."""

    async def serve(peer: Peer) -> None:
        while True:
            nonce = await peer.request()
            await peer.send(chunked(*[nonce * 40] * 3, end=b""))
            await asyncio.sleep(0)
            await peer.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(nonce) * 200, nonce * 200))

    dice = random.Random(7)
    foreign: list[bytes] = []
    whole = 0

    async def exchange(transport, server, number: int) -> None:
        nonlocal whole
        nonce = b"<%08d>" % number
        got: list[bytes] = []

        def feed(data: bytes) -> None:
            got.append(data)
            if dice.random() < 0.2:
                raise InterruptedError

        async def consume() -> None:
            reply = await transport.send(post(server, nonce), PATIENT)
            if dice.random() < 0.2:
                reply.abort()
                return
            await reply.pump(feed)

        task = asyncio.create_task(consume())
        if dice.random() < 0.3:
            for _ in range(dice.randrange(12)):
                await asyncio.sleep(0)
            task.cancel()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        data = b"".join(got)
        if data != (nonce * (len(data) // len(nonce) + 1))[: len(data)]:
            foreign.append(data)
        if result is None and data:
            assert len(data) == len(nonce) * 320
            whole += 1

    async with Server(serve) as server, opened(Limits(pool=8)) as transport:
        for start in range(0, 2000, 40):
            await asyncio.gather(*(exchange(transport, server, start + n) for n in range(40)))
    assert foreign == []
    assert whole > 250


async def held_open(peer: Peer) -> None:
    """Takes every request and answers none."""
    while True:
        await peer.request()


@scenario
async def test_who_waits_for_a_connection_waits_no_longer_than_the_queue():
    """[A3] FAULTS 108: nothing was sent, and it is our own lack of room."""
    async with Server(held_open) as server, opened(Limits(pool=1, queue_time=0.05)) as transport:
        first = asyncio.create_task(fetch(transport, post(server)))
        await until(lambda: len(server.requests) == 1)
        second = asyncio.create_task(fetch(transport, post(server)))
        await until(lambda: transport.waiting == 1 or second.done())  # on a busy machine it gave up already
        with pytest.raises(TransportFault) as caught:
            await second
        assert (caught.value.problem, caught.value.sent) == ("busy", False)
        assert transport.waiting == 0
        assert len(server.requests) == 1
        first.cancel()


@scenario
async def test_no_more_wait_for_a_connection_than_the_queue_holds():
    """[A3]"""
    async with Server(held_open) as server, opened(Limits(pool=1, queue=2)) as transport:
        held = [asyncio.create_task(fetch(transport, post(server))) for _ in range(3)]
        await until(lambda: transport.waiting == 2)
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert caught.value.problem == "busy"
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        assert transport.waiting == 0


@scenario
async def test_who_gave_up_waiting_takes_no_slot_along():
    """[A3]"""
    may_answer = asyncio.Event()

    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            await may_answer.wait()
            await peer.send(answer())

    async with Server(serve) as server, opened(Limits(pool=1, queue_time=0.02)) as transport:
        first = asyncio.create_task(fetch(transport, post(server)))
        await until(lambda: len(server.requests) == 1)
        others = await asyncio.gather(
            *(fetch(transport, post(server)) for _ in range(5)), return_exceptions=True
        )
        assert {getattr(other, "problem", other) for other in others} == {"busy"}
        may_answer.set()
        assert await first == b"ok"
        assert await fetch(transport, post(server)) == b"ok"
        assert len(server.peers) == 1


@scenario
async def test_a_goodbye_that_crosses_a_request_is_no_answer_to_it():
    """RFC 9110, 15.5.9: some servers say 408 when they close what was idle."""

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"%d" % peer.number))
        await peer.request()
        await peer.send(answer(b"", status="408 Request Timeout", headers="connection: close\r\n"))

    async with Server(serve) as server, opened() as transport:
        assert await fetch(transport, post(server)) == b"0"
        assert await fetch(transport, post(server)) == b"1"
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


@scenario
async def test_a_408_on_a_fresh_connection_is_the_answer():
    async with Server(always(answer(b"no", status="408 Request Timeout"))) as server, opened() as transport:
        reply = await transport.send(post(server), PATIENT)
        assert (reply.status, await reply.read(10)) == (408, b"no")
        assert len(server.requests) == 1


@scenario
async def test_a_pooled_connection_that_ends_long_after_the_request_is_not_tried_again_in_silence():
    """The server may have been at work on it: whether to ask again is for those to say who pay for it."""
    clock = Clock()

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await peer.request()
        clock.move(10.0)

    async with Server(serve) as server, opened(now=clock) as transport:
        await fetch(transport, post(server))
        with pytest.raises(TransportFault) as caught:
            await fetch(transport, post(server))
        assert (caught.value.problem, caught.value.sent) == ("broken", True)
        assert len(server.peers) == 1


@pytest.mark.parametrize(("offered", "reused"), [("timeout=5", 1), ("timeout=5, max=100", 1), ("max=9", 2)])
@scenario
async def test_a_connection_rests_no_longer_than_its_server_says(offered: str, reused: int):
    """Node closes after 5 s, and says so."""
    clock = Clock()
    reply = answer(headers=f"keep-alive: {offered}\r\n")
    async with Server(always(reply)) as server, opened(Limits(pool_idle=60.0), now=clock) as transport:
        await fetch(transport, post(server))
        clock.move(4.5)
        await fetch(transport, post(server))
        assert [len(peer.requests) for peer in server.peers] == ([1, 1] if reused == 1 else [2])


@scenario
async def test_servers_that_close_at_any_moment_fail_no_request():
    """TESTPLAN R13: with FIN or RST, before the next request, while it is on its way, or after it was read."""
    dice = random.Random(13)

    async def serve(peer: Peer) -> None:
        for _ in range(dice.randrange(1, 4)):
            body = await peer.request()
            await peer.send(answer(body))
        match dice.randrange(4):
            case 0:
                await peer.request()
            case 1:
                await asyncio.sleep(0)
            case 2:
                peer.reset()

    async with Server(serve) as server, opened(Limits(pool=4)) as transport:
        for turn in range(100):
            bodies = [b"%d-%d" % (turn, n) for n in range(4)]
            assert await asyncio.gather(*(fetch(transport, post(server, body)) for body in bodies)) == bodies
        assert len(server.requests) <= 2 * 400
