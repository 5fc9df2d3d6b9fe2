"""The SSRF guard: which URLs a page fetch may request, and which addresses it may connect to.

A URL is checked before its name is resolved, and the addresses that it resolves to before any of them is
connected to. The connection is then made to exactly these: a name that resolves differently a moment later
(DNS rebinding) has no effect.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import msgspec

from wireglot.web.contract import WebFailed
from wireglot.web.domains import ascii_host

if TYPE_CHECKING:  # the configuration is checked with this module, and needs no HTTP client
    from wireglot.http.client.dial import Address
    from wireglot.http.client.origin import HttpOrigin

# Characters of a URL that is fetched.
MAX_URL: Final = 2048
_SAFE: Final = "%/:?#[]@!$&'()*+,;=~"
"""Characters with a meaning in a URL, or that are part of an escape."""
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*")
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
"""A last label like this makes a host an IPv4 address to browsers and resolvers (WHATWG URL, 3.5)."""
_LOCAL_NAMES: Final = frozenset(
    {"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "arpa", "onion"}
)
"""Top-level names without public pages."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*texts: str) -> tuple[IpNetwork, ...]:
    return tuple(map(ipaddress.ip_network, texts))


_NEVER: Final = _networks(
    # Metadata services of clouds: AWS, Google, Azure and others; AWS and Google over IPv6; Alibaba; Oracle;
    # Azure.
    "169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "fd20:ce::/32", "100.100.100.200/32", "192.0.0.192/32",
    "168.63.129.16/32",
    # Special purpose (IANA registries): this network, protocol assignments, documentation, 6to4 relays,
    # benchmarks, multicast, reserved and broadcast.
    "0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    # IPv6 ranges with an IPv4 address inside: Teredo and other assignments, 6to4; documentation.
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)  # fmt: skip
_PRIVATE: Final = _networks(
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "100.64.0.0/10", "::1/128", "fc00::/7"
)
"""Can be allowed by name or address in the configuration."""
_PUBLIC: Final = _networks("0.0.0.0/0", "2000::/3")
"""Of IPv6 only global unicast: so neither ::ffff:0:0/96 (IPv4-mapped) nor 64:ff9b::/96 (NAT64)."""


def _is_in(address: IpAddress, networks: Iterable[IpNetwork]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def is_public(address: IpAddress) -> bool:
    return _is_in(address, _PUBLIC) and not _is_in(address, (*_NEVER, *_PRIVATE))


class PrivateHost(msgspec.Struct, frozen=True):
    """A host in the private network that may be fetched from: a name, or a network of addresses. `port`: 0
    for the default ones."""

    name: str = ""
    network: str = ""
    port: int = 0


def parse_private_host(text: str) -> PrivateHost | None:
    """`wiki.example.com`, `wiki:8080`, `10.1.2.3`, `10.1.0.0/16`, `[fd00::1]:8080`; None for other texts."""
    try:
        return PrivateHost(network=str(ipaddress.ip_network(text.strip("[]"))))
    except ValueError:
        pass
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+)(?::([0-9]{1,5}))?", text)
    if found is None:
        return None
    host, port = found[1].strip("[]"), int(found[2] or 0)
    if port > 65535 or (found[2] is not None and port == 0):
        return None
    try:
        return PrivateHost(network=str(ipaddress.ip_network(host)), port=port)
    except ValueError:
        name = ascii_host(host)
        return PrivateHost(name=name, port=port) if _NAME.fullmatch(name) and not _is_number(name) else None


class Guard:
    """Raises WebFailed for what must not be fetched."""

    def __init__(self, private_hosts: Sequence[PrivateHost] = ()) -> None:
        self._listed = frozenset((each.name, each.port) for each in private_hosts if each.name)
        self._networks = tuple(
            (ipaddress.ip_network(each.network), each.port) for each in private_hosts if each.network
        )

    def checked_url(self, url: str) -> str:
        """The URL in one canonical form: host in lower case and ASCII, no fragment, no default port."""
        if len(url) > MAX_URL:
            raise WebFailed("url_too_long", f"the URL has more than {MAX_URL} characters")
        parts = _split(url)
        if parts.scheme not in _PORTS:
            raise WebFailed("url_not_allowed", "only http:// and https:// can be fetched")
        if "@" in parts.netloc:
            raise WebFailed("url_not_allowed", "a URL with a user name or password is not fetched")
        host, port = _host(parts), _port(parts)
        literal = _literal(host)
        if not self._may_use(host, port):
            raise WebFailed("url_not_allowed", "only the ports 80 and 443 are fetched from")
        if literal is not None:
            self._check_address(literal, host, port)
        elif not self._networks and not self._is_listed(host, port) and _is_local(host):
            raise _private()
        shown = f"[{host}]" if ":" in host else host
        netloc = shown if port == _PORTS[parts.scheme] else f"{shown}:{port}"
        return urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))

    def check_addresses(self, origin: HttpOrigin, addresses: Sequence[Address]) -> None:
        """The addresses of a name, or the host's own address. One that is not allowed refuses all: a name
        with a public and a private address is an attack."""
        for _, text, _ in addresses:
            self._check_address(ipaddress.ip_address(text), origin.host, origin.port)

    def _check_address(self, address: IpAddress, host: str, port: int) -> None:
        listed = self._is_listed(host, port)
        if is_public(address) and (listed or port in _PORTS.values()):
            return
        listed = listed or any(
            _fits(allowed, port) and _is_in(address, (network,)) for network, allowed in self._networks
        )
        if not listed or not _is_in(address, _PRIVATE) or _is_in(address, _NEVER):
            raise _private()

    def _may_use(self, host: str, port: int) -> bool:
        """Whether some address of the host may be reached at the port; `_check_address` checks the
        address."""
        listed = self._is_listed(host, port) or any(_fits(allowed, port) for _, allowed in self._networks)
        return listed or port in _PORTS.values()

    def _is_listed(self, host: str, port: int) -> bool:
        return is_listed(self._listed, host, port)


def is_listed(listed: frozenset[tuple[str, int]], host: str, port: int) -> bool:
    """Whether a host is in a list of names and ports, in which port 0 means the default ones."""
    return (port != 0 and (host, port) in listed) or (port in _PORTS.values() and (host, 0) in listed)


def _fits(allowed: int, port: int) -> bool:
    return port == allowed if allowed else port in _PORTS.values()


def _split(url: str) -> SplitResult:
    # Characters that parsers disagree about: a backslash is a slash to browsers; urlsplit removes tabs.
    if any(character <= " " or character in "\\\x7f" for character in url) or not url.isprintable():
        raise _not_a_url()
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _not_a_url() from None
    if not parts.scheme or (parts.scheme in _PORTS and not parts.netloc):
        raise _not_a_url()
    path, query = (quote(text, safe=_SAFE) for text in (parts.path, parts.query))
    return SplitResult(parts.scheme, parts.netloc, path, query, "")


def _host(parts: SplitResult) -> str:
    try:
        given = parts.hostname or ""
    except ValueError:
        raise _not_a_url() from None
    if parts.netloc.startswith("["):
        try:
            address = ipaddress.IPv6Address(given)
        except ValueError:
            raise _not_a_url() from None
        if address.scope_id is not None:  # "%eth0" is not allowed in a URL
            raise _not_a_url()
        return str(address)
    host = ascii_host(given)
    if not _NAME.fullmatch(host):
        raise _not_a_url()
    if _is_number(host) and _literal(host) is None:
        # 2130706433, 0x7f.1, 0177.0.0.1, 127.1: resolvers take them for addresses, readers for names.
        raise WebFailed("url_not_allowed", "the host is an IPv4 address in an unusual spelling")
    return host


def _is_local(host: str) -> bool:
    """By the name alone: a host in the local network, or a top-level name without public pages."""
    return "." not in host or host.rpartition(".")[2] in _LOCAL_NAMES


def _is_number(host: str) -> bool:
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _literal(host: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        raise _not_a_url() from None
    return _PORTS[parts.scheme] if port is None else port


def _not_a_url() -> WebFailed:
    return WebFailed("invalid_tool_input", "this is not an absolute http:// or https:// URL")


def _private() -> WebFailed:
    """The same text for all of them: it does not reveal which addresses exist."""
    return WebFailed("url_not_allowed", "the URL does not lead to the public internet")
