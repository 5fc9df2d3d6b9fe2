"""The environment: WIREGLOT_* variables that override the file, and the location of a user's files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from wireglot.gateway.config.problems import Problems, key_path
from wireglot.gateway.config.table import Setting, declared
from wireglot.gateway.settings import Settings

CONFIG_FILE: Final = "wireglot.toml"
CONFIG_VARIABLE: Final = "WIREGLOT_CONFIG"
_SHOWN_CHARACTERS: Final = 40
_WHOLE: Final = re.compile(r"[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")


def variables(root: type[Struct] = Settings) -> Iterator[tuple[str, Setting]]:
    """The settings that have a variable, each with its table ("": none)."""
    for setting in declared(root).values():
        if setting.env:
            yield "", setting
        if setting.is_table:
            yield from ((setting.name, inner) for inner in declared(setting.type).values() if inner.env)


def overlaid(
    document: Mapping[str, Any],
    environ: Mapping[str, str],
    problems: Problems,
    root: type[Struct] = Settings,
) -> dict[str, Any]:
    """The document overridden by the variables. An empty variable counts as unset."""
    merged = dict(document)
    for table, setting in variables(root):
        text = environ.get(setting.env, "")
        if not text:
            continue
        entries = _ENTRIES.get(setting.name) if not table else None
        if entries is not None:
            _lay(merged, setting, entries(text, setting.env, problems), problems)
            continue
        value = _typed(text, setting.type)
        problems.origins[key_path(table, setting.name)] = setting.env
        if not table:
            merged[setting.name] = value
        elif isinstance(merged.get(table, {}), Mapping):
            merged[table] = {**merged.get(table, {}), setting.name: value}
    return merged


def _typed(text: str, wanted: object) -> Any:
    """Parse text like a TOML value. Anything else stays text: the reader reports what was expected."""
    if wanted is bool:
        return {"true": True, "false": False}.get(text, text)
    if wanted is int and _WHOLE.fullmatch(text):
        return int(text)
    if wanted is float and _NUMBER.fullmatch(text):
        return float(text)
    if wanted == tuple[str, ...]:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _lay(merged: dict[str, Any], setting: Setting, entries: dict[str, Any], problems: Problems) -> None:
    """Entries of a variable come first and override the file's entries of the same name."""
    table = setting.name
    below = merged.get(table, {})
    if not entries or not isinstance(below, Mapping):
        return
    merged[table] = {**entries, **{name: value for name, value in below.items() if name not in entries}}
    for name in entries:
        problems.origins[key_path(table, name)] = setting.env


def _keys(text: str, variable: str, problems: Problems) -> dict[str, Any]:
    """`name=sha256:HEX,sha256:HEX`: a hash without a name gets one."""
    keys: dict[str, Any] = {}
    for number, entry in enumerate((part.strip() for part in text.split(",") if part.strip()), start=1):
        name, named, digest = entry.partition("=")
        if not named:
            name, digest = f"key-{number}", entry
        digest = digest.strip()
        keys[name.strip()] = digest if digest.startswith("sha256:") else f"sha256:{digest}"
    return keys


def _models(text: str, variable: str, problems: Problems) -> dict[str, Any]:
    """`claude-*=kimi/kimi-k3;fast=gemini/gemini-2.5-flash,mine/some-model`"""
    rules: dict[str, Any] = {}
    for entry in (part.strip() for part in text.split(";") if part.strip()):
        match, equals, targets = entry.partition("=")
        chain = [target.strip() for target in targets.split(",") if target.strip()]
        if not equals or not match.strip() or not chain:
            expected = "name=provider/model, with ; between entries"
            problems.add(variable, expected, f'"{entry[:_SHOWN_CHARACTERS]}"')
            continue
        rules[match.strip()] = chain
    return rules


_ENTRIES: Final[dict[str, Callable[[str, str, Problems], dict[str, Any]]]] = {
    "keys": _keys,
    "models": _models,
}
"""Variables that contain the entries of a whole table."""


def config_dir(environ: Mapping[str, str]) -> Path | None:
    return _user_dir(environ, "APPDATA", "XDG_CONFIG_HOME", ".config")


def data_dir(environ: Mapping[str, str]) -> Path | None:
    return _user_dir(environ, "LOCALAPPDATA", "XDG_DATA_HOME", ".local/share")


def _user_dir(environ: Mapping[str, str], windows: str, xdg: str, below_home: str) -> Path | None:
    """None if the environment has no home: then no file there is read or written."""
    if sys.platform == "win32":
        named = environ.get(windows, "")
        return Path(named) / "wireglot" if named else None
    named = environ.get(xdg, "")
    if named and Path(named).is_absolute():  # the XDG specification: a relative one is ignored
        return Path(named) / "wireglot"
    home = environ.get("HOME", "")
    return Path(home) / below_home / "wireglot" if home else None
