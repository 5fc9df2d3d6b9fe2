"""The only entry point: file, environment and command line in; one Settings or all problems at once out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.gateway.config import providers as providing
from wireglot.gateway.config import read
from wireglot.gateway.config.environment import data_dir, overlaid
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.config.keys import read_groups, read_keys, read_managed
from wireglot.gateway.config.login import login_notes, read_login, with_public_host
from wireglot.gateway.config.models import (
    check_model,
    mixed_vectors,
    read_rules,
    retired_targets,
    unreachable_rules,
    without_providers,
)
from wireglot.gateway.config.prices import read_prices
from wireglot.gateway.config.problems import Problems, key_path
from wireglot.gateway.config.references import References
from wireglot.gateway.config.server import (
    metrics_notes,
    read_server,
    read_store,
    refuse_open_door,
    shared_store_notes,
)
from wireglot.gateway.config.table import Table, declared
from wireglot.gateway.config.urls import base_url
from wireglot.gateway.config.web import read_fetch, read_mcp, read_search
from wireglot.gateway.setting_tables import ManagedSettings, TelemetrySettings
from wireglot.gateway.settings import (
    ClientKey,
    Group,
    LoginSettings,
    Provider,
    Rule,
    Secret,
    ServerSettings,
    Settings,
)
from wireglot_core.plugins import load_dialects

_ONLY_DEMO: Final = (
    "only the embedded demo provider is on: no wireglot.toml, no provider's key in the environment"
)
_KEYS_VARIABLE: Final = declared(Settings)["keys"].env
_NONE_ON: Final = "no provider is on: add a [providers.NAME] table, or [providers.demo] to try it out"


def load(
    path: Path | None,
    *,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[str, Any] | None = None,
    create_secret: bool = True,
    content: bytes | None = None,
    keys_needed: bool = True,
    kept: Mapping[str, Secret] | None = None,
) -> Settings:
    """The settings of a file (or of none), overridden by the environment, and both by `overrides`.

    Without `create_secret` nothing is written to disk: for checks only. `content`: the file's content, if it
    was read already. Without `keys_needed`, a provider whose key is in an unset variable is off, for commands
    that do not call it. `kept`: keys by their variables, instead of those in the file of kept keys. Providers
    may speak the dialects of installed packages; BadPlugin if one of those cannot be loaded.
    """
    load_dialects()
    source = str(path) if path is not None else ""
    problems = Problems()
    document = overlaid(_document(path, content), environ, problems)
    references = _references(path, environ, problems, kept)
    whole = Table(read.with_overrides(document, overrides or {}), "", problems)

    table = whole.table("server")
    server = read_server(table, references, data_dir(environ), create=create_secret)
    limits = whole.read(Settings, "limits")
    access = _read_access(whole, references, server)
    server = with_public_host(server, access.login)
    store = read_store(whole.table("store"), references, data_dir(environ))
    references.notes += [*shared_store_notes(store, server), *metrics_notes(server, len(access.keys))]
    prices = read_prices(_given(whole, "prices"), problems)
    if not problems.found or not _touched(problems, "keys"):
        refuse_open_door(server, len(access.keys), table)
    routing = _read_routing(path, whole, references, keys_needed=keys_needed)
    currency = str(whole.values.get("currency") or Settings().currency)
    search = read_search(whole.raw("search"), references, key_needed=keys_needed, currency=currency)
    settings = whole.over(
        Settings(source=source),
        server=server,
        limits=limits,
        providers=routing.providers,
        rules=routing.rules,
        keys=access.keys,
        groups=access.groups,
        managed=access.managed,
        telemetry=_read_telemetry(whole.table("telemetry"), references),
        login=access.login,
        search=search,
        fetch=read_fetch(whole.raw("fetch"), search, references),
        mcp=read_mcp(whole.raw("mcp"), problems),
        store=store,
        prices=prices,
        off={name: unset.variable for name, unset in routing.off.items()},
    )
    _check_models(settings, routing, problems)
    whole.close()
    _warn_of_secrets(path, references)
    problems.raise_any(source)
    return msgspec.structs.replace(settings, notes=tuple(dict.fromkeys(references.notes)))


def _document(path: Path | None, content: bytes | None) -> dict[str, Any]:
    if path is None:
        return {}
    return read.document(path) if content is None else read.parse(content, str(path))


def _references(
    path: Path | None, environ: Mapping[str, str], problems: Problems, kept: Mapping[str, Secret] | None
) -> References:
    notes: list[str] = []
    keys_file = kept_file(environ)
    base = path.parent if path is not None else Path()
    found = read_kept(keys_file, notes) if kept is None else kept
    references = References(environ, base, problems, notes, kept=found)
    if keys_file is not None and found and kept is None:
        with suppress(OSError):  # deleted meanwhile
            references.warn_if_open(keys_file, keys_file.stat().st_mode)
    return references


def _warn_of_secrets(path: Path | None, references: References) -> None:
    """Note a configuration with secrets that others can read."""
    if references.literal and path is not None and path.exists():
        references.warn_if_open(path, path.stat().st_mode)


class _Access(msgspec.Struct, frozen=True):
    """Who may call, and how people sign in."""

    groups: dict[str, Group]
    keys: tuple[ClientKey, ...]
    managed: ManagedSettings
    login: LoginSettings | None


def _read_access(whole: Table, references: References, server: ServerSettings) -> _Access:
    problems = references.problems
    managed = read_managed(whole.table("claude_code"), ManagedSettings())
    groups = read_groups(_given(whole, "groups"), managed, problems)
    keys = read_keys(_given(whole, "keys"), groups, problems)
    login = read_login(whole.raw("login"), groups, server, references)
    references.notes.extend(login_notes(login, server, len(keys)))
    return _Access(groups, keys, managed, login)


class _Routing(msgspec.Struct, frozen=True):
    """The providers, and the rules by which a model's name gets one."""

    providers: dict[str, Provider]
    rules: tuple[Rule, ...]
    off: dict[str, providing.Unset]
    """Providers whose key is in an unset variable."""
    named: frozenset[str]
    """All names of providers, also of broken ones: those have a problem already."""

    @property
    def known(self) -> dict[str, Provider]:
        return {**self.providers, **{name: unset.provider for name, unset in self.off.items()}}


def _read_routing(path: Path | None, whole: Table, references: References, *, keys_needed: bool) -> _Routing:
    problems, notes = references.problems, references.notes
    off: dict[str, providing.Unset] = {}
    providers = providing.read_providers(
        _given(whole, "providers"), references, notes, None if keys_needed else off
    )
    if not providers and not off:
        providers = _fallback(path, problems, notes)
    elif path is not None:
        providers = _with_places(providers, path)
    named = frozenset({*providers, *_names(whole.values.get("providers"))})
    routing = _Routing(providers, (), off, named)
    known = routing.known
    rules = without_providers(read_rules(_given(whole, "models"), known, named, problems), off)
    notes.extend(retired_targets(rules, providers))
    notes.extend(mixed_vectors(rules, providers))
    notes.extend(unreachable_rules(rules, known))
    return msgspec.structs.replace(routing, rules=rules)


def _check_models(settings: Settings, routing: _Routing, problems: Problems) -> None:
    """Report settings that name a model without a route."""
    checks = {
        "safeguards.model": settings.safeguards,
        **{
            f"{key_path('groups', name)}.safeguards.model": each.safeguards
            for name, each in settings.groups.items()
        },
        "search.model": settings.search,
    }
    for place, check in checks.items():
        if check is not None:
            check_model(check.model, place, routing.rules, routing.known, routing.named, problems)


def _read_telemetry(table: Table, references: References) -> TelemetrySettings:
    forward = base_url(table, "forward", "")
    headers = providing.read_headers(table, None, references)
    table.close()
    return TelemetrySettings(forward, headers)


def _with_places(providers: dict[str, Provider], path: Path) -> dict[str, Provider]:
    """The providers with the place of their configuration, for run-time errors."""
    lines = read.table_lines(path, "providers")
    return {
        name: msgspec.structs.replace(provider, stated=f"{path}:{lines[name]}") if name in lines else provider
        for name, provider in providers.items()
    }


def _given(whole: Table, name: str) -> Any:
    value = whole.raw(name)
    return {} if value is None else value


def _names(value: object) -> Iterable[str]:
    return value if isinstance(value, Mapping) else ()


def _touched(problems: Problems, table: str) -> bool:
    """A misspelled key must not be reported as a missing one, too."""
    return any(problem.path.startswith((table, _KEYS_VARIABLE)) for problem in problems.found)


def _fallback(path: Path | None, problems: Problems, notes: list[str]) -> dict[str, Provider]:
    """Used if no provider is on. Without a configuration that is the demo; a file that names no provider gets
    what it says."""
    if problems.found:
        return {}
    if path is None:
        notes.append(_ONLY_DEMO)
        return {providing.DEMO: providing.demo()}
    notes.append(_NONE_ON)
    return {}
