"""Which new settings a running gateway may take up: none that open a door which is shut (fails closed)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wireglot.gateway.config.problems import ConfigError, ConfigProblem, shown
from wireglot.gateway.config.urls import is_loopback
from wireglot.gateway.settings import Settings

_LOCK: Final = "a client key in [keys], or require_key = true"
_RESTART: Final = f"{_LOCK} (only a restart can let everybody in)"


def needs_key(settings: Settings) -> bool:
    """Whether the configuration by itself asks callers for a key. Keys of the store do not count here: they
    can go, and nobody may be able to say whether there are any."""
    return bool(settings.keys) or settings.server.require_key


def check_reload(before: Settings, after: Settings, bound: Iterable[str]) -> None:
    """ConfigError where `after` must not take the place of `before`. `bound` are the addresses that the
    gateway listens on: whatever `after` says of host and port, they stay these."""
    if needs_key(after):
        return
    if needs_key(before):
        raise ConfigError([ConfigProblem("keys", _RESTART, "neither")], after.source)
    for address in bound:
        if not is_loopback(address):
            raise ConfigError(
                [ConfigProblem("keys", _LOCK, f"neither, and it listens on {shown(address)}")], after.source
            )
