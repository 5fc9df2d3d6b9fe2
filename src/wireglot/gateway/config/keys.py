"""[keys] -> the client keys, by their hashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wireglot.gateway.config.problems import Problems, key_path, kind, shown
from wireglot.gateway.config.providers import LOSSES
from wireglot.gateway.config.table import Table
from wireglot.gateway.settings import ClientKey

_EXPECTED: Final = '"sha256:" and the 64 hex digits of the key\'s SHA-256'
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@ -]{0,63}")


def read_keys(value: object, problems: Problems) -> tuple[ClientKey, ...]:
    if not isinstance(value, Mapping):
        problems.add("keys", "a table", kind(value))
        return ()
    keys: dict[str, ClientKey] = {}
    for name, given in value.items():
        path = key_path("keys", name)
        if not _NAME.fullmatch(name):
            problems.add(path, "a name of letters, digits, '.', '_', '@' and '-'", shown(name))
        key = _read(name, given, path, problems)
        if key is None:
            continue
        if key.digest in keys:
            problems.add(path, "a key of its own", f"the one of {keys[key.digest].name}")
        keys[key.digest] = key
    return tuple(keys.values())


def _read(name: str, given: object, path: str, problems: Problems) -> ClientKey | None:
    if not isinstance(given, Mapping):
        digest = _digest(given, path, problems)
        return ClientKey(name, digest) if digest else None
    table = Table(given, path, problems)
    digest = _digest(table.raw("hash"), table.at("hash"), problems)
    losses = table.choice("losses", LOSSES, None)
    models = table.texts("models", "a list of model names and patterns")
    table.close()
    return ClientKey(name, digest, losses, models) if digest else None


def _digest(value: object, path: str, problems: Problems) -> str:
    """What stands there may be the key itself, put there by mistake: it is told by its length."""
    if type(value) is not str or not value.startswith("sha256:"):
        problems.add(path, _EXPECTED, kind(value))
        return ""
    digits = value.removeprefix("sha256:")
    if len(digits) != 64:
        problems.add(path, _EXPECTED, f"{len(digits)} digits")
        return ""
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", digits):
        problems.add(path, _EXPECTED, "characters that are no hex digits")
        return ""
    return digits.lower()
