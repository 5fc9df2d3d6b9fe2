"""Shows every problem of a configuration, or its effective settings; and approves it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import asdict

from wireglot.cli.terminal import FAILED, OK, Failed, Paint, Unusable, columns_of, laid_out, one_line, say
from wireglot.cli.trust import trust
from wireglot.gateway.config import ConfigError, find, load
from wireglot.gateway.config.logins import format_login
from wireglot.gateway.config.models import rule_conditions
from wireglot.gateway.settings import Credential, Provider, Rule, Settings


def run(arguments: argparse.Namespace) -> int:
    if arguments.path and arguments.config:
        raise Unusable(f"both {one_line(arguments.path)} and --config name a file: use one of them")
    if arguments.json and arguments.action != "check":
        raise Unusable("--json: expected with `wireglot config check` only")
    named = arguments.path or arguments.config
    return _check(named, as_json=arguments.json) if arguments.action == "check" else _approve(named)


def _check(named: str | None, *, as_json: bool) -> int:
    """Checks the named file, or the one that `wireglot serve` would find."""
    path = Path(named) if named else find()
    paint = Paint(sys.stdout)
    try:
        settings = load(path, create_secret=False)  # looking at it must not write anything
    except ConfigError as error:
        if as_json:
            print(json.dumps({"file": error.source or None, "problems": list(map(asdict, error.problems))}))
        else:
            _print_problems(error, paint)
        return FAILED
    if as_json:
        print(json.dumps(_document(settings)))
    else:
        _print_summary(settings, paint)
    return OK


def _approve(named: str | None) -> int:
    """Approves the named file, or the one that is found, with its current content. Raises OSError."""
    path = Path(named) if named else find()
    if path is None:
        raise Unusable("no wireglot.toml in the current folder: name a file")
    if not trust(path):
        raise Failed("no data folder is set in the environment, so nothing can be stored: use --config FILE")
    say(f"{path.parent.resolve() / path.name} is trusted until its content changes")
    return OK


def _print_problems(error: ConfigError, paint: Paint) -> None:
    count = len(error.problems)
    print(f"{error.source or 'environment'}: {count} problem{'s' if count > 1 else ''}")
    for problem in error.problems:
        print(f"\n  {paint(problem.path, 'bold')}")
        print(f"    expected {problem.expected}")
        print(f"    found    {paint(problem.found, 'dropped')}")


def _print_summary(settings: Settings, paint: Paint) -> None:
    server = settings.server
    print(f"{settings.source or 'no file, environment only'}: {paint('no problems', 'ok')}")
    host = f"[{server.host}]" if ":" in server.host else server.host
    workers = f", {server.workers} workers" if server.workers > 1 else ""
    print(f"listens on http://{host}:{server.port}{workers}; losses: {settings.losses}")
    sections: dict[str, list[tuple[str, ...]]] = {
        "providers": [_provider_row(provider) for provider in settings.providers.values()],
        "models": [_rule_row(rule) for rule in settings.rules],
        "web": list(_web_rows(settings)),
        "keys": [(key.name, ", ".join(key.models) or "all models") for key in settings.keys],
        "notes": [(note,) for note in settings.notes],
    }
    for title, rows in sections.items():
        if rows:
            print(f"\n{paint(title, 'bold')}")
            for lines in laid_out(rows, columns_of(sys.stdout), "  "):
                print("\n".join(lines))


def _document(settings: Settings) -> dict[str, Any]:
    """What the summary says, for programs; of keys only where they come from."""
    server = settings.server
    return {
        "file": str(settings.source) if settings.source else None,
        "problems": [],
        "host": server.host,
        "port": server.port,
        "workers": server.workers,
        "losses": settings.losses,
        "providers": [
            {
                "name": provider.name,
                "dialects": list(provider.spec.dialects),
                "base_url": _url(provider),
                "keys": [_source(credential) for credential in provider.credentials],
            }
            for provider in settings.providers.values()
        ],
        "models": [
            {
                "match": rule.match,
                "targets": list(rule.targets),
                "conditions": rule_conditions(rule) or None,
                "losses": rule.losses or None,
            }
            for rule in settings.rules
        ],
        "web": [
            {"name": name, "kind": kind, "hosts": hosts, "key": key or None}
            for name, kind, hosts, key in _web_rows(settings)
        ],
        "keys": [{"name": key.name, "models": list(key.models) or None} for key in settings.keys],
        "notes": list(settings.notes),
    }


def _provider_row(provider: Provider) -> tuple[str, ...]:
    """Includes where its keys come from, but never the keys."""
    sources = [_source(credential) for credential in provider.credentials]
    key = ", ".join(sources) if sources else "no key"
    return provider.name, ", ".join(provider.spec.dialects), _url(provider), key


def _source(credential: Credential) -> str:
    return credential.secret.source if credential.login is None else format_login(credential.login)


def _url(provider: Provider) -> str:
    url = provider.spec.base_url
    for name, value in provider.variables.items():
        url = url.replace(f"{{{name}}}", value)
    return url


def _rule_row(rule: Rule) -> tuple[str, ...]:
    losses = f"losses: {rule.losses}" if rule.losses else ""
    return rule.match, f"-> {', then '.join(rule.targets)}", rule_conditions(rule), losses


def _web_rows(settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    search, fetch, mcp = settings.search, settings.fetch, settings.mcp
    if search is not None:
        host = search.model or urlsplit(search.url).netloc or "the vendor's host"
        key = f"key from {search.key.source}" if search.key.value else "no key"
        yield "search", search.backend, host, key if search.backend != "model" else ""
    if fetch is not None:
        hosts = f"public addresses{', and ' if fetch.private_hosts else ''}{', '.join(fetch.private_hosts)}"
        yield "fetch", "pages", hosts, ""
    if mcp is not None:
        yield "mcp", "tools", ", ".join((*mcp.hosts, *mcp.private_hosts)) or "no hosts", ""
