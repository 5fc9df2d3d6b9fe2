"""Checks of the configuration, its files, unsafe settings and versions."""

from __future__ import annotations

import os
import platform
import re
import stat
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from wireglot import __version__
from wireglot.cli.argument_parser import near
from wireglot.cli.ask_providers import lacking
from wireglot.cli.doctor.case import DoctorCase, DoctorFinding, note, ok, problem, warning
from wireglot.cli.process_setup import DEBUGGABLE
from wireglot.cli.run.launch import KEY
from wireglot.cli.terminal import count
from wireglot.gateway.config import read
from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir, data_dir, variables
from wireglot.gateway.config.kept_keys import kept_file
from wireglot.gateway.config.problems import ConfigError, ConfigProblem
from wireglot.gateway.config.urls import is_local, is_loopback
from wireglot.gateway.settings import Secret, ServerSettings, Settings
from wireglot.stores import StoreUnusable
from wireglot.stores.open import sqlite_path
from wireglot.stores.sqlite.file import require_version, sqlite_version
from wireglot_core.extras import install_hint
from wireglot_core.wire.scan import IS_NATIVE

_REPORTED_ELSEWHERE: Final = re.compile(
    r"provider \S+ is (?:on|off):|only the embedded demo|no provider is on"
    r"|.* others on this machine can read it|.* is called over http,"
)
"""Notes of the configuration that other checks report, with a fix."""
_OURS: Final = "WIREGLOT_"
_LESSER: Final = "/metrics "
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]+")


def look_at_configuration(case: DoctorCase) -> Iterator[DoctorFinding]:
    yield from _misspelt(case)
    if case.error is not None:
        for each in case.error.problems:
            yield _wrong(case, each)
        return
    settings = case.loaded
    if case.path is None:
        yield note("no wireglot.toml: providers are enabled by API keys in the environment", "wireglot init")
    else:
        reported = [count(len(settings.providers), "provider")]
        reported += [count(len(settings.rules), "rule")] if settings.rules else []
        reported += [count(len(settings.keys), "client key")] if settings.keys else []
        yield ok(f"{case.path}{_found_where(case)} loads: {', '.join(reported)}")
    if not settings.providers:
        yield problem("no provider is on: every request is refused", f"[providers.demo] in {case.file}")
    for lack in lacking(settings.notes):
        yield note(
            f"{lack.provider} is off: {lack.variable} is set, but {lack.problem}",
            f"set {lack.wanted or lack.variable}, or [providers.{lack.provider}] in {case.file}",
        )
    for text in settings.notes:
        if not _REPORTED_ELSEWHERE.match(text):
            yield _of_note(text)


def _found_where(case: DoctorCase) -> str:
    """For users who have several configuration files."""
    if str(case.path) == case.environ.get(CONFIG_VARIABLE):
        return f" (set by {CONFIG_VARIABLE})"
    folder = config_dir(case.environ)
    own = folder / CONFIG_FILE if folder is not None else None
    if case.path is None or own is None or not own.is_file() or case.path.absolute() == own.absolute():
        return ""
    return f" (not {own})"


def _misspelt(case: DoctorCase) -> Iterator[DoctorFinding]:
    """Reports variables with a typo, which would be ignored silently."""
    known = {CONFIG_VARIABLE, KEY, DEBUGGABLE, *(setting.env for _, setting in variables())}
    meant = {name.removeprefix(_OURS): name for name in known}
    for name in sorted(case.environ):
        if name.startswith(_OURS) and name not in known:
            nearest = near(name.removeprefix(_OURS), meant)
            if nearest:
                yield warning(f"{name} is set but unused", f"did you mean {meant[nearest]}?")


def _wrong(case: DoctorCase, each: ConfigProblem) -> DoctorFinding:
    text = f"{each.path}: expected {each.expected}, found {each.found}"
    if _VARIABLE.fullmatch(each.path):
        return problem(text, f"set the variable {each.path} to that, or unset it")
    if each.expected == "a file that can be read":
        return problem(text, "wireglot init, or name another file with --config")
    return problem(text, f"correct it in {case.file}; verify with `wireglot config check`")


def _of_note(text: str) -> DoctorFinding:
    """Notes end with the advice: `no persistent secret: ... is lost at the next start; set server.secret`."""
    at = max(text.rfind("; "), text.rfind(": "))
    what, advice = (text[:at], text[at + 2 :]) if at > 0 else (text, "wireglot config check")
    return (note if text.startswith(_LESSER) else warning)(what, advice)


_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
_READERS: Final = stat.S_IRGRP | stat.S_IROTH


def look_at_files(case: DoctorCase) -> Iterator[DoctorFinding]:
    if os.name != "posix":
        return
    seen = 0
    for place, holds in dict(_places(case)).items():
        try:
            mode = place.stat().st_mode
        except OSError:
            continue
        seen += 1
        wanted = _FOLDER_MODE if stat.S_ISDIR(mode) else _FILE_MODE
        if mode & (_OTHERS if stat.S_ISDIR(mode) else _READERS):
            yield _open(place, holds, wanted)
    if seen:
        yield ok(f"{seen} files and folders with secrets or data checked")


def _places(case: DoctorCase) -> Iterator[tuple[Path, str]]:
    home = data_dir(case.environ)
    if home is not None:
        yield home, "contains the gateway's data"
        yield home / "secret", "contains the secret that encrypts stored data"
    kept = kept_file(case.environ)
    if kept is not None:
        yield kept, "contains provider keys"
    if case.path is not None:
        if _holds_secrets(case):
            yield case.path, "contains a secret"
        for file in _referred(case.path):
            yield file, "contains a secret"
    if case.settings is not None and case.settings.store.url.value.startswith("sqlite:"):
        yield (
            Path(sqlite_path(case.settings.store.url.value.partition(":")[2])),
            "contains stored data of callers",
        )


def _holds_secrets(case: DoctorCase) -> bool:
    if case.settings is None:
        return False
    server = case.settings.server
    own = (server.secret, server.admin_secret, server.metrics_key, *server.old_secrets)
    keys = (
        credential.secret
        for provider in case.settings.providers.values()
        for credential in provider.credentials
    )
    search = case.settings.search
    searching = (search.key,) if search is not None else ()
    return any(secret.value and secret.source == "config" for secret in (*own, *keys, *searching))


def _referred(path: Path) -> list[Path]:
    try:
        return list(read.referred_files(read.document(path), path.parent))
    except ConfigError:
        return []


def _open(place: Path, holds: str, wanted: int) -> DoctorFinding:
    text = f"{place} {holds}, and other users on this machine can read it"
    fix = f"chmod {wanted:o} {place}"
    owned = place.stat().st_uid == os.geteuid()
    return warning(text, fix, partial(place.chmod, wanted) if owned else None)


_MIN_DISTINCT: Final = 9
"""Of 32 random hex digits about 14 differ; `changeme-changeme` has eight different characters."""
_MIN_KEY_LETTERS: Final = 8
_MAKE_SECRET: Final = "openssl rand -hex 32"


def look_at_safety(case: DoctorCase) -> Iterator[DoctorFinding]:
    found = [*_doors(case), *_secrets(case), *_ways(case), *_durability(case)]
    yield from found
    if all(finding.grade == "ok" for finding in found):
        yield ok("no unsafe settings")


def _doors(case: DoctorCase) -> Iterator[DoctorFinding]:
    server = case.loaded.server
    asks = bool(case.client_keys) or server.require_key
    if is_loopback(server.host):
        yield ok(f"reachable from this machine only, {'with' if asks else 'without'} a client key")
        return
    yield note(
        f"it listens on {server.host} without TLS: keys and conversations are not encrypted in transit",
        "put a TLS reverse proxy in front of it (docs/operations.md, nginx), or listen on 127.0.0.1",
    )
    if not case.client_keys and case.loaded.store.url.value.startswith("sqlite:"):
        yield warning("it requires a client key, but none exists", "wireglot keys create NAME")


def _secrets(case: DoctorCase) -> Iterator[DoctorFinding]:
    server: ServerSettings = case.loaded.server
    named = {
        "secret": (server.secret, "WIREGLOT_SECRET"),
        "admin_secret": (server.admin_secret, "WIREGLOT_ADMIN_SECRET"),
        "metrics_key": (server.metrics_key, "WIREGLOT_METRICS_KEY"),
    }
    for name, (secret, variable) in named.items():
        if secret.value and _is_weak(secret.value):
            yield warning(f"server.{name} is easy to guess", f'export {variable}="$({_MAKE_SECRET})"')
        if secret.source == "config":
            yield _written(case, f"server.{name}", f'[server] in {case.file}: {name} = "env:{variable}"')
    login = case.loaded.login
    if login is not None and login.client_secret.source == "config":
        fix = f'[login] in {case.file}: client_secret = "env:NAME"'
        yield _written(case, "login.client_secret", fix)
    search = case.loaded.search
    if search is not None and search.key.value and search.key.source == "config":
        yield _written(case, "search.key", f'[search] in {case.file}: key = "env:NAME"')
    if server.admin_secret.value and server.admin_secret.value in (
        server.secret.value,
        server.metrics_key.value,
    ):
        yield warning(
            "server.admin_secret has the same value as another secret of the server",
            f'export WIREGLOT_ADMIN_SECRET="$({_MAKE_SECRET})"',
        )
    if not is_loopback(server.host) and not server.admin_secret.value:
        yield note(
            "no admin secret: keys can be created and revoked on this machine only",
            f'export WIREGLOT_ADMIN_SECRET="$({_MAKE_SECRET})"',
        )
    for provider in case.loaded.providers.values():
        if any(_is_secret_text(credential.secret) for credential in provider.credentials):
            variable = (*provider.spec.api_key_env, "NAME")[0]
            table = f"[providers.{provider.name}]"
            yield _written(case, f"the key of {table}", f'{table} in {case.file}: api_key = "env:{variable}"')


def _written(case: DoctorCase, what: str, fix: str) -> DoctorFinding:
    return warning(f"{what} is in clear text in {case.file}", fix)


def _is_secret_text(secret: Secret) -> bool:
    """Whether it is a real secret: a placeholder for a server that requires some key is not."""
    return secret.source == "config" and len(secret.value) >= _MIN_KEY_LETTERS


def _is_weak(value: str) -> bool:
    return len(set(value)) < _MIN_DISTINCT


def _ways(case: DoctorCase) -> Iterator[DoctorFinding]:
    for provider in case.loaded.providers.values():
        for url in dict.fromkeys((provider.spec.base_url, *provider.spec.base_urls.values())):
            place = urlsplit(url)
            if place.scheme == "http" and not is_local(place.hostname or ""):
                yield warning(
                    f"{provider.name}: {place.hostname} uses unencrypted http",
                    f'[providers.{provider.name}] in {case.file}: base_url = "https://..."',
                )
    shared = urlsplit(case.loaded.store.shared.value)
    options = dict(parse_qsl(shared.query))
    if options.get("ssl_cert_reqs") in ("none", "optional") or options.get("ssl_check_hostname") in (
        "false",
        "0",
    ):
        yield warning(
            "store.shared: the certificate of Redis is not verified",
            "remove ssl_cert_reqs and ssl_check_hostname from store.shared",
        )
    elif shared.scheme in ("redis", "valkey") and not is_local(shared.hostname or ""):
        yield warning(
            f"store.shared: the connection to {shared.hostname} does not use TLS", "rediss:// in store.shared"
        )
    url = case.loaded.store.url.value
    mode = dict(parse_qsl(url.partition("?")[2])).get("sslmode", "")
    is_unverified = url.startswith("postgres") and mode in ("disable", "allow", "prefer", "require")
    # One of several hosts may be anywhere.
    if is_unverified and ("," in url or not is_local(urlsplit(url).hostname or "")):
        yield warning(
            f"store.url: sslmode={mode} does not verify the server's identity",
            "sslmode=verify-full in store.url",
        )


def _durability(case: DoctorCase) -> Iterator[DoctorFinding]:
    if case.loaded.store.sync == "off":
        yield warning(
            'store.sync is "off": a power cut loses the records of the last requests',
            f'[store] in {case.file}: sync = "during"',
        )
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield note(
            "running as root: a gateway needs no root privileges",
            "run it as a dedicated user (docs/operations.md, systemd)",
        )


_NEEDED: Final = {
    "PostgreSQL (store.url)": ("asyncpg", "fleet"),
    "Redis (store.shared)": ("redis", "fleet"),
    "OpenTelemetry (server.telemetry)": ("opentelemetry.sdk", "otel"),
}


def look_at_versions(case: DoctorCase) -> Iterator[DoctorFinding]:
    system = f"{platform.system()} {platform.machine()}".strip()
    program = f"wireglot {__version__}" if IS_NATIVE else f"wireglot {__version__} (pure Python)"
    yield ok(f"{program}, Python {platform.python_version()}, SQLite {sqlite_version()}, {system}")
    try:
        require_version()
    except StoreUnusable as fault:
        yield problem(str(fault), "pip install -U apsw")
    if os.name != "posix":
        yield note(
            "`wireglot run` can start clients on POSIX systems only",
            "wireglot serve, and wireglot run CLIENT --print-env",
        )
    if case.settings is not None:
        for what in _wanted(case.settings):
            module, extra = _NEEDED[what]
            if not _is_installed(module):
                yield problem(f"{what} needs the package {module.partition('.')[0]}", install_hint(extra))


def _wanted(settings: Settings) -> Iterator[str]:
    store = settings.store
    if store.url.value.startswith("postgres"):
        yield "PostgreSQL (store.url)"
    if store.shared.value:
        yield "Redis (store.shared)"
    if settings.server.telemetry:
        yield "OpenTelemetry (server.telemetry)"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent package
        return False
