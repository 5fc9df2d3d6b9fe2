"""Where the configuration is written: a place in which `wireglot serve` finds it, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir


class CannotWrite(Exception):
    """In words for people."""


def place_for(output: str, *, user: bool, environ: Mapping[str, str]) -> Path:
    if output and user:
        raise CannotWrite("--output and --user exclude each other")
    if output:
        return Path(output)
    if user:
        folder = config_dir(environ)
        if folder is None:
            raise CannotWrite("--user: the environment names no home")
        return folder / CONFIG_FILE
    return Path(environ.get(CONFIG_VARIABLE, "") or CONFIG_FILE)


def check_place(place: Path, *, force: bool) -> None:
    """Before anybody is asked: it may not be there, and its folder must take it."""
    if place.is_dir():
        raise CannotWrite(f"{place} is a folder: name a file with --output")
    if place.exists() and not force:
        raise CannotWrite(f"{place} is there already: --force writes over it, --output FILE elsewhere")
    folder = place.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise CannotWrite(f"{folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CannotWrite(f"{folder.absolute()} cannot be written to: name another place with --output FILE")


def write(place: Path, text: str, *, force: bool) -> None:
    """With the mode of the file before it. Raises CannotWrite."""
    target = Path(os.path.realpath(place))  # a link stays one
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if force:
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        else:
            _name_new(draft, target)
    except FileExistsError:
        raise CannotWrite(f"{place} is there already: --force writes over it") from None
    except OSError as fault:
        raise CannotWrite(f"{place}: {fault.strerror or fault}") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _name_new(draft: Path, target: Path) -> None:
    """Raises FileExistsError where another one came first."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError from None
        draft.replace(target)
