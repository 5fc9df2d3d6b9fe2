"""The description of a client: what points it at a gateway for one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from wireglot.cli.import_.source import SourceNode, UnreadableSource, read_json5

FOLDER: Final = "{folder}"
"""Placeholder in a value for the folder with a client's files."""
# Models that are written into an agent's configuration.
MAX_MODELS: Final = 300
# Characters of a client's settings that are read.
MAX_SETTINGS: Final = 4 * 1024 * 1024


class Door(msgspec.Struct, frozen=True):
    """A gateway, as it is described to a client."""

    url: str
    key: str
    model: str = ""
    """Empty: the client chooses."""
    context: int = 0
    """The context of the model in tokens; 0 if unknown."""
    models: tuple[str, ...] = ()
    """All available models, for clients that need a list."""
    statusline: bool = False
    """Whether to use our status line in the client."""

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"


class Pointing(msgspec.Struct, frozen=True):
    """Settings that make a client use a gateway."""

    set: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    """Variables that would point it elsewhere, or reveal a key that only the gateway needs."""
    options: tuple[tuple[str, ...], ...] = ()
    """Each with its value; an option that the user sets too is left out."""
    files: dict[str, str] = {}
    """For a folder that is removed after the client."""
    links: dict[str, str] = {}
    """Names in that folder that link to places in the user's home."""
    history: tuple[str, ...] = ()
    """Folders in the user's home that a link points to; the client would create them by itself."""
    optional: tuple[str, ...] = ()
    """Variables that name a place in that folder, and are left out without one."""
    warnings: tuple[str, ...] = ()
    """Settings of the user that no variable, option or file overrides."""

    def arguments(self, own: tuple[str, ...]) -> list[str]:
        """The options, before the user's own arguments."""
        taken = [option for option in self.options if not _is_given(option, own)]
        return [*(text for option in taken for text in option), *own]

    def unheeded(self, own: tuple[str, ...]) -> list[str]:
        """Options whose file of ours is not read, because the user names another one."""
        return [
            option[0]
            for option in self.options
            if _is_given(option, own) and any(FOLDER in text for text in option)
        ]


class Client(msgspec.Struct, frozen=True):
    """A client that is known by name."""

    title: str
    program: str
    dialect: str
    install: str
    point: Callable[[Door, Mapping[str, str]], Pointing]
    own_model: str = ""
    """Its default model; empty: it must be given one."""
    has_statusline: bool = False
    own_models: str = ""
    """A pattern of models that it uses whatever it is given."""
    resume: str = ""
    """Its arguments that continue an earlier conversation."""


def _is_given(option: tuple[str, ...], own: tuple[str, ...]) -> bool:
    given = {argument.partition("=")[0] for argument in own}
    return not given.isdisjoint(_spellings(option[0]))


def _spellings(option: str) -> tuple[str, ...]:
    """`-c` and `-e` may be given many times, each time with another setting."""
    return {"-m": ("-m", "--model"), "-c": (), "-e": ()}.get(option, (option,))


def variables_file(variables: Mapping[str, str]) -> str:
    """For python-dotenv. Quoted, since a bare # or $ would have a meaning."""
    return "".join(f"{name}='{_in_quotes(value)}'\n" for name, value in variables.items())


def _in_quotes(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def plain_json5(place: str) -> dict[str, Any] | None:
    """A user's settings, {} if there are none; None if they cannot be read."""
    try:
        with open(place, encoding="utf-8") as file:
            text = file.read(MAX_SETTINGS + 1)
        if len(text) > MAX_SETTINGS:
            return None
        document = _plain(read_json5(text))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, UnreadableSource):
        return None
    return document if isinstance(document, dict) else None


def _plain(node: SourceNode) -> Any:
    if isinstance(node.value, dict):
        return {name: _plain(field) for name, field in node.value.items()}
    return [_plain(item) for item in node.value] if isinstance(node.value, list) else node.value
