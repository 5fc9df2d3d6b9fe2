"""Settings that work and are unsafe: who may call, what is encrypted, what survives a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, warning
from wireglot.gateway.config.urls import is_local, is_loopback
from wireglot.gateway.settings import Secret, ServerSettings

_DISTINCT_LEAST: Final = 8
"""Of 32 random hex digits about 14 differ; `changeme-changeme` has seven."""
_MAKE_SECRET: Final = "openssl rand -hex 32"


def look_at_safety(case: Case) -> Iterator[Finding]:
    found = [*_doors(case), *_secrets(case), *_ways(case), *_durability(case)]
    yield from found
    if all(finding.grade == "ok" for finding in found):
        yield ok("no unsafe setting")


def _doors(case: Case) -> Iterator[Finding]:
    server = case.loaded.server
    asks = bool(case.client_keys) or server.require_key
    if is_loopback(server.host):
        yield ok(f"only this machine can call, and {'needs a client key' if asks else 'needs no client key'}")
        return
    yield note(
        f"it listens on {server.host} without TLS: keys and conversations can be read on the way",
        "put a proxy with TLS before it (docs/operations.md, nginx), or listen on 127.0.0.1",
    )
    if not case.client_keys and case.loaded.store.url.value.startswith("sqlite:"):
        yield warning("it asks for a client key, and there is none", "wireglot keys create NAME")


def _secrets(case: Case) -> Iterator[Finding]:
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
    if server.admin_secret.value and server.admin_secret.value in (
        server.secret.value,
        server.metrics_key.value,
    ):
        yield warning(
            "server.admin_secret is also another secret of the server",
            f'export WIREGLOT_ADMIN_SECRET="$({_MAKE_SECRET})"',
        )
    if not is_loopback(server.host) and not server.admin_secret.value:
        yield note(
            "there is no admin secret: keys can be made and revoked on this machine only",
            f'export WIREGLOT_ADMIN_SECRET="$({_MAKE_SECRET})"',
        )
    for provider in case.loaded.providers.values():
        if any(_is_secret_text(credential.secret) for credential in provider.credentials):
            variable = (*provider.spec.api_key_env, "NAME")[0]
            table = f"[providers.{provider.name}]"
            yield _written(case, f"the key of {table}", f'{table} in {case.file}: api_key = "env:{variable}"')


def _written(case: Case, what: str, fix: str) -> Finding:
    return warning(f"{what} is written out in {case.file}", fix)


def _is_secret_text(secret: Secret) -> bool:
    """A word for a server that wants some key is none."""
    return secret.source == "config" and len(secret.value) >= _DISTINCT_LEAST


def _is_weak(value: str) -> bool:
    return len(set(value)) < _DISTINCT_LEAST


def _ways(case: Case) -> Iterator[Finding]:
    for provider in case.loaded.providers.values():
        for url in dict.fromkeys((provider.spec.base_url, *provider.spec.base_urls.values())):
            place = urlsplit(url)
            if place.scheme == "http" and not is_local(place.hostname or ""):
                yield warning(
                    f"{provider.name}: {place.hostname} is reached over http, which others can read",
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
        yield warning(f"store.shared: {shared.hostname} is reached without TLS", "rediss:// in store.shared")
    url = case.loaded.store.url.value
    mode = dict(parse_qsl(url.partition("?")[2])).get("sslmode", "")
    host = (urlsplit(url).hostname or "") if "," not in url else ","
    if (
        url.startswith("postgres")
        and mode in ("disable", "allow", "prefer", "require")
        and not is_local(host)
    ):
        yield warning(
            f"store.url: sslmode={mode} does not verify whom it talks to", "sslmode=verify-full in store.url"
        )


def _durability(case: Case) -> Iterator[Finding]:
    if case.loaded.store.sync == "off":
        yield warning(
            'store.sync is "off": a power cut loses the records of the last requests',
            f'[store] in {case.file}: sync = "during"',
        )
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield note(
            "this is root: a gateway needs no rights of root",
            "run it as a user of its own (docs/operations.md, systemd)",
        )
