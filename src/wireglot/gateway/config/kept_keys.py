"""Keys that a user entered and chose to keep: one file in the user's data folder, readable only by its owner.

Each line is NAME=VALUE, and environment variables take precedence. The value `keyring:` means that the
system's keyring has the key.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from wireglot.gateway.config.environment import data_dir
from wireglot.gateway.settings import Secret
from wireglot_core.extras import install_hint

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # Windows has none

_FILE: Final = "credentials"
_SERVICE: Final = "wireglot"
_IN_KEYRING: Final = "keyring:"
# Bytes of the file with stored keys.
_FILE_MAX_BYTES: Final = 64 * 1024
_LINE: Final = re.compile(r"([A-Z_][A-Z0-9_]{0,63}|[a-z_][a-z0-9_]{0,63})=([\x21-\x7e]+)")
_HEAD: Final = b"# Keys kept by `wireglot login`. A variable of the same name in the environment wins."


def kept_file(environ: Mapping[str, str]) -> Path | None:
    """None if the environment has no home: then nothing is kept."""
    home = data_dir(environ)
    return home / _FILE if home is not None else None


def read_kept(place: Path | None, notes: list[str]) -> dict[str, Secret]:
    """The kept keys, by the variable that each replaces. Unreadable ones cause a note, not an error: they
    were not configured."""
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
    """Keep a key in the file; its other lines are preserved. OSError if it cannot be read or written."""
    _write(place, name, value)


def keep_in_keyring(place: Path, name: str, value: str) -> None:
    """Keep a key in the system's keyring; the file only says that it is there. OSError if that fails."""
    keyring = _keyring()
    if keyring is None:
        raise OSError("no keyring is available")
    try:
        keyring.set_password(_SERVICE, name, value)
    except keyring.errors.KeyringError as problem:
        raise OSError(f"the keyring refused it: {problem}") from None
    _write(place, name, _IN_KEYRING)


def kept_places(place: Path | None, notes: list[str]) -> dict[str, Literal["file", "keyring"]]:
    """Where each kept key is, by the variable that it replaces. The keyring itself is not read."""
    if place is None:
        return {}
    entries = _entries(place, notes)
    return {name: "keyring" if value == _IN_KEYRING else "file" for name, value in entries.items()}


def forget(place: Path, name: str) -> bool:
    """Remove a key from the file, and from the keyring if it is there. Returns whether it was kept. OSError
    if that fails."""
    kept = kept_places(place, []).get(name)
    if kept is None:
        return False
    if kept == "keyring":
        keyring = _keyring()
        if keyring is None:
            raise OSError(f"{name} is in the keyring, which needs an extra: {install_hint('keyring')}")
        try:
            keyring.delete_password(_SERVICE, name)
        except keyring.errors.PasswordDeleteError:
            pass  # already removed there
        except keyring.errors.KeyringError as problem:
            raise OSError(f"the keyring refused it: {type(problem).__name__}") from None
    _write(place, name, None)
    return True


def has_keyring() -> bool:
    """Whether the extra is installed, and has a usable keyring."""
    keyring = _keyring()
    return keyring is not None and keyring.get_keyring().priority >= 1  # lower priorities are not safe


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
        notes.append(f"{name} is in the keyring, which needs an extra: {install_hint('keyring')}")
        return None
    try:
        found = keyring.get_password(_SERVICE, name)
    except keyring.errors.KeyringError as problem:
        notes.append(f"{name} is in the keyring, which cannot be read: {type(problem).__name__}")
        return None
    if not found:
        notes.append(f"{name} was stored in the keyring and is missing now")
    return found or None


def _entries(place: Path, notes: list[str]) -> dict[str, str]:
    try:
        lines = _lines(place)
    except OSError as fault:
        notes.append(f"{place}: {fault.strerror or fault}")
        return {}
    found = {}
    for number, line in enumerate(lines, start=1):
        text = line.decode("ascii", "replace").strip()
        entry = _LINE.fullmatch(text)
        if entry is not None:
            found[entry[1]] = _unquoted(entry[2])
        elif text and not text.startswith("#"):
            # The line may be a secret: it is not repeated.
            notes.append(f"{place}: line {number} is not NAME=VALUE, and is ignored")
    return found


def _lines(place: Path) -> list[bytes]:
    """OSError if they cannot be read completely."""
    try:
        with place.open("rb") as file:
            content = file.read(_FILE_MAX_BYTES + 1)
    except FileNotFoundError:
        return []
    if len(content) > _FILE_MAX_BYTES:
        raise OSError("too large for a key file")
    return content.splitlines()


def _unquoted(value: str) -> str:
    """Without quotes, as in a shell: no key has quotes around it."""
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] and value[0] in "'\"" else value


def _write(place: Path, name: str, value: str | None) -> None:
    """Replace, add or remove (None) one line and preserve all others, atomically."""
    place = Path(os.path.realpath(place))  # a symbolic link stays one
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with one_at_a_time(place.parent):
        lines = _lines(place) or [_HEAD]
        start = f"{name}=".encode()
        at = [number for number, line in enumerate(lines) if line.strip().startswith(start)]
        if value is None:
            lines = [line for number, line in enumerate(lines) if number not in at]
        elif at:
            lines[at[-1]] = start + value.encode("ascii")  # the last one counts
        else:
            lines.append(start + value.encode("ascii"))
        content = b"".join(line + b"\n" for line in lines)
        if len(content) > _FILE_MAX_BYTES and value is not None:  # it would be too large to read again
            raise OSError("the file is full: it has too many keys, or keys that are too long")
        draft = place.with_name(f"{_FILE}.{secrets.token_hex(6)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Without the lock, of two processes that keep a key at once each would drop the other's."""
    descriptor = -1
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            if fcntl is not None:
                descriptor = os.open(folder, os.O_RDONLY)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)
