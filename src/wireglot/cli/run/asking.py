"""Questions to the user: a missing key, and whether to keep it."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from wireglot.cli.terminal import complain, one_line
from wireglot.gateway.config.kept_keys import has_keyring, keep, keep_in_keyring, kept_file
from wireglot.gateway.config.providers import SENDABLE

_YES: Final = ("y", "yes")


class TriedKey(NamedTuple):
    """The result of testing a key."""

    is_refused: bool
    words: str = ""
    """The provider's message; "" if there is none."""


TryKey = Callable[[str], TriedKey]


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_key(whose: str, variable: str, try_key: TryKey, reason: str = "") -> str:
    """A key, entered without echo and tested before it is kept; empty if none is entered, or no one can be
    asked. `reason`: why it is needed, unless it is just missing."""
    if not can_ask():
        return ""
    complain(one_line(reason or f"{whose} requires a key, and {variable} is not set."))
    while key := prompted_key("Key"):
        tried = try_key(key)
        if tried.words:
            complain(one_line(tried.words))
        if not tried.is_refused:
            _offer_to_keep(variable, key)
            return key
    return ""


def prompted_key(what: str) -> str:
    """A key that can be sent; "" if none is entered."""
    while True:
        question = f"{one_line(what)} (input is hidden; Enter to cancel): "
        try:
            key = getpass.getpass(question, stream=sys.stderr).strip()
        except EOFError:
            return ""
        if not key or SENDABLE.fullmatch(key):
            return key
        complain("not a valid key: expected plain ASCII without spaces.")


def _offer_to_keep(variable: str, key: str) -> None:
    place = kept_file(os.environ)
    if place is None:
        return
    ring = has_keyring()
    where = "in the [k]eyring, in a [f]ile" if ring else f"in {short_path(place)}"
    question = f"Store it for next time, {where} that only you can read? [{'k/f' if ring else 'y'}/N] "
    said = _answer(question)
    in_keyring = ring and said in ("k", "keyring")
    if not in_keyring and said not in (*_YES, "f", "file"):
        return
    try:
        keep_key(place, variable, key, in_keyring=in_keyring)
    except OSError as fault:
        complain(f"it could not be stored: {fault.strerror or fault}")


def keep_key(place: Path, variable: str, key: str, *, in_keyring: bool) -> None:
    """Raises OSError."""
    (keep_in_keyring if in_keyring else keep)(place, variable, key)


def says_yes(question: str) -> bool:
    return _answer(question) in _YES


def _answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower()


def short_path(path: Path) -> str:
    home, text = os.environ.get("HOME", "").rstrip("/"), str(path)
    return f"~{text[len(home) :]}" if home and text.startswith(f"{home}/") else text
