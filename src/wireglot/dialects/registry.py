"""The dialects by name, loaded when first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from wireglot.dialects.base import Dialect

_HOMES = {
    "anthropic": "wireglot.dialects.anthropic",
    "openai-chat": "wireglot.dialects.openai_chat",
    "openai-responses": "wireglot.dialects.openai_responses",
    "gemini": "wireglot.dialects.gemini",
    "code-assist": "wireglot.dialects.gemini.code_assist",
    "gemini-simple": "wireglot.dialects.gemini.simple",
}
"""Name -> module with a `DIALECT`. A new dialect is one package and one line here."""

NAMES = tuple(_HOMES)


class UnknownDialect(ValueError):
    pass


@cache
def dialect(name: str) -> Dialect:
    home = _HOMES.get(name.replace("_", "-"))
    if home is None:
        raise UnknownDialect(f"unknown dialect {name!r}: expected one of {', '.join(NAMES)}")
    return cast(Dialect, import_module(home).DIALECT)
