"""Getting there: names, addresses, TLS that must hold before a byte of the request is sent, proxies."""

import asyncio
import datetime
import functools
import socket
import ssl

import pytest
import trustme

from tests.gateway.transport_kit import (
    QUICK,
    Peer,
    Server,
    always,
    answer,
    chunked,
    fetch,
    opened,
    post,
    scenario,
    until,
)
from wireglot.gateway.settings import Guard
from wireglot.gateway.transport_dial import default_context
from wireglot.gateway.upstream import Timeouts, TransportFault

AUTHORITY = trustme.CA()
KEY = [("authorization", "Bearer sk-secret")]


@functools.cache
def trusting() -> ssl.SSLContext:
    context = default_context()
    AUTHORITY.configure_trust(context)
    return context


def serving(*names: str, authority: trustme.CA = AUTHORITY, expired: bool = False) -> ssl.SSLContext:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    cert = authority.issue_cert(*names, not_after=past if expired else None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def _fault(transport, request, timeouts: Timeouts = QUICK) -> TransportFault:
    with pytest.raises(TransportFault) as caught:
        await fetch(transport, request, timeouts)
    assert "127.0.0.1" not in caught.value.message
    assert "secret" not in caught.value.message
    return caught.value


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
        fault = await _fault(transport, post(server, headers=KEY))
        assert (fault.problem, fault.sent) == ("tls", False)
        assert fault.message == "upstream TLS verification failed"
        await asyncio.sleep(0.01)
        assert server.requests == []
        assert transport.open_connections == 0


@scenario
async def test_without_a_context_of_its_own_only_known_authorities_are_trusted():
    async with Server(always(answer()), serving("127.0.0.1")) as server, opened() as transport:
        assert (await _fault(transport, post(server))).problem == "tls"


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
        fault = await _fault(transport, post(server.url.replace("http:", "https:")))
        assert (fault.problem, fault.sent) == ("tls", False)


@scenario
async def test_a_server_that_does_not_speak_tls_is_a_tls_fault():
    async def serve(peer: Peer) -> None:
        await peer.reader.read(10)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with Server(serve) as server, opened() as transport:
        assert (await _fault(transport, post(server.url.replace("http:", "https:")))).problem == "tls"


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
        assert (await _fault(transport, post(server))).problem == "broken"


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
        got = 0

        def feed(data: bytes) -> None:
            nonlocal got
            got += len(data)

        reply = await transport.send(post(server), QUICK)
        pumping = asyncio.create_task(reply.pump(feed))
        await until(lambda: got > 1 << 20)
        reply.pause()
        seen = -1
        while seen != server.peers[0].number:
            seen = server.peers[0].number
            await asyncio.sleep(0.03)
        held = got
        reply.resume()
        await until(lambda: got > held + (1 << 20))
        reply.abort()
        with pytest.raises(TransportFault):
            await pumping


@scenario
async def test_a_tls_connection_given_up_at_any_moment_leaves_nothing_behind():
    async with (
        Server(always(answer()), serving("127.0.0.1")) as server,
        opened(Guard(pool=1), ssl_context=trusting()) as transport,
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


@scenario
async def test_a_refused_connection_is_a_connect_fault():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever calls is refused
        async with opened() as transport:
            fault = await _fault(transport, post(f"http://127.0.0.1:{taken.getsockname()[1]}/"))
            assert (fault.problem, fault.sent) == ("connect", False)


@scenario
async def test_a_real_name_is_resolved():
    async with Server(always(answer())) as server, opened() as transport:
        assert await fetch(transport, post(f"http://localhost:{server.port}/")) == b"ok"


class Names:
    """Stands in for getaddrinfo on the running loop. None: it does not answer."""

    def __init__(self, addresses: list[str] | None, port: int = 0) -> None:
        self.asked = 0
        self._addresses = addresses
        self._port = port

    async def __call__(self, host: str, port: int, **_: object):
        self.asked += 1
        if self._addresses is None:
            await asyncio.sleep(30)
        if not self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name: " + host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, self._port or port)) for a in self._addresses]


def _resolve_with(transport, names: Names) -> None:
    dialer = transport._dialing()
    dialer._getaddrinfo = names


@scenario
async def test_a_name_that_does_not_exist_is_a_dns_fault():
    async with opened() as transport:
        _resolve_with(transport, Names([]))
        fault = await _fault(transport, post("http://upstream.example/"))
        assert (fault.problem, fault.sent) == ("dns", False)
        assert "example" not in fault.message


@scenario
async def test_a_name_server_that_stalls_is_asked_once_and_given_up():
    names = Names(None)
    async with opened() as transport:
        _resolve_with(transport, names)
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
        _resolve_with(transport, Names(None))
        waiting = asyncio.create_task(fetch(transport, post("http://upstream.example/")))
        await asyncio.sleep(0.005)
        await transport.close()
        with pytest.raises(TransportFault):
            await waiting


@scenario
async def test_every_address_of_a_name_is_tried():
    with socket.socket() as taken:
        async with Server(always(answer())) as server, opened() as transport:
            # The same port on another loopback address, where nobody listens.
            taken.bind(("127.0.0.2", server.port))
            _resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
            assert await fetch(transport, post(f"http://upstream.example:{server.port}/")) == b"ok"
            assert b"host: upstream.example:" in server.requests[0]


@scenario
async def test_an_address_that_swallows_everything_leaves_time_for_the_next():
    with socket.socket() as hole, socket.socket() as first, socket.socket() as second:
        async with Server(always(answer())) as server, opened() as transport:
            hole.bind(("127.0.0.2", server.port))
            hole.listen(0)
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.2", server.port))
            _resolve_with(transport, Names(["127.0.0.2", "127.0.0.1"]))
            request = post(f"http://upstream.example:{server.port}/")
            assert await fetch(transport, request, Timeouts(connect=0.6)) == b"ok"


@scenario
async def test_proxies_of_the_environment_are_ignored():
    async with Server(always(answer(b"proxied"))) as proxy, Server(always(answer(b"direct"))) as server:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
                patch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            async with opened() as transport:
                assert await fetch(transport, post(server)) == b"direct"


@scenario
async def test_a_proxy_takes_plain_http_in_absolute_form():
    async with Server(always(answer(b"proxied"))) as proxy, opened() as transport:
        url = f"http://us%40er:pass@127.0.0.1:{proxy.port}"
        request = post("http://upstream.example/v1/x", headers=KEY, proxy=url)
        assert await fetch(transport, request) == b"proxied"
        head = proxy.requests[0]
        assert head.startswith(b"POST http://upstream.example/v1/x HTTP/1.1\r\nhost: upstream.example\r\n")
        assert b"proxy-authorization: Basic dXNAZXI6cGFzcw==\r\n" in head
        assert "pass" not in repr(list(transport._pools))


async def _splice(peer: Peer, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
        target.close()

    try:
        await asyncio.gather(copy(peer.reader, writer), copy(reader, peer.writer))
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("user", ["", "user:pass@"])
@scenario
async def test_a_proxy_tunnels_tls_and_never_sees_the_request(user: str):
    async with Server(always(answer()), serving("upstream.example")) as server:

        async def serve(peer: Peer) -> None:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n")
            await _splice(peer, server.port)

        async with Server(serve) as proxy, opened(ssl_context=trusting()) as transport:
            request = post(
                "https://upstream.example/v1", headers=KEY, proxy=f"http://{user}127.0.0.1:{proxy.port}"
            )
            assert await fetch(transport, request) == b"ok"
            assert await fetch(transport, request) == b"ok"
            assert len(proxy.peers) == 1
            head = proxy.peers[0].requests[0]
            assert head.startswith(b"CONNECT upstream.example:443 HTTP/1.1\r\n")
            assert (b"proxy-authorization" in head) is bool(user)
            assert b"sk-secret" not in head
            assert b"proxy-authorization" not in server.requests[0]


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nextra",
        b"HTTP/1.1 200",
        b"nonsense\r\n\r\n",
        b"x" * 20000,
    ],
)
@scenario
async def test_a_proxy_that_does_not_let_us_through_is_a_connect_fault(reply: bytes):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(reply)

    async with Server(serve) as proxy, opened() as transport:
        fault = await _fault(
            transport, post("https://upstream.example/", proxy=f"http://user:secret@127.0.0.1:{proxy.port}")
        )
        assert (fault.problem, fault.sent) == ("connect", False)


@scenario
async def test_a_proxy_that_stalls_is_given_up():
    async with Server(Peer.gone) as proxy, opened() as transport:
        for scheme in ("http", "socks5h"):
            request = post("https://upstream.example/", proxy=f"{scheme}://127.0.0.1:{proxy.port}")
            assert (await _fault(transport, request, Timeouts(connect=0.03))).problem == "connect"


class Socks:
    """A SOCKS5 proxy that leads to one port wherever one asks for, and notes what was asked."""

    def __init__(self, port: int, reply: bytes = b"\x05\x00\x00\x01\0\0\0\0\0\0", method: int = 0) -> None:
        self.asked: list[bytes] = []
        self.login = b""
        self._port = port
        self._reply = reply
        self._method = method

    async def __call__(self, peer: Peer) -> None:
        count = (await peer.reader.readexactly(2))[1]
        await peer.reader.readexactly(count)
        await peer.send(bytes((5, self._method)))
        if self._method == 2:
            self.login = await peer.reader.readexactly(11)
            await peer.send(b"\x01\x00" if self.login == b"\x01\x04user\x04pass" else b"\x01\x01")
        head = await peer.reader.readexactly(4)
        length = {1: 4, 4: 16}.get(head[3]) or (await peer.reader.readexactly(1))[0]
        self.asked.append(await peer.reader.readexactly(length + 2))
        await peer.send(*(self._reply[n : n + 1] for n in range(len(self._reply))))
        await _splice(peer, self._port)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@scenario
async def test_socks_leads_to_the_upstream_and_resolves_names_where_it_should(scheme: str):
    async with Server(always(answer()), serving("upstream.example")) as server:
        socks = Socks(server.port)
        async with Server(socks) as proxy, opened(ssl_context=trusting()) as transport:
            names = Names(["127.0.0.9"])
            _resolve_with(transport, names)
            request = post("https://upstream.example/", proxy=f"{scheme}://127.0.0.1:{proxy.port}")
            assert await fetch(transport, request) == b"ok"
            name = b"upstream.example" if scheme == "socks5h" else bytes((127, 0, 0, 9))
            assert socks.asked == [name + (443).to_bytes(2, "big")]
            assert names.asked == (0 if scheme == "socks5h" else 1)


@scenario
async def test_socks_takes_a_user_and_a_password():
    async with (
        Server(always(answer())) as server,
        Server(Socks(server.port, method=2)) as proxy,
        opened() as transport,
    ):
        good = post("http://upstream.example/", proxy=f"socks5h://user:pass@127.0.0.1:{proxy.port}")
        assert await fetch(transport, good) == b"ok"
        bad = post("http://upstream.example/", proxy=f"socks5h://user:secr@127.0.0.1:{proxy.port}")
        assert (await _fault(transport, bad)).problem == "connect"


@pytest.mark.parametrize(
    "reply",
    [b"\x05\x02\x00\x01\0\0\0\0\0\0", b"\x04\x00\x00\x01\0\0\0\0\0\0", b"\x05\x00\x00\x09\0\0", b"\x05"],
)
@scenario
async def test_socks_that_refuses_is_a_connect_fault(reply: bytes):
    async with (
        Server(always(answer())) as server,
        Server(Socks(server.port, reply)) as proxy,
        opened() as transport,
    ):
        request = post("http://upstream.example/", proxy=f"socks5h://127.0.0.1:{proxy.port}")
        fault = await _fault(transport, request, Timeouts(connect=0.1))
        assert (fault.problem, fault.sent) == ("connect", False)


@pytest.mark.parametrize("reply", [b"\x05\x00\x00\x03\x04host\0\0", b"\x05\x00\x00\x04" + bytes(18)])
@scenario
async def test_socks_may_name_its_end_in_any_form(reply: bytes):
    async with (
        Server(always(answer())) as server,
        Server(Socks(server.port, reply)) as proxy,
        opened() as transport,
    ):
        request = post("http://upstream.example/", proxy=f"socks5h://127.0.0.1:{proxy.port}")
        assert await fetch(transport, request) == b"ok"


@pytest.mark.parametrize(
    "proxy", ["https://127.0.0.1:1", "socks4://127.0.0.1:1", "127.0.0.1", "http://:secret@"]
)
@scenario
async def test_a_proxy_of_an_unknown_kind_is_refused(proxy: str):
    async with opened() as transport:
        fault = await _fault(transport, post("http://upstream.example/", proxy=proxy))
        assert (fault.problem, fault.sent) == ("protocol", False)
