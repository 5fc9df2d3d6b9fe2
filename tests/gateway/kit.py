"""Settings and heads for tests that need no server."""

from __future__ import annotations

from typing import Any

from wireglot.gateway.settings import Credential, Provider, Rule, Secret, Settings
from wireglot.http.application import Head
from wireglot.providers.spec import ModelSpec, ProviderSpec, provider


def catalogued(name: str, *keys: str) -> Provider:
    credentials = tuple(Credential(Secret(key), f"account-{key}") for key in keys)
    return Provider(name, provider(name), credentials)


def own(name: str, dialect: str, *models: ModelSpec, **more: Any) -> Provider:
    spec = ProviderSpec(name, name, (dialect,), "http://127.0.0.1:1", models=models, **more)
    return Provider(name, spec)


def settings(*providers: Provider, rules: tuple[Rule, ...] = (), **more: Any) -> Settings:
    return Settings(providers={each.name: each for each in providers}, rules=rules, **more)


def head(method: str, path: str, query: str = "", peer: str = "127.0.0.1", **headers: str) -> Head:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    target = f"{path}?{query}" if query else path
    return Head(method, target, path, query, {"host": "localhost:8484", **named}, peer)
