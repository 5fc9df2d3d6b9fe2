"""Which gateway is asked: one that listens somewhere, or one that is started here for it."""

from __future__ import annotations

import sys
from typing import Any, Final
from urllib.parse import urlsplit

from wireglot.cli.exit_status import UNUSABLE
from wireglot.cli.paint import one_line
from wireglot.cli.smoke.checks import Gateway
from wireglot.cli.smoke.table import smoke

_CALLER: Final = "wireglot-smoke"


def smoke_other(url: str, key: str, provider: str | None, model: str | None) -> int:
    problem = _unusable(url)
    if problem:
        print(f"wireglot: --url: {problem}", file=sys.stderr)
        return UNUSABLE
    return smoke(Gateway(url, key), provider, model)


def smoke_own(key: str, provider: str | None, model: str | None) -> int:
    """With the configuration that `wireglot serve` would find."""
    from wireglot.cli.own_gateway import ask_own_gateway, key_of_its_own
    from wireglot.gateway import config

    own = ""
    more: dict[str, Any] = {}
    if not key:  # the configuration or the store may ask for one
        own, more = key_of_its_own(_CALLER)

    def ask(host: str, port: int) -> int:
        return smoke(Gateway(f"http://{host}:{port}", key or own), provider, model)

    try:
        return ask_own_gateway(ask, path=config.find(), more=more)
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE


def _unusable(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as fault:
        return str(fault)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"expected http://HOST:PORT, got {one_line(url)!r}"
    return ""
