"""The SSRF attack set: nothing in these tables may make the gateway connect to a place that is not public."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import socket
import zlib
from functools import cache
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.transport_dial_kit import serving, trusting
from tests.http.transport_kit import answer, chunked
from tests.tiers import rows
from tests.web.fetch_kit import PUBLIC, Network, fetched, got, refused
from wireglot.http.client.origin import HttpOrigin
from wireglot.web.contract import Page, WebFailed
from wireglot.web.fetch import MAX_REDIRECTS, FetchPolicy
from wireglot.web.guard import Guard, PrivateHost, is_public, parse_private_host

PRIVATE = "url_not_allowed", "the URL does not lead to the public internet"
PORT = "url_not_allowed", "only the ports 80 and 443 are fetched from"
SPELLED = "url_not_allowed", "the host is an IPv4 address in an unusual spelling"
NO_URL = "invalid_tool_input", "this is not an absolute http:// or https:// URL"
SCHEME = "url_not_allowed", "only http:// and https:// can be fetched"
USER = "url_not_allowed", "a URL with a user name or password is not fetched"

URLS = [
    # addresses of this machine and its network
    ("http://127.0.0.1/", PRIVATE),
    ("http://127.255.255.254/", PRIVATE),
    ("http://0.0.0.0/", PRIVATE),
    ("http://0.1.2.3/", PRIVATE),
    ("http://10.0.0.1/", PRIVATE),
    ("http://172.16.0.1/", PRIVATE),
    ("http://172.31.255.255/", PRIVATE),
    ("http://192.168.1.1/", PRIVATE),
    ("http://100.64.0.1/", PRIVATE),  # carrier-grade NAT
    ("http://169.254.1.1/", PRIVATE),
    ("http://192.0.0.8/", PRIVATE),
    ("http://192.0.2.1/", PRIVATE),
    ("http://198.18.0.1/", PRIVATE),
    ("http://198.51.100.7/", PRIVATE),
    ("http://203.0.113.7/", PRIVATE),
    ("http://192.88.99.1/", PRIVATE),
    ("http://224.0.0.1/", PRIVATE),
    ("http://239.255.255.250/", PRIVATE),
    ("http://240.0.0.1/", PRIVATE),
    ("http://255.255.255.255/", PRIVATE),
    # metadata of clouds
    ("http://169.254.169.254/latest/meta-data/", PRIVATE),
    ("http://169.254.170.2/v2/credentials", PRIVATE),
    ("http://100.100.100.200/latest/meta-data/", PRIVATE),
    ("http://192.0.0.192/opc/v2/instance/", PRIVATE),
    ("http://168.63.129.16/machine?comp=goalstate", PRIVATE),
    ("http://metadata.google.internal/computeMetadata/v1/", PRIVATE),
    ("http://metadata/computeMetadata/v1/", PRIVATE),
    ("http://[fd00:ec2::254]/latest/meta-data/", PRIVATE),
    ("http://[fd20:ce::254]/computeMetadata/v1/", PRIVATE),
    # IPv6
    ("http://[::1]/", PRIVATE),
    ("http://[::]/", PRIVATE),
    ("http://[0:0:0:0:0:0:0:1]/", PRIVATE),
    ("http://[fe80::1]/", PRIVATE),
    ("http://[fc00::1]/", PRIVATE),
    ("http://[fd12:3456::1]/", PRIVATE),
    ("http://[ff02::1]/", PRIVATE),
    ("http://[2001:db8::1]/", PRIVATE),
    ("http://[100::1]/", PRIVATE),
    # with an IPv4 address inside
    ("http://[::ffff:127.0.0.1]/", PRIVATE),
    ("http://[::ffff:7f00:1]/", PRIVATE),
    ("http://[::ffff:93.184.215.14]/", PRIVATE),
    ("http://[::127.0.0.1]/", PRIVATE),
    ("http://[64:ff9b::7f00:1]/", PRIVATE),
    ("http://[64:ff9b::169.254.169.254]/", PRIVATE),
    ("http://[64:ff9b:1::a00:1]/", PRIVATE),
    ("http://[2002:7f00:1::]/", PRIVATE),
    ("http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", PRIVATE),
    # unusual spellings of IPv4
    ("http://2130706433/", SPELLED),
    ("http://0x7f000001/", SPELLED),
    ("http://0x7f.0.0.1/", SPELLED),
    ("http://0177.0.0.1/", SPELLED),
    ("http://017700000001/", SPELLED),
    ("http://127.1/", SPELLED),
    ("http://127.0.1/", SPELLED),
    ("http://0/", SPELLED),
    ("http://127.0.0.01/", SPELLED),
    ("http://127.0.0.0x1/", SPELLED),
    ("http://1.2.3.4.5/", SPELLED),
    ("http://999.1.1.1/", SPELLED),
    ("http://１２７.０.０.１/", PRIVATE),
    ("http://127。0。0。1/", PRIVATE),
    ("http://①②⑦.⓪.⓪.①/", PRIVATE),
    # names
    ("http://localhost/", PRIVATE),
    ("http://LOCALHOST/", PRIVATE),
    ("http://localhost./", PRIVATE),
    ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", PRIVATE),
    ("http://foo.localhost/", PRIVATE),
    ("http://127.0.0.1./", PRIVATE),
    ("http://printer.local/", PRIVATE),
    ("http://wiki.corp/", PRIVATE),
    ("http://router.home.arpa/", PRIVATE),
    ("http://kubernetes.default.svc.cluster.local/", PRIVATE),
    ("http://intranet/", PRIVATE),
    ("http://example.onion/", PRIVATE),
    # parts of a URL that parsers disagree about
    ("http://example.com@127.0.0.1/", USER),
    ("http://127.0.0.1@example.com/", USER),
    ("http://user:password@example.com/", USER),
    ("http://example.com\\@127.0.0.1/", NO_URL),
    ("http:\\\\127.0.0.1/", NO_URL),
    ("http://127.0.0.1\\.example.com/", NO_URL),
    ("http://127.0.0.1%2eexample.com/", NO_URL),
    ("http://%31%32%37.0.0.1/", NO_URL),
    ("http://exa mple.com/", NO_URL),
    ("http://example.com\t.evil/", NO_URL),
    ("http://example.com/\r\nhost: localhost", NO_URL),
    ("http://example.com\0.evil/", NO_URL),
    ("http://[::1/", NO_URL),
    ("http://[fe80::1%25eth0]/", NO_URL),
    ("http://[127.0.0.1]/", NO_URL),
    ("http:///etc/passwd", NO_URL),
    ("http://./", NO_URL),
    ("http://example..com/", NO_URL),
    ("http://-example.com/", NO_URL),
    ("http://example.com:99999/", NO_URL),
    ("http://example.com:80:22/", NO_URL),
    ("//example.com/", NO_URL),
    ("example.com", NO_URL),
    ("/etc/passwd", NO_URL),
    ("", NO_URL),
    # schemes
    ("file:///etc/passwd", SCHEME),
    ("ftp://example.com/", SCHEME),
    ("gopher://example.com:70/_GET", SCHEME),
    ("dict://example.com:11211/stats", SCHEME),
    ("data:text/html,x", SCHEME),
    ("javascript:alert(1)", SCHEME),
    ("unix:///var/run/docker.sock", SCHEME),
    ("jar:http://example.com!/", SCHEME),
    # ports
    ("http://example.com:22/", PORT),
    ("http://example.com:6379/", PORT),
    ("http://example.com:8080/", PORT),
    ("https://example.com:8443/", PORT),
    ("http://example.com:0/", PORT),
]


def test_the_attack_set_is_not_small():
    assert len(URLS) + len(RESOLVED) + len(REDIRECTS) > 120


@rows("url, why", URLS)
def test_such_a_url_is_refused_before_anything_is_sent(url, why):
    network = Network({"example.com": [PUBLIC]})
    failed = refused(url, network)
    assert (failed.code, str(failed)) == why
    assert (network.resolved, network.connected) == ([], [])


RESOLVED = [
    ["127.0.0.1"],
    ["0.0.0.0"],
    ["10.1.2.3"],
    ["172.20.0.1"],
    ["192.168.0.10"],
    ["100.127.255.255"],
    ["169.254.169.254"],
    ["100.100.100.200"],
    ["168.63.129.16"],
    ["224.0.0.251"],
    ["255.255.255.255"],
    ["::1"],
    ["::"],
    ["fe80::1%2"],
    ["fd00:ec2::254"],
    ["::ffff:10.0.0.1"],
    ["64:ff9b::a9fe:a9fe"],
    ["2002:a00:1::1"],
    [PUBLIC, "127.0.0.1"],  # one of both
    ["2606:4700::1111", "::1"],
    [PUBLIC, "10.0.0.1", PUBLIC],
]


@rows("addresses", RESOLVED, ids=lambda row: " ".join(row))
@rows("scheme", ["http", "https"])
def test_a_name_that_leads_to_such_an_address_is_not_connected_to(scheme, addresses):
    network = Network({"evil.example": addresses})
    failed = refused(f"{scheme}://evil.example/", network)
    assert (failed.code, str(failed)) == PRIVATE
    assert (network.resolved, network.connected) == (["evil.example"], [])


PAGE = answer(b"<title>T</title>hello", headers="content-type: text/html\r\n")


def test_a_public_page_is_fetched_from_the_address_that_was_checked():
    page, network, asked = got("http://EXAMPLE.com./a/b?x=ü#part", PAGE)
    assert isinstance(page, Page)
    assert (page.url, page.title, page.text) == ("http://example.com/a/b?x=%C3%BC", "T", "hello")
    assert network.connected == [(PUBLIC, 80)]
    assert asked == [("example.com", "/a/b?x=%C3%BC")]


def test_a_name_is_resolved_once_so_a_second_answer_changes_nothing():
    """DNS rebinding: public while it is checked, private when it is used."""
    names = {"rebind.example": [[PUBLIC], ["127.0.0.1"], ["169.254.169.254"]]}
    page, network, asked = got("http://rebind.example/", PAGE, names=names)
    assert isinstance(page, Page)
    assert network.resolved == ["rebind.example"]
    assert network.connected == [(PUBLIC, 80)]
    assert asked == [("rebind.example", "/")]


def test_a_redirect_to_the_same_name_is_resolved_and_checked_again():
    names = {"rebind.example": [[PUBLIC], ["127.0.0.1"]]}
    onward = answer(b"", status="302 Found", headers="location: /second\r\nconnection: close\r\n")
    failed, network, asked = got("http://rebind.example/first", onward, names=names)
    assert isinstance(failed, WebFailed)
    assert (failed.code, str(failed)) == PRIVATE
    assert network.resolved == ["rebind.example", "rebind.example"]
    assert network.connected == [(PUBLIC, 80)]
    assert asked == [("rebind.example", "/first")]


def test_a_connection_that_is_used_again_is_one_to_an_address_that_was_checked():
    names = {"rebind.example": [[PUBLIC], ["127.0.0.1"]]}

    def respond(host: str, path: str) -> bytes:
        return answer(b"", status="302 Found", headers="location: /second\r\n") if path == "/first" else PAGE

    came, network, _ = got("http://rebind.example/first", respond, names=names)
    # A connection is kept for a moment: on a slow machine the name is resolved, and refused, a second time.
    assert isinstance(came, Page) or (came.code, str(came)) == PRIVATE
    assert network.connected == [(PUBLIC, 80)]


REDIRECTS = [
    ("http://127.0.0.1/", PRIVATE),
    ("http://169.254.169.254/latest/meta-data/", PRIVATE),
    ("//10.0.0.1/", PRIVATE),
    ("http://[::1]/", PRIVATE),
    ("http://0x7f.1/", SPELLED),
    ("http://localhost:8080/", PORT),
    ("http://inside.example/", PRIVATE),
    ("https://inside.example/", PRIVATE),
    ("file:///etc/passwd", SCHEME),
    ("ftp://example.com/", SCHEME),
    ("gopher://127.0.0.1:6379/_x", SCHEME),
    ("http://user:pass@example.com/", USER),
    ("http://example.com:6379/", PORT),
    ("http://[::1", ("url_not_accessible", "the host redirects to something that is no URL")),
    ("http://" + "a" * 3000 + "/", ("url_too_long", "the URL has more than 2048 characters")),
]


@rows("location, why", REDIRECTS)
@rows("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_checked_like_the_first_url(status, location, why):
    def respond(host: str, path: str) -> bytes:
        return answer(b"secret", status=status, headers=f"location: {location}\r\n")

    names = {"example.com": [PUBLIC], "inside.example": ["192.168.7.7"]}
    failed, network, asked = got("http://example.com/", respond, names=names)
    assert isinstance(failed, WebFailed)
    assert (failed.code, str(failed)) == why
    assert network.connected == [(PUBLIC, 80)]
    assert asked == [("example.com", "/")]


def test_redirects_are_followed_up_to_a_number():
    def respond(host: str, path: str) -> bytes:
        number = int(path[1:])
        if number == last:
            return PAGE
        return answer(b"", status="302 Found", headers=f"location: {number + 1}\r\n")

    last = MAX_REDIRECTS
    page, _, asked = got("http://example.com/0", respond)
    assert isinstance(page, Page)
    assert page.url == f"http://example.com/{MAX_REDIRECTS}"
    last += 1
    failed, _, asked = got("http://example.com/0", respond)
    assert isinstance(failed, WebFailed)
    assert (failed.code, str(failed)) == ("url_not_accessible", "more than 5 redirects")
    assert len(asked) == MAX_REDIRECTS + 1


def test_a_redirect_may_lead_to_another_public_host_over_tls():
    def respond(host: str, path: str) -> bytes:
        assert host == "secure.example"
        return PAGE

    names = {"secure.example": ["93.184.215.99"]}
    page, network, _ = got(
        "https://secure.example/",
        respond,
        names=names,
        context=serving("secure.example"),
        trusting=trusting(),
    )
    assert isinstance(page, Page)
    assert network.connected == [("93.184.215.99", 443)]


def test_the_certificate_must_be_for_the_name_and_not_for_the_address():
    names = {"secure.example": [PUBLIC]}
    failed, _, asked = got(
        "https://secure.example/", PAGE, names=names, context=serving(PUBLIC), trusting=trusting()
    )
    assert isinstance(failed, WebFailed)
    assert failed.code == "url_not_accessible"
    assert "TLS" in str(failed)
    assert asked == []


PRIVATE_HOSTS = [
    # allowed, URL, its address, whether it is fetched
    (["wiki.example.com"], "http://wiki.example.com/", "10.0.0.5", True),
    (["wiki.example.com"], "http://other.example.com/", "10.0.0.5", False),
    (["wiki.example.com"], "http://sub.wiki.example.com/", "10.0.0.5", False),
    (["wiki.example.com"], "http://wiki.example.com:8080/", "10.0.0.5", False),
    (["wiki.example.com"], "http://wiki.example.com:0/", "10.0.0.5", False),
    (["10.1.0.0/16"], "http://10.1.2.3:0/", "10.1.2.3", False),
    (["wiki.example.com:8080"], "http://wiki.example.com:8080/", "10.0.0.5", True),
    (["wiki.example.com:8080"], "http://wiki.example.com/", "10.0.0.5", False),
    (["wiki.example.com"], "http://wiki.example.com/", "169.254.169.254", False),
    (["wiki.example.com"], "http://wiki.example.com/", "100.100.100.200", False),
    (["wiki.example.com"], "http://wiki.example.com/", "224.0.0.1", False),
    (["wiki.example.com"], "http://wiki.example.com/", "::ffff:10.0.0.5", False),
    (["wiki.example.com"], "http://wiki.example.com/", PUBLIC, True),
    (["wiki"], "http://wiki/", "192.168.1.7", True),
    (["localhost:3000"], "http://localhost:3000/", "127.0.0.1", True),
    (["localhost:3000"], "http://localhost:3001/", "127.0.0.1", False),
    (["10.1.0.0/16"], "http://10.1.2.3/", "10.1.2.3", True),
    (["10.1.0.0/16"], "http://10.2.0.1/", "10.2.0.1", False),
    (["10.1.0.0/16"], "http://some.name.internal/", "10.1.9.9", True),
    (["10.1.0.0/16"], "http://some.name.internal/", "10.2.9.9", False),
    (["10.1.2.3:8080"], "http://10.1.2.3:8080/", "10.1.2.3", True),
    (["10.1.2.3:8080"], "http://name.example:8080/", "10.1.2.3", True),
    (["10.1.2.3:8080"], "http://name.example:8080/", PUBLIC, False),
    (["[fd12::7]:8080"], "http://[fd12::7]:8080/", "fd12::7", True),
    (["fd00::/8"], "http://[fd00:ec2::254]/", "fd00:ec2::254", False),
    (["169.254.0.0/16"], "http://169.254.169.254/", "169.254.169.254", False),
    (["0.0.0.0/0"], "http://169.254.169.254/", "169.254.169.254", False),
]


@rows("allowed, url, address, works", PRIVATE_HOSTS)
def test_only_private_hosts_that_are_named_are_fetched_from(allowed, url, address, works):
    host = urlsplit(url).hostname or ""
    names = {host: [address]}
    came, network, _ = got(url, PAGE, names=names, policy=FetchPolicy(private_hosts=tuple(allowed)))
    if works:
        assert isinstance(came, Page), came
        assert [where for where, _ in network.connected] == [address]
    else:
        assert isinstance(came, WebFailed)
        assert came.code == "url_not_allowed"
        assert network.connected == []


CANONICAL = [
    ("HTTP://Example.COM", "http://example.com/"),
    ("https://example.com:443/x", "https://example.com/x"),
    ("http://example.com:443/x", "http://example.com:443/x"),
    ("https://example.com:80", "https://example.com:80/"),
    ("http://example.com/a b".replace(" ", "%20"), "http://example.com/a%20b"),
    ("http://example.com/ü?ö#ä", "http://example.com/%C3%BC?%C3%B6"),
    ("http://example.com/~a/!$&'()*+,;=:@[]?/:?[]@!$&'()*+,;=~%41", None),
    ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
    ("http://93.184.215.14/", None),
    ("http://a_b-c.example/", None),
    ("http://" + "a" * 63 + ".example/", None),
    ("http://example.com/" + "x" * 2029, None),
]


@rows("url, canonical", CANONICAL)
def test_a_public_url_has_one_form(url, canonical):
    assert Guard().checked_url(url) == (canonical or url)


TOO_MUCH = [
    ("http://example.com/" + "x" * 2030, "url_too_long"),
    ("http://" + "a" * 64 + ".example/", "invalid_tool_input"),
    ("http://" + "a." * 126 + "aa/", "invalid_tool_input"),
    ("http://example.com/\x7f", "invalid_tool_input"),
    ("http://example.com/\u200b", "invalid_tool_input"),
    ("http://example.com:/x/\u2028", "invalid_tool_input"),
]


@rows("url, code", TOO_MUCH)
def test_a_url_beyond_a_limit_is_refused(url, code):
    with pytest.raises(WebFailed) as caught:
        Guard().checked_url(url)
    assert caught.value.code == code


def test_names_without_public_pages_are_refused_unless_they_are_listed():
    for name in [
        "localhost",
        "local",
        "localdomain",
        "internal",
        "intranet",
        "lan",
        "home",
        "corp",
        "arpa",
        "onion",
    ]:
        url = f"http://wiki.{name}/"
        with pytest.raises(WebFailed, match="public internet"):
            Guard().checked_url(url)
        assert Guard([PrivateHost(name=f"wiki.{name}")]).checked_url(url) == url
        with pytest.raises(WebFailed, match="public internet"):
            Guard([PrivateHost(name=f"wiki.{name}", port=81)]).checked_url(url)


def test_a_listed_port_is_for_its_own_host_only():
    guard = Guard([PrivateHost(name="wiki.example", port=81), PrivateHost(network="10.0.0.0/8", port=82)])
    assert guard.checked_url("http://wiki.example:81/") == "http://wiki.example:81/"
    assert guard.checked_url("http://10.1.1.1:82/") == "http://10.1.1.1:82/"
    for url in ("http://other.example:81/", "http://10.1.1.1:81/", "http://10.1.1.1/", "http://11.1.1.1:82/"):
        with pytest.raises(WebFailed):
            guard.checked_url(url)


def test_private_hosts_are_read_in_all_their_forms():
    assert parse_private_host("Wiki.Example.com.") == PrivateHost(name="wiki.example.com")
    assert parse_private_host("bücher.example:81") == PrivateHost(name="xn--bcher-kva.example", port=81)
    assert parse_private_host("10.0.0.1") == PrivateHost(network="10.0.0.1/32")
    assert parse_private_host("10.0.0.0/8") == PrivateHost(network="10.0.0.0/8")
    assert parse_private_host("10.0.0.1:8080") == PrivateHost(network="10.0.0.1/32", port=8080)
    assert parse_private_host("[fd00::1]") == PrivateHost(network="fd00::1/128")
    assert parse_private_host("fd00::/8") == PrivateHost(network="fd00::/8")
    assert parse_private_host("wiki:1") == PrivateHost(name="wiki", port=1)
    assert parse_private_host("wiki:65535") == PrivateHost(name="wiki", port=65535)
    assert parse_private_host("[fd00::1]:81") == PrivateHost(network="fd00::1/128", port=81)
    for wrong in (
        "",
        "http://wiki",
        "wiki/",
        "*.example.com",
        "wiki:0",
        "wiki:65536",
        "wiki:99999",
        "wiki:",
        "10",
        "1.2.3.256",
        "10.0.0.1/8",
        "0x7f.1",
        "a b",
    ):
        assert parse_private_host(wrong) is None, wrong


OURS = [
    ipaddress.ip_network(text) for text in ("168.63.129.16", "192.88.99.0/24", "192.0.0.0/24", "224.0.0.0/4")
]
"""Public to some versions of Python, and not to us."""


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_that_python_calls_global_is_public_and_no_other(address):
    assert is_public(address) == (address.is_global and not any(address in network for network in OURS))


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_that_is_public_is_global_unicast(address):
    if is_public(address):
        assert address in ipaddress.ip_network("2000::/3")
        assert address.is_global
        assert address.sixtofour is None
        assert address.teredo is None
        assert address.ipv4_mapped is None


@given(st.text(max_size=40))
def test_no_text_makes_the_guard_do_anything_but_refuse_or_accept(text):
    for url in (text, f"http://{text}", f"http://{text}/", f"http://example.com/{text}"):
        try:
            checked = Guard().checked_url(url)
        except WebFailed:
            continue
        assert Guard().checked_url(checked) == checked, "one form, and no other"
        assert checked.isascii()
        assert checked.startswith(("http://", "https://"))


def test_the_guard_sees_the_addresses_that_the_system_resolves():
    """Spellings that only the C library knows lead to addresses, and those are checked."""
    for spelling in ("127.1", "0x7f.1", "2130706433", "017700000001"):
        try:
            found = socket.getaddrinfo(spelling, 80, type=socket.SOCK_STREAM)
        except socket.gaierror:
            continue
        addresses = [(family, str(where[0]), int(where[1])) for family, _, _, _, where in found]
        with pytest.raises(WebFailed):
            Guard().check_addresses(HttpOrigin("http", spelling, 80, None, ""), addresses)


@cache
def bomb(kind: str) -> bytes:
    data = b"<p>" + b"A" * 40_000_000
    return gzip.compress(data, 1) if kind == "gzip" else zlib.compress(data, 1)


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_decompression_bomb_is_stopped(kind, framing):
    headers = f"content-type: text/html\r\ncontent-encoding: {kind}\r\n"
    packed = bomb(kind)
    sent = answer(packed, headers=headers) if framing == "length" else chunked(packed, headers=headers)
    failed, _, _ = got("http://example.com/", sent)
    assert isinstance(failed, WebFailed)
    assert (failed.code, str(failed)) == ("content_too_large", "the page is too large")


def test_many_small_bombs_in_a_row_are_one():
    headers = "content-type: text/html\r\ncontent-encoding: gzip\r\n"
    members = gzip.compress(b"B" * 1_000_000) * 30
    failed, _, _ = got("http://example.com/", answer(members, headers=headers))
    assert isinstance(failed, WebFailed)
    assert failed.code == "content_too_large"


def test_a_compressed_page_of_honest_size_is_read():
    headers = "content-type: text/html\r\ncontent-encoding: gzip\r\n"
    page, _, _ = got("http://example.com/", answer(gzip.compress(b"<p>small"), headers=headers))
    assert isinstance(page, Page)
    assert page.text == "small"


def test_with_a_proxy_names_are_checked_as_far_as_they_resolve_here(monkeypatch):
    """The proxy connects, so this is only a second line: what resolves to a private address here is refused."""
    network = Network({"inside.example": ["10.0.0.1"]})

    async def run(url: str) -> WebFailed:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", network.getaddrinfo)
        with pytest.raises(WebFailed) as caught:
            await fetched(url, network, policy=FetchPolicy(proxy="http://10.9.9.9:3128"))
        return caught.value

    failed = asyncio.run(run("http://inside.example/"))
    assert (failed.code, str(failed)) == PRIVATE
    assert network.connected == []
    failed = asyncio.run(run("http://unknown.example/"))
    assert failed.code == "url_not_accessible"
    assert network.connected == [("10.9.9.9", 3128)]  # the proxy itself may be private
