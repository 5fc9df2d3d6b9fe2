"""Parses a `postgresql://` URL: schema, hosts, a pooler, and how the server is verified."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import msgspec

from wireglot.stores.base import StoreUnusable
from wireglot.stores.servers import Host, read_host, read_port

_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES: Final = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_SYSTEM: Final = "system"
"""As in libpq 16: the system's authorities, in place of a file."""
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Raises StoreUnusable if an option is invalid or its file cannot be used."""
    authority = options.get("sslrootcert", "")
    mode = options.get("sslmode", "verify-full" if authority else "")
    if mode and mode not in _MODES:
        raise StoreUnusable(f"store.url: sslmode must be one of {', '.join(_MODES)}")
    if authority and mode in ("disable", "allow", "prefer"):
        raise StoreUnusable(f"store.url: sslrootcert has no effect with sslmode={mode}; use verify-full")
    for name in _FILES:
        path = options.get(name)
        if path and path != _SYSTEM and not os.access(path, os.R_OK):
            raise StoreUnusable(f"store.url: the file that {name} names cannot be read")
    if not mode.startswith("verify") and not authority:
        return None
    # libpq's rule: with an authority, `require` verifies the certificate, but not its name.
    return _verifying(options, authority or _usual_authority(), check_name=mode == "verify-full")


def _verifying(options: Mapping[str, str], authority: str, *, check_name: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if authority == _SYSTEM else authority)
        if options.get("sslcrl"):
            context.load_verify_locations(cafile=options["sslcrl"])
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN
        if options.get("sslcert"):
            secret = options.get("sslpassword", "")
            context.load_cert_chain(options["sslcert"], options.get("sslkey") or None, lambda: secret)
    except (OSError, ValueError):
        raise StoreUnusable("store.url: a certificate, key or list of revoked ones cannot be used") from None
    context.check_hostname = check_name
    context.minimum_version = _version(options, "ssl_min_protocol_version", ssl.TLSVersion.TLSv1_2)
    context.maximum_version = _version(options, "ssl_max_protocol_version", ssl.TLSVersion.MAXIMUM_SUPPORTED)
    context.set_alpn_protocols(["postgresql"])
    return context


def _version(options: Mapping[str, str], name: str, default: ssl.TLSVersion) -> ssl.TLSVersion:
    if not options.get(name):
        return default
    if options[name] not in _VERSIONS:
        raise StoreUnusable(f"store.url: {name} must be one of {', '.join(_VERSIONS)}")
    return _VERSIONS[options[name]]


def _usual_authority() -> str:
    """libpq's locations, before the system's."""
    named = os.environ.get("PGSSLROOTCERT", "")
    own = Path("~/.postgresql/root.crt").expanduser()
    return named or (str(own) if own.is_file() else _SYSTEM)


DEFAULT_SCHEMA: Final = "wireglot"
_NAME_MAX_BYTES: Final = 63
"""Bytes of the name of a PostgreSQL schema: a longer one would be truncated silently, and two schemas could
become one."""
_PLACE: Final = "expected a host, host:port or several with commas; one port for all, or one for each"
_OURS: Final = ("schema", "pooler")
_WRITERS: Final = ("any", "primary", "read-write")
"""Values of target_session_attrs with which a store can be written."""


class PostgresAddress(msgspec.Struct, frozen=True):
    dsn: str
    """In the driver's format."""
    schema: str
    hosts: tuple[Host, ...] = ()
    """Set if there are several, one of which accepts writes."""
    writer: str = "any"
    """Which of them to use: target_session_attrs."""
    pooled: bool = False
    """A pooler gives every transaction another session: no state of a session can be relied on."""
    tls: SSLContext | None = None
    """None: as the driver interprets `sslmode`."""

    @property
    def quoted_schema(self) -> str:
        return '"' + self.schema.replace('"', '""') + '"'


def read_address(url: str) -> PostgresAddress:
    """`?schema=` and `?pooler=transaction` are ours; the other options have libpq's meaning."""
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
        # Neither name nor port is repeated: a part of a password with special characters may have been parsed
        # as one.
        raise StoreUnusable(f"store.url: not a PostgreSQL URL: {_PLACE}") from None
    several = len(hosts) > 1
    # A pooler follows a failover itself, and its server cannot be queried outside of a transaction.
    writer = options.get("target_session_attrs", "read-write" if several and not pooled else "any")
    if writer not in _WRITERS:
        raise StoreUnusable(f"store.url: target_session_attrs must be one of {', '.join(_WRITERS)}")
    others = urlencode([(name, value) for name, value in pairs if name not in _OURS])
    return PostgresAddress(
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


_KNOWN_SHARE: Final = 0.4
"""The share of the time limit that the host of the last connection gets alone."""


class HostConnector:
    """Called by the driver's pool for a new connection.

    The driver itself tries the hosts in turn within one time limit: a first one that does not answer (its
    machine is down, nothing refuses) would always use it up. Here the last successful host is tried first,
    and then all of them at once.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._known: Host | None = None

    async def connect(self, dsn: str, *, timeout: float, **options: Any) -> Any:
        def to(host: Host, seconds: float) -> Coroutine[Any, Any, Any]:
            return asyncpg.connect(  # type: ignore[no-any-return]  # it ships no types
                dsn,
                host=host[0],
                port=host[1],
                timeout=seconds,
                target_session_attrs=self._address.writer,
                **options,
            )

        # Unknown until it answers again: the caller may be cancelled before the time is up.
        known, self._known = self._known, None
        if known is not None:
            with suppress(
                OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError
            ):
                connection = await to(known, timeout * _KNOWN_SHARE)
                self._known = known
                return connection
        return await self._first(lambda host: to(host, timeout * (1 - _KNOWN_SHARE)))

    async def _first(self, to: Callable[[Host], Coroutine[Any, Any, Any]]) -> Any:
        tasks = {asyncio.create_task(to(host)): host for host in self._address.hosts}
        problems: list[BaseException] = []
        waiting = set(tasks)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if (problem := task.exception()) is None:
                        self._known = tasks.pop(task)
                        return task.result()
                    problems.append(problem)
        finally:
            await _drop(list(tasks))
        raise max(problems, key=_weight)


async def _drop(tasks: list[asyncio.Task[Any]]) -> None:
    """Also closes one that connected at the same moment as the one that is used."""
    for task in tasks:
        task.cancel()
    for late in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(late, BaseException):
            late.terminate()


def _weight(problem: BaseException) -> int:
    """A server's answer is more informative than another server's absence."""
    if isinstance(problem, asyncpg.PostgresError):
        return 3
    if isinstance(problem, asyncpg.TargetServerAttributeNotMatched):
        return 2
    return 0 if isinstance(problem, TimeoutError) else 1
