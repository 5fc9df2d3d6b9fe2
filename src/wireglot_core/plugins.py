"""Dialects of other packages: found by their entry points, and registered."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.registry import BadPlugin, register

__all__ = ["GROUP", "BadPlugin", "load_dialects"]

GROUP: Final = "wireglot.dialects"


@cache
def load_dialects() -> tuple[str, ...]:
    """Register the dialects of all installed packages, and return their names. Raises BadPlugin: a user who
    has installed one would be surprised to run without it."""
    return tuple(_load(entry) for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name))


def _load(entry: EntryPoint) -> str:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as problem:
        raise BadPlugin(
            f"{_reported(entry)} cannot be loaded: {type(problem).__name__}: {problem}"
        ) from problem
    if not isinstance(found, Dialect):
        raise BadPlugin(f"{_reported(entry)} is no wireglot_core.dialects.base.Dialect")
    if found.name != entry.name:
        raise BadPlugin(f"{_reported(entry)} is a dialect of another name: {found.name!r}")
    try:
        register(found)
    except ValueError as problem:
        raise BadPlugin(f"{_reported(entry)}: {problem}") from None
    return found.name


def _reported(entry: EntryPoint) -> str:
    return f"the entry point {entry.name!r} of {GROUP} ({entry.value})"
