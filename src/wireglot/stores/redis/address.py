"""What a `redis://` URL asks for: how keys begin, how the server is known, and who knows where it is."""

from __future__ import annotations

from ssl import SSLContext
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec

from wireglot.stores.base import StoreUnusable
from wireglot.stores.redis.tls import tls_context
from wireglot.stores.servers import read_host

DEFAULT_PREFIX: Final = "wireglot:"
_SENTINEL: Final = "+sentinel"
_SENTINEL_PORT: Final = 26_379
_ENCRYPTED: Final = {"redis": False, "rediss": True, "valkey": False, "valkeys": True}
_OURS: Final = ("prefix", "sentinel_username", "sentinel_password")


class RedisAddress(msgspec.Struct, frozen=True):
    url: str
    """As the driver reads it: without TLS, and with Sentinels its host stands for the primary they name."""
    prefix: str
    tls: SSLContext | None = None
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    """The name under which the Sentinels know the primary."""
    sentinel_username: str = ""
    sentinel_password: str = ""


def read_address(url: str) -> RedisAddress:
    """`redis+sentinel://[user:password@]a,b:26380,c/SERVICE[/DATABASE]`: user and password are for Redis;
    those for the Sentinels are `?sentinel_username=` and `?sentinel_password=`."""
    base, _, query = url.partition("?")
    scheme, _, rest = base.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    tls = tls_context(options, encrypted=_ENCRYPTED.get(scheme.removesuffix(_SENTINEL), False))
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
            "store.shared: each Sentinel is a host, or host:port, with commas between them"
        ) from None
