"""The configuration of a command, and whether it may be used: it decides where keys and prompts are sent.

Commands are run in projects, which may have come from others: cloned, unpacked, pulled. A wireglot.toml in
the current folder is used if `wireglot init` wrote it on this machine, or its user approved it with exactly
this content. A file that is named by --config or WIREGLOT_CONFIG, or is in the user's own configuration
folder, is trusted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from wireglot.cli.run.asking import can_ask
from wireglot.cli.terminal import one_line
from wireglot.gateway import config
from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir, data_dir
from wireglot.gateway.config.read import read_file
from wireglot.gateway.settings import Settings

_TRUSTED: Final = "agreed"
# Bytes at the end of the list of approved files that are read.
_FILE_MAX_BYTES: Final = 1024 * 1024


class ConfigFile(msgspec.Struct, frozen=True):
    """A configuration that was read once: the approved content is the one that is loaded."""

    path: Path | None
    content: bytes | None = None
    """None: the file was named, and is read when it is loaded."""
    trusted: bool = True
    needs_approval: bool = False
    """Whether new content of it must be approved before it is used."""


NO_FILE: Final = ConfigFile(None)


def find_config(named: str | None, environ: Mapping[str, str] = os.environ) -> ConfigFile:
    """The named file, or the one that is found. It may not be trusted."""
    path = Path(named) if named else config.find(environ)
    if path is None or named or environ.get(CONFIG_VARIABLE) or path != Path(CONFIG_FILE):
        return ConfigFile(path)
    try:
        content = read_file(path)
    except OSError:
        return ConfigFile(path, needs_approval=True)  # loading it reports why
    own = config_dir(environ)
    if own is not None and _place(path) == _place(own / CONFIG_FILE):
        return ConfigFile(path, content)
    return ConfigFile(path, content, _line(path, content) in _trusted_lines(environ), needs_approval=True)


def trusted_config(named: str | None, environ: Mapping[str, str] = os.environ) -> ConfigFile:
    """The same, after asking the user. ConfigError if it is not trusted."""
    found = find_config(named, environ)
    if found.trusted:
        return found
    assert found.path is not None
    assert found.content is not None
    if can_ask() and _says_yes(found.path):
        _record(found.path, found.content, environ)
        return msgspec.structs.replace(found, trusted=True)
    place = str(_place(found.path))
    expected = f"your approval (read the file, then run `{trust_command(found.path)}`)"
    raise config.ConfigError([config.ConfigProblem(place, expected, "none")], place)


def settings_of(named: str | None) -> Settings:
    """Of the named file, or of the one that is found, for display: providers without a key are no problem."""
    file = trusted_config(named)
    return config.load(file.path, create_secret=False, content=file.content, keys_needed=False)


def refusal_of_changes(
    file: ConfigFile, environ: Mapping[str, str] = os.environ
) -> Callable[[bytes], str] | None:
    """For a process that keeps using the file: returns why content that it finds there later must not be
    loaded, or "". None if the file needs no approval."""
    path = file.path
    if path is None or not file.needs_approval:
        return None
    place = _place(path)
    reason = (
        f"{place} changed and is not approved: run `{trust_command(path)}`; "
        "the previous configuration stays in effect"
    )

    def why_not(content: bytes) -> str:
        # The approval at the start may not have been stored.
        approved = content == file.content or _line(place, content) in _trusted_lines(environ)
        return "" if approved else reason

    return why_not


def trust_command(path: Path) -> str:
    return f"wireglot config trust {shlex.quote(str(_place(path)))}"


def trust(path: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Approve the file with its current content; False if that cannot be stored. Raises OSError."""
    return _record(path, read_file(path), environ)


def approve(path: Path, content: bytes) -> None:
    """Approve content that the file is about to have. OSError if that cannot be stored."""
    if not _record(path, content, os.environ):
        raise OSError("its approval cannot be stored")


def _record(path: Path, content: bytes, environ: Mapping[str, str]) -> bool:
    home = data_dir(environ)
    if home is None:
        return False
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(home / _TRUSTED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(_line(path, content) + b"\n")
    return True


def _trusted_lines(environ: Mapping[str, str]) -> list[bytes]:
    home = data_dir(environ)
    try:
        return (home / _TRUSTED).read_bytes()[-_FILE_MAX_BYTES:].splitlines() if home is not None else []
    except OSError:
        return []


def _place(path: Path) -> Path:
    """The file's own place, even if it is a link: its references are relative to that."""
    return path.parent.resolve() / path.name


def _line(path: Path, content: bytes) -> bytes:
    """A file's place and content; for a link also its target."""
    places = dict.fromkeys((_place(path), path.resolve()))
    return hashlib.sha256(b"\0".join([*map(os.fsencode, places), content])).hexdigest().encode()


def _says_yes(path: Path) -> bool:
    place, target = _place(path), path.resolve()
    leads = f" (a link to {one_line(str(target))})" if target != place else ""
    print(
        f"wireglot: {one_line(str(place))}{leads} decides where your keys and prompts are sent, and you "
        "have not approved it. `wireglot config check` shows what it sets.",
        "Use it with this content? [y/N] ",
        sep="\n",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")
