"""URLs and proxies, and the way through a proxy, byte by byte."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.tiers import rows
from wireglot.http.client.origin import (
    HttpOrigin,
    Proxy,
    parse_proxy,
    parse_url,
    proxy_authorization,
    socks5,
    tunnel,
)
from wireglot.http.transport import TransportFault

URLS = [
    ("http://a", ("http", "a", 80), "/", "a"),
    ("https://a/x?y=1", ("https", "a", 443), "/x?y=1", "a"),
    ("http://a:443/", ("http", "a", 443), "/", "a:443"),
    ("https://a:443/x#f", ("https", "a", 443), "/x", "a"),
    ("https://A.example:8443/x?", ("https", "a.example", 8443), "/x", "a.example:8443"),
    ("http://[::1]:80/", ("http", "::1", 80), "/", "[::1]"),
    ("http://[::1]:81/", ("http", "::1", 81), "/", "[::1]:81"),
    ("http://bücher.example/", ("http", "xn--bcher-kva.example", 80), "/", "xn--bcher-kva.example"),
]


@rows("url, whom, target, authority", URLS)
def test_a_url_is_an_origin_and_a_target(url, whom, target, authority):
    origin, found = parse_url(url, "", "pool")
    assert (origin.scheme, origin.host, origin.port) == whom
    assert (found, origin.authority, origin.pool, origin.proxy) == (target, authority, "pool", None)
    assert origin.tls is url.startswith("https")


@rows(
    "url",
    ["", "a", "ftp://a/", "http://", "http:///x", "http://a:x/", "http://a:99999/", "http://[::1/", "http://a/ü",
     "http://a/x y", "http://a /", "http://a/\x01", "http://a/\x7f"],
)  # fmt: skip
def test_another_url_cannot_be_used(url):
    with pytest.raises(TransportFault) as caught:
        parse_url(url, "", "")
    assert (caught.value.problem, caught.value.sent) == ("protocol", False)
    assert caught.value.message == "the upstream's URL cannot be used"


PROXIES = [
    ("http://p", Proxy("http", "p", 80)),
    ("http://p:3128/", Proxy("http", "p", 3128)),
    ("socks5://p", Proxy("socks5", "p", 1080)),
    ("socks5h://u%40x:p%3Aw@p:1", Proxy("socks5h", "p", 1, "u@x", "p:w")),
    ("http://u@p", Proxy("http", "p", 80, "u")),
]


@rows("url, proxy", PROXIES)
def test_a_proxy_is_read(url, proxy):
    assert parse_proxy(url) == proxy
    assert parse_url("http://a", url, "")[0].proxy == proxy
    assert repr(proxy) == f"Proxy({proxy.scheme})"


@rows("url", ["https://p", "socks4://p", "p:3128", "http://"])
def test_another_proxy_cannot_be_used(url):
    with pytest.raises(TransportFault, match="the proxy's URL cannot be used"):
        parse_proxy(url)


def test_a_proxy_is_told_who_asks_where_that_is_known():
    assert proxy_authorization(None) == ""
    assert proxy_authorization(Proxy("http", "p", 80)) == ""
    assert proxy_authorization(Proxy("http", "p", 80, "u", "w")) == "Basic dTp3"
    assert proxy_authorization(Proxy("http", "p", 80, "u")) == "Basic dTo="
    assert proxy_authorization(Proxy("http", "p", 80, "", "w")) == "Basic Onc="


class Wire:
    """A loop and a socket in one: what is sent is kept, what comes is what a test says."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []
        self.asked: list[int] = []

    async def sock_sendall(self, sock: object, data: bytes) -> None:
        self.sent.append(data)

    async def sock_recv(self, sock: object, size: int) -> bytes:
        self.asked.append(size)
        data = self.answers.pop(0) if self.answers else b""
        if len(data) > size:
            self.answers.insert(0, data[size:])
        return data[:size]


PROXY, NAMED = Proxy("http", "p", 80), Proxy("http", "p", 80, "u", "w")


def tunnelled(wire: Wire, host: str = "a.example", proxy: Proxy = PROXY) -> None:
    given: Any = wire
    asyncio.run(tunnel(given, given, HttpOrigin("https", host, 443, proxy, ""), proxy))


def test_a_tunnel_is_asked_for_by_name_and_port():
    for host, proxy, lines in (
        ("a.example", PROXY, "CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n"),
        ("::1", PROXY, "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\n\r\n"),
        ("a", NAMED, "CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\nproxy-authorization: Basic dTp3\r\n\r\n"),
    ):
        wire = Wire(b"HTTP/1.1 200", b" Fine\r\nA: b\r\n\r\n")
        tunnelled(wire, host, proxy)
        assert wire.sent == [lines.encode()]


@rows(
    "answers",
    [
        [],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"HTTP/1.1 407 No\r\n\r\n"],
        [b"HTTP/1.1 201 No\r\n\r\n"],
        [b"HTTP/2.0 200 OK\r\n\r\n"],
        [b"HTTP/1.1\r\n\r\n"],
        [b"nonsense 200 OK\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n\r\nmore"],
        [b"HTTP/1.1 200 OK\r\nA: " + b"x" * 4000] + [b"x" * 4096] * 4 + [b"\r\n\r\n"],
    ],
)
def test_a_proxy_that_answers_otherwise_refuses(answers):
    with pytest.raises(TransportFault) as caught:
        tunnelled(Wire(*answers))
    assert (caught.value.problem, caught.value.sent) == ("connect", False)


def test_the_head_of_a_proxy_may_have_16_kib():
    head = b"HTTP/1.0 200 OK\r\nA: "
    for size, fine in ((16 * 1024, True), (16 * 1024 + 1, False)):
        wire = Wire(head + b"x" * (size - len(head) - 4) + b"\r\n\r\n")
        if fine:
            tunnelled(wire)
        else:
            with pytest.raises(TransportFault):
                tunnelled(wire)


def through(wire: Wire, host: str = "a.example", user: str = "", password: str = "") -> None:
    given: Any = wire
    asyncio.run(socks5(given, given, host, 443, Proxy("socks5", "p", 1080, user, password)))


GRANTED = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x1f\x90"


def test_socks_is_spoken_as_rfc_1928_has_it():
    for host, destination in (
        ("a.example", b"\x03\x09a.example"),
        ("10.0.0.1", b"\x01\x0a\x00\x00\x01"),
        ("::1", b"\x04" + bytes(15) + b"\x01"),
    ):
        wire = Wire(b"\x05", b"\x00", GRANTED)
        through(wire, host)
        assert wire.sent == [b"\x05\x01\x00", b"\x05\x01\x00" + destination + b"\x01\xbb"]
        assert wire.answers == []
    for user, password, sent in (
        ("u", "pw", b"\x01\x01u\x02pw"),
        ("", "w", b"\x01\x00\x01w"),
        ("u", "", b"\x01\x01u\x00"),
    ):
        wire = Wire(b"\x05\x02", b"\x01\x00", GRANTED)
        through(wire, user=user, password=password)
        assert wire.sent[:2] == [b"\x05\x01\x02", sent]


def test_the_address_that_a_socks_proxy_reports_is_read_to_its_end():
    """What comes after it is the upstream's."""
    for bound in (b"\x01" + bytes(6), b"\x04" + bytes(18), b"\x03\x05names\x00\x00", b"\x03\x00\x00\x00"):
        wire = Wire(b"\x05\x00", b"\x05\x00\x00" + bound + b"upstream")
        through(wire)
        assert b"".join(wire.answers) == b"upstream"


@rows(
    "answers, user",
    [
        ([], ""),
        ([b"\x04\x00"], ""),
        ([b"\x05\xff"], ""),
        ([b"\x05\x02"], ""),
        ([b"\x05\x00"], "u"),
        ([b"\x05\x02", b"\x01\x01"], "u"),
        ([b"\x05\x00", b"\x04\x00\x00\x01" + bytes(6)], ""),
        ([b"\x05\x00", b"\x05\x01\x00\x01" + bytes(6)], ""),
        ([b"\x05\x00", b"\x05\x00\x00\x02" + bytes(6)], ""),
        ([b"\x05\x00", b"\x05\x00\x00\x01" + bytes(5)], ""),
    ],
)
def test_a_socks_proxy_that_answers_otherwise_refuses(answers, user):
    with pytest.raises(TransportFault) as caught:
        through(Wire(*answers), user=user)
    assert (caught.value.problem, caught.value.sent) == ("connect", False)


def test_names_and_passwords_for_socks_have_255_bytes_at_most():
    through(Wire(b"\x05\x02", b"\x01\x00", GRANTED), host="a" * 255, user="u" * 255)
    for host, user in (("a" * 256, ""), ("a", "u" * 256)):
        with pytest.raises(TransportFault):
            through(Wire(b"\x05\x02" if user else b"\x05\x00", b"\x01\x00", GRANTED), host, user)
