"""Files that hold secrets, or what callers have said: for their owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, ok, warning
from wireglot.gateway.config import read
from wireglot.gateway.config.environment import data_dir
from wireglot.gateway.config.kept_keys import kept_file
from wireglot.gateway.config.problems import ConfigError
from wireglot.stores.open import sqlite_path

_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
_READERS: Final = stat.S_IRGRP | stat.S_IROTH


def look_at_files(case: Case) -> Iterator[Finding]:
    if os.name != "posix":
        return
    seen = 0
    for place, holds in dict(_places(case)).items():
        try:
            mode = place.stat().st_mode
        except OSError:
            continue
        seen += 1
        wanted = _FOLDER_MODE if stat.S_ISDIR(mode) else _FILE_MODE
        if mode & (_OTHERS if stat.S_ISDIR(mode) else _READERS):
            yield _open(place, holds, wanted)
    if seen:
        yield ok(f"{seen} places with secrets or data looked at")


def _places(case: Case) -> Iterator[tuple[Path, str]]:
    home = data_dir(case.environ)
    if home is not None:
        yield home, "holds the gateway's data"
        yield home / "secret", "holds the secret that seals what is stored"
    kept = kept_file(case.environ)
    if kept is not None:
        yield kept, "holds keys of providers"
    if case.path is not None:
        if _holds_secrets(case):
            yield case.path, "holds a secret"
        for file in _referred(case.path):
            yield file, "holds a secret"
    if case.settings is not None and case.settings.store.url.value.startswith("sqlite:"):
        yield Path(sqlite_path(case.settings.store.url.value.partition(":")[2])), "holds what callers stored"


def _holds_secrets(case: Case) -> bool:
    if case.settings is None:
        return False
    server = case.settings.server
    own = (server.secret, server.admin_secret, server.metrics_key, *server.old_secrets)
    keys = (
        credential.secret
        for provider in case.settings.providers.values()
        for credential in provider.credentials
    )
    return any(secret.value and secret.source == "config" for secret in (*own, *keys))


def _referred(path: Path) -> list[Path]:
    try:
        return list(read.referred_files(read.document(path), path.parent))
    except ConfigError:
        return []


def _open(place: Path, holds: str, wanted: int) -> Finding:
    text = f"{place} {holds}, and others on this machine can read it"
    fix = f"chmod {wanted:o} {place}"
    owned = place.stat().st_uid == os.geteuid()
    return warning(text, fix, partial(place.chmod, wanted) if owned else None)
