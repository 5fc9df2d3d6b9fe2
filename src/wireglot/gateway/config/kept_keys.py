"""Keys that a person gave once and wanted kept: one file below the user's data, for its owner alone.

Each line is NAME=VALUE and stands below the environment: a variable that is set wins. The value `keyring:`
says that the keyring of the system holds it.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from wireglot.gateway.config.environment import data_dir
from wireglot.gateway.settings import Secret

_FILE: Final = "credentials"
_SERVICE: Final = "wireglot"
_IN_KEYRING: Final = "keyring:"
_FILE_MAX_BYTES: Final = 64 * 1024
_LINE: Final = re.compile(r"([A-Z_][A-Z0-9_]{0,63})=([\x21-\x7e]+)")
_HEAD: Final = "# Keys kept by `wireglot run`. A variable of the same name in the environment wins.\n"


def kept_file(environ: Mapping[str, str]) -> Path | None:
    """None where the environment names no home: then nothing is kept."""
    home = data_dir(environ)
    return home / _FILE if home is not None else None


def read_kept(place: Path | None, notes: list[str]) -> dict[str, Secret]:
    """What was kept, by the variable it stands for. What cannot be read is a note: nobody asked for it."""
    if place is None:
        return {}
    kept = {}
    for name, value in _entries(place, notes).items():
        if value != _IN_KEYRING:
            kept[name] = Secret(value, f"file:{place}")
        elif (found := _from_keyring(name, notes)) is not None:
            kept[name] = Secret(found, f"keyring:{name}")
    return kept


def keep(place: Path, name: str, value: str) -> None:
    """In the file; others of before stay. OSError where it cannot be written."""
    _write(place, {**_entries(place, []), name: value})


def keep_in_keyring(place: Path, name: str, value: str) -> None:
    """In the system's keyring; the file says only that it is there. OSError where it cannot be."""
    keyring = _keyring()
    if keyring is None:
        raise OSError("there is no keyring")
    try:
        keyring.set_password(_SERVICE, name, value)
    except keyring.errors.KeyringError as problem:
        raise OSError(f"the keyring refused it: {problem}") from None
    _write(place, {**_entries(place, []), name: _IN_KEYRING})


def has_keyring() -> bool:
    """Whether the extra is there, and a keyring that it can use."""
    keyring = _keyring()
    return keyring is not None and keyring.get_keyring().priority >= 1  # lower ones are not safe


def _keyring() -> Any:
    try:
        keyring = importlib.import_module("keyring")
        importlib.import_module("keyring.errors")
    except ImportError:
        return None
    return keyring


def _from_keyring(name: str, notes: list[str]) -> str | None:
    keyring = _keyring()
    if keyring is None:
        notes.append(f"{name} is in the keyring, which needs an extra: pip install 'wireglot[keyring]'")
        return None
    try:
        found = keyring.get_password(_SERVICE, name)
    except keyring.errors.KeyringError as problem:
        notes.append(f"{name} is in the keyring, which cannot be read: {type(problem).__name__}")
        return None
    if not found:
        notes.append(f"{name} was kept in the keyring and is there no more")
    return found or None


def _entries(place: Path, notes: list[str]) -> dict[str, str]:
    try:
        with place.open("rb") as file:
            content = file.read(_FILE_MAX_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as fault:
        notes.append(f"{place}: {fault.strerror or 'cannot be read'}")
        return {}
    lines = content.decode("ascii", "replace").splitlines()
    found = (_LINE.fullmatch(line.strip()) for line in lines)
    return {line[1]: line[2] for line in found if line is not None}


def _write(place: Path, entries: Mapping[str, str]) -> None:
    """Whole or not at all."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = place.with_name(f"{_FILE}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(_HEAD)
            file.writelines(f"{name}={value}\n" for name, value in entries.items())
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
