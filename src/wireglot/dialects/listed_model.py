"""What is known of a model that clients may ask for, to be listed in any dialect's shape, and the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from wireglot.ir.errors import ClientFault

Query = dict[str, list[str]]
"""As `urllib.parse.parse_qs` reads one."""

PAGE_MAX: Final = 1000


class ListedModel(msgspec.Struct, frozen=True):
    """One name a client may send. Figures that nobody knows are 0."""

    id: str
    provider: str
    title: str = ""
    context: int = 0
    """Tokens that the model reads."""
    output: int = 0
    """Tokens that it writes."""
    dialects: tuple[str, ...] = ()
    """Those that its provider speaks."""
    thinking: str = ""
    """How it is told to think, in the catalog's words; "": not at all."""
    efforts: tuple[str, ...] = ()
    thinking_off: bool = True
    hosted_tools: bool = False
    media: tuple[str, ...] = ()
    output_formats: tuple[str, ...] = ()

    @property
    def thinks(self) -> bool:
        return bool(self.thinking)


def page_size(query: Query, name: str, usual: int, *, zero_is_usual: bool = False) -> int:
    """More than the most means the most, as the vendors hold it."""
    text = query.get(name, [""])[-1]
    if not text:
        return usual
    if not (text.isascii() and text.isdigit()):
        raise ClientFault(f"expected a whole number from 1 to {PAGE_MAX}", name)
    number = int(text[:6])  # enough digits to be too many
    if number == 0:
        if zero_is_usual:
            return usual
        raise ClientFault(f"expected a whole number from 1 to {PAGE_MAX}", name)
    return min(number, PAGE_MAX)


def position(listing: Sequence[ListedModel], identifier: str, name: str) -> int:
    """Where the model stands that a cursor names."""
    for index, model in enumerate(listing):
        if model.id == identifier:
            return index
    raise ClientFault("expected the id of a listed model", name)
