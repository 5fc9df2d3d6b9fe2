"""Questions to a person: a key that is missing, and whether to keep it."""

from __future__ import annotations

import getpass
import os
import sys
from typing import Final

from wireglot.cli.terminal import complain, one_line
from wireglot.gateway.config.kept_keys import has_keyring, keep, keep_in_keyring, kept_file
from wireglot.gateway.config.providers import SENDABLE

_YES: Final = ("y", "yes")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_key(whose: str, variable: str) -> str:
    """A key for which nothing is shown; empty where none is given, or no server to ask."""
    if not can_ask():
        return ""
    complain(f"{one_line(whose)} wants a key, and {variable} is not set.")
    try:
        key = getpass.getpass("Key (nothing is shown; Enter alone gives up): ", stream=sys.stderr).strip()
    except EOFError:
        return ""
    if not key:
        return ""
    if not SENDABLE.fullmatch(key):
        complain("that is no key: one has no spaces and is plain ASCII.")
        return ask_key(whose, variable)
    _offer_to_keep(variable, key)
    return key


def _offer_to_keep(variable: str, key: str) -> None:
    place = kept_file(os.environ)
    if place is None:
        return
    ring = has_keyring()
    where = "in the [k]eyring, in a [f]ile" if ring else f"in {_short(str(place))}"
    question = f"Keep it for next time, {where} that only you can read? [{'k/f' if ring else 'y'}/N] "
    said = _answer(question)
    if ring and said in ("k", "keyring"):
        keeper = keep_in_keyring
    elif said in (*_YES, "f", "file"):
        keeper = keep
    else:
        return
    try:
        keeper(place, variable, key)
    except OSError as fault:
        complain(f"it could not be kept: {fault.strerror or fault}")


def _answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower()


def _short(path: str) -> str:
    home = os.environ.get("HOME", "").rstrip("/")
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path
