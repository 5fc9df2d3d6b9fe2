"""[server] and [limits]."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from wireglot.gateway.config.problems import kind, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.secret import SHORTEST, server_secret
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import is_loopback, split
from wireglot.gateway.settings import ProcessLimits, Secret, ServerSettings

_HOST: Final = re.compile(r"[A-Za-z0-9.:_%\[\]-]+")
_LOGS: Final = ("auto", "json", "pretty", "off")


def read_server(table: Table, references: References, home: Path | None, *, create: bool) -> ServerSettings:
    default = ServerSettings()
    host = table.text("host", default.host)
    if "host" in table and type(table.raw("host")) is str and not _HOST.fullmatch(host):
        table.wrong("host", "an address or a host name", shown(host))
        host = default.host
    server = ServerSettings(
        host=host,
        port=table.whole("port", default.port, 0, 65535),
        workers=table.whole("workers", default.workers, 1, 256),
        hosts=_hosts(table),
        origins=_origins(table),
        secret=server_secret(table.raw("secret"), table.at("secret"), references, home, create),
        old_secrets=_old_secrets(table, references),
        admin_secret=_admin_secret(table, references),
        require_key=table.flag("require_key", default.require_key),
        log=table.choice("log", _LOGS, default.log),
        telemetry=table.flag("telemetry", default.telemetry),
    )
    table.close()
    return server


def _old_secrets(table: Table, references: References) -> tuple[Secret, ...]:
    value = table.raw("old_secrets")
    if value is None:
        return ()
    if type(value) is not list:
        table.wrong("old_secrets", "a list of secrets", kind(value))
        return ()
    found = (references.secret(each, table.at("old_secrets")) for each in value)
    return tuple(secret for secret in found if secret is not None)


def _admin_secret(table: Table, references: References) -> Secret:
    value = table.raw("admin_secret")
    if value is None:
        return Secret("", "none")
    found = references.secret(value, table.at("admin_secret"))
    if found is not None and len(found.value) < SHORTEST:
        table.wrong(
            "admin_secret", f"a secret of {SHORTEST} characters or more", f"one of {len(found.value)}"
        )
    return found or Secret("", "none")


def refuse_open_door(server: ServerSettings, keys: int, table: Table) -> None:
    """Whoever can reach it could spend the providers' keys."""
    if not keys and not server.require_key and not is_loopback(server.host):
        expected = "127.0.0.1, ::1 or localhost, a client key in [keys], or require_key = true"
        table.wrong("host", expected, f"{shown(server.host)} and no keys")


_MAY_BE_NONE = frozenset({"queue", "queue_time", "requests", "requests_per_key", "drain", "drain_again"})


def read_guard(table: Table) -> ProcessLimits:
    guard = table.over(ProcessLimits())
    for name in guard.__struct_fields__:
        # Only those where none is a sensible number of things; anything else would refuse or hang everything.
        if getattr(guard, name) <= 0 and name not in _MAY_BE_NONE:
            table.wrong(name, "more than 0", "0")
    return guard


def _hosts(table: Table) -> tuple[str, ...]:
    hosts = table.texts("hosts", "a list of host names")
    for host in hosts:
        if not _HOST.fullmatch(host):
            table.wrong("hosts", "host names, without scheme or path", shown(host))
    return tuple(host.lower() for host in hosts)


def _origins(table: Table) -> tuple[str, ...]:
    origins = table.texts("origins", "a list of origins")
    for origin in origins:
        parts = split(origin)
        plain = parts is not None and parts.scheme and parts.netloc and f"{parts.scheme}://{parts.netloc}"
        if not plain or plain != origin or "*" in origin or "@" in origin:
            table.wrong(
                "origins", "origins like https://app.example.com", shown(origin) if plain else kind(origin)
            )
    return tuple(origin.lower() for origin in origins)
