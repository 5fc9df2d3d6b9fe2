"""Problems of a configuration: the place, what was expected, what was found. All of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

_SHOWN_CHARACTERS: Final = 40
_LIKE_A_KEY: Final = re.compile(r"sk-|AIza|gsk_|xox|gh[pousr]_|eyJ|Bearer|[A-Za-z0-9+/_-]{24,}")


class ConfigProblem(msgspec.Struct, frozen=True):
    """`path` is the place in the TOML file, or the environment variable. No field ever contains a secret."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


class ConfigError(Exception):
    """Every problem of one configuration. `source` is the file's name; "" without a file."""

    def __init__(self, problems: Iterable[ConfigProblem], source: str = "") -> None:
        self.problems: tuple[ConfigProblem, ...] = tuple(problems)
        self.source = source
        count = len(self.problems)
        where = source or "configuration"
        if count == 1:
            place = self.problems[0].path
            reported = str(self.problems[0])
            super().__init__(reported if place == source else f"{where}: {reported}")
        else:
            super().__init__("\n  ".join((f"{where}: {count} problems", *map(str, self.problems))))


class NotApproved(ConfigError):
    """A configuration whose content its user has not approved; `reason` says what to do."""

    def __init__(self, reason: str, source: str) -> None:
        super().__init__([ConfigProblem(source, "content that is approved", "other content")], source)
        self.reason = reason


class Problems:
    """Collects problems. A value from an environment variable is named by that variable."""

    def __init__(self) -> None:
        self.found: list[ConfigProblem] = []
        self.origins: dict[str, str] = {}

    def add(self, path: str, expected: str, found: str) -> None:
        self.found.append(ConfigProblem(self._named(path), expected, found))

    def _named(self, path: str) -> str:
        """`keys.team-a.hash` came from WIREGLOT_KEYS if `keys.team-a` did."""
        place = path
        while place:
            if place in self.origins:
                return self.origins[place]
            place = place.rpartition(".")[0]
        return path

    def raise_any(self, source: str = "") -> None:
        if self.found:
            raise ConfigError(self.found, source)


def key_path(path: str, key: str) -> str:
    """A path one key longer, quoted as TOML would quote it."""
    shown = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else msgspec.json.encode(key).decode()
    return f"{path}.{shown}" if path else shown


def shown(value: object) -> str:
    """A value as a problem may show it. Text that could be a key is reported by its length."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value) if len(str(value)) <= _SHOWN_CHARACTERS else "a very long number"
        case str() if not value:
            return "empty text"
        case str() if len(value) > _SHOWN_CHARACTERS or _LIKE_A_KEY.search(value) or not value.isprintable():
            return f"text of {len(value)} characters"
        case str():
            return f'"{value}"'
        case _:
            return kind(value)


def kind(value: object) -> str:
    """The type of a value, without its content: for places that contain secrets."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return f"text of {len(value)} characters" if value else "empty text"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case Mapping():
            return "a table"
        case _:
            return "a date or time"


def one_of(options: Iterable[str], wrong: Any = None) -> str:
    """The options as an expectation, and the one that was probably meant."""
    names = sorted(options)
    listed = ", ".join(names)
    expected = f"one of {listed}" if len(names) > 1 else listed or "nothing"
    return expected + meant(wrong, names)


def meant(wrong: object, names: Iterable[str]) -> str:
    if type(wrong) is not str:
        return ""
    near = get_close_matches(wrong, list(names), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
