"""Keys of the source -> `env:NAME`: no key is written into a configuration in clear text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from wireglot.gateway.config.problems import shown
from wireglot.providers import spec as catalog

_NOT_A_NAME: Final = re.compile(r"[^A-Z0-9]+")
_NAME_LETTERS_MOST: Final = 60
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|cookie|password|signature", re.IGNORECASE)
PLACEHOLDERS: Final = frozenset(
    {
        *(
            "none",
            "null",
            "na",
            "n/a",
            "empty",
            "dummy",
            "fake",
            "fake-key",
            "fake_key",
            "my-fake-key",
            "test",
        ),
        *("no-key", "not-needed", "not-required", "anything", "ollama", "lm-studio", "lmstudio", "vllm", "x"),
        *("xxx", "key", "token", "-", "sk-none", "sk-dummy", "sk-fake", "sk-no-key-required", "placeholder"),
    }
)
"""What people write where a server asks for no key: no secret, and copied as it is."""


class Secrets:
    """Which variables the new configuration needs, and what the source has in clear text for them."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: variables whose values are known here. One that has another value is not used."""
        self._known = known
        self._reserved: set[str] = set()
        self.needed: dict[str, None] = {}
        """Every variable that the configuration names, in its order."""
        self.literal: dict[str, str] = {}
        """Those whose values the source itself holds. Never shown."""

    def reserve(self, *names: str) -> None:
        """Variables that the source means itself: a key in clear text gets another name."""
        self._reserved.update(names)

    def value(self, name: str) -> str:
        return self.literal.get(name) or self._known.get(name, "")

    def variable(self, name: str) -> str:
        """A reference to a variable that the source names."""
        self.needed.setdefault(name)
        return f"env:{name}"

    def told(self, reference: str) -> str:
        """What a key became, in words."""
        if not reference.startswith("env:"):
            return "api_key: a placeholder, no secret"
        name = reference.removeprefix("env:")
        return f"its value belongs into {name}" if name in self.literal else f"api_key: {reference}"

    def supplied(self, name: str, value: str) -> None:
        """The source itself says what a variable holds."""
        self._reserved.add(name)
        self.literal[name] = value

    def hidden(self, value: str, wish: str) -> str:
        """A reference to a variable for a value of the source; a mere placeholder is given back."""
        if value.lower() in PLACEHOLDERS:
            return value
        for name in _names(wish):
            held = self.literal.get(name) or self._known.get(name)
            if held == value or (held is None and name not in self._reserved):
                self.literal[name] = value
                return self.variable(name)
        raise AssertionError("there is always one more name")


def key_name(provider: str, entry: str = "") -> str:
    """A variable for the key of a provider: that of its entry in the catalog. Who has none gets no vendor's
    variable, whose key would go to another host on the day it is set."""
    usual = catalog.provider(entry).api_key_env if entry else ()
    if usual:
        return usual[0]
    name = next(_names(f"{provider}_API_KEY"))
    vendors = {variable for entry in catalog.names() for variable in catalog.provider(entry).api_key_env}
    return f"MY_{name}" if name in vendors else name


def is_secret_header(name: str, value: str) -> bool:
    """Whether a value must not be written out."""
    return _SECRET_HEADER.search(name) is not None or shown(value) != f'"{value}"'


def _names(wish: str) -> Iterator[str]:
    plain = _NOT_A_NAME.sub("_", wish.upper()).strip("_")[:_NAME_LETTERS_MOST] or "KEY"
    name = f"K_{plain}" if plain[0].isdigit() else plain
    yield name
    yield from (f"{name}_{number}" for number in count(2))
