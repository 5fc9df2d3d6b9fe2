"""Which tool servers may be connected to: their URLs, and the addresses they resolve to."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from wireglot.web.contract import WebFailed
from wireglot.web.domains import ascii_host
from wireglot.web.guard import Guard, PrivateHost, is_listed, is_public, parse_private_host

if TYPE_CHECKING:  # the configuration is checked with this module, and needs no HTTP client
    from wireglot.http.client.dial import Address
    from wireglot.http.client.origin import HttpOrigin

_PORTS: Final = {"http": 80, "https": 443}


def parse_server_host(text: str) -> PrivateHost | None:
    """A name or one address, with or without a port; None for other texts."""
    host = parse_private_host(text)
    if host is None or (host.network and ipaddress.ip_network(host.network).num_addresses > 1):
        return None
    return host


class ServerHosts:
    """Raises WebFailed for what must not be connected to. Without a port an entry means 80 and 443."""

    def __init__(self, hosts: Sequence[str], private_hosts: Sequence[str]) -> None:
        private = [host for text in private_hosts if (host := parse_server_host(text)) is not None]
        public = [host for text in hosts if (host := parse_server_host(text)) is not None]
        self._private = frozenset(map(_key, private))
        self._hosts = self._private.union(map(_key, public))
        self._guard = Guard(private)

    def check_url(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = ascii_host(parts.hostname or ""), parts.port
        except ValueError:
            raise WebFailed("invalid_tool_input", "its URL is not valid") from None
        usual = _PORTS.get(parts.scheme)
        if usual is None or not host or "@" in parts.netloc:
            raise WebFailed("invalid_tool_input", "its URL is not an http:// or https:// URL")
        port = usual if port is None else port
        if not is_listed(self._hosts, host, port):
            raise WebFailed("url_not_allowed", "its host is not in the configuration of the gateway ([mcp])")
        if parts.scheme == "http" and not is_listed(self._private, host, port):
            raise WebFailed("url_not_allowed", "only https:// is allowed for this host")

    def check_addresses(self, origin: HttpOrigin, addresses: Sequence[Address]) -> None:
        """The addresses of a host. Private ones are allowed only for hosts that may have them."""
        for address in addresses:
            if not is_public(ipaddress.ip_address(address[1])):
                self._guard.check_addresses(origin, [address])


def _key(host: PrivateHost) -> tuple[str, int]:
    return host.name or str(ipaddress.ip_network(host.network).network_address), host.port
