"""Which hosts are this machine, which are next door, and which are anywhere."""

from __future__ import annotations

import pytest

from wireglot.gateway.config.urls import is_local, is_loopback

LOOPBACK = ("localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.255.0.9", "::1", "[::1]", "::1%lo")
NEXT_DOOR = (
    *("ollama", "nas.local", "llm.internal", "box.lan", "pi.home.arpa"),  # RFC 8375 and custom
    *("10.1.2.3", "172.16.0.1", "192.168.1.9", "fd00::1", "fe80::1"),  # RFC 1918, RFC 4193
)
ELSEWHERE = (
    *(
        "api.openai.com",
        "localhost.example.com",
        "notlocalhost.example",
        "local.example",
        "internal.example.com",
    ),
    *("8.8.8.8", "172.32.0.1", "2606:4700::1"),
)


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", NEXT_DOOR)
def test_a_private_network_is_local_and_not_this_machine(host: str) -> None:
    assert is_local(host)
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_name_that_only_looks_local_is_not(host: str) -> None:
    assert not is_local(host)
    assert not is_loopback(host)
