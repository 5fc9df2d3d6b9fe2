"""The secret that seals reasoning state: configured, kept in the user's data, or made up for this process."""

from __future__ import annotations

import os
import secrets
from functools import cache
from pathlib import Path
from typing import Final

from wireglot.gateway.config.declared import declared
from wireglot.gateway.config.references import References
from wireglot.gateway.settings import Secret, ServerSettings

_NAME: Final = "secret"
_READ_CHARACTERS: Final = 4096
_RANDOM_BYTES: Final = 32
_MIN_LENGTH: Final = declared(ServerSettings)["secret"].min_length


def server_secret(
    value: object, path: str, references: References, home: Path | None, *, create: bool
) -> Secret:
    """`home` is the directory for the user's data. A change of secret loses the state sealed with the old."""
    if value is not None:
        return references.secret(value, path, _MIN_LENGTH) or ServerSettings().secret
    kept = _kept(home / _NAME, references, create) if home is not None else None
    if kept is not None:
        return kept
    references.notes.append(
        "no lasting secret: reasoning state sealed now is lost at the next start; set server.secret"
    )
    return Secret(_passing(), "random")


@cache
def _passing() -> str:
    """One for the life of the process: a reload must not lose what was sealed before it."""
    return secrets.token_hex(_RANDOM_BYTES)


def _kept(place: Path, references: References, create: bool) -> Secret | None:
    try:
        text = _read(place, references)
        if text is None:
            if not create:
                return Secret(_passing(), f"file:{place}")  # what a start would make there
            _write(place)
            text = _read(place, references)
    except OSError as fault:
        references.notes.append(f"{place}: {fault.strerror or 'cannot be used'}")
        return None
    if text is None or len(text) < _MIN_LENGTH:
        references.notes.append(f"{place} holds no usable secret: remove it, and a new one is made")
        return None
    return Secret(text, f"file:{place}")


def _read(place: Path, references: References) -> str | None:
    try:
        with place.open("r", encoding="ascii", errors="replace") as file:
            references.warn_if_open(place, os.fstat(file.fileno()).st_mode)
            return file.read(_READ_CHARACTERS).strip()
    except FileNotFoundError:
        return None


def _write(place: Path) -> None:
    """Whole or not at all, and of several processes that start at once only the first one's stays."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = place.with_name(f"{_NAME}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_RANDOM_BYTES) + "\n")
        try:
            os.link(draft, place)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not place.exists():
                draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
