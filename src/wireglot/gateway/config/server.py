"""[server]: who may call the gateway, and where it listens."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from functools import cache
from pathlib import Path
from typing import Final

from wireglot.gateway.config.problems import kind, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table, declared
from wireglot.gateway.config.urls import is_local, is_loopback, split
from wireglot.gateway.settings import Secret, ServerSettings, StoreSettings, SyncOrder

_NAME: Final = "secret"
_READ_CHARACTERS: Final = 4096
_RANDOM_BYTES: Final = 32
_MIN_LENGTH: Final = declared(ServerSettings)["secret"].min_length


def server_secret(
    value: object, path: str, references: References, home: Path | None, *, create: bool
) -> Secret:
    """`home` is the directory for the user's data. With a new secret, the state sealed with the old one is
    lost."""
    if value is not None:
        return references.secret(value, path, _MIN_LENGTH) or ServerSettings().secret
    kept = _kept(home / _NAME, references, create) if home is not None else None
    if kept is not None:
        return kept
    references.notes.append(
        "no persistent secret: reasoning state sealed now is lost at the next start; set server.secret"
    )
    return Secret(_passing(), "random")


@cache
def _passing() -> str:
    """One secret for the lifetime of the process: a reload must not lose what was sealed before it."""
    return secrets.token_hex(_RANDOM_BYTES)


def _kept(place: Path, references: References, create: bool) -> Secret | None:
    try:
        text = _read(place, references)
        if text is None:
            if not create:
                return Secret(_passing(), f"file:{place}")  # the one that a start would create there
            _write(place)
            text = _read(place, references)
    except OSError as fault:
        references.notes.append(f"{place}: {fault.strerror or 'cannot be used'}")
        return None
    if text is None or len(text) < _MIN_LENGTH:
        references.notes.append(f"{place} contains no valid secret: remove the file to create a new one")
        return None
    return Secret(text, f"file:{place}")


def _read(place: Path, references: References) -> str | None:
    try:
        with place.open("r", encoding="ascii", errors="replace") as file:
            references.warn_if_open(place, os.fstat(file.fileno()).st_mode)
            return file.read(_READ_CHARACTERS).strip()
    except FileNotFoundError:
        return None


def _write(place: Path) -> None:
    """Atomic; if several processes start at once, only the first one's stays."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = place.with_name(f"{_NAME}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_RANDOM_BYTES) + "\n")
        try:
            os.link(draft, place)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not place.exists():
                draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


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
    """Refuse a server that others can reach without a key: they could spend the providers' keys."""
    if not keys and not server.require_key and not is_loopback(server.host):
        expected = "127.0.0.1, ::1 or localhost, a client key in [keys], or require_key = true"
        table.wrong("host", expected, f"{shown(server.host)} and no keys")


def _host(table: Table) -> str:
    host: str = table.read(ServerSettings, "host")
    if _HOST.fullmatch(host) and not _is_broken_address(host):
        return host
    table.wrong("host", "an address or a host name", shown(host))
    return ServerSettings().host


def _is_broken_address(host: str) -> bool:
    """Numbers and dots are an address, never a name (RFC 1123): 300.1.1.1 is neither."""
    if not re.fullmatch(r"[\d.]+", host):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False


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
    """Formerly any client's key gave access to the metrics, which cover all clients."""
    if (keys or server.require_key) and not server.metrics_key.value and not server.admin_secret.value:
        return ["/metrics is off, because client keys are not accepted for it: set server.metrics_key"]
    return []


_FILE: Final = "wireglot.db"
_ENGINES: Final = ("memory", "sqlite", "postgresql", "postgres")
_SCHEME_CHARACTERS: Final = 16
_SHARED: Final = tuple(
    f"{server}{more}" for server in ("redis", "rediss", "valkey", "valkeys") for more in ("", "+sentinel")
)


def read_store(table: Table, references: References, home: Path | None) -> StoreSettings:
    """`home` is the directory for the user's data; without one, nothing outlives the process."""
    default = StoreSettings()
    url = _url(table, "url", _ENGINES, 'memory:, "sqlite:///PATH" or "postgresql://..."', references)
    if url is None:
        url = default.url
        if home is not None and "url" not in table:
            url = Secret(f"sqlite://{home.absolute() / _FILE}", "default")
    url = Secret(_placed(url.value, references.base), url.source)
    redis = '"redis://..." or "redis+sentinel://..."'
    shared = _url(table, "shared", _SHARED, redis, references) or default.shared
    if "url" not in table and home is None:
        references.notes.append("no data directory: stored data is lost at the next start; set store.url")
    folder: str = table.read(StoreSettings, "folder")
    if folder:
        folder = str((references.base / folder).absolute())
    elif home is not None and not url.value.startswith("memory:"):
        folder = str(home.absolute())
    store = table.over(default, url=url, shared=shared, folder=folder, sync=_sync(table))
    table.close()
    return store


def shared_store_notes(store: StoreSettings, server: ServerSettings) -> list[str]:
    """Notes on silent failures."""
    notes = []
    is_shared = bool(store.shared.value) or store.url.value.startswith("postgres")
    if is_shared and server.secret.source.startswith(("file:", "random")):
        notes.append(
            "the store is shared, and server.secret is not: set the same server.secret on every "
            "machine, or machines cannot read each other's data"
        )
    if store.url.value.startswith("postgres") and _leaves_tls_open(store.url.value):
        notes.append(
            "store.url does not say sslmode: the server decides whether the connection is encrypted, and "
            "is not verified; say sslmode=verify-full, or sslmode=disable in a network that you trust"
        )
    if store.url.value.startswith("memory:") and server.workers > 1:
        notes.append(
            "each worker has a store in its own memory: set store.url, or conversations get lost between them"
        )
    return notes


def _leaves_tls_open(url: str) -> bool:
    base, _, query = url.partition("?")
    places = base.partition("://")[2].partition("/")[0].rpartition("@")[2].split(",")
    hosts = [place[1:].partition("]")[0] if place[:1] == "[" else place.partition(":")[0] for place in places]
    return not all(map(is_local, hosts)) and not any(name in query for name in ("sslmode=", "sslrootcert="))


def _sync(table: Table) -> SyncOrder:
    value = table.raw("sync")
    if type(value) is bool:  # the former form, before there were three values
        return "before" if value else "off"
    order: SyncOrder = table.read(StoreSettings, "sync")
    return order


def _url(
    table: Table, name: str, schemes: tuple[str, ...], expected: str, references: References
) -> Secret | None:
    value = table.raw(name)
    if value is None:
        return None
    found = references.secret(value, table.at(name))
    if found is None:
        return None
    scheme = found.value.partition(":")[0].lower()
    if scheme not in schemes or ":" not in found.value:
        # The rest may contain a password.
        table.wrong(name, expected, f"{scheme[:_SCHEME_CHARACTERS]}:..." if ":" in found.value else "no URL")
        return None
    return found


def _placed(url: str, base: Path) -> str:
    """A relative path of a file is relative to the configuration's folder."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or rest.startswith("///"):
        return url
    return f"sqlite://{(base / rest.removeprefix('//')).absolute()}"
