"""What a `postgresql://` URL asks for: a schema, hosts, a pooler on the way, and how the server is known."""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLContext
from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from wireglot.stores.base import StoreUnusable
from wireglot.stores.postgres.tls import tls_context
from wireglot.stores.servers import Host, read_host, read_port

DEFAULT_SCHEMA: Final = "wireglot"
_NAME_MAX_BYTES: Final = 63
"""PostgreSQL would cut a longer one silently, and two schemas could become one."""
_PLACE: Final = "expected a host, host:port or several with commas; one port for all, or one for each"
_OURS: Final = ("schema", "pooler")
_WRITERS: Final = ("any", "primary", "read-write")
"""Values of target_session_attrs with which a store can be written."""


class Address(msgspec.Struct, frozen=True):
    dsn: str
    """As the driver reads it."""
    schema: str
    hosts: tuple[Host, ...] = ()
    """Where there are several, one of which takes writes."""
    writer: str = "any"
    """Which of them: target_session_attrs."""
    pooled: bool = False
    """A pooler gives every transaction another session: nothing of a session may be relied on."""
    tls: SSLContext | None = None
    """None: as the driver reads `sslmode`."""

    @property
    def quoted_schema(self) -> str:
        return '"' + self.schema.replace('"', '""') + '"'


def read_address(url: str) -> Address:
    """`?schema=` and `?pooler=transaction` are ours; the other options mean what they mean to libpq."""
    base, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    schema = options.get("schema", DEFAULT_SCHEMA)
    if not schema or "\0" in schema or len(schema.encode("utf-8", "replace")) > _NAME_MAX_BYTES:
        raise StoreUnusable(f"store.url: schema must be a name of 1 to {_NAME_MAX_BYTES} bytes")
    if options.get("pooler", "transaction") != "transaction":
        raise StoreUnusable("store.url: pooler must be transaction, or be left out")
    pooled = "pooler" in options
    try:
        hosts = _hosts(base, options)
    except ValueError:
        # Neither name nor port is repeated: a password with a sign in it may have been read as one.
        raise StoreUnusable(f"store.url: not a PostgreSQL URL: {_PLACE}") from None
    several = len(hosts) > 1
    # A pooler follows a failover itself, and what it leads to cannot be asked outside of a transaction.
    writer = options.get("target_session_attrs", "read-write" if several and not pooled else "any")
    if writer not in _WRITERS:
        raise StoreUnusable(f"store.url: target_session_attrs must be one of {', '.join(_WRITERS)}")
    others = urlencode([(name, value) for name, value in pairs if name not in _OURS])
    return Address(
        dsn=f"{base}?{others}" if others else base,
        schema=schema,
        hosts=hosts if several else (),
        writer=writer,
        pooled=pooled,
        tls=tls_context(options),
    )


def _hosts(base: str, options: Mapping[str, str]) -> tuple[Host, ...]:
    """`a,b:5433` between user and database, or `?host=a,b&port=5432,5433`."""
    place = base.partition("://")[2].partition("/")[0].rpartition("@")[2]
    if place:
        return tuple(map(read_host, place.split(",")))
    names = [name for name in options.get("host", "").split(",") if name]
    ports = [read_port(port) for port in options.get("port", "").split(",")]
    return tuple(zip(names, ports * len(names) if len(ports) == 1 else ports, strict=True))
