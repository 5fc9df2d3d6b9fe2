"""The values of a configuration that no sink may show; `http/redaction.py` scrubs them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from wireglot.gateway.settings import Settings
from wireglot.logins.login import secrets_of_login

_NAMED_HEADER: Final = re.compile(r"(?i)auth|key|token|secret|cookie|password|credential")
_DRAWN: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w.~+/=-]{20,}|[0-9a-fA-F]{32,}")
"""Matches random strings that no one writes by hand: upper and lower case letters and digits, or a long
number. Versions do not match."""


def secrets_of(settings: Settings) -> set[str]:
    """All values of a configuration that no sink may show."""
    server = settings.server
    own = (server.secret, server.admin_secret, server.metrics_key, *server.old_secrets)
    found = {secret.value for secret in own}
    if settings.login is not None:
        found.add(settings.login.client_secret.value)
    for provider in settings.providers.values():
        for credential in provider.credentials:
            found.add(credential.secret.value)
            if credential.login is not None:
                found.update(secrets_of_login(credential.login))
        found |= _in_headers(provider.headers)
        found |= _passwords(provider.proxy)
    found |= _passwords(settings.store.url.value) | _passwords(settings.store.shared.value)
    found |= _in_headers(settings.telemetry.headers)
    if settings.search is not None:
        found |= {settings.search.key.value} | _passwords(settings.search.proxy)
    if settings.fetch is not None:
        found |= _passwords(settings.fetch.proxy)
    found.discard("")
    return found


def _in_headers(headers: Iterable[tuple[str, str]]) -> set[str]:
    values = [
        value
        for name, value in headers
        if _NAMED_HEADER.search(name) or _DRAWN.fullmatch(value.rpartition(" ")[2])
    ]
    return {*values, *(value.rpartition(" ")[2] for value in values)}


def _passwords(url: str) -> set[str]:
    """The password as it is spelled in the URL, and decoded."""
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return set()
    return {password, unquote(password)}
