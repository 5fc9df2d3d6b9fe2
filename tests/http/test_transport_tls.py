"""TLS must hold before a byte of a request is sent."""

import asyncio
import ssl

import pytest
import trustme

from tests.http.limits_kit import Limits
from tests.http.transport_dial_kit import AUTHORITY, KEY, fault_of, serving, trusting
from tests.http.transport_kit import (
    PATIENT,
    Counted,
    Peer,
    Server,
    always,
    answer,
    chunked,
    descriptors,
    fetch,
    opened,
    post,
    scenario,
    stalled,
)
from tests.waiting import until
from wireglot.http.client.dial import default_context
from wireglot.http.transport import TransportFault


@scenario
async def test_a_verified_server_is_spoken_to_and_its_connection_kept():
    async with (
        Server(always(answer()), serving("127.0.0.1")) as server,
        opened(ssl_context=trusting()) as transport,
    ):
        for _ in range(3):
            assert await fetch(transport, post(server, headers=KEY)) == b"ok"
        assert len(server.peers) == 1
        assert server.peers[0].writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize("case", ["wrong name", "expired", "unknown authority"])
@scenario
async def test_a_server_that_cannot_prove_itself_sees_no_byte_of_the_request(case: str):
    context = {
        "wrong name": lambda: serving("example.org"),
        "expired": lambda: serving("127.0.0.1", expired=True),
        "unknown authority": lambda: serving("127.0.0.1", authority=trustme.CA()),
    }[case]()
    async with Server(always(answer()), context) as server, opened(ssl_context=trusting()) as transport:
        before = descriptors()
        fault = await fault_of(transport, post(server, headers=KEY))
        assert (fault.problem, fault.sent) == ("tls", False)
        assert fault.message == "upstream TLS verification failed"
        await until(lambda: descriptors() == before)  # the server, too, is done with it
        assert server.requests == []
        assert transport.open_connections == 0


@scenario
async def test_without_a_context_of_its_own_only_known_authorities_are_trusted():
    async with Server(always(answer()), serving("127.0.0.1")) as server, opened() as transport:
        assert (await fault_of(transport, post(server))).problem == "tls"


def test_the_default_context_verifies_and_speaks_nothing_older_than_tls_1_2():
    context = default_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is True
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert len(context.get_ca_certs()) > 50


def test_an_authority_of_the_environment_is_trusted_too(tmp_path, monkeypatch):
    path = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    certificates = default_context().get_ca_certs(binary_form=True)
    assert ssl.PEM_cert_to_DER_cert(AUTHORITY.cert_pem.bytes().decode()) in certificates
    assert len(certificates) > 50


@scenario
async def test_a_server_that_hangs_up_during_the_handshake_is_a_tls_fault():
    async def serve(peer: Peer) -> None:
        await peer.reader.read(10)
        peer.reset()

    async with Server(serve) as server, opened() as transport:
        fault = await fault_of(transport, post(server.url.replace("http:", "https:")))
        assert (fault.problem, fault.sent) == ("tls", False)


@scenario
async def test_a_server_that_does_not_speak_tls_is_a_tls_fault():
    async def serve(peer: Peer) -> None:
        await peer.reader.read(10)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with Server(serve) as server, opened() as transport:
        assert (await fault_of(transport, post(server.url.replace("http:", "https:")))).problem == "tls"


@pytest.mark.parametrize("ending", ["reset", "no notify", "notify"])
@scenario
async def test_a_tls_stream_cut_without_its_end_is_broken(ending: str):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(b"a", end=b""))
        await asyncio.sleep(0.005)
        if ending == "reset":
            peer.reset()
        elif ending == "notify":
            peer.writer.close()
            await peer.gone()

    async with Server(serve, serving("127.0.0.1")) as server, opened(ssl_context=trusting()) as transport:
        assert (await fault_of(transport, post(server))).problem == "broken"


@scenario
async def test_a_tls_connection_closed_while_idle_leaves_the_pool():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        peer.writer.close()
        await peer.gone()

    async with (
        Server(serve, serving("127.0.0.1")) as server,
        opened(ssl_context=trusting()) as transport,
    ):
        for _ in range(2):
            assert await fetch(transport, post(server)) == b"ok"
            await until(lambda: transport.open_connections == 0)


@scenario
async def test_a_tls_stream_can_be_paused():
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(chunked(end=b""))
        while True:
            await peer.send(b"10000\r\n" + bytes(65536) + b"\r\n")
            peer.number += 1
            await asyncio.sleep(0)  # a write that does not block would keep the loop to itself

    async with (
        Server(serve, serving("127.0.0.1")) as server,
        opened(ssl_context=trusting()) as transport,
    ):
        got = Counted()
        reply = await transport.send(post(server), PATIENT)
        pumping = asyncio.create_task(reply.pump(got))
        await until(lambda: got.size > 1 << 20)
        reply.pause()
        await stalled(server.peers[0])
        held = got.size
        reply.resume()
        await until(lambda: got.size > held + (1 << 20))
        reply.abort()
        with pytest.raises(TransportFault):
            await pumping


@scenario
async def test_a_tls_connection_given_up_at_any_moment_leaves_nothing_behind():
    async with (
        Server(always(answer()), serving("127.0.0.1")) as server,
        opened(Limits(pool=1), ssl_context=trusting()) as transport,
    ):
        for steps in range(60):
            task = asyncio.create_task(fetch(transport, post(server)))
            for _ in range(steps):
                await asyncio.sleep(0.0001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled():
                assert task.result() == b"ok"
                break
            # Whole before we gave up: then it is idle, and may be used again.
            assert transport.open_connections == transport.idle_connections
        assert await fetch(transport, post(server)) == b"ok"


@scenario
async def test_large_bodies_pass_through_tls_both_ways():
    body = bytes(range(256)) * 8192

    async def serve(peer: Peer) -> None:
        await peer.send(chunked(await peer.request()))
        await peer.gone()

    async with Server(serve, serving("127.0.0.1")) as server, opened(ssl_context=trusting()) as transport:
        assert await fetch(transport, post(server, body)) == body


def versions_of(server: Server) -> list[tuple[str, bool]]:
    """Of each connection: its version of TLS, and whether an earlier session was taken up."""
    spoken = [peer.writer.get_extra_info("ssl_object") for peer in server.peers]
    return [(each.version(), each.session_reused) for each in spoken]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@scenario
async def test_the_next_connection_takes_the_session_up(version: ssl.TLSVersion):
    context = serving("127.0.0.1")
    context.maximum_version = version
    closing = answer(headers="connection: close\r\n")
    async with Server(always(closing), context) as server, opened(ssl_context=trusting()) as transport:
        for _ in range(4):
            assert await fetch(transport, post(server, headers=KEY)) == b"ok"
        assert [reused for _, reused in versions_of(server)] == [False, True, True, True]


@scenario
async def test_a_session_is_taken_up_only_for_whom_it_was_made():
    closing = answer(headers="connection: close\r\n")
    async with (
        Server(always(closing), serving("127.0.0.1")) as server,
        opened(ssl_context=trusting()) as transport,
    ):
        for pool in ("kimi/1", "kimi/2", "kimi/1"):
            await fetch(transport, post(server, pool=pool))
        assert [reused for _, reused in versions_of(server)] == [False, False, True]


@scenario
async def test_a_server_that_no_longer_knows_the_session_is_spoken_to_all_the_same():
    closing = answer(headers="connection: close\r\n")
    async with opened(ssl_context=trusting()) as transport:
        async with Server(always(closing), serving("127.0.0.1")) as first:
            await fetch(transport, post(first))
            port = first.port
        async with Server(always(closing), serving("127.0.0.1"), port=port) as second:
            assert await fetch(transport, post(second)) == b"ok"
            assert [reused for _, reused in versions_of(second)] == [False]


@scenario
async def test_a_server_that_fails_over_a_session_is_asked_without_one():
    closing = answer(headers="connection: close\r\n")
    hangs_up = True

    async def serve(peer: Peer) -> None:
        nonlocal hangs_up
        if hangs_up:
            hangs_up = False
            peer.reset()

    async with opened(ssl_context=trusting()) as transport:
        async with Server(always(closing), serving("127.0.0.1")) as first:
            await fetch(transport, post(first))
            port = first.port
        async with Server(serve, port=port) as failing:
            fault = await fault_of(transport, post(first))
            assert fault.problem == "tls"
            assert len(failing.peers) == 2, "once with the session, once without"
        async with Server(always(closing), serving("127.0.0.1"), port=port):
            assert await fetch(transport, post(first)) == b"ok"


@scenario
async def test_anyone_who_takes_the_place_of_a_server_is_not_trusted_for_its_session():
    closing = answer(headers="connection: close\r\n")
    async with opened(ssl_context=trusting()) as transport:
        async with Server(always(closing), serving("127.0.0.1")) as first:
            await fetch(transport, post(first))
            port = first.port
        stranger = serving("127.0.0.1", authority=trustme.CA())
        async with Server(always(closing), stranger, port=port) as second:
            fault = await fault_of(transport, post(first, headers=KEY))
            assert (fault.problem, fault.sent) == ("tls", False)
            assert second.requests == []
