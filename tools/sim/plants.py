"""Defects that are put into the gateway on purpose, to see that the laws find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

PLANTS: Final[dict[str, Callable[[], None]]] = {}


def plant(name: str) -> None:
    PLANTS[name]()
