"""[store]: where the gateway remembers, and for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import is_local
from wireglot.gateway.settings import Secret, ServerSettings, StoreSettings, SyncOrder

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
        references.notes.append(
            "no directory for data: what is stored is gone at the next start; set store.url"
        )
    folder: str = table.read(StoreSettings, "folder")
    if folder:
        folder = str((references.base / folder).absolute())
    elif home is not None and not url.value.startswith("memory:"):
        folder = str(home.absolute())
    store = table.over(default, url=url, shared=shared, folder=folder, sync=_sync(table))
    table.close()
    return store


def shared_store_notes(store: StoreSettings, server: ServerSettings) -> list[str]:
    """What would go wrong in silence."""
    notes = []
    is_shared = bool(store.shared.value) or store.url.value.startswith("postgres")
    if is_shared and server.secret.source.startswith(("file:", "random")):
        notes.append(
            "the store is shared, and server.secret is this machine's own: set it, the same on every "
            "machine, or none can read what another has stored"
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
    if type(value) is bool:  # what it was before there were three ways
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
        # The rest may hold a password.
        table.wrong(name, expected, f"{scheme[:_SCHEME_CHARACTERS]}:..." if ":" in found.value else "no URL")
        return None
    return found


def _placed(url: str, base: Path) -> str:
    """A relative path of a file is meant from where the configuration lies."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or rest.startswith("///"):
        return url
    return f"sqlite://{(base / rest.removeprefix('//')).absolute()}"
