"""Whether a wireglot.toml that lies in a repository may be used: it says where keys and prompts go.

Clients are started in projects, and a project may be somebody else's. Its user agrees once to a file as it
is; a pull that changes it is another file. One that is named on the command line was agreed to by that.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wireglot.cli.paint import one_line
from wireglot.cli.run.asking import can_ask
from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, data_dir

_AGREED: Final = "agreed"
_REPOSITORIES: Final = (".git", ".hg", ".svn", ".jj")
_FILE_MAX_BYTES: Final = 1024 * 1024


class NotAgreed(Exception):
    """In words for people."""


def check_agreed(path: Path | None, environ: Mapping[str, str]) -> None:
    """Raises NotAgreed. `path`: the configuration that was found, named by nobody."""
    if path is None or is_agreed(path, environ):
        return
    if can_ask() and _says_yes(path.resolve()):
        agree(path, environ)
        return
    raise NotAgreed(
        f"{CONFIG_FILE} of this repository says where your keys and prompts go: look at it, then name it "
        f"with --config {CONFIG_FILE}"
    )


def is_agreed(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether the configuration that was found, named by nobody, is the user's own or was agreed to."""
    if environ.get(CONFIG_VARIABLE) or path != Path(CONFIG_FILE):
        return True
    place = path.resolve()
    return not _is_in_repository(place) or _line(place) in _agreed(environ)


def _is_in_repository(place: Path) -> bool:
    return any((folder / name).exists() for folder in place.parents for name in _REPOSITORIES)


def agree(path: Path, environ: Mapping[str, str]) -> None:
    """To the file as it is. Where nothing can be kept, it is asked again."""
    home = data_dir(environ)
    if home is None or not _is_in_repository(path.resolve()):
        return
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(home / _AGREED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(_line(path.resolve()) + b"\n")


def _agreed(environ: Mapping[str, str]) -> list[bytes]:
    home = data_dir(environ)
    try:
        return (home / _AGREED).read_bytes()[-_FILE_MAX_BYTES:].splitlines() if home is not None else []
    except OSError:
        return []


def _line(place: Path) -> bytes:
    """A file as it is, at its place."""
    try:
        content = place.read_bytes()
    except OSError:
        content = b""
    return hashlib.sha256(os.fsencode(place) + b"\0" + content).hexdigest().encode()


def _says_yes(place: Path) -> bool:
    told = (
        f"wireglot: {one_line(str(place))} is part of a repository, and says where your keys and prompts go."
    )
    print(told, "Use it, as it is now? [y/N] ", sep="\n", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
