"""Parses a `redis://` URL: the prefix of keys, how the server is verified, and its Sentinels."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from ssl import SSLContext
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec

from wireglot.stores.base import StoreUnusable
from wireglot.stores.servers import read_host

_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OPTIONS: Final = (
    *_FILES, "ssl_ca_path", "ssl_ca_data", "ssl_cert_reqs", "ssl_check_hostname", "ssl_password",
)  # fmt: skip
_CHECKS: Final = {"required": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}
_FALSE: Final = ("0", "f", "false", "n", "no")
"""As the driver parses it."""


def tls_context(options: Mapping[str, str], *, encrypted: bool) -> ssl.SSLContext | None:
    """From the options that begin with `ssl_`. Raises StoreUnusable if one is invalid."""
    named = [name for name in options if name.startswith("ssl_")]
    if not encrypted:
        if named:
            raise StoreUnusable("store.shared: ssl_... needs a rediss:// URL; redis:// is not encrypted")
        return None
    if not set(named) <= set(_OPTIONS):
        raise StoreUnusable(f"store.shared: of the options ssl_... these are known: {', '.join(_OPTIONS)}")
    check = options.get("ssl_cert_reqs", "required")
    if check not in _CHECKS:
        raise StoreUnusable(f"store.shared: ssl_cert_reqs must be one of {', '.join(_CHECKS)}")
    for name in _FILES:
        if name in options and not os.access(options[name], os.R_OK):
            raise StoreUnusable(f"store.shared: the file that {name} names cannot be read")
    try:
        context = ssl.create_default_context(
            cafile=options.get("ssl_ca_certs"),
            capath=options.get("ssl_ca_path"),
            cadata=options.get("ssl_ca_data"),
        )
        if "ssl_certfile" in options:
            secret = options.get("ssl_password", "")
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), lambda: secret)
    except (OSError, ValueError):
        raise StoreUnusable("store.shared: a certificate or key cannot be used") from None
    by_name = options.get("ssl_check_hostname", "true").lower() not in _FALSE
    context.check_hostname = by_name and check != "none"
    context.verify_mode = _CHECKS[check]
    return context


DEFAULT_PREFIX: Final = "wireglot:"
_SENTINEL: Final = "+sentinel"
_SENTINEL_PORT: Final = 26_379
_ENCRYPTED: Final = ("rediss", "valkeys")
_OURS: Final = ("prefix", "sentinel_username", "sentinel_password")


class RedisAddress(msgspec.Struct, frozen=True):
    url: str
    """In the driver's format: without TLS, and with Sentinels its host is a placeholder for the primary."""
    prefix: str
    tls: SSLContext | None = None
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    """The Sentinels' name of the primary."""
    sentinel_username: str = ""
    sentinel_password: str = ""


def read_address(url: str) -> RedisAddress:
    """`redis+sentinel://[user:password@]a,b:26380,c/SERVICE[/DATABASE]`: user and password are for Redis;
    those for the Sentinels are `?sentinel_username=` and `?sentinel_password=`."""
    base, _, query = url.partition("?")
    scheme, _, rest = base.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    tls = tls_context(options, encrypted=scheme.removesuffix(_SENTINEL) in _ENCRYPTED)
    prefix = options.get("prefix", DEFAULT_PREFIX)
    others = urlencode(
        {name: value for name, value in options.items() if name not in _OURS and not name.startswith("ssl_")}
    )
    more = f"?{others}" if others else ""
    if not scheme.endswith(_SENTINEL):
        if "sentinel_password" in options or "sentinel_username" in options:
            raise StoreUnusable(f"store.shared: sentinel_... needs a {scheme}{_SENTINEL}:// URL")
        return RedisAddress(f"redis:{rest}{more}", prefix, tls)
    place, _, path = rest.removeprefix("//").partition("/")
    user, at, hosts = place.rpartition("@")
    service, _, database = path.partition("/")
    if not service:
        raise StoreUnusable("store.shared: after the Sentinels comes the primary's name: .../mymaster")
    return RedisAddress(
        f"redis://{user}{at}primary/{database}{more}",
        prefix,
        tls,
        sentinels=_sentinels(hosts),
        service=unquote(service),
        sentinel_username=options.get("sentinel_username", ""),
        sentinel_password=options.get("sentinel_password", ""),
    )


def _sentinels(hosts: str) -> tuple[tuple[str, int], ...]:
    try:
        return tuple((name, port or _SENTINEL_PORT) for name, port in map(read_host, hosts.split(",")))
    except ValueError:
        raise StoreUnusable(
            "store.shared: each Sentinel is a host, or host:port, separated by commas"
        ) from None
