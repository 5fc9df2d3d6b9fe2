"""What the environment says: the WIREGLOT_* variables laid over the file, and where a user's files are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from wireglot.gateway.config.problems import Problems, key_path

CONFIG_FILE: Final = "wireglot.toml"

_SCALARS: Final = {
    "WIREGLOT_HOST": ("server", "host"),
    "WIREGLOT_PORT": ("server", "port"),
    "WIREGLOT_LOG": ("server", "log"),
    "WIREGLOT_SECRET": ("server", "secret"),
    "WIREGLOT_ADMIN_SECRET": ("server", "admin_secret"),
    "WIREGLOT_STORE": ("store", "url"),
    "WIREGLOT_SHARED": ("store", "shared"),
    "WIREGLOT_LOSSES": ("", "losses"),
}


def overlaid(document: Mapping[str, Any], environ: Mapping[str, str], problems: Problems) -> dict[str, Any]:
    """The document with the variables put over it. An empty variable counts as unset."""
    merged = dict(document)
    for variable, (table, field) in _SCALARS.items():
        text = environ.get(variable, "")
        if not text:
            continue
        value: Any = int(text) if field == "port" and text.isascii() and text.isdigit() else text
        problems.origins[key_path(table, field)] = variable
        if not table:
            merged[field] = value
        elif isinstance(merged.get(table, {}), Mapping):
            merged[table] = {**merged.get(table, {}), field: value}
    _lay(merged, "keys", _keys(environ.get("WIREGLOT_KEYS", "")), "WIREGLOT_KEYS", problems)
    rules = _models(environ.get("WIREGLOT_MODELS", ""), problems)
    _lay(merged, "models", rules, "WIREGLOT_MODELS", problems)
    return merged


def _lay(
    merged: dict[str, Any], table: str, entries: dict[str, Any], variable: str, problems: Problems
) -> None:
    """Entries of a variable come first and win over the file's of the same name."""
    below = merged.get(table, {})
    if not entries or not isinstance(below, Mapping):
        return
    merged[table] = {**entries, **{name: value for name, value in below.items() if name not in entries}}
    for name in entries:
        problems.origins[key_path(table, name)] = variable


def _keys(text: str) -> dict[str, Any]:
    """`name=sha256:HEX,sha256:HEX`: a hash without a name gets one."""
    keys: dict[str, Any] = {}
    for number, entry in enumerate((part.strip() for part in text.split(",") if part.strip()), start=1):
        name, named, digest = entry.partition("=")
        if not named:
            name, digest = f"key-{number}", entry
        digest = digest.strip()
        keys[name.strip()] = digest if digest.startswith("sha256:") else f"sha256:{digest}"
    return keys


def _models(text: str, problems: Problems) -> dict[str, Any]:
    """`claude-*=kimi/kimi-k3;fast=gemini/gemini-2.5-flash,mine/some-model`"""
    rules: dict[str, Any] = {}
    for entry in (part.strip() for part in text.split(";") if part.strip()):
        match, equals, targets = entry.partition("=")
        chain = [target.strip() for target in targets.split(",") if target.strip()]
        if not equals or not match.strip() or not chain:
            problems.add("WIREGLOT_MODELS", "name=provider/model, with ; between entries", f'"{entry[:40]}"')
            continue
        rules[match.strip()] = chain
    return rules


def config_dir(environ: Mapping[str, str]) -> Path | None:
    return _user_dir(environ, "APPDATA", "XDG_CONFIG_HOME", ".config")


def data_dir(environ: Mapping[str, str]) -> Path | None:
    return _user_dir(environ, "LOCALAPPDATA", "XDG_DATA_HOME", ".local/share")


def _user_dir(environ: Mapping[str, str], windows: str, xdg: str, below_home: str) -> Path | None:
    """None where the environment names no home: then nothing is read from it or written to it."""
    if sys.platform == "win32":
        named = environ.get(windows, "")
        return Path(named) / "wireglot" if named else None
    named = environ.get(xdg, "")
    if named and Path(named).is_absolute():  # the XDG specification: a relative one is ignored
        return Path(named) / "wireglot"
    home = environ.get("HOME", "")
    return Path(home) / below_home / "wireglot" if home else None
