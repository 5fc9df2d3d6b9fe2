"""Getting there: names and addresses."""

import asyncio
import errno
import socket
import ssl

import pytest

from tests.http.transport_dial_kit import Names, fault_of, resolve_with
from tests.http.transport_kit import (
    Server,
    always,
    answer,
    black_hole,
    fetch,
    opened,
    post,
    scenario,
)
from tests.waiting import until
from wireglot.http.client import dial
from wireglot.http.client.websocket import SocketRefused
from wireglot.http.transport import Timeouts, TransportFault


@scenario
async def test_a_refused_connection_is_a_connect_fault():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: anyone who calls is refused
        async with opened() as transport:
            fault = await fault_of(transport, post(f"http://127.0.0.1:{taken.getsockname()[1]}/"))
            assert (fault.problem, fault.sent) == ("connect", False)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("host", ["127.0.0.1", "upstream.example"])
@scenario
async def test_without_descriptors_it_is_not_the_upstream_that_fails(
    number: int, host: str, monkeypatch: pytest.MonkeyPatch
):
    async with opened() as transport:
        resolve_with(transport, Names([]))

        def full(*_: object) -> socket.socket:
            raise OSError(number, "too many open files")

        with monkeypatch.context() as patch:
            patch.setattr(socket, "socket", full)
            fault = await fault_of(transport, post(f"http://{host}/"))
        assert (fault.problem, fault.sent) == ("busy", False)


@scenario
async def test_without_a_descriptor_for_the_authorities_it_is_not_the_upstream_that_fails(
    monkeypatch: pytest.MonkeyPatch,
):
    def full() -> ssl.SSLContext:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(dial, "default_context", full)
    async with Server(always(answer())) as server, opened() as transport:
        fault = await fault_of(transport, post(f"https://127.0.0.1:{server.port}/"))
        assert (fault.problem, fault.sent) == ("busy", False)
        assert transport.open_connections == 0
        await until(lambda: len(server.peers) == 1)  # called and hung up on


@scenario
async def test_an_address_of_a_family_that_is_not_there_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    async with Server(always(answer())) as server, opened() as transport:
        resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
        families = iter([socket.AF_INET6])
        real = dial._open

        def first_missing(family: socket.AddressFamily) -> socket.socket:
            if next(families, None) is not None:
                raise OSError(errno.EAFNOSUPPORT, "address family not supported")
            return real(family)

        monkeypatch.setattr(dial, "_open", first_missing)
        assert await fetch(transport, post(f"http://upstream.example:{server.port}/")) == b"ok"


@scenario
async def test_a_real_name_is_resolved():
    async with Server(always(answer())) as server, opened() as transport:
        assert await fetch(transport, post(f"http://localhost:{server.port}/")) == b"ok"


@scenario
async def test_a_name_that_does_not_exist_is_a_dns_fault():
    async with opened() as transport:
        resolve_with(transport, Names([]))
        fault = await fault_of(transport, post("http://upstream.example/"))
        assert (fault.problem, fault.sent) == ("dns", False)
        assert "example" not in fault.message


@scenario
async def test_a_name_server_that_stalls_is_asked_once_and_given_up():
    names = Names(None)
    async with opened() as transport:
        resolve_with(transport, names)
        request = post("http://upstream.example/")
        timeouts = Timeouts(connect=0.03)
        results = await asyncio.gather(
            *(fetch(transport, request, timeouts) for _ in range(20)), return_exceptions=True
        )
        assert {getattr(result, "problem", result) for result in results} == {"dns"}
        assert names.asked == 1


@scenario
async def test_closing_during_a_lookup_is_a_fault_and_not_a_cancellation():
    async with opened() as transport:
        names = Names(None)
        resolve_with(transport, names)
        waiting = asyncio.create_task(fetch(transport, post("http://upstream.example/")))
        await until(lambda: names.asked)
        await transport.close()
        with pytest.raises(TransportFault):
            await waiting


@scenario
async def test_every_address_of_a_name_is_tried():
    with socket.socket() as taken:
        async with Server(always(answer())) as server, opened() as transport:
            # The same port on another loopback address, where nobody listens.
            taken.bind(("127.0.0.2", server.port))
            resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
            assert await fetch(transport, post(f"http://upstream.example:{server.port}/")) == b"ok"
            assert b"host: upstream.example:" in server.requests[0]


@scenario
async def test_an_address_that_swallows_everything_leaves_time_for_the_next():
    async with Server(always(answer())) as server, opened() as transport:
        with black_hole("127.0.0.2", server.port):
            resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
            request = post(f"http://upstream.example:{server.port}/")
            assert await fetch(transport, request, Timeouts(connect=2.0)) == b"ok"


@scenario
async def test_addresses_are_shown_to_the_screen_before_any_is_connected_to():
    shown: list[tuple[str, list[str]]] = []

    def screen(origin, addresses) -> None:
        shown.append((origin.host, [address for _, address, _ in addresses]))
        if refuses:
            raise PermissionError("not there")

    async with Server(always(answer())) as server, opened(screen=screen) as transport:
        names = Names(["127.0.0.1", "127.0.0.9"], server.port)
        resolve_with(transport, names)
        refuses = True
        for url in (f"http://name.example:{server.port}/", server.url):
            with pytest.raises(PermissionError):
                await fetch(transport, post(url))
        assert shown == [("name.example", ["127.0.0.1", "127.0.0.9"]), ("127.0.0.1", ["127.0.0.1"])]
        assert server.peers == []
        assert transport.open_connections == 0
        refuses = False
        assert await fetch(transport, post(f"http://name.example:{server.port}/")) == b"ok"
        assert names.asked == 2, (
            "one lookup for each connection, and none between the check and the connection"
        )


@scenario
async def test_a_websocket_that_ends_with_its_handshake_is_refused_and_forgotten(
    monkeypatch: pytest.MonkeyPatch,
):
    """asyncio reports what comes with the last bytes of a TLS handshake before the one that connects goes on."""
    async with Server(always(answer(b""))) as server, opened() as transport:
        connect = dial.Dialer.connect

        async def ended(*parts):
            made = await connect(*parts)
            made.eof_received()
            return made

        monkeypatch.setattr(dial.Dialer, "connect", ended)
        with pytest.raises(SocketRefused):
            await transport.open_socket(post(server.url), Timeouts(), 1000)
        assert transport.open_sockets == 0
