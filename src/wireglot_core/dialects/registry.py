"""The dialects by name: built-in ones, loaded when first used, and registered ones."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Final, Literal, NewType, cast, get_args

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.errors import WireglotError

_HOMES: Final[dict[str, str]] = {
    "anthropic": "wireglot_core.dialects.anthropic",
    "openai-chat": "wireglot_core.dialects.openai_chat",
    "openai-responses": "wireglot_core.dialects.openai_responses",
    "gemini": "wireglot_core.dialects.gemini",
    "gemini-interactions": "wireglot_core.dialects.gemini_interactions",
    "code-assist": "wireglot_core.dialects.gemini.code_assist",
    "gemini-simple": "wireglot_core.dialects.gemini.simple",
    "anthropic-vertex": "wireglot_core.dialects.anthropic.vertex",
    "anthropic-bedrock": "wireglot_core.dialects.anthropic.bedrock",
    "ollama": "wireglot_core.dialects.ollama",
    "ollama-generate": "wireglot_core.dialects.ollama.generate",
}
"""Name -> module with a `DIALECT`. A new built-in dialect is one package and one line here."""

OwnDialect = NewType("OwnDialect", str)
"""The name of a registered dialect: `OwnDialect("my-dialect")`."""

_Ours = Literal[
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "gemini-interactions",
    "code-assist",
    "gemini-simple",
    "anthropic-vertex",
    "anthropic-bedrock",
    "ollama",
    "ollama-generate",
]

DialectName = _Ours | OwnDialect
"""Type of a dialect name in the library's API: a type checker finds misspelt names."""

NAMES: Final[tuple[_Ours, ...]] = get_args(_Ours)
"""The built-in ones. `names` includes the registered ones."""

COMMON: Final = "openai-chat"
"""The dialect of answers to callers whose dialect is unknown: most can read its errors."""

ITEMS: Final = "openai-responses"
"""The dialect in whose items conversations are stored, whatever the client's dialect. Stored formats do not
change."""

_registered: Final[dict[str, Dialect]] = {}


class UnknownDialect(WireglotError, ValueError):
    """No dialect has this name."""

    code = "UNKNOWN_DIALECT"

    def __str__(self) -> str:
        return self.message


class NameTaken(ValueError):
    """Two dialects cannot have the same name: a request would be ambiguous."""


class BadPlugin(Exception):
    """A package declares a dialect but has none, or one whose name is taken."""


def dialect_name(text: str) -> DialectName:
    """Validates a dialect name from outside (a file, the command line). Raises UnknownDialect."""
    return cast(DialectName, dialect(text).name)


class _Loaded(dict[str, Dialect]):
    """The dialects that were requested; built-in ones are loaded when they are missing."""

    def __missing__(self, name: object) -> Dialect:
        if not isinstance(name, str):
            raise UnknownDialect(f"expected the name of a dialect, got {type(name).__name__}")
        plain = _plain(name)
        if plain in self:
            return self[plain]
        home = _HOMES.get(plain)
        if home is None:
            raise UnknownDialect(
                f"unknown dialect {name!r}{_hint(plain)}: expected one of {', '.join(names())}"
            )
        self[plain] = found = cast(Dialect, import_module(home).DIALECT)
        return found


class _Surfaces(dict[str, Surface]):
    def __missing__(self, name: str) -> Surface:
        found = dialect(name)
        return self.setdefault(found.name, found.surface)


_loaded: Final = _Loaded()
_surfaces: Final = _Surfaces()

# Used many times per request: each lookup is one dictionary access.
dialect: Final[Callable[[str], Dialect]] = _loaded.__getitem__
surface: Final[Callable[[str], Surface]] = _surfaces.__getitem__


def names() -> tuple[DialectName, ...]:
    return (*NAMES, *map(OwnDialect, _registered))


def surfaces() -> tuple[Surface, ...]:
    """The surfaces of all dialects, built-in ones first. Loads them."""
    return tuple(surface(name) for name in names())


def register(new: Dialect) -> None:
    """Register a dialect under its name, for everything that takes a dialect by name. The same one may be
    registered again. For a gateway it must be registered before the gateway is built."""
    name = new.name
    if name != _plain(name) or not name:
        raise ValueError(f"{name!r} is no name for a dialect: expected words with hyphens between them")
    if _registered.get(name) is new:
        return
    if name in _HOMES or name in _registered:
        raise NameTaken(f"there is a dialect {name!r} already")
    _registered[name] = _loaded[name] = new


def unregister(name: str) -> None:
    """Remove a registered dialect, as tests do. Built-in ones stay."""
    del _registered[name]
    _loaded.pop(name, None)
    _surfaces.pop(name, None)


_MAX_NAME: Final = 40
"""Characters of a name that it is worth comparing with those of the dialects."""
_ALSO_CALLED: Final = {
    "chat": "openai-chat",
    "claude": "anthropic",
    "google": "gemini",
    "interactions": "gemini-interactions",
    "messages": "anthropic",
    "responses": "openai-responses",
    "bedrock": "anthropic-bedrock",
    "vertex": "anthropic-vertex",
}


def _hint(name: str) -> str:
    """The dialects that were probably meant."""
    wanted = name.lower()
    if not wanted or len(wanted) > _MAX_NAME:
        return ""
    near: list[str] = [each for each in names() if each.startswith(f"{wanted}-")]
    near = near or [also for word, also in _ALSO_CALLED.items() if word in wanted.split("-")][:1]
    near = near or get_close_matches(wanted, names(), n=1)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _plain(name: str) -> str:
    return name.replace("_", "-")
