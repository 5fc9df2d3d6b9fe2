"""Which MCP servers may be connected to, by their URLs and by the addresses behind them."""

from __future__ import annotations

import socket

import pytest

from wireglot.http.client.origin import HttpOrigin
from wireglot.web.contract import WebFailed
from wireglot.web.guard import PrivateHost
from wireglot.web.server_hosts import ServerHosts, parse_server_host

HOSTS = ServerHosts(
    ["mcp.example.com", "other.example.com:8443", "203.0.114.7"], ["tools.internal", "127.0.0.1:8000"]
)


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.example.com/mcp",
        "https://MCP.example.com:443/mcp?team=a",
        "https://other.example.com:8443/",
        "https://203.0.114.7/mcp",
        "http://tools.internal/mcp",
        "https://tools.internal/mcp",
        "http://127.0.0.1:8000/mcp",
    ],
)
def test_listed_hosts_may_be_connected_to(url: str) -> None:
    HOSTS.check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/mcp",
        "https://sub.mcp.example.com/mcp",
        "https://mcp.example.com.evil.org/mcp",
        "https://mcp.example.com:8443/mcp",
        "https://other.example.com/",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com@evil.org/mcp",
        "https://user@mcp.example.com/mcp",
        "http://127.0.0.1:8001/mcp",
        "http://127.0.0.1/mcp",
        "http://2130706433:8000/mcp",
        "file:///etc/passwd",
        "ftp://mcp.example.com/mcp",
        "https://mcp.example.com:99999/mcp",
        "mcp.example.com",
        "",
    ],
)
def test_all_others_may_not(url: str) -> None:
    with pytest.raises(WebFailed):
        HOSTS.check_url(url)


def test_each_reason_is_stated() -> None:
    for url, code, words in (
        ("https://[::1/", "invalid_tool_input", "not valid"),
        ("https://mcp.example.com:x/", "invalid_tool_input", "not valid"),
        ("https:///mcp", "invalid_tool_input", "not an http:// or https:// URL"),
        ("ws://mcp.example.com/", "invalid_tool_input", "not an http:// or https:// URL"),
        ("https://a@mcp.example.com/", "invalid_tool_input", "not an http:// or https:// URL"),
        ("https://other.example.com:80/", "url_not_allowed", "not in the configuration"),
        ("https://mcp.example.com:0/", "url_not_allowed", "not in the configuration"),
        ("http://mcp.example.com/", "url_not_allowed", "only https://"),
    ):
        with pytest.raises(WebFailed, match=words) as caught:
            HOSTS.check_url(url)
        assert caught.value.code == code, url
    HOSTS.check_url("https://mcp.example.com:80/")
    HOSTS.check_url("http://tools.internal:443/")


def test_an_entry_is_a_name_or_one_address() -> None:
    assert parse_server_host("10.0.0.1:81") == PrivateHost(network="10.0.0.1/32", port=81)
    assert parse_server_host("mcp.example.com") == PrivateHost(name="mcp.example.com")
    assert parse_server_host("10.0.0.0/31") is None
    assert parse_server_host("a b") is None
    skipped = ServerHosts(["a b", "mcp.example.com"], ["10.0.0.0/8", "x:0"])
    skipped.check_url("https://mcp.example.com/")
    with pytest.raises(WebFailed):
        skipped.check_url("https://10.0.0.0/")


def _check(host: str, port: int, *addresses: str) -> None:
    found = [(socket.AF_INET6 if ":" in each else socket.AF_INET, each, port) for each in addresses]
    HOSTS.check_addresses(HttpOrigin("https", host, port, None, ""), found)


def test_a_public_host_has_public_addresses_only() -> None:
    _check("mcp.example.com", 443, "93.184.215.14", "2606:2800:220:1::1")
    _check("other.example.com", 8443, "93.184.215.14")
    for address in (
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "fd00::1",
        "fe80::1%2",
        "::ffff:127.0.0.1",
    ):
        with pytest.raises(WebFailed):
            _check("mcp.example.com", 443, "93.184.215.14", address)


def test_a_private_host_has_any_address_but_those_of_metadata() -> None:
    _check("tools.internal", 443, "10.1.2.3", "93.184.215.14")
    _check("127.0.0.1", 8000, "127.0.0.1")
    for address in ("169.254.169.254", "100.100.100.200", "0.0.0.0"):
        with pytest.raises(WebFailed):
            _check("tools.internal", 443, address)
    with pytest.raises(WebFailed):
        _check("tools.internal", 8080, "10.1.2.3")
