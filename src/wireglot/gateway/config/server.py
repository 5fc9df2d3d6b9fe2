"""[server]: who may call the gateway, and where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from wireglot.gateway.config.declared import declared
from wireglot.gateway.config.problems import kind, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.secret import server_secret
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import is_loopback, split
from wireglot.gateway.settings import Secret, ServerSettings

_HOST: Final = re.compile(r"[A-Za-z0-9.:_%\[\]-]+")


def read_server(table: Table, references: References, home: Path | None, *, create: bool) -> ServerSettings:
    secret = server_secret(table.raw("secret"), table.at("secret"), references, home, create=create)
    server = table.over(
        ServerSettings(),
        host=_host(table),
        hosts=_hosts(table),
        origins=_origins(table),
        secret=secret,
        old_secrets=_old_secrets(table, references),
        admin_secret=_secret("admin_secret", table, references),
        metrics_key=_secret("metrics_key", table, references),
    )
    table.close()
    return server


def refuse_open_door(server: ServerSettings, keys: int, table: Table) -> None:
    """Whoever can reach it could spend the providers' keys."""
    if not keys and not server.require_key and not is_loopback(server.host):
        expected = "127.0.0.1, ::1 or localhost, a client key in [keys], or require_key = true"
        table.wrong("host", expected, f"{shown(server.host)} and no keys")


def _host(table: Table) -> str:
    host: str = table.read(ServerSettings, "host")
    if _HOST.fullmatch(host):
        return host
    table.wrong("host", "an address or a host name", shown(host))
    return ServerSettings().host


def _hosts(table: Table) -> tuple[str, ...]:
    hosts: tuple[str, ...] = table.read(ServerSettings, "hosts")
    for host in hosts:
        if not _HOST.fullmatch(host):
            table.wrong("hosts", "host names, without scheme or path", shown(host))
    return tuple(host.lower() for host in hosts)


def _origins(table: Table) -> tuple[str, ...]:
    origins: tuple[str, ...] = table.read(ServerSettings, "origins")
    for origin in origins:
        parts = split(origin)
        plain = parts is not None and parts.scheme and parts.netloc and f"{parts.scheme}://{parts.netloc}"
        if not plain or plain != origin or "*" in origin or "@" in origin:
            table.wrong(
                "origins", "origins like https://app.example.com", shown(origin) if plain else kind(origin)
            )
    return tuple(origin.lower() for origin in origins)


def _old_secrets(table: Table, references: References) -> tuple[Secret, ...]:
    value = table.raw("old_secrets")
    if value is None:
        return ServerSettings().old_secrets
    if type(value) is not list:
        table.wrong("old_secrets", declared(ServerSettings)["old_secrets"].expected, kind(value))
        return ()
    found = (references.secret(each, table.at("old_secrets")) for each in value)
    return tuple(secret for secret in found if secret is not None)


def _secret(name: str, table: Table, references: References) -> Secret:
    setting = declared(ServerSettings)[name]
    default: Secret = setting.default
    value = table.raw(name)
    if value is None:
        return default
    return references.secret(value, table.at(name), setting.min_length) or default


def metrics_notes(server: ServerSettings, keys: int) -> list[str]:
    """Any client's key opened the metrics before, which tell what all others do."""
    if (keys or server.require_key) and not server.metrics_key.value and not server.admin_secret.value:
        return ["/metrics is off, since clients' keys do not open it: set server.metrics_key"]
    return []
