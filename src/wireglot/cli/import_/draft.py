"""The configuration that an import makes, before it is text."""

from __future__ import annotations

import re
from itertools import count
from typing import Any, Final

import msgspec

from wireglot.cli.import_.secret_names import Secrets
from wireglot.providers import spec as catalog

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_TAKEN: Final = frozenset({"discover", "demo"})
_MODEL_LETTERS_MOST: Final = 256


class DraftProvider(msgspec.Struct):
    """A table of [providers]. `about` is the comment above it."""

    name: str
    fields: dict[str, Any]
    about: list[str] = []


class DraftRule(msgspec.Struct, frozen=True):
    """A line of [models]."""

    targets: tuple[str, ...]
    effort: tuple[str, ...] = ()
    about: str = ""


class Draft:
    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self.server: dict[str, Any] = {}
        self.discover: bool | None = None
        self.providers: dict[str, DraftProvider] = {}
        self.rules: dict[str, list[DraftRule]] = {}
        self.keys: dict[str, str] = {}
        self.prices: dict[str, dict[str, float]] = {}
        self.hints: list[str] = []
        """What a person has to do beside setting variables."""

    def provider(self, fields: dict[str, Any], wish: str) -> DraftProvider:
        """The provider with exactly these fields; a new one where there is none yet."""
        for known in self.providers.values():
            if known.fields == fields:
                return known
        name = self._free(wish, fields.get("catalog", ""))
        self.providers[name] = DraftProvider(name, fields)
        return self.providers[name]

    def rule(self, match: str, rule: DraftRule) -> None:
        self.rules.setdefault(match, []).append(rule)

    def _free(self, wish: str, entry: str) -> str:
        """A name of an entry is only for what is made of that entry: others would inherit from it."""
        plain = _NOT_IN_A_NAME.sub("-", wish).strip("-._") or "provider"
        if plain in _TAKEN or (plain in catalog.names() and plain != entry):
            plain = f"my-{plain}"
        names = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
        others = {*self.providers, *(name for name in catalog.names() if name != entry)}
        return next(name for name in names if name not in others)


def is_model_name(name: str) -> bool:
    """Whether [models] takes it."""
    return bool(name) and name.isprintable() and " " not in name and len(name) <= _MODEL_LETTERS_MOST
