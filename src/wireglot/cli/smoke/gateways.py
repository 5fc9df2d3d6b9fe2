"""Which gateway is asked: one that listens somewhere, or one that is started here for it."""

from __future__ import annotations

from typing import Any, Final

from wireglot.cli.exit_status import UNUSABLE
from wireglot.cli.remote_gateway import Address, UnusableKey, UnusableUrl, address_of, usable_key
from wireglot.cli.smoke.checks import Gateway
from wireglot.cli.smoke.table import smoke
from wireglot.cli.store_trouble import store_failed
from wireglot.cli.telling import complain

_CALLER: Final = "wireglot-smoke"


def smoke_other(url: str, key: str, provider: str | None, model: str | None) -> int:
    try:
        gateway = Gateway(address_of(url), usable_key(key, "--key"))
    except (UnusableUrl, UnusableKey) as problem:
        complain(problem)
        return UNUSABLE
    return smoke(gateway, provider, model)


def smoke_own(key: str, provider: str | None, model: str | None) -> int:
    """With the configuration that `wireglot serve` would find."""
    from wireglot.cli.own_gateway import ask_own_gateway, key_of_its_own
    from wireglot.cli.trust import trusted_config
    from wireglot.gateway import config
    from wireglot.stores import StoreDown, StoreUnusable

    own = ""
    more: dict[str, Any] = {}
    if not key:  # the configuration or the store may ask for one
        own, more = key_of_its_own(_CALLER)

    def ask(host: str, port: int) -> int:
        return smoke(Gateway(Address("http", host, port), key or own), provider, model)

    try:
        usable_key(key, "--key")
        return ask_own_gateway(ask, file=trusted_config(None), more=more)
    except (config.ConfigError, UnusableKey) as problem:
        complain(problem)
        return UNUSABLE
    except (StoreDown, StoreUnusable) as problem:
        return store_failed(problem)
