"""Every wait has an end, each with its own fault; and anyone who gives up leaves nothing behind."""

import asyncio
from functools import partial

import pytest

from tests.http.limits_kit import Limits
from tests.http.transport_kit import (
    PATIENT,
    Clock,
    Peer,
    Server,
    always,
    answer,
    black_hole,
    chunked,
    fetch,
    opened,
    post,
    scenario,
)
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.http.transport import Timeouts, TransportFault

LONG = 30.0
SOON = 0.03


async def _fault(transport, request, timeouts: Timeouts) -> TransportFault:
    with pytest.raises(TransportFault) as caught:
        await asyncio.wait_for(fetch(transport, request, timeouts), DEADLINE_SECONDS)
    return caught.value


def only(**short: float) -> Timeouts:
    """All of them long but these."""
    return Timeouts(
        **{"connect": LONG, "tls": LONG, "first_byte": LONG, "idle": LONG, "total": LONG, **short}
    )


@scenario
async def test_a_server_that_does_not_accept_is_given_up():
    with black_hole() as url:
        async with opened() as transport:
            fault = await _fault(transport, post(url), only(connect=SOON))
            assert (fault.problem, fault.sent) == ("connect", False)


@scenario
async def test_a_tls_handshake_that_stalls_is_given_up():
    async with Server(Peer.gone) as server, opened() as transport:
        url = server.url.replace("http:", "https:")
        fault = await _fault(transport, post(url), only(tls=SOON))
        assert (fault.problem, fault.sent) == ("tls", False)


@scenario
async def test_silence_after_the_request_is_a_first_byte_timeout():
    """R-DC-08, C30"""

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with Server(serve) as server, opened() as transport:
        fault = await _fault(transport, post(server), only(first_byte=SOON))
        assert (fault.problem, fault.sent) == ("first_byte_timeout", True)
        assert transport.open_connections == 0


@scenario
async def test_a_head_that_dribbles_for_ever_is_a_first_byte_timeout():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nx: ")
        while True:
            await peer.send(b"y")
            await asyncio.sleep(0.005)

    async with Server(serve) as server, opened() as transport:
        fault = await _fault(transport, post(server), only(first_byte=SOON))
        assert fault.problem == "first_byte_timeout"


@scenario
async def test_a_pooled_connection_that_is_silent_is_not_taken_for_a_dead_one():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await peer.request()
        await peer.gone()

    async with Server(serve) as server, opened() as transport:
        await fetch(transport, post(server))
        fault = await _fault(transport, post(server), only(first_byte=SOON))
        assert fault.problem == "first_byte_timeout"
        assert len(server.peers) == 1


@scenario
async def test_a_server_that_does_not_take_the_request_is_given_up():
    async def serve(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined] # a stream's transport can be paused
        await asyncio.Event().wait()

    async with Server(serve) as server, opened() as transport:
        fault = await _fault(transport, post(server, bytes(32 << 20)), only(idle=SOON))
        assert (fault.problem, fault.sent) == ("first_byte_timeout", True)


@scenario
async def test_a_slow_upload_is_not_a_silent_server():
    """The wait for the first byte begins when the last one is sent."""

    clock = Clock()

    async def serve(peer: Peer) -> None:
        for _ in range(2):
            await peer.reader.read(1 << 16)
            clock.move(5 * SOON)
            await clock.asked()
        clock.move(5 * SOON)
        while not (await peer.reader.read(1 << 20)).endswith(b"end"):
            pass
        await clock.asked()
        await peer.send(answer())
        await peer.gone()

    async with Server(serve) as server, opened(now=clock) as transport:
        # More than the kernel's buffers hold, so that some of it is unsent while the server dawdles.
        body = bytes(24 << 20) + b"end"
        assert await fetch(transport, post(server, body), only(first_byte=SOON, idle=20 * SOON)) == b"ok"


@scenario
async def test_a_server_silent_after_a_slow_upload_is_given_up_in_time():
    clock = Clock()

    async def serve(peer: Peer) -> None:
        clock.move(2 * SOON)
        await clock.asked()
        await peer.request()
        await clock.asked()
        clock.move(2 * SOON)
        await peer.gone()

    async with Server(serve) as server, opened(now=clock) as transport:
        fault = await _fault(transport, post(server, bytes(24 << 20)), only(first_byte=SOON, idle=20 * SOON))
        assert (fault.problem, fault.message) == ("first_byte_timeout", "the upstream did not answer in time")


@scenario
async def test_a_stream_that_stops_is_an_idle_timeout():
    """R-DC-08, C30"""

    clock, got = Clock(), list[bytes]()

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(b"a", end=b""))
        for count in range(1, 11):
            await until(partial(lambda count: len(got) == count, count))
            clock.move(0.9 * SOON)
            await peer.send(b"1\r\nb\r\n")
        await until(lambda: len(got) == 11)
        clock.move(2 * SOON)
        await peer.gone()

    async with Server(serve) as server, opened(now=clock) as transport:
        reply = await transport.send(post(server), only(idle=SOON))
        with pytest.raises(TransportFault) as caught:
            await reply.pump(got.append)
        assert caught.value.problem == "idle_timeout"
        assert b"".join(got) == b"a" + b"b" * 10
        assert transport.open_connections == 0


@scenario
async def test_an_answer_nobody_consumes_keeps_its_timeout_for_anyone_who_does():
    async with Server(always(chunked(b"a", end=b""))) as server, opened() as transport:
        reply = await transport.send(post(server), only(idle=SOON))
        await until(lambda: transport.open_connections == 0)
        got: list[bytes] = []
        with pytest.raises(TransportFault) as caught:
            await reply.pump(got.append)
        assert (caught.value.problem, got) == ("idle_timeout", [b"a"])


@scenario
async def test_a_stream_paused_by_its_reader_is_not_idle():
    clock, step = Clock(), asyncio.Event()

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(b"a", end=b""))
        await step.wait()
        await clock.asked()
        await peer.send(b"1\r\nb\r\n0\r\n\r\n")
        await peer.gone()

    async with Server(serve) as server, opened(now=clock) as transport:
        got: list[bytes] = []
        reply = await transport.send(post(server), only(idle=SOON))
        reply.pause()
        pumping = asyncio.create_task(reply.pump(got.append))
        clock.move(2 * SOON)
        await clock.asked()
        assert not pumping.done()
        reply.resume()
        step.set()
        await pumping
        assert got == [b"a", b"b"]


@scenario
async def test_a_stream_resumed_may_be_idle_again():
    clock = Clock()
    async with Server(always(chunked(b"a", end=b""))) as server, opened(now=clock) as transport:
        reply = await transport.send(post(server), only(idle=SOON))
        reply.pause()
        pumping = asyncio.create_task(reply.pump(lambda _: None))
        clock.move(2 * SOON)
        await clock.asked()
        reply.resume()
        clock.move(2 * SOON)
        with pytest.raises(TransportFault) as caught:
            await pumping
        assert caught.value.problem == "idle_timeout"


@pytest.mark.parametrize("paused", [False, True])
@scenario
async def test_a_stream_that_never_ends_is_a_total_timeout(paused: bool):
    """R-DC-08, C30"""

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(end=b""))
        while True:
            await peer.send(b"1\r\nb\r\n")
            await asyncio.sleep(0.005)

    clock = Clock()
    async with Server(serve) as server, opened(now=clock) as transport:
        reply = await transport.send(post(server), only(total=SOON))
        if paused:
            reply.pause()
        clock.move(2 * SOON)
        with pytest.raises(TransportFault) as caught:
            await reply.pump(lambda _: None)
        assert caught.value.problem == "total_timeout"


@scenario
async def test_a_shorter_timeout_of_a_later_request_is_kept():
    """The timer armed for the first must not decide for the second."""

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await peer.request()
        await peer.gone()

    async with Server(serve) as server, opened(Limits(pool_idle=LONG)) as transport:
        await fetch(transport, post(server), only())
        fault = await _fault(transport, post(server), only(first_byte=SOON))
        assert fault.problem == "first_byte_timeout"


@scenario
async def test_a_short_timeout_of_an_earlier_request_does_not_hit_a_later_one():
    clock = Clock()

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await peer.request()
        clock.move(2 * SOON)
        await clock.asked()
        await peer.send(answer(b"late"))
        await peer.gone()

    async with Server(serve) as server, opened(now=clock) as transport:
        await fetch(transport, post(server), only(first_byte=SOON))
        assert await fetch(transport, post(server), only()) == b"late"


AFTER_THE_HEAD = ["body", "between"]
PHASES = ["connect", "tls", "waiting for a slot", "head", *AFTER_THE_HEAD]


@pytest.mark.parametrize("phase", PHASES)
@scenario
async def test_anyone_who_is_cancelled_leaves_no_connection_behind(phase: str):
    reached = asyncio.Event()

    async def serve(peer: Peer) -> None:
        if phase == "tls":
            reached.set()
            await peer.gone()
            return
        await peer.request()
        if phase in AFTER_THE_HEAD:
            await peer.send(chunked(b"a", end=b""))
        reached.set()
        await peer.gone()

    with black_hole() as nowhere:
        async with Server(serve) as server, opened(Limits(pool=1)) as transport:
            url = server.url.replace("http:", "https:") if phase == "tls" else server.url
            if phase == "connect":
                url = nowhere
                reached.set()
            answered: list[object] = []

            async def exchange() -> None:
                reply = await transport.send(post(url), PATIENT)
                answered.append(reply)
                if phase == "between":
                    try:
                        await asyncio.Event().wait()
                    finally:
                        reply.abort()
                await reply.read(1000)

            tasks = [
                asyncio.create_task(exchange()) for _ in range(2 if phase == "waiting for a slot" else 1)
            ]
            await reached.wait()
            await until(lambda: answered or phase not in AFTER_THE_HEAD)
            for _ in range(5):
                await asyncio.sleep(0)
            for task in reversed(tasks):
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(result) for result in results} == {asyncio.CancelledError}
            assert (transport.open_connections, transport.idle_connections) == (0, 0)
            # The slot is free again: with a single one, a leak would block this.
            async with Server(always(answer())) as other:
                assert await fetch(transport, post(other)) == b"ok"
            if phase == "head":
                reached.clear()
                again = asyncio.create_task(exchange())
                await reached.wait()
                again.cancel()
                await asyncio.gather(again, return_exceptions=True)
