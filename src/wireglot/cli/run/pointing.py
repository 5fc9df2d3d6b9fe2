"""How a client is described: what it is given for one run, so that it asks a gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from wireglot.cli.import_.source import SourceNode, UnreadableSource, read_json5

FOLDER: Final = "{folder}"
"""Stands in a value for the folder with a client's files."""
MAX_MODELS: Final = 300


class Door(msgspec.Struct, frozen=True):
    """A gateway, as it is described to a client."""

    url: str
    key: str
    model: str = ""
    """Empty: the client asks for what it likes."""
    context: int = 0
    """Tokens that the model takes; 0 if unknown."""
    models: tuple[str, ...] = ()
    """All that can be asked for, for clients that want a list."""
    statusline: bool = False
    """Whether the client's status line is to be ours."""

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"


class Pointing(msgspec.Struct, frozen=True):
    """What makes a client ask a gateway."""

    set: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    """Variables that would lead it elsewhere, or show it a key that only the gateway needs."""
    options: tuple[tuple[str, ...], ...] = ()
    """Each with its value; one that the user gives too is left out."""
    files: dict[str, str] = {}
    """For a folder that ends with the client."""
    links: dict[str, str] = {}
    """Names in that folder that lead to places in the user's home."""
    history: tuple[str, ...] = ()
    """Folders in the user's home that a link leads to; the client would make them by itself."""
    optional: tuple[str, ...] = ()
    """Variables that name a place in that folder, and are left out where there is none."""

    def arguments(self, own: tuple[str, ...]) -> list[str]:
        """The options, before the user's own arguments."""
        taken = [option for option in self.options if not _is_given(option, own)]
        return [*(text for option in taken for text in option), *own]

    def unheeded(self, own: tuple[str, ...]) -> list[str]:
        """Options whose file of ours is not read, because the user names a file of their own."""
        return [
            option[0]
            for option in self.options
            if _is_given(option, own) and any(FOLDER in text for text in option)
        ]


class Client(msgspec.Struct, frozen=True):
    """One that is known by name."""

    title: str
    program: str
    dialect: str
    install: str
    point: Callable[[Door, Mapping[str, str]], Pointing]
    own_model: str = ""
    """A name that it asks for by itself; empty: it must be given one."""
    has_statusline: bool = False
    own_models: str = ""
    """A pattern of those that it asks for whatever it is given."""
    resume: str = ""
    """Its arguments that go on with an earlier conversation."""


def _is_given(option: tuple[str, ...], own: tuple[str, ...]) -> bool:
    given = {argument.partition("=")[0] for argument in own}
    return not given.isdisjoint(_spellings(option[0]))


def _spellings(option: str) -> tuple[str, ...]:
    """`-c` and `-e` may be given many times, and each time set something else."""
    return {"-m": ("-m", "--model"), "-c": (), "-e": ()}.get(option, (option,))


def plain_json5(place: str) -> dict[str, Any] | None:
    """A user's settings, {} where there are none; None where they cannot be read."""
    try:
        with open(place, encoding="utf-8") as file:
            document = _plain(read_json5(file.read()))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, UnreadableSource):
        return None
    return document if isinstance(document, dict) else None


def _plain(node: SourceNode) -> Any:
    if isinstance(node.value, dict):
        return {name: _plain(field) for name, field in node.value.items()}
    return [_plain(item) for item in node.value] if isinstance(node.value, list) else node.value
