"""Through a proxy: what it is asked, what it never sees, and what it may do to us."""

import asyncio

import pytest

from tests.http.transport_dial_kit import KEY, Names, fault_of, resolve_with, serving, trusting
from tests.http.transport_kit import Peer, Server, always, answer, fetch, opened, post, scenario
from wireglot.http.transport import Timeouts


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
    """R-DD-11"""
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
        fault = await fault_of(
            transport, post("https://upstream.example/", proxy=f"http://user:secret@127.0.0.1:{proxy.port}")
        )
        assert (fault.problem, fault.sent) == ("connect", False)


@scenario
async def test_a_proxy_that_stalls_is_given_up():
    async with Server(Peer.gone) as proxy, opened() as transport:
        for scheme in ("http", "socks5h"):
            request = post("https://upstream.example/", proxy=f"{scheme}://127.0.0.1:{proxy.port}")
            assert (await fault_of(transport, request, Timeouts(connect=0.03))).problem == "connect"


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
    """R-DD-11"""
    async with Server(always(answer()), serving("upstream.example")) as server:
        socks = Socks(server.port)
        async with Server(socks) as proxy, opened(ssl_context=trusting()) as transport:
            names = Names(["127.0.0.9"])
            resolve_with(transport, names)
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
        assert (await fault_of(transport, bad)).problem == "connect"


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
        fault = await fault_of(transport, request, Timeouts(connect=0.1))
        assert (fault.problem, fault.sent) == ("connect", False)


@scenario
async def test_socks_that_is_given_up_at_any_moment_leaves_nothing_open():
    """That it leaves nothing is seen to by every scenario; here they end at many moments of opening."""
    for ten_thousandths in range(30):
        async with (
            Server(always(answer())) as server,
            Server(Socks(server.port, reply=b"\x05")) as proxy,
            opened() as transport,
        ):
            request = post("http://upstream.example/", proxy=f"socks5h://127.0.0.1:{proxy.port}")
            fault = await fault_of(transport, request, Timeouts(connect=ten_thousandths / 10_000))
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
        fault = await fault_of(transport, post("http://upstream.example/", proxy=proxy))
        assert (fault.problem, fault.sent) == ("protocol", False)
